//! The events of a run in its record: slots, stages, skips, decisions, the frozen stage.

mod kit;

use kit::{Does, Item, all, hold, items, pass, ticket};
use std::sync::mpsc;
use std::time::Duration;
use tandem_pipeline::adapt::{Adapt, Limits};
use tandem_pipeline::{
    Crew, Emitter, Route, Setup, SlotState, Slowdown, Slowdowns, StageError, Watch,
};
use tandem_telemetry::event::{DecisionOutcome, Doing, Event, RunHeader, Stamped};
use tandem_telemetry::record::{RecordOptions, Recording, Spans};

/// Runs `body` with a recorder, and returns the recorded events.
fn recorded(body: impl FnOnce(tandem_telemetry::Recorder)) -> Vec<Event> {
    let file = tandem_telemetry::MemoryFile::default();
    let header = RunHeader::now("test", "0", serde_json::Value::Null);
    let options = RecordOptions { spans: Spans::Recorded, ..RecordOptions::default() };
    let recording = Recording::start(Box::new(file.clone()), header, options).unwrap();
    body(recording.recorder());
    recording.finish();
    let text = String::from_utf8(file.contents()).unwrap();
    text.lines().map(|line| serde_json::from_str::<Stamped>(line).unwrap().event).collect()
}

#[test]
fn every_slot_passes_through_its_three_states_in_the_record() {
    let events = recorded(|recorder| {
        let route = Route::from(items(6), hold(2)).then(pass("pass"), hold(3));
        let mut feed = route.start(Setup { recorder, ..Setup::default() }).unwrap();
        assert_eq!(all(&mut feed).unwrap().len(), 6);
    });
    let changes: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Slot(change) if change.slot == 0 => Some((change.state, change.ticket)),
            _ => None,
        })
        .collect();
    let cycle = |seq| {
        let ticket = Some(ticket(seq));
        [(SlotState::Ready, ticket), (SlotState::Training, ticket), (SlotState::Preparing, None)]
    };
    assert_eq!(changes, [cycle(0), cycle(3)].concat());
}

#[test]
fn shares_queues_spans_and_skips_are_in_the_record() {
    let events = recorded(|recorder| {
        let picky = Does("picky", |item: Item, out: &mut dyn Emitter<Item>| match item.body.0 {
            4 => Err(StageError::skip("unreadable")),
            _ => out.push(item),
        });
        let route = Route::from(items(10), hold(2)).then(picky, hold(3));
        let mut feed = route.start(Setup { recorder, ..Setup::default() }).unwrap();
        all(&mut feed).unwrap();
    });
    let finished = |name: &str| -> u64 {
        let of = |event: &Event| match event {
            Event::Stage(stage) if stage.stage == name => stage.items,
            _ => 0,
        };
        events.iter().map(of).sum()
    };
    assert_eq!((finished("source"), finished("picky"), finished("train")), (10, 10, 9));
    let skips: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Skipped(skip) => Some((&*skip.stage, skip.ticket, skip.why.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(skips, [("picky", Some(ticket(4)), "unreadable")]);
    let queues = |event: &&Event| matches!(event, Event::Queue(level) if level.queue == "train");
    assert!(events.iter().any(|event| queues(&event)));
    let spans = |event: &&Event| matches!(event, Event::Span(span) if span.stage == "picky");
    assert!(events.iter().filter(spans).count() >= 10);
}

#[test]
fn the_frozen_stage_is_in_the_record() {
    let (_keep, never) = mpsc::sync_channel::<()>(1);
    let events = recorded(|recorder| {
        let stuck = Does("stuck", move |item: Item, out: &mut dyn Emitter<Item>| {
            let _ = never.recv();
            out.push(item)
        });
        let stall_timeout = Some(Duration::from_millis(30));
        let watch = Watch { stall_timeout, grace: Duration::ZERO, ..Watch::default() };
        let route = Route::from(items(10), hold(2)).then(stuck, hold(3));
        let mut feed = route.start(Setup { recorder, watch, ..Setup::default() }).unwrap();
        assert!(all(&mut feed).is_err());
    });
    let warning = events.iter().find_map(|event| match event {
        Event::Warning(warning) if warning.code == "frozen" => Some(warning.text.as_str()),
        _ => None,
    });
    let text = warning.expect("a warning");
    assert!(text.starts_with("stage `stuck` (worker 0) made no progress for"), "{text}");
    assert!(text.ends_with("at item 0 of epoch 0"), "{text}");
}

#[test]
fn a_starving_run_gets_more_workers_and_keeps_its_order() {
    let events = recorded(|recorder| {
        let slow = || {
            Does("slow", |item: Item, out: &mut dyn Emitter<Item>| {
                std::thread::sleep(Duration::from_millis(2));
                out.push(item)
            })
        };
        let interval = Duration::from_millis(60);
        let limits = Limits { interval, least_items: 10, ..Limits::default() };
        let setup = Setup { recorder, adapt: Adapt::On(limits), ..Setup::default() };
        let crew = Crew::of(1).up_to(3).flag("--num-workers");
        let mut feed = Route::from(items(u64::MAX), hold(8))
            .then_by(crew, slow, hold(2))
            .then(pass("pass"), hold(3))
            .start(setup)
            .unwrap();
        let control = feed.control();
        // Two workers double the throughput; a noisy machine may need several attempts.
        for expected in 0..300_000 {
            assert_eq!(feed.next().unwrap().unwrap().body.0, expected);
            if control.stages()[1].workers == 3 {
                break;
            }
        }
        assert_eq!(feed.close().flags[0], "--num-workers 3");
    });
    let outcomes: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Decision(decision) => Some((decision.outcome, decision.after.is_some())),
            _ => None,
        })
        .collect();
    assert!(outcomes.contains(&(DecisionOutcome::Trying, false)));
    assert!(outcomes.contains(&(DecisionOutcome::Kept, true)));
}

/// Busy milliseconds under this name, in the spans of a run.
fn busy_ms(events: &[Event], name: &str) -> f64 {
    let busy = events.iter().filter_map(|event| match event {
        Event::Span(span) if span.stage == name && span.doing == Doing::Busy => {
            Some((span.end.0 - span.begin.0) as f64 / 1e6)
        }
        _ => None,
    });
    busy.sum()
}

#[test]
fn work_that_is_done_is_timed_as_the_part_that_begins() {
    let (whole, second) = (Duration::from_millis(6), Duration::from_millis(4));
    let events = recorded(|recorder| {
        let two = Does("first", move |item: Item, out: &mut dyn Emitter<Item>| {
            std::thread::sleep(whole);
            out.part("second", second);
            out.push(item)
        });
        let route = Route::from(items(5), hold(2)).then(two, hold(3));
        all(&mut route.start(Setup { recorder, ..Setup::default() }).unwrap()).unwrap();
    });
    assert!(busy_ms(&events, "first") >= 10.0 - 0.1, "{}", busy_ms(&events, "first"));
    assert!(busy_ms(&events, "second") >= 20.0 - 0.1, "{}", busy_ms(&events, "second"));
}

#[test]
fn the_parts_of_a_stage_are_timed_and_slowed_separately() {
    let run = |slowed: &str| {
        recorded(|recorder| {
            let two = Does("first", |item: Item, out: &mut dyn Emitter<Item>| {
                out.part("second", Duration::ZERO);
                out.push(item)
            });
            let slow = Slowdowns::of([Slowdown::always(slowed, Duration::from_millis(5))]);
            let route = Route::from(items(6), hold(2)).then(two, hold(3));
            let mut feed = route.start(Setup { recorder, slow, ..Setup::default() }).unwrap();
            all(&mut feed).unwrap();
        })
    };
    for slowed in ["first", "second", "train"] {
        let events = run(slowed);
        let took = ["first", "second", "train"].map(|name| (busy_ms(&events, name), name));
        let slowest = took.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
        assert_eq!(slowest.map(|(_, name)| name), Some(slowed), "{took:?}");
        assert!(busy_ms(&events, slowed) >= 30.0, "{took:?}");
    }
}
