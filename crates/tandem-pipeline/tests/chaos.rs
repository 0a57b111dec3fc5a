//! Random routes with random costs, workers, bounds, failures, panics and cancellations.
//!
//! In every case: no deadlock, no lost item, no item out of order, a marker for every skipped item,
//! no more bytes than the budget, no thread left. A run that takes longer than its limit counts as a
//! deadlock; the limit is a thousand times what a run needs.

use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::test_runner::Config;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;
use tandem_pipeline::{
    Budget, CancelToken, Crew, Delivery, Emitter, Ending, Payload, PipelineError, QueueLimits,
    Route, Setup, Stage, StageError,
};
use tandem_units::{Bytes, Epoch, Seed, Ticket};

const LIMIT: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug)]
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

#[derive(Clone, Copy, Debug)]
struct StageDraw {
    workers: usize,
    items: usize,
    bytes: u64,
    // The most times that an item yields to the scheduler.
    cost: u64,
    skips: u64,
}

#[derive(Clone, Copy, Debug)]
enum Incident {
    None,
    Error { stage: usize, item: u64 },
    Panic { stage: usize, item: u64 },
    Cancel { item: u64 },
    ConsumerLeaves { item: u64 },
    Drain { item: u64 },
    ChangeWorkers { every: u64 },
}

#[derive(Clone, Debug)]
struct Draw {
    items: u64,
    largest: u64,
    budget: u64,
    depth: usize,
    stages: Vec<StageDraw>,
    incident: Incident,
    seed: u64,
}

fn draws() -> impl Strategy<Value = Draw> {
    let stage = (1usize..9, 1usize..5, 1u64..60, 0u64..6, prop_oneof![Just(0u64), 2u64..9]);
    let stage = stage.prop_map(|(workers, items, bytes, cost, skips)| StageDraw {
        workers,
        items,
        bytes,
        cost,
        skips,
    });
    let stages = proptest::collection::vec(stage, 1..5);
    let shape = (1u64..200, 1u64..30, 1u64..150, 1usize..5, any::<u64>());
    (shape, stages).prop_flat_map(|((items, largest, budget, depth, seed), stages)| {
        incidents(items, stages.len()).prop_map(move |incident| {
            let stages = stages.clone();
            Draw { items, largest, budget, depth, stages, incident, seed }
        })
    })
}

fn incidents(items: u64, stages: usize) -> impl Strategy<Value = Incident> {
    let at = 0..items;
    prop_oneof![
        Just(Incident::None),
        (0..stages, at.clone()).prop_map(|(stage, item)| Incident::Error { stage, item }),
        (0..stages, at.clone()).prop_map(|(stage, item)| Incident::Panic { stage, item }),
        at.clone().prop_map(|item| Incident::Cancel { item }),
        at.clone().prop_map(|item| Incident::ConsumerLeaves { item }),
        at.prop_map(|item| Incident::Drain { item }),
        (1u64..20).prop_map(|every| Incident::ChangeWorkers { every }),
    ]
}

const NAMES: [&str; 4] = ["first", "second", "third", "fourth"];

struct Chaos {
    index: usize,
    draw: StageDraw,
    incident: Incident,
    seed: Seed,
}

impl Chaos {
    fn skips(draw: &StageDraw, index: usize, number: u64) -> bool {
        draw.skips > 0 && (number + index as u64).is_multiple_of(draw.skips)
    }
}

impl Stage for Chaos {
    type In = Item;
    type Out = Item;

    fn name(&self) -> &'static str {
        NAMES[self.index]
    }

    fn step(&mut self, item: Item, out: &mut dyn Emitter<Item>) -> Result<(), StageError> {
        let random = self.seed.derive(item.number).0;
        (0..random % (self.draw.cost + 1)).for_each(|_| std::thread::yield_now());
        match self.incident {
            Incident::Error { stage, item: at } if (stage, at) == (self.index, item.number) => {
                Err(StageError::stop(std::io::Error::other("drawn")))
            }
            Incident::Panic { stage, item: at } if (stage, at) == (self.index, item.number) => {
                panic!("drawn");
            }
            _ if Chaos::skips(&self.draw, self.index, item.number) => {
                Err(StageError::skip("drawn"))
            }
            _ => out.push(item),
        }
    }
}

/// What was delivered, and how the run ended.
struct Outcome {
    got: Vec<u64>,
    // Items and markers in their order.
    seen: Vec<Delivery<u64>>,
    error: Option<PipelineError>,
    how: Ending,
    left_behind: Vec<String>,
    taken: u64,
    budget: Budget,
}

fn run(draw: &Draw) -> Outcome {
    let (budget, cancel) = (Budget::of(Bytes(draw.budget)), CancelToken::new());
    let taken = Arc::new(AtomicU64::new(0));
    let mut feed = build(draw, &budget, &taken)
        .start(Setup { cancel: cancel.clone(), ..Setup::default() })
        .unwrap();
    let control = feed.control();
    let (mut got, mut seen, mut error) = (Vec::new(), Vec::new(), None);
    loop {
        match feed.next_delivery() {
            Ok(Some(Delivery::Item(item))) => {
                got.push(item.number);
                seen.push(Delivery::Item(item.number));
            }
            Ok(Some(Delivery::Skipped(ticket))) => {
                seen.push(Delivery::Skipped(ticket));
                continue;
            }
            Ok(None) => break,
            Err(cause) => {
                error = Some(cause);
                break;
            }
        }
        let last = *got.last().unwrap();
        match draw.incident {
            Incident::Cancel { item } if last >= item => cancel.cancel(),
            Incident::ConsumerLeaves { item } if last >= item => break,
            Incident::Drain { item } if last >= item => control.drain(),
            Incident::ChangeWorkers { every } if last % every == 0 => {
                let random = Seed(draw.seed).derive(last).0;
                control
                    .set_workers(NAMES[random as usize % draw.stages.len()], random as usize % 7);
                control.set_depth(random as usize % 5);
            }
            _ => {}
        }
    }
    let ended = feed.close();
    let taken = taken.load(Ordering::SeqCst);
    Outcome { got, seen, error, how: ended.how, left_behind: ended.left_behind, taken, budget }
}

fn build(draw: &Draw, budget: &Budget, taken: &Arc<AtomicU64>) -> Route<Item> {
    let (seed, largest, counter) = (Seed(draw.seed), draw.largest, Arc::clone(taken));
    let source = (0..draw.items).map(move |number| {
        counter.fetch_add(1, Ordering::SeqCst);
        Item { number, size: 1 + seed.derive(number).0 % largest }
    });
    let hold = |items, bytes| QueueLimits::bytes(Bytes(bytes)).items(items).within(budget);
    let mut route = Route::from(source, hold(2, draw.budget));
    let last = draw.stages.len() - 1;
    for (index, stage) in draw.stages.iter().copied().enumerate() {
        let (incident, seed) = (draw.incident, seed.derive(index as u64));
        let items = if index == last { draw.depth } else { stage.items };
        let crew = Crew::of(stage.workers).up_to(stage.workers + 1);
        let make = move || Chaos { index, draw: stage, incident, seed };
        route = route.then_by(crew, make, hold(items, stage.bytes));
    }
    route
}

/// The run on its own thread, so that a deadlock is a failure instead of a hang.
fn run_in_time(draw: &Draw) -> Outcome {
    let (sender, outcome) = mpsc::sync_channel(1);
    let drawn = draw.clone();
    std::thread::Builder::new()
        // The send fails only after the limit, when the test has failed already.
        .spawn(move || drop(sender.send(run(&drawn))))
        .expect("a thread for the run");
    outcome.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("no end within {LIMIT:?}: {draw:?}"))
}

fn is_skipped(draw: &Draw, number: u64) -> bool {
    draw.stages.iter().enumerate().any(|(index, stage)| Chaos::skips(stage, index, number))
}

fn expected(draw: &Draw) -> Vec<u64> {
    (0..draw.items).filter(|&number| !is_skipped(draw, number)).collect()
}

/// Every number once and in order, a skipped one as its marker.
fn expected_deliveries(draw: &Draw) -> Vec<Delivery<u64>> {
    let delivery = |number| match is_skipped(draw, number) {
        true => Delivery::Skipped(Some(Ticket { epoch: Epoch(0), seq: number })),
        false => Delivery::Item(number),
    };
    (0..draw.items).map(delivery).collect()
}

#[track_caller]
fn check(draw: &Draw) {
    let outcome = run_in_time(draw);
    let expected = expected(draw);
    assert!(outcome.left_behind.is_empty(), "{:?}", outcome.left_behind);
    assert_eq!(outcome.got, expected[..outcome.got.len()], "in order, without a gap");
    assert_eq!(outcome.seen, expected_deliveries(draw)[..outcome.seen.len()], "no unmarked gap");
    assert_eq!(outcome.budget.used(), Bytes(0), "all bytes were returned");
    // One item may pass alone where the rest of the route is empty.
    let most = draw.budget + draw.largest;
    assert!(outcome.budget.peak().0 <= most, "{} of {most}", outcome.budget.peak());
    if outcome.budget.oversize() == 0 {
        assert!(outcome.budget.peak().0 <= draw.budget);
    }
    let reached = |item: u64| outcome.got.last().is_some_and(|last| *last >= item);
    let name = |stage: usize| NAMES[stage];
    match (draw.incident, &outcome.how) {
        (Incident::Error { stage: at, .. }, Ending::Failed(PipelineError::Stage { stage, .. }))
        | (Incident::Panic { stage: at, .. }, Ending::Failed(PipelineError::Panic { stage, .. })) =>
        {
            assert_eq!(*stage, name(at));
            assert!(outcome.error.is_some());
        }
        (Incident::Cancel { item }, Ending::Failed(PipelineError::Cancelled)) => {
            assert!(reached(item));
        }
        (Incident::ConsumerLeaves { item }, Ending::ConsumerLeft) => assert!(reached(item)),
        (Incident::Drain { .. }, Ending::EndOfData) => {
            let all = expected.iter().filter(|number| **number < outcome.taken).count();
            assert_eq!(outcome.got.len(), all, "all that was taken from the source");
        }
        // The incident's item was skipped before it got there, or there was none.
        (_, Ending::EndOfData) => {
            assert_eq!(outcome.got, expected);
            assert_eq!(outcome.seen.len() as u64, draw.items);
        }
        (incident, how) => panic!("{incident:?} ended as {how:?}"),
    }
}

proptest! {
    #![proptest_config(Config { cases: 300, failure_persistence: None, ..Config::default() })]

    #[test]
    fn nothing_is_lost_reordered_or_stuck_whatever_happens(draw in draws()) {
        check(&draw);
    }

    #[test]
    fn equal_items_never_pass_a_budget_with_room_for_one_per_queue(
        mut draw in draws(),
        spare in 0u64..3,
    ) {
        draw.largest = 1;
        draw.budget = draw.stages.len() as u64 + 1 + spare;
        draw.stages.iter_mut().for_each(|stage| stage.bytes = 2);
        draw.incident = Incident::None;
        let outcome = run_in_time(&draw);
        assert_eq!(outcome.got, expected(&draw));
        assert_eq!(outcome.budget.oversize(), 0);
        assert!(outcome.budget.peak().0 <= draw.budget);
    }
}
