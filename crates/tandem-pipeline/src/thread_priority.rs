//! Who goes first where the consumer works on the processor that also runs the stages.
//!
//! A stage that takes a core for a moment makes a computation on all cores wait for its slowest part. Behind the
//! consumer, stages use what it leaves over; where that is too little its own waiting gives them the rest, so nobody
//! starves. The system's scheduler does the work: there is no other bookkeeping.

/// Whether stages step back behind the consumer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadPriority {
    /// All alike: the consumer's work is done elsewhere, by a GPU.
    #[default]
    Equal,
    /// The consumer first.
    BelowConsumer,
}

/// Steps of niceness behind the consumer: a tenth of its share where both want the same core.
#[cfg(target_os = "linux")]
const BEHIND: i32 = 10;

impl ThreadPriority {
    /// The calling thread takes its place; meant for the beginning of a thread. Threads that it starts stand beside it.
    /// On systems where threads have no niceness of their own nothing changes.
    pub fn apply(self) {
        #[cfg(target_os = "linux")]
        if self == ThreadPriority::BelowConsumer {
            // Stepping back is never refused, and a thread that could not would only be in the way.
            if let Ok(now) = rustix::process::getpriority_process(None) {
                let _ = rustix::process::setpriority_process(None, now + BEHIND);
            }
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::process::getpriority_process;

    #[test]
    fn only_the_calling_thread_steps_back() {
        let before = getpriority_process(None).unwrap();
        let now = || getpriority_process(None).unwrap();
        let place = |priority: ThreadPriority| {
            std::thread::scope(|scope| {
                let thread = scope.spawn(move || {
                    priority.apply();
                    let child = std::thread::scope(|scope| scope.spawn(now).join().unwrap());
                    [now(), child]
                });
                thread.join().unwrap()
            })
        };
        assert_eq!(place(ThreadPriority::Equal), [before; 2]);
        assert_eq!(place(ThreadPriority::BelowConsumer), [(before + BEHIND).min(19); 2]);
        assert_eq!(getpriority_process(None).unwrap(), before);
    }
}
