//! Decides when a stage gets one more worker, or the consumer one more slot.
//!
//! In: what an interval measured. Out: an [`Action`]: nothing, a change to try, a change to keep
//! because throughput rose enough, or one to take back. Pure: no clock, no thread; the same
//! measurements give the same decisions. [`crate::monitor`] measures and carries out. Changes
//! never touch the order of items.

use std::time::Duration;

/// Whether workers and depth change while running.
#[derive(Clone, Debug, Default)]
pub enum Adapt {
    /// They stay as they were set (`--no-adapt`).
    #[default]
    Off,
    /// They rise where it pays, within these limits.
    On(Limits),
}

/// How far and how eagerly the controller goes.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The most slots.
    pub depth: usize,
    /// The most workers of all stages together.
    pub workers: usize,
    /// Length of a measurement.
    pub interval: Duration,
    /// A measurement with fewer items goes on until it has so many.
    pub least_items: u64,
    /// A change is kept if throughput rises by this share of itself.
    pub gain: f64,
    /// The consumer is left alone while it starves for a smaller share of its time.
    pub starved: f64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            depth: 8,
            workers: 16,
            interval: Duration::from_secs(5),
            least_items: 20,
            gain: 0.02,
            starved: 0.02,
        }
    }
}

/// What an interval measured.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// Its length.
    pub over: Duration,
    /// Items the consumer took.
    pub items: u64,
    /// Share of the interval in which the consumer had none.
    pub starved: f64,
    /// All stages, the source first.
    pub stages: Vec<StageMeasure>,
    /// Slots.
    pub depth: usize,
    /// Whether one more slot would fit into the bytes of the last queue.
    pub bytes_for_depth: bool,
}

/// What an interval measured of one stage.
#[derive(Clone, Copy, Debug)]
pub struct StageMeasure {
    /// The stage.
    pub name: &'static str,
    /// Workers it had.
    pub workers: usize,
    /// The most it may have.
    pub up_to: usize,
    /// Share of its workers' time at work.
    pub busy: f64,
}

/// What can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knob {
    /// The workers of a stage, by its place in the route.
    Workers(usize),
    /// The number of slots.
    Depth,
}

/// One step of a knob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// What is changed.
    pub knob: Knob,
    /// Value before.
    pub from: usize,
    /// Value with the change.
    pub to: usize,
}

/// What to do now. Throughput is in items per second.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Leave everything as it is.
    Nothing,
    /// Make a change and measure.
    Try {
        /// The change.
        change: Change,
        /// Throughput so far.
        before: f64,
        /// The reason in words.
        why: String,
    },
    /// The change paid.
    Keep {
        /// The change.
        change: Change,
        /// Throughput without it.
        before: f64,
        /// Throughput with it.
        after: f64,
    },
    /// The change did not pay: put the old value back.
    TakeBack {
        /// The change.
        change: Change,
        /// Throughput without it.
        before: f64,
        /// Throughput with it.
        after: f64,
    },
}

/// Turns measurements into actions.
pub struct Controller {
    limits: Limits,
    state: State,
    // Fruitless attempts in a row: each doubles the pause after it.
    failures: u32,
    // The last fruitless knob: something else is tried before it comes again.
    refused: Vec<Knob>,
}

enum State {
    Watching { pause: u32 },
    // The first interval after a change holds items made before it, and is not judged.
    Settling { change: Change, before: f64 },
    Judging { change: Change, before: f64 },
}

/// From this share on a stage counts as fully at work, so that only another worker can help.
const SATURATED: f64 = 0.9;
const LONGEST_PAUSE: u32 = 32;

impl Controller {
    /// A controller that has seen nothing yet.
    pub fn new(limits: Limits) -> Controller {
        Controller { limits, state: State::Watching { pause: 0 }, failures: 0, refused: vec![] }
    }

    /// Decides after an interval. The caller carries the action out before the next one.
    pub fn look(&mut self, measured: &Measurement) -> Action {
        let rate = measured.items as f64 / measured.over.as_secs_f64().max(1e-9);
        match self.state {
            State::Watching { pause: 0 } => self.consider(measured, rate),
            State::Watching { pause } => {
                self.state = State::Watching { pause: pause - 1 };
                Action::Nothing
            }
            State::Settling { change, before } => {
                self.state = State::Judging { change, before };
                Action::Nothing
            }
            State::Judging { change, before } => self.judge(change, before, rate),
        }
    }

    fn consider(&mut self, measured: &Measurement, before: f64) -> Action {
        if measured.starved < self.limits.starved {
            return Action::Nothing;
        }
        let Some((change, why)) = self.choose(measured) else {
            self.refused.clear();
            self.state = State::Watching { pause: self.pause() };
            return Action::Nothing;
        };
        self.state = State::Settling { change, before };
        Action::Try { change, before, why }
    }

    fn judge(&mut self, change: Change, before: f64, after: f64) -> Action {
        if after >= before * (1.0 + self.limits.gain) {
            self.failures = 0;
            self.refused.clear();
            self.state = State::Watching { pause: 0 };
            return Action::Keep { change, before, after };
        }
        self.failures += 1;
        self.refused.push(change.knob);
        self.state = State::Watching { pause: self.pause() };
        Action::TakeBack { change, before, after }
    }

    fn pause(&self) -> u32 {
        2u32.saturating_pow(self.failures).min(LONGEST_PAUSE)
    }

    /// The worst stage's workers where it is fully at work; the depth where no stage is, since
    /// then it is variation that starves the consumer. The other of the two comes second.
    fn choose(&self, measured: &Measurement) -> Option<(Change, String)> {
        let worst = measured.stages.iter().enumerate().max_by(|a, b| a.1.busy.total_cmp(&b.1.busy));
        let (index, stage) = worst?;
        let starved = format!("the consumer starves {:.1} % of the time", measured.starved * 100.0);
        let workers = self.may_hire(measured, index).then(|| {
            let change = step(Knob::Workers(index), stage.workers);
            (change, format!("{starved}, `{}` is {:.0} % busy", stage.name, stage.busy * 100.0))
        });
        let depth = self.may_deepen(measured).then(|| {
            (step(Knob::Depth, measured.depth), format!("{starved}, no stage is fully busy"))
        });
        if stage.busy >= SATURATED { workers.or(depth) } else { depth.or(workers) }
    }

    fn may_hire(&self, measured: &Measurement, index: usize) -> bool {
        let stage = &measured.stages[index];
        let all: usize = measured.stages.iter().map(|stage| stage.workers).sum();
        // One slot is the consumer's: a last stage with more workers than that waits for slots.
        let is_last = index + 1 == measured.stages.len();
        let room = !is_last || stage.workers + 1 < measured.depth;
        stage.workers < stage.up_to
            && all < self.limits.workers
            && room
            && !self.refused.contains(&Knob::Workers(index))
    }

    fn may_deepen(&self, measured: &Measurement) -> bool {
        measured.depth < self.limits.depth
            && measured.bytes_for_depth
            && !self.refused.contains(&Knob::Depth)
    }
}

fn step(knob: Knob, from: usize) -> Change {
    Change { knob, from, to: from + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: Knob = Knob::Workers(1);

    /// One interval: items per second, starved share, and how busy the loading stage is.
    fn interval(rate: u64, starved: f64, busy: f64) -> Measurement {
        let source = StageMeasure { name: "source", workers: 1, up_to: 1, busy: 0.1 };
        let load = StageMeasure { name: "load", workers: 2, up_to: 4, busy };
        let copy = StageMeasure { name: "copy", workers: 1, up_to: 1, busy: 0.2 };
        let over = Duration::from_secs(1);
        let stages = vec![source, load, copy];
        Measurement { over, items: rate, starved, stages, depth: 3, bytes_for_depth: true }
    }

    fn tried(action: Action) -> Option<Knob> {
        match action {
            Action::Try { change, .. } => Some(change.knob),
            _ => None,
        }
    }

    #[test]
    fn a_consumer_that_does_not_starve_is_left_alone() {
        let mut controller = Controller::new(Limits::default());
        for _ in 0..10 {
            assert_eq!(controller.look(&interval(100, 0.019, 1.0)), Action::Nothing);
        }
    }

    #[test]
    fn a_saturated_stage_gets_a_worker_and_variation_gets_a_slot() {
        let first =
            |busy| tried(Controller::new(Limits::default()).look(&interval(100, 0.3, busy)));
        assert_eq!(first(0.95), Some(LOAD));
        assert_eq!(first(0.7), Some(Knob::Depth));
    }

    #[test]
    fn a_gain_of_two_percent_is_kept_and_less_is_taken_back() {
        let after = |rate| {
            let mut controller = Controller::new(Limits::default());
            controller.look(&interval(100, 0.3, 1.0));
            // The interval in which the change was made is not judged.
            assert_eq!(controller.look(&interval(500, 0.3, 1.0)), Action::Nothing);
            controller.look(&interval(rate, 0.3, 1.0))
        };
        let change = Change { knob: LOAD, from: 2, to: 3 };
        assert_eq!(after(102), Action::Keep { change, before: 100.0, after: 102.0 });
        assert_eq!(after(101), Action::TakeBack { change, before: 100.0, after: 101.0 });
    }

    #[test]
    fn fruitless_attempts_become_rarer_and_alternate() {
        let mut controller = Controller::new(Limits::default());
        let looks: Vec<(usize, Knob)> = (0..200)
            .filter_map(|n| tried(controller.look(&interval(100, 0.3, 1.0))).map(|knob| (n, knob)))
            .collect();
        let knobs: Vec<Knob> = looks.iter().map(|(_, knob)| *knob).take(4).collect();
        assert_eq!(knobs, [LOAD, Knob::Depth, LOAD, Knob::Depth]);
        let gaps: Vec<usize> = looks.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        assert!(gaps.windows(2).all(|pair| pair[0] <= pair[1] + LONGEST_PAUSE as usize));
        assert!(looks.len() < 16, "{} attempts in 200 intervals", looks.len());
    }

    #[test]
    fn no_limit_is_passed() {
        let limits = Limits { depth: 3, workers: 4, ..Limits::default() };
        let mut controller = Controller::new(limits);
        assert_eq!(controller.look(&interval(100, 0.5, 1.0)), Action::Nothing);
        let full = Measurement { bytes_for_depth: false, ..interval(100, 0.5, 0.5) };
        let limits = Limits { workers: 4, ..Limits::default() };
        assert_eq!(Controller::new(limits).look(&full), Action::Nothing);
    }
}
