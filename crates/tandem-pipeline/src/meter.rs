//! What one worker is doing, and how long it has done what.
//!
//! In: a call at each change of activity. Out: a [`Reading`] at any time from any thread, in
//! which the activity under way counts up to the moment of reading. The clock is read once per
//! item, and twice more only where a worker really waits. The pieces themselves go to the
//! listener where one is set.

use crate::sync::{Mutex, lock};
use std::time::{Duration, Instant};
use tandem_units::Ticket;

/// What a worker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Working on an item.
    Busy,
    /// Waiting for input.
    Starved,
    /// Waiting for room at the output, or for its turn there.
    Blocked,
    /// Not wanted now: the stage runs with fewer workers than it has.
    Parked,
}

/// A finished piece of activity.
pub(crate) struct Piece {
    pub(crate) activity: Activity,
    pub(crate) ticket: Option<Ticket>,
    /// The part of the stage, where it has parts.
    pub(crate) part: Option<&'static str>,
    pub(crate) begin: Instant,
    pub(crate) end: Instant,
}

pub(crate) type PieceListener = Box<dyn Fn(Piece) + Send + Sync>;

/// Totals of one worker, and what it does now.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// Time at work.
    pub busy: Duration,
    /// Time without input.
    pub starved: Duration,
    /// Time without room at the output.
    pub blocked: Duration,
    /// Items worked on, skipped ones included.
    pub items: u64,
    /// Items left out.
    pub skipped: u64,
    /// What the worker does now.
    pub doing: Activity,
    /// For how long.
    pub for_so_long: Duration,
    /// The item it has or had last.
    pub ticket: Option<Ticket>,
}

pub(crate) struct Meter {
    sheet: Mutex<Sheet>,
    listener: Option<PieceListener>,
}

#[derive(Clone, Copy)]
struct Sheet {
    busy: Duration,
    starved: Duration,
    blocked: Duration,
    items: u64,
    skipped: u64,
    doing: Activity,
    since: Instant,
    ticket: Option<Ticket>,
    part: Option<&'static str>,
}

impl Meter {
    pub(crate) fn new(listener: Option<PieceListener>) -> Meter {
        let zero = Duration::ZERO;
        let sheet = Sheet {
            busy: zero,
            starved: zero,
            blocked: zero,
            items: 0,
            skipped: 0,
            doing: Activity::Parked,
            since: Instant::now(),
            ticket: None,
            part: None,
        };
        Meter { sheet: Mutex::new(sheet), listener }
    }

    /// A new item is being worked on.
    pub(crate) fn begin(&self, ticket: Option<Ticket>) {
        let mut sheet = lock(&self.sheet);
        let piece = sheet.turn_to(Activity::Busy);
        sheet.ticket = ticket;
        sheet.part = None;
        drop(sheet);
        self.tell(piece);
    }

    /// The same item goes into another part of the stage.
    pub(crate) fn turn_part(&self, part: &'static str) {
        let mut sheet = lock(&self.sheet);
        let piece = sheet.turn_to(Activity::Busy);
        sheet.part = Some(part);
        drop(sheet);
        self.tell(piece);
    }

    /// The activity changes; the same again changes nothing.
    pub(crate) fn enter(&self, activity: Activity) {
        let mut sheet = lock(&self.sheet);
        if sheet.doing != activity {
            let piece = sheet.turn_to(activity);
            drop(sheet);
            self.tell(piece);
        }
    }

    /// The item is done with.
    pub(crate) fn count(&self) {
        lock(&self.sheet).items += 1;
    }

    /// The item was left out.
    pub(crate) fn count_skipped(&self) {
        lock(&self.sheet).skipped += 1;
    }

    pub(crate) fn read(&self) -> Reading {
        let mut sheet = *lock(&self.sheet);
        let (doing, since, ticket) = (sheet.doing, sheet.since, sheet.ticket);
        let now = sheet.turn_to(doing).end;
        Reading {
            busy: sheet.busy,
            starved: sheet.starved,
            blocked: sheet.blocked,
            items: sheet.items,
            skipped: sheet.skipped,
            doing,
            for_so_long: now.saturating_duration_since(since),
            ticket,
        }
    }

    fn tell(&self, piece: Piece) {
        if let (Some(listener), true) = (&self.listener, piece.activity != Activity::Parked) {
            listener(piece);
        }
    }
}

impl Sheet {
    fn turn_to(&mut self, activity: Activity) -> Piece {
        let (begin, end) = (self.since, Instant::now());
        let took = end.saturating_duration_since(begin);
        match self.doing {
            Activity::Busy => self.busy += took,
            Activity::Starved => self.starved += took,
            Activity::Blocked => self.blocked += took,
            Activity::Parked => {}
        }
        let piece =
            Piece { activity: self.doing, ticket: self.ticket, part: self.part, begin, end };
        (self.doing, self.since) = (activity, end);
        piece
    }
}
