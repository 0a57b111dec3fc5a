//! The queue with a voice that speaks when it is told to.

use super::*;
use crate::encode::Format;
use std::sync::mpsc::{self as std_mpsc, Receiver as Turn};
use tandem_model::synthesis::text::{SpeakerChoice, SpeechOptions};

/// Speaks a second for each word, each time that the test gives it a turn.
struct Told(Turn<()>);

impl Speech for Told {
    fn rate(&self) -> SampleRate {
        SampleRate(22_050)
    }

    fn speak(
        &mut self,
        request: &SpeechRequest,
        part: &mut dyn FnMut(&[f32], Place) -> ControlFlow<()>,
    ) -> Result<(), ApiError> {
        let words = request.text.split(' ').count();
        for number in 1..=words {
            if part(&[], Place::More).is_break() {
                return Ok(());
            }
            self.0.recv().expect("a turn");
            if request.text == "panic" {
                panic!("as told");
            }
            let place = if number == words { Place::Last } else { Place::More };
            if part(&[0.1; 22_050], place).is_break() {
                return Ok(());
            }
        }
        Ok(())
    }
}

fn request(text: &str, stream: bool) -> SpeechRequest {
    SpeechRequest {
        text: text.into(),
        speaker: SpeakerChoice::AnyKnown,
        options: SpeechOptions::default(),
        format: Format::Pcm,
        stream,
    }
}

fn workers(waiting: usize) -> (Workers, SyncSender<()>, Arc<Stats>) {
    let (turn, turns) = std_mpsc::sync_channel(100);
    let stats = Arc::new(Stats::default());
    let speech: Vec<Box<dyn Speech>> = vec![Box::new(Told(turns))];
    let workers = Workers::start(speech, waiting, 100, Arc::clone(&stats)).unwrap();
    (workers, turn, stats)
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn parts_arrive_as_they_are_ready_and_together_where_asked() {
    let (workers, turn, stats) = workers(4);
    let mut parts = workers.submit(request("one two", true)).unwrap();
    assert!(parts.try_recv().is_err());
    turn.send(()).unwrap();
    let first = parts.blocking_recv().unwrap().unwrap();
    assert_eq!((first.bytes.len(), first.place), (48_000, Place::More));
    turn.send(()).unwrap();
    let second = parts.blocking_recv().unwrap().unwrap();
    assert_eq!((second.bytes.len(), second.place), (48_000, Place::Last));
    assert!(parts.blocking_recv().is_none());
    let mut whole = workers.submit(request("one two", false)).unwrap();
    turn.send(()).unwrap();
    turn.send(()).unwrap();
    let all = whole.blocking_recv().unwrap().unwrap();
    assert_eq!((all.bytes.len(), all.place), (96_000, Place::Last));
    wait_until("both are counted", || stats.mean_seconds().is_some());
}

#[test]
fn a_full_queue_refuses_at_once_and_says_when_to_come_back() {
    let (workers, turn, stats) = workers(2);
    let mut running = workers.submit(request("one", true)).unwrap();
    wait_until("the worker has it", || stats.active.load(Relaxed) == 1);
    let mut waiting = [0, 1].map(|_| workers.submit(request("one", true)).unwrap());
    let error = workers.submit(request("one", true)).unwrap_err();
    assert_eq!((error.status.as_u16(), error.code), (429, "queue_full"));
    assert!(error.retry_after.unwrap() >= Duration::from_secs(1));
    assert_eq!(stats.waiting.load(Relaxed), 2);
    for _ in 0..3 {
        turn.send(()).unwrap();
    }
    assert!(running.blocking_recv().unwrap().is_ok());
    assert!(waiting.iter_mut().all(|parts| parts.blocking_recv().unwrap().is_ok()));
    assert!(workers.submit(request("one", true)).is_ok());
    turn.send(()).unwrap();
}

#[test]
fn a_client_that_is_gone_frees_its_place() {
    let (workers, turn, stats) = workers(2);
    let first = workers.submit(request("one two three four", true)).unwrap();
    let second = workers.submit(request("one two three four", true)).unwrap();
    wait_until("the worker has it", || stats.active.load(Relaxed) == 1);
    drop((first, second));
    turn.send(()).unwrap();
    wait_until("both are dropped", || stats.cancelled.load(Relaxed) == 2);
    assert!(stats.mean_seconds().is_none());
}

#[test]
fn a_panic_costs_one_request() {
    let (workers, turn, _) = workers(2);
    let mut broken = workers.submit(request("panic", true)).unwrap();
    turn.send(()).unwrap();
    let error = broken.blocking_recv().unwrap().unwrap_err();
    assert!(error.fact.contains("as told"), "{error:?}");
    let mut next = workers.submit(request("one", true)).unwrap();
    turn.send(()).unwrap();
    assert!(next.blocking_recv().unwrap().is_ok());
}

#[test]
fn a_closed_queue_finishes_what_waits() {
    let (workers, turn, _) = workers(4);
    let mut parts = [0, 1].map(|_| workers.submit(request("one", true)).unwrap());
    workers.close();
    assert_eq!(workers.submit(request("one", true)).unwrap_err().status.as_u16(), 503);
    turn.send(()).unwrap();
    turn.send(()).unwrap();
    workers.join();
    assert!(parts.iter_mut().all(|parts| parts.blocking_recv().unwrap().is_ok()));
}
