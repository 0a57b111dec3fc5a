//! Step numbering: which batch belongs to which step, and what is due after a step.
//!
//! In: the batches of the plan in order, trained or skipped. Out: the number of each completed step
//! and what is due there. Pure: no model, no thread, no clock.
//!
//! The rule: batch `n` of the run belongs to step `n / (grad_accum * ranks)`, whether it was trained or
//! skipped, and by which rank. A step whose batches were all skipped still exists. It changes no weights, and everything
//! that is due at its number happens. So learning rate, aligner snapshots, validation, samples and
//! checkpoints depend on numbers alone, and a run is a pure function of seed, corpus and the set of
//! skipped rows.

use crate::train_settings::TrainSettings;
use tandem_data::batch::Position;
use tandem_units::Ticket;

/// Counts batches and steps of a run.
#[derive(Clone, Debug)]
pub struct StepSchedule {
    /// Batches of a step, on all ranks together.
    batches_per_step: u64,
    next_batch: u64,
    position: Position,
    /// Where the plan continues after the last completed step.
    resume_position: Position,
    step: u64,
    last_step: u64,
    validate_every: u64,
    sample_every: u64,
    checkpoint_every: u64,
}

/// What is due after a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due {
    pub validation: bool,
    pub samples: bool,
    pub checkpoint: bool,
}

impl Due {
    /// Why a checkpoint is saved after this step.
    pub(crate) fn as_reason(&self) -> &'static str {
        if self.checkpoint { "interval" } else { "validation" }
    }
}

impl StepSchedule {
    /// Continues after `step` steps at this position of the plan. `last_step` is the number of the
    /// last step that these settings allow.
    pub fn new(
        settings: &TrainSettings,
        step: u64,
        position: Position,
        last_step: u64,
    ) -> StepSchedule {
        let batches_per_step = settings.grad_accum.max(1) as u64;
        StepSchedule {
            batches_per_step,
            next_batch: step * batches_per_step,
            position,
            resume_position: position,
            step,
            last_step,
            validate_every: settings.validate_every,
            sample_every: settings.sample_every,
            checkpoint_every: settings.checkpoint_every,
        }
    }

    /// The same for several ranks, each of which accumulates `grad_accum` batches.
    pub fn for_ranks(self, ranks: usize) -> StepSchedule {
        let batches_per_step = self.batches_per_step * ranks.max(1) as u64;
        StepSchedule { batches_per_step, next_batch: self.step * batches_per_step, ..self }
    }

    /// Completed steps.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// The number of the next batch, over the whole run.
    pub fn next_batch(&self) -> u64 {
        self.next_batch
    }

    /// Where the plan continues after the last completed step: what a checkpoint saves. Batches of a
    /// step that was begun are trained again.
    pub fn resume_position(&self) -> Position {
        self.resume_position
    }

    /// Notes the next batch of the plan, trained or skipped. Returns the number of the step that it
    /// completes, if any.
    pub fn pass(&mut self, ticket: Ticket) -> Option<u64> {
        debug_assert_eq!(ticket.seq, self.next_batch);
        if ticket.epoch != self.position.epoch {
            self.position = Position { epoch: ticket.epoch, batch: 0, ..self.position };
        }
        self.position.batch += 1;
        self.next_batch += 1;
        self.next_batch.is_multiple_of(self.batches_per_step).then(|| self.complete())
    }

    /// The data ends. Returns the number of the step that was begun, if any: it is complete now,
    /// with fewer batches. Numbers of the missing batches are never used, so that a run which
    /// continues with more epochs begins the next step.
    pub fn end_of_data(&mut self) -> Option<u64> {
        if self.next_batch.is_multiple_of(self.batches_per_step) {
            return None;
        }
        self.next_batch = self.next_batch.next_multiple_of(self.batches_per_step);
        Some(self.complete())
    }

    fn complete(&mut self) -> u64 {
        self.resume_position = self.position;
        self.step += 1;
        self.step
    }

    /// What is due after this step. The last step has nothing due here: the end of a run validates
    /// and saves by itself. An interval that ends in the last tenth of itself before the end is left
    /// to the end too, so that a run does not validate and save twice within a few steps.
    pub fn due(&self, step: u64) -> Due {
        let is_due = |every: u64| {
            let left = self.last_step.saturating_sub(step);
            let close_to_end = left < every.div_ceil(10) && step <= self.last_step;
            every > 0 && step.is_multiple_of(every) && !close_to_end
        };
        let validation = is_due(self.validate_every);
        let samples = is_due(self.sample_every);
        let checkpoint = is_due(self.checkpoint_every);
        Due { validation, samples, checkpoint }
    }
}

/// What the number of steps and `--patience` say after a step. The last step comes first: after it a run is done,
/// whatever its validations say, and several ranks agree on nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterStep {
    Continue,
    Done,
    /// Validation stopped getting better.
    NoProgress,
}

impl AfterStep {
    pub fn of(settings: &TrainSettings, step: u64, since_best: u32) -> AfterStep {
        if settings.max_steps.is_some_and(|most| step >= most) {
            return AfterStep::Done;
        }
        match settings.patience {
            Some(patience) if since_best >= patience => AfterStep::NoProgress,
            _ => AfterStep::Continue,
        }
    }
}

#[cfg(test)]
mod tests;
