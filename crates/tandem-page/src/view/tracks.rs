//! Stages, slots and devices over time.
//!
//! In: intervals, changes of state, device samples. Out: tracks of bounded length: neighbouring
//! intervals are joined when there are too many, slots store the newest spans and the total
//! time in each state.

use crate::view::series::Series;
use std::collections::VecDeque;
use tandem_telemetry::event::{
    DeviceRole, DeviceSample, Name, SlotChange, SlotState, StageInterval,
};
use tandem_units::Bytes;

/// How a stage spent its time.
#[derive(Clone, Debug, PartialEq)]
pub struct StageTrack {
    pub stage: Name,
    pub columns: Vec<StageColumn>,
    // Seconds a column may cover before the next one begins; doubles when there are too many.
    width: f64,
}

/// How a stage spent an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StageColumn {
    /// From, in seconds.
    pub begin: f64,
    /// To, in seconds.
    pub end: f64,
    /// Seconds all its workers had.
    pub capacity: f64,
    /// Seconds busy, starved, blocked.
    pub spent: [f64; 3],
}

impl StageTrack {
    /// The most intervals that are stored.
    pub const LIMIT: usize = 160;

    /// A stage without intervals.
    pub fn new(stage: Name) -> StageTrack {
        StageTrack { stage, columns: Vec::new(), width: 0.0 }
    }

    /// Adds what it did up to `at`.
    pub fn add(&mut self, at: f64, interval: &StageInterval) {
        let length = interval.interval.seconds().0;
        let column = StageColumn {
            begin: (at - length).max(0.0),
            end: at,
            capacity: length * f64::from(interval.workers.max(1)),
            spent: [interval.busy, interval.starved, interval.blocked].map(|time| time.seconds().0),
        };
        match self.columns.last_mut() {
            Some(last) if at - last.begin <= self.width => *last = join(&[*last, column]),
            _ => self.columns.push(column),
        }
        if self.columns.len() > StageTrack::LIMIT {
            self.columns = self.columns.chunks(2).map(join).collect();
            let widest = self.columns.iter().map(|column| column.end - column.begin);
            self.width = widest.fold(0.0, f64::max) * 1.01;
        }
    }
}

impl StageColumn {
    /// Shares of the time: busy, starved, blocked.
    pub fn shares(&self) -> [f64; 3] {
        let whole = self.capacity.max(self.spent.iter().sum()).max(f64::MIN_POSITIVE);
        self.spent.map(|time| time / whole)
    }
}

fn join(columns: &[StageColumn]) -> StageColumn {
    let mut joined = columns[0];
    for column in &columns[1..] {
        joined.end = column.end;
        joined.capacity += column.capacity;
        (0..3).for_each(|part| joined.spent[part] += column.spent[part]);
    }
    joined
}

/// All batch slots.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlotTracks {
    /// Each slot, by its number.
    pub slots: Vec<SlotTrack>,
    /// The newest spans that are over: slot, begin, end, state.
    pub newest: VecDeque<(usize, f64, f64, SlotState)>,
    /// Time of the newest event of any kind.
    pub now: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SlotTrack {
    /// Its state and since when; none before its first batch.
    pub present: Option<(SlotState, f64)>,
    /// Seconds in each state, the present one not counted.
    pub spent: [f64; 3],
}

impl SlotTracks {
    /// The most spans that are stored.
    pub const LIMIT: usize = 360;
    /// Slots with higher numbers are damage.
    const MOST: usize = 256;

    /// A slot changed its state.
    pub fn add(&mut self, at: f64, change: &SlotChange) {
        let number = change.slot as usize;
        if number >= SlotTracks::MOST {
            return;
        }
        if number >= self.slots.len() {
            self.slots.resize(number + 1, SlotTrack::default());
        }
        let slot = &mut self.slots[number];
        if let Some((state, since)) = slot.present.replace((change.state, at)) {
            slot.spent[state as usize] += (at - since).max(0.0);
            self.newest.push_back((number, since, at, state));
        }
        if self.newest.len() > SlotTracks::LIMIT {
            self.newest.pop_front();
        }
    }

    /// Time has passed.
    pub fn advance(&mut self, at: f64) {
        self.now = self.now.max(at);
    }

    /// Shares of the time a slot was PREPARING, READY, TRAINING, up to now.
    pub fn shares(&self, number: usize) -> Option<[f64; 3]> {
        let slot = self.slots.get(number)?;
        let mut spent = slot.spent;
        if let Some((state, since)) = slot.present {
            spent[state as usize] += (self.now - since).max(0.0);
        }
        let whole: f64 = spent.iter().sum();
        (whole > 0.0).then(|| spent.map(|time| time / whole))
    }
}

/// A device over time.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceTrack {
    pub device: Name,
    /// What it is used for.
    pub role: DeviceRole,
    /// Share of time it was busy.
    pub utilisation: Series,
    /// Bytes in use.
    pub memory: Series,
    pub memory_total: Option<Bytes>,
}

impl DeviceTrack {
    /// A device without samples.
    pub fn new(device: Name, role: DeviceRole) -> DeviceTrack {
        let (utilisation, memory) = (Series::default(), Series::default());
        DeviceTrack { device, role, utilisation, memory, memory_total: None }
    }

    /// Adds a sample.
    pub fn add(&mut self, at: f64, sample: &DeviceSample) {
        sample.utilisation.into_iter().for_each(|share| self.utilisation.add(at, share.into()));
        sample.memory_used.into_iter().for_each(|used| self.memory.add(at, used.0 as f64));
        self.memory_total = sample.memory_total.or(self.memory_total);
    }
}
