//! Thread priority of the stages where the consumer trains on the CPU that also runs them.
//!
//! A computation on all cores waits for its slowest part, so a stage that takes a core for a moment
//! delays all of it. With a lower priority the stages use the time that the consumer leaves idle. If
//! that is too little, the consumer waits for them, and its wait gives them the cores: no thread
//! starves. In: a priority. Out: the niceness of the calling thread. The scheduler of the system
//! does the rest. Next: [`crate::run`] applies it at the start of each thread.

/// The priority of the stages relative to the consumer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadPriority {
    /// The same: the consumer's work is done by a GPU.
    #[default]
    Equal,
    BelowConsumer,
}

/// Added niceness: a tenth of the consumer's CPU share where both need the same core.
#[cfg(target_os = "linux")]
const ADDED_NICENESS: i32 = 10;

impl ThreadPriority {
    /// Applies the priority to the calling thread, and to threads that it starts later. Does nothing
    /// on systems where threads have no niceness of their own.
    pub fn apply(self) {
        #[cfg(target_os = "linux")]
        if self == ThreadPriority::BelowConsumer {
            // A higher niceness is never refused. If it were, the run would only be slower.
            if let Ok(now) = rustix::process::getpriority_process(None) {
                let _ = rustix::process::setpriority_process(None, now + ADDED_NICENESS);
            }
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::process::getpriority_process;

    #[test]
    fn only_the_calling_thread_and_its_children_change() {
        let before = getpriority_process(None).unwrap();
        let now = || getpriority_process(None).unwrap();
        let niceness = |priority: ThreadPriority| {
            std::thread::scope(|scope| {
                let thread = scope.spawn(move || {
                    priority.apply();
                    let child = std::thread::scope(|scope| scope.spawn(now).join().unwrap());
                    [now(), child]
                });
                thread.join().unwrap()
            })
        };
        assert_eq!(niceness(ThreadPriority::Equal), [before; 2]);
        assert_eq!(niceness(ThreadPriority::BelowConsumer), [(before + ADDED_NICENESS).min(19); 2]);
        assert_eq!(getpriority_process(None).unwrap(), before);
    }
}
