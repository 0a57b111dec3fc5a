//! Computation beside the training, on the processor that trains.
//!
//! In: work that uses Burn on the processor. Out: its result. A step is a row of computations that all cores share,
//! each as slow as its slowest part; work of others in the same pool of threads is such a part. So whoever computes
//! beside the training gets threads of their own, which stand behind it. Where a GPU trains nothing of this is done.

use crate::TrainError;
use rayon::{ThreadPool, ThreadPoolBuilder};
use tandem_device::backend::compiles_kernels;
use tandem_device::placement::OpenDevices;
use tandem_pipeline::ThreadPriority;

/// Threads for one kind of work beside the training; by default none of its own.
#[derive(Debug, Default)]
pub struct BackgroundPool(Option<ThreadPool>);

impl BackgroundPool {
    /// Half as many threads as train: what is left over is less.
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

    /// Does some work there and waits for it.
    pub fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.0 {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }
}

/// Does the training's own work on one of the threads that share its computations. From any other thread each of them
/// would begin by waking one of these and end by being woken, hundreds of times in a step.
pub fn on_training_pool<R: Send>(priority: ThreadPriority, work: impl FnOnce() -> R + Send) -> R {
    match priority {
        ThreadPriority::BelowConsumer => rayon::scope(|_| work()),
        ThreadPriority::Equal => work(),
    }
}

/// Who goes first in a run on these devices.
pub fn priority_on(devices: &OpenDevices) -> ThreadPriority {
    if compiles_kernels(&devices.model) {
        return ThreadPriority::Equal;
    }
    // The threads that train are started now and here: those who first ask for them would pass on their own place.
    rayon::current_num_threads();
    ThreadPriority::BelowConsumer
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use tandem_model::Device;

    /// Niceness of the calling thread: the nineteenth number of its status line.
    fn place() -> i32 {
        let line = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let after_name = line.rsplit(')').next().unwrap();
        after_name.split_whitespace().nth(16).unwrap().parse().unwrap()
    }

    #[test]
    fn work_beside_the_training_has_threads_of_its_own_behind_it() {
        let before = place();
        let beside = BackgroundPool::start(ThreadPriority::BelowConsumer, "test").unwrap();
        let (name, threads, there) = beside.run(|| {
            let name = std::thread::current().name().unwrap_or_default().to_string();
            (name, rayon::current_num_threads(), place())
        });
        assert_eq!((name.as_str(), there), ("tandem-test-c0", (before + 10).min(19)));
        assert_eq!(threads, rayon::current_num_threads().div_ceil(2));
        assert_eq!(place(), before);
    }

    #[test]
    fn on_the_processor_the_training_is_one_of_those_who_compute() {
        let cpu = OpenDevices { data: Device::flex(), model: Device::flex() };
        let priority = priority_on(&cpu);
        assert_eq!(priority, ThreadPriority::BelowConsumer);
        let number = || rayon::current_thread_index();
        assert!(on_training_pool(priority, number).is_some());
        assert_eq!(on_training_pool(ThreadPriority::Equal, number), None);
        assert_eq!(BackgroundPool::start(ThreadPriority::Equal, "test").unwrap().run(number), None);
    }
}
