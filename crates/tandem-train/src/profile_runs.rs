//! The trainer run for a few steps, as it is and with one part taken away, each run recorded.
//!
//! In: what a training run would work with, and how many steps. Out: one record per run, spans
//! included, for whoever judges them. Data, route, model and training loop are those of
//! [`mod@crate::trainer`]: taken away is only what feeds it (lessons from memory) or what works
//! on the batches (nobody). Nothing is validated, spoken or kept.

use crate::TrainError;
use crate::beginning::begin;
use crate::beside::{among_those_who_train, precedence_on};
use crate::feed::{FeedSettings, Rows};
use crate::holdings::Holdings;
use crate::job::{Beginning, Ending, Job};
use crate::learner::Learner;
use crate::lessons::{LessonPath, Lessons};
use crate::place::Placed;
use crate::prepare::Prepared;
use crate::run_log::LogSender;
use crate::train_settings::{AlignmentSettings, TrainSettings};
use crate::trainer::train_on;
use crate::warm_up::WarmUp;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tandem_data::batch::BatchConfig;
use tandem_model::Module;
use tandem_model::checkpoint::{Checkpoints, Keep};
use tandem_model::device::guarded;
use tandem_model::memory::HeldBefore;
use tandem_model::placement::{MemoryLimits, OpenDevices};
use tandem_pipeline::control::StageTotals;
use tandem_pipeline::{Adapt, CancelToken, Feed, Payload, PipelineError, Slowdowns};
use tandem_telemetry::event::{Doing, Event, Final, RunHeader, RunOutcome, Span, Step};
use tandem_telemetry::record::{Listener, News, RecordOptions, Recording, Spans};
use tandem_telemetry::sampler::{Sampler, WatchedGpu, standard_sources};
use tandem_telemetry::{Nanos, Recorder, Stamped};
use tandem_units::{Bytes, Epoch};

/// What is left of the trainer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exercise {
    /// All of it.
    Whole,
    /// The model: its lessons come from memory.
    ModelAlone,
    /// The data side: nobody works on the batches.
    DataAlone,
}

/// What the runs of a profile share.
pub struct Drill {
    /// How the corpus is fed; workers and depth stay as they are here.
    pub feed: FeedSettings,
    /// How the voice learns.
    pub settings: TrainSettings,
    /// Where.
    pub devices: OpenDevices,
    /// GPUs that are looked at meanwhile.
    pub watched: Vec<WatchedGpu>,
    /// Budgets of the devices, where they are kept.
    pub limits: Option<MemoryLimits>,
    /// The longest the model waits for its buffer to fill.
    pub start_delay: Duration,
    /// Steps of each run, warm-up included.
    pub steps: u64,
    /// For what a run must put somewhere; of no use afterwards.
    pub scratch: PathBuf,
    /// Hears the number of each step that is over.
    pub on_step: Arc<dyn Fn(u64) + Send + Sync>,
    /// Ends it.
    pub cancel: CancelToken,
}

/// Lessons that are kept for a replay, at most: in bytes on the model's device,
const MOST_KEPT: Bytes = Bytes::mib(1024);
/// and in number.
const MOST_LESSONS: u64 = 512;
/// Looks at a pipeline until it rests, at most.
const MOST_LOOKS: usize = 100;
/// How often devices are looked at, and whether a pipeline rests.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Seconds of a batch in one turn of [`Drill::take_turns`].
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// While the pipeline works for the next ones.
    pub with_pipeline: f64,
    /// While it rests.
    pub alone: f64,
}

impl Drill {
    /// One run, recorded in a new file. Gives the number of the voice's parameters.
    pub fn run(
        &self,
        exercise: Exercise,
        prepared: &Arc<Prepared>,
        record: &Path,
    ) -> Result<usize, TrainError> {
        let lessons = match exercise {
            Exercise::ModelAlone => Lessons::Replayed(self.some_lessons(prepared)?),
            _ => Lessons::FromCorpus,
        };
        let settings = self.settings_for(exercise);
        let beginning = self.begin(prepared, &settings)?;
        let parameters = beginning.learner.voice.num_params();
        let recording = self.start_record(record, exercise)?;
        let recorder = recording.recorder();
        let sources = standard_sources(&self.watched);
        let sampler = Sampler::start(sources, recorder.clone(), LOOK_EVERY)?;
        let done = match exercise {
            Exercise::DataAlone => self.take_only(prepared, &beginning, &recorder),
            _ => self.train(prepared, settings, beginning, lessons, recorder),
        };
        drop(sampler);
        recording.finish();
        done.map(|()| parameters)
    }

    fn train(
        &self,
        prepared: &Arc<Prepared>,
        settings: TrainSettings,
        beginning: Beginning,
        lessons: Lessons,
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
            held: HeldBefore::look(&self.devices),
            shelf: self.shelf()?,
            start_delay: self.start_delay,
            log: LogSender::off(),
            recorder,
            cancel: self.cancel.clone(),
        };
        match train_on(job, beginning, lessons)?.ending {
            Ending::Done | Ending::NoProgress => Ok(()),
            Ending::Interrupted => Err(PipelineError::Cancelled.into()),
            Ending::Failed(error) => Err(error),
        }
    }

    /// The whole data side, up to the model's device, in front of somebody who only takes.
    fn take_only(
        &self,
        prepared: &Arc<Prepared>,
        beginning: &Beginning,
        recorder: &Recorder,
    ) -> Result<(), TrainError> {
        // A model that is not there is not slow either.
        let feed = FeedSettings { slow: self.feed.slow.without("train"), ..self.fixed_feed() };
        let holdings = Holdings::new(self.limits, &self.devices);
        let mut lessons = self.path(prepared, &feed, beginning, &holdings, recorder).start()?;
        lessons.wait_ready(feed.depth, self.start_delay);
        let accum = self.settings.grad_accum.max(1) as u64;
        let mut last = Instant::now();
        for number in 1..=self.steps * accum {
            let Some(placed) = lessons.next()? else { break };
            if number.is_multiple_of(accum) {
                let now = Instant::now();
                let took = std::mem::replace(&mut last, now).elapsed();
                recorder.send(as_step(number / accum, &placed, took, lessons.waited()));
            }
        }
        let flags = lessons.close().flags;
        let (outcome, steps) = (RunOutcome::Done, self.steps);
        recorder.send(Final { outcome, why: None, steps, flags });
        Ok(())
    }

    /// A step with the pipeline at work against the same step while it rests, in turns of some batches.
    ///
    /// Each turn takes batches as they come, then waits until all queues are full and everybody sleeps, and learns the same
    /// batches again from memory. `heard` gets the number of each turn that is over.
    pub fn take_turns(
        &self,
        prepared: &Arc<Prepared>,
        turns: usize,
        batches: usize,
        heard: &mut dyn FnMut(usize),
    ) -> Result<Vec<Turn>, TrainError> {
        let settings = self.settings_for(Exercise::ModelAlone);
        let mut beginning = self.begin(prepared, &settings)?;
        let feed = self.fixed_feed();
        let holdings = Holdings::new(self.limits, &self.devices);
        let path = self.path(prepared, &feed, &beginning, &holdings, &Recorder::off()).start();
        let (mut path, mut kept) = (path?, Vec::new());
        let mut found = Vec::new();
        let precedence = precedence_on(&self.devices);
        for turn in 0..=turns {
            let (path, kept) = (&mut path, &mut kept);
            let (learner, count) = (&mut beginning.learner, batches);
            let took = among_those_who_train(precedence, || take_turn(learner, path, kept, count));
            // The first turn meets shapes for the first time.
            if let (1.., Some(took)) = (turn, took?) {
                found.push(took);
                heard(turn);
            }
        }
        Ok(found)
    }

    /// The first lessons of the run, beside the weights.
    fn some_lessons(&self, prepared: &Arc<Prepared>) -> Result<Arc<[Placed]>, TrainError> {
        let settings = self.settings_for(Exercise::ModelAlone);
        let beginning = self.begin(prepared, &settings)?;
        let feed = FeedSettings { slow: Slowdowns::default(), ..self.fixed_feed() };
        let holdings = Holdings::new(self.limits, &self.devices);
        let mut path: Feed<Placed> =
            self.path(prepared, &feed, &beginning, &holdings, &Recorder::off()).start()?;
        let wanted = (self.steps * self.settings.grad_accum.max(1) as u64).min(MOST_LESSONS);
        let (mut kept, mut size) = (Vec::new(), Bytes(0));
        while (kept.len() as u64) < wanted && size < MOST_KEPT {
            let Some(placed) = path.next()? else { break };
            size += placed.size();
            kept.push(placed);
        }
        Ok(kept.into())
    }

    fn path<'a>(
        &'a self,
        prepared: &'a Arc<Prepared>,
        feed: &'a FeedSettings,
        beginning: &'a Beginning,
        holdings: &'a Holdings,
        recorder: &'a Recorder,
    ) -> LessonPath<'a> {
        LessonPath {
            prepared,
            feed,
            devices: &self.devices,
            holdings,
            document: &beginning.document,
            snapshots: &beginning.snapshots,
            flat_start: 0,
            grad_accum: self.settings.grad_accum.max(1) as u64,
            seed: self.settings.seed,
            recorder,
            cancel: &self.cancel,
        }
    }

    fn begin(
        &self,
        prepared: &Arc<Prepared>,
        settings: &TrainSettings,
    ) -> Result<Beginning, TrainError> {
        let shelf = self.shelf()?;
        begin(prepared, &self.fixed_feed(), settings, &self.devices, &shelf, &self.cancel)
    }

    fn start_record(&self, path: &Path, exercise: Exercise) -> Result<Recording, TrainError> {
        let settings =
            serde_json::json!({ "command": "profile", "exercise": format!("{exercise:?}") });
        let header = RunHeader::now("tandem", env!("CARGO_PKG_VERSION"), settings);
        let on_step = Arc::clone(&self.on_step);
        let listener = Listener::new(move |news| {
            if let News::Event(Stamped { event: Event::Step(step), .. }) = news {
                on_step(step.step);
            }
        });
        let (spans, listener) = (Spans::Recorded, Some(listener));
        let options = RecordOptions { spans, listener, ..RecordOptions::default() };
        Ok(Recording::create(path, header, options)?)
    }

    /// A place for the one checkpoint that every run ends with, empty again.
    fn shelf(&self) -> Result<Checkpoints, TrainError> {
        let directory = tempfile::Builder::new()
            .prefix("run-")
            .tempdir_in(&self.scratch)
            .map_err(|source| TrainError::Scratch { path: self.scratch.clone(), source })?;
        // Removed with the scratch directory, when nobody writes into it any more.
        Ok(Checkpoints::open(&directory.keep(), Keep { last: 1 })?)
    }

    fn fixed_feed(&self) -> FeedSettings {
        FeedSettings { adapt: Adapt::Off, epochs: None, ..self.feed.clone() }
    }

    fn settings_for(&self, exercise: Exercise) -> TrainSettings {
        // Measured is what most of a run does: the voice aligns, not what comes before it.
        let flat_start = 0;
        let alignment = match exercise {
            Exercise::Whole => AlignmentSettings { flat_start, ..self.settings.alignment },
            // Nobody learns ahead of the search, so the first weights align everything.
            _ => AlignmentSettings { every: 1, lag: u64::MAX, flat_start },
        };
        TrainSettings {
            max_steps: Some(self.steps),
            epochs: None,
            patience: None,
            validate_every: 0,
            sample_every: 0,
            checkpoint_every: 0,
            alignment,
            ..self.settings.clone()
        }
    }
}

/// Some batches as they come, and the same ones again; none where none came.
fn take_turn(
    learner: &mut Learner,
    path: &mut Feed<Placed>,
    kept: &mut Vec<Placed>,
    batches: usize,
) -> Result<Option<Turn>, TrainError> {
    rest(path);
    kept.clear();
    let began = Instant::now();
    for _ in 0..batches {
        let Some(placed) = path.next()? else { break };
        learn(learner, &placed)?;
        kept.push(placed);
    }
    let with_pipeline = began.elapsed();
    rest(path);
    let began = Instant::now();
    for placed in kept.iter() {
        learn(learner, placed)?;
    }
    let each = |all: Duration| all.as_secs_f64() / kept.len() as f64;
    let turn = Turn { with_pipeline: each(with_pipeline), alone: each(began.elapsed()) };
    Ok((!kept.is_empty()).then_some(turn))
}

/// One batch as a step, waited for: a GPU would go on otherwise.
fn learn(learner: &mut Learner, placed: &Placed) -> Result<(), TrainError> {
    guarded("training", || {
        learner.study(&placed.lesson);
        learner.advance().map(|facts| facts.flow.into_scalar::<f32>())
    })?;
    Ok(())
}

/// Waits until nobody has finished anything for longer than the slowest stage takes: every queue is full.
fn rest(path: &Feed<Placed>) {
    let control = path.control();
    let mut before = None;
    for _ in 0..MOST_LOOKS {
        let stages = control.stages();
        let done: u64 = stages.iter().map(|stage| stage.items).sum();
        if before.replace(done) == Some(done) {
            return;
        }
        let usual = |stage: &StageTotals| stage.busy.div_f64(stage.items.max(1) as f64);
        let slowest = stages.iter().map(usual).max().unwrap_or_default();
        std::thread::sleep(LOOK_EVERY.max(2 * slowest));
    }
}

fn as_step(step: u64, placed: &Placed, took: Duration, waited: Duration) -> Step {
    let shape = placed.shape;
    Step {
        step,
        ticket: placed.ticket,
        took: took.into(),
        waited: waited.into(),
        items: placed.lesson.utterances as u32,
        frames: placed.frames,
        shape: Some([shape.rows as u32, shape.symbols as u32, shape.frames as u32]),
        losses: Vec::new(),
    }
}

/// Seconds that it takes to send one event, measured here and now.
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

/// Rows, symbols and frames of padded batches, and how many have that shape.
pub type ShapeCounts = BTreeMap<[u32; 3], u32>;

/// Padded shapes of the first epoch for each batch size, with the number of batches of each.
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
