//! Complete runs without failures: order, limits, slots, changing numbers of workers.

mod kit;

use kit::{Does, Item, Number, all, hold, items, numbers, pass};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::time::Duration;
use tandem_pipeline::{
    Budget, Crew, Emitter, Ending, Payload, Pool, Pooled, QueueLimits, Route, Setup, SlotState,
    Stage, StageError,
};
use tandem_telemetry::event::StartReason;
use tandem_units::Bytes;

const AN_HOUR: Duration = Duration::from_secs(3600);

/// Adds up pairs; an unpaired last item leaves at the end.
#[derive(Default)]
struct Pairs(Option<Item>);

impl Stage for Pairs {
    type In = Item;
    type Out = Item;

    fn name(&self) -> &'static str {
        "pairs"
    }

    fn step(&mut self, item: Item, out: &mut dyn Emitter<Item>) -> Result<(), StageError> {
        match self.0.take() {
            None => self.0 = Some(item),
            Some(first) => out.push(first.map(|body| Number(body.0 + item.body.0)))?,
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Emitter<Item>) -> Result<(), StageError> {
        self.0.take().map_or(Ok(()), |rest| out.push(rest))
    }
}

#[test]
fn a_collecting_stage_pushes_what_is_left_at_the_end() {
    let route = Route::from(items(5), hold(1)).then(Pairs::default(), hold(1));
    let mut feed = route.start(Setup::default()).unwrap();
    assert_eq!(numbers(&all(&mut feed).unwrap()), [1, 5, 4]);
    assert!(matches!(feed.close().how, Ending::EndOfData));
}

#[test]
fn every_worker_of_a_collecting_stage_pushes_what_is_left_through_one_slot() {
    let mut feed = Route::from(items(1000), hold(1))
        .then_by(Crew::of(4), Pairs::default, hold(1))
        .start(Setup::default())
        .unwrap();
    let sum: u64 = numbers(&all(&mut feed).unwrap()).iter().sum();
    assert_eq!(sum, (0..1000).sum::<u64>(), "nothing is lost, whichever worker paired an item");
}

#[test]
fn a_stage_may_push_several_results_per_item_through_one_slot() {
    let thrice = || {
        Does("thrice", |item: Item, out: &mut dyn Emitter<Item>| {
            (0..3).try_for_each(|n| out.push(item.map(|body| Number(body.0 * 3 + n))))
        })
    };
    let mut feed = Route::from(items(200), hold(1))
        .then_by(Crew::of(4), thrice, hold(1))
        .then_by(Crew::of(2), thrice, hold(2))
        .then(pass("pass"), hold(1))
        .start(Setup::default())
        .unwrap();
    assert_eq!(numbers(&all(&mut feed).unwrap()), (0..1800).collect::<Vec<_>>());
}

#[test]
fn a_skipped_item_is_counted_and_delays_no_other() {
    let picky = || {
        Does("picky", |item: Item, out: &mut dyn Emitter<Item>| match item.body.0 % 3 {
            0 => Err(StageError::skip("divisible by three")),
            _ => out.push(item),
        })
    };
    let mut feed = Route::from(items(3000), hold(4))
        .then_by(Crew::of(3), picky, hold(4))
        .start(Setup::default())
        .unwrap();
    let expected: Vec<u64> = (0..3000).filter(|n| n % 3 != 0).collect();
    assert_eq!(numbers(&all(&mut feed).unwrap()), expected);
    let picky = feed.close().stages[1];
    assert_eq!((picky.items, picky.skipped), (3000, 1000));
}

#[test]
fn draining_delivers_everything_that_was_taken_from_the_source() {
    let taken = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&taken);
    let source = items(u64::MAX).inspect(move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
    });
    let mut feed = Route::from(source, hold(8))
        .then_by(Crew::of(2), || pass("pass"), hold(4))
        .start(Setup::default())
        .unwrap();
    let mut got = vec![feed.next().unwrap().unwrap()];
    feed.control().drain();
    got.extend(all(&mut feed).unwrap());
    assert_eq!(numbers(&got), (0..taken.load(Ordering::SeqCst) as u64).collect::<Vec<_>>());
    assert!(matches!(feed.close().how, Ending::EndOfData));
}

#[test]
fn the_start_waits_for_ready_slots_and_reports_why_the_wait_ended() {
    let started = |count, slots, depth| {
        let route = Route::from(items(count), hold(4)).then(pass("pass"), hold(depth));
        let mut feed = route.start(Setup::default()).unwrap();
        let started = feed.wait_ready(slots, AN_HOUR);
        (started.ready, started.why)
    };
    assert_eq!(started(10, 2, 2), (2, StartReason::EnoughReady));
    assert_eq!(started(10, 9, 2), (2, StartReason::EnoughReady));
    assert_eq!(started(1, 3, 3), (1, StartReason::EndOfData));
}

#[test]
fn the_start_waits_no_longer_than_its_limit() {
    let (release, gate) = mpsc::sync_channel::<()>(1);
    let stuck = items(3).inspect(move |_| gate.recv().unwrap_or_default());
    let mut feed = Route::from(stuck, hold(4)).start(Setup::default()).unwrap();
    let late = feed.wait_ready(1, Duration::from_millis(5));
    assert_eq!((late.ready, late.why), (0, StartReason::DelayOver));
    assert!(Duration::from(late.waited) >= Duration::from_millis(5));
    drop(release);
    assert_eq!(all(&mut feed).unwrap().len(), 3);
}

#[test]
fn slots_show_what_is_ready_and_what_is_in_training() {
    let route = Route::from(items(100), hold(4)).then(pass("pass"), hold(3));
    let mut feed = route.start(Setup::default()).unwrap();
    let slots = feed.control().slots();
    feed.wait_ready(3, AN_HOUR);
    assert_eq!(slots.count(SlotState::Ready), 3);
    let item = feed.next().unwrap().unwrap();
    let states: Vec<SlotState> = slots.snapshot().iter().map(|slot| slot.state).collect();
    assert_eq!(states, [SlotState::Training, SlotState::Ready, SlotState::Ready]);
    assert_eq!(slots.snapshot()[0].ticket, Some(item.ticket));
    feed.release();
    feed.wait_ready(3, AN_HOUR);
    assert_eq!(slots.count(SlotState::Ready), 3);
}

#[test]
fn depth_counts_the_batch_in_training() {
    // With depth 1 nothing is prepared while the consumer works.
    let created = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&created);
    let stage = Does("make", move |item: Item, out: &mut dyn Emitter<Item>| {
        counter.fetch_add(1, Ordering::SeqCst);
        out.push(item)
    });
    let route = Route::from(items(200), hold(8)).then(stage, hold(1));
    let mut feed = route.start(Setup::default()).unwrap();
    for n in 1..=200 {
        feed.next().unwrap().unwrap();
        std::thread::yield_now();
        assert_eq!(created.load(Ordering::SeqCst), n);
    }
}

struct Huge;

impl Payload for Huge {
    fn size(&self) -> Bytes {
        Bytes::mib(5)
    }
}

struct Same;

impl Stage for Same {
    type In = Huge;
    type Out = Huge;

    fn name(&self) -> &'static str {
        "same"
    }

    fn step(&mut self, item: Huge, out: &mut dyn Emitter<Huge>) -> Result<(), StageError> {
        out.push(item)
    }
}

#[test]
fn an_item_larger_than_the_whole_budget_passes_alone() {
    let budget = Budget::of(Bytes::mib(1));
    let hold = QueueLimits::bytes(Bytes::kib(1)).items(4).within(&budget);
    let mut feed = Route::from((0..50).map(|_| Huge), hold.clone())
        .then_by(Crew::of(3), || Same, hold.clone())
        .then(Same, hold)
        .start(Setup::default())
        .unwrap();
    assert_eq!(all(&mut feed).unwrap().len(), 50);
    drop(feed);
    assert!(budget.peak() <= Bytes::mib(6), "{}", budget.peak());
    assert!(budget.oversize() >= 50);
    assert_eq!(budget.used(), Bytes(0));
}

#[test]
fn changing_the_numbers_of_workers_and_slots_does_not_change_the_order() {
    let mut feed = Route::from(items(3000), hold(8))
        .then_by(Crew::of(1).up_to(4).flag("--num-workers"), || pass("pass"), hold(1))
        .then(pass("last"), hold(3))
        .start(Setup::default())
        .unwrap();
    let control = feed.control();
    let mut got = Vec::new();
    while let Some(item) = feed.next().unwrap() {
        got.push(item.body.0);
        if item.body.0 % 50 == 0 {
            control.set_workers("pass", (item.body.0 / 50 % 6) as usize);
            control.set_depth((item.body.0 / 50 % 4) as usize);
        }
    }
    assert_eq!(got, (0..3000).collect::<Vec<_>>());
    assert_eq!(control.set_workers("pass", 9), Some(4));
    assert_eq!(control.set_workers("unknown", 1), None);
    control.set_depth(5);
    assert_eq!(feed.close().flags, ["--num-workers 4", "--pipeline-depth 5"]);
}

#[test]
fn several_workers_are_busy_at_the_same_time() {
    // The barrier needs three workers at once: with one worker this would never end.
    let meet = Arc::new(Barrier::new(3));
    let stage = move || {
        let meet = Arc::clone(&meet);
        Does("meet", move |item, out: &mut dyn Emitter<Item>| {
            meet.wait();
            out.push(item)
        })
    };
    let mut feed = Route::from(items(30), hold(3))
        .then_by(Crew::of(3), stage, hold(3))
        .start(Setup::default())
        .unwrap();
    assert_eq!(numbers(&all(&mut feed).unwrap()), (0..30).collect::<Vec<_>>());
}

struct Filled(Pooled<Vec<u8>>);

impl Payload for Filled {
    fn size(&self) -> Bytes {
        Bytes(self.0.capacity() as u64)
    }
}

struct Fill(Pool<Vec<u8>>);

impl Stage for Fill {
    type In = Item;
    type Out = Filled;

    fn name(&self) -> &'static str {
        "fill"
    }

    fn step(&mut self, _: Item, out: &mut dyn Emitter<Filled>) -> Result<(), StageError> {
        let mut buffer = self.0.take();
        buffer.resize(1000, 1);
        out.push(Filled(buffer))
    }
}

#[test]
fn buffers_of_a_run_are_reused() {
    let pool = Pool::new(8, Vec::new);
    let route = Route::from(items(500), hold(4)).then(Fill(pool.clone()), hold(3));
    let mut feed = route.start(Setup::default()).unwrap();
    while feed.next().unwrap().is_some() {}
    // The depth is three, and the consumer drops its item before it takes the next.
    assert!(pool.created() <= 3, "{} buffers were created", pool.created());
}
