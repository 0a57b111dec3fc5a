//! Stages step back behind the consumer where they are told to, the consumer stays where it is.
#![cfg(target_os = "linux")]

mod kit;

use kit::{Does, Item, all, hold, items};
use rustix::process::getpriority_process;
use std::sync::{Arc, Mutex};
use tandem_pipeline::{Outlet, Route, Setup, ThreadPriority};

/// Niceness of a stage's thread, and of the consumer's afterwards.
fn places(priority: ThreadPriority) -> [i32; 2] {
    let seen = Arc::new(Mutex::new(0));
    let tells = Arc::clone(&seen);
    let stage = Does("tells", move |item: Item, out: &mut dyn Outlet<Item>| {
        *tells.lock().unwrap() = getpriority_process(None).unwrap();
        out.push(item)
    });
    let route = Route::from(items(3), hold(2)).then(stage, hold(2));
    let mut feed = route.start(Setup { priority, ..Setup::default() }).unwrap();
    assert_eq!(all(&mut feed).unwrap().len(), 3);
    drop(feed);
    let stage = *seen.lock().unwrap();
    [stage, getpriority_process(None).unwrap()]
}

#[test]
fn stages_step_back_behind_the_consumer_where_that_is_asked() {
    let before = getpriority_process(None).unwrap();
    assert_eq!(places(ThreadPriority::Equal), [before; 2]);
    let [stage, consumer] = places(ThreadPriority::BelowConsumer);
    assert!(stage > before || before == 19, "{stage} behind {before}");
    assert_eq!(consumer, before);
}
