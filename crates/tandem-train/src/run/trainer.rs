//! The run: batches in, a trained voice out.
//!
//! In: a prepared corpus, devices, settings. Out: a directory with checkpoints, and a record of
//! what happened. The training thread takes a ready batch, studies it, moves the weights, hands
//! tensors to other threads, and nothing else: losses are read by [`crate::run::loss_reader`],
//! checkpoints written by [`crate::run::checkpoint_writer`], exams held by [`crate::run::validator`].

use crate::TrainError;
use crate::feed::FeedSettings;
use crate::feed::align::snapshots::AlignerSnapshots;
use crate::feed::train_route::{BatchSource, TrainRoute};
use crate::feed::transfer::Transferred;
use crate::log::{LogMessage, LogSender};
use crate::prepare::Prepared;
use crate::run::background::{BackgroundPool, on_training_pool, priority_on};
use crate::run::checkpoint_writer::CheckpointWriter;
use crate::run::job::{Ending, Job, Outcome, RunStart};
use crate::run::loss_reader::LossReader;
use crate::run::memory_accounting::MemoryAccounting;
use crate::run::memory_watch::{self, MemoryWatch};
use crate::run::plan::{
    compare_validation, distinct_shapes, meet_shapes, planned_shapes, try_largest_batch,
};
use crate::run::shapes::ShapeLog;
use crate::run::state::{RunState, Snapshot};
use crate::run::step::{StepMetrics, TrainState};
use crate::run::validator::{
    BestSoFar, Speak, ValidationRequest, ValidationSet, ValidationWorker, Validator,
};
use crate::run::warm_up::WarmedUp;
use crate::train_settings::TrainSettings;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tandem_data::batch::{BatchShape, Position};
use tandem_data::corpus::Split;
use tandem_device::memory::Charge;
use tandem_device::placement::OpenDevices;
use tandem_model::Module;
use tandem_model::trained_voice::VoiceDocument;
use tandem_model::weights::weights_of;
use tandem_pipeline::{CancelToken, Feed, PipelineError};
use tandem_telemetry::Recorder;
use tandem_telemetry::event::{Final, Loss, Started, Step};
use tandem_telemetry::pending::Pending;

/// Trains until the steps are done, the user stops it, or it cannot go on.
pub fn train(job: Job, start: RunStart) -> Result<Outcome, TrainError> {
    train_on(job, start, BatchSource::FromCorpus)
}

/// The same, on batches that come from elsewhere.
pub fn train_on(job: Job, start: RunStart, batches: BatchSource) -> Result<Outcome, TrainError> {
    let shapes = planned_shapes(&job)?;
    let worst = match job.limits {
        Some(_) => Some(try_largest_batch(&job, &start, &shapes)?),
        None => None,
    };
    let warm_up = meet_shapes(&job, &start, &shapes)?;
    let mut run = Run::prepare(job, start, &shapes)?;
    let mut batches = run.start_feed(batches)?;
    let started = batches.wait_ready(run.feed.depth, run.start_delay);
    let priority = priority_on(&run.devices);
    let ending = on_training_pool(priority, || run.train_loop(&mut batches));
    run.snapshots.close();
    let flags = batches.close().flags;
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
    train_state: TrainState,
    snapshots: AlignerSnapshots,
    state: RunState,
    document: Arc<VoiceDocument>,
    speakers: Arc<Vec<Vec<f32>>>,
    checkpoint_writer: CheckpointWriter,
    validator: Option<Validator>,
    losses: LossReader,
    shapes: ShapeLog,
    /// Padded shapes there are.
    planned: usize,
    accounting: MemoryAccounting,
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
    fn prepare(job: Job, start: RunStart, shapes: &[BatchShape]) -> Result<Run, TrainError> {
        let Job { prepared, feed, settings, config, devices, .. } = job;
        let RunStart { train_state, snapshots, mut state, document, speakers } = start;
        compare_validation(&mut state, job.validation.as_deref(), &feed, &job.recorder);
        let accounting = MemoryAccounting::new(job.limits, &devices);
        let _weights = accounting.weights(&train_state.voice);
        snapshots.account(&accounting);
        let asking = memory_watch::asking(&devices);
        let memory = MemoryWatch::start(&accounting, asking, &job.recorder, memory_watch::EVERY)?;
        let priority = priority_on(&devices);
        let checkpoint_writer =
            CheckpointWriter::start(job.checkpoints, job.recorder.clone(), priority)?;
        let best_so_far = BestSoFar::from(state.best, state.since_best);
        let (asked, split) = match &job.validation {
            Some(validation) => (validation, None),
            None => (&prepared, Some(Split::Eval)),
        };
        // A run that never examines needs no paper either.
        let set = match settings.validate_every.max(settings.sample_every) {
            0 => None,
            _ => ValidationSet::build(asked, split, &feed, &document, &speakers, &job.cancel)?,
        };
        let validator = match set {
            Some(set) => Some(Validator::start(ValidationWorker {
                set,
                document: document.clone(),
                device: devices.data.clone(),
                pool: BackgroundPool::start(priority, "exam")?,
                log: job.log.clone(),
                marker: checkpoint_writer.marker(),
                recorder: job.recorder.clone(),
                cancel: job.cancel.clone(),
                best_so_far,
            })?),
            None => None,
        };
        let losses = LossReader::start(job.recorder.clone())?;
        let planned = distinct_shapes(shapes, document.config.patch);
        let studied = (state.next_batch, state.position);
        let saved_at = (train_state.step > 0).then_some(train_state.step);
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
            train_state,
            snapshots,
            state,
            document,
            speakers,
            checkpoint_writer,
            validator,
            losses,
            shapes: ShapeLog::default(),
            planned,
            accounting,
            memory,
            _weights,
            done: 0,
            saved_at,
            studied,
        })
    }

    /// The whole path of a batch, from the plan to the model; or batches from memory.
    fn start_feed(&self, batches: BatchSource) -> Result<Feed<Transferred>, TrainError> {
        let settings = FeedSettings {
            start: self.state.position,
            first: self.state.next_batch,
            epochs: self.settings.epochs,
            ..self.feed.clone()
        };
        let path = TrainRoute {
            prepared: &self.prepared,
            feed: &settings,
            devices: &self.devices,
            accounting: &self.accounting,
            document: &self.document,
            snapshots: &self.snapshots,
            flat_start: self.settings.alignment.flat_start,
            grad_accum: self.settings.grad_accum as u64,
            seed: self.settings.seed,
            recorder: &self.recorder,
            cancel: &self.cancel,
        };
        match batches {
            BatchSource::FromCorpus => path.start(),
            BatchSource::Replayed(batches) => path.replay(batches),
        }
    }

    fn train_loop(&mut self, batches: &mut Feed<Transferred>) -> Ending {
        let mut last = Instant::now();
        loop {
            if self.is_over() {
                return Ending::Done;
            }
            if self.cancel.is_cancelled() {
                return Ending::Interrupted;
            }
            let placed = match batches.next() {
                Ok(Some(placed)) => placed,
                Ok(None) => return self.end_of_data(&mut last),
                Err(PipelineError::Cancelled) => return Ending::Interrupted,
                Err(error) => return Ending::Failed(error.into()),
            };
            let waited = batches.waited();
            match self.take(placed, waited, &mut last) {
                Ok(None) => {}
                Ok(Some(ending)) => return ending,
                Err(error) => return Ending::Failed(error),
            }
        }
    }

    fn is_over(&self) -> bool {
        self.settings.max_steps.is_some_and(|most| self.train_state.step >= most)
    }

    /// The epochs are over in the middle of a step: what was studied still counts.
    fn end_of_data(&mut self, last: &mut Instant) -> Ending {
        if let Some(facts) = self.train_state.advance() {
            (self.state.next_batch, self.state.position) = self.studied;
            self.report(facts, None, Duration::ZERO, last);
        }
        Ending::Done
    }

    /// One batch: studied, and where it is the last of its step, the weights move.
    fn take(
        &mut self,
        placed: Transferred,
        waited: Duration,
        last: &mut Instant,
    ) -> Result<Option<Ending>, TrainError> {
        let accum = self.settings.grad_accum as u64;
        let train_state = &mut self.train_state;
        tandem_device::backend::guarded("training", || {
            train_state.accumulate_gradients(&placed.batch)
        })?;
        let next = placed.ticket.seq + 1;
        let position = Position { batch: placed.position.batch + 1, ..placed.position };
        self.studied = (next, position);
        if next.is_multiple_of(accum) {
            let facts =
                tandem_device::backend::guarded("moving the weights", || train_state.advance())?;
            let Some(facts) = facts else { return Ok(None) };
            // A batch that was left out leaves a gap: steps are numbered by batches, so that
            // which weights align which batch stays a function of the number alone.
            self.train_state.step = next / accum;
            (self.state.next_batch, self.state.position) = self.studied;
            self.shapes.enter(placed.shape, last.elapsed());
            self.report(facts, Some(&placed), waited, last);
            self.after_step();
        }
        if self.losses.bad_in_a_row() >= self.settings.nan_limit {
            let (steps, step) = (self.losses.bad_in_a_row(), self.train_state.step);
            return Err(TrainError::NotANumber { steps, step });
        }
        let patience = self.settings.patience.unwrap_or(u32::MAX);
        let since =
            self.validator.as_ref().map_or(0, |validator| validator.best_so_far.since_best());
        Ok((since >= patience).then_some(Ending::NoProgress))
    }

    fn report(
        &mut self,
        facts: StepMetrics,
        placed: Option<&Transferred>,
        waited: Duration,
        last: &mut Instant,
    ) {
        let step = self.train_state.step;
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
            items: placed.batch.utterances as u32,
            frames: placed.frames,
            shape: Some([shape.rows as u32, shape.symbols as u32, shape.frames as u32]),
            losses,
        });
    }

    /// Hands out what others need after this step. Clones of tensors cost nothing.
    fn after_step(&mut self) {
        let step = self.train_state.step;
        self.done += 1;
        self.memory.after_step(self.done, self.shapes.distinct(), self.planned);
        if self.snapshots.wants(step) {
            self.publish_aligner_snapshot();
        }
        let due = |every: u64| every > 0 && step.is_multiple_of(every);
        let validate = due(self.settings.validate_every) || due(self.settings.sample_every);
        if due(self.settings.checkpoint_every) || (validate && self.validator.is_some()) {
            // One that was left out leaves the step unsaved, for the end to notice.
            if self.checkpoint_writer.save(self.snapshot(), "interval") {
                self.saved_at = Some(step);
            }
        }
        if let (true, Some(validator)) = (validate, &self.validator) {
            let speak = if due(self.settings.sample_every) { Speak::Yes } else { Speak::No };
            let voice = self.train_state.speaker();
            let held = self.accounting.validation(&voice);
            validator.request(ValidationRequest { step, voice, speak, held });
        }
    }

    fn publish_aligner_snapshot(&self) {
        let encoder = self.train_state.voice.encoder.valid();
        let encoder = match self.devices.are_apart() {
            true => encoder.fork(&self.devices.data),
            false => encoder,
        };
        let held = self.accounting.aligner_snapshot(&encoder);
        self.snapshots.publish(self.train_state.step, encoder, held);
    }

    fn snapshot(&self) -> Snapshot {
        let mut state = self.state.clone();
        if let Some(validator) = &self.validator {
            state.best = validator.best_so_far.best();
            state.since_best = validator.best_so_far.since_best();
        }
        Snapshot {
            step: self.train_state.step,
            state,
            document: self.document.clone(),
            speakers: self.speakers.clone(),
            config: self.config.clone(),
            weights: weights_of(&self.train_state.voice),
            optimizer: self.train_state.optimizer.state(),
            aligner_snapshots: self.snapshots.needed_from(self.train_state.step),
            held: self.accounting.checkpoint(&self.train_state.voice),
        }
    }

    fn finish(self, ending: Ending, started: Started, flags: Vec<String>) -> Outcome {
        let (step, why) = (self.train_state.step, ending.as_reason());
        let unsaved = step > 0 && self.saved_at != Some(step);
        // Before the last exam, which may take long: whoever ends the program meanwhile loses nothing.
        if unsaved {
            self.checkpoint_writer.save_last(self.snapshot(), why);
        }
        let best_so_far = self.validator.as_ref().map(|validator| validator.best_so_far.clone());
        let Run {
            checkpoint_writer,
            mut validator,
            losses,
            recorder,
            train_state,
            memory,
            accounting,
            ..
        } = self;
        if let (Ending::Done, Some(validator)) = (&ending, &validator) {
            let voice = train_state.speaker();
            let held = accounting.validation(&voice);
            validator.request(ValidationRequest { step, voice, speak: Speak::Yes, held });
        }
        // The examiner marks through the keeper: it ends first.
        if let Some(validator) = validator.take() {
            validator.finish();
        }
        let kept = checkpoint_writer.finish();
        drop(losses);
        let memory = memory.finish();
        let (outcome, why) = ending.as_event();
        recorder.send(Final { outcome, why, steps: step, flags: flags.clone() });
        let best = best_so_far.and_then(|best_so_far| best_so_far.best());
        let shapes = self.shapes.report();
        let (worst, warm_up, started) = (None, WarmedUp::NotNeeded, Some(started));
        Outcome { ending, step, kept, started, worst, memory, warm_up, shapes, flags, best }
    }
}
