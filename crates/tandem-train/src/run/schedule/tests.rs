//! Step numbering under random skips, interruptions and settings; no model takes part.

use super::*;
use crate::train_settings::AlignmentSettings;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use tandem_units::{Epoch, Seed};

fn settings(grad_accum: usize, every: u64) -> TrainSettings {
    TrainSettings {
        grad_accum,
        validate_every: every,
        sample_every: 2 * every,
        checkpoint_every: every + 1,
        ..TrainSettings::default()
    }
}

fn schedule(grad_accum: usize, every: u64, last_step: u64) -> StepSchedule {
    StepSchedule::new(&settings(grad_accum, every), 0, Position::start(Seed(0)), last_step)
}

#[test]
fn a_step_whose_batches_were_all_skipped_still_counts() {
    let mut schedule = schedule(2, 10, 100);
    let ticket = |seq| Ticket { epoch: Epoch(0), seq };
    let steps: Vec<_> = (0..6).map(|seq| schedule.pass(ticket(seq))).collect();
    assert_eq!(steps, [None, Some(1), None, Some(2), None, Some(3)]);
    assert_eq!((schedule.next_batch(), schedule.resume_position().batch), (6, 6));
}

#[test]
fn the_end_of_the_data_completes_the_step_that_was_begun() {
    let mut schedule = schedule(4, 10, 100);
    for seq in 0..6 {
        schedule.pass(Ticket { epoch: Epoch(0), seq });
    }
    assert_eq!(schedule.end_of_data(), Some(2));
    assert_eq!((schedule.step(), schedule.next_batch()), (2, 8));
    assert_eq!(schedule.end_of_data(), None);
}

#[test]
fn an_interval_just_before_the_end_is_left_to_the_end() {
    let due = |every: u64, last_step: u64, step: u64| schedule(1, every, last_step).due(step);
    assert!(due(100, 1000, 900).validation);
    assert!(!due(100, 1000, 1000).validation, "the end validates by itself");
    assert!(!due(100, 1003, 1000).validation, "three steps before the end");
    assert!(due(100, 1010, 1000).validation, "ten steps before the end");
    assert!(due(2, 11, 10).validation, "short intervals are not affected");
    assert!(due(100, 1000, 1100).validation, "a run that continues past its plan");
}

/// A trainer and an aligner that only count: the aligner refuses to pass a batch before the trainer
/// has published the snapshot it needs.
struct Model {
    alignment: AlignmentSettings,
    grad_accum: u64,
    schedule: StepSchedule,
    published: BTreeSet<u64>,
    /// What was due, by step.
    due: BTreeMap<u64, Due>,
    /// The batches that changed the weights, by step.
    trained: BTreeMap<u64, Vec<u64>>,
    pending: Vec<u64>,
}

impl Model {
    fn new(alignment: AlignmentSettings, grad_accum: usize, every: u64, last_step: u64) -> Model {
        Model {
            alignment,
            grad_accum: grad_accum as u64,
            schedule: schedule(grad_accum, every, last_step),
            published: BTreeSet::from([0]),
            due: BTreeMap::new(),
            trained: BTreeMap::new(),
            pending: Vec::new(),
        }
    }

    /// Whether the aligner can pass this batch now.
    fn can_align(&self, seq: u64) -> bool {
        let step = seq / self.grad_accum;
        step < self.alignment.flat_start
            || self.published.contains(&self.alignment.snapshot_for(step))
    }

    fn receive(&mut self, ticket: Ticket, skipped: bool) {
        if !skipped {
            self.pending.push(ticket.seq);
        }
        if let Some(step) = self.schedule.pass(ticket) {
            self.trained.insert(step, std::mem::take(&mut self.pending));
            self.due.insert(step, self.schedule.due(step));
            if step.is_multiple_of(self.alignment.every) {
                self.published.insert(step);
            }
        }
    }

    /// Only what a checkpoint saves survives: step, position, and the snapshots still needed.
    fn resume(&mut self, every: u64, last_step: u64) {
        let (step, position) = (self.schedule.step(), self.schedule.resume_position());
        let settings = settings(self.grad_accum as usize, every);
        self.schedule = StepSchedule::new(&settings, step, position, last_step);
        let oldest = self.alignment.snapshot_for(step);
        self.published.retain(|&at| at >= oldest);
        self.pending.clear();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Batches are skipped at random and the run is interrupted at random steps. The aligner never
    /// waits for a snapshot that is never published, every step number comes once and in order, and
    /// the interrupted run equals the one that was left alone.
    #[test]
    fn skips_and_interruptions_change_no_number(
        grad_accum in 1_usize..5,
        every in 1_u64..8,
        align_every in 1_u64..8,
        lag in 0_u64..12,
        flat_start in 0_u64..6,
        skipped in prop::collection::btree_set(0_u64..120, 0..120),
        interrupts in prop::collection::btree_set(1_u64..120, 0..6),
        epoch_length in 1_u64..20,
    ) {
        let alignment = AlignmentSettings { every: align_every, lag, flat_start };
        let last_step = 120 / grad_accum as u64;
        let ticket = |seq: u64| Ticket { epoch: Epoch((seq / epoch_length) as u32), seq };
        let mut alone = Model::new(alignment, grad_accum, every, last_step);
        let mut interrupted = Model::new(alignment, grad_accum, every, last_step);
        for seq in 0..120 {
            prop_assert!(alone.can_align(seq), "batch {seq} waits for a snapshot for ever");
            alone.receive(ticket(seq), skipped.contains(&seq));
        }
        let mut seq = 0;
        let mut left = interrupts.clone();
        while seq < 120 {
            prop_assert!(interrupted.can_align(seq), "batch {seq} waits for ever after a resume");
            interrupted.receive(ticket(seq), skipped.contains(&seq));
            seq += 1;
            if left.remove(&seq) {
                interrupted.resume(every, last_step);
                seq = interrupted.schedule.next_batch();
                let position = interrupted.schedule.resume_position();
                let expected = if seq == 0 { 0 } else { (seq - 1) % epoch_length + 1 };
                prop_assert_eq!(position.batch, expected);
            }
        }
        prop_assert_eq!(&alone.due, &interrupted.due);
        prop_assert_eq!(&alone.trained, &interrupted.trained);
        let steps: Vec<u64> = alone.trained.keys().copied().collect();
        prop_assert_eq!(steps, (1..=120 / grad_accum as u64).collect::<Vec<_>>());
    }
}

#[test]
fn a_run_whose_patience_ends_at_the_last_step_is_done() {
    let settings =
        TrainSettings { max_steps: Some(6), patience: Some(2), ..TrainSettings::default() };
    let after = |step, since_best| AfterStep::of(&settings, step, since_best);
    assert_eq!(after(5, 1), AfterStep::Continue);
    assert_eq!(after(5, 2), AfterStep::NoProgress);
    assert_eq!(after(6, 2), AfterStep::Done, "the other ranks are done, too");
    let endless = TrainSettings { max_steps: None, patience: None, ..settings.clone() };
    assert_eq!(AfterStep::of(&endless, u64::MAX, u32::MAX), AfterStep::Continue);
}
