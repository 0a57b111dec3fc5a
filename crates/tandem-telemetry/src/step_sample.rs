//! Steps of a run, each with what its time depends on; long runs are thinned evenly.
//!
//! In: [`Step`] events, in order. Out: [`StepSample`]: at most [`StepSample::MOST`] steps, always the
//! same ones for the same run. The first step of a run is never in it: it compiles kernels.
//! Next: [`mod@crate::variation`].

use crate::event::{Name, Step};

/// One step, reduced to times and their possible causes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepTime {
    /// Seconds, waiting included.
    pub took: f64,
    /// The part of `took` in which the model had no batch.
    pub waited: f64,
    /// What the batches of the step cost; `None` where shapes were not recorded.
    pub size: Option<StepSize>,
    /// CPU seconds of the whole process in this step.
    pub cpu: Option<f64>,
    /// How often the system took a CPU from a thread of the process.
    pub preempted: Option<f64>,
    /// Seconds that each stage worked on the batches of this step.
    pub work: Vec<(Name, f64)>,
}

/// Padded size of a step's batches. Steps of the same size are the same work.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct StepSize {
    /// Padded symbols of all rows.
    pub symbols: u64,
    /// Padded frames of all rows.
    pub frames: u64,
    /// Padded frames of each row, squared: what attention costs.
    pub squared: f64,
}

impl StepSize {
    /// The size of one batch of this shape: rows, symbols, frames.
    pub fn of([rows, symbols, frames]: [u32; 3]) -> StepSize {
        let (rows, frames) = (u64::from(rows), u64::from(frames));
        StepSize {
            symbols: rows * u64::from(symbols),
            frames: rows * frames,
            squared: (rows * frames) as f64 * frames as f64,
        }
    }
}

impl From<&Step> for StepTime {
    fn from(step: &Step) -> StepTime {
        let several = step.batches.iter().map(|shape| StepSize::of(*shape));
        let several = several.reduce(|one, other| StepSize {
            symbols: one.symbols + other.symbols,
            frames: one.frames + other.frames,
            squared: one.squared + other.squared,
        });
        StepTime {
            took: step.took.seconds().0,
            waited: step.waited.seconds().0,
            size: several.or(step.shape.map(StepSize::of)),
            cpu: step.cpu.map(|time| time.seconds().0),
            preempted: step.preempted.map(f64::from),
            work: step.work.iter().map(|(name, time)| (name.clone(), time.seconds().0)).collect(),
        }
    }
}

/// The steps of a run, thinned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepSample {
    steps: Vec<StepTime>,
    /// Steps seen, without the first.
    seen: u64,
    /// How often [`StepSample::steps`] was halved.
    halved: u32,
    began: bool,
}

impl StepSample {
    /// Most steps in a sample.
    pub const MOST: usize = 2048;

    /// Adds the next step of the run; the first one is left out.
    pub fn add(&mut self, step: StepTime) {
        if !std::mem::replace(&mut self.began, true) {
            return;
        }
        let wanted = self.seen.is_multiple_of(1 << self.halved);
        self.seen += 1;
        if !wanted {
            return;
        }
        self.steps.push(step);
        if self.steps.len() > Self::MOST {
            let mut odd = false;
            self.steps.retain(|_| {
                odd = !odd;
                odd
            });
            self.halved += 1;
        }
    }

    /// The steps that are left, in order.
    pub fn steps(&self) -> &[StepTime] {
        &self.steps
    }

    /// Starts a new window of the same run: its first step counts.
    pub fn restart(&mut self) {
        *self = StepSample { began: self.began, ..StepSample::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(count: u64) -> Vec<u64> {
        let mut sample = StepSample::default();
        (0..count).for_each(|n| sample.add(StepTime { took: n as f64, ..StepTime::default() }));
        sample.steps().iter().map(|step| step.took as u64).collect()
    }

    #[test]
    fn the_first_step_is_left_out_and_short_runs_are_whole() {
        assert!(sample(1).is_empty());
        assert_eq!(sample(5), [1, 2, 3, 4]);
        assert_eq!(sample(1 + StepSample::MOST as u64).len(), StepSample::MOST);
    }

    #[test]
    fn a_long_run_is_thinned_evenly() {
        let kept = sample(100_001);
        assert!((StepSample::MOST / 2..=StepSample::MOST).contains(&kept.len()), "{}", kept.len());
        let gap = kept[1] - kept[0];
        assert!(kept.windows(2).all(|pair| pair[1] - pair[0] == gap) && kept[0] == 1);
    }

    #[test]
    fn the_batches_of_a_step_add_up() {
        let step = Step { batches: vec![[2, 10, 100], [4, 20, 50]], ..Step::default() };
        let size = StepTime::from(&step).size.unwrap();
        assert_eq!((size.symbols, size.frames, size.squared), (100, 400, 30_000.0));
        let alone = Step { shape: Some([2, 10, 100]), ..Step::default() };
        assert_eq!(StepTime::from(&alone).size, Some(StepSize::of([2, 10, 100])));
        assert_eq!(StepTime::from(&Step::default()).size, None);
    }
}
