//! Skipped items reach the consumer as markers, in order, without a later item pushing them.

mod kit;

use kit::{Does, Item, all, hold, items, numbers, pass, ticket};
use std::sync::mpsc;
use std::time::Duration;
use tandem_pipeline::{Crew, Delivery, Emitter, Ending, Feed, Route, Setup, SlotState, StageError};
use tandem_telemetry::event::StartReason;

const AN_HOUR: Duration = Duration::from_secs(3600);

/// Skips the items that `skips` names, passes the others on.
fn skip_where(
    name: &'static str,
    skips: impl Fn(u64) -> bool + Send + 'static,
) -> impl tandem_pipeline::Stage<In = Item, Out = Item> {
    Does(name, move |item: Item, out: &mut dyn Emitter<Item>| match skips(item.body.0) {
        true => Err(StageError::skip("skipped by the test")),
        false => out.push(item),
    })
}

fn deliveries(feed: &mut Feed<Item>) -> Vec<Delivery<u64>> {
    let delivery = |delivery: Delivery<Item>| match delivery {
        Delivery::Item(item) => Delivery::Item(item.body.0),
        Delivery::Skipped(ticket) => Delivery::Skipped(ticket),
    };
    std::iter::from_fn(|| feed.next_delivery().unwrap().map(delivery)).collect()
}

#[test]
fn markers_and_items_arrive_in_order_and_markers_are_not_counted_as_items() {
    let mut feed = Route::from(items(12), hold(2))
        .then_by(Crew::of(3), || skip_where("first", |n| n % 3 == 0), hold(3))
        .then_by(Crew::of(2), || skip_where("second", |n| n % 4 == 1), hold(2))
        .then(pass("last"), hold(2))
        .start(Setup::default())
        .unwrap();
    let expected = (0..12).map(|n| match n % 3 == 0 || n % 4 == 1 {
        true => Delivery::Skipped(Some(ticket(n))),
        false => Delivery::Item(n),
    });
    assert_eq!(deliveries(&mut feed), expected.collect::<Vec<_>>());
    let ended = feed.close();
    assert!(matches!(ended.how, Ending::EndOfData));
    let counts: Vec<_> = ended.stages.iter().map(|stage| (stage.items, stage.skipped)).collect();
    assert_eq!(counts, [(12, 0), (12, 4), (8, 2), (6, 0)]);
    assert_eq!(ended.consumer.items, 6);
}

#[test]
fn when_every_item_is_skipped_the_data_still_ends() {
    let run = || {
        Route::from(items(100), hold(2))
            .then_by(Crew::of(3), || skip_where("none", |_| true), hold(3))
            .then(pass("last"), hold(2))
            .start(Setup::default())
            .unwrap()
    };
    let mut feed = run();
    let started = feed.wait_ready(2, AN_HOUR);
    assert_eq!((started.ready, started.why), (0, StartReason::EnoughReady));
    assert!(feed.next().unwrap().is_none());
    assert!(matches!(feed.close().how, Ending::EndOfData));
    assert_eq!(deliveries(&mut run()).len(), 100);
}

#[test]
fn a_stage_that_waits_for_the_consumer_to_see_a_marker_finishes() {
    // Item 3 is skipped. Item 4 leaves the last stage only after the consumer saw marker 3: with
    // a silent gap both would wait for each other.
    let (saw, seen) = mpsc::sync_channel::<u64>(16);
    let waits = Does("waits", move |item: Item, out: &mut dyn Emitter<Item>| {
        if item.body.0 == 4 {
            while seen.recv().map_err(|gone| StageError::stop(std::io::Error::other(gone)))? != 3 {}
        }
        out.push(item)
    });
    let mut feed = Route::from(items(8), hold(2))
        .then_by(Crew::of(2), || skip_where("skips", |n| n == 3), hold(2))
        .then(waits, hold(3))
        .start(Setup::default())
        .unwrap();
    let mut got = Vec::new();
    while let Some(delivery) = feed.next_delivery().unwrap() {
        match delivery {
            Delivery::Item(item) => got.push(item.body.0),
            Delivery::Skipped(ticket) => saw.send(ticket.unwrap().seq).unwrap(),
        }
    }
    assert_eq!(got, [0, 1, 2, 4, 5, 6, 7]);
}

#[test]
fn an_input_that_pushed_a_result_before_it_was_skipped_has_no_marker() {
    let late = Does("late", |item: Item, out: &mut dyn Emitter<Item>| {
        out.push(item)?;
        Err(StageError::skip("after the result"))
    });
    let mut feed =
        Route::from(items(3), hold(2)).then(late, hold(2)).start(Setup::default()).unwrap();
    assert_eq!(deliveries(&mut feed), [0, 1, 2].map(Delivery::Item));
}

#[test]
fn a_marker_in_a_slot_is_not_shown_as_a_batch() {
    let mut feed = Route::from(items(4), hold(2))
        .then(skip_where("skips", |n| n == 0), hold(3))
        .start(Setup::default())
        .unwrap();
    feed.wait_ready(3, AN_HOUR);
    let slots = feed.control().slots();
    assert_eq!(slots.count(SlotState::Ready), 2, "the third slot holds the marker");
    assert_eq!(feed.next_delivery().unwrap(), Some(Delivery::Skipped(Some(ticket(0)))));
    assert_eq!(slots.count(SlotState::Training), 0);
    assert_eq!(numbers(&all(&mut feed).unwrap()), [1, 2, 3]);
}
