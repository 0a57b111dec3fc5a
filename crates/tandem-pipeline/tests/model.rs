//! The queue, the budget, the slots and the workers under a model checker.
//!
//! The source files of the library are compiled here a second time, with the locks of `shuttle`
//! instead of the system's (`crate::sync` is the only module that names a lock). Every test runs
//! under many schedules. One that blocks forever is reported as a deadlock, with its schedule.
#![allow(dead_code, reason = "parts of the library that a model does not need")]

mod sync {
    pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard};

    use std::sync::PoisonError;
    use std::time::Duration;

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// There is no time in the model: a wait that only a deadline can end is a deadlock here.
    pub(crate) fn wait_at_most<'a, T>(
        condvar: &Condvar,
        guard: MutexGuard<'a, T>,
        _at_most: Duration,
    ) -> MutexGuard<'a, T> {
        wait(condvar, guard)
    }

    /// For tests without threads of their own.
    pub(crate) fn model(test: impl Fn() + Send + Sync + 'static) {
        shuttle::check_random(test, 1);
    }
}

#[path = "../src/payload.rs"]
mod payload;
#[path = "../src/stage.rs"]
mod stage;
#[path = "../src/budget.rs"]
mod budget;
#[path = "../src/slot_pool.rs"]
mod slot_pool;
#[path = "../src/slots.rs"]
mod slots;
#[path = "../src/queue.rs"]
mod queue;
#[path = "../src/permits.rs"]
mod permits;
#[path = "../src/meter.rs"]
mod meter;
#[path = "../src/intervals.rs"]
mod intervals;
#[path = "../src/error.rs"]
mod error;
#[path = "../src/slow.rs"]
mod slow;
#[path = "../src/stop.rs"]
mod stop;
#[path = "../src/worker.rs"]
mod worker;
#[path = "../src/pool.rs"]
mod pool;

use budget::{Budget, QueueBudget, Stopped};
use intervals::Intervals;
use meter::Meter;
use payload::Payload;
use permits::Permits;
use pool::Pool;
use queue::{AnyQueue, Queue, QueueSlot, Taken};
use shuttle::thread::{self, JoinHandle};
use slots::{SlotState, Slots};
use slow::Slowdowns;
use stage::{Emitter, Stage, StageError};
use std::sync::Arc;
use stop::{Cause, Stop};
use tandem_telemetry::Recorder;
use tandem_units::{Bytes, Epoch, Ticket};
use worker::{Context, Source, Worker};

fn model(test: impl Fn() + Send + Sync + 'static) {
    let test = Arc::new(test);
    let again = Arc::clone(&test);
    shuttle::check_random(move || test(), 1000);
    // Few preemptions at the worst points: finds what random schedules rarely reach.
    shuttle::check_pct(move || again(), 1000, 3);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Item {
    number: u64,
    size: u64,
}

impl Payload for Item {
    fn size(&self) -> Bytes {
        Bytes(self.size)
    }

    fn ticket(&self) -> Option<Ticket> {
        Some(Ticket { epoch: Epoch(0), seq: self.number })
    }
}

/// What a model's consumer saw, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Item(u64),
    Skipped(u64),
}

/// Skips the item `skips`, pushes `times` results for each of the others. The item `waits` first
/// waits until the consumer has seen a marker.
#[derive(Clone, Copy)]
struct Work {
    times: u64,
    skips: Option<u64>,
    waits: Option<u64>,
}

/// Set once the consumer has seen a marker.
#[derive(Default)]
struct MarkerSeen {
    seen: sync::Mutex<bool>,
    changed: sync::Condvar,
}

struct Step {
    work: Work,
    marker: Arc<MarkerSeen>,
}

impl Stage for Step {
    type In = Item;
    type Out = Item;

    fn name(&self) -> &'static str {
        "work"
    }

    fn step(&mut self, item: Item, out: &mut dyn Emitter<Item>) -> Result<(), StageError> {
        let Work { times, skips, waits } = self.work;
        if skips == Some(item.number) {
            return Err(StageError::skip("skipped"));
        }
        if waits == Some(item.number) {
            let mut seen = sync::lock(&self.marker.seen);
            while !*seen {
                seen = sync::wait(&self.marker.changed, seen);
            }
        }
        (0..times).try_for_each(|n| out.push(Item { number: item.number * times + n, ..item }))
    }
}

/// A source, one stage with some workers, a consumer: all on threads of the model.
#[derive(Clone)]
struct Case {
    sizes: Vec<u64>,
    work: Work,
    workers: usize,
    slots: (usize, usize),
    budget: u64,
}

struct Running {
    stop: Arc<Stop>,
    permits: Arc<Permits>,
    input: Arc<Queue<Item>>,
    output: Arc<Queue<Item>>,
    budget: Budget,
    slots: Slots,
    marker: Arc<MarkerSeen>,
    threads: Vec<JoinHandle<()>>,
}

impl Case {
    fn plain() -> Case {
        let work = Work { times: 1, skips: None, waits: None };
        Case { sizes: vec![1; 4], work, workers: 2, slots: (1, 2), budget: 100 }
    }

    fn start(&self) -> Running {
        let budget = Budget::of(Bytes(self.budget));
        let queue_budget = || -> Arc<QueueBudget> { budget.add_queue(0, Bytes(self.budget)) };
        let input = Arc::new(Queue::new(queue_budget(), self.slots.0, 1));
        let output = Arc::new(Queue::new(queue_budget(), self.slots.1, self.workers));
        let permits = Arc::new(Permits::new(self.workers));
        let queues: Vec<Arc<dyn AnyQueue>> = vec![input.clone(), output.clone()];
        let stop = Arc::new(Stop::new(queues, vec![permits.clone()]));
        let slots = Slots::new(Box::new(|_, _| {}));
        output.show_in(slots.clone());
        let items: Vec<Item> = self
            .sizes
            .iter()
            .enumerate()
            .map(|(n, size)| Item { number: n as u64, size: *size })
            .collect();
        let source = Source { items: items.into_iter(), output: Arc::clone(&input) };
        let source_context = context(&stop);
        let mut threads = vec![thread::spawn(move || source.run(source_context))];
        let marker = Arc::new(MarkerSeen::default());
        for index in 0..self.workers {
            let (work, marker, context) = (self.work, Arc::clone(&marker), context(&stop));
            let worker = Worker {
                index,
                stage: None,
                make: Arc::new(move || Step { work, marker: Arc::clone(&marker) }),
                permits: Arc::clone(&permits),
                input: Arc::clone(&input),
                output: Arc::clone(&output),
                slot: None,
            };
            threads.push(thread::spawn(move || worker.run(context)));
        }
        Running { stop, permits, input, output, budget, slots, marker, threads }
    }

    fn expected(&self) -> Vec<Seen> {
        let results = |n: u64| match self.work.skips {
            Some(skipped) if skipped == n => vec![Seen::Skipped(n)],
            _ => (0..self.work.times).map(|k| Seen::Item(n * self.work.times + k)).collect(),
        };
        (0..self.sizes.len() as u64).flat_map(results).collect()
    }

    /// Every item arrives, in order, within the budget, and all slots and bytes are free again.
    #[track_caller]
    fn check(self, most_bytes: u64) {
        model(move || {
            let mut running = self.start();
            assert_eq!(running.take_all().unwrap(), self.expected());
            running.join();
            assert!(running.budget.peak().0 <= most_bytes, "peak {}", running.budget.peak());
            assert_eq!(running.budget.used(), Bytes(0));
            assert_eq!((running.input.level().in_use, running.output.level().in_use), (0, 0));
        });
    }
}

fn context(stop: &Arc<Stop>) -> Context {
    let meter = Arc::new(Meter::new(None));
    Context {
        stage: "work",
        meter,
        stop: Arc::clone(stop),
        recorder: Recorder::off(),
        slow: Slowdowns::default(),
        intervals: Intervals::new(),
    }
}

impl Running {
    /// As `Feed` does: the slot is released before the next item is taken.
    fn take(&self, slot_in_use: &mut Option<QueueSlot>) -> Result<Option<Seen>, Stopped> {
        slot_in_use.take().into_iter().for_each(|slot| self.output.release(slot));
        match self.output.take_and_keep(&mut || {})? {
            Taken::Item(_, entry) => {
                *slot_in_use = Some(entry.slot);
                if entry.body.is_none() {
                    *sync::lock(&self.marker.seen) = true;
                    self.marker.changed.notify_all();
                }
                let skipped = entry.ticket.map(|ticket| Seen::Skipped(ticket.seq));
                Ok(entry.body.map(|body| Seen::Item(body.number)).or(skipped))
            }
            Taken::End(_) => Ok(None),
        }
    }

    fn take_all(&self) -> Result<Vec<Seen>, Stopped> {
        let mut slot_in_use = None;
        std::iter::from_fn(|| self.take(&mut slot_in_use).transpose()).collect()
    }

    fn join(&mut self) {
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

#[test]
fn items_arrive_in_order_through_the_smallest_queues() {
    Case { slots: (1, 1), ..Case::plain() }.check(100);
}

#[test]
fn three_workers_keep_the_order() {
    Case { workers: 3, slots: (2, 3), ..Case::plain() }.check(100);
}

#[test]
fn a_skipped_item_leaves_a_marker_and_delays_no_other() {
    let work = Work { times: 1, skips: Some(1), waits: None };
    Case { work, slots: (2, 2), ..Case::plain() }.check(100);
}

#[test]
fn an_item_may_wait_until_the_consumer_has_seen_the_marker_before_it() {
    let work = Work { times: 1, skips: Some(1), waits: Some(2) };
    for (workers, slots) in [(1, (1, 1)), (2, (1, 1)), (2, (2, 2)), (3, (2, 3))] {
        Case { work, workers, slots, ..Case::plain() }.check(100);
    }
}

#[test]
fn several_results_per_item_pass_through_one_slot() {
    let work = Work { times: 3, skips: None, waits: None };
    Case { work, sizes: vec![1; 3], slots: (1, 1), ..Case::plain() }.check(100);
}

#[test]
fn several_results_per_item_pass_through_fewer_slots_than_workers() {
    let work = Work { times: 2, skips: Some(1), waits: None };
    Case { work, workers: 3, slots: (2, 2), ..Case::plain() }.check(100);
}

#[test]
fn equal_items_never_pass_a_budget_that_has_room_for_one_per_queue() {
    Case { sizes: vec![10; 4], slots: (4, 4), budget: 20, ..Case::plain() }.check(20);
}

#[test]
fn an_item_over_the_whole_budget_passes_alone() {
    let sizes = vec![1, 50, 2, 50];
    Case { sizes, slots: (4, 4), budget: 10, ..Case::plain() }.check(60);
}

#[test]
fn a_stop_at_any_moment_ends_every_thread() {
    let case = Case { sizes: vec![4; 4], slots: (2, 2), budget: 10, ..Case::plain() };
    model(move || {
        let mut running = case.start();
        let stop = Arc::clone(&running.stop);
        let stopper = thread::spawn(move || stop.stop(Cause::ConsumerGone));
        if let Ok(got) = running.take_all() {
            assert_eq!(got, case.expected());
        }
        running.join();
        stopper.join().unwrap();
    });
}

#[test]
fn workers_and_slots_change_at_any_moment() {
    let case = Case { workers: 2, slots: (1, 1), ..Case::plain() };
    model(move || {
        let mut running = case.start();
        let (permits, output) = (Arc::clone(&running.permits), Arc::clone(&running.output));
        let changes = thread::spawn(move || {
            for (workers, slots) in [(1, 3), (2, 1), (1, 2)] {
                permits.set_active(workers);
                output.resize(slots);
            }
        });
        assert_eq!(running.take_all().unwrap(), case.expected());
        running.join();
        changes.join().unwrap();
    });
}

#[test]
fn the_slots_never_show_two_in_training_or_more_than_the_depth() {
    let case = Case { slots: (2, 2), ..Case::plain() };
    model(move || {
        let mut running = case.start();
        let slots = running.slots.clone();
        let observer = thread::spawn(move || {
            for _ in 0..4 {
                let seen = slots.snapshot();
                let training = seen.iter().filter(|slot| slot.state == SlotState::Training);
                assert!(training.count() <= 1);
                assert_eq!(seen.len(), 2);
            }
        });
        assert_eq!(running.take_all().unwrap(), case.expected());
        running.join();
        observer.join().unwrap();
    });
}

#[test]
fn a_pooled_buffer_has_one_owner() {
    model(|| {
        let pool = Pool::new(2, || 0u32);
        let owners: Vec<_> = (0..3)
            .map(|_| {
                let pool = pool.clone();
                thread::spawn(move || {
                    let mut buffer = pool.take();
                    let seen = *buffer;
                    thread::yield_now();
                    *buffer = seen + 1;
                })
            })
            .collect();
        owners.into_iter().for_each(|owner| owner.join().unwrap());
        let (created, mut sum) = (pool.created(), 0);
        let spare: Vec<_> = (0..created.min(2)).map(|_| pool.take()).collect();
        spare.iter().for_each(|buffer| sum += **buffer);
        assert!(created <= 3 && (created == 3 || sum == 3), "{created} created, {sum} counted");
    });
}
