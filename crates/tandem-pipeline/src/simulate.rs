//! Predicts the throughput of a route without running it.
//!
//! In: a [`RouteModel`] of stages with their costs, workers and slots. Out: a [`Prediction`] of step
//! time, consumer stall and each stage's shares. The rules are those of the real queues: a worker
//! reserves an output slot, then takes the next input; results leave in the order of the inputs; a
//! slot is free again when the next stage takes the item, and at the end when the consumer is
//! done with it. Because items keep their order, the moments of item `n` follow from those of
//! earlier items alone, so every event is computed once, exactly, without a calendar of events.
//! [`crate::rehearse`] runs the same route on real threads.

use crate::cost::Cost;
use tandem_units::{Seconds, Seed};

/// The costs of a route's stages and of its consumer. The source always has an item.
#[derive(Clone, Debug)]
pub struct RouteModel {
    pub stages: Vec<StageModel>,
    pub consumer: Cost,
    /// Time from the moment a waiting thread could continue to the moment it does.
    pub wake: Seconds,
}

#[derive(Clone, Copy, Debug)]
pub struct StageModel {
    pub name: &'static str,
    pub cost: Cost,
    pub workers: usize,
    /// The items of its output queue, as in [`crate::QueueLimits`]; for the last stage this is the depth.
    pub slots: usize,
}

/// The costs of a run, per item.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    /// One list per stage.
    pub stages: Vec<Vec<Seconds>>,
    pub consumer: Vec<Seconds>,
}

/// The predicted run, from the consumer's first item on.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Mean time from one item to the next at the consumer.
    pub step: Seconds,
    /// Standard deviation of that time divided by its mean.
    pub variation: f64,
    /// Share of its time in which the consumer has no item.
    pub stall: f64,
    pub stages: Vec<Shares>,
}

/// Shares of the time of a stage's workers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shares {
    pub busy: f64,
    /// Without input.
    pub starved: f64,
    /// Without a slot for the result.
    pub blocked: f64,
}

impl RouteModel {
    pub fn draw(&self, items: usize, seed: Seed) -> Costs {
        let stage =
            |(n, stage): (usize, &StageModel)| stage.cost.draw(items, seed.derive(n as u64 + 1));
        Costs {
            stages: self.stages.iter().enumerate().map(stage).collect(),
            consumer: self.consumer.draw(items, seed.derive(0)),
        }
    }

    /// Predicts a run with these costs.
    pub fn simulate(&self, costs: &Costs) -> Prediction {
        let mut state = Simulation::new(self, costs.consumer.len());
        for item in 0..costs.consumer.len() {
            let mut arrived = 0.0;
            for (stage, list) in costs.stages.iter().enumerate() {
                arrived = state.pass(stage, item, arrived, list[item].0);
            }
            state.consume(item, arrived, costs.consumer[item].0);
        }
        state.predict()
    }
}

/// The mean time per item of the slowest stage with all its workers, or of the consumer: no step
/// can be shorter.
pub fn slowest(route: &RouteModel) -> (&'static str, Seconds) {
    let stages = route.stages.iter().map(|s| (s.name, s.cost.mean.0 / s.workers as f64));
    let consumer = ("consumer", route.consumer.mean.0);
    let (name, time) =
        stages.chain([consumer]).max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(consumer);
    (name, Seconds(time))
}

struct Simulation<'a> {
    route: &'a RouteModel,
    // Per stage: when each worker is free, when each item began, when the last item left.
    free: Vec<Vec<f64>>,
    begun: Vec<Vec<f64>>,
    left: Vec<f64>,
    spent: Vec<Shares>,
    // Per item: when the consumer began and ended it.
    from: Vec<f64>,
    until: Vec<f64>,
    stalled: f64,
}

impl<'a> Simulation<'a> {
    fn new(route: &'a RouteModel, items: usize) -> Simulation<'a> {
        let stages = route.stages.len();
        Simulation {
            route,
            free: route.stages.iter().map(|stage| vec![0.0; stage.workers.max(1)]).collect(),
            begun: vec![Vec::with_capacity(items); stages],
            left: vec![0.0; stages],
            spent: vec![Shares::default(); stages],
            from: Vec::with_capacity(items),
            until: Vec::with_capacity(items),
            stalled: 0.0,
        }
    }

    /// Moves an item that arrived at `arrived` through a stage; returns when it leaves.
    fn pass(&mut self, stage: usize, item: usize, arrived: f64, cost: f64) -> f64 {
        let workers = self.free[stage].iter().copied().enumerate();
        let (worker, free) = workers.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0));
        let slot = self.slot_free(stage, item).max(free);
        let could = slot.max(arrived);
        let begin = if could > free { could + self.route.wake.0 } else { could };
        let end = begin + cost;
        let spent = &mut self.spent[stage];
        spent.blocked += slot - free;
        spent.starved += begin - slot;
        spent.busy += cost;
        self.free[stage][worker] = end;
        self.begun[stage].push(begin);
        // Results leave in the order of the inputs.
        self.left[stage] = self.left[stage].max(end);
        self.left[stage]
    }

    /// When the stage's output queue has a slot for this item.
    fn slot_free(&self, stage: usize, item: usize) -> f64 {
        let Some(earlier) = item.checked_sub(self.route.stages[stage].slots.max(1)) else {
            return 0.0;
        };
        match self.begun.get(stage + 1) {
            Some(next) => next[earlier],
            None => self.until[earlier],
        }
    }

    fn consume(&mut self, item: usize, arrived: f64, cost: f64) {
        let before = if item == 0 { 0.0 } else { self.until[item - 1] };
        let begin = if arrived > before { arrived + self.route.wake.0 } else { before };
        if item > 0 {
            self.stalled += begin - before;
        }
        self.from.push(begin);
        self.until.push(begin + cost);
    }

    fn predict(self) -> Prediction {
        let (Some(first), Some(last)) = (self.from.first(), self.until.last()) else {
            let stages = self.spent;
            return Prediction { step: Seconds(0.0), variation: 0.0, stall: 0.0, stages };
        };
        let over = last - first;
        let steps: Vec<f64> = self.until.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let share = |(spent, stage): (&Shares, &StageModel)| {
            let all = last * stage.workers.max(1) as f64;
            let (busy, starved) = (spent.busy / all, spent.starved / all);
            Shares { busy, starved, blocked: spent.blocked / all }
        };
        Prediction {
            step: Seconds(over / self.from.len() as f64),
            variation: variation(&steps),
            stall: self.stalled / over,
            stages: self.spent.iter().zip(&self.route.stages).map(share).collect(),
        }
    }
}

/// Standard deviation divided by the mean; zero without values.
pub(crate) fn variation(values: &[f64]) -> f64 {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    if mean > 0.0 { square.sqrt() / mean } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(name: &'static str, mean: f64, variation: f64) -> StageModel {
        let cost = Cost { mean: Seconds(mean), variation };
        StageModel { name, cost, workers: 1, slots: 3 }
    }

    fn route(stages: Vec<StageModel>, consumer: f64, variation: f64) -> RouteModel {
        let consumer = Cost { mean: Seconds(consumer), variation };
        RouteModel { stages, consumer, wake: Seconds(0.0) }
    }

    /// A step of a route with constant costs; the first few items, before the route is full, weigh
    /// less than the tolerance.
    #[track_caller]
    fn check_step(route: RouteModel, step: f64) {
        let got = route.simulate(&route.draw(20_000, Seed(1)));
        assert!((got.step.0 / step - 1.0).abs() < 1e-3, "{got:?} for {step}");
    }

    #[test]
    fn a_step_lasts_as_long_as_the_slowest_stage() {
        let three = || vec![stage("a", 20.0, 0.0), stage("b", 10.0, 0.0), stage("c", 15.0, 0.0)];
        check_step(route(three(), 150.0, 0.0), 150.0);
        check_step(route(three(), 5.0, 0.0), 20.0);
    }

    #[test]
    fn with_one_slot_the_last_stage_and_the_consumer_take_turns() {
        let last = StageModel { slots: 1, ..stage("last", 3.0, 0.0) };
        check_step(route(vec![stage("first", 1.0, 0.0), last], 4.0, 0.0), 7.0);
    }

    #[test]
    fn workers_share_a_stage_as_far_as_there_are_places() {
        let with = |workers, slots| {
            let wide = StageModel { workers, slots, ..stage("wide", 40.0, 0.0) };
            route(vec![wide, stage("last", 1.0, 0.0)], 5.0, 0.0)
        };
        check_step(with(4, 8), 10.0);
        check_step(with(4, 2), 20.0);
    }

    /// One producer and one consumer with exponential times and `depth` slots are the queue
    /// M/M/1/K with K = depth: the consumer is idle with probability
    /// (1 - r) / (1 - r^(K+1)), r = consumer's mean / producer's mean.
    #[track_caller]
    fn check_stall(producer: f64, depth: usize) {
        let making = StageModel { slots: depth, ..stage("make", producer, 1.0) };
        let route = route(vec![making], 1.0, 1.0);
        let got = route.simulate(&route.draw(400_000, Seed(5))).stall;
        let r: f64 = 1.0 / producer;
        let idle = if (r - 1.0).abs() < 1e-9 {
            1.0 / (depth as f64 + 1.0)
        } else {
            (1.0 - r) / (1.0 - r.powi(depth as i32 + 1))
        };
        assert!((got - idle).abs() < 0.005, "stall {got}, theory {idle}");
    }

    #[test]
    fn the_stall_with_exponential_times_is_that_of_the_textbook_queue() {
        for depth in [1, 2, 3, 8] {
            [0.7, 0.9, 1.0].into_iter().for_each(|producer| check_stall(producer, depth));
        }
    }

    #[test]
    fn shares_of_a_station_add_up() {
        let route = route(vec![stage("a", 0.8, 0.5), stage("b", 0.9, 0.5)], 1.0, 0.5);
        let got = route.simulate(&route.draw(50_000, Seed(2)));
        for shares in &got.stages {
            let sum = shares.busy + shares.starved + shares.blocked;
            assert!((sum - 1.0).abs() < 1e-3, "{shares:?}");
        }
        assert_eq!(slowest(&route), ("consumer", Seconds(1.0)));
    }
}
