//! Decides when a stage gets one more worker, or the pipeline one more slot.
//!
//! In: the [`Measurement`] of an interval. Out: an [`Action`]: nothing, a change to try, a change to
//! keep because throughput rose enough, or a change to revert. No clock, no thread: the same
//! measurements give the same decisions. Changes never affect the order of items. Next:
//! [`crate::monitor`] measures and applies the actions.

use std::time::Duration;

/// Whether the numbers of workers and slots change while running.
#[derive(Clone, Debug, Default)]
pub enum Adapt {
    /// They stay constant (`--no-adapt`).
    #[default]
    Off,
    /// They rise where that raises throughput, within these limits.
    On(Limits),
}

/// The limits and thresholds of the controller.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The most slots.
    pub depth: usize,
    /// The most workers of all stages together.
    pub workers: usize,
    /// The shortest measurement.
    pub interval: Duration,
    /// A measurement continues until it has this many items.
    pub least_items: u64,
    /// A change is kept if throughput rises by this fraction.
    pub gain: f64,
    /// Nothing is changed while the consumer starves for a smaller share of its time.
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

/// The measurement of an interval.
#[derive(Clone, Debug)]
pub struct Measurement {
    pub over: Duration,
    pub items: u64,
    /// Share of the interval in which the consumer had no item.
    pub starved: f64,
    /// All stages, the source first.
    pub stages: Vec<StageMeasure>,
    pub depth: usize,
    /// Whether one more slot would fit into the bytes of the last queue.
    pub bytes_for_depth: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct StageMeasure {
    pub name: &'static str,
    pub workers: usize,
    /// The most workers it may have.
    pub up_to: usize,
    /// Busy share of its workers' time.
    pub busy: f64,
}

/// What can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// The workers of a stage, by its index in the route.
    Workers(usize),
    Depth,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    pub parameter: Parameter,
    pub from: usize,
    pub to: usize,
}

/// What to do now. Throughput is in items per second.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Nothing,
    /// Apply a change and measure.
    Try {
        change: Change,
        before: f64,
        why: String,
    },
    /// Throughput rose enough.
    Keep {
        change: Change,
        before: f64,
        after: f64,
    },
    /// Throughput did not rise enough: restore the old value.
    Revert {
        change: Change,
        before: f64,
        after: f64,
    },
}

/// Turns measurements into actions.
pub struct Controller {
    limits: Limits,
    state: Trial,
    // Failed attempts in a row: each doubles the pause after it.
    failures: u32,
    // Parameters whose last change failed: others are tried first.
    refused: Vec<Parameter>,
}

enum Trial {
    Watching { pause: u32 },
    // The first interval after a change includes items from before it, and is not judged.
    Settling { change: Change, before: f64 },
    Judging { change: Change, before: f64 },
}

/// From this busy share on, only another worker can make a stage faster.
const SATURATED: f64 = 0.9;
const LONGEST_PAUSE: u32 = 32;

impl Controller {
    pub fn new(limits: Limits) -> Controller {
        Controller { limits, state: Trial::Watching { pause: 0 }, failures: 0, refused: vec![] }
    }

    /// Decides after an interval. The caller applies the action before the next one.
    pub fn decide(&mut self, measured: &Measurement) -> Action {
        let rate = measured.items as f64 / measured.over.as_secs_f64().max(1e-9);
        match self.state {
            Trial::Watching { pause: 0 } => self.consider(measured, rate),
            Trial::Watching { pause } => {
                self.state = Trial::Watching { pause: pause - 1 };
                Action::Nothing
            }
            Trial::Settling { change, before } => {
                self.state = Trial::Judging { change, before };
                Action::Nothing
            }
            Trial::Judging { change, before } => self.judge(change, before, rate),
        }
    }

    fn consider(&mut self, measured: &Measurement, before: f64) -> Action {
        if measured.starved < self.limits.starved {
            return Action::Nothing;
        }
        let Some((change, why)) = self.choose(measured) else {
            self.refused.clear();
            self.state = Trial::Watching { pause: self.pause() };
            return Action::Nothing;
        };
        self.state = Trial::Settling { change, before };
        Action::Try { change, before, why }
    }

    fn judge(&mut self, change: Change, before: f64, after: f64) -> Action {
        if after >= before * (1.0 + self.limits.gain) {
            self.failures = 0;
            self.refused.clear();
            self.state = Trial::Watching { pause: 0 };
            return Action::Keep { change, before, after };
        }
        self.failures += 1;
        self.refused.push(change.parameter);
        self.state = Trial::Watching { pause: self.pause() };
        Action::Revert { change, before, after }
    }

    fn pause(&self) -> u32 {
        2u32.saturating_pow(self.failures).min(LONGEST_PAUSE)
    }

    /// A worker for the busiest stage if that stage is saturated. Otherwise a slot: if no stage is
    /// saturated, varying item costs starve the consumer. The other of the two is the second choice.
    fn choose(&self, measured: &Measurement) -> Option<(Change, String)> {
        let worst = measured.stages.iter().enumerate().max_by(|a, b| a.1.busy.total_cmp(&b.1.busy));
        let (index, stage) = worst?;
        let starved = format!("the consumer starves {:.1} % of the time", measured.starved * 100.0);
        let workers = self.may_add_worker(measured, index).then(|| {
            let change = step(Parameter::Workers(index), stage.workers);
            (change, format!("{starved}, `{}` is {:.0} % busy", stage.name, stage.busy * 100.0))
        });
        let depth = self.may_add_slot(measured).then(|| {
            (step(Parameter::Depth, measured.depth), format!("{starved}, no stage is fully busy"))
        });
        if stage.busy >= SATURATED { workers.or(depth) } else { depth.or(workers) }
    }

    fn may_add_worker(&self, measured: &Measurement, index: usize) -> bool {
        let stage = &measured.stages[index];
        let all: usize = measured.stages.iter().map(|stage| stage.workers).sum();
        // The consumer uses one slot: a last stage with more workers than the rest waits for slots.
        let is_last = index + 1 == measured.stages.len();
        let room = !is_last || stage.workers + 1 < measured.depth;
        stage.workers < stage.up_to
            && all < self.limits.workers
            && room
            && !self.refused.contains(&Parameter::Workers(index))
    }

    fn may_add_slot(&self, measured: &Measurement) -> bool {
        measured.depth < self.limits.depth
            && measured.bytes_for_depth
            && !self.refused.contains(&Parameter::Depth)
    }
}

fn step(parameter: Parameter, from: usize) -> Change {
    Change { parameter, from, to: from + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: Parameter = Parameter::Workers(1);

    /// One interval: items per second, starved share, and how busy the loading stage is.
    fn interval(rate: u64, starved: f64, busy: f64) -> Measurement {
        let source = StageMeasure { name: "source", workers: 1, up_to: 1, busy: 0.1 };
        let load = StageMeasure { name: "load", workers: 2, up_to: 4, busy };
        let copy = StageMeasure { name: "copy", workers: 1, up_to: 1, busy: 0.2 };
        let over = Duration::from_secs(1);
        let stages = vec![source, load, copy];
        Measurement { over, items: rate, starved, stages, depth: 3, bytes_for_depth: true }
    }

    fn tried(action: Action) -> Option<Parameter> {
        match action {
            Action::Try { change, .. } => Some(change.parameter),
            _ => None,
        }
    }

    #[test]
    fn nothing_changes_while_the_consumer_does_not_starve() {
        let mut controller = Controller::new(Limits::default());
        for _ in 0..10 {
            assert_eq!(controller.decide(&interval(100, 0.019, 1.0)), Action::Nothing);
        }
    }

    #[test]
    fn a_saturated_stage_gets_a_worker_and_variation_gets_a_slot() {
        let first =
            |busy| tried(Controller::new(Limits::default()).decide(&interval(100, 0.3, busy)));
        assert_eq!(first(0.95), Some(LOAD));
        assert_eq!(first(0.7), Some(Parameter::Depth));
    }

    #[test]
    fn a_gain_of_two_percent_is_kept_and_less_is_reverted() {
        let after = |rate| {
            let mut controller = Controller::new(Limits::default());
            controller.decide(&interval(100, 0.3, 1.0));
            // The interval in which the change was applied is not judged.
            assert_eq!(controller.decide(&interval(500, 0.3, 1.0)), Action::Nothing);
            controller.decide(&interval(rate, 0.3, 1.0))
        };
        let change = Change { parameter: LOAD, from: 2, to: 3 };
        assert_eq!(after(102), Action::Keep { change, before: 100.0, after: 102.0 });
        assert_eq!(after(101), Action::Revert { change, before: 100.0, after: 101.0 });
    }

    #[test]
    fn failed_attempts_become_rarer_and_alternate() {
        let mut controller = Controller::new(Limits::default());
        let attempts: Vec<(usize, Parameter)> = (0..200)
            .filter_map(|n| {
                tried(controller.decide(&interval(100, 0.3, 1.0))).map(|parameter| (n, parameter))
            })
            .collect();
        let parameters: Vec<Parameter> =
            attempts.iter().map(|(_, parameter)| *parameter).take(4).collect();
        assert_eq!(parameters, [LOAD, Parameter::Depth, LOAD, Parameter::Depth]);
        let gaps: Vec<usize> = attempts.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        // An attempt with the depth is one interval shorter than one with workers.
        assert!(
            gaps.windows(2).all(|pair| pair[0] <= pair[1] + 1),
            "a pause became shorter: {gaps:?}"
        );
        assert!(gaps[0] < gaps[gaps.len() - 1], "no pause became longer: {gaps:?}");
        assert!(attempts.len() < 16, "{} attempts in 200 intervals", attempts.len());
    }

    #[test]
    fn no_limit_is_passed() {
        let limits = Limits { depth: 3, workers: 4, ..Limits::default() };
        let mut controller = Controller::new(limits);
        assert_eq!(controller.decide(&interval(100, 0.5, 1.0)), Action::Nothing);
        let full = Measurement { bytes_for_depth: false, ..interval(100, 0.5, 0.5) };
        let limits = Limits { workers: 4, ..Limits::default() };
        assert_eq!(Controller::new(limits).decide(&full), Action::Nothing);
    }
}
