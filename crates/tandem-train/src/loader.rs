//! Batches on the host for a training loop outside of this program: one epoch at a time, resumable.
//!
//! In: a prepared corpus, [`FeedSettings`], and calls of [`Loader::poll`]. Out: the batches of the feed, in
//! its order; a [`LoaderState`] that makes another loader deliver the same remaining batches; and, through
//! the recorder, the steps of the consumer, so that its run can be reported like any other. The feed runs
//! on into the next epoch, so that an epoch begins with batches that are ready. Never waits longer than
//! the caller allows: the caller may have signals to look for. Uses no device.

use crate::TrainError;
use crate::feed::mel::Ready;
use crate::feed::route::{FeedSettings, Rows, host_route, setup};
use crate::feed::row_failures::RowFailures;
use crate::prepare::Prepared;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tandem_data::batch::{EpochPlan, Position};
use tandem_pipeline::{CancelToken, Delivery, Feed};
use tandem_telemetry::Recorder;
use tandem_telemetry::event::{Final, RunOutcome, Step};
use tandem_units::{Epoch, Seed};

/// Epochs are counted in 32 bits; this leaves room for those that the feed runs ahead into.
pub const LAST_EPOCH: u32 = u32::MAX / 2;
/// Version of [`LoaderState`].
const STATE_VERSION: u32 = 1;

/// Delivers the batches of an epoch after the other.
pub struct Loader {
    prepared: Arc<Prepared>,
    settings: FeedSettings,
    rows: Arc<Rows>,
    recorder: Recorder,
    cancel: CancelToken,
    /// Any epoch: all have the same number of batches.
    plan: EpochPlan,
    /// Identifies the order of batches.
    order: String,
    /// The next batch.
    position: Position,
    /// Batches of the plan that are over, delivered or skipped; numbers the tickets.
    passed: u64,
    /// The position was restored: the next epoch begins there and not at its first batch.
    restored: bool,
    /// The epoch under way; none between two epochs.
    current: Option<Epoch>,
    feed: Option<Feed<Ready>>,
    steps: Steps,
    /// Workers and slots of the last feed, as command-line flags.
    flags: Vec<String>,
}

/// What [`Loader::poll`] found.
pub enum Next {
    Batch(Box<Ready>),
    EndOfEpoch,
    /// Nothing yet.
    NotYet,
}

/// Where a loader stands. Only the order of batches must be the same to continue from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoaderState {
    pub version: u32,
    pub seed: Seed,
    pub epoch: u32,
    /// The next batch of that epoch.
    pub batch: u64,
    /// Batches of all epochs that are over.
    pub passed: u64,
    /// Fingerprint of corpus and batch settings.
    pub order: String,
}

impl Loader {
    pub fn new(
        prepared: Arc<Prepared>,
        settings: FeedSettings,
        max_failed: f64,
        recorder: Recorder,
    ) -> Result<Loader, TrainError> {
        let rows = Arc::new(Rows::of(&prepared, settings.split));
        if rows.cache_row.is_empty() {
            return Err(TrainError::NoRows { corpus: prepared.root.clone() });
        }
        let position = Position::start(settings.batch.seed);
        let plan = settings.batches(&rows)?.epoch(position.epoch);
        let row_failures = RowFailures::new(max_failed, rows.cache_row.len());
        let order = order_of(&rows, &settings)?;
        Ok(Loader {
            settings: FeedSettings { epochs: None, row_failures, ..settings },
            prepared,
            rows,
            recorder,
            cancel: CancelToken::new(),
            plan,
            order,
            position,
            passed: 0,
            restored: false,
            current: None,
            feed: None,
            steps: Steps::default(),
            flags: Vec::new(),
        })
    }

    /// Batches in an epoch.
    #[expect(clippy::len_without_is_empty, reason = "a plan without batches is an error")]
    pub fn len(&self) -> usize {
        self.plan.len()
    }

    /// Utterances in an epoch.
    pub fn utterances(&self) -> usize {
        self.plan.utterances()
    }

    pub fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    pub fn settings(&self) -> &FeedSettings {
        &self.settings
    }

    /// The epoch under way, or the next one.
    pub fn epoch(&self) -> Epoch {
        self.current.unwrap_or(self.position.epoch)
    }

    /// Chooses the next epoch. The epoch that comes next anyway keeps its position, so that a restored
    /// loader can be told its epoch again.
    pub fn set_epoch(&mut self, epoch: Epoch) {
        if self.position.epoch != epoch {
            self.position = Position { epoch, batch: 0, ..self.position };
            self.restored = false;
        }
        self.current = None;
    }

    /// Begins an epoch: at the restored position, or at the first batch. An epoch that was left in the
    /// middle begins again.
    pub fn begin(&mut self) -> Result<(), TrainError> {
        let at = self.position;
        if !std::mem::take(&mut self.restored) && at.batch != 0 {
            self.position = Position { batch: 0, ..at };
            self.stop_feed();
        }
        if self.feed.as_ref().is_none_or(|_| self.steps.next != Some(self.position)) {
            self.stop_feed();
            let settings =
                FeedSettings { start: self.position, first: self.passed, ..self.settings.clone() };
            let route = host_route(&self.prepared, &settings, &self.recorder)?;
            self.feed = Some(route.start(setup(&settings, &self.recorder, &self.cancel))?);
            self.steps.next = Some(self.position);
        }
        self.current = Some(self.position.epoch);
        self.steps.begin();
        Ok(())
    }

    /// Waits at most this long for the next batch of the epoch.
    pub fn poll(&mut self, at_most: Duration) -> Result<Next, TrainError> {
        // The consumer is done with the batch before.
        self.steps.complete(&self.recorder);
        let until = Instant::now() + at_most;
        loop {
            if self.current != Some(self.position.epoch) {
                self.current = None;
                return Ok(Next::EndOfEpoch);
            }
            let Some(feed) = &mut self.feed else { return Ok(Next::EndOfEpoch) };
            if !feed.wait_next(until.saturating_duration_since(Instant::now())) {
                return Ok(Next::NotYet);
            }
            let delivery = match feed.next_delivery() {
                Ok(delivery) => delivery,
                Err(error) => {
                    self.stop_feed();
                    return Err(error.into());
                }
            };
            self.pass();
            if let Some(error) = self.settings.row_failures.error() {
                self.stop_feed();
                return Err(error);
            }
            match delivery {
                Some(Delivery::Item(ready)) => {
                    let waited = self.feed.as_ref().map_or(Duration::ZERO, Feed::waited);
                    self.steps.start(&ready, waited);
                    return Ok(Next::Batch(Box::new(ready)));
                }
                Some(Delivery::Skipped(_)) => {}
                // The feed has no end of its own.
                None => return Ok(Next::EndOfEpoch),
            }
        }
    }

    /// The ids of a batch's utterances, in the order of its rows.
    pub fn ids(&self, batch: &Ready) -> Vec<&str> {
        let rows = batch.batch.row_ids().iter().map(|&row| self.rows.cache_row[row as usize]);
        rows.map(|row| self.prepared.cache.row(row as usize).map_or("", |row| row.id)).collect()
    }

    pub fn state(&self) -> LoaderState {
        LoaderState {
            version: STATE_VERSION,
            seed: self.position.seed,
            epoch: self.position.epoch.0,
            batch: self.position.batch,
            passed: self.passed,
            order: self.order.clone(),
        }
    }

    /// Continues from a state: the next epoch begins at its batch.
    pub fn restore(&mut self, state: &LoaderState) -> Result<(), TrainError> {
        let wrong = |what: String| Err(TrainError::LoaderState { what });
        if state.version != STATE_VERSION {
            return wrong(format!("it has version {}, not {STATE_VERSION}", state.version));
        }
        if state.seed != self.position.seed {
            return wrong(format!("its seed is {}, not {}", state.seed.0, self.position.seed.0));
        }
        if state.order != self.order {
            return wrong("it was saved with another corpus or other batch settings".into());
        }
        if state.batch >= self.len() as u64 || state.epoch > LAST_EPOCH {
            let (epoch, batch) = (state.epoch, state.batch);
            return wrong(format!("there is no batch {batch} in epoch {epoch}"));
        }
        self.position = Position { epoch: Epoch(state.epoch), batch: state.batch, ..self.position };
        self.passed = state.passed;
        (self.restored, self.current) = (true, None);
        // Batches that are ready have other numbers.
        self.stop_feed();
        Ok(())
    }

    /// Ends the threads and completes the record.
    pub fn close(&mut self, outcome: RunOutcome) {
        self.stop_feed();
        self.current = None;
        let (steps, flags) = (self.steps.count, std::mem::take(&mut self.flags));
        self.recorder.send(Final { outcome, why: None, steps, flags });
    }

    fn pass(&mut self) {
        self.position = self.position.after_batch(&self.plan);
        self.passed += 1;
        self.steps.next = Some(self.position);
    }

    fn stop_feed(&mut self) {
        self.steps.next = None;
        if let Some(feed) = self.feed.take() {
            self.flags = feed.close().flags;
        }
    }
}

/// The steps of the consumer, measured from outside: a step lasts from one request to the next.
#[derive(Default)]
struct Steps {
    count: u64,
    /// The position that the feed delivers next.
    next: Option<Position>,
    since: Option<Instant>,
    under_way: Option<Step>,
}

impl Steps {
    /// What the consumer did between two epochs is no step, nor is a batch it left.
    fn begin(&mut self) {
        self.since = Some(Instant::now());
        self.under_way = None;
    }

    fn start(&mut self, ready: &Ready, waited: Duration) {
        let shape = ready.batch.shape();
        self.under_way = Some(Step {
            step: 0,
            ticket: ready.ticket,
            took: Duration::ZERO.into(),
            waited: waited.into(),
            items: ready.batch.used() as u32,
            frames: ready.batch.frame_counts().iter().map(|&frames| frames as u64).sum(),
            shape: Some([shape.rows as u32, shape.symbols as u32, shape.frames as u32]),
            ..Step::default()
        });
    }

    fn complete(&mut self, recorder: &Recorder) {
        let Some(step) = self.under_way.take() else { return };
        let now = Instant::now();
        let took = self.since.replace(now).map_or(Duration::ZERO, |since| now - since);
        self.count += 1;
        recorder.send(Step { step: self.count, took: took.into(), ..step });
    }
}

/// Identifies the order of batches: the lengths of the rows and the batch settings.
fn order_of(rows: &Rows, settings: &FeedSettings) -> Result<String, TrainError> {
    let batch = serde_json::to_vec(&settings.batch).map_err(TrainError::Settings)?;
    let mut hash = blake3::Hasher::new();
    hash.update(&batch);
    for list in [&rows.frames, &rows.symbols] {
        list.iter().for_each(|length| {
            hash.update(&length.to_le_bytes());
        });
    }
    Ok(hash.finalize().to_hex()[..32].to_string())
}
