//! What the queues of a route will do, computed instead of run.
//!
//! In: a [`Line`] of stages with their costs, workers and places. Out: a [`Prediction`] of step
//! time, consumer stall and each stage's shares. The rules are those of the real queues: a worker
//! takes a place behind it, then the next input; results leave in the order of the inputs; a
//! place is free again when the next stage takes the item, and at the end when the consumer is
//! done with it. Because items keep their order, the moments of item `n` follow from those of
//! earlier items alone, so every event is computed once, exactly, without a calendar of events.
//! [`crate::rehearse`] runs the same line on real threads.

use crate::cost::Cost;
use tandem_units::{Seconds, Seed};

/// Stages in a row, and the consumer at the end. The source is never short of items.
#[derive(Clone, Debug)]
pub struct Line {
    /// The stages in order.
    pub stations: Vec<Station>,
    /// What the consumer spends on an item.
    pub consumer: Cost,
    /// From the moment a waiting thread could go on to the moment it does.
    pub wake: Seconds,
}

/// One stage of a line.
#[derive(Clone, Copy, Debug)]
pub struct Station {
    /// The stage.
    pub name: &'static str,
    /// What it spends on an item.
    pub cost: Cost,
    /// Its workers.
    pub workers: usize,
    /// The items of the queue behind it, as in [`crate::Hold`]; for the last station this is the
    /// depth.
    pub places: usize,
}

/// The costs of a run, item by item.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    /// One list per station.
    pub stations: Vec<Vec<Seconds>>,
    /// The consumer's.
    pub consumer: Vec<Seconds>,
}

/// What a run will be like, from the consumer's first item on.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Mean time from one item to the next at the consumer.
    pub step: Seconds,
    /// Standard deviation of that time as a share of its mean.
    pub variation: f64,
    /// Share of its time in which the consumer has no item.
    pub stall: f64,
    /// How each station spends its workers' time.
    pub stations: Vec<Shares>,
}

/// How a station spends its workers' time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shares {
    /// At work.
    pub busy: f64,
    /// Without input.
    pub starved: f64,
    /// Without a place for the result.
    pub blocked: f64,
}

impl Line {
    /// Draws the costs of so many items.
    pub fn draw(&self, items: usize, seed: Seed) -> Costs {
        let station =
            |(n, station): (usize, &Station)| station.cost.draw(items, seed.derive(n as u64 + 1));
        Costs {
            stations: self.stations.iter().enumerate().map(station).collect(),
            consumer: self.consumer.draw(items, seed.derive(0)),
        }
    }

    /// What happens with these costs.
    pub fn simulate(&self, costs: &Costs) -> Prediction {
        let mut state = Simulation::new(self, costs.consumer.len());
        for item in 0..costs.consumer.len() {
            let mut arrived = 0.0;
            for (station, list) in costs.stations.iter().enumerate() {
                arrived = state.pass(station, item, arrived, list[item].0);
            }
            state.consume(item, arrived, costs.consumer[item].0);
        }
        state.predict()
    }
}

/// The slowest station's mean time per item with all its workers, or the consumer's: no step
/// can be shorter.
pub fn slowest(line: &Line) -> (&'static str, Seconds) {
    let stations = line.stations.iter().map(|s| (s.name, s.cost.mean.0 / s.workers as f64));
    let consumer = ("consumer", line.consumer.mean.0);
    let (name, time) =
        stations.chain([consumer]).max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(consumer);
    (name, Seconds(time))
}

struct Simulation<'a> {
    line: &'a Line,
    // Per station: when each worker is free, when each item was begun, when the last left.
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
    fn new(line: &'a Line, items: usize) -> Simulation<'a> {
        let stations = line.stations.len();
        Simulation {
            line,
            free: line.stations.iter().map(|station| vec![0.0; station.workers.max(1)]).collect(),
            begun: vec![Vec::with_capacity(items); stations],
            left: vec![0.0; stations],
            spent: vec![Shares::default(); stations],
            from: Vec::with_capacity(items),
            until: Vec::with_capacity(items),
            stalled: 0.0,
        }
    }

    /// Moves an item that arrived at `arrived` through a station; gives when it leaves.
    fn pass(&mut self, station: usize, item: usize, arrived: f64, cost: f64) -> f64 {
        let workers = self.free[station].iter().copied().enumerate();
        let (worker, free) = workers.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0));
        let place = self.place_free(station, item).max(free);
        let could = place.max(arrived);
        let begin = if could > free { could + self.line.wake.0 } else { could };
        let end = begin + cost;
        let spent = &mut self.spent[station];
        spent.blocked += place - free;
        spent.starved += begin - place;
        spent.busy += cost;
        self.free[station][worker] = end;
        self.begun[station].push(begin);
        // Results leave in the order of the inputs.
        self.left[station] = self.left[station].max(end);
        self.left[station]
    }

    /// When there is a place behind a station for this item.
    fn place_free(&self, station: usize, item: usize) -> f64 {
        let Some(earlier) = item.checked_sub(self.line.stations[station].places.max(1)) else {
            return 0.0;
        };
        match self.begun.get(station + 1) {
            Some(next) => next[earlier],
            None => self.until[earlier],
        }
    }

    fn consume(&mut self, item: usize, arrived: f64, cost: f64) {
        let before = if item == 0 { 0.0 } else { self.until[item - 1] };
        let begin = if arrived > before { arrived + self.line.wake.0 } else { before };
        if item > 0 {
            self.stalled += begin - before;
        }
        self.from.push(begin);
        self.until.push(begin + cost);
    }

    fn predict(self) -> Prediction {
        let (Some(first), Some(last)) = (self.from.first(), self.until.last()) else {
            let stations = self.spent;
            return Prediction { step: Seconds(0.0), variation: 0.0, stall: 0.0, stations };
        };
        let over = last - first;
        let steps: Vec<f64> = self.until.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let share = |(spent, station): (&Shares, &Station)| {
            let all = last * station.workers.max(1) as f64;
            let (busy, starved) = (spent.busy / all, spent.starved / all);
            Shares { busy, starved, blocked: spent.blocked / all }
        };
        Prediction {
            step: Seconds(over / self.from.len() as f64),
            variation: variation(&steps),
            stall: self.stalled / over,
            stations: self.spent.iter().zip(&self.line.stations).map(share).collect(),
        }
    }
}

/// Standard deviation as a share of the mean; zero of nothing.
pub(crate) fn variation(values: &[f64]) -> f64 {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    if mean > 0.0 { square.sqrt() / mean } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn station(name: &'static str, mean: f64, variation: f64) -> Station {
        let cost = Cost { mean: Seconds(mean), variation };
        Station { name, cost, workers: 1, places: 3 }
    }

    fn line(stations: Vec<Station>, consumer: f64, variation: f64) -> Line {
        let consumer = Cost { mean: Seconds(consumer), variation };
        Line { stations, consumer, wake: Seconds(0.0) }
    }

    /// A step of a line with constant costs; the first few items, before the line is full, weigh
    /// less than the tolerance.
    #[track_caller]
    fn check_step(line: Line, step: f64) {
        let got = line.simulate(&line.draw(20_000, Seed(1)));
        assert!((got.step.0 / step - 1.0).abs() < 1e-3, "{got:?} for {step}");
    }

    #[test]
    fn a_step_lasts_as_long_as_the_slowest_stage() {
        let three =
            || vec![station("a", 20.0, 0.0), station("b", 10.0, 0.0), station("c", 15.0, 0.0)];
        check_step(line(three(), 150.0, 0.0), 150.0);
        check_step(line(three(), 5.0, 0.0), 20.0);
    }

    #[test]
    fn with_one_slot_the_last_stage_and_the_consumer_take_turns() {
        let last = Station { places: 1, ..station("last", 3.0, 0.0) };
        check_step(line(vec![station("first", 1.0, 0.0), last], 4.0, 0.0), 7.0);
    }

    #[test]
    fn workers_share_a_stage_as_far_as_there_are_places() {
        let with = |workers, places| {
            let wide = Station { workers, places, ..station("wide", 40.0, 0.0) };
            line(vec![wide, station("last", 1.0, 0.0)], 5.0, 0.0)
        };
        check_step(with(4, 8), 10.0);
        check_step(with(4, 2), 20.0);
    }

    /// One producer and one consumer with exponential times and `depth` slots are the queue
    /// M/M/1/K with K = depth: the consumer is idle with probability
    /// (1 - r) / (1 - r^(K+1)), r = consumer's mean / producer's mean.
    #[track_caller]
    fn check_stall(producer: f64, depth: usize) {
        let making = Station { places: depth, ..station("make", producer, 1.0) };
        let line = line(vec![making], 1.0, 1.0);
        let got = line.simulate(&line.draw(400_000, Seed(5))).stall;
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
        let line = line(vec![station("a", 0.8, 0.5), station("b", 0.9, 0.5)], 1.0, 0.5);
        let got = line.simulate(&line.draw(50_000, Seed(2)));
        for shares in &got.stations {
            let sum = shares.busy + shares.starved + shares.blocked;
            assert!((sum - 1.0).abs() < 1e-3, "{shares:?}");
        }
        assert_eq!(slowest(&line), ("consumer", Seconds(1.0)));
    }
}
