//! Waiting for a background thread to end or to accept work, but not for ever.
//!
//! In: a thread, or the queue of one, and a counter that it raises when it makes progress. Out: its
//! result, or [`Stuck`] when the counter stood still for longer than the limit. Time in which the
//! process was stopped or the machine asleep does not count.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(5);

/// A counter that a thread raises when it makes progress. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct ProgressCounter(Arc<AtomicU64>);

impl From<Arc<AtomicU64>> for ProgressCounter {
    fn from(shared: Arc<AtomicU64>) -> ProgressCounter {
        ProgressCounter(shared)
    }
}

impl ProgressCounter {
    /// For others that watch it.
    pub fn shared(&self) -> Arc<AtomicU64> {
        self.0.clone()
    }

    pub fn advance(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Why a thread gave no result.
#[derive(Debug)]
pub enum Stuck {
    /// It panicked with this message.
    Panicked(String),
    /// It made no progress for this long and was left behind.
    NoProgress(Duration),
}

/// Waits until the thread ends, or until it has made no progress for `limit`.
pub fn join_within<T>(
    thread: JoinHandle<T>,
    progress: &ProgressCounter,
    limit: Duration,
) -> Result<T, Stuck> {
    let mut wait = Wait::start(progress, limit);
    while !thread.is_finished() {
        wait.pause()?;
    }
    thread.join().map_err(|panic| Stuck::Panicked(panic_message(&*panic)))
}

/// Sends to a thread whose queue may be full. Waits until there is room, or until the thread has made
/// no progress for `limit`. A thread that ended takes nothing: joining it tells why.
pub fn send_within<T>(
    queue: &SyncSender<T>,
    item: T,
    progress: &ProgressCounter,
    limit: Duration,
) -> Result<(), Stuck> {
    let offer = |item| match queue.try_send(item) {
        Err(TrySendError::Full(back)) => Err(back),
        Ok(()) | Err(TrySendError::Disconnected(_)) => Ok(()),
    };
    offer_within(item, offer, progress, limit)
}

/// The same for any queue: `offer` gives the item back while there is no room.
pub fn offer_within<T>(
    mut item: T,
    mut offer: impl FnMut(T) -> Result<(), T>,
    progress: &ProgressCounter,
    limit: Duration,
) -> Result<(), Stuck> {
    let mut wait = Wait::start(progress, limit);
    while let Err(back) = offer(item) {
        item = back;
        wait.pause()?;
    }
    Ok(())
}

/// A wait that ends when the counter stands still.
struct Wait<'a> {
    progress: &'a ProgressCounter,
    limit: Duration,
    seen: u64,
    idle: Duration,
    last: Instant,
}

impl Wait<'_> {
    fn start(progress: &ProgressCounter, limit: Duration) -> Wait<'_> {
        let (seen, last) = (progress.value(), Instant::now());
        Wait { progress, limit, seen, idle: Duration::ZERO, last }
    }

    fn pause(&mut self) -> Result<(), Stuck> {
        std::thread::sleep(POLL);
        let gap = self.last.elapsed();
        self.last = Instant::now();
        // A gap far above the poll interval means that this process did not run.
        self.idle += gap.min(20 * POLL);
        let value = self.progress.value();
        if std::mem::replace(&mut self.seen, value) != value {
            self.idle = Duration::ZERO;
        }
        if self.idle > self.limit { Err(Stuck::NoProgress(self.limit)) } else { Ok(()) }
    }
}

/// The message of a panic.
pub fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;

    fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        std::thread::Builder::new().name("test".into()).spawn(work).unwrap()
    }

    #[test]
    fn a_thread_that_ends_gives_its_result() {
        let joined = join_within(spawn(|| 7), &ProgressCounter::default(), Duration::from_secs(60));
        assert!(matches!(joined, Ok(7)));
    }

    #[test]
    fn a_panic_is_told_with_its_message() {
        let thread = spawn(|| panic!("disk on fire"));
        let joined = join_within(thread, &ProgressCounter::default(), Duration::from_secs(60));
        assert!(matches!(joined, Err(Stuck::Panicked(text)) if text == "disk on fire"));
    }

    #[test]
    fn a_thread_without_progress_is_left_behind() {
        let (hold, wait) = sync_channel::<()>(0);
        let thread = spawn(move || wait.recv());
        let limit = Duration::from_millis(50);
        let joined = join_within(thread, &ProgressCounter::default(), limit);
        assert!(matches!(joined, Err(Stuck::NoProgress(found)) if found == limit));
        drop(hold);
    }

    #[test]
    fn progress_starts_the_limit_again() {
        let progress = ProgressCounter::default();
        let counter = progress.clone();
        let thread = spawn(move || {
            for _ in 0..20 {
                std::thread::sleep(Duration::from_millis(20));
                counter.advance();
            }
        });
        // In all it takes longer than the limit; between two signs of progress it does not.
        assert!(join_within(thread, &progress, Duration::from_millis(350)).is_ok());
    }

    #[test]
    fn a_full_queue_is_waited_for_while_its_thread_makes_progress() {
        let (queue, items) = sync_channel::<u32>(1);
        let progress = ProgressCounter::default();
        let counter = progress.clone();
        let thread = spawn(move || {
            let slow = |item| {
                std::thread::sleep(Duration::from_millis(30));
                counter.advance();
                item
            };
            items.iter().map(slow).collect::<Vec<_>>()
        });
        for item in 0..5 {
            send_within(&queue, item, &progress, Duration::from_secs(60)).unwrap();
        }
        drop(queue);
        assert_eq!(thread.join().unwrap(), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_full_queue_of_a_stuck_thread_is_given_up() {
        let (queue, _items) = sync_channel::<u32>(1);
        let (progress, limit) = (ProgressCounter::default(), Duration::from_millis(50));
        send_within(&queue, 0, &progress, limit).unwrap();
        let sent = send_within(&queue, 1, &progress, limit);
        assert!(matches!(sent, Err(Stuck::NoProgress(found)) if found == limit));
    }

    #[test]
    fn a_thread_that_ended_is_not_waited_for() {
        let (queue, items) = sync_channel::<u32>(1);
        drop(items);
        let sent = send_within(&queue, 0, &ProgressCounter::default(), Duration::from_secs(60));
        assert!(sent.is_ok(), "the join tells why");
    }
}
