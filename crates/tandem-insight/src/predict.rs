//! Predicts the step time with other workers, another depth or other costs.
//!
//! In: costs of batches as they were measured, and a [`Setting`]. Out: [`Predicted`], from the
//! pipeline's own simulation of the trainer's route, with an interval from drawing the measured
//! batches again (bootstrap). Uses measured costs only.

use crate::measured::{BatchCost, Measured, bounded};
use serde::{Deserialize, Serialize};
use tandem_pipeline::cost::Cost;
use tandem_pipeline::simulate::{Costs, Prediction, RouteModel, StageModel};
use tandem_units::{Seconds, Seed};

/// Settings that change neither the data nor the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Workers that load and preprocess.
    pub workers: usize,
    /// Batches that may wait for the model, including the one in training.
    pub depth: usize,
}

/// A step time to expect.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Predicted {
    /// Seconds from one batch to the next.
    pub step: f64,
    /// Lower end of the 90 % interval.
    pub low: f64,
    /// Upper end of the 90 % interval.
    pub high: f64,
    /// Share of its time in which the model waits.
    pub stall: f64,
    /// Share of its time in which the model works.
    pub model_busy: f64,
}

/// Costs of one batch at each stage, seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Item {
    /// Load and preprocess, which share a worker.
    pub assemble: f64,
    pub align: f64,
    pub transfer: f64,
    pub train: f64,
}

/// The items of a run, in order, without the extremes of each stage: see [`bounded`].
pub fn items(run: &Measured) -> Vec<Item> {
    let cost = |of: fn(&BatchCost) -> f64| bounded(run.batches.iter().map(of).collect());
    let assemble = cost(|batch| batch.load + batch.preprocess);
    let (align, transfer) = (cost(|batch| batch.align), cost(|batch| batch.transfer));
    let train = cost(|batch| batch.train);
    (0..run.batches.len())
        .map(|n| Item {
            assemble: assemble[n],
            align: align[n],
            transfer: transfer[n],
            train: train[n],
        })
        .collect()
}

/// The data side of one run with the model of another, as on two devices that do not disturb
/// each other.
pub fn joined(data: &Measured, model: &Measured) -> Vec<Item> {
    // Both runs take the same batches; where one is shorter its batches come round again.
    let (data, model) = (items(data), items(model));
    let join = |(data, model): (&Item, &Item)| Item { train: model.train, ..*data };
    data.iter().zip(model.iter().cycle()).map(join).collect()
}

/// CPU work that no overlap hides: the minimum seconds per batch.
pub fn host_floor(run: &Measured) -> Option<f64> {
    let share = run.utilisation(tandem_telemetry::event::DeviceRole::Host)?;
    Some(share * run.per_batch())
}

/// Places between search and copy, as the trainer has them.
const ALIGNED: usize = 2;
/// Wake-up latency of a waiting thread.
const WAKE: Seconds = Seconds(60e-6);
/// Batches of a simulated run: enough that its beginning does not count.
const LONG: usize = 600;
const DRAWS: u64 = 60;

/// Predicts a run of these items. `floor` is the least a batch can take.
pub fn predict(items: &[Item], setting: Setting, floor: f64) -> Predicted {
    if items.is_empty() {
        return Predicted { step: 0.0, low: 0.0, high: 0.0, stall: 0.0, model_busy: 0.0 };
    }
    let line = line(setting);
    let in_order: Vec<Item> = items.iter().copied().cycle().take(LONG.max(items.len())).collect();
    let prediction = simulate(&line, &in_order);
    let step = prediction.step.0.max(floor);
    let mut drawn: Vec<f64> =
        (0..DRAWS).map(|draw| simulate(&line, &redraw(items, draw)).step.0.max(floor)).collect();
    drawn.sort_by(f64::total_cmp);
    let at = |share: f64| drawn[((drawn.len() - 1) as f64 * share).round() as usize];
    let train = in_order.iter().map(|item| item.train).sum::<f64>() / in_order.len() as f64;
    Predicted {
        step,
        low: at(0.05).min(step),
        high: at(0.95).max(step),
        stall: prediction.stall,
        model_busy: (train / step.max(1e-12)).min(1.0),
    }
}

/// The trainer's route behind its source.
fn line(setting: Setting) -> RouteModel {
    let Setting { workers, depth } = setting;
    let stage = |name, workers, slots| StageModel {
        name,
        cost: Cost::constant(Seconds(0.0)),
        workers,
        slots,
    };
    let workers = workers.max(1);
    let stages = vec![
        stage("load", workers, depth.max(workers + 1)),
        stage("align", 1, ALIGNED),
        stage("transfer", 1, depth.max(1)),
    ];
    RouteModel { stages, consumer: Cost::constant(Seconds(0.0)), wake: WAKE }
}

fn simulate(line: &RouteModel, items: &[Item]) -> Prediction {
    let list = |cost: fn(&Item) -> f64| items.iter().map(|item| Seconds(cost(item))).collect();
    let stages =
        vec![list(|item| item.assemble), list(|item| item.align), list(|item| item.transfer)];
    line.simulate(&Costs { stages, consumer: list(|item| item.train) })
}

/// As many items again, each drawn from all: another run that could have been.
fn redraw(items: &[Item], draw: u64) -> Vec<Item> {
    let seed = Seed(0x7a2d_e000).derive(draw);
    let one = |place: u64| items[(seed.derive(place).0 % items.len() as u64) as usize];
    let drawn: Vec<Item> = (0..items.len() as u64).map(one).collect();
    drawn.iter().copied().cycle().take(LONG.max(drawn.len())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(count: usize, item: Item) -> Vec<Item> {
        vec![item; count]
    }

    #[track_caller]
    fn check(item: Item, workers: usize, step: f64) {
        let got = predict(&items(40, item), Setting { workers, depth: 4 }, 0.0);
        assert!((got.step / step - 1.0).abs() < 0.02, "{got:?}, wanted {step}");
        assert!(got.low <= got.step && got.step <= got.high);
    }

    #[test]
    fn a_step_takes_as_long_as_its_slowest_stage_and_workers_share_loading() {
        let even = Item { assemble: 0.09, align: 0.01, transfer: 0.002, train: 0.03 };
        check(even, 1, 0.09);
        check(even, 2, 0.045);
        check(even, 8, 0.03);
        check(Item { train: 0.2, ..even }, 1, 0.2);
        check(Item { transfer: 0.2, ..even }, 4, 0.2);
    }

    #[test]
    fn fully_loaded_cpu_cores_are_a_lower_limit() {
        let item = Item { assemble: 0.09, align: 0.01, transfer: 0.002, train: 0.03 };
        let got = predict(&items(10, item), Setting { workers: 8, depth: 4 }, 0.08);
        assert_eq!((got.step, got.low, got.high), (0.08, 0.08, 0.08));
    }

    #[test]
    fn uneven_costs_widen_the_interval_and_a_deeper_buffer_helps() {
        let spread: Vec<Item> = (0..50)
            .map(|n| Item {
                transfer: if n % 5 == 0 { 0.09 } else { 0.001 },
                train: 0.02,
                ..Item::default()
            })
            .collect();
        let shallow = predict(&spread, Setting { workers: 1, depth: 2 }, 0.0);
        let deep = predict(&spread, Setting { workers: 1, depth: 8 }, 0.0);
        assert!(deep.step < 0.9 * shallow.step, "{deep:?} {shallow:?}");
        assert!(shallow.high > 1.05 * shallow.low, "{shallow:?}");
    }
}
