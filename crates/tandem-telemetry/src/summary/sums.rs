//! What a summary counts of each kind of event.
//!
//! In: events of one kind. Out: sums of a size that does not grow with the length of the run.

use super::Summary;
use crate::clock::Nanos;
use crate::event::{DeviceSample, Name, QueueLevel, Skipped, StageInterval, Step, WarmUp};
use crate::stats::Stats;
use crate::step_sample::{StepSample, StepTime};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use tandem_units::{Bytes, Ticket};

/// Shapes that were compiled before step 1. Reports include it as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WarmUpSums {
    pub shapes: u64,
    pub took: Nanos,
}

impl WarmUpSums {
    pub(super) fn add(&mut self, warm_up: &WarmUp) {
        self.shapes += 1;
        self.took += warm_up.took;
    }
}

/// All steps in sums.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepSums {
    /// Step times in seconds, the first step included.
    pub all: Stats,
    /// Step times in seconds without the first step, which compiles kernels.
    pub steady: Stats,
    pub first: Option<Nanos>,
    /// Sum of all step times.
    pub took: Nanos,
    /// Sum of all waits.
    pub waited: Nanos,
    /// Waits without that of the first step.
    pub steady_waited: Nanos,
    pub items: u64,
    /// Real frames.
    pub frames: u64,
    /// Number of the last step.
    pub last: u64,
    /// Padded shapes seen, at most [`StepSums::SHAPES`].
    pub shapes: BTreeSet<[u32; 3]>,
    /// Single steps without the first, thinned: what variation is judged by.
    pub sample: StepSample,
    /// Losses of the last step that had any.
    pub losses: Vec<(Name, Option<f32>)>,
}

/// A stage in sums.
#[derive(Clone, Debug, PartialEq)]
pub struct StageSums {
    pub stage: Name,
    /// Workers in its last interval.
    pub workers: u32,
    /// Time all its workers had.
    pub capacity: Nanos,
    /// Time they worked.
    pub busy: Nanos,
    /// Time they waited for input.
    pub starved: Nanos,
    /// Time they waited for room.
    pub blocked: Nanos,
    /// Work divided by the workers there were: how long the stage alone would have taken.
    pub alone: f64,
    pub items: u64,
}

/// A queue in sums.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueSums {
    /// Levels seen.
    pub bytes: Stats,
    pub now: Bytes,
    /// Items at the last level.
    pub items: u64,
    pub limit: Bytes,
    /// Most items it may hold, where that is limited.
    pub limit_items: Option<u64>,
}

/// A device in sums.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceSums {
    /// Share of time it was busy, 0 to 1.
    pub utilisation: Stats,
    /// Share of active multiprocessors, 0 to 1.
    pub activity: Stats,
    /// Memory in use, bytes.
    pub memory: Stats,
    pub memory_total: Option<Bytes>,
    /// Degrees Celsius.
    pub temperature: Stats,
    /// Watts.
    pub power: Stats,
    pub samples: u64,
    /// Utilisation in the last sample that has it.
    pub last_utilisation: Option<f32>,
    /// Activity in the last sample that has it.
    pub last_activity: Option<f32>,
    /// Memory in use in the last sample that has it.
    pub last_memory: Option<Bytes>,
    /// Temperature in the last sample that has it.
    pub last_temperature: Option<f32>,
    /// Power in the last sample that has it.
    pub last_power: Option<f32>,
}

/// Items left out, in sums.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SkipSums {
    pub count: u64,
    /// How many at each stage.
    pub by_stage: BTreeMap<Name, u64>,
    /// The first ones, at most [`Summary::KEEP`].
    pub first: Vec<Skipped>,
    /// Each skipped row once, at most [`SkipSums::ROWS`].
    pub rows: Vec<SkippedRow>,
    /// Skips of rows that are not in `rows`.
    pub others: u64,
}

/// A row that was skipped, once or in several epochs. Reports include it as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SkippedRow {
    /// Its name in the corpus.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub id: Option<String>,
    /// The batch, where the row has no name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ticket: Option<Ticket>,
    /// The stage that skipped it.
    pub stage: Name,
    pub why: String,
    /// How often it was skipped.
    pub times: u64,
}

/// Checkpoints in sums.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CheckpointSums {
    pub count: u64,
    /// Seconds each took.
    pub took: Stats,
    /// The last one's step.
    pub last_step: Option<u64>,
}

impl StepSums {
    /// Most distinct shapes that are counted.
    pub const SHAPES: usize = 4096;

    pub(super) fn add(&mut self, step: &Step) {
        let seconds = step.took.seconds().0;
        self.all.add(seconds);
        self.sample.add(StepTime::from(step));
        if self.first.is_some() {
            self.steady.add(seconds);
            self.steady_waited += step.waited;
        } else {
            self.first = Some(step.took);
        }
        self.took += step.took;
        self.waited += step.waited;
        self.items = self.items.saturating_add(step.items.into());
        self.frames = self.frames.saturating_add(step.frames);
        self.last = step.step;
        if self.shapes.len() < Self::SHAPES {
            self.shapes.extend(step.shape);
        }
        if !step.losses.is_empty() {
            self.losses =
                step.losses.iter().map(|loss| (loss.name.clone(), loss.value.value())).collect();
        }
    }
}

impl StageSums {
    pub(super) fn new(stage: Name) -> StageSums {
        StageSums {
            stage,
            workers: 0,
            capacity: Nanos(0),
            busy: Nanos(0),
            starved: Nanos(0),
            blocked: Nanos(0),
            alone: 0.0,
            items: 0,
        }
    }

    pub(super) fn add(&mut self, interval: &StageInterval) {
        let workers = interval.workers.max(1);
        self.workers = interval.workers;
        self.capacity += Nanos(interval.interval.0.saturating_mul(workers.into()));
        self.busy += interval.busy;
        self.starved += interval.starved;
        self.blocked += interval.blocked;
        self.alone += interval.busy.seconds().0 / f64::from(workers);
        self.items = self.items.saturating_add(interval.items);
    }
}

impl QueueSums {
    pub(super) fn add(&mut self, level: &QueueLevel) {
        self.bytes.add(level.bytes.0 as f64);
        self.now = level.bytes;
        self.items = level.items;
        self.limit = level.limit;
        self.limit_items = level.limit_items.or(self.limit_items);
    }
}

impl DeviceSums {
    pub(super) fn add(&mut self, sample: &DeviceSample) {
        self.samples += 1;
        sample.utilisation.into_iter().for_each(|share| self.utilisation.add(share.into()));
        sample.activity.into_iter().for_each(|share| self.activity.add(share.into()));
        sample.memory_used.into_iter().for_each(|used| self.memory.add(used.0 as f64));
        sample.temperature.into_iter().for_each(|degrees| self.temperature.add(degrees.into()));
        sample.power.into_iter().for_each(|watts| self.power.add(watts.into()));
        self.last_utilisation = sample.utilisation.or(self.last_utilisation);
        self.last_activity = sample.activity.or(self.last_activity);
        self.last_temperature = sample.temperature.or(self.last_temperature);
        self.last_power = sample.power.or(self.last_power);
        self.last_memory = sample.memory_used.or(self.last_memory);
        self.memory_total = sample.memory_total.or(self.memory_total);
    }
}

impl SkipSums {
    /// How many rows are listed.
    pub const ROWS: usize = 20;

    /// Adds those of another rank, which goes through other batches.
    pub(super) fn merge(&mut self, other: &SkipSums) {
        self.count += other.count;
        self.others += other.others;
        for (stage, count) in &other.by_stage {
            *self.by_stage.entry(stage.clone()).or_default() += count;
        }
        other.first.iter().for_each(|skipped| push_limited(&mut self.first, skipped));
        for row in &other.rows {
            self.add_row(row);
        }
    }

    /// The same row fails again in the next epoch: it is one row, not two.
    pub(super) fn add_row(&mut self, row: &SkippedRow) {
        let known = self.rows.iter().position(|known| {
            (&known.id, known.ticket, &known.stage) == (&row.id, row.ticket, &row.stage)
        });
        match known {
            Some(place) => self.rows[place].times += row.times,
            None if self.rows.len() < Self::ROWS => self.rows.push(row.clone()),
            None => self.others += row.times,
        }
    }

    pub(super) fn add(&mut self, skipped: &Skipped) {
        self.count += 1;
        *self.by_stage.entry(skipped.stage.clone()).or_default() += 1;
        push_limited(&mut self.first, skipped);
        self.add_row(&SkippedRow {
            id: skipped.id.clone(),
            ticket: skipped.ticket.filter(|_| skipped.id.is_none()),
            stage: skipped.stage.clone(),
            why: skipped.why.clone(),
            times: 1,
        });
    }
}

impl SkippedRow {
    /// The row's id, or the batch where it has none.
    pub fn name(&self) -> String {
        let batch = self.ticket.map(|ticket| format!("#{}", ticket.seq));
        self.id.clone().or(batch).unwrap_or_else(|| "unnamed".into())
    }
}

pub(super) fn push_limited<T: Clone>(examples: &mut Vec<T>, one: &T) {
    if examples.len() < Summary::KEEP {
        examples.push(one.clone());
    }
}
