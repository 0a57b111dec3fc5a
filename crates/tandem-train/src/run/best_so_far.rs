//! The best validation so far, and the validations since then.
//!
//! In: `best.json` at the start of a run, the losses of validations afterwards. Out: whether a loss is the best, and how
//! many validations were worse since. The file is the only source: nothing here can be made from anything else, and a
//! loss counts when the file has it. So a run that was killed and resumed knows what the killed one stored. Pure, apart
//! from the start. Next: [`crate::run::checkpoint_writer`].

use crate::TrainError;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use tandem_model::checkpoint::{Best, Checkpoints};

/// What `best.json` says, as far as it holds for this run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BestSoFar {
    best: Option<ScoredStep>,
    /// Steps that were validated after it and were not better.
    worse: BTreeSet<u64>,
}

/// What scores are measured on, and by whom. Scores of different kinds cannot be compared.
#[derive(Clone, Copy, Debug)]
pub struct ScoredBy<'a> {
    pub rows: &'a str,
    /// By the character errors that a judge hears, until it fails; otherwise by the loss.
    pub judged: bool,
}

impl ScoredBy<'_> {
    pub fn by_loss(rows: &str) -> ScoredBy<'_> {
        ScoredBy { rows, judged: false }
    }

    /// As `best.json` has it.
    pub(crate) fn name(&self) -> String {
        let by = if self.judged { ", heard by a judge" } else { "" };
        format!("{}{by}", self.rows)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct ScoredStep {
    step: u64,
    loss: f64,
}

/// The same in two numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Standing {
    /// The lowest validation loss whose checkpoint is marked.
    pub best: Option<f64>,
    /// Validations since then.
    pub since_best: u32,
}

/// The standing as other threads see it without waiting. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct SharedStanding(Arc<Mutex<Standing>>);

impl SharedStanding {
    pub fn get(&self) -> Standing {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, standing: Standing) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = standing;
    }
}

/// What is to be done with a validated step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Better,
    Worse,
    /// Nothing to compare it with, or the best step itself.
    NotCounted,
}

impl BestSoFar {
    /// What holds for a run that starts after `step` steps and validates on `rows`. Where something does not, a sentence
    /// says so.
    pub(crate) fn read(
        checkpoints: &Checkpoints,
        step: u64,
        rows: &str,
    ) -> Result<(BestSoFar, Option<String>), TrainError> {
        let Some(mark) = checkpoints.best()? else { return Ok((BestSoFar::default(), None)) };
        let invalid = match () {
            () if !mark.path.is_dir() => "the best checkpoint is gone".to_string(),
            () if mark.step > step => {
                format!("the best checkpoint is that of step {}, after this one", mark.step)
            }
            () if mark.rows.as_ref().is_some_and(|before| before != rows) => {
                "the validation rows changed, or who scores them, since the best checkpoint"
                    .to_string()
            }
            () => return Ok((BestSoFar::of_mark(mark, step), None)),
        };
        let note = format!("{invalid}: the next validation sets a new best one");
        Ok((BestSoFar::default(), Some(note)))
    }

    /// Validations of later steps will be repeated, and count then.
    fn of_mark(mark: Best, step: u64) -> BestSoFar {
        let best = Some(ScoredStep { step: mark.step, loss: mark.score });
        let worse = mark.worse.into_iter().filter(|worse| *worse <= step).collect();
        BestSoFar { best, worse }
    }

    /// Removes validations from the file that will be repeated: later, nobody could tell them from those that happened.
    pub(crate) fn forget_later(&self, checkpoints: &mut Checkpoints) -> Result<(), TrainError> {
        let mark = checkpoints.best()?.filter(|_| self.best.is_some());
        if mark.is_some_and(|mark| mark.worse != self.worse) {
            checkpoints.set_worse(self.worse.clone())?;
        }
        Ok(())
    }

    pub(crate) fn verdict(&self, step: u64, loss: f64) -> Verdict {
        match self.best {
            None if loss.is_finite() => Verdict::Better,
            None => Verdict::NotCounted,
            Some(best) if best.step == step => Verdict::NotCounted,
            Some(best) if loss < best.loss => Verdict::Better,
            Some(_) => Verdict::Worse,
        }
    }

    /// The file names this step now.
    pub(crate) fn marked(&mut self, step: u64, loss: f64) {
        *self = BestSoFar { best: Some(ScoredStep { step, loss }), worse: BTreeSet::new() };
    }

    /// The step that the file names.
    pub(crate) fn step(&self) -> Option<u64> {
        self.best.map(|best| best.step)
    }

    /// The steps that were not better.
    pub(crate) fn worse(&self) -> &BTreeSet<u64> {
        &self.worse
    }

    /// The worse steps with this one.
    pub(crate) fn worse_with(&self, step: u64) -> BTreeSet<u64> {
        self.worse.iter().copied().chain([step]).collect()
    }

    /// The file has these worse steps now.
    pub(crate) fn stored_worse(&mut self, steps: BTreeSet<u64>) {
        self.worse = steps;
    }

    pub fn standing(&self) -> Standing {
        let since_best = u32::try_from(self.worse.len()).unwrap_or(u32::MAX);
        Standing { best: self.best.map(|best| best.loss), since_best }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_loss_is_the_best_and_every_other_one_counts() {
        let mut best = BestSoFar::default();
        assert_eq!(best.verdict(1, f64::NAN), Verdict::NotCounted);
        assert_eq!(best.verdict(1, 0.5), Verdict::Better);
        best.marked(1, 0.5);
        assert_eq!(best.verdict(1, 0.4), Verdict::NotCounted, "a step is not counted twice");
        for (step, loss) in [(2, 0.5), (3, f64::NAN), (4, 0.6)] {
            assert_eq!(best.verdict(step, loss), Verdict::Worse);
            best.stored_worse(best.worse_with(step));
        }
        assert_eq!(best.standing(), Standing { best: Some(0.5), since_best: 3 });
        assert_eq!(best.verdict(5, 0.4), Verdict::Better);
        best.marked(5, 0.4);
        assert_eq!(best.standing(), Standing { best: Some(0.4), since_best: 0 });
    }

    #[test]
    fn validations_after_the_resumed_step_are_repeated_and_not_counted() {
        let worse = BTreeSet::from([200, 300, 400]);
        let mark = Best { step: 100, score: 0.5, worse, ..Best::default() };
        let standing = BestSoFar::of_mark(mark, 300).standing();
        assert_eq!(standing, Standing { best: Some(0.5), since_best: 2 });
    }
}
