//! Runs a route with given costs on real threads, and measures it.
//!
//! In: a [`RouteModel`] and the costs of its items. Out: [`Measured`], in the same terms as the
//! prediction of [`crate::simulate`], so that the two can be compared. The stand-in stages sleep, as
//! if a device worked, or keep a core busy; they process no data.

use crate::control::StageTotals;
use crate::error::PipelineError;
use crate::payload::{Payload, Ticketed};
use crate::queue_limits::QueueLimits;
use crate::route::{Crew, Route, Setup};
use crate::simulate::{Costs, RouteModel, variation};
use crate::stage::{Emitter, Stage, StageError};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tandem_units::{Bytes, Epoch, Seconds, Ticket};

/// How a stand-in spends its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spend {
    /// Asleep, as if a device worked.
    Waiting,
    /// On the CPU: a fixed amount of work, which takes longer where cores are shared.
    Busy,
}

/// The measured run, from the consumer's first item on.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Mean time from one item to the next at the consumer.
    pub step: Seconds,
    /// Standard deviation of that time divided by its mean.
    pub variation: f64,
    /// Share of its time in which the consumer had no item.
    pub stall: f64,
    /// All stages except the source.
    pub stages: Vec<StageTotals>,
}

/// Runs the route on real threads, with the consumer on this one.
pub fn rehearse(
    model: &RouteModel,
    costs: &Costs,
    spend: Spend,
    setup: Setup,
) -> Result<Measured, PipelineError> {
    if spend == Spend::Busy {
        // Before the threads of the route share the cores.
        rounds_per_second();
    }
    let mut feed = build(model, costs, spend).start(setup)?;
    let mut clock = StepClock::default();
    while let Some(item) = feed.next()? {
        clock.begin(feed.waited());
        let cost = costs.consumer[item.ticket.seq as usize];
        spend.spend(Duration::from_secs_f64(cost.0));
        clock.end();
    }
    let stages = feed.close().stages.split_off(1);
    Ok(clock.measured(stages))
}

/// Mean time per item of the same work without a pipeline, one stage after the other.
pub fn run_serially(costs: &Costs, spend: Spend) -> Seconds {
    let from = Instant::now();
    for (item, consumer) in costs.consumer.iter().enumerate() {
        let stages = costs.stages.iter().map(|list| list[item]);
        for cost in stages.chain([*consumer]) {
            spend.spend(Duration::from_secs_f64(cost.0));
        }
    }
    Seconds(from.elapsed().as_secs_f64() / costs.consumer.len().max(1) as f64)
}

fn build(model: &RouteModel, costs: &Costs, spend: Spend) -> Route<Ticketed<Token>> {
    let items = (0..costs.consumer.len() as u64)
        .map(|seq| Ticketed { ticket: Ticket { epoch: Epoch(0), seq }, body: Token });
    let hold = |items| QueueLimits::bytes(Bytes::mib(1)).items(items);
    let start = Route::from(items, hold(64));
    model.stages.iter().zip(&costs.stages).fold(start, |route, (stage, list)| {
        let (name, costs): (_, Arc<[Seconds]>) = (stage.name, list.as_slice().into());
        let make = move || StandIn { name, costs: Arc::clone(&costs), spend };
        route.then_by(Crew::of(stage.workers), make, hold(stage.slots))
    })
}

#[derive(Clone, Copy, Debug)]
struct Token;

impl Payload for Token {
    fn size(&self) -> Bytes {
        Bytes(1)
    }
}

struct StandIn {
    name: &'static str,
    costs: Arc<[Seconds]>,
    spend: Spend,
}

impl Stage for StandIn {
    type In = Ticketed<Token>;
    type Out = Ticketed<Token>;

    fn name(&self) -> &'static str {
        self.name
    }

    fn step(&mut self, item: Self::In, out: &mut dyn Emitter<Self::Out>) -> Result<(), StageError> {
        let cost = self.costs[item.ticket.seq as usize];
        self.spend.spend(Duration::from_secs_f64(cost.0));
        out.push(item)
    }
}

/// A sleeping thread wakes late by about this much; the rest of a wait is spent awake.
const SLEEP_ERROR: Duration = Duration::from_micros(150);

impl Spend {
    fn spend(self, length: Duration) {
        match self {
            Spend::Waiting => wait(length),
            // The length becomes work, not a deadline: two threads on one core need twice the time.
            Spend::Busy => work((length.as_secs_f64() * rounds_per_second()) as u64),
        }
    }
}

fn wait(length: Duration) {
    let until = Instant::now() + length;
    if length > SLEEP_ERROR {
        std::thread::sleep(length - SLEEP_ERROR);
    }
    while Instant::now() < until {
        // Other threads may use the core meanwhile.
        std::thread::yield_now();
    }
}

/// A chain of dependent operations in registers: its time does not depend on memory.
fn work(rounds: u64) {
    let mut state = 1_u64;
    for _ in 0..rounds {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state = std::hint::black_box(state);
    }
}

/// Rounds of [`work`] that one idle core does in a second, measured once: the best of many short trials, because
/// others may use the core during some of them.
fn rounds_per_second() -> f64 {
    static RATE: OnceLock<f64> = OnceLock::new();
    const ROUNDS: u64 = 200_000;
    *RATE.get_or_init(|| {
        let trial = |_| {
            let from = Instant::now();
            work(ROUNDS);
            ROUNDS as f64 / from.elapsed().as_secs_f64()
        };
        (0..50).map(trial).fold(1.0, f64::max)
    })
}

/// When items began and ended at the consumer.
#[derive(Default)]
struct StepClock {
    first: Option<Instant>,
    ends: Vec<Instant>,
    stalled: Duration,
}

impl StepClock {
    fn begin(&mut self, waited: Duration) {
        match self.first {
            // The wait for the first item is the start of the run, not a stall.
            None => self.first = Some(Instant::now()),
            Some(_) => self.stalled += waited,
        }
    }

    fn end(&mut self) {
        self.ends.push(Instant::now());
    }

    fn measured(self, stages: Vec<StageTotals>) -> Measured {
        let (Some(first), Some(last)) = (self.first, self.ends.last()) else {
            return Measured { step: Seconds(0.0), variation: 0.0, stall: 0.0, stages };
        };
        let over = last.duration_since(first).as_secs_f64();
        let gap = |pair: &[Instant]| pair[1].duration_since(pair[0]).as_secs_f64();
        let steps: Vec<f64> = self.ends.windows(2).map(gap).collect();
        Measured {
            step: Seconds(over / self.ends.len() as f64),
            variation: variation(&steps),
            stall: self.stalled.as_secs_f64() / over,
            stages,
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// CPU time, because the clock of a shared machine tells nothing about the work that was done.
    #[test]
    fn busy_work_is_an_amount_and_not_a_deadline() {
        rounds_per_second();
        let before = cpu_ticks();
        Spend::Busy.spend(Duration::from_millis(300));
        let spent = cpu_ticks() - before;
        assert!(spent >= 15, "{spent} ticks of CPU time for 300 ms of work");
    }

    /// User time of this thread, in hundredths of a second.
    fn cpu_ticks() -> u64 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let after_name = stat.rsplit_once(") ").unwrap().1;
        after_name.split(' ').nth(11).unwrap().parse().unwrap()
    }
}
