//! Stages from the command line, run and predicted.

use serde::Serialize;
use std::str::FromStr;
use tandem_pipeline::cost::Cost;
use tandem_pipeline::rehearse::{Spend, rehearse, run_serially};
use tandem_pipeline::simulate::{RouteModel, StageModel, slowest};
use tandem_pipeline::{PipelineError, Setup};
use tandem_units::{Seconds, Seed};

/// `NAME=MS[,CV[,WORKERS]]`
#[derive(Clone, Debug, PartialEq)]
pub struct StageArg {
    name: String,
    cost: CostArg,
    workers: usize,
}

/// `MS[,CV]`
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostArg {
    milliseconds: f64,
    variation: f64,
}

/// Measured and predicted results; times in milliseconds, shares from 0 to 1.
#[derive(Serialize)]
pub struct Outcome {
    /// The slowest stage or the consumer, which bounds the step.
    pub slowest: String,
    /// Its time per item with all its workers.
    pub slowest_ms: f64,
    /// Time per item without overlap.
    pub in_line_ms: f64,
    measured: Figures,
    predicted: Figures,
}

#[derive(Serialize)]
struct Figures {
    step_ms: f64,
    variation: f64,
    stall: f64,
    stages: Vec<Stage>,
}

#[derive(Serialize)]
struct Stage {
    name: String,
    busy: f64,
    starved: f64,
    blocked: f64,
}

/// Runs the stages on real threads and in the simulation, with the same costs.
pub fn run(
    stages: &[StageArg],
    consumer: CostArg,
    depth: usize,
    items: usize,
    spend: Spend,
) -> Result<Outcome, PipelineError> {
    let line = line(stages, consumer, depth);
    let costs = line.draw(items, Seed(1));
    let predicted = line.simulate(&costs);
    let measured = rehearse(&line, &costs, spend, Setup::default())?;
    let shares = |stage: &tandem_pipeline::control::StageTotals| {
        let [busy, starved, blocked] =
            [stage.busy, stage.starved, stage.blocked].map(|time| time.as_secs_f64());
        let all = (busy + starved + blocked).max(1e-9);
        let name = stage.name.to_string();
        Stage { name, busy: busy / all, starved: starved / all, blocked: blocked / all }
    };
    let predict = |(stage, shares): (&StageModel, &tandem_pipeline::simulate::Shares)| Stage {
        name: stage.name.to_string(),
        busy: shares.busy,
        starved: shares.starved,
        blocked: shares.blocked,
    };
    let (name, time) = slowest(&line);
    // A few rounds are enough: the work is always the same.
    let in_line_ms = run_serially(&line.draw(items.min(5), Seed(1)), spend).0 * 1e3;
    Ok(Outcome {
        slowest: name.to_string(),
        slowest_ms: time.0 * 1e3,
        in_line_ms,
        measured: Figures {
            step_ms: measured.step.0 * 1e3,
            variation: measured.variation,
            stall: measured.stall,
            stages: measured.stages.iter().map(shares).collect(),
        },
        predicted: Figures {
            step_ms: predicted.step.0 * 1e3,
            variation: predicted.variation,
            stall: predicted.stall,
            stages: line.stages.iter().zip(&predicted.stages).map(predict).collect(),
        },
    })
}

fn line(stages: &[StageArg], consumer: CostArg, depth: usize) -> RouteModel {
    let last = stages.len().saturating_sub(1);
    let stage = |(n, stage): (usize, &StageArg)| StageModel {
        // Stage names are `&'static str`; the few from the command line are leaked.
        name: Box::leak(stage.name.clone().into_boxed_str()),
        cost: stage.cost.cost(),
        workers: stage.workers,
        slots: if n == last { depth } else { stage.workers + 2 },
    };
    let stages = stages.iter().enumerate().map(stage).collect();
    RouteModel { stages, consumer: consumer.cost(), wake: Seconds(0.0) }
}

impl Outcome {
    /// Lines of the table: what, measured, predicted.
    pub fn rows(&self) -> Vec<(String, String, String)> {
        let of = |show: &dyn Fn(&Figures) -> String| (show(&self.measured), show(&self.predicted));
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let row = |what: &str, (measured, predicted): (String, String)| {
            (what.to_string(), measured, predicted)
        };
        let mut rows = vec![
            row("step", of(&|figures| format!("{:.3} ms", figures.step_ms))),
            row("variation", of(&|figures| percent(figures.variation))),
            row("consumer stall", of(&|figures| percent(figures.stall))),
        ];
        for (n, stage) in self.measured.stages.iter().enumerate() {
            let shares = |figures: &Figures| {
                let Stage { busy, starved, blocked, .. } = &figures.stages[n];
                let [busy, starved, blocked] =
                    [busy, starved, blocked].map(|share| format!("{:.0}", share * 100.0));
                format!("{busy}/{starved}/{blocked} %")
            };
            let what = format!("{} busy/starved/blocked", stage.name);
            rows.push(row(&what, of(&shares)));
        }
        rows
    }
}

impl CostArg {
    fn cost(self) -> Cost {
        Cost { mean: Seconds(self.milliseconds / 1e3), variation: self.variation }
    }
}

impl FromStr for CostArg {
    type Err = String;

    fn from_str(text: &str) -> Result<CostArg, String> {
        let mut parts = text.split(',');
        let cost = parse_cost(&mut parts)?;
        parts.next().map_or(Ok(cost), |rest| Err(format!("`{rest}` is one part too many")))
    }
}

impl FromStr for StageArg {
    type Err = String;

    fn from_str(text: &str) -> Result<StageArg, String> {
        let (name, rest) = text.split_once('=').ok_or("expected NAME=MS")?;
        let mut parts = rest.split(',');
        let cost = parse_cost(&mut parts)?;
        let workers = match parts.next() {
            None => 1,
            Some(count) => match count.parse() {
                Ok(workers @ 1..=256) => workers,
                _ => return Err(format!("`{count}` is not a number of workers from 1 to 256")),
            },
        };
        match parts.next() {
            Some(rest) => Err(format!("`{rest}` is one part too many")),
            None if name.is_empty() => Err("the stage needs a name".into()),
            None => Ok(StageArg { name: name.into(), cost, workers }),
        }
    }
}

fn parse_cost<'a>(parts: &mut impl Iterator<Item = &'a str>) -> Result<CostArg, String> {
    let mut number = |what: &str, most: f64, default: Option<f64>| match (parts.next(), default) {
        (None, Some(default)) => Ok(default),
        (None, None) | (Some(""), _) => Err(format!("the {what} is missing")),
        (Some(text), _) => match text.parse::<f64>() {
            Ok(value) if (0.0..=most).contains(&value) => Ok(value),
            _ => Err(format!("`{text}` is not a {what} from 0 to {most}")),
        },
    };
    let milliseconds = number("time in milliseconds", 60_000.0, None)?;
    let variation = number("variation", 3.0, Some(0.0))?;
    Ok(CostArg { milliseconds, variation })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<(&str, f64, f64, usize), &str>) {
        let expected = expected.map_err(str::to_string).map(|(name, ms, variation, workers)| {
            let cost = CostArg { milliseconds: ms, variation };
            StageArg { name: name.into(), cost, workers }
        });
        assert_eq!(text.parse::<StageArg>(), expected);
    }

    #[test]
    fn a_stage_is_a_name_and_up_to_three_numbers() {
        check("load=20", Ok(("load", 20.0, 0.0, 1)));
        check("mel=1.5,0.5", Ok(("mel", 1.5, 0.5, 1)));
        check("mel=1.5,0.5,4", Ok(("mel", 1.5, 0.5, 4)));
    }

    #[test]
    fn stages_are_run_and_predicted() {
        let stages = ["one=0.2", "two=0.2,0.5,2"].map(|text| text.parse().unwrap());
        let outcome = run(&stages, "1".parse().unwrap(), 2, 10, Spend::Waiting).unwrap();
        assert_eq!(outcome.slowest, "consumer");
        assert!((outcome.predicted.step_ms - 1.0).abs() < 1e-9, "depth two hides the rest");
        assert!(outcome.measured.step_ms >= 1.0 && outcome.in_line_ms >= 1.2);
        let names: Vec<String> = outcome.rows().into_iter().map(|(what, ..)| what).collect();
        let shares = |name| format!("{name} busy/starved/blocked");
        let expected = ["step", "variation", "consumer stall"].map(String::from);
        assert_eq!(names[..3], expected);
        assert_eq!(names[3..], [shares("one"), shares("two")]);
    }

    #[test]
    fn an_invalid_stage_is_refused_with_the_reason() {
        check("load", Err("expected NAME=MS"));
        check("load=", Err("the time in milliseconds is missing"));
        check("load=fast", Err("`fast` is not a time in milliseconds from 0 to 60000"));
        check("load=1,-1", Err("`-1` is not a variation from 0 to 3"));
        check("load=1,NaN", Err("`NaN` is not a variation from 0 to 3"));
        check("load=1,1,0", Err("`0` is not a number of workers from 1 to 256"));
        check("load=1,1,1,1", Err("`1` is one part too many"));
        check("=1", Err("the stage needs a name"));
    }
}
