//! What one worker is doing, and how long it has done what.
//!
//! In: a call at each change of activity, and at each sign of progress. Out: a [`Reading`] of the
//! totals and a [`Pulse`] for the watchdog, at any time from any thread; the current activity
//! counts up to the moment of reading. The clock is read once per item, and twice more only where
//! a worker really waits. Finished pieces of activity go to the listener, where one is set.

use crate::intervals::Interval;
use crate::sync::{Mutex, lock};
use std::time::{Duration, Instant};
use tandem_units::Ticket;

/// What a worker does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activity {
    /// Working on an item.
    Busy,
    /// Waiting for input, or for something else that the work needs.
    Starved,
    /// Waiting for room at the output, or for its turn there.
    Blocked,
    /// Not started, not needed now, or at the end of its input.
    #[default]
    Parked,
}

/// A finished piece of activity.
pub(crate) struct ActivitySpan {
    pub(crate) activity: Activity,
    pub(crate) ticket: Option<Ticket>,
    /// The part of the stage, where it has parts.
    pub(crate) part: Option<&'static str>,
    pub(crate) begin: Instant,
    pub(crate) end: Instant,
}

pub(crate) type SpanListener = Box<dyn Fn(ActivitySpan) + Send + Sync>;

/// Totals of one worker, and what it does now.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    pub busy: Duration,
    /// Time without input.
    pub starved: Duration,
    /// Time without room at the output.
    pub blocked: Duration,
    /// Items worked on, skipped ones included.
    pub items: u64,
    pub skipped: u64,
    pub doing: Activity,
    /// The item it has or had last.
    pub ticket: Option<Ticket>,
}

/// What the watchdog compares from one tick to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pulse {
    pub(crate) doing: Activity,
    pub(crate) ticket: Option<Ticket>,
    /// Counts items begun, finished, passed on or named.
    pub(crate) moves: u64,
    /// Counts changes of activity.
    pub(crate) turns: u64,
}

pub(crate) struct Meter {
    state: Mutex<MeterReading>,
    listener: Option<SpanListener>,
}

struct MeterReading {
    busy: Duration,
    starved: Duration,
    blocked: Duration,
    items: u64,
    skipped: u64,
    doing: Activity,
    since: Instant,
    ticket: Option<Ticket>,
    part: Option<&'static str>,
    // Busy time on the present item, by part; `None` is the stage itself.
    intervals: Vec<(Option<&'static str>, Duration)>,
    // How much of the present piece of work is in `intervals` or was taken from it.
    lapped: Duration,
    moves: u64,
    turns: u64,
    // Texts that the stage gave; empty where it gave none.
    item: String,
    waits_for: String,
}

impl Meter {
    pub(crate) fn new(listener: Option<SpanListener>) -> Meter {
        let zero = Duration::ZERO;
        let state = MeterReading {
            busy: zero,
            starved: zero,
            blocked: zero,
            items: 0,
            skipped: 0,
            doing: Activity::Parked,
            since: Instant::now(),
            ticket: None,
            part: None,
            intervals: Vec::new(),
            lapped: zero,
            moves: 0,
            turns: 0,
            item: String::new(),
            waits_for: String::new(),
        };
        Meter { state: Mutex::new(state), listener }
    }

    /// Work on a new item begins.
    pub(crate) fn begin(&self, ticket: Option<Ticket>) {
        let mut state = lock(&self.state);
        let span = state.turn_to(Activity::Busy);
        (state.ticket, state.part) = (ticket, None);
        state.intervals.clear();
        state.item.clear();
        state.moves += 1;
        drop(state);
        self.report(span);
    }

    /// The same item enters another part of the stage, of which `done` is behind it.
    pub(crate) fn begin_part(&self, part: &'static str, done: Duration) {
        let mut state = lock(&self.state);
        let began = Instant::now().checked_sub(done).map_or(state.since, |at| at.max(state.since));
        let span = state.turn_at(began, Activity::Busy);
        state.part = Some(part);
        state.moves += 1;
        drop(state);
        self.report(span);
    }

    /// The activity changes. The current activity again changes nothing.
    pub(crate) fn enter(&self, activity: Activity) {
        let mut state = lock(&self.state);
        if state.doing != activity || !state.waits_for.is_empty() {
            let span = state.turn_to(activity);
            drop(state);
            self.report(span);
        }
    }

    /// The stage waits for something that is no queue. The same text again changes nothing.
    pub(crate) fn wait_for(&self, what: String) {
        let mut state = lock(&self.state);
        if state.doing != Activity::Starved || state.waits_for != what {
            let span = state.turn_to(Activity::Starved);
            state.waits_for = what;
            drop(state);
            self.report(span);
        }
    }

    /// The stage names what it works on, such as the file that it reads.
    pub(crate) fn name_item(&self, item: String) {
        let mut state = lock(&self.state);
        state.item = item;
        state.moves += 1;
    }

    /// Something was passed on.
    pub(crate) fn count_move(&self) {
        lock(&self.state).moves += 1;
    }

    /// Busy time on the present item since it began or was last asked for, by part.
    pub(crate) fn take_laps(&self, stage: &'static str) -> Vec<Interval> {
        let mut state = lock(&self.state);
        if state.doing == Activity::Busy {
            let so_far = state.since.elapsed();
            state.add_lap(so_far);
            state.lapped = so_far;
        }
        state.intervals.drain(..).map(|(part, time)| (part.unwrap_or(stage), time)).collect()
    }

    /// The item is finished.
    pub(crate) fn count(&self) {
        let mut state = lock(&self.state);
        state.items += 1;
        state.moves += 1;
    }

    pub(crate) fn count_skipped(&self) {
        lock(&self.state).skipped += 1;
    }

    pub(crate) fn read(&self) -> Reading {
        let state = lock(&self.state);
        let now = state.since.elapsed();
        let total = |activity, before| if state.doing == activity { before + now } else { before };
        Reading {
            busy: total(Activity::Busy, state.busy),
            starved: total(Activity::Starved, state.starved),
            blocked: total(Activity::Blocked, state.blocked),
            items: state.items,
            skipped: state.skipped,
            doing: state.doing,
            ticket: state.ticket,
        }
    }

    pub(crate) fn pulse(&self) -> Pulse {
        let state = lock(&self.state);
        let (doing, ticket) = (state.doing, state.ticket);
        Pulse { doing, ticket, moves: state.moves, turns: state.turns }
    }

    /// What the stage said that it works on.
    pub(crate) fn item(&self) -> Option<String> {
        Some(lock(&self.state).item.clone()).filter(|item| !item.is_empty())
    }

    /// What the stage said that it waits for.
    pub(crate) fn waits_for(&self) -> Option<String> {
        Some(lock(&self.state).waits_for.clone()).filter(|what| !what.is_empty())
    }

    fn report(&self, span: ActivitySpan) {
        if let (Some(listener), true) = (&self.listener, span.activity != Activity::Parked) {
            listener(span);
        }
    }
}

impl MeterReading {
    fn turn_to(&mut self, activity: Activity) -> ActivitySpan {
        self.turn_at(Instant::now(), activity)
    }

    fn turn_at(&mut self, end: Instant, activity: Activity) -> ActivitySpan {
        let begin = self.since;
        let took = end.saturating_duration_since(begin);
        match self.doing {
            Activity::Busy => {
                self.busy += took;
                self.add_lap(took);
            }
            Activity::Starved => self.starved += took,
            Activity::Blocked => self.blocked += took,
            Activity::Parked => {}
        }
        let span =
            ActivitySpan { activity: self.doing, ticket: self.ticket, part: self.part, begin, end };
        (self.doing, self.since) = (activity, end);
        // What is after `end` stays in the intervals.
        self.lapped = self.lapped.saturating_sub(took);
        self.turns += 1;
        self.waits_for.clear();
        span
    }

    /// Adds the present piece of work to the item's times, without what was added before.
    fn add_lap(&mut self, took: Duration) {
        let more = took.saturating_sub(self.lapped);
        match self.intervals.iter_mut().find(|(part, _)| *part == self.part) {
            Some((_, time)) => *time += more,
            None => self.intervals.push((self.part, more)),
        }
    }
}
