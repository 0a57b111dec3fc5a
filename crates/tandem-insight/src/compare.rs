//! Whether two runs differ by more than noise.
//!
//! In: two [`MeasuredRun`]s, or any two [`RunSource`]s. Out: [`Comparison`]: a row for each measure with both values, their
//! ratio, an interval around it and a judgement, then a verdict. A difference counts where the
//! interval leaves out "no difference" and the difference is large enough to matter. Step times
//! are compared shape by shape, so that a different mix of batches does not count. Runs nothing.

mod figures; // where one of the two is a text log
mod measures;

use crate::bootstrap::{Draws, Interval};
use crate::measured_run::MeasuredRun;
use crate::run_source::RunSource;
use measures::Pair;
use serde::Serialize;
use std::path::{Path, PathBuf};
use tandem_units::{Hint, percent, signed_percent};

/// What counts as a difference.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CompareRules {
    /// How certain intervals are. Several measures decide, so each gets a small part of 5 %.
    pub level: f64,
    /// Smallest share by which pace must differ to matter.
    pub pace: f64,
    /// Smallest difference of utilisation, as a share of all time.
    pub utilisation: f64,
    /// Smallest share by which memory must differ. Peaks have no interval.
    pub memory: f64,
    /// Smallest share by which the mean step must differ where the median did not move with it.
    pub lone_mean: f64,
    /// Smallest share by which std/mean must differ.
    pub stability: f64,
    /// And the smallest difference of std/mean itself.
    pub stability_points: f64,
    /// Steps after the warm-up that a run must have.
    pub least_steps: usize,
    /// Draws behind each interval.
    pub draws: usize,
    /// What draws are made from.
    pub seed: u64,
}

impl Default for CompareRules {
    fn default() -> CompareRules {
        CompareRules {
            level: 0.99,
            pace: 0.02,
            utilisation: 0.05,
            memory: 0.10,
            lone_mean: 0.10,
            stability: 0.25,
            stability_points: 0.10,
            least_steps: 10,
            draws: 2000,
            seed: 0,
        }
    }
}

impl CompareRules {
    /// A regression fails only above this share. Pace follows it in both directions; what is
    /// noisier by nature never gets a lower threshold than the default.
    pub fn failing_over(self, share: f64) -> CompareRules {
        CompareRules {
            pace: share,
            utilisation: self.utilisation.max(share),
            memory: self.memory.max(share),
            stability: self.stability.max(share),
            ..self
        }
    }

    pub(crate) fn draws(&self) -> Draws {
        Draws { count: self.draws, seed: self.seed, level: self.level }
    }
}

/// Two runs side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The first run: what the other is measured against.
    pub a: Side,
    /// The second run.
    pub b: Side,
    /// One row for each measure.
    pub rows: Vec<Row>,
    /// The answer in one word.
    pub verdict: Judgement,
    /// The answer in a sentence.
    pub sentence: String,
    /// Notes on the comparison.
    pub notes: Vec<String>,
    /// What counted as a difference.
    pub rules: CompareRules,
}

/// Facts about one of the runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    /// The record or directory, as it was named.
    pub run: PathBuf,
    /// Steps compared, without the warm-up.
    pub steps: usize,
    pub batch_size: Option<u32>,
    /// Neighbouring steps that were drawn together.
    pub block: usize,
}

/// One measure of both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub measure: Measure,
    /// In words, with the device where there is one.
    pub name: String,
    /// The first run's value.
    pub a: f64,
    /// The second run's.
    pub b: f64,
    /// The second over the first; none where the first is zero.
    pub ratio: Option<f64>,
    /// Where the ratio lies, with [`CompareRules::level`]; none where noise cannot be judged from
    /// one run. Of utilisation: where the difference lies.
    pub interval: Option<Interval>,
    /// What to make of it.
    pub judgement: Judgement,
    /// Whether it counts for the verdict.
    pub decides: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Mean seconds of a step, over the batches each run happened to have.
    MeanStep,
    /// Median seconds of a step.
    MedianStep,
    /// Mean seconds of a step, as if both runs had had the same shapes.
    SameShapes,
    /// Median seconds of a step, as if both runs had had the same shapes.
    SameShapesMedian,
    Throughput,
    /// Standard deviation over mean of the step time.
    Stability,
    /// Share of time a device was busy.
    Utilisation,
    /// The most memory in use, bytes.
    Memory,
    /// Seconds of a step until a rank has trained its batches.
    RankStep,
    /// Seconds of a step in which the gradients of several ranks are summed.
    Reduce,
    /// Seconds from the start of the run to its end.
    TotalTime,
}

/// Judgement of a difference, from the first run to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// The second run is better.
    Better,
    /// The second run is worse.
    Worse,
    /// Not beyond noise, or too small to matter.
    NoDifference,
    /// Different, and neither better nor worse by itself.
    Different,
    /// Cannot be said from these two runs.
    NotComparable,
}

/// Why two runs cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// Too few steps to distinguish noise from a difference.
    #[error("`{}` has {found} steps after the warm-up, and {needed} are needed", run.display())]
    TooFewSteps { run: PathBuf, found: usize, needed: usize },
}

impl Hint for CompareError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::TooFewSteps { .. } => Some("run more steps (`--max-steps`), 100 or more".into()),
        }
    }
}

/// Compares two runs of any kind; `b` is judged against `a`.
pub fn compare_sources(
    a: &RunSource,
    b: &RunSource,
    rules: &CompareRules,
) -> Result<Comparison, CompareError> {
    if let (RunSource::Record(a), RunSource::Record(b)) = (a, b) {
        return compare(a, b, rules);
    }
    let [a, b] = [a, b].map(RunSource::figures);
    for run in [&a, &b] {
        check_steps(&run.path, run.steps, rules)?;
    }
    Ok(figures::compare_figures(&a, &b, rules))
}

fn check_steps(run: &Path, found: usize, rules: &CompareRules) -> Result<(), CompareError> {
    let needed = rules.least_steps;
    match found < needed {
        true => Err(CompareError::TooFewSteps { run: run.to_path_buf(), found, needed }),
        false => Ok(()),
    }
}

/// Compares two records; `b` is judged against `a`.
pub fn compare(
    a: &MeasuredRun,
    b: &MeasuredRun,
    rules: &CompareRules,
) -> Result<Comparison, CompareError> {
    for run in [a, b] {
        check_steps(&run.path, run.steps.len(), rules)?;
    }
    let pair = Pair::new(a, b, rules);
    let rows = pair.rows();
    let verdict = verdict(&rows);
    let sentence = sentence(&rows, verdict, rules);
    Ok(Comparison {
        a: pair.side(0),
        b: pair.side(1),
        notes: pair.notes(),
        rows,
        verdict,
        sentence,
        rules: *rules,
    })
}

fn verdict(rows: &[Row]) -> Judgement {
    let has = |judgement| rows.iter().any(|row| row.decides && row.judgement == judgement);
    if has(Judgement::Worse) {
        Judgement::Worse
    } else if has(Judgement::Better) {
        Judgement::Better
    } else {
        Judgement::NoDifference
    }
}

fn sentence(rows: &[Row], verdict: Judgement, rules: &CompareRules) -> String {
    let deciding = || rows.iter().filter(|row| row.decides);
    let changes = |wanted: Judgement| {
        let changes = deciding().filter(|row| row.judgement == wanted).map(Row::change_in_words);
        changes.collect::<Vec<_>>().join("; ")
    };
    match verdict {
        Judgement::Worse => format!("B is worse: {}", changes(Judgement::Worse)),
        Judgement::Better => format!("B is better: {}", changes(Judgement::Better)),
        _ => format!("no difference beyond noise{}", nearly(rows, rules)),
    }
}

/// The measured change of the step time, and the smallest detectable one.
fn nearly(rows: &[Row], rules: &CompareRules) -> String {
    let mut pace = rows.iter().filter(|row| row.decides && row.measure.is_pace());
    let Some(first) = pace.next() else { return String::new() };
    // A mean that only a few slow steps changed is shown together with the median, which decides.
    let moved = first.interval.is_some_and(|interval| !interval.holds(1.0));
    let (shown, moved) = match pace.next().filter(|_| moved) {
        Some(median) => (median, Some(first)),
        None => (first, None),
    };
    let Some(interval) = shown.interval else { return String::new() };
    let off = (interval.high - 1.0).max(1.0 - interval.low).max(rules.pace);
    let seen = format!(
        ": {}; a change over {} would have been detected",
        shown.change_in_words(),
        percent(off)
    );
    match moved {
        Some(mean) if mean.change().is_some_and(|change| change.abs() > rules.pace) => {
            format!(
                "{seen}; {}, caused by a few steps that other programs may have slowed down",
                mean.change_in_words()
            )
        }
        _ => seen,
    }
}

impl Measure {
    /// Whether it says how fast a run is.
    pub fn is_pace(self) -> bool {
        use Measure::{MeanStep, MedianStep, SameShapes, SameShapesMedian, Throughput};
        matches!(self, SameShapes | SameShapesMedian | Throughput | MeanStep | MedianStep)
    }

    /// Whether the interval is one of a difference, not of a ratio.
    pub fn is_share(self) -> bool {
        self == Self::Utilisation
    }
}

impl Row {
    /// What changed from A to B, such as `step time, same shapes +10.1 % (+8.9 % to +11.4 %)`.
    pub fn change_in_words(&self) -> String {
        let Row { name, .. } = self;
        let change = self.change().map_or("changed from 0".to_string(), |change| {
            if self.measure.is_share() { points(change) } else { signed_percent(change) }
        });
        match self.interval_in_words() {
            Some(interval) => format!("{name} {change} ({interval})"),
            None => format!("{name} {change}"),
        }
    }

    /// The interval of the change, for people.
    pub fn interval_in_words(&self) -> Option<String> {
        let interval = self.interval?;
        let shown = |end: f64| {
            if self.measure.is_share() { points(end) } else { signed_percent(end - 1.0) }
        };
        Some(format!("{} to {}", shown(interval.low), shown(interval.high)))
    }

    /// By how much B differs from A: a share of A, or of all time for utilisation.
    fn change(&self) -> Option<f64> {
        if self.measure.is_share() { Some(self.b - self.a) } else { Some(self.ratio? - 1.0) }
    }
}

fn points(share: f64) -> String {
    format!("{:+.1} points", 100.0 * share)
}

#[cfg(test)]
mod tests;
