//! The queue of requests and the threads that synthesize.
//!
//! In: [`SpeechRequest`]s. Out: for each a channel with its encoded parts, or a refusal. The queue is
//! bounded: a request that finds it full is refused at once with the time after which to try again. A
//! worker never waits for a client: the channel has room for every sentence of the longest text, and what a slow client
//! does not take is bounded by [`AnswerMemory`]. A request whose client is gone is dropped.

use crate::answer_memory::{AnswerMemory, Held, Reservation};
use crate::api_error::ApiError;
use crate::encode::{BlockPosition, Encoder};
use crate::error::ServeError;
use crate::metrics::Stats;
use crate::request::SpeechRequest;
use axum::http::StatusCode;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tandem_units::SampleRate;
use tandem_units::panic_guard::catch_panic;
use tokio::sync::mpsc;

/// Something that turns a request into samples. One per thread.
pub trait Speech: Send + 'static {
    /// The rate of the samples.
    fn rate(&self) -> SampleRate;

    /// Gives `part` the samples of each sentence: at first none, as soon as the text is known to be
    /// readable. `Break` ends the synthesis.
    fn speak(
        &mut self,
        request: &SpeechRequest,
        part: &mut dyn FnMut(&[f32], BlockPosition) -> ControlFlow<()>,
    ) -> Result<(), ApiError>;
}

/// Bytes of an answer.
#[derive(Debug)]
pub struct EncodedPart {
    pub bytes: Vec<u8>,
    pub place: BlockPosition,
    /// Gives the bytes back when the connection has sent them.
    pub held: Held,
}

impl AsRef<[u8]> for EncodedPart {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// What a worker sends: parts, and an error as the last.
pub type Parts = mpsc::Receiver<Result<EncodedPart, ApiError>>;

struct Job {
    request: SpeechRequest,
    arrived: Instant,
    reply: mpsc::Sender<Result<EncodedPart, ApiError>>,
}

/// The queue and its threads.
pub struct Workers {
    /// None once closed.
    queue: Mutex<Option<SyncSender<Job>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    stats: Arc<Stats>,
    workers: usize,
    /// Parts of the longest text.
    room: usize,
}

impl Workers {
    /// One thread for each of `speech`, and a queue of `waiting` requests. A text has at most `room` parts.
    pub fn start(
        speech: Vec<Box<dyn Speech>>,
        waiting: usize,
        room: usize,
        memory: &AnswerMemory,
        stats: Arc<Stats>,
    ) -> Result<Workers, ServeError> {
        let (queue, jobs) = sync_channel(waiting.max(1));
        let jobs = Arc::new(Mutex::new(jobs));
        let workers = speech.len();
        let mut threads = Vec::new();
        for (number, mut speech) in speech.into_iter().enumerate() {
            let (jobs, stats, memory) = (Arc::clone(&jobs), Arc::clone(&stats), memory.clone());
            let work = move || {
                while let Some(job) = next(&jobs) {
                    stats.waiting.fetch_sub(1, Relaxed);
                    stats.active.fetch_add(1, Relaxed);
                    answer(&mut *speech, job, &memory, &stats);
                    stats.active.fetch_sub(1, Relaxed);
                }
            };
            let thread = std::thread::Builder::new().name(format!("tandem-speech-{number}"));
            threads.push(thread.spawn(work).map_err(ServeError::Thread)?);
        }
        let (queue, threads) = (Mutex::new(Some(queue)), Mutex::new(threads));
        Ok(Workers { queue, threads, stats, workers, room: room.max(1) })
    }

    /// Queues a request; its parts arrive in the channel.
    pub fn submit(&self, request: SpeechRequest) -> Result<Parts, ApiError> {
        let (reply, parts) = mpsc::channel(self.room + 1);
        let job = Job { request, arrived: Instant::now(), reply };
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let ending = || {
            let status = StatusCode::SERVICE_UNAVAILABLE;
            ApiError::new(status, "shutting_down", "the server is shutting down")
        };
        let Some(queue) = &*queue else { return Err(ending()) };
        // Counted first: a worker may take the request before this thread continues.
        self.stats.waiting.fetch_add(1, Relaxed);
        let refused = match queue.try_send(job) {
            Ok(()) => return Ok(parts),
            Err(TrySendError::Full(_)) => self.busy(),
            Err(TrySendError::Disconnected(_)) => ending(),
        };
        self.stats.waiting.fetch_sub(1, Relaxed);
        Err(refused)
    }

    fn busy(&self) -> ApiError {
        // Until about half of the queue is done.
        let each = self.stats.mean_seconds().unwrap_or(1.0);
        let waiting = self.stats.waiting.load(Relaxed) as f64;
        let seconds = (each * waiting / self.workers.max(1) as f64 / 2.0).clamp(1.0, 60.0).ceil();
        let fact = "the queue is full";
        let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "queue_full", fact).with_hint(
            format!("try again in {seconds} s, or start the server with a longer `--queue`"),
        );
        ApiError { retry_after: Some(Duration::from_secs(seconds as u64)), ..error }
    }

    /// Takes no further request. Threads end when the queue is empty.
    pub fn close(&self) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Waits for the threads to end; only after [`Workers::close`].
    pub fn join(&self) {
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A thread that panicked has nothing left to join.
            let _ = thread.join();
        }
    }
}

/// The next request; none when the queue is closed and empty.
fn next(jobs: &Mutex<Receiver<Job>>) -> Option<Job> {
    jobs.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

/// When to try again while clients hold the memory of all answers: a client that takes nothing is disconnected by then.
const MEMORY_FREE_AFTER: Duration = Duration::from_secs(10);

fn memory_full() -> ApiError {
    let fact = "answers that their clients have not taken yet fill the memory for answers";
    let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "answers_full", fact)
        .with_hint("try again later, or start the server with a larger `--answer-memory`");
    ApiError { retry_after: Some(MEMORY_FREE_AFTER), ..error }
}

fn too_long(room: &Reservation) -> ApiError {
    let fact = format!("more than {} of the answer wait for their client", room.per_client());
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "answer_too_long", fact)
        .with_hint("send a shorter text, or read the answer as it is sent (`\"stream\": true`)")
}

/// Bytes of a kept sample: as a float, and of 16 bit in the answer.
const KEPT_SAMPLE: usize = 6;

/// Synthesizes one request.
fn answer(speech: &mut dyn Speech, job: Job, memory: &AnswerMemory, stats: &Stats) {
    let Job { request, arrived, reply } = job;
    if reply.is_closed() {
        stats.cancelled.fetch_add(1, Relaxed);
        return;
    }
    let Some(room) = memory.reserve() else {
        // A client that left does not need the answer.
        let _ = reply.try_send(Err(memory_full()));
        return;
    };
    let began = Instant::now();
    let rate = speech.rate();
    let mut encoder = Encoder::new(request.format, rate);
    // Where the client wants one piece, everything waits here.
    let mut kept: Vec<f32> = Vec::new();
    let mut samples = 0;
    let mut failed = None;
    let mut first = true;
    // The last part was taken. A client may close the connection right after it, before this thread looks again.
    let mut complete = false;
    let done = catch_panic(|| {
        speech.speak(&request, &mut |fresh, place| {
            if reply.is_closed() {
                return ControlFlow::Break(());
            }
            if fresh.is_empty() && place == BlockPosition::More {
                return ControlFlow::Continue(());
            }
            samples += fresh.len();
            if !request.stream {
                if (kept.len() + fresh.len()) * KEPT_SAMPLE > room.per_client().0 as usize {
                    failed = Some(too_long(&room));
                    return ControlFlow::Break(());
                }
                kept.extend_from_slice(fresh);
                if place == BlockPosition::More {
                    return ControlFlow::Continue(());
                }
            }
            let part: &[f32] = if request.stream { fresh } else { &kept };
            match encoder.encode(part, place) {
                Ok(bytes) => {
                    if std::mem::take(&mut first) {
                        stats.first_audio(arrived.elapsed());
                    }
                    let Some(held) = room.hold(bytes.len()) else {
                        failed = Some(too_long(&room));
                        return ControlFlow::Break(());
                    };
                    // There is room for every part of the longest text; no room means no client.
                    match reply.try_send(Ok(EncodedPart { bytes, place, held })) {
                        Ok(()) => {
                            complete = place != BlockPosition::More;
                            ControlFlow::Continue(())
                        }
                        Err(_) => ControlFlow::Break(()),
                    }
                }
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        })
    });
    let failed = match done {
        Ok(Ok(())) => failed,
        Ok(Err(error)) => Some(error),
        Err(panic) => Some(ApiError::server(format!("the synthesis broke off: {panic}"))),
    };
    match failed {
        Some(error) => {
            // No room or no client: nobody waits for the error.
            let _ = reply.try_send(Err(error));
        }
        None if complete => {
            stats.synthesized(began.elapsed(), samples as f64 / f64::from(rate.0));
        }
        None => {
            stats.cancelled.fetch_add(1, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
