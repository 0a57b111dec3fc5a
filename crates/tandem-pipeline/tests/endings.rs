//! Every way a run can end before its data: threads are joined, the first cause is reported.

mod kit;

use kit::{Does, Item, Number, all, hold, items, pass, ticket};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tandem_pipeline::{
    CancelToken, Crew, Emitter, Ending, Frozen, PipelineError, Route, Setup, StageError, Watch,
};
use tandem_units::Hint;

#[test]
fn a_stage_that_stops_the_run_is_named_with_its_item() {
    let stage = Does("brittle", |item: Item, out: &mut dyn Emitter<Item>| match item.body.0 {
        7 => Err(StageError::stop(std::io::Error::other("disk gone"))),
        _ => out.push(item),
    });
    let mut feed = Route::from(items(100), hold(2))
        .then(stage, hold(2))
        .then(pass("pass"), hold(2))
        .start(Setup::default())
        .unwrap();
    let error = all(&mut feed).unwrap_err();
    assert_eq!(error.to_string(), "stage `brittle` stopped the run at item 7 of epoch 0");
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "disk gone");
    let ended = feed.close();
    assert!(matches!(ended.how, Ending::Failed(PipelineError::Stage { stage: "brittle", .. })));
    assert!(ended.left_behind.is_empty());
}

#[test]
fn a_panic_is_caught_and_named() {
    let stage = || {
        Does("jumpy", |item: Item, out: &mut dyn Emitter<Item>| {
            assert!(item.body.0 != 7, "seven");
            out.push(item)
        })
    };
    let mut feed = Route::from(items(100), hold(2))
        .then_by(Crew::of(3), stage, hold(3))
        .start(Setup::default())
        .unwrap();
    let error = all(&mut feed).unwrap_err();
    assert_eq!(error.to_string(), "stage `jumpy` panicked at item 7 of epoch 0: seven");
}

#[test]
fn a_source_that_panics_is_named() {
    let source = items(10).inspect(|item| assert!(item.body.0 < 5, "unreadable"));
    let mut feed = Route::from(source, hold(2)).start(Setup::default()).unwrap();
    assert_eq!(all(&mut feed).unwrap_err().to_string(), "stage `source` panicked: unreadable");
}

struct Guard(Arc<AtomicUsize>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn a_consumer_that_leaves_ends_all_threads() {
    let alive = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&alive);
    let stage = move || {
        counter.fetch_add(1, Ordering::SeqCst);
        let guard = Guard(Arc::clone(&counter));
        Does("guarded", move |item, out: &mut dyn Emitter<Item>| {
            let _ = &guard;
            out.push(item)
        })
    };
    let mut feed = Route::from(items(u64::MAX), hold(2))
        .then_by(Crew::of(2), stage, hold(2))
        .start(Setup::default())
        .unwrap();
    assert_eq!(feed.next().unwrap().unwrap().body, Number(0));
    drop(feed);
    // Each worker owns its stage: all gone means all threads have ended.
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

#[test]
fn a_consumer_that_leaves_is_not_a_failure() {
    let mut feed = Route::from(items(u64::MAX), hold(2)).start(Setup::default()).unwrap();
    feed.next().unwrap();
    assert!(matches!(feed.close().how, Ending::ConsumerLeft));
}

#[test]
fn a_cancelled_run_reports_it_even_if_cancelled_before_its_start() {
    let cancel = CancelToken::new();
    let run = |cancel: &CancelToken| {
        let setup = Setup { cancel: cancel.clone(), ..Setup::default() };
        Route::from(items(u64::MAX), hold(2)).then(pass("pass"), hold(2)).start(setup).unwrap()
    };
    let mut feed = run(&cancel);
    feed.next().unwrap();
    cancel.cancel();
    assert!(matches!(all(&mut feed), Err(PipelineError::Cancelled)));
    assert!(matches!(all(&mut run(&cancel)), Err(PipelineError::Cancelled)));
}

#[test]
fn a_frozen_stage_is_named_with_its_path_and_left_behind() {
    let (_keep, never) = mpsc::sync_channel::<()>(1);
    let stage = Does("load", move |item: Item, out: &mut dyn Emitter<Item>| {
        out.item(&format_args!("clips/{}.wav", item.body.0));
        if item.body.0 == 3 {
            // Returns only when the test has ended.
            let _ = never.recv();
        }
        out.push(item)
    });
    let (stall_timeout, grace) = (Some(Duration::from_millis(50)), Duration::from_millis(20));
    let (sender, received) = mpsc::sync_channel(4);
    let on_frozen = Arc::new(move |frozen: &Frozen| sender.send(frozen.clone()).unwrap());
    let watch = Watch { stall_timeout, consumer: None, grace, on_frozen: Some(on_frozen) };
    let mut feed = Route::from(items(100), hold(2))
        .then(stage, hold(2))
        .then(pass("victim"), hold(2))
        .start(Setup { watch, ..Setup::default() })
        .unwrap();
    let error = all(&mut feed).unwrap_err();
    let PipelineError::Frozen(frozen) = &error else { panic!("{error}") };
    assert_eq!((frozen.stage, frozen.worker, frozen.ticket), ("load", 0, Some(ticket(3))));
    assert_eq!(frozen.item.as_deref(), Some("clips/3.wav"));
    assert!(error.to_string().ends_with(" at item 3 of epoch 0, in `clips/3.wav`"), "{error}");
    let hint = error.hint().unwrap();
    assert!(hint.contains("check `clips/3.wav`") && hint.contains("`--stall-timeout`"), "{hint}");
    assert!(frozen.silent > Duration::from_millis(50));
    assert_eq!(received.recv().unwrap(), *frozen);
    assert_eq!(feed.close().left_behind, ["tandem-load-0"]);
}

#[test]
fn a_frozen_consumer_is_reported_although_nothing_can_stop_it() {
    let (sender, received) = mpsc::sync_channel(4);
    let on_frozen = Arc::new(move |frozen: &Frozen| sender.send(frozen.stage).unwrap());
    let consumer = Some(Duration::from_millis(30));
    let watch = Watch { consumer, on_frozen: Some(on_frozen), ..Watch::default() };
    let setup = Setup { watch, consumer: "train", ..Setup::default() };
    let mut feed = Route::from(items(100), hold(2)).start(setup).unwrap();
    feed.next().unwrap();
    assert_eq!(received.recv().unwrap(), "train");
    assert!(matches!(feed.next(), Err(PipelineError::Frozen(_))));
}
