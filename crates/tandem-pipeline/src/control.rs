//! The handle through which other threads observe and control a run.
//!
//! In: new numbers of workers and slots. Out: the current state of stages, queues and slots. Never
//! waits for a stage, and never changes the order of items. Next: [`crate::monitor`].

use crate::meter::Reading;
use crate::queue::Level;
use crate::run::{PipelineRun, RunningStage};
use crate::slots::Slots;
use std::sync::Arc;
use std::time::Duration;

/// Observes and controls a run, from any thread.
#[derive(Clone)]
pub struct Control(pub(crate) Arc<PipelineRun>);

/// Totals of a stage, summed over its workers.
#[derive(Clone, Copy, Debug)]
pub struct StageTotals {
    pub name: &'static str,
    pub workers: usize,
    pub up_to: usize,
    pub busy: Duration,
    /// Time without input.
    pub starved: Duration,
    /// Time without room at the output.
    pub blocked: Duration,
    /// Items worked on, skipped ones included.
    pub items: u64,
    pub skipped: u64,
    /// Its output queue.
    pub queue: Level,
}

impl Control {
    /// All stages, the source first.
    pub fn stages(&self) -> Vec<StageTotals> {
        self.0.stages.iter().map(totals).collect()
    }

    /// Totals of the consumer.
    pub fn consumer(&self) -> Reading {
        self.0.consumer_meter.read()
    }

    pub fn slots(&self) -> Slots {
        self.0.slots.clone()
    }

    /// Number of slots at the end of the route.
    pub fn depth(&self) -> usize {
        self.0.stages.last().map_or(0, |last| last.output.level().slots)
    }

    /// Changes the number of slots. A smaller number takes effect as slots become empty.
    pub fn set_depth(&self, depth: usize) {
        if let Some(last) = self.0.stages.last() {
            last.output.resize(depth);
        }
    }

    /// Changes a stage's number of workers, between one and its crew's limit, and returns the new
    /// number. A worker that is no longer needed finishes its item first. The stage's output queue
    /// gets slots for all workers, except at the end of the route, where the slots are the depth.
    pub fn set_workers(&self, stage: &str, workers: usize) -> Option<usize> {
        let index = self.0.stages.iter().position(|running| running.name == stage)?;
        let found = &self.0.stages[index];
        let workers = workers.clamp(1, found.crew.up_to);
        if index + 1 < self.0.stages.len() && found.output.level().slots <= workers {
            found.output.resize(workers + 1);
        }
        found.permits.set_active(workers);
        Some(workers)
    }

    /// Takes no more from the source. All items taken so far are still delivered, then the data
    /// ends.
    pub fn drain(&self) {
        self.0.stop.drain();
    }

    /// The current numbers of workers and slots, as command-line flags.
    pub fn flags(&self) -> Vec<String> {
        let crews = self.0.stages.iter().filter_map(|stage| {
            stage.crew.flag.map(|flag| format!("{flag} {}", stage.permits.active()))
        });
        crews.chain([format!("--pipeline-depth {}", self.depth())]).collect()
    }
}

fn totals(stage: &RunningStage) -> StageTotals {
    let mut totals = StageTotals {
        name: stage.name,
        workers: stage.permits.active(),
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
