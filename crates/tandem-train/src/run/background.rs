//! Background computation on the CPU that trains.
//!
//! In: a closure that uses Burn on the CPU. Out: its result. A training step is a sequence of parallel
//! computations on all cores, each as slow as its slowest thread. Other work in the same thread pool
//! would delay these threads. So background work gets its own threads with a lower priority. Where a
//! GPU trains, no pool is started.

use crate::TrainError;
use rayon::{ThreadPool, ThreadPoolBuilder};
use tandem_device::backend::compiles_kernels;
use tandem_device::placement::OpenDevices;
use tandem_pipeline::ThreadPriority;

/// Threads for one kind of background work; by default the caller's thread.
#[derive(Debug, Default)]
pub struct BackgroundPool(Option<ThreadPool>);

impl BackgroundPool {
    /// Starts half as many threads as the training pool has: more would only compete with each other
    /// for the CPU time that training leaves.
    pub fn start(
        priority: ThreadPriority,
        name: &'static str,
    ) -> Result<BackgroundPool, TrainError> {
        if priority == ThreadPriority::Equal {
            return Ok(BackgroundPool(None));
        }
        let pool = ThreadPoolBuilder::new()
            .num_threads(rayon::current_num_threads().div_ceil(2))
            .thread_name(move |number| format!("tandem-{name}-c{number}"))
            .start_handler(move |_| priority.apply())
            .build();
        let refused = |error| TrainError::Thread(std::io::Error::other(error));
        pool.map(|pool| BackgroundPool(Some(pool))).map_err(refused)
    }

    /// Runs a closure in the pool and waits for its result.
    pub fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.0 {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }
}

/// Runs the training loop on a thread of the training pool. From any other thread, each parallel
/// computation would wake a pool thread and then wait for it, hundreds of times per step.
pub fn on_training_pool<R: Send>(priority: ThreadPriority, work: impl FnOnce() -> R + Send) -> R {
    match priority {
        ThreadPriority::BelowConsumer => rayon::scope(|_| work()),
        ThreadPriority::Equal => work(),
    }
}

/// Priority of the background threads in a run on these devices.
pub fn priority_on(devices: &OpenDevices) -> ThreadPriority {
    if compiles_kernels(&devices.model) {
        return ThreadPriority::Equal;
    }
    // Start the training pool here: its threads inherit the priority of the thread that starts them.
    rayon::current_num_threads();
    ThreadPriority::BelowConsumer
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use tandem_model::Device;

    /// Niceness of the calling thread: field 19 of its `stat` line.
    fn niceness() -> i32 {
        let line = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let after_name = line.rsplit(')').next().unwrap();
        after_name.split_whitespace().nth(16).unwrap().parse().unwrap()
    }

    #[test]
    fn background_work_has_its_own_threads_with_a_lower_priority() {
        let before = niceness();
        let pool = BackgroundPool::start(ThreadPriority::BelowConsumer, "test").unwrap();
        let (name, threads, inside) = pool.run(|| {
            let name = std::thread::current().name().unwrap_or_default().to_string();
            (name, rayon::current_num_threads(), niceness())
        });
        assert_eq!((name.as_str(), inside), ("tandem-test-c0", (before + 10).min(19)));
        assert_eq!(threads, rayon::current_num_threads().div_ceil(2));
        assert_eq!(niceness(), before);
    }

    #[test]
    fn on_the_cpu_training_runs_inside_its_thread_pool() {
        let cpu = OpenDevices { data: Device::flex(), model: Device::flex() };
        let priority = priority_on(&cpu);
        assert_eq!(priority, ThreadPriority::BelowConsumer);
        let number = || rayon::current_thread_index();
        assert!(on_training_pool(priority, number).is_some());
        assert_eq!(on_training_pool(ThreadPriority::Equal, number), None);
        assert_eq!(BackgroundPool::start(ThreadPriority::Equal, "test").unwrap().run(number), None);
    }
}
