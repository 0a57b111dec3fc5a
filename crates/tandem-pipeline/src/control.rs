//! The handle through which other threads see and steer a run.
//!
//! In: wishes for more or fewer workers and slots. Out: what stages, queues and slots do now.
//! Never waits for a stage; order is unaffected by anything here.

use crate::link::Level;
use crate::meter::Reading;
use crate::run::{Run, Running};
use crate::slots::Slots;
use std::sync::Arc;
use std::time::Duration;

/// Sees and steers a run, from any thread.
#[derive(Clone)]
pub struct Control(pub(crate) Arc<Run>);

/// What a stage has done so far, summed over its workers.
#[derive(Clone, Copy, Debug)]
pub struct StageTotals {
    /// The stage.
    pub name: &'static str,
    /// Its workers now.
    pub workers: usize,
    /// The most it may have.
    pub up_to: usize,
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
    /// The queue behind it.
    pub queue: Level,
}

impl Control {
    /// All stages, the source first.
    pub fn stages(&self) -> Vec<StageTotals> {
        self.0.stages.iter().map(totals).collect()
    }

    /// What the consumer has done so far.
    pub fn consumer(&self) -> Reading {
        self.0.consumer_meter.read()
    }

    /// The batch slots.
    pub fn slots(&self) -> Slots {
        self.0.slots.clone()
    }

    /// Number of slots at the end of the route.
    pub fn depth(&self) -> usize {
        self.0.stages.last().map_or(0, |last| last.output.level().places)
    }

    /// Changes the number of slots. Fewer takes effect as slots become empty.
    pub fn set_depth(&self, depth: usize) {
        if let Some(last) = self.0.stages.last() {
            last.output.resize(depth);
        }
    }

    /// Changes a stage's number of workers, within one and its crew's limit, and gives the number
    /// it has now. A worker that is no longer wanted finishes its item first. The queue behind
    /// the stage gets places for all of them, except for the last, whose places are the depth.
    pub fn set_workers(&self, stage: &str, workers: usize) -> Option<usize> {
        let index = self.0.stages.iter().position(|running| running.name == stage)?;
        let found = &self.0.stages[index];
        let workers = workers.clamp(1, found.crew.up_to);
        if index + 1 < self.0.stages.len() && found.output.level().places <= workers {
            found.output.resize(workers + 1);
        }
        found.gate.set_active(workers);
        Some(workers)
    }

    /// Takes no more from the source; everything taken so far is still delivered, then the data
    /// ends.
    pub fn drain(&self) {
        self.0.stop.drain();
    }

    /// The present number of workers and slots, as flags to type next time.
    pub fn flags(&self) -> Vec<String> {
        let crews = self.0.stages.iter().filter_map(|stage| {
            stage.crew.flag.map(|flag| format!("{flag} {}", stage.gate.active()))
        });
        crews.chain([format!("--pipeline-depth {}", self.depth())]).collect()
    }

    /// Time since the run was started.
    pub fn running_for(&self) -> Duration {
        self.0.started.elapsed()
    }
}

fn totals(stage: &Running) -> StageTotals {
    let mut totals = StageTotals {
        name: stage.name,
        workers: stage.gate.active(),
        up_to: stage.crew.up_to,
        busy: Duration::ZERO,
        starved: Duration::ZERO,
        blocked: Duration::ZERO,
        items: 0,
        skipped: 0,
        queue: stage.output.level(),
    };
    for reading in stage.meters.iter().map(|meter| meter.read()) {
        totals.busy += reading.busy;
        totals.starved += reading.starved;
        totals.blocked += reading.blocked;
        totals.items += reading.items;
        totals.skipped += reading.skipped;
    }
    totals
}
