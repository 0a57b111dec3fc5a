//! Runs the trainer for a few steps, whole and with one part removed, and records each run.
//!
//! In: the input of a training run, and a number of steps. Out: one record per run, with spans, for
//! the crate `tandem-insight`. Data, route, model and training loop are those of
//! [`mod@crate::run::trainer`]. Only the data side (replaced by batches from memory) or the model
//! (replaced by nothing) is removed. Nothing is validated or synthesized, and no checkpoint is
//! retained.

use crate::TrainError;
use crate::feed::train_route::{BatchSource, TrainRoute};
use crate::feed::transfer::Transferred;
use crate::feed::{FeedSettings, Rows};
use crate::log::LogSender;
use crate::prepare::Prepared;
use crate::run::background::{on_training_pool, priority_on};
use crate::run::job::{Ending, Job, RunStart};
use crate::run::memory_accounting::MemoryAccounting;
use crate::run::start::begin;
use crate::run::step::TrainState;
use crate::run::trainer::train_on;
use crate::run::warm_up::WarmUp;
use crate::train_settings::{AlignmentSettings, TrainSettings};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tandem_data::batch::BatchConfig;
use tandem_device::backend::guarded;
use tandem_device::memory::{MemoryBaseline, PhaseWatch};
use tandem_device::placement::{MemoryLimits, OpenDevices};
use tandem_device::sampler::{Sampler, WatchedGpu, standard_sources};
use tandem_model::Module;
use tandem_model::checkpoint::{Checkpoints, Keep};
use tandem_model::gradients::LocalGradients;
use tandem_pipeline::control::StageTotals;
use tandem_pipeline::{Adapt, CancelToken, Feed, Payload, PipelineError, Slowdowns};
use tandem_telemetry::event::{Doing, Event, Final, RunHeader, RunOutcome, Span, Step};
use tandem_telemetry::record::{Listener, RecordOptions, Recording, Spans, Update};
use tandem_telemetry::{Nanos, Recorder, Stamped};
use tandem_units::{Bytes, Epoch};

/// Which part of the trainer runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    Whole,
    /// The model, with batches from memory.
    ModelAlone,
    /// The data side, without a model.
    DataAlone,
}

/// Shared input of the runs of a profile.
pub struct ProfileRunner {
    /// Workers and depth are fixed during the runs.
    pub feed: FeedSettings,
    pub settings: TrainSettings,
    pub devices: OpenDevices,
    /// GPUs that are sampled during the runs.
    pub watched: Vec<WatchedGpu>,
    /// Memory budgets, where they are enforced.
    pub limits: Option<MemoryLimits>,
    /// Maximum wait for the slots to fill before the first step.
    pub start_delay: Duration,
    /// Steps of each run, warm-up included.
    pub steps: u64,
    /// Directory for temporary checkpoints.
    pub scratch: PathBuf,
    /// Called with the number of each finished step.
    pub on_step: Arc<dyn Fn(u64) + Send + Sync>,
    pub cancel: CancelToken,
}

/// Limits of the batches that are stored on the model's device for a replay.
const MAX_REPLAY_SIZE: Bytes = Bytes::mib(1024);
const MAX_REPLAY_BATCHES: u64 = 512;
/// Maximum number of polls until a pipeline is idle.
const MAX_IDLE_POLLS: usize = 100;
/// Interval of device samples and of idle polls.
const POLL_EVERY: Duration = Duration::from_millis(200);

/// Seconds per batch in one turn of [`ProfileRunner::take_turns`].
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// While the pipeline loads the next batches.
    pub with_pipeline: f64,
    /// While the pipeline is idle.
    pub alone: f64,
}

impl ProfileRunner {
    /// Performs one run, recorded in a new file. Returns the number of parameters of the voice.
    pub fn run(
        &self,
        scenario: Scenario,
        prepared: &Arc<Prepared>,
        record: &Path,
    ) -> Result<usize, TrainError> {
        let batches = match scenario {
            Scenario::ModelAlone => BatchSource::Replayed(self.first_batches(prepared)?),
            _ => BatchSource::FromCorpus,
        };
        let settings = self.settings_for(scenario);
        let start = self.begin(prepared, &settings)?;
        let parameters = start.train_state.voice.num_params();
        let recording = self.start_record(record, scenario)?;
        let recorder = recording.recorder();
        let sources = standard_sources(&self.watched);
        let sampler = Sampler::start(sources, recorder.clone(), POLL_EVERY)?;
        let done = match scenario {
            Scenario::DataAlone => self.run_data_side(prepared, &start, &recorder),
            _ => self.train(prepared, settings, start, batches, recorder),
        };
        drop(sampler);
        recording.finish();
        done.map(|()| parameters)
    }

    fn train(
        &self,
        prepared: &Arc<Prepared>,
        settings: TrainSettings,
        start: RunStart,
        batches: BatchSource,
        recorder: Recorder,
    ) -> Result<(), TrainError> {
        let job = Job {
            prepared: prepared.clone(),
            validation: None,
            feed: self.fixed_feed(),
            settings,
            config: serde_json::Value::Null,
            devices: self.devices.clone(),
            limits: self.limits,
            warm_up: WarmUp::default(),
            held: MemoryBaseline::measure(&self.devices),
            phases: PhaseWatch::default(),
            checkpoints: Some(self.checkpoints()?),
            cluster: None,
            start_delay: self.start_delay,
            log: LogSender::off(),
            recorder,
            cancel: self.cancel.clone(),
            on_frozen: None,
        };
        match train_on(job, start, batches)?.ending {
            Ending::Done | Ending::NoProgress => Ok(()),
            Ending::Interrupted => Err(PipelineError::Cancelled.into()),
            Ending::Failed(error) => Err(error),
        }
    }

    /// Runs the whole data side, up to the model's device, and drops the batches.
    fn run_data_side(
        &self,
        prepared: &Arc<Prepared>,
        start: &RunStart,
        recorder: &Recorder,
    ) -> Result<(), TrainError> {
        // There is no model that a slowdown could apply to.
        let feed = FeedSettings { slow: self.feed.slow.without("train"), ..self.fixed_feed() };
        let accounting = MemoryAccounting::new(self.limits, &self.devices);
        let mut batches = self.path(prepared, &feed, start, &accounting, recorder).start()?;
        batches.wait_ready(feed.depth, self.start_delay);
        let accum = self.settings.grad_accum.max(1) as u64;
        let mut last = Instant::now();
        for number in 1..=self.steps * accum {
            let Some(transferred) = batches.next()? else { break };
            if number.is_multiple_of(accum) {
                let now = Instant::now();
                let took = std::mem::replace(&mut last, now).elapsed();
                recorder.send(as_step(number / accum, &transferred, took, batches.waited()));
            }
        }
        let flags = batches.close().flags;
        let (outcome, steps) = (RunOutcome::Done, self.steps);
        recorder.send(Final { outcome, why: None, steps, flags });
        Ok(())
    }

    /// Compares steps while the pipeline works with the same steps while it is idle, in turns of `batches`
    /// batches.
    ///
    /// Each turn trains on batches as they come, waits until all queues are full and all stages sleep, and
    /// trains on the same batches again from memory. `on_turn` receives the number of each finished turn.
    pub fn take_turns(
        &self,
        prepared: &Arc<Prepared>,
        turns: usize,
        batches: usize,
        on_turn: &mut dyn FnMut(usize),
    ) -> Result<Vec<Turn>, TrainError> {
        let settings = self.settings_for(Scenario::ModelAlone);
        let mut start = self.begin(prepared, &settings)?;
        let feed = self.fixed_feed();
        let accounting = MemoryAccounting::new(self.limits, &self.devices);
        let path = self.path(prepared, &feed, &start, &accounting, &Recorder::off()).start();
        let (mut path, mut replay) = (path?, Vec::new());
        let mut found = Vec::new();
        let priority = priority_on(&self.devices);
        for turn in 0..=turns {
            let (path, replay) = (&mut path, &mut replay);
            let (train_state, count) = (&mut start.train_state, batches);
            let took = on_training_pool(priority, || take_turn(train_state, path, replay, count));
            // The first turn is dropped: it compiles kernels.
            if let (1.., Some(took)) = (turn, took?) {
                found.push(took);
                on_turn(turn);
            }
        }
        Ok(found)
    }

    /// The first batches of the run, on the model's device.
    fn first_batches(&self, prepared: &Arc<Prepared>) -> Result<Arc<[Transferred]>, TrainError> {
        let settings = self.settings_for(Scenario::ModelAlone);
        let start = self.begin(prepared, &settings)?;
        let feed = FeedSettings { slow: Slowdowns::default(), ..self.fixed_feed() };
        let accounting = MemoryAccounting::new(self.limits, &self.devices);
        let mut path: Feed<Transferred> =
            self.path(prepared, &feed, &start, &accounting, &Recorder::off()).start()?;
        let wanted = (self.steps * self.settings.grad_accum.max(1) as u64).min(MAX_REPLAY_BATCHES);
        let (mut replay, mut size) = (Vec::new(), Bytes(0));
        while (replay.len() as u64) < wanted && size < MAX_REPLAY_SIZE {
            let Some(transferred) = path.next()? else { break };
            size += transferred.size();
            replay.push(transferred);
        }
        Ok(replay.into())
    }

    fn path<'a>(
        &'a self,
        prepared: &'a Arc<Prepared>,
        feed: &'a FeedSettings,
        start: &'a RunStart,
        accounting: &'a MemoryAccounting,
        recorder: &'a Recorder,
    ) -> TrainRoute<'a> {
        TrainRoute {
            prepared,
            feed,
            devices: &self.devices,
            accounting,
            document: &start.document,
            snapshots: &start.snapshots,
            flat_start: 0,
            batches_per_step: self.settings.grad_accum.max(1) as u64,
            seed: self.settings.seed,
            recorder,
            cancel: &self.cancel,
            on_frozen: None,
        }
    }

    fn begin(
        &self,
        prepared: &Arc<Prepared>,
        settings: &TrainSettings,
    ) -> Result<RunStart, TrainError> {
        let checkpoints = self.checkpoints()?;
        begin(prepared, &self.fixed_feed(), settings, &self.devices, &checkpoints, &self.cancel)
    }

    fn start_record(&self, path: &Path, scenario: Scenario) -> Result<Recording, TrainError> {
        let settings =
            serde_json::json!({ "command": "profile", "scenario": format!("{scenario:?}") });
        let header = RunHeader::now("tandem", env!("CARGO_PKG_VERSION"), settings);
        let on_step = Arc::clone(&self.on_step);
        let listener = Listener::new(move |news| {
            if let Update::Event(Stamped { event: Event::Step(step), .. }) = news {
                on_step(step.step);
            }
        });
        let (spans, listener) = (Spans::Recorded, Some(listener));
        let options = RecordOptions { spans, listener, ..RecordOptions::default() };
        Ok(Recording::create(path, header, options)?)
    }

    /// An empty directory for the final checkpoint of a run.
    fn checkpoints(&self) -> Result<Checkpoints, TrainError> {
        let directory = tempfile::Builder::new()
            .prefix("run-")
            .tempdir_in(&self.scratch)
            .map_err(|source| TrainError::Scratch { path: self.scratch.clone(), source })?;
        // Removed with the scratch directory, after the last write.
        Ok(Checkpoints::open(&directory.keep(), Keep { last: 1 })?)
    }

    fn fixed_feed(&self) -> FeedSettings {
        FeedSettings { adapt: Adapt::Off, epochs: None, ..self.feed.clone() }
    }

    fn settings_for(&self, scenario: Scenario) -> TrainSettings {
        // Most steps of a run are aligned by the voice, so the flat start is not measured.
        let flat_start = 0;
        let alignment = match scenario {
            Scenario::Whole => AlignmentSettings { flat_start, ..self.settings.alignment },
            // There are no newer snapshots, so the first weights align everything.
            _ => AlignmentSettings { every: 1, lag: u64::MAX, flat_start },
        };
        TrainSettings {
            max_steps: Some(self.steps),
            epochs: None,
            patience: None,
            judge: None,
            validate_every: 0,
            sample_every: 0,
            checkpoint_every: 0,
            alignment,
            ..self.settings.clone()
        }
    }
}

/// Trains on some batches as they come, then on the same ones again. None where none came.
fn take_turn(
    train_state: &mut TrainState,
    path: &mut Feed<Transferred>,
    replay: &mut Vec<Transferred>,
    batches: usize,
) -> Result<Option<Turn>, TrainError> {
    wait_until_idle(path);
    replay.clear();
    let began = Instant::now();
    for _ in 0..batches {
        let Some(transferred) = path.next()? else { break };
        train_on_batch(train_state, &transferred)?;
        replay.push(transferred);
    }
    let with_pipeline = began.elapsed();
    wait_until_idle(path);
    let began = Instant::now();
    for transferred in replay.iter() {
        train_on_batch(train_state, transferred)?;
    }
    let each = |all: Duration| all.as_secs_f64() / replay.len() as f64;
    let turn = Turn { with_pipeline: each(with_pipeline), alone: each(began.elapsed()) };
    Ok((!replay.is_empty()).then_some(turn))
}

/// One step on one batch. Waits for its result, since a GPU computes asynchronously.
fn train_on_batch(
    train_state: &mut TrainState,
    transferred: &Transferred,
) -> Result<(), TrainError> {
    guarded("training", || {
        train_state.take_batch(&transferred.batch);
        let next = train_state.step + 1;
        let metrics = train_state.optimizer_step(next, &mut LocalGradients)?;
        // Read back, so that a GPU has done the work before the clock stops.
        let _ = metrics.map(|metrics| metrics.values.into_data());
        Ok(())
    })?
}

/// Waits until no stage finished an item for longer than the slowest stage takes: every queue is full.
fn wait_until_idle(path: &Feed<Transferred>) {
    let control = path.control();
    let mut before = None;
    for _ in 0..MAX_IDLE_POLLS {
        let stages = control.stages();
        let done: u64 = stages.iter().map(|stage| stage.items).sum();
        if before.replace(done) == Some(done) {
            return;
        }
        let usual = |stage: &StageTotals| stage.busy.div_f64(stage.items.max(1) as f64);
        let slowest = stages.iter().map(usual).max().unwrap_or_default();
        std::thread::sleep(POLL_EVERY.max(2 * slowest));
    }
}

fn as_step(step: u64, transferred: &Transferred, took: Duration, waited: Duration) -> Step {
    let shape = transferred.shape;
    Step {
        step,
        ticket: transferred.ticket,
        took: took.into(),
        waited: waited.into(),
        items: transferred.batch.utterances as u32,
        frames: transferred.frames,
        shape: Some([shape.rows as u32, shape.symbols as u32, shape.frames as u32]),
        ..Step::default()
    }
}

/// Measures how many seconds it takes to send one event.
pub fn send_cost() -> Result<f64, TrainError> {
    const EVENTS: u32 = 4000;
    let header = RunHeader::now("tandem", env!("CARGO_PKG_VERSION"), serde_json::Value::Null);
    let (recording, _memory) = Recording::in_memory(header)?;
    let recorder = recording.recorder();
    let (begin, end) = (Nanos(0), Nanos(1));
    let began = Instant::now();
    for worker in 0..EVENTS {
        let (stage, doing) = ("load".into(), Doing::Busy);
        recorder.send(Span { stage, worker, ticket: None, doing, begin, end });
    }
    let took = began.elapsed().as_secs_f64();
    recording.finish();
    Ok(took / f64::from(EVENTS))
}

/// Number of batches by padded shape: rows, symbols, frames.
pub type ShapeCounts = BTreeMap<[u32; 3], u32>;

/// Padded shapes of the first epoch, for each batch size.
pub fn shapes_by_batch(
    prepared: &Prepared,
    feed: &FeedSettings,
    sizes: &[usize],
) -> Result<Vec<(usize, ShapeCounts)>, TrainError> {
    let rows = Rows::of(prepared, feed.split);
    let mut found = Vec::new();
    for &batch_size in sizes {
        let batch = BatchConfig { batch_size, ..feed.batch.clone() };
        let plan = FeedSettings { batch, ..feed.clone() }.batches(&rows)?.epoch(Epoch(0));
        let mut shapes = ShapeCounts::new();
        for batch in plan.batches_from(0) {
            let shape = batch.shape;
            let key = [shape.rows as u32, shape.symbols as u32, shape.frames as u32];
            *shapes.entry(key).or_default() += 1;
        }
        found.push((batch_size, shapes));
    }
    Ok(found)
}
