//! The thread that writes the record.
//!
//! In: batches from [`crate::intake`]. Out: lines to [`crate::record_file`]. Sleeps most of the
//! time; wakes at intervals, or when a queue is half full. A step whose losses are pending is
//! delayed, within a window and a time limit, while all other events pass; steps keep their
//! order. This thread never makes a sender wait.

use crate::clock::Nanos;
use crate::event::{Event, Health, Kind, RunHeader, Stamped};
use crate::perfetto::Trace;
use crate::periodic::Window;
use crate::record::Shared;
use crate::record_file::{Offer, Outbox, RecordFile};
use crate::record_options::{RecordOptions, Spans, Update};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

pub(crate) struct Writer {
    shared: Arc<Shared>,
    outbox: Outbox,
    options: RecordOptions,
    // Steps and the final line in order, each with the moment it arrived here.
    delayed: VecDeque<(Instant, Stamped)>,
    reported: Health,
    trace: Option<Trace>,
    window: Window,
    line: Vec<u8>,
}

impl Writer {
    pub(crate) fn new(
        shared: Arc<Shared>,
        file: Box<dyn RecordFile>,
        header: RunHeader,
        options: RecordOptions,
    ) -> Writer {
        let mut writer = Writer {
            shared,
            outbox: Outbox::new(file, options.outbox, options.retry_every),
            trace: options.trace.as_ref().map(|trace| Trace::new(trace.limit)),
            options,
            delayed: VecDeque::new(),
            reported: Health::default(),
            window: Window::default(),
            line: Vec::new(),
        };
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
            self.shared.watch.count_round();
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
        if ordered && (stamped.event.is_waiting() || !self.delayed.is_empty()) {
            self.delayed.push_back((Instant::now(), stamped));
        } else {
            self.put(stamped);
        }
    }

    /// Writes delayed events from the front, up to the first that may still wait.
    fn release(&mut self, now: Instant) {
        while let Some((since, stamped)) = self.delayed.front() {
            let waiting = stamped.event.is_waiting();
            let may_wait = self.delayed.len() <= self.options.loss_window
                && now.saturating_duration_since(*since) < self.options.loss_within;
            if waiting && may_wait {
                return;
            }
            if waiting {
                self.shared.watch.count_late_loss();
            }
            if let Some((_, stamped)) = self.delayed.pop_front() {
                self.put(stamped);
            }
        }
    }

    /// An event in its final form: to the file, the sums, the trace and the listener.
    fn put(&mut self, stamped: Stamped) {
        self.write_line(&stamped);
        self.shared.watch.summary().add(&stamped);
        if let Some(trace) = &mut self.trace {
            trace.add(&stamped);
        }
        self.notify(Update::Event(&stamped));
        let whole = self.shared.watch.summary();
        let line = self.window.add(&stamped, &whole, &self.options.rules);
        drop(whole);
        if let Some(line) = line {
            self.notify(Update::Periodic(&line));
            if let Some(warning) = line.warning {
                self.put(Stamped { at: stamped.at, event: warning.into() });
            }
        }
    }

    fn write_line(&mut self, stamped: &Stamped) {
        let kind = stamped.event.kind();
        if kind == Kind::Span && self.options.spans != Spans::Recorded {
            return;
        }
        self.line.clear();
        // Numbers, strings and maps with string keys: writing them to memory cannot fail, and
        // if it ever did, the event would count as lost like any other.
        let written = serde_json::to_writer(&mut self.line, stamped).is_ok();
        self.line.push(b'\n');
        if !written || self.outbox.offer(&self.line, kind.lane()) == Offer::Refused {
            self.shared.intake.count_lost(kind);
        }
    }

    fn notify(&mut self, update: Update<'_>) {
        if let Some(listener) = &mut self.options.listener {
            listener.call(update);
        }
    }

    /// Writes a line whenever the counts changed; slow writes alone are reported at the end.
    fn report_health(&mut self) {
        let health = self.shared.health();
        let changed = health.lost != self.reported.lost
            || health.write_errors != self.reported.write_errors
            || health.late_losses != self.reported.late_losses;
        // While the disk fails, the line would only wait with the others.
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
            let (watch, clock) = (&self.shared.watch, self.shared.clock);
            watch.note(watch.timed(clock, || self.outbox.flush(Instant::now())));
        }
    }

    /// Waits briefly for the last losses, then writes everything and syncs.
    fn close(mut self) {
        let until = Instant::now() + self.options.close_within / 2;
        while self.delayed.iter().any(|(_, step)| step.event.is_waiting()) && Instant::now() < until
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.options.loss_window = 0;
        self.release(Instant::now());
        self.put_health(self.shared.health());
        let (watch, clock) = (&self.shared.watch, self.shared.clock);
        let ending = watch.note(watch.timed(clock, || self.outbox.close(Instant::now())));
        watch.record_closed(ending);
        if let (Some(trace), Some(options)) = (self.trace.take(), &self.options.trace) {
            watch.set_trace(trace.write(&options.path));
        }
        watch.all_done();
    }
}
