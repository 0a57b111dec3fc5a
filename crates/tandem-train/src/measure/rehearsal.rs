//! The feed in front of a consumer that works for a set time on each batch.
//!
//! In: a prepared corpus, the feed's settings, a step time. Out: [`BatchCost`]: waits, idle time,
//! what the data side can deliver; and, through the recorder, the same events a training run
//! sends. Stands in for the model until there is one; everything before it is the real thing.

use crate::TrainError;
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

use crate::feed::mel::Ready;

/// A consumer that waits longer than this for a batch is starved.
pub const LATE: Duration = Duration::from_millis(10);

/// The stand-in for a model.
#[derive(Clone, Debug)]
pub struct Consumer {
    /// Batches to take.
    pub batches: usize,
    /// How long it works on one.
    pub step: Duration,
    /// The longest it waits for the first slots to be ready.
    pub start_delay: Duration,
}

/// What reaches a consumer.
#[derive(Clone, Debug, Serialize)]
pub struct BatchCost {
    /// Batches taken.
    pub count: usize,
    /// Utterances in them.
    pub utterances: usize,
    /// Work on a batch.
    pub step: Seconds,
    /// The controlled start: how long it waited, and why it began.
    pub started: Started,
    /// Wait for a batch.
    pub wait: Figures,
    /// Batches that came later than [`LATE`].
    pub late: usize,
    /// Share of the time the consumer waited.
    pub idle: f64,
    /// Batches a second when nobody works on them: what the data side can deliver.
    pub deliverable: f64,
    /// Workers and slots at the end, as flags to type next time.
    pub flags: Vec<String>,
}

/// Takes batches twice: as fast as they come, unrecorded, then at the consumer's pace.
pub fn rehearse(
    prepared: &Arc<Prepared>,
    settings: &FeedSettings,
    consumer: &Consumer,
    recorder: &Recorder,
    cancel: &CancelToken,
) -> Result<BatchCost, TrainError> {
    let deliverable = {
        let mut batches = feed(prepared, settings, &Recorder::off(), cancel)?;
        let start = Instant::now();
        for _ in 0..consumer.batches {
            batches.next()?;
        }
        consumer.batches as f64 / start.elapsed().as_secs_f64()
    };
    let mut batches = feed(prepared, settings, recorder, cancel)?;
    let started = batches.wait_ready(settings.depth, consumer.start_delay);
    let paced = take_at_pace(&mut batches, consumer, recorder)?;
    let flags = batches.close().flags;
    let steps = paced.wait.count;
    recorder.send(Final { outcome: RunOutcome::Done, why: None, steps, flags: flags.clone() });
    Ok(BatchCost {
        count: steps as usize,
        utterances: paced.utterances,
        step: Seconds(consumer.step.as_secs_f64()),
        started,
        late: paced.late,
        idle: paced.wait.mean * steps as f64 / paced.total.as_secs_f64(),
        wait: paced.wait,
        deliverable,
        flags,
    })
}

struct Paced {
    wait: Figures,
    late: usize,
    utterances: usize,
    total: Duration,
}

fn take_at_pace(
    batches: &mut Feed<Ready>,
    consumer: &Consumer,
    recorder: &Recorder,
) -> Result<Paced, TrainError> {
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
    Ok(Paced { wait, late, utterances, total: start.elapsed() })
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
        losses: Vec::new(),
    }
}
