//! What to change, ranked by the gain that the simulation predicts.
//!
//! In: the runs of a profile. Out: [`Recommendation`]s, the largest gain first, none below the
//! rules' least gain. Each is one change that can be tried for real; the program does that with
//! `--apply` and enters what it measured.

use crate::predict::{Item, Predicted, Setting, host_floor, items, joined, predict};
use crate::profile::{ProfileRules, ProfileRuns, Sharing, Subject};
use serde::{Deserialize, Serialize};
use tandem_units::percent;

/// One thing to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    Workers(usize),
    /// Batches that may wait.
    Depth(usize),
    /// Mel frames from the cache.
    CacheFeatures,
    /// Data work on a GPU of its own.
    SecondGpu,
}

impl Change {
    pub fn flag(self) -> String {
        match self {
            Change::Workers(count) => format!("--num-workers {count}"),
            Change::Depth(depth) => format!("--pipeline-depth {depth}"),
            Change::CacheFeatures => "--cache-dataset".into(),
            Change::SecondGpu => "--data-gpu A --model-gpu B".into(),
        }
    }
}

/// A change, what it should bring, and what it brought where it was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recommendation {
    pub change: Change,
    pub flag: String,
    pub why: String,
    pub predicted: Predicted,
    /// Share of the step that it saves, predicted.
    pub gain: f64,
    /// The same, measured; none where it was not tried.
    pub measured_gain: Option<f64>,
}

/// Deeper buffers than this only cost memory.
const DEEPEST: usize = 8;

pub(crate) fn recommend(
    subject: &Subject,
    runs: &ProfileRuns,
    rules: &ProfileRules,
) -> Vec<Recommendation> {
    let here = subject.setting;
    let as_is = items(&runs.as_is);
    let floor = host_floor(&runs.as_is).unwrap_or(0.0);
    let base = predict(&as_is, here, floor);
    let mut found = Vec::new();
    let mut offer = |change: Change, predicted: Predicted, why: String| {
        let gain = 1.0 - predicted.step / base.step.max(1e-12);
        if gain >= rules.gain {
            let (flag, measured_gain) = (change.flag(), None);
            found.push(Recommendation { change, flag, why, predicted, gain, measured_gain });
        }
    };
    let most = subject.cores.max(here.workers);
    let workers = (here.workers + 1..=most).map(|workers| (workers, Setting { workers, ..here }));
    if let Some((workers, predicted)) = least_enough(workers, &as_is, floor) {
        let why = format!("{} of {} CPU cores load data", here.workers, subject.cores);
        offer(Change::Workers(workers), predicted, why);
    }
    let depths = (here.depth + 1..=DEEPEST).map(|depth| (depth, Setting { depth, ..here }));
    if let Some((depth, predicted)) = least_enough(depths, &as_is, floor) {
        let why = format!("stage times vary; the model waits {}", percent(runs.as_is.stall()));
        offer(Change::Depth(depth), predicted, why);
    }
    if let Some(cached) = &runs.cached {
        let quick = with_loading_of(&as_is, &items(cached));
        let why = "mel frames are read from disk instead of computed again".to_string();
        offer(Change::CacheFeatures, predict(&quick, here, 0.0), why);
    }
    if subject.sharing == Sharing::OneGpu {
        let apart = joined(&runs.data_alone, &runs.model_alone);
        let why = "alignment and uploads move off the model's GPU".to_string();
        offer(Change::SecondGpu, predict(&apart, here, 0.0), why);
    }
    found.sort_by(|left, right| right.gain.total_cmp(&left.gain));
    found
}

/// The smallest value within a hundredth of the best: more would only cost memory.
fn least_enough(
    candidates: impl Iterator<Item = (usize, Setting)>,
    items: &[Item],
    floor: f64,
) -> Option<(usize, Predicted)> {
    let tried: Vec<(usize, Predicted)> =
        candidates.map(|(value, setting)| (value, predict(items, setting, floor))).collect();
    let best = tried.iter().map(|(_, predicted)| predicted.step).fold(f64::MAX, f64::min);
    tried.into_iter().find(|(_, predicted)| predicted.step <= 1.01 * best)
}

/// The same batches with the loading of another run.
fn with_loading_of(items: &[Item], other: &[Item]) -> Vec<Item> {
    let join = |(item, other): (&Item, &Item)| Item { assemble: other.assemble, ..*item };
    items.iter().zip(other.iter().cycle()).map(join).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::tests::{runs, subject};

    #[track_caller]
    fn check(costs: [f64; 5], wanted: &[Change]) {
        let two_cores = Subject { cores: 2, ..subject() };
        let found = recommend(&two_cores, &runs(costs), &ProfileRules::default());
        let changes: Vec<Change> = found.iter().map(|one| one.change).collect();
        assert_eq!(changes, wanted);
        assert!(found.iter().all(|one| one.gain >= 0.02 && one.measured_gain.is_none()));
    }

    #[test]
    fn what_helps_most_comes_first_and_what_does_not_help_not_at_all() {
        // 95 ms of loading before 40 ms of training: cached it is gone, workers share it.
        check([90.0, 5.0, 10.0, 2.0, 40.0], &[Change::CacheFeatures, Change::Workers(2)]);
        check([5.0, 5.0, 10.0, 90.0, 40.0], &[]);
        check([5.0, 5.0, 10.0, 2.0, 90.0], &[]);
    }

    #[test]
    fn a_second_gpu_is_advised_where_data_work_slows_the_model() {
        let mut slow = runs([5.0, 5.0, 30.0, 2.0, 40.0]);
        slow.as_is.batches.iter_mut().for_each(|batch| batch.train = 0.070);
        let gpu = Subject { sharing: Sharing::OneGpu, ..subject() };
        let found = recommend(&gpu, &slow, &ProfileRules::default());
        assert_eq!(found.first().map(|one| one.change), Some(Change::SecondGpu));
        assert!((found[0].gain - 0.43).abs() < 0.02, "{}", found[0].gain);
        assert!(recommend(&subject(), &slow, &ProfileRules::default()).is_empty());
    }
}
