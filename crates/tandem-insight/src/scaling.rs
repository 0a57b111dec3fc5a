//! Throughput and memory by batch size, and the smallest size that is fast enough.
//!
//! In: runs of at least two batch sizes: records, or text logs whose records are gone. Out: [`Scaling`]: a point for each size, the
//! knee and a sentence; [`panels`] for a chart. The knee is the smallest size that reaches nearly
//! all of the best throughput: larger ones cost memory without a gain. Only measured sizes are
//! considered.

use crate::bootstrap::{Blocks, Draws, Interval, normal_quantile};
use crate::measured_run::MeasuredRun;
use crate::run_source::{RunFigures, RunSource};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tandem_plot::chart::{Panel, Point};
use tandem_units::Hint;

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ScalingRules {
    /// The share of the best throughput that is as good as it.
    pub knee: f64,
    /// How certain intervals are.
    pub level: f64,
    /// Steps after the warm-up that a run must have.
    pub least_steps: usize,
}

impl Default for ScalingRules {
    fn default() -> ScalingRules {
        ScalingRules { knee: 0.95, level: 0.95, least_steps: 3 }
    }
}

/// Result by batch size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scaling {
    /// One for each batch size, smallest first.
    pub points: Vec<SizePoint>,
    /// The smallest batch size that is nearly as fast as the best.
    pub knee: u32,
    /// The answer in a sentence.
    pub sentence: String,
    /// Notes on the result.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizePoint {
    pub batch_size: u32,
    pub steps: usize,
    /// Mean seconds of a step.
    pub step_time: f64,
    pub samples_per_second: f64,
    /// Where that lies; none for very short runs.
    pub interval: Option<Interval>,
    /// Real mel frames per second; none where the log of a run does not have it.
    pub frames_per_second: Option<f64>,
    /// The most memory in use, bytes.
    pub memory: Option<f64>,
    /// By which device, or the process.
    pub memory_of: Option<String>,
    /// Throughput relative to linear scaling from the smallest size.
    pub efficiency: f64,
}

/// Why runs cannot be analysed by batch size.
#[derive(Debug, thiserror::Error)]
pub enum ScalingError {
    /// A run without enough steps.
    #[error("`{}` has {found} steps after the warm-up, and {needed} are needed", run.display())]
    TooFewSteps { run: PathBuf, found: usize, needed: usize },
    /// All runs have the same batch size.
    #[error("all runs have batch size {found}: there is nothing to compare")]
    OneSize { found: u32 },
    #[error("there are no runs")]
    NoRuns,
    /// A log of which the banner is missing.
    #[error("`{}` does not say its batch size, and its record is gone", run.display())]
    NoBatchSize { run: PathBuf },
}

impl Hint for ScalingError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::TooFewSteps { .. } => "run more steps (`--max-steps`)".into(),
            Self::NoBatchSize { .. } => {
                "redirect all of the output: `tandem train ... > batch-16.log 2>&1`".into()
            }
            Self::OneSize { .. } | Self::NoRuns => {
                "name runs of two or more batch sizes, or make them with `--sweep 8,16,32`".into()
            }
        })
    }
}

/// Puts records in order of their batch sizes; runs of the same size count together.
pub fn scaling(runs: &[MeasuredRun], rules: &ScalingRules) -> Result<Scaling, ScalingError> {
    let runs = runs.iter().map(|run| Part { figures: run.into(), record: Some(run) });
    by_size(&runs.collect::<Vec<_>>(), rules)
}

/// The same for runs of any kind.
pub fn scaling_of(runs: &[RunSource], rules: &ScalingRules) -> Result<Scaling, ScalingError> {
    let part = |run| Part {
        figures: RunSource::figures(run),
        record: match run {
            RunSource::Record(run) => Some(&**run),
            RunSource::Log(_) => None,
        },
    };
    by_size(&runs.iter().map(part).collect::<Vec<_>>(), rules)
}

/// One run.
struct Part<'a> {
    figures: RunFigures,
    /// None where only its printed figures are left.
    record: Option<&'a MeasuredRun>,
}

fn by_size(runs: &[Part<'_>], rules: &ScalingRules) -> Result<Scaling, ScalingError> {
    let mut sizes: BTreeMap<u32, Vec<&Part<'_>>> = BTreeMap::new();
    for run in runs {
        let (found, path) = (run.figures.steps, run.figures.path.clone());
        if found < rules.least_steps {
            return Err(ScalingError::TooFewSteps { run: path, found, needed: rules.least_steps });
        }
        let Some(size) = run.figures.batch_size else {
            return Err(ScalingError::NoBatchSize { run: path });
        };
        sizes.entry(size).or_default().push(run);
    }
    let mut points: Vec<SizePoint> =
        sizes.iter().map(|(size, runs)| point(*size, runs, rules)).collect();
    match points.as_slice() {
        [] => return Err(ScalingError::NoRuns),
        [only] => return Err(ScalingError::OneSize { found: only.batch_size }),
        _ => {}
    }
    let per_sample = points[0].samples_per_second / f64::from(points[0].batch_size);
    for point in &mut points {
        let linear = per_sample * f64::from(point.batch_size);
        point.efficiency = if linear > 0.0 { point.samples_per_second / linear } else { 0.0 };
    }
    let (knee, sentence) = knee(&points, rules);
    let mut notes = notes(runs);
    notes.extend(unsure(&points, knee, rules));
    Ok(Scaling { points, knee, sentence, notes })
}

fn point(batch_size: u32, runs: &[&Part<'_>], rules: &ScalingRules) -> SizePoint {
    let times = |run: &RunFigures| run.mean * run.steps as f64;
    let took: f64 = runs.iter().map(|run| times(&run.figures)).sum();
    let steps = runs.iter().map(|run| run.figures.steps).sum::<usize>();
    let per_second = |count: f64| if took > 0.0 { count / took } else { 0.0 };
    let items = |run: &&Part<'_>| run.figures.samples_per_second * times(&run.figures);
    let frames = |run: &&Part<'_>| Some(run.figures.frames_per_second? * times(&run.figures));
    let frames = runs.iter().map(frames).sum::<Option<f64>>();
    let samples_per_second = per_second(runs.iter().map(items).sum());
    let records: Option<Vec<&MeasuredRun>> = runs.iter().map(|run| run.record).collect();
    let interval = match records {
        Some(records) => drawn(&records, rules),
        None => printed(runs, samples_per_second, rules),
    };
    let memory = runs.iter().filter_map(|run| run.figures.peak_memory());
    let memory = memory.max_by(|one, other| one.1.total_cmp(&other.1));
    SizePoint {
        batch_size,
        steps,
        step_time: took / steps.max(1) as f64,
        samples_per_second,
        interval: interval.filter(|_| steps >= 10),
        frames_per_second: frames.map(per_second),
        memory: memory.map(|(_, bytes)| bytes),
        memory_of: memory.map(|(name, _)| name.to_string()),
        efficiency: 1.0,
    }
}

/// Where throughput lies, by drawing steps again.
fn drawn(runs: &[&MeasuredRun], rules: &ScalingRules) -> Option<Interval> {
    let steps: Vec<_> = runs.iter().flat_map(|run| &run.steps).collect();
    let times: Vec<f64> = steps.iter().map(|step| step.took).collect();
    let draws = Draws { count: 1000, seed: 0, level: rules.level }.for_numbers(times.len());
    let rate = |places: &[Vec<usize>; 1]| {
        let took: f64 = places[0].iter().map(|&place| times[place]).sum();
        let items: f64 = places[0].iter().map(|&place| f64::from(steps[place].items)).sum();
        (took > 0.0).then(|| items / took)
    };
    draws.interval([Blocks::of(&times)], rate)
}

/// Where throughput lies, by the standard errors of the printed means.
fn printed(runs: &[&Part<'_>], rate: f64, rules: &ScalingRules) -> Option<Interval> {
    let errors = runs.iter().map(|run| run.figures.error.powi(2)).sum::<f64>();
    let error = errors.sqrt() / runs.len().max(1) as f64;
    let off = normal_quantile((1.0 + rules.level) / 2.0) * error;
    Some(Interval { low: rate * (-off).exp(), high: rate * off.exp() })
}

fn knee(points: &[SizePoint], rules: &ScalingRules) -> (u32, String) {
    let best = points.iter().map(|point| point.samples_per_second).fold(0.0, f64::max);
    let enough = |point: &&SizePoint| point.samples_per_second >= rules.knee * best;
    let (Some(knee), Some(first), Some(last)) =
        (points.iter().find(enough), points.first(), points.last())
    else {
        return (0, "nothing was measured".into());
    };
    let size = knee.batch_size;
    let share = 100.0 * knee.samples_per_second / best.max(f64::MIN_POSITIVE);
    let sentence = if size == last.batch_size {
        format!(
            "throughput still rises at {size}, the largest batch measured ({:.1} samples/s): try a \
             larger one",
            knee.samples_per_second
        )
    } else if size == first.batch_size {
        format!(
            "the smallest batch, {size}, already gives {share:.0} % of the best throughput ({best:.1} \
             samples/s): a larger batch costs memory and gains little"
        )
    } else {
        format!(
            "the knee is at batch {size}: {:.1} samples/s, {share:.0} % of the best; beyond it \
             throughput {}",
            knee.samples_per_second,
            if share > 99.5 { "does not rise" } else { "hardly rises" }
        )
    };
    (size, sentence)
}

/// A note where the knee may be at a smaller size within noise.
fn unsure(points: &[SizePoint], knee: u32, rules: &ScalingRules) -> Option<String> {
    let best = points.iter().map(|point| point.samples_per_second).fold(0.0, f64::max);
    let smaller = points.iter().filter(|point| point.batch_size < knee);
    let as_good = |point: &&SizePoint| point.interval.is_some_and(|i| i.high >= rules.knee * best);
    let size = smaller.filter(as_good).map(|point| point.batch_size).next()?;
    Some(format!("batch {size} may be as good within noise: measure more steps"))
}

/// Settings that make runs hard to put on one line.
const SAME: [(&str, &str); 5] = [
    ("/config/train/model_size", "model size"),
    ("/config/train/precision", "precision"),
    ("/config/train/grad_accum", "gradient accumulation"),
    ("/config/train_data", "corpus"),
    ("/placement/model/name", "device"),
];

fn notes(runs: &[Part<'_>]) -> Vec<String> {
    let differs = |pointer: &str| {
        let records = runs.iter().filter_map(|run| run.record);
        let mut values = records.map(|run| run.settings.pointer(pointer));
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    let differing = SAME.iter().filter(|(pointer, _)| differs(pointer));
    let differing =
        differing.map(|(_, name)| format!("the runs differ in {name}, not in batch size alone"));
    let logs = runs.iter().filter(|run| run.record.is_none()).count();
    let logs = (logs > 0).then(|| {
        format!(
            "{logs} of {} runs are logs without a record: their settings are not known",
            runs.len()
        )
    });
    differing.chain(logs).collect()
}

/// Throughput and memory over batch size, for a chart.
pub fn panels(found: &Scaling) -> Vec<Panel> {
    let over = "batch size".to_string();
    let throughput = found.points.iter().map(|point| Point {
        x: f64::from(point.batch_size),
        y: point.samples_per_second,
        range: point.interval.map(|interval| (interval.low, interval.high)),
    });
    let memory = found.points.iter().filter_map(|point| {
        let y = point.memory? / f64::from(1 << 20);
        Some(Point { x: f64::from(point.batch_size), y, range: None })
    });
    let memory: Vec<Point> = memory.collect();
    let mut panels = vec![Panel {
        title: "Throughput by batch size".into(),
        measure: "samples/s".into(),
        over: over.clone(),
        points: throughput.collect(),
        mark: Some((f64::from(found.knee), format!("knee: {}", found.knee))),
    }];
    if !memory.is_empty() {
        let (title, measure) = ("Peak memory by batch size".into(), "MiB".into());
        panels.push(Panel { title, measure, over, points: memory, mark: None });
    }
    panels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured_run::{DeviceSeries, MeasuredStep};
    use crate::run_log::LoggedRun;
    use tandem_telemetry::event::DeviceRole;

    /// A run whose steps take `fixed` seconds and `each` more for an utterance.
    fn run(batch: u32, fixed: f64, each: f64) -> MeasuredRun {
        let took = fixed + each * f64::from(batch);
        let step =
            MeasuredStep { took, items: batch, frames: 300, shape: [batch, 1, 1], size: None };
        let memory = vec![1e8 + 1e7 * f64::from(batch)];
        let device = DeviceSeries {
            device: "process".into(),
            role: DeviceRole::Host,
            utilisation: vec![],
            memory,
            memory_total: None,
        };
        MeasuredRun {
            path: format!("batch-{batch}").into(),
            steps: vec![step; 20],
            devices: vec![device],
            ..MeasuredRun::default()
        }
    }

    fn found(fixed: f64, each: f64) -> Scaling {
        let runs = [32, 4, 16, 8].map(|batch| run(batch, fixed, each));
        scaling(&runs, &ScalingRules::default()).unwrap()
    }

    #[test]
    fn points_are_in_order_with_throughput_efficiency_and_memory() {
        let found = found(0.1, 0.0);
        let sizes: Vec<u32> = found.points.iter().map(|point| point.batch_size).collect();
        assert_eq!(sizes, [4, 8, 16, 32]);
        for point in &found.points {
            let rate = f64::from(point.batch_size) / 0.1;
            assert!((point.samples_per_second - rate).abs() < 1e-9 * rate);
            assert!((point.efficiency - 1.0).abs() < 1e-9, "steps of the same length");
            assert!(point.interval.unwrap().holds(point.samples_per_second));
        }
        assert_eq!(found.points[3].memory, Some(4.2e8));
        assert!(found.sentence.starts_with("throughput still rises at 32"), "{}", found.sentence);
    }

    #[test]
    fn the_knee_is_the_smallest_size_that_is_as_good_as_the_best() {
        // 8: 8 / (0.02 + 0.08) = 80; 16: 16 / 0.18 = 89; 32: 32 / 0.34 = 94: 16 reaches 94.4 %.
        let steep = found(0.02, 0.01);
        assert_eq!(steep.knee, 32);
        let flat = found(0.01, 0.01);
        assert_eq!(flat.knee, 16, "{}", flat.sentence);
        assert!(flat.sentence.starts_with("the knee is at batch 16: "), "{}", flat.sentence);
        let linear = found(0.0, 0.01);
        assert_eq!(linear.knee, 4);
        assert!(linear.sentence.contains("the smallest batch, 4"), "{}", linear.sentence);
        assert!((linear.points[3].efficiency - 0.125).abs() < 1e-9);
    }

    #[test]
    fn one_size_short_runs_and_none_are_refused() {
        let rules = ScalingRules::default();
        let refused = |runs: &[MeasuredRun]| scaling(runs, &rules).unwrap_err();
        assert!(matches!(refused(&[]), ScalingError::NoRuns));
        let same = [run(8, 0.1, 0.0), run(8, 0.2, 0.0)];
        assert!(refused(&same).to_string().contains("all runs have batch size 8"));
        let mut short = run(4, 0.1, 0.0);
        short.steps.truncate(2);
        let error = refused(&[short, run(8, 0.1, 0.0)]);
        assert!(error.to_string().contains("`batch-4` has 2 steps") && error.hint().is_some());
    }

    #[test]
    fn records_and_logs_are_put_on_one_line() {
        let log = LoggedRun {
            path: "16.log".into(),
            batch_size: Some(16),
            steps: 100,
            mean: 0.17,
            std: 0.017,
            samples_per_second: 16.0 / 0.17,
            ..LoggedRun::default()
        };
        let records = [4, 8].map(|batch| RunSource::Record(Box::new(run(batch, 0.01, 0.01))));
        let [four, eight] = records;
        let mixed = [four, RunSource::Log(log.clone()), eight];
        let found = scaling_of(&mixed, &ScalingRules::default()).unwrap();
        let point = &found.points[2];
        assert_eq!((point.batch_size, point.steps, point.frames_per_second), (16, 100, None));
        assert!((point.samples_per_second - 94.1).abs() < 0.1, "{point:?}");
        let interval = point.interval.unwrap();
        assert!(interval.holds(94.1) && interval.high - interval.low < 8.0, "{interval:?}");
        assert_eq!(
            found.notes,
            ["1 of 3 runs are logs without a record: their settings are not known"]
        );
        let unknown = LoggedRun { batch_size: None, ..log };
        let refused = scaling_of(&[RunSource::Log(unknown)], &ScalingRules::default()).unwrap_err();
        assert!(refused.to_string().contains("does not say its batch size"));
    }

    #[test]
    fn runs_that_differ_otherwise_are_noted() {
        let with = |batch, size: &str| {
            let settings = serde_json::json!({"config": {"train": {"model_size": size}}});
            MeasuredRun { settings, ..run(batch, 0.1, 0.0) }
        };
        let rules = ScalingRules::default();
        let same = scaling(&[with(4, "tiny"), with(8, "tiny")], &rules).unwrap();
        assert!(same.notes.is_empty(), "{:?}", same.notes);
        let other = scaling(&[with(4, "tiny"), with(8, "big")], &rules).unwrap();
        assert_eq!(other.notes, ["the runs differ in model size, not in batch size alone"]);
    }

    #[test]
    fn a_knee_within_noise_is_called_so() {
        let mut noisy = run(8, 0.01, 0.01);
        noisy.steps.iter_mut().step_by(2).for_each(|step| step.took *= 1.3);
        let runs = [run(4, 0.01, 0.01), noisy, run(16, 0.01, 0.01)];
        let found = scaling(&runs, &ScalingRules::default()).unwrap();
        assert_eq!(found.knee, 16);
        assert!(found.notes.is_empty(), "{:?}", found.notes);
        let mut rough = run(8, 0.01, 0.01);
        rough.steps.iter_mut().enumerate().for_each(|(at, s)| s.took *= [0.7, 1.6][at / 10]);
        let found = scaling(&[rough, run(16, 0.01, 0.01)], &ScalingRules::default()).unwrap();
        assert!(found.notes[0].starts_with("batch 8 may be as good within noise"), "{found:?}");
    }

    #[test]
    fn the_chart_shows_both_measures_and_the_knee() {
        let shown = panels(&found(0.01, 0.01));
        assert_eq!(shown.len(), 2);
        assert_eq!(shown[0].mark, Some((16.0, "knee: 16".into())));
        assert!(tandem_plot::chart::svg(&shown).unwrap().contains("knee: 16"));
    }
}
