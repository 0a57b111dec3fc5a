//! The rows of a comparison, one function for each measure.
//!
//! In: two runs and the rules. Out: [`Row`]s with ratio, interval and judgement. Resampling is in
//! [`crate::bootstrap`]; this file defines the statistics and thresholds.

use super::{CompareRules, Judgement, Measure, Row, Side};
use crate::bootstrap::{Blocks, Draws, Interval};
use crate::measured_run::{DeviceSeries, MeasuredRun, PROCESS};
use std::collections::BTreeMap;
use tandem_telemetry::event::DeviceRole;
use tandem_telemetry::ranks::RankSums;
use tandem_telemetry::variation::{beyond_shape, variation};
use tandem_units::median;

/// Both runs, prepared for resampling.
pub(super) struct Pair<'a> {
    runs: [&'a MeasuredRun; 2],
    rules: &'a CompareRules,
    draws: Draws,
    times: [Vec<f64>; 2],
    /// Shapes by number, the same number for the same shape.
    shapes: [Vec<usize>; 2],
    kinds: usize,
    blocks: [Blocks; 2],
}

/// Which direction is good.
#[derive(Clone, Copy)]
pub(super) enum Good {
    Lower,
    Higher,
    Neither,
}

impl<'a> Pair<'a> {
    pub(super) fn new(a: &'a MeasuredRun, b: &'a MeasuredRun, rules: &'a CompareRules) -> Self {
        let runs = [a, b];
        let mut known = BTreeMap::new();
        let shapes = runs.map(|run| {
            let number = |shape| {
                let next = known.len();
                *known.entry(shape).or_insert(next)
            };
            run.steps.iter().map(|step| step.shape).map(number).collect::<Vec<usize>>()
        });
        let times = runs.map(MeasuredRun::times);
        let kinds = known.len();
        let blocks = [0, 1].map(|at| step_blocks(&times[at], &shapes[at], kinds));
        let draws = rules.draws().for_numbers(times[0].len() + times[1].len());
        Pair { runs, rules, draws, times, shapes, kinds, blocks }
    }

    pub(super) fn side(&self, at: usize) -> Side {
        Side {
            run: self.runs[at].path.clone(),
            steps: self.times[at].len(),
            batch_size: self.runs[at].batch_size(),
            block: self.blocks[at].length,
        }
    }

    pub(super) fn rows(&self) -> Vec<Row> {
        // With other ranks a step has other batches, of which shapes show those of one rank only.
        let [a, b] = self.runs.map(MeasuredRun::rank_count);
        let same = if a == b { self.same_shapes() } else { None };
        let mut rows = vec![self.mean_step(), self.median_step()];
        let throughput = self.throughput(same.is_none());
        if let Some(mean) = same {
            let median = self.same_shapes_median();
            rows.extend([self.alone_or_not(mean, &median), median]);
        }
        rows.push(throughput);
        rows.push(self.stability());
        rows.extend(self.shared_devices().filter_map(|[a, b]| self.utilisation(a, b)));
        rows.extend(self.shared_devices().filter_map(|[a, b]| self.memory(a, b)));
        rows.extend(self.ranks());
        rows.push(self.total_time());
        rows
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let [a, b] = self.runs.map(MeasuredRun::batch_size);
        if let (Some(a), Some(b)) = (a, b)
            && a != b
        {
            notes.push(format!(
                "batch sizes differ ({a} and {b}): steps are not the same work, so utterances \
                 per second decide"
            ));
        }
        let [a, b] = self.runs.map(MeasuredRun::rank_count);
        if a != b {
            notes.push(format!(
                "{a} and {b} ranks: a step is the work of all of them, so utterances per second decide"
            ));
        }
        let [a, b] = self.runs.map(|run| run.steps.len() + run.warm_up.len());
        if a != b {
            notes.push(format!("{a} and {b} steps: total times are not comparable"));
        }
        let seen = |at: usize, series: &&DeviceSeries| {
            self.runs[at].devices.iter().any(|other| same_device(series, other))
        };
        let gpu = |series: &&DeviceSeries| series.role != DeviceRole::Host;
        for (at, name) in [(0, "A"), (1, "B")] {
            let lonely = self.runs[at].devices.iter().filter(gpu).filter(|s| !seen(1 - at, s));
            notes.extend(
                lonely.map(|s| format!("device {} was measured in {name} alone", s.device)),
            );
        }
        notes
    }

    fn mean_step(&self) -> Row {
        let name = "mean step time";
        self.shown(Measure::MeanStep, name, Good::Lower, |at, places| {
            Some(mean_of(places, |place| self.times[at][place]))
        })
    }

    fn median_step(&self) -> Row {
        let name = "median step time";
        let mut scratch = Vec::new();
        self.shown(Measure::MedianStep, name, Good::Lower, move |at, places| {
            scratch.clear();
            scratch.extend(places.iter().map(|&place| self.times[at][place]));
            median(&mut scratch)
        })
    }

    fn throughput(&self, decides: bool) -> Row {
        let row = self.shown(Measure::Throughput, "samples/s", Good::Higher, |at, places| {
            let items = places.iter().map(|&place| f64::from(self.runs[at].steps[place].items));
            let took: f64 = places.iter().map(|&place| self.times[at][place]).sum();
            (took > 0.0).then(|| items.sum::<f64>() / took)
        });
        Row { decides, ..row }
    }

    /// How much steps of the same shape differ, as the report judges it; of the step times as they
    /// are where a run has too few steps for that.
    fn stability(&self) -> Row {
        let judged = self.runs.map(|run| Some(variation(run.sample.steps())?.by_shape));
        let beyond = self.runs.map(|run| {
            let sizes: Vec<_> = run.steps.iter().map(|step| step.size).collect();
            beyond_shape(&run.times(), &sizes)
        });
        let (name, beyond) = match beyond {
            [Some(a), Some(b)] => ("stability (std/mean, by shape)", [a, b]),
            _ => ("stability (std/mean)", self.times.clone()),
        };
        let mut row =
            self.row(Measure::Stability, name, Good::Lower, self.rules.stability, |at, places| {
                let mean = mean_of(places, |place| self.times[at][place]);
                (mean > 0.0).then(|| deviation(places, |place| beyond[at][place]) / mean)
            });
        if let [Some(a), Some(b)] = judged {
            (row.a, row.b, row.ratio) = (a, b, (a > 0.0).then(|| b / a));
        }
        // Next to nothing is easily doubled.
        let judgement = match (row.b - row.a).abs() > self.rules.stability_points {
            true => row.judgement,
            false => Judgement::NoDifference,
        };
        Row { decides: true, judgement, ..row }
    }

    /// As if both had had the same batches: means by shape, weighted alike. None where fewer than
    /// half of the steps of a run have a counterpart in the other.
    fn same_shapes(&self) -> Option<Row> {
        let count = |at: usize| {
            let mut counts = vec![0usize; self.kinds];
            self.shapes[at].iter().for_each(|&shape| counts[shape] += 1);
            counts
        };
        let counts = [count(0), count(1)];
        let shared = |at: usize| {
            let both = counts[at].iter().zip(&counts[1 - at]).filter(|(_, other)| **other > 0);
            both.map(|(own, _)| own).sum::<usize>()
        };
        if (0..2).any(|at| 2 * shared(at) < self.times[at].len()) {
            return None;
        }
        let mut sums = [vec![(0.0, 0.0); self.kinds], vec![(0.0, 0.0); self.kinds]];
        let mut both = |places: &[Vec<usize>; 2]| -> Option<(f64, f64)> {
            for at in 0..2 {
                sums[at].fill((0.0, 0.0));
                for &place in &places[at] {
                    let (time, count) = &mut sums[at][self.shapes[at][place]];
                    *time += self.times[at][place];
                    *count += 1.0;
                }
            }
            standardised(&sums)
        };
        let whole = [0, 1].map(|at| (0..self.times[at].len()).collect::<Vec<_>>());
        let (a, b) = both(&whole)?;
        let ratio = |(a, b): (f64, f64)| (a > 0.0 && b > 0.0).then(|| (b / a).ln());
        let logs = self.draws.interval(self.blocks, |places| ratio(both(places)?));
        let row = finish(
            Row::new(Measure::SameShapes, "step time, same shapes", a, b),
            logs.map(|logs| logs.map(f64::exp)),
            Good::Lower,
            self.rules.pace,
        );
        Some(Row { decides: true, ..row })
    }

    /// The same for the step in the middle, which a few slow ones do not move: each time over the
    /// usual one of its shape.
    fn same_shapes_median(&self) -> Row {
        let mut usual = vec![Vec::new(); self.kinds];
        for (times, shapes) in self.times.iter().zip(&self.shapes) {
            times.iter().zip(shapes).for_each(|(time, &shape)| usual[shape].push(*time));
        }
        let usual: Vec<f64> = usual.iter_mut().map(|times| median(times).unwrap_or(1.0)).collect();
        let pooled = median(&mut self.times.concat()).unwrap_or_default();
        let shares = [0, 1].map(|at| {
            let paired = self.times[at].iter().zip(&self.shapes[at]);
            let share = |(time, &shape): (&f64, &usize)| time / usual[shape].max(f64::MIN_POSITIVE);
            paired.map(share).collect::<Vec<f64>>()
        });
        let mut scratch = Vec::new();
        let name = "median step, same shapes";
        let row = self.shown(Measure::SameShapesMedian, name, Good::Lower, |at, places| {
            scratch.clear();
            scratch.extend(places.iter().map(|&place| shares[at][place]));
            median(&mut scratch)
        });
        // As seconds of a usual step again.
        Row { a: row.a * pooled, b: row.b * pooled, decides: true, ..row }
    }

    /// Other programs slow a few steps down, and so the mean; the step in the middle stays. Where
    /// that one did not move the same way, sure of itself or not, the mean must differ by more.
    fn alone_or_not(&self, mean: Row, median: &Row) -> Row {
        let (moved, middle) = (mean.change(), median.change());
        let agrees = moved.zip(middle).is_some_and(|(moved, middle)| {
            moved.signum() == middle.signum() && middle.abs() > self.rules.pace
        });
        if agrees {
            return mean;
        }
        let interval = mean.interval;
        finish(mean, interval, Good::Lower, self.rules.pace.max(self.rules.lone_mean))
    }

    /// The time outside of steps happened once: only the steps are drawn again.
    fn total_time(&self) -> Row {
        let [a, b] = self.runs.map(|run| run.lasted.0);
        let rest = self.runs.map(|run| (run.lasted.0 - run.times().iter().sum::<f64>()).max(0.0));
        let mut row = self.row(
            Measure::TotalTime,
            "total time",
            Good::Lower,
            self.rules.pace,
            |at, places| {
                Some(rest[at] + places.iter().map(|&place| self.times[at][place]).sum::<f64>())
            },
        );
        (row.a, row.b) = (a, b);
        if self.runs[0].steps.len() != self.runs[1].steps.len() {
            (row.ratio, row.interval) = (None, None);
            row.judgement = Judgement::NotComparable;
        }
        row
    }

    /// Ranks side by side, for information: a slow rank shows in the step time, which decides.
    fn ranks(&self) -> Vec<Row> {
        let [Some(a), Some(b)] = self.runs.map(|run| run.ranks.as_ref()) else { return Vec::new() };
        let informs = |measure, name: &str, a: f64, b: f64| {
            finish(Row::new(measure, name, a, b), None, Good::Neither, self.rules.pace)
        };
        let whole = |sums: &RankSums, rank: usize| {
            sums.per_step(sums.busy[rank] + sums.starved.get(rank).copied().unwrap_or(0.0))
        };
        let both = a.busy.len().min(b.busy.len());
        let mut rows: Vec<Row> = (0..both)
            .map(|rank| {
                let name = format!("rank {rank}, per step");
                informs(Measure::RankStep, &name, whole(a, rank), whole(b, rank))
            })
            .collect();
        let (a, b) = (a.per_step(a.reduce), b.per_step(b.reduce));
        rows.push(informs(Measure::Reduce, "sum of gradients, per step", a, b));
        rows
    }

    /// Devices that both runs sampled.
    fn shared_devices(&self) -> impl Iterator<Item = [&'a DeviceSeries; 2]> {
        let [one, other] = self.runs;
        one.devices.iter().filter_map(move |a| {
            let b = other.devices.iter().find(|b| same_device(a, b))?;
            Some([a, b])
        })
    }

    fn utilisation(&self, a: &DeviceSeries, b: &DeviceSeries) -> Option<Row> {
        let series = [&a.utilisation, &b.utilisation];
        let whole = series.map(|s| (0..s.len()).collect::<Vec<_>>());
        if series.iter().any(|series| series.is_empty()) {
            return None;
        }
        let mean = |at: usize, places: &[usize]| mean_of(places, |place| series[at][place]);
        let blocks = series.map(|series| Blocks::of(series));
        // A few samples are not enough to estimate noise.
        let enough = series.iter().all(|series| series.len() >= self.rules.least_steps);
        let interval = self
            .draws
            .interval(blocks, |places| Some(mean(1, &places[1]) - mean(0, &places[0])))
            .filter(|_| enough);
        let gpu = a.role != DeviceRole::Host;
        // A busy CPU is neither good nor bad by itself.
        let good = if gpu { Good::Higher } else { Good::Neither };
        let name = format!("utilisation of {}", a.device);
        let row = Row::new(Measure::Utilisation, &name, mean(0, &whole[0]), mean(1, &whole[1]));
        let mut row = finish(row, interval, good, self.rules.utilisation);
        if interval.is_none() {
            row.judgement = Judgement::NotComparable;
        }
        Some(Row { decides: gpu, ..row })
    }

    fn memory(&self, a: &DeviceSeries, b: &DeviceSeries) -> Option<Row> {
        let peak = |series: &DeviceSeries| series.memory.iter().copied().reduce(f64::max);
        let own = a.role != DeviceRole::Host || a.device == PROCESS;
        let name = format!("peak memory of {}", a.device);
        let row = Row::new(Measure::Memory, &name, peak(a)?, peak(b)?);
        // Other programs share the machine's memory.
        let good = if own { Good::Lower } else { Good::Neither };
        Some(Row { decides: own, ..finish(row, None, good, self.rules.memory) })
    }

    fn shown(
        &self,
        measure: Measure,
        name: &str,
        good: Good,
        figure: impl FnMut(usize, &[usize]) -> Option<f64>,
    ) -> Row {
        self.row(measure, name, good, self.rules.pace, figure)
    }

    /// A row of a figure that each run has by itself.
    fn row(
        &self,
        measure: Measure,
        name: &str,
        good: Good,
        least: f64,
        mut figure: impl FnMut(usize, &[usize]) -> Option<f64>,
    ) -> Row {
        let whole = [0, 1].map(|at| (0..self.times[at].len()).collect::<Vec<_>>());
        let [a, b] = [0, 1].map(|at| figure(at, &whole[at]).unwrap_or_default());
        let logs = self.draws.interval(self.blocks, |places| {
            let (a, b) = (figure(0, &places[0])?, figure(1, &places[1])?);
            (a > 0.0 && b > 0.0).then(|| (b / a).ln())
        });
        finish(Row::new(measure, name, a, b), logs.map(|logs| logs.map(f64::exp)), good, least)
    }
}

impl Row {
    pub(super) fn new(measure: Measure, name: &str, a: f64, b: f64) -> Row {
        let ratio = (a > 0.0).then(|| b / a);
        let judgement = Judgement::NoDifference;
        let name = name.to_string();
        Row { measure, name, a, b, ratio, interval: None, judgement, decides: false }
    }
}

/// Judges a row: beyond the interval, where there is one, and by enough to matter.
pub(super) fn finish(mut row: Row, interval: Option<Interval>, good: Good, least: f64) -> Row {
    row.interval = interval;
    let Some(change) = row.change() else {
        row.judgement = Judgement::NotComparable;
        return row;
    };
    let none = if row.measure.is_share() { 0.0 } else { 1.0 };
    let noise = interval.is_some_and(|interval| interval.holds(none));
    row.judgement = match good {
        _ if noise || change.abs() <= least => Judgement::NoDifference,
        Good::Neither => Judgement::Different,
        Good::Lower if change < 0.0 => Judgement::Better,
        Good::Higher if change > 0.0 => Judgement::Better,
        Good::Lower | Good::Higher => Judgement::Worse,
    };
    row
}

fn same_device(one: &DeviceSeries, other: &DeviceSeries) -> bool {
    one.role == other.role && one.device == other.device
}

/// Blocks for step times: as long as the times remember each other, whether they are taken as
/// they are or without what their shapes explain.
fn step_blocks(times: &[f64], shapes: &[usize], kinds: usize) -> Blocks {
    let mut sums = vec![(0.0, 0.0); kinds];
    for (time, &shape) in times.iter().zip(shapes) {
        sums[shape].0 += time;
        sums[shape].1 += 1.0;
    }
    let rest =
        times.iter().zip(shapes).map(|(time, &shape)| time / (sums[shape].0 / sums[shape].1));
    let rest = Blocks::of(&rest.collect::<Vec<_>>());
    let plain = Blocks::of(times);
    if plain.length > rest.length { plain } else { rest }
}

/// Mean times of both runs over the shapes they share. The weight of a shape is the
/// harmonic mean of how often each run had it.
fn standardised(sums: &[Vec<(f64, f64)>; 2]) -> Option<(f64, f64)> {
    let (mut a, mut b, mut weights) = (0.0, 0.0, 0.0);
    for (one, other) in sums[0].iter().zip(&sums[1]) {
        if one.1 == 0.0 || other.1 == 0.0 {
            continue;
        }
        let weight = one.1 * other.1 / (one.1 + other.1);
        a += weight * one.0 / one.1;
        b += weight * other.0 / other.1;
        weights += weight;
    }
    (weights > 0.0).then(|| (a / weights, b / weights))
}

fn mean_of(places: &[usize], value: impl Fn(usize) -> f64) -> f64 {
    places.iter().map(|&place| value(place)).sum::<f64>() / places.len().max(1) as f64
}

fn deviation(places: &[usize], value: impl Fn(usize) -> f64) -> f64 {
    let mean = mean_of(places, &value);
    mean_of(places, |place| (value(place) - mean).powi(2)).sqrt()
}
