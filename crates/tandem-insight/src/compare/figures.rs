//! The comparison of two runs of which one is a text log: printed figures instead of single steps.
//!
//! In: [`RunFigures`] of both. Out: rows with ratio, interval and judgement. The shapes of the batches are unknown, so
//! utterances per second decide. The interval of a mean follows from its standard error, instead of from draws.

use super::measures::{Good, finish};
use super::{CompareRules, Comparison, Judgement, Measure, Row, Side, sentence, verdict};
use crate::bootstrap::{Interval, normal_quantile};
use crate::run_source::{FigureDevice, RunFigures};

pub(super) fn compare_figures(a: &RunFigures, b: &RunFigures, rules: &CompareRules) -> Comparison {
    let interval = mean_interval(a, b, rules.level);
    let pace = |measure, name: &str, a: f64, b: f64, good, interval| {
        finish(Row::new(measure, name, a, b), interval, good, rules.pace)
    };
    let mut rows = vec![
        pace(Measure::MeanStep, "mean step time", a.mean, b.mean, Good::Lower, interval),
        Row {
            decides: true,
            ..pace(
                Measure::Throughput,
                "samples/s",
                a.samples_per_second,
                b.samples_per_second,
                Good::Higher,
                mean_interval_of(b.samples_per_second / a.samples_per_second, a, b, rules.level),
            )
        },
    ];
    rows.extend(stability(a, b, rules));
    let shared = || {
        a.devices.iter().filter_map(|one| {
            let same = |other: &&FigureDevice| one.role == other.role && one.device == other.device;
            Some((one, b.devices.iter().find(same)?))
        })
    };
    rows.extend(shared().filter_map(|(a, b)| utilisation(a, b)));
    rows.extend(shared().filter_map(|(a, b)| memory(a, b, rules)));
    rows.extend(total_time(a, b, rules));
    let judgement = verdict(&rows);
    Comparison {
        a: side(a),
        b: side(b),
        sentence: sentence(&rows, judgement, rules),
        verdict: judgement,
        notes: notes(a, b),
        rows,
        rules: *rules,
    }
}

fn side(run: &RunFigures) -> Side {
    Side { run: run.path.clone(), steps: run.steps, batch_size: run.batch_size, block: 1 }
}

fn notes(a: &RunFigures, b: &RunFigures) -> Vec<String> {
    let mut notes = vec![
        "a log has no single steps: means are compared, shapes of batches are not known, and utterances \
         per second decide"
            .to_string(),
    ];
    if let (Some(one), Some(other)) = (a.batch_size, b.batch_size)
        && one != other
    {
        notes.push(format!("batch sizes differ ({one} and {other})"));
    }
    notes
}

/// The one without `judged` cannot decide: a small part of a small number is easily doubled.
fn stability(a: &RunFigures, b: &RunFigures, rules: &CompareRules) -> Option<Row> {
    let name = "stability (std/mean, by shape)";
    let row = Row::new(Measure::Stability, name, a.by_shape?, b.by_shape?);
    let enough = (row.b - row.a).abs() > rules.stability_points;
    let row = finish(row, None, Good::Lower, rules.stability);
    let judgement = if enough { row.judgement } else { Judgement::NoDifference };
    Some(Row { decides: true, judgement, ..row })
}

/// Without single samples their noise is not known.
fn utilisation(a: &FigureDevice, b: &FigureDevice) -> Option<Row> {
    let name = format!("utilisation of {}", a.device);
    let row = Row::new(Measure::Utilisation, &name, a.busy?, b.busy?);
    Some(Row { judgement: Judgement::NotComparable, ..row })
}

fn memory(a: &FigureDevice, b: &FigureDevice, rules: &CompareRules) -> Option<Row> {
    let name = format!("peak memory of {}", a.device);
    let row = Row::new(Measure::Memory, &name, a.peak_memory?, b.peak_memory?);
    let good = if a.is_own() { Good::Lower } else { Good::Neither };
    Some(Row { decides: a.is_own(), ..finish(row, None, good, rules.memory) })
}

fn total_time(a: &RunFigures, b: &RunFigures, rules: &CompareRules) -> Option<Row> {
    let row = Row::new(Measure::TotalTime, "total time", a.lasted?, b.lasted?);
    match a.steps == b.steps {
        true => Some(finish(row, None, Good::Lower, rules.pace)),
        false => Some(Row { ratio: None, judgement: Judgement::NotComparable, ..row }),
    }
}

/// Where the ratio of the mean step times lies.
fn mean_interval(a: &RunFigures, b: &RunFigures, level: f64) -> Option<Interval> {
    mean_interval_of(b.mean / a.mean, a, b, level)
}

/// Throughput has the noise of the step time: the number of utterances in a step hardly changes.
fn mean_interval_of(ratio: f64, a: &RunFigures, b: &RunFigures, level: f64) -> Option<Interval> {
    let off = normal_quantile((1.0 + level) / 2.0) * a.error.hypot(b.error);
    (ratio.is_finite() && ratio > 0.0)
        .then(|| Interval { low: ratio * (-off).exp(), high: ratio * off.exp() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_telemetry::event::DeviceRole;

    fn run(name: &str, mean: f64, error: f64) -> RunFigures {
        RunFigures {
            path: name.into(),
            steps: 200,
            batch_size: Some(8),
            mean,
            error,
            samples_per_second: 8.0 / mean,
            frames_per_second: None,
            by_shape: Some(0.05),
            devices: vec![FigureDevice {
                device: "cuda:0".into(),
                role: DeviceRole::Model,
                busy: Some(0.9),
                peak_memory: Some(1e9),
            }],
            lasted: Some(200.0 * mean),
        }
    }

    #[test]
    fn a_slower_log_is_worse_and_noise_is_not() {
        let rules = CompareRules::default();
        let compared = |b: &RunFigures| compare_figures(&run("a", 0.1, 0.005), b, &rules);
        let worse = compared(&run("b", 0.12, 0.005));
        assert_eq!(worse.verdict, Judgement::Worse, "{}", worse.sentence);
        assert!(worse.sentence.contains("samples/s -16.7 %"), "{}", worse.sentence);
        assert_eq!(compared(&run("b", 0.08, 0.005)).verdict, Judgement::Better);
        let noise = compared(&run("b", 0.103, 0.02));
        assert_eq!(noise.verdict, Judgement::NoDifference, "{}", noise.sentence);
        let busy = noise.rows.iter().find(|row| row.measure == Measure::Utilisation).unwrap();
        assert_eq!(busy.judgement, Judgement::NotComparable);
    }

    #[test]
    fn more_memory_and_less_stability_are_worse() {
        let rules = CompareRules::default();
        let mut large = run("b", 0.1, 0.005);
        large.devices[0].peak_memory = Some(1.2e9);
        let found = compare_figures(&run("a", 0.1, 0.005), &large, &rules);
        assert_eq!(found.verdict, Judgement::Worse, "{}", found.sentence);
        let uneven = RunFigures { by_shape: Some(0.4), ..run("b", 0.1, 0.005) };
        let found = compare_figures(&run("a", 0.1, 0.005), &uneven, &rules);
        assert_eq!(found.verdict, Judgement::Worse, "{}", found.sentence);
    }
}
