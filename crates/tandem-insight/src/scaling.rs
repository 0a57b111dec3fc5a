//! Throughput and memory by batch size, and the smallest size that is fast enough.
//!
//! In: [`MeasuredRun`]s of at least two batch sizes. Out: [`Scaling`]: a point for each size, the
//! knee and a sentence; [`panels`] for a chart. The knee is the smallest size that reaches nearly
//! all of the best throughput: larger ones cost memory without a gain. Only measured sizes are
//! considered.

use crate::bootstrap::{Blocks, Draws, Interval};
use crate::chart::{Panel, Point};
use crate::measured_run::MeasuredRun;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tandem_telemetry::event::DeviceRole;
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
    /// Real mel frames per second.
    pub frames_per_second: f64,
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
}

impl Hint for ScalingError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::TooFewSteps { .. } => "run more steps (`--max-steps`)".into(),
            Self::OneSize { .. } | Self::NoRuns => {
                "name runs of two or more batch sizes, or make them with `--sweep 8,16,32`".into()
            }
        })
    }
}

/// Puts runs in order of their batch sizes; runs of the same size count together.
pub fn scaling(runs: &[MeasuredRun], rules: &ScalingRules) -> Result<Scaling, ScalingError> {
    let mut sizes: BTreeMap<u32, Vec<&MeasuredRun>> = BTreeMap::new();
    for run in runs {
        let found = run.steps.len();
        let size = run.batch_size().filter(|_| found >= rules.least_steps);
        let Some(size) = size else {
            let (run, needed) = (run.path.clone(), rules.least_steps);
            return Err(ScalingError::TooFewSteps { run, found, needed });
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

fn point(batch_size: u32, runs: &[&MeasuredRun], rules: &ScalingRules) -> SizePoint {
    let steps: Vec<_> = runs.iter().flat_map(|run| &run.steps).collect();
    let times: Vec<f64> = steps.iter().map(|step| step.took).collect();
    let took: f64 = times.iter().sum();
    let items: f64 = steps.iter().map(|step| f64::from(step.items)).sum();
    let frames: f64 = steps.iter().map(|step| step.frames as f64).sum();
    let per_second = |count: f64| if took > 0.0 { count / took } else { 0.0 };
    let draws = Draws { count: 1000, seed: 0, level: rules.level }.for_numbers(times.len());
    let rate = |places: &[Vec<usize>; 1]| {
        let took: f64 = places[0].iter().map(|&place| times[place]).sum();
        let items: f64 = places[0].iter().map(|&place| f64::from(steps[place].items)).sum();
        (took > 0.0).then(|| items / took)
    };
    let enough = times.len() >= 10;
    let interval = enough.then(|| draws.interval([Blocks::of(&times)], rate)).flatten();
    let peak = |role| runs.iter().filter_map(|run| run.peak_memory(role)).max_by(larger);
    let memory = peak(DeviceRole::Model).or_else(|| peak(DeviceRole::Host));
    SizePoint {
        batch_size,
        steps: steps.len(),
        step_time: took / times.len().max(1) as f64,
        samples_per_second: per_second(items),
        interval,
        frames_per_second: per_second(frames),
        memory: memory.map(|(_, bytes)| bytes),
        memory_of: memory.map(|(name, _)| name.to_string()),
        efficiency: 1.0,
    }
}

fn larger(one: &(&str, f64), other: &(&str, f64)) -> std::cmp::Ordering {
    one.1.total_cmp(&other.1)
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

fn notes(runs: &[MeasuredRun]) -> Vec<String> {
    let differs = |pointer: &str| {
        let mut values = runs.iter().map(|run| run.settings.pointer(pointer));
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    let differing = SAME.iter().filter(|(pointer, _)| differs(pointer));
    differing
        .map(|(_, name)| format!("the runs differ in {name}, not in batch size alone"))
        .collect()
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

    /// A run whose steps take `fixed` seconds and `each` more for an utterance.
    fn run(batch: u32, fixed: f64, each: f64) -> MeasuredRun {
        let took = fixed + each * f64::from(batch);
        let step = MeasuredStep { took, items: batch, frames: 300, shape: [batch, 1, 1] };
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
        assert!(crate::chart::svg(&shown).unwrap().contains("knee: 16"));
    }
}
