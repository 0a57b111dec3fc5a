//! The queue with a voice that speaks when it is told to.

use super::*;
use crate::encode::Format;
use std::sync::mpsc::{self as std_mpsc, Receiver as Turn};
use tandem_model::synthesis::text::{SpeakerChoice, SpeechOptions};
use tandem_units::Bytes;

/// Speaks a second for each word, each time that the test gives it a turn.
struct Told(Turn<()>);

impl Speech for Told {
    fn rate(&self) -> SampleRate {
        SampleRate(22_050)
    }

    fn speak(
        &mut self,
        request: &SpeechRequest,
        part: &mut dyn FnMut(&[f32], BlockPosition) -> ControlFlow<()>,
    ) -> Result<(), ApiError> {
        let words = request.text.split(' ').count();
        for number in 1..=words {
            if part(&[], BlockPosition::More).is_break() {
                return Ok(());
            }
            self.0.recv().expect("a turn");
            if request.text == "panic" {
                panic!("as told");
            }
            let place = if number == words { BlockPosition::Last } else { BlockPosition::More };
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
    workers_with(waiting, &AnswerMemory::new(Bytes::mib(1), Bytes::mib(64)))
}

fn workers_with(waiting: usize, memory: &AnswerMemory) -> (Workers, SyncSender<()>, Arc<Stats>) {
    let (turn, turns) = std_mpsc::sync_channel(100);
    let stats = Arc::new(Stats::default());
    let speech: Vec<Box<dyn Speech>> = vec![Box::new(Told(turns))];
    let workers = Workers::start(speech, waiting, 100, memory, Arc::clone(&stats)).unwrap();
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
    assert_eq!((first.bytes.len(), first.place), (48_000, BlockPosition::More));
    turn.send(()).unwrap();
    let second = parts.blocking_recv().unwrap().unwrap();
    assert_eq!((second.bytes.len(), second.place), (48_000, BlockPosition::Last));
    assert!(parts.blocking_recv().is_none());
    let mut whole = workers.submit(request("one two", false)).unwrap();
    turn.send(()).unwrap();
    turn.send(()).unwrap();
    let all = whole.blocking_recv().unwrap().unwrap();
    assert_eq!((all.bytes.len(), all.place), (96_000, BlockPosition::Last));
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

/// Its client closes the connection as soon as it has the last part.
struct ClientLeaves<R>(Option<R>);

impl<R: Send + 'static> Speech for ClientLeaves<R> {
    fn rate(&self) -> SampleRate {
        SampleRate(22_050)
    }

    fn speak(
        &mut self,
        _: &SpeechRequest,
        part: &mut dyn FnMut(&[f32], BlockPosition) -> ControlFlow<()>,
    ) -> Result<(), ApiError> {
        let _ = part(&[0.1; 22_050], BlockPosition::Last);
        self.0 = None;
        Ok(())
    }
}

#[test]
fn an_answer_that_was_complete_is_not_counted_as_cancelled() {
    let stats = Stats::default();
    let (reply, client) = mpsc::channel(4);
    let job = Job { request: request("all", true), arrived: Instant::now(), reply };
    let memory = AnswerMemory::new(Bytes::mib(1), Bytes::mib(1));
    answer(&mut ClientLeaves(Some(client)), job, &memory, &stats);
    assert_eq!(stats.cancelled.load(Relaxed), 0);
    assert!(stats.mean_seconds().is_some(), "its time counts for `Retry-After`");
}

/// A part has 48,000 bytes.
#[test]
fn slow_clients_hold_a_bounded_number_of_bytes_each_and_together() {
    let memory = AnswerMemory::new(Bytes(100_000), Bytes(200_000));
    let (workers, turn, _) = workers_with(8, &memory);
    (0..100).for_each(|_| turn.send(()).unwrap());
    let holds = |bytes: u64| {
        wait_until("the worker is done", || memory.reserved() == Bytes(bytes));
    };
    let mut greedy = workers.submit(request("one two three", true)).unwrap();
    // The third part did not fit.
    holds(96_000);
    let mut polite = workers.submit(request("one two", true)).unwrap();
    holds(192_000);
    let refused = workers.submit(request("one", true)).unwrap().blocking_recv().unwrap();
    let refused = refused.unwrap_err();
    assert_eq!((refused.status.as_u16(), refused.code), (429, "answers_full"));
    assert!(refused.retry_after.is_some());
    let parts: Vec<_> = std::iter::from_fn(|| greedy.blocking_recv()).collect();
    assert_eq!(parts.len(), 3);
    assert_eq!(parts[2].as_ref().unwrap_err().code, "answer_too_long");
    drop(parts);
    while polite.blocking_recv().is_some() {}
    holds(0);
    let whole = workers.submit(request("one two", false)).unwrap().blocking_recv().unwrap();
    assert_eq!(whole.unwrap_err().code, "answer_too_long", "samples wait as floats, too");
    assert!(workers.submit(request("one", true)).unwrap().blocking_recv().unwrap().is_ok());
}
