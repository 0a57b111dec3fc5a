//! The thread that writes the record.
//!
//! In: batches from [`crate::intake`]. Out: lines to [`crate::record_file`]. Sleeps most of the
//! time; wakes at intervals, or when a queue is half full. A step whose losses are still on the
//! device is held back, within a window and a time limit, while all other events pass; steps
//! keep their order. Nothing this thread does can make a sender wait.

use crate::clock::Nanos;
use crate::event::{Event, Health, RunHeader, Stamped};
use crate::record::{Ending, RecordOptions, Shared};
use crate::record_file::{Offer, Outbox, RecordFile};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// What others may see of the writer at any time, without waiting for it.
#[derive(Default)]
pub(crate) struct Watch {
    write_errors: AtomicU64,
    late_losses: AtomicU64,
    slowest_write: AtomicU64,
    // Moment the present write began, plus one; zero between writes.
    writing_since: AtomicU64,
    first_error: OnceLock<String>,
    ended: Mutex<Option<Ending>>,
    ended_now: Condvar,
}

impl Watch {
    pub(crate) fn health(&self, lost: BTreeMap<String, u64>, now: Nanos) -> Health {
        // A write that hangs has not ended yet: it counts with what it took so far.
        let running = match self.writing_since.load(Ordering::Relaxed) {
            0 => Nanos(0),
            since => now.less(Nanos(since - 1)),
        };
        Health {
            lost,
            write_errors: self.write_errors.load(Ordering::Relaxed),
            first_error: self.first_error.get().cloned(),
            slowest_write: running.max(Nanos(self.slowest_write.load(Ordering::Relaxed))),
            late_losses: self.late_losses.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn ending(&self) -> Ending {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).unwrap_or(Ending::Cut)
    }

    /// Waits until the writer has ended, but no longer than the limit.
    pub(crate) fn wait_for_end(&self, limit: Duration) -> Ending {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        self.ended_now
            .wait_timeout_while(ended, limit, |ended| ended.is_none())
            .map_or(Ending::Cut, |(ended, _)| ended.unwrap_or(Ending::Cut))
    }

    fn end(&self, ending: Ending) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(ending);
        self.ended_now.notify_all();
    }

    fn timed<T>(&self, shared: &Shared, write: impl FnOnce() -> T) -> T {
        let begin = shared.clock.now();
        self.writing_since.store(begin.0 + 1, Ordering::Relaxed);
        let result = write();
        self.slowest_write.fetch_max(shared.clock.now().less(begin).0, Ordering::Relaxed);
        self.writing_since.store(0, Ordering::Relaxed);
        result
    }

    fn note(&self, result: io::Result<()>) -> bool {
        let Err(error) = result else { return true };
        self.write_errors.fetch_add(1, Ordering::Relaxed);
        let _ = self.first_error.set(error.to_string());
        false
    }
}

pub(crate) struct Writer {
    shared: Arc<Shared>,
    outbox: Outbox,
    options: RecordOptions,
    // Steps and the final line in order, each with the moment it arrived here.
    held: VecDeque<(Instant, Stamped)>,
    reported: Health,
    line: Vec<u8>,
}

impl Writer {
    pub(crate) fn new(
        shared: Arc<Shared>,
        file: Box<dyn RecordFile>,
        header: RunHeader,
        options: RecordOptions,
    ) -> Writer {
        let outbox = Outbox::new(file, options.outbox, options.retry_every);
        let (held, line) = (VecDeque::new(), Vec::new());
        let mut writer =
            Writer { shared, outbox, options, held, reported: Health::default(), line };
        writer.put(Stamped { at: Nanos(0), event: Event::Run(Box::new(header)) });
        writer
    }

    pub(crate) fn run(mut self) {
        let mut batch = Vec::new();
        loop {
            let closing = self.shared.closing.load(Ordering::Acquire);
            self.shared.intake.drain(&mut batch);
            batch.drain(..).for_each(|stamped| self.take(stamped));
            self.release(Instant::now());
            self.report_health();
            self.flush();
            if closing && self.shared.intake.is_empty() {
                break;
            }
            if !closing {
                std::thread::park_timeout(self.options.flush_every);
            }
        }
        self.close();
    }

    fn take(&mut self, stamped: Stamped) {
        // The final line queues behind the steps it sums up.
        let ordered = matches!(stamped.event, Event::Step(_) | Event::Final(_));
        if ordered && (stamped.event.is_waiting() || !self.held.is_empty()) {
            self.held.push_back((Instant::now(), stamped));
        } else {
            self.put(stamped);
        }
    }

    /// Writes held lines from the front, until one is met that may still wait.
    fn release(&mut self, now: Instant) {
        while let Some((since, stamped)) = self.held.front() {
            let waiting = stamped.event.is_waiting();
            let may_wait = self.held.len() <= self.options.loss_window
                && now.saturating_duration_since(*since) < self.options.loss_within;
            if waiting && may_wait {
                return;
            }
            if waiting {
                self.shared.watch.late_losses.fetch_add(1, Ordering::Relaxed);
            }
            if let Some((_, stamped)) = self.held.pop_front() {
                self.put(stamped);
            }
        }
    }

    fn put(&mut self, stamped: Stamped) {
        self.line.clear();
        let kind = stamped.event.kind();
        // Numbers, strings and maps with string keys: writing them to memory cannot fail, and
        // if it ever did, the event would count as lost like any other.
        let written = serde_json::to_writer(&mut self.line, &stamped).is_ok();
        self.line.push(b'\n');
        if !written || self.outbox.offer(&self.line, kind.lane()) == Offer::Refused {
            self.shared.intake.count_lost(kind);
        }
    }

    /// A line whenever the counts changed; slow writes alone are told at the end.
    fn report_health(&mut self) {
        let health = self.shared.health();
        let changed = health.lost != self.reported.lost
            || health.write_errors != self.reported.write_errors
            || health.late_losses != self.reported.late_losses;
        // While the disk fails the line would only queue up behind the others.
        if changed && self.outbox.waiting() < self.options.outbox / 2 {
            self.put_health(health);
        }
    }

    fn put_health(&mut self, health: Health) {
        self.put(Stamped { at: self.shared.clock.now(), event: Event::Health(health.clone()) });
        self.reported = health;
    }

    fn flush(&mut self) {
        if self.outbox.waiting() > 0 {
            let watch = &self.shared.watch;
            watch.note(watch.timed(&self.shared, || self.outbox.flush(Instant::now())));
        }
    }

    /// Gives the last losses a moment to arrive, then writes everything and syncs.
    fn close(mut self) {
        let until = Instant::now() + self.options.close_within / 2;
        while self.held.iter().any(|(_, step)| step.event.is_waiting()) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.options.loss_window = 0;
        self.release(Instant::now());
        self.put_health(self.shared.health());
        let watch = &self.shared.watch;
        let whole = watch.note(watch.timed(&self.shared, || self.outbox.close(Instant::now())));
        watch.end(if whole { Ending::Whole } else { Ending::Cut });
    }
}
