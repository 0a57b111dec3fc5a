//! Runs the feed with a simulated consumer that takes a fixed time per batch.
//!
//! In: a prepared corpus, the feed's settings, a step time. Out: [`BatchCost`]: waits, idle time and
//! the throughput of the data side; and, through the recorder, the events of a training run. Only
//! the model is simulated; the feed is that of training.

use crate::TrainError;
use crate::feed::mel::Ready;
use crate::feed::{FeedSettings, feed};
use crate::prepare::Prepared;
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tandem_pipeline::{CancelToken, Feed};
use tandem_telemetry::Recorder;
use tandem_telemetry::event::{Final, RunOutcome, Started, Step};
use tandem_telemetry::stats::{Figures, Stats};
use tandem_units::Seconds;

/// A consumer that waits longer than this for a batch is starved.
pub const LATE: Duration = Duration::from_millis(10);

/// The simulated model.
#[derive(Clone, Debug)]
pub struct Consumer {
    pub batches: usize,
    /// Time per batch.
    pub step: Duration,
    /// Maximum wait for the slots to fill before the first batch.
    pub start_delay: Duration,
}

/// Waits and throughput of the batches.
#[derive(Clone, Debug, Serialize)]
pub struct BatchCost {
    /// Number of batches.
    pub count: usize,
    pub utterances: usize,
    /// Time per batch of the consumer.
    pub step: Seconds,
    /// How long the start waited for the slots to fill, and why it ended.
    pub started: Started,
    /// Seconds of waiting per batch.
    pub wait: Figures,
    /// Batches with a wait longer than [`LATE`].
    pub late: usize,
    /// Share of the time that the consumer waited.
    pub idle: f64,
    /// Batches per second of the data side, with a consumer that takes no time, without the start.
    pub deliverable: f64,
    /// Workers and slots at the end, as command-line flags.
    pub flags: Vec<String>,
}

/// Runs the feed twice: first as fast as possible, unrecorded, then with the consumer's step time.
pub fn benchmark_feed(
    prepared: &Arc<Prepared>,
    settings: &FeedSettings,
    consumer: &Consumer,
    recorder: &Recorder,
    cancel: &CancelToken,
) -> Result<BatchCost, TrainError> {
    let deliverable = {
        let mut batches = feed(prepared, settings, &Recorder::off(), cancel)?;
        // Starting threads and filling the slots is not throughput.
        for _ in 0..settings.depth + settings.workers {
            batches.next()?;
        }
        let start = Instant::now();
        for _ in 0..consumer.batches {
            batches.next()?;
        }
        consumer.batches as f64 / start.elapsed().as_secs_f64()
    };
    let mut batches = feed(prepared, settings, recorder, cancel)?;
    let started = batches.wait_ready(settings.depth, consumer.start_delay);
    let timed = consume(&mut batches, consumer, recorder)?;
    let flags = batches.close().flags;
    let steps = timed.wait.count;
    recorder.send(Final { outcome: RunOutcome::Done, why: None, steps, flags: flags.clone() });
    Ok(BatchCost {
        count: steps as usize,
        utterances: timed.utterances,
        step: Seconds(consumer.step.as_secs_f64()),
        started,
        late: timed.late,
        idle: timed.wait.mean * steps as f64 / timed.total.as_secs_f64(),
        wait: timed.wait,
        deliverable,
        flags,
    })
}

struct TimedRun {
    wait: Figures,
    late: usize,
    utterances: usize,
    total: Duration,
}

fn consume(
    batches: &mut Feed<Ready>,
    consumer: &Consumer,
    recorder: &Recorder,
) -> Result<TimedRun, TrainError> {
    let mut wait = Stats::default();
    let (mut late, mut utterances) = (0, 0);
    let start = Instant::now();
    let mut last = start;
    for step in 1..=consumer.batches as u64 {
        let Some(ready) = batches.next()? else { break };
        let waited = batches.waited();
        std::thread::sleep(consumer.step);
        wait.add(waited.as_secs_f64());
        late += usize::from(waited > LATE);
        utterances += ready.batch.used();
        let now = Instant::now();
        recorder.send(as_step(step, &ready, now - last, waited));
        last = now;
    }
    let wait = wait.figures().ok_or(TrainError::NothingMeasured)?;
    Ok(TimedRun { wait, late, utterances, total: start.elapsed() })
}

fn as_step(step: u64, ready: &Ready, took: Duration, waited: Duration) -> Step {
    let shape = ready.batch.shape();
    Step {
        step,
        ticket: ready.ticket,
        took: took.into(),
        waited: waited.into(),
        items: ready.batch.used() as u32,
        frames: ready.batch.frame_counts().iter().map(|&frames| frames as u64).sum(),
        shape: Some([shape.rows as u32, shape.symbols as u32, shape.frames as u32]),
        ..Step::default()
    }
}
