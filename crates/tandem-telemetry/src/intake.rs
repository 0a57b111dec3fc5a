//! The queues before the writer: one for events that reports need, one for frequent events.
//! Both are bounded.
//!
//! In: [`Stamped`] from any thread. Out: the same, in batches, to [`crate::writer`]. A push
//! never waits and never calls the system unless a queue is filling up: where a queue is full
//! the event is dropped and counted by kind. Spans therefore never displace a step.

use crate::event::{Kind, Lane, Stamped};
use crossbeam_queue::ArrayQueue;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Thread;

pub(crate) struct Intake {
    essential: ArrayQueue<Stamped>,
    bulk: ArrayQueue<Stamped>,
    lost: [AtomicU64; Kind::ALL.len()],
    writer: OnceLock<Thread>,
    woken: AtomicBool,
}

impl Intake {
    pub(crate) fn new(essential: usize, bulk: usize) -> Intake {
        Intake {
            essential: ArrayQueue::new(essential.max(2)),
            bulk: ArrayQueue::new(bulk.max(2)),
            lost: Default::default(),
            writer: OnceLock::new(),
            woken: AtomicBool::new(false),
        }
    }

    /// Names the thread to wake when a queue is half full.
    pub(crate) fn serve(&self, writer: Thread) {
        // One writer per intake: a second call cannot happen, and would change nothing.
        let _ = self.writer.set(writer);
    }

    pub(crate) fn push(&self, stamped: Stamped) {
        let kind = stamped.event.kind();
        let queue = match kind.lane() {
            Lane::Essential => &self.essential,
            Lane::Bulk => &self.bulk,
        };
        if queue.push(stamped).is_err() {
            self.count_lost(kind);
        }
        if queue.len() * 2 >= queue.capacity() && !self.woken.swap(true, Ordering::Relaxed) {
            self.wake();
        }
    }

    pub(crate) fn wake(&self) {
        if let Some(writer) = self.writer.get() {
            writer.unpark();
        }
    }

    /// Takes what is there into `batch`, in the order of time. Takes no more than a queue holds,
    /// so that a fast sender cannot occupy the writer forever.
    pub(crate) fn drain(&self, batch: &mut Vec<Stamped>) {
        self.woken.store(false, Ordering::Relaxed);
        for queue in [&self.essential, &self.bulk] {
            batch.extend((0..queue.capacity()).map_while(|_| queue.pop()));
        }
        batch.sort_by_key(|stamped| stamped.at);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.essential.is_empty() && self.bulk.is_empty()
    }

    pub(crate) fn count_lost(&self, kind: Kind) {
        self.lost[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Events that arrived while the writer was ending count as lost.
    pub(crate) fn count_leftovers(&self) {
        let mut batch = Vec::new();
        self.drain(&mut batch);
        batch.iter().for_each(|stamped| self.count_lost(stamped.event.kind()));
    }

    /// Events lost so far, by kind; kinds that lost none are absent.
    pub(crate) fn lost(&self) -> BTreeMap<String, u64> {
        Kind::ALL
            .iter()
            .map(|&kind| {
                (kind.name().to_string(), self.lost[kind as usize].load(Ordering::Relaxed))
            })
            .filter(|(_, count)| *count > 0)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Nanos;
    use crate::event::{Event, QueueLevel, Warning};
    use tandem_units::Bytes;

    fn warning(at: u64) -> Stamped {
        let event = Event::Warning(Warning { code: "test".into(), text: String::new() });
        Stamped { at: Nanos(at), event }
    }

    fn level(at: u64) -> Stamped {
        let level = QueueLevel {
            queue: "load".into(),
            items: 0,
            bytes: Bytes(0),
            limit: Bytes(0),
            limit_items: None,
        };
        Stamped { at: Nanos(at), event: level.into() }
    }

    #[test]
    fn a_flood_of_samples_takes_no_room_from_what_reports_need() {
        let intake = Intake::new(4, 4);
        (0..100).for_each(|at| intake.push(level(at)));
        (0..3).for_each(|at| intake.push(warning(at)));
        assert_eq!(intake.lost(), BTreeMap::from([("queue".to_string(), 96)]));
        let mut batch = Vec::new();
        intake.drain(&mut batch);
        assert_eq!(batch.iter().filter(|s| s.event.kind() == Kind::Warning).count(), 3);
    }

    #[test]
    fn a_batch_is_in_the_order_of_time() {
        let intake = Intake::new(4, 4);
        [level(1), warning(3), level(4), warning(2)].into_iter().for_each(|s| intake.push(s));
        let mut batch = Vec::new();
        intake.drain(&mut batch);
        assert_eq!(batch.iter().map(|s| s.at.0).collect::<Vec<_>>(), [1, 2, 3, 4]);
    }
}
