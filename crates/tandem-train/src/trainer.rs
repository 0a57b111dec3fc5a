//! The run: batches in, a trained voice out.
//!
//! In: a prepared corpus, devices, settings. Out: a directory with checkpoints, and a record of
//! what happened. The training thread takes a ready lesson, studies it, moves the weights, hands
//! tensors to other threads, and nothing else: losses are read by [`crate::loss_reader`],
//! checkpoints written by [`crate::keeper`], exams held by [`crate::examiner`].

use crate::TrainError;
use crate::beside::{Beside, among_those_who_train, precedence_on};
use crate::examiner::{Desk, Exam, Examiner, Paper, Speak, Standing};
use crate::feed::FeedSettings;
use crate::holdings::Holdings;
use crate::job::{Beginning, Ending, Job, Outcome};
use crate::keeper::Keeper;
use crate::learner::{Learner, StepFacts};
use crate::lessons::{LessonPath, Lessons};
use crate::loss_reader::LossReader;
use crate::memory_watch::{self, MemoryWatch};
use crate::place::Placed;
use crate::prepare::Prepared;
use crate::run_log::{LogMessage, LogSender};
use crate::run_plan::{
    compare_validation, distinct_lessons, meet_shapes, planned_shapes, try_largest_batch,
};
use crate::run_state::{RunState, Snapshot};
use crate::snapshots::Snapshots;
use crate::train_settings::TrainSettings;
use crate::warm_up::WarmedUp;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tandem_data::batch::{BatchShape, Position};
use tandem_data::corpus::Split;
use tandem_model::Module;
use tandem_model::memory::Charge;
use tandem_model::placement::OpenDevices;
use tandem_model::shapes::ShapeLog;
use tandem_model::trained::VoiceDocument;
use tandem_model::weights::weights_of;
use tandem_pipeline::{CancelToken, Feed, PipelineError};
use tandem_telemetry::Recorder;
use tandem_telemetry::event::{Final, Loss, Started, Step};
use tandem_telemetry::pending::Pending;

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
    let precedence = precedence_on(&run.devices);
    let ending = among_those_who_train(precedence, || run.learn_all(&mut lessons));
    run.snapshots.close();
    let flags = lessons.close().flags;
    Ok(Outcome { worst, warm_up, ..run.finish(ending, started, flags) })
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
        let precedence = precedence_on(&devices);
        let keeper = Keeper::start(job.shelf, job.recorder.clone(), precedence)?;
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
                beside: Beside::start(precedence, "exam")?,
                log: job.log.clone(),
                marker: keeper.marker(),
                recorder: job.recorder.clone(),
                cancel: job.cancel.clone(),
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
            // One that was left out leaves the step unsaved, for the end to notice.
            if self.keeper.save(self.snapshot(), "interval") {
                self.saved_at = Some(step);
            }
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
        // Before the last exam, which may take long: whoever ends the program meanwhile loses nothing.
        if unsaved {
            self.keeper.save_last(self.snapshot(), why);
        }
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
        let kept = keeper.finish();
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
