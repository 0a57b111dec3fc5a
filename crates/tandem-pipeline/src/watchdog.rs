//! Finds a stage that hangs and a run in which nothing moves.
//!
//! In: the [`Pulse`] of every worker at each tick of the monitor. Out: a [`Frozen`] worker, which
//! has been inside one step for too long without progress, or a [`Stalled`] run, in which the
//! consumer and all stages wait. A worker that waits is never frozen: it is the victim. Time is
//! observed time ([`ObservedClock`]): a process that was stopped (SIGSTOP) or a machine that slept
//! loses nothing. Next: [`crate::monitor`] ends the run with what is found here.

use crate::control::Control;
use crate::error::StageState;
pub use crate::error::{Frozen, Stalled};
use crate::meter::{Activity, Meter, Pulse};
use std::sync::Arc;
use std::time::Duration;

/// Called with a frozen worker.
pub type OnFrozen = Arc<dyn Fn(&Frozen) + Send + Sync>;

/// What counts as frozen or stalled.
#[derive(Clone)]
pub struct Watch {
    /// The longest a stage may be inside one step without progress, and the longest the consumer
    /// may wait while no stage makes progress (`--stall-timeout`). `None` watches neither.
    pub stall_timeout: Option<Duration>,
    /// The longest the consumer may take between two items. `None` does not watch it, since
    /// nothing but the consumer itself can end its thread.
    pub consumer: Option<Duration>,
    /// How long a frozen worker has to return before its thread is left behind.
    pub grace: Duration,
    /// Called with a frozen worker after the run was stopped. The only place where a frozen
    /// consumer can be dealt with: close the record, end the program.
    pub on_frozen: Option<OnFrozen>,
}

impl Default for Watch {
    fn default() -> Watch {
        let (stall_timeout, grace) = (Some(Duration::from_secs(60)), Duration::from_secs(2));
        Watch { stall_timeout, consumer: None, grace, on_frozen: None }
    }
}

impl Watch {
    /// The interval at which the workers are compared: short against the limits, at most a second.
    pub(crate) fn tick(&self) -> Option<Duration> {
        let shortest = self.stall_timeout.into_iter().chain(self.consumer).min()?;
        Some((shortest / 4).clamp(Duration::from_millis(1), Duration::from_secs(1)))
    }
}

/// What the watchdog found.
#[derive(Clone, Debug)]
pub(crate) enum Alarm {
    Frozen(Frozen),
    Stalled(Stalled),
}

/// Compares the workers from tick to tick.
pub(crate) struct Watchdog {
    watch: Watch,
    clock: ObservedClock,
    // All workers of all stages in the order of the route, then the consumer.
    seen: Vec<Seen>,
}

/// A worker's last pulse, and when it last changed, in observed time.
#[derive(Clone, Copy, Default)]
struct Seen {
    pulse: Pulse,
    moved: Duration,
    changed: Duration,
}

/// What is wrong, before anybody is named.
#[derive(Debug, PartialEq, Eq)]
enum Finding {
    Frozen { worker: usize, silent: Duration },
    Stalled { silent: Duration },
}

impl Watchdog {
    pub(crate) fn new(watch: Watch, tick: Duration) -> Watchdog {
        Watchdog { watch, clock: ObservedClock { tick, now: Duration::ZERO }, seen: Vec::new() }
    }

    /// Compares the run with the last tick, which was `gap` of real time ago.
    pub(crate) fn check(&mut self, control: &Control, gap: Duration) -> Option<Alarm> {
        let run = &control.0;
        let stages = run.stages.iter().flat_map(|stage| {
            let meters = stage.meters.iter().enumerate();
            meters.map(|(worker, meter)| (stage.name, worker, &**meter))
        });
        let consumer = (run.consumer, 0, &*run.consumer_meter);
        let workers: Vec<(&'static str, usize, &Meter)> = stages.chain([consumer]).collect();
        let pulses: Vec<Pulse> = workers.iter().map(|(.., meter)| meter.pulse()).collect();
        Some(match self.observe(&pulses, gap)? {
            Finding::Frozen { worker: index, silent } => {
                let (stage, worker, meter) = workers[index];
                let (ticket, item) = (pulses[index].ticket, meter.item());
                Alarm::Frozen(Frozen { stage, worker, ticket, item, silent })
            }
            Finding::Stalled { silent } => {
                let states = run.stages.iter().map(|stage| state_of(stage.name, &stage.meters));
                let consumer =
                    StageState { stage: run.consumer, state: "waits for the next item".into() };
                Alarm::Stalled(Stalled { silent, stages: states.chain([consumer]).collect() })
            }
        })
    }

    fn observe(&mut self, pulses: &[Pulse], gap: Duration) -> Option<Finding> {
        let now = self.clock.advance(gap);
        self.seen.resize(pulses.len(), Seen::default());
        for (seen, pulse) in self.seen.iter_mut().zip(pulses) {
            if seen.pulse.moves != pulse.moves {
                seen.moved = now;
            }
            if seen.pulse != *pulse {
                seen.changed = now;
            }
            seen.pulse = *pulse;
        }
        self.frozen(now).or_else(|| self.stalled(now))
    }

    /// The worker that has been silent for the longest, if that is too long.
    fn frozen(&self, now: Duration) -> Option<Finding> {
        let consumer = self.seen.len() - 1;
        let limit = |worker| {
            if worker == consumer { self.watch.consumer } else { self.watch.stall_timeout }
        };
        let busy = |seen: &Seen| seen.pulse.doing == Activity::Busy;
        let silent = self.seen.iter().enumerate().filter(|(_, seen)| busy(seen));
        silent
            .map(|(worker, seen)| (worker, now - seen.changed))
            .filter(|&(worker, silent)| limit(worker).is_some_and(|limit| silent > limit))
            .max_by_key(|&(_, silent)| silent)
            .map(|(worker, silent)| Finding::Frozen { worker, silent })
    }

    /// The consumer waits, no stage works, and nothing has moved for too long.
    fn stalled(&self, now: Duration) -> Option<Finding> {
        let (limit, (consumer, workers)) = (self.watch.stall_timeout?, self.seen.split_last()?);
        let waits = consumer.pulse.doing == Activity::Starved;
        // A busy worker either moves something or is frozen in the end.
        let works = workers.iter().any(|seen| seen.pulse.doing == Activity::Busy);
        let moved = workers.iter().map(|seen| seen.moved).fold(consumer.changed, Duration::max);
        let silent = now - moved;
        (waits && !works && silent > limit).then_some(Finding::Stalled { silent })
    }
}

/// Time in which the monitor was running: a tick that took longer than two counts as two.
struct ObservedClock {
    tick: Duration,
    now: Duration,
}

impl ObservedClock {
    fn advance(&mut self, gap: Duration) -> Duration {
        self.now += gap.min(self.tick * 2);
        self.now
    }
}

/// What the workers of a stage wait for, each kind of wait once.
fn state_of(stage: &'static str, meters: &[Arc<Meter>]) -> StageState {
    let mut states: Vec<String> = Vec::new();
    for meter in meters {
        let state = match (meter.pulse().doing, meter.waits_for()) {
            (Activity::Starved, Some(what)) => format!("waits for {what}"),
            (Activity::Starved, None) => "waits for input".into(),
            (Activity::Blocked, _) => "waits for room".into(),
            (Activity::Busy, _) => "works".into(),
            (Activity::Parked, _) => continue,
        };
        if !states.contains(&state) {
            states.push(state);
        }
    }
    let state = if states.is_empty() { "has ended".into() } else { states.join(" and ") };
    StageState { stage, state }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A watchdog with a limit of ten seconds, a tick of one second, one worker and the consumer.
    fn watchdog() -> Watchdog {
        let watch = Watch { stall_timeout: Some(10 * SECOND), ..Watch::default() };
        Watchdog::new(watch, SECOND)
    }

    fn pulse(doing: Activity, moves: u64) -> Pulse {
        Pulse { doing, moves, ..Pulse::default() }
    }

    /// Ticks with these pulses and this gap until something is found, at most a hundred times.
    fn find(dog: &mut Watchdog, pulses: [Pulse; 2], gap: Duration) -> Option<(usize, Finding)> {
        (1..=100).find_map(|tick| dog.observe(&pulses, gap).map(|found| (tick, found)))
    }

    #[test]
    fn a_worker_inside_one_step_is_frozen_after_the_limit() {
        let pulses = [pulse(Activity::Busy, 1), pulse(Activity::Starved, 0)];
        let found = find(&mut watchdog(), pulses, SECOND);
        // It was first seen at the first tick.
        assert_eq!(found, Some((12, Finding::Frozen { worker: 0, silent: 11 * SECOND })));
    }

    #[test]
    fn time_in_which_the_process_was_stopped_does_not_count() {
        let mut dog = watchdog();
        let pulses = [pulse(Activity::Busy, 1), pulse(Activity::Starved, 0)];
        assert_eq!(dog.observe(&pulses, SECOND), None);
        for _ in 0..5 {
            assert_eq!(dog.observe(&pulses, 3600 * SECOND), None, "counts as two seconds");
        }
        assert!(matches!(dog.observe(&pulses, SECOND), Some(Finding::Frozen { .. })));
    }

    #[test]
    fn a_run_in_which_all_wait_is_stalled_after_the_limit() {
        for waiting in [Activity::Starved, Activity::Blocked] {
            let pulses = [pulse(waiting, 5), pulse(Activity::Starved, 3)];
            let found = find(&mut watchdog(), pulses, SECOND);
            assert_eq!(found, Some((12, Finding::Stalled { silent: 11 * SECOND })));
        }
    }

    #[test]
    fn a_worker_that_only_changes_between_two_waits_does_not_hide_a_stall() {
        let mut dog = watchdog();
        let found = (0..100).find_map(|tick| {
            let worker = Pulse { turns: tick, ..pulse(Activity::Starved, 5) };
            dog.observe(&[worker, pulse(Activity::Starved, 3)], SECOND)
        });
        assert_eq!(found, Some(Finding::Stalled { silent: 11 * SECOND }));
    }

    #[test]
    fn slow_progress_is_no_alarm() {
        let mut dog = watchdog();
        for tick in 0..1000 {
            // One item every nine seconds; the worker is busy for eight of them.
            let doing = if tick % 9 == 0 { Activity::Starved } else { Activity::Busy };
            let worker = Pulse { turns: 2 * tick / 9, ..pulse(doing, tick / 9) };
            assert_eq!(dog.observe(&[worker, pulse(Activity::Starved, 0)], SECOND), None);
        }
    }

    #[test]
    fn a_consumer_that_works_is_not_stalled_and_has_a_limit_of_its_own() {
        let pulses = [pulse(Activity::Blocked, 5), pulse(Activity::Busy, 3)];
        assert_eq!(find(&mut watchdog(), pulses, SECOND), None);
        let watch = Watch { consumer: Some(20 * SECOND), ..Watch::default() };
        let found = find(&mut Watchdog::new(watch, SECOND), pulses, SECOND);
        assert_eq!(found, Some((22, Finding::Frozen { worker: 1, silent: 21 * SECOND })));
    }
}
