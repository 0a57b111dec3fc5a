//! `ThreadPriority::BelowConsumer` changes the niceness of the stages and not of the consumer.
#![cfg(target_os = "linux")]

mod kit;

use kit::{Does, Item, all, hold, items};
use rustix::process::getpriority_process;
use std::sync::{Arc, Mutex};
use tandem_pipeline::{Emitter, Route, Setup, ThreadPriority};

/// Niceness of a stage's thread, and of the consumer's afterwards.
fn niceness(priority: ThreadPriority) -> [i32; 2] {
    let seen = Arc::new(Mutex::new(0));
    let writer = Arc::clone(&seen);
    let stage = Does("reads", move |item: Item, out: &mut dyn Emitter<Item>| {
        *writer.lock().unwrap() = getpriority_process(None).unwrap();
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
fn stages_get_a_lower_priority_than_the_consumer_if_set() {
    let before = getpriority_process(None).unwrap();
    assert_eq!(niceness(ThreadPriority::Equal), [before; 2]);
    let [stage, consumer] = niceness(ThreadPriority::BelowConsumer);
    assert!(stage > before || before == 19, "{stage} against {before}");
    assert_eq!(consumer, before);
}
