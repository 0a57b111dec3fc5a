//! Runs in which nothing moves are ended; slow runs are not.

mod kit;

use kit::{Does, Item, all, hold, items, numbers, pass};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tandem_pipeline::{Emitter, PipelineError, Route, Setup, Watch};
use tandem_units::Hint;

fn watch(stall_timeout: Duration) -> Setup {
    let grace = Duration::from_millis(20);
    let watch = Watch { stall_timeout: Some(stall_timeout), grace, ..Watch::default() };
    Setup { watch, ..Setup::default() }
}

#[test]
fn a_stage_and_a_consumer_that_wait_for_each_other_are_ended_and_named() {
    let (_weights, never) = mpsc::sync_channel::<()>(1);
    let align = Does("align", move |item: Item, out: &mut dyn Emitter<Item>| {
        if item.body.0 == 5 {
            out.waiting(&format_args!("the weights of step {}", 120));
            let _ = never.recv();
            out.working();
        }
        out.push(item)
    });
    let mut feed = Route::from(items(100), hold(2))
        .then(pass("load"), hold(2))
        .then(align, hold(2))
        .start(watch(Duration::from_millis(100)))
        .unwrap();
    let error = all(&mut feed).unwrap_err();
    assert!(matches!(error, PipelineError::Stalled(_)), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("nothing moved for 1"), "{text}");
    let states = "`source` waits for room, `load` waits for room, \
                  `align` waits for the weights of step 120, `train` waits for the next item";
    assert!(text.ends_with(states), "{text}");
    assert!(error.hint().unwrap().contains("raise `--stall-timeout`"));
    assert_eq!(feed.close().left_behind, ["tandem-align-0"]);
}

#[test]
fn a_wait_that_a_stage_names_is_measured_as_waiting() {
    let waits = Does("waits", |item: Item, out: &mut dyn Emitter<Item>| {
        out.waiting(&"a clock");
        std::thread::sleep(Duration::from_millis(100));
        out.working();
        out.push(item)
    });
    let route = Route::from(items(2), hold(2)).then(waits, hold(2));
    let began = Instant::now();
    let mut feed = route.start(Setup::default()).unwrap();
    all(&mut feed).unwrap();
    let waits = feed.close().stages[1];
    let (waited, whole) = (Duration::from_millis(200), began.elapsed());
    assert!(waits.starved >= waited, "{waits:?}");
    assert!(waits.busy <= whole - waited, "the waits are busy time, too: {waits:?} of {whole:?}");
}

#[test]
fn a_slow_stage_that_makes_progress_is_no_alarm() {
    // Each item takes longer than the limit, but names a new file before the limit is over.
    let slow = Does("slow", |item: Item, out: &mut dyn Emitter<Item>| {
        for part in 0..22 {
            out.item(&part);
            std::thread::sleep(Duration::from_millis(100));
        }
        out.push(item)
    });
    let route = Route::from(items(2), hold(2)).then(slow, hold(2));
    let mut feed = route.start(watch(Duration::from_secs(2))).unwrap();
    assert_eq!(numbers(&all(&mut feed).unwrap()), [0, 1]);
}
