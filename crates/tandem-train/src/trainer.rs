//! The run: batches in, a trained voice out.
//!
//! In: a prepared corpus, devices, settings. Out: a directory with checkpoints, and a record of
//! what happened. The training thread takes a ready lesson, studies it, moves the weights, hands
//! tensors to other threads, and nothing else: losses are read by [`crate::loss_reader`],
//! checkpoints written by [`crate::keeper`], exams held by [`crate::examiner`].

use crate::TrainError;
use crate::examiner::{Desk, Exam, Examiner, Paper, Speak, Standing};
use crate::feed::{FeedSettings, Rows};
use crate::holdings::Holdings;
use crate::keeper::{Keeper, Kept};
use crate::learner::{Learner, StepFacts};
use crate::lessons::{LessonPath, Lessons};
use crate::loss_reader::LossReader;
use crate::memory_watch::{self, MemoryReport, MemoryWatch};
use crate::place::Placed;
use crate::prepare::Prepared;
use crate::run_log::{LogMessage, LogSender};
use crate::run_state::{CorpusFacts, RunState, Snapshot};
use crate::snapshots::Snapshots;
use crate::train_settings::TrainSettings;
use crate::warm_up::{Pupil, WarmUp, WarmedUp};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tandem_data::batch::{BatchShape, Batches, Position};
use tandem_data::corpus::Split;
use tandem_model::Module;
use tandem_model::checkpoint::Checkpoints;
use tandem_model::lesson::HostLesson;
use tandem_model::memory::{Charge, HeldBefore, WorstBatch, check_worst_batch};
use tandem_model::placement::{MemoryLimits, OpenDevices};
use tandem_model::shapes::{ShapeLog, ShapeReport};
use tandem_model::trained::VoiceDocument;
use tandem_model::weights::weights_of;
use tandem_pipeline::{CancelToken, Feed, PipelineError};
use tandem_telemetry::Recorder;
use tandem_telemetry::event::{Final, Loss, RunOutcome, Started, Step, Warning};
use tandem_telemetry::pending::Pending;
use tandem_units::Epoch;

/// What a run starts from: made by [`crate::beginning`].
pub struct Beginning {
    /// Weights and optimiser.
    pub learner: Learner,
    /// Readers that align the first steps.
    pub snapshots: Snapshots,
    /// Where the run stands.
    pub state: RunState,
    /// What the voice is.
    pub document: Arc<VoiceDocument>,
    /// Stretches of its speakers.
    pub speakers: Arc<Vec<Vec<f32>>>,
}

/// What a run works with.
pub struct Job {
    /// The corpus.
    pub prepared: Arc<Prepared>,
    /// The corpus to validate on, all of it; none: the rows of the first that are held out.
    pub validation: Option<Arc<Prepared>>,
    /// How it is fed.
    pub feed: FeedSettings,
    /// How the voice learns.
    pub settings: TrainSettings,
    /// All settings, for the checkpoint.
    pub config: serde_json::Value,
    /// Where.
    pub devices: OpenDevices,
    /// Budgets of the devices, where they are kept.
    pub limits: Option<MemoryLimits>,
    /// Whether every shape is met before the clock starts.
    pub warm_up: WarmUp,
    /// What they held before the voice was made.
    pub held: HeldBefore,
    /// Checkpoints go here.
    pub shelf: Checkpoints,
    /// The longest the model waits for its buffer to fill.
    pub start_delay: Duration,
    /// Curves, pictures and sound go here.
    pub log: LogSender,
    /// Events go here.
    pub recorder: Recorder,
    /// Ends the run after the step under way.
    pub cancel: CancelToken,
}

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    /// Why.
    pub ending: Ending,
    /// Steps done, of the whole run.
    pub step: u64,
    /// Checkpoints of this process.
    pub kept: Kept,
    /// The controlled start.
    pub started: Option<Started>,
    /// What the largest batch takes, where budgets are kept.
    pub worst: Option<WorstBatch>,
    /// What was held on the devices.
    pub memory: MemoryReport,
    /// What was met before the clock started.
    pub warm_up: WarmedUp,
    /// Shapes met.
    pub shapes: ShapeReport,
    /// Workers and slots at the end, as flags.
    pub flags: Vec<String>,
    /// The lowest validation loss.
    pub best: Option<f64>,
}

/// Why a run ended.
#[derive(Debug)]
pub enum Ending {
    /// All steps or epochs are done.
    Done,
    /// Validation stopped getting better.
    NoProgress,
    /// Asked to stop: a checkpoint is on disk.
    Interrupted,
    /// It could not go on; the last good state is on disk.
    Failed(TrainError),
}

/// Trains until the steps are done, the user stops it, or it cannot go on.
pub fn train(job: Job, beginning: Beginning) -> Result<Outcome, TrainError> {
    train_on(job, beginning, Lessons::FromCorpus)
}

/// The same, on lessons that come from elsewhere.
pub fn train_on(job: Job, beginning: Beginning, lessons: Lessons) -> Result<Outcome, TrainError> {
    let shapes = planned_shapes(&job)?;
    let worst = match job.limits {
        Some(_) => Some(try_largest_batch(&job, &beginning, &shapes)?),
        None => None,
    };
    let warm_up = meet_shapes(&job, &beginning, &shapes)?;
    let mut run = Run::prepare(job, beginning, &shapes)?;
    let mut lessons = run.start_feed(lessons)?;
    let started = lessons.wait_ready(run.feed.depth, run.start_delay);
    let ending = run.learn_all(&mut lessons);
    run.snapshots.close();
    let flags = lessons.close().flags;
    Ok(Outcome { worst, warm_up, ..run.finish(ending, started, flags) })
}

/// Every shape that a batch of this corpus can have, shortest first.
fn planned_shapes(job: &Job) -> Result<Vec<BatchShape>, TrainError> {
    let rows = Rows::of(&job.prepared, job.feed.split);
    Ok(Batches::new(rows.lengths(), &job.feed.batch)?.shapes().collect())
}

/// One real step, without consequences, on the largest batch that this corpus can give.
fn try_largest_batch(
    job: &Job,
    beginning: &Beginning,
    shapes: &[BatchShape],
) -> Result<WorstBatch, TrainError> {
    let largest = shapes.iter().max_by_key(|shape| shape.rows * shape.frames);
    let shape = largest.copied().unwrap_or_default();
    let (config, devices) = (&beginning.document.config, &job.devices);
    let lesson = HostLesson::fullest(shape, config, job.feed.reference_frames);
    Ok(check_worst_batch(shape, devices, job.limits, &job.held, || {
        let lesson = lesson.to_device(&devices.data).to_device(&devices.model);
        drop(beginning.learner.voice.losses(&lesson).total().backward());
    })?)
}

/// A score is worth nothing beside one from other rows: where the rows to validate on are not
/// those of before, the best one is looked for anew.
fn compare_validation(
    state: &mut RunState,
    validation: Option<&Prepared>,
    feed: &FeedSettings,
    recorder: &Recorder,
) {
    let feed = FeedSettings { split: None, ..feed.clone() };
    let now = validation.map(|corpus| corpus_facts(corpus, &feed).fingerprint);
    if state.validation == now {
        return;
    }
    if state.best.is_some() {
        let text = "the rows to validate on are not those of before: the best checkpoint is looked \
                    for anew";
        recorder.send(Warning { code: "validation_changed".into(), text: text.into() });
    }
    (state.best, state.since_best, state.validation) = (None, 0, now);
}

/// One real step, without consequences, on every shape of the plan.
fn meet_shapes(
    job: &Job,
    beginning: &Beginning,
    shapes: &[BatchShape],
) -> Result<WarmedUp, TrainError> {
    if !job.warm_up.is_due(&job.devices) {
        return Ok(WarmedUp::NotNeeded);
    }
    let pupil = Pupil {
        learner: &beginning.learner,
        devices: &job.devices,
        config: &beginning.document.config,
        reference_frames: job.feed.reference_frames,
        recorder: &job.recorder,
        cancel: &job.cancel,
    };
    pupil.meet(shapes.iter().copied())
}

struct Run {
    prepared: Arc<Prepared>,
    feed: FeedSettings,
    settings: TrainSettings,
    config: serde_json::Value,
    devices: OpenDevices,
    start_delay: Duration,
    log: LogSender,
    recorder: Recorder,
    cancel: CancelToken,
    learner: Learner,
    snapshots: Snapshots,
    state: RunState,
    document: Arc<VoiceDocument>,
    speakers: Arc<Vec<Vec<f32>>>,
    keeper: Keeper,
    examiner: Option<Examiner>,
    losses: LossReader,
    shapes: ShapeLog,
    /// Padded shapes there are.
    planned: usize,
    holdings: Holdings,
    memory: MemoryWatch,
    /// The weights in the accounts.
    _weights: Charge,
    /// Steps of this process.
    done: u64,
    saved_at: Option<u64>,
    /// After the batch studied last: its number and place.
    studied: (u64, Position),
}

impl Run {
    fn prepare(job: Job, beginning: Beginning, shapes: &[BatchShape]) -> Result<Run, TrainError> {
        let Job { prepared, feed, settings, config, devices, .. } = job;
        let Beginning { learner, snapshots, mut state, document, speakers } = beginning;
        compare_validation(&mut state, job.validation.as_deref(), &feed, &job.recorder);
        let holdings = Holdings::new(job.limits, &devices);
        let _weights = holdings.weights(&learner.voice);
        snapshots.account(&holdings);
        let asking = memory_watch::asking(&devices);
        let memory = MemoryWatch::start(&holdings, asking, &job.recorder, memory_watch::EVERY)?;
        let keeper = Keeper::start(job.shelf, job.recorder.clone())?;
        let standing = Standing::from(state.best, state.since_best);
        let (asked, split) = match &job.validation {
            Some(validation) => (validation, None),
            None => (&prepared, Some(Split::Eval)),
        };
        // A run that never examines needs no paper either.
        let paper = match settings.validate_every.max(settings.sample_every) {
            0 => None,
            _ => Paper::write(asked, split, &feed, &document, &speakers, &job.cancel)?,
        };
        let examiner = match paper {
            Some(paper) => Some(Examiner::start(Desk {
                paper,
                document: document.clone(),
                device: devices.data.clone(),
                log: job.log.clone(),
                marker: keeper.marker(),
                recorder: job.recorder.clone(),
                standing,
            })?),
            None => None,
        };
        let losses = LossReader::start(job.recorder.clone())?;
        let planned = distinct_lessons(shapes, document.config.patch);
        let studied = (state.next_batch, state.position);
        let saved_at = (learner.step > 0).then_some(learner.step);
        Ok(Run {
            prepared,
            feed,
            settings,
            config,
            devices,
            start_delay: job.start_delay,
            log: job.log,
            recorder: job.recorder,
            cancel: job.cancel,
            learner,
            snapshots,
            state,
            document,
            speakers,
            keeper,
            examiner,
            losses,
            shapes: ShapeLog::default(),
            planned,
            holdings,
            memory,
            _weights,
            done: 0,
            saved_at,
            studied,
        })
    }

    /// The whole path of a batch, from the plan to the model; or lessons from memory.
    fn start_feed(&self, lessons: Lessons) -> Result<Feed<Placed>, TrainError> {
        let settings = FeedSettings {
            start: self.state.position,
            first: self.state.next_batch,
            epochs: self.settings.epochs,
            ..self.feed.clone()
        };
        let path = LessonPath {
            prepared: &self.prepared,
            feed: &settings,
            devices: &self.devices,
            holdings: &self.holdings,
            document: &self.document,
            snapshots: &self.snapshots,
            flat_start: self.settings.alignment.flat_start,
            grad_accum: self.settings.grad_accum as u64,
            seed: self.settings.seed,
            recorder: &self.recorder,
            cancel: &self.cancel,
        };
        match lessons {
            Lessons::FromCorpus => path.start(),
            Lessons::Replayed(lessons) => path.replay(lessons),
        }
    }

    fn learn_all(&mut self, lessons: &mut Feed<Placed>) -> Ending {
        let mut last = Instant::now();
        loop {
            if self.is_over() {
                return Ending::Done;
            }
            if self.cancel.is_cancelled() {
                return Ending::Interrupted;
            }
            let placed = match lessons.next() {
                Ok(Some(placed)) => placed,
                Ok(None) => return self.end_of_data(&mut last),
                Err(PipelineError::Cancelled) => return Ending::Interrupted,
                Err(error) => return Ending::Failed(error.into()),
            };
            let waited = lessons.waited();
            match self.take(placed, waited, &mut last) {
                Ok(None) => {}
                Ok(Some(ending)) => return ending,
                Err(error) => return Ending::Failed(error),
            }
        }
    }

    fn is_over(&self) -> bool {
        self.settings.max_steps.is_some_and(|most| self.learner.step >= most)
    }

    /// The epochs are over in the middle of a step: what was studied still counts.
    fn end_of_data(&mut self, last: &mut Instant) -> Ending {
        if let Some(facts) = self.learner.advance() {
            (self.state.next_batch, self.state.position) = self.studied;
            self.report(facts, None, Duration::ZERO, last);
        }
        Ending::Done
    }

    /// One batch: studied, and where it is the last of its step, the weights move.
    fn take(
        &mut self,
        placed: Placed,
        waited: Duration,
        last: &mut Instant,
    ) -> Result<Option<Ending>, TrainError> {
        let accum = self.settings.grad_accum as u64;
        let learner = &mut self.learner;
        tandem_model::device::guarded("training", || learner.study(&placed.lesson))?;
        let next = placed.ticket.seq + 1;
        let position = Position { batch: placed.position.batch + 1, ..placed.position };
        self.studied = (next, position);
        if next.is_multiple_of(accum) {
            let facts = tandem_model::device::guarded("moving the weights", || learner.advance())?;
            let Some(facts) = facts else { return Ok(None) };
            // A batch that was left out leaves a gap: steps are numbered by batches, so that
            // which weights align which batch stays a function of the number alone.
            self.learner.step = next / accum;
            (self.state.next_batch, self.state.position) = self.studied;
            self.shapes.enter(placed.shape, last.elapsed());
            self.report(facts, Some(&placed), waited, last);
            self.after_step();
        }
        if self.losses.bad_in_a_row() >= self.settings.nan_limit {
            let (steps, step) = (self.losses.bad_in_a_row(), self.learner.step);
            return Err(TrainError::NotANumber { steps, step });
        }
        let patience = self.settings.patience.unwrap_or(u32::MAX);
        let since = self.examiner.as_ref().map_or(0, |examiner| examiner.standing.since_best());
        Ok((since >= patience).then_some(Ending::NoProgress))
    }

    fn report(
        &mut self,
        facts: StepFacts,
        placed: Option<&Placed>,
        waited: Duration,
        last: &mut Instant,
    ) {
        let step = self.learner.step;
        let total = facts.prior.clone() + facts.duration.clone() + facts.flow.clone();
        let losses = vec![
            ("total", total),
            ("prior", facts.prior),
            ("duration", facts.duration),
            ("flow", facts.flow),
        ];
        let mut losses = self.losses.promise(step, losses, facts.gradient);
        let mut known = |name: &'static str, value: f64| {
            losses.push(Loss { name: name.into(), value: Pending::known(value as f32) });
        };
        known("rate", facts.rate);
        if let Some(placed) = placed {
            known("alignment_age", placed.age as f64);
        }
        let scalars = losses.iter().map(|loss| Loss {
            name: format!("train/{}", loss.name).into(),
            value: loss.value.clone(),
        });
        self.log.send(LogMessage::Scalars { step, values: scalars.collect() });
        let now = Instant::now();
        let took = std::mem::replace(last, now).elapsed();
        let Some(placed) = placed else { return };
        let shape = placed.shape;
        self.recorder.send(Step {
            step,
            ticket: placed.ticket,
            took: took.into(),
            waited: waited.into(),
            items: placed.lesson.utterances as u32,
            frames: placed.frames,
            shape: Some([shape.rows as u32, shape.symbols as u32, shape.frames as u32]),
            losses,
        });
    }

    /// Hands out what others need after this step. Clones of tensors cost nothing.
    fn after_step(&mut self) {
        let step = self.learner.step;
        self.done += 1;
        self.memory.after_step(self.done, self.shapes.distinct(), self.planned);
        if self.snapshots.wants(step) {
            self.publish_reader();
        }
        let due = |every: u64| every > 0 && step.is_multiple_of(every);
        let examine = due(self.settings.validate_every) || due(self.settings.sample_every);
        if due(self.settings.checkpoint_every) || (examine && self.examiner.is_some()) {
            self.keeper.save(self.snapshot(), "interval");
            self.saved_at = Some(step);
        }
        if let (true, Some(examiner)) = (examine, &self.examiner) {
            let speak = if due(self.settings.sample_every) { Speak::Yes } else { Speak::No };
            let voice = self.learner.speaker();
            let held = self.holdings.exam(&voice);
            examiner.examine(Exam { step, voice, speak, held });
        }
    }

    fn publish_reader(&self) {
        let reader = self.learner.voice.reader.valid();
        let reader = match self.devices.are_apart() {
            true => reader.fork(&self.devices.data),
            false => reader,
        };
        let held = self.holdings.reader(&reader);
        self.snapshots.publish(self.learner.step, reader, held);
    }

    fn snapshot(&self) -> Snapshot {
        let mut state = self.state.clone();
        if let Some(examiner) = &self.examiner {
            state.best = examiner.standing.best();
            state.since_best = examiner.standing.since_best();
        }
        Snapshot {
            step: self.learner.step,
            state,
            document: self.document.clone(),
            speakers: self.speakers.clone(),
            config: self.config.clone(),
            weights: weights_of(&self.learner.voice),
            optimizer: self.learner.optimizer.state(),
            readers: self.snapshots.needed_from(self.learner.step),
            held: self.holdings.checkpoint(&self.learner.voice),
        }
    }

    fn finish(self, ending: Ending, started: Started, flags: Vec<String>) -> Outcome {
        let (step, why) = (self.learner.step, ending.as_reason());
        let unsaved = step > 0 && self.saved_at != Some(step);
        let last = unsaved.then(|| (self.snapshot(), why));
        let standing = self.examiner.as_ref().map(|examiner| examiner.standing.clone());
        let Run { keeper, mut examiner, losses, recorder, learner, memory, holdings, .. } = self;
        if let (Ending::Done, Some(examiner)) = (&ending, &examiner) {
            let voice = learner.speaker();
            let held = holdings.exam(&voice);
            examiner.examine(Exam { step, voice, speak: Speak::Yes, held });
        }
        // The examiner marks through the keeper: it ends first.
        if let Some(examiner) = examiner.take() {
            examiner.finish();
        }
        let kept = keeper.finish(last);
        drop(losses);
        let memory = memory.finish();
        let (outcome, why) = ending.as_event();
        recorder.send(Final { outcome, why, steps: step, flags: flags.clone() });
        let best = standing.and_then(|standing| standing.best());
        let shapes = self.shapes.report();
        let (worst, warm_up, started) = (None, WarmedUp::NotNeeded, Some(started));
        Outcome { ending, step, kept, started, worst, memory, warm_up, shapes, flags, best }
    }
}

impl Ending {
    fn as_reason(&self) -> &'static str {
        match self {
            Ending::Done => "end",
            Ending::NoProgress => "no progress",
            Ending::Interrupted => "interrupt",
            Ending::Failed(_) => "failure",
        }
    }

    fn as_event(&self) -> (RunOutcome, Option<String>) {
        match self {
            Ending::Done => (RunOutcome::Done, None),
            Ending::NoProgress => {
                (RunOutcome::Done, Some("validation stopped getting better".into()))
            }
            Ending::Interrupted => (RunOutcome::Interrupted, None),
            Ending::Failed(error) => (RunOutcome::Failed, Some(error.to_string())),
        }
    }
}

/// Shapes as lessons have them: frames are a whole number of patches there.
fn distinct_lessons(shapes: &[BatchShape], patch: usize) -> usize {
    let lesson =
        |shape: &BatchShape| BatchShape { frames: shape.frames.next_multiple_of(patch), ..*shape };
    shapes.iter().map(lesson).collect::<HashSet<_>>().len()
}

/// Steps that these settings ask for; epochs are counted by the plan of the first one.
pub fn total_steps(
    prepared: &Prepared,
    feed: &FeedSettings,
    settings: &TrainSettings,
) -> Result<u64, TrainError> {
    let rows = Rows::of(prepared, feed.split);
    let batches = Batches::new(rows.lengths(), &feed.batch)?;
    let per_epoch = batches.epoch(Epoch(0)).len() as u64;
    let by_epochs =
        settings.epochs.map(|epochs| (u64::from(epochs) * per_epoch) / settings.grad_accum as u64);
    match (settings.max_steps, by_epochs) {
        (Some(steps), Some(epochs)) => Ok(steps.min(epochs.max(1))),
        (Some(steps), None) => Ok(steps),
        (None, Some(epochs)) => Ok(epochs.max(1)),
        (None, None) => Err(TrainError::Endless),
    }
}

/// What a corpus is made of, to be compared when a run is resumed.
pub fn corpus_facts(prepared: &Prepared, feed: &FeedSettings) -> CorpusFacts {
    let rows = Rows::of(prepared, feed.split);
    let mut hash = blake3::Hasher::new();
    for (place, &number) in rows.cache_row.iter().enumerate() {
        let Some(row) = prepared.cache.row(number as usize) else { continue };
        hash.update(row.id.as_bytes());
        hash.update(&rows.frames[place].to_le_bytes());
        hash.update(&rows.speakers[place].to_le_bytes());
        if let Some(text) = prepared.cache.text(row.record) {
            text.symbols().for_each(|symbol| {
                hash.update(&symbol.to_le_bytes());
            });
        }
    }
    let batches = serde_json::to_vec(&feed.batch).unwrap_or_default();
    CorpusFacts {
        rows: rows.cache_row.len(),
        fingerprint: hash.finalize().to_hex().as_str()[..32].to_string(),
        batches: blake3::hash(&batches).to_hex().as_str()[..32].to_string(),
    }
}
