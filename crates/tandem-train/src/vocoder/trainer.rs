//! The training loop of a vocoder.
//!
//! In: a prepared corpus, devices, settings. Out: a directory with checkpoints, and a record of what happened. Batches,
//! step numbers, losses, checkpoints and the record are those of a voice. Validation runs on the training thread: it
//! takes less than a second.

use crate::TrainError;
use crate::feed::FeedSettings;
use crate::log::{LogMessage, LogSender};
use crate::prepare::Prepared;
use crate::run::background::{on_training_pool, priority_on};
use crate::run::best_so_far::ScoredBy;
use crate::run::checkpoint_writer::{
    Accepted, CheckpointWriter, Pin, ValidationResult, WrittenCheckpoints,
};
use crate::run::job::Ending;
use crate::run::loss_reader::LossReader;
use crate::run::plan::total_steps;
use crate::run::schedule::{AfterStep, StepSchedule};
use crate::run::state::{RunState, validation_rows};
use crate::run::trainer::unfinished_step;
use crate::train_settings::TrainSettings;
use crate::vocoder::segments::{SegmentRoute, TransferredSegments};
use crate::vocoder::state::{VocoderSnapshot, VocoderStart, VocoderStep, VocoderTrainState};
use crate::vocoder::validation::{Synthesized, VocoderValidation};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tandem_device::backend::guarded;
use tandem_device::placement::OpenDevices;
use tandem_model::between_threads::flush;
use tandem_model::checkpoint::Checkpoints;
use tandem_model::vocoder::neural::trained::VocoderDocument;
use tandem_pipeline::watchdog::OnFrozen;
use tandem_pipeline::{CancelToken, Delivery, Feed, PipelineError};
use tandem_telemetry::Recorder;
use tandem_telemetry::event::{EmptyStep, Final, Loss, Started, Step, Validation, Warning};
use tandem_telemetry::pending::Pending;
use tandem_units::Ticket;

/// Everything a run needs.
pub struct VocoderJob {
    pub prepared: Arc<Prepared>,
    pub feed: FeedSettings,
    pub settings: TrainSettings,
    /// All settings, for the checkpoint.
    pub config: serde_json::Value,
    pub devices: OpenDevices,
    pub checkpoints: Checkpoints,
    /// Maximum wait for the slots to fill before the first step.
    pub start_delay: Duration,
    pub log: LogSender,
    pub recorder: Recorder,
    /// Ends the run after the current step.
    pub cancel: CancelToken,
    /// Called when a stage or the training step itself does not end.
    pub on_frozen: Option<OnFrozen>,
}

/// How a run ended.
#[derive(Debug)]
pub struct VocoderOutcome {
    pub ending: Ending,
    /// Steps done since the start of the whole run.
    pub step: u64,
    /// Checkpoints that this process wrote.
    pub written: WrittenCheckpoints,
    pub started: Started,
    /// Workers and slots at the end, as command-line flags.
    pub flags: Vec<String>,
    /// The lowest validation loss.
    pub best: Option<f64>,
}

/// Trains until all steps are done, the user stops it, or it cannot continue.
pub fn train_vocoder(job: VocoderJob, start: VocoderStart) -> Result<VocoderOutcome, TrainError> {
    let mut trainer = VocoderTrainer::new(job, start)?;
    let mut batches = trainer.start_feed()?;
    let started = batches.wait_ready(trainer.feed.depth, trainer.start_delay);
    let priority = priority_on(&trainer.devices);
    let ending = on_training_pool(priority, || trainer.train_loop(&mut batches));
    batches.stop();
    let flags = batches.close().flags;
    Ok(trainer.finish(ending, started, flags))
}

struct VocoderTrainer {
    prepared: Arc<Prepared>,
    feed: FeedSettings,
    settings: TrainSettings,
    config: serde_json::Value,
    devices: OpenDevices,
    start_delay: Duration,
    log: LogSender,
    recorder: Recorder,
    cancel: CancelToken,
    on_frozen: Option<OnFrozen>,
    train_state: VocoderTrainState,
    state: RunState,
    document: Arc<VocoderDocument>,
    schedule: StepSchedule,
    writer: CheckpointWriter,
    losses: LossReader,
    validation: Option<VocoderValidation>,
    /// The newest step whose checkpoint the writer accepted.
    saved: Option<u64>,
    /// Steps of this process.
    steps_done: u64,
    /// Frames of the step under way.
    frames: u64,
    last_step_at: Instant,
}

impl VocoderTrainer {
    fn new(job: VocoderJob, start: VocoderStart) -> Result<VocoderTrainer, TrainError> {
        let VocoderStart { train_state, state, document, .. } = start;
        let last_step = total_steps(&job.prepared, &job.feed, &job.settings)?;
        let step = train_state.step;
        let schedule = StepSchedule::new(&job.settings, step, state.position, last_step);
        let priority = priority_on(&job.devices);
        let rows = validation_rows(None, &job.feed);
        let from = (step, ScoredBy::by_loss(&rows));
        let writer =
            CheckpointWriter::start(job.checkpoints, from, job.recorder.clone(), priority)?;
        let validation = VocoderValidation::build(&job.prepared, &job.feed, &document)?;
        if validation.is_none() {
            let text = "the corpus has no held-out rows: no validation, and no best checkpoint";
            job.recorder.send(Warning { code: "no_validation".into(), text: text.into() });
        }
        Ok(VocoderTrainer {
            prepared: job.prepared,
            feed: job.feed,
            settings: job.settings,
            config: job.config,
            devices: job.devices,
            start_delay: job.start_delay,
            log: job.log,
            losses: LossReader::start(job.recorder.clone())?,
            recorder: job.recorder,
            cancel: job.cancel,
            on_frozen: job.on_frozen,
            train_state,
            state,
            document,
            schedule,
            writer,
            validation,
            saved: (step > 0).then_some(step),
            steps_done: 0,
            frames: 0,
            last_step_at: Instant::now(),
        })
    }

    fn start_feed(&self) -> Result<Feed<TransferredSegments>, TrainError> {
        let feed = FeedSettings {
            start: self.schedule.resume_position(),
            first: self.schedule.next_batch(),
            epochs: self.settings.epochs,
            ..self.feed.clone()
        };
        let route = SegmentRoute {
            prepared: &self.prepared,
            feed: &feed,
            devices: &self.devices,
            document: &self.document,
            recorder: &self.recorder,
            cancel: &self.cancel,
            on_frozen: self.on_frozen.clone(),
        };
        route.start()
    }

    fn train_loop(&mut self, batches: &mut Feed<TransferredSegments>) -> Ending {
        self.last_step_at = Instant::now();
        loop {
            if self.after() == AfterStep::Done {
                return Ending::Done;
            }
            if self.cancel.is_cancelled() {
                return Ending::Interrupted;
            }
            let delivery = match batches.next_delivery() {
                Ok(Some(delivery)) => delivery,
                Ok(None) => return self.end_of_data(),
                Err(PipelineError::Cancelled) => return Ending::Interrupted,
                Err(error) => return Ending::Failed(error.into()),
            };
            match self.receive(delivery, batches.waited()) {
                Ok(None) => {}
                Ok(Some(ending)) => return ending,
                Err(error) => return Ending::Failed(error),
            }
        }
    }

    /// One batch of the plan, trained or skipped.
    fn receive(
        &mut self,
        delivery: Delivery<TransferredSegments>,
        waited: Duration,
    ) -> Result<Option<Ending>, TrainError> {
        let (ticket, batch) = match delivery {
            Delivery::Item(batch) => (batch.ticket, Some(batch)),
            Delivery::Skipped(None) => return Ok(None),
            Delivery::Skipped(Some(ticket)) => (ticket, None),
        };
        if let Some(batch) = &batch {
            let state = &mut self.train_state;
            guarded("training", || state.accumulate_gradients(&batch.batch.tensors()))?;
            self.frames += batch.frames;
        }
        let completed = self.schedule.pass(ticket);
        if let Some(step) = completed {
            self.complete_step(step, ticket, waited)?;
        }
        if let Some(error) = self.feed.row_failures.error() {
            return Err(error);
        }
        if let Some(error) = self.losses.failure() {
            return Err(error.into());
        }
        let steps = self.losses.non_finite_in_a_row();
        if steps >= self.settings.nan_limit {
            return Err(TrainError::NonFinite { steps, step: self.train_state.step });
        }
        let ends = completed.is_some() && self.after() == AfterStep::NoProgress;
        Ok(ends.then_some(Ending::NoProgress))
    }

    fn after(&self) -> AfterStep {
        let since_best = self.writer.standing().since_best;
        AfterStep::of(&self.settings, self.train_state.step, since_best)
    }

    /// The epochs end in the middle of a step: its batches count.
    fn end_of_data(&mut self) -> Ending {
        let Some(step) = self.schedule.end_of_data() else { return Ending::Done };
        let epoch = self.schedule.resume_position().epoch;
        let ticket = Ticket { epoch, seq: self.schedule.next_batch() - 1 };
        match self.complete_step(step, ticket, Duration::ZERO) {
            Ok(()) => Ending::Done,
            Err(error) => Ending::Failed(error),
        }
    }

    fn complete_step(
        &mut self,
        step: u64,
        ticket: Ticket,
        waited: Duration,
    ) -> Result<(), TrainError> {
        let state = &mut self.train_state;
        let device = &self.devices.model;
        let metrics = guarded("changing the weights", || {
            let metrics = state.optimizer_step(step);
            flush(device);
            metrics
        });
        // Also where the flush failed: a checkpoint of this step must not train its batches again.
        if self.train_state.step == step {
            self.state.position = self.schedule.resume_position();
            self.state.next_batch = self.schedule.next_batch();
        }
        let metrics = metrics?;
        let took = std::mem::replace(&mut self.last_step_at, Instant::now()).elapsed();
        self.steps_done += 1;
        match metrics {
            Some(metrics) => self.report(ticket, metrics, took, waited),
            None => self.recorder.send(EmptyStep { step, ticket }),
        }
        let due = self.schedule.due(step);
        let validate = (due.validation || due.samples) && self.validation.is_some();
        if !due.checkpoint && !validate {
            return Ok(());
        }
        let pin = if validate { Pin::UntilValidated } else { Pin::No };
        let accepted = self.writer.save(self.snapshot(), due.as_reason(), pin)?;
        if accepted == Accepted::Yes {
            self.saved = Some(step);
        }
        if validate {
            self.validate(due.samples)?;
            // The time of a validation is not that of the next step.
            self.last_step_at = Instant::now();
        }
        Ok(())
    }

    fn report(&mut self, ticket: Ticket, metrics: VocoderStep, took: Duration, waited: Duration) {
        let step = self.train_state.step;
        let mut losses = self.losses.promise(step, &VocoderStep::NAMES, metrics.values);
        losses.push(Loss { name: "rate".into(), value: Pending::known(metrics.rate as f32) });
        let scalars = losses.iter().map(|loss| Loss {
            name: format!("train/{}", loss.name).into(),
            value: loss.value.clone(),
        });
        self.log.send(LogMessage::Scalars { step, values: scalars.collect() });
        self.recorder.send(Step {
            step,
            ticket,
            took: took.into(),
            waited: waited.into(),
            items: metrics.segments as u32,
            frames: std::mem::take(&mut self.frames),
            losses,
            ..Step::default()
        });
    }

    /// Losses on held-out segments. The checkpoint writer marks the best one, and then the event follows.
    fn validate(&mut self, samples: bool) -> Result<(), TrainError> {
        let Some(validation) = &self.validation else { return Ok(()) };
        let (step, began) = (self.train_state.step, Instant::now());
        let network = self.train_state.inference_network();
        let found = guarded("validating the vocoder", || {
            validation.measure(&network, &self.devices.model)
        })?;
        let loss = found.distance();
        let named =
            [("total", loss), ("convergence", found.convergence), ("magnitude", found.magnitude)];
        let scalar = |(name, value): &(&'static str, f64)| Loss {
            name: format!("validation/{name}").into(),
            value: Pending::known(*value as f32),
        };
        self.log.send(LogMessage::Scalars { step, values: named.iter().map(scalar).collect() });
        let values = named.iter().map(|(name, value)| (name.to_string(), *value)).collect();
        let (recorder, took) = (self.recorder.clone(), began.elapsed().into());
        let report = Box::new(move |best| recorder.send(Validation { step, took, best, values }));
        self.writer.results().validated(ValidationResult { step, loss, heard: None, report });
        if samples {
            for copy in validation.synthesize(&self.document, &network)? {
                let Synthesized { name, samples, mel: frames } = copy;
                let rate = self.document.mel.rate;
                self.log.send(LogMessage::Audio { step, name: name.clone(), rate, samples });
                self.log.send(LogMessage::Mel { step, name, frames });
            }
        }
        Ok(())
    }

    fn snapshot(&self) -> VocoderSnapshot {
        let (state, config) = (self.state.clone(), self.config.clone());
        VocoderSnapshot::of(&self.train_state, state, &self.document, config)
    }

    fn finish(
        mut self,
        mut ending: Ending,
        started: Started,
        flags: Vec<String>,
    ) -> VocoderOutcome {
        let step = self.train_state.step;
        let is_saved = step == 0 || self.saved == Some(step);
        // Nothing is due after the last step itself, so a run that is done was not validated there.
        let validate = matches!(ending, Ending::Done) && self.steps_done > 0;
        let pin = if validate { Pin::UntilValidated } else { Pin::No };
        let is_complete = self.train_state.is_complete();
        if !is_complete {
            self.recorder.send(unfinished_step(step + 1));
        }
        if is_complete && !is_saved {
            self.writer.save_last(self.snapshot(), ending.as_reason(), pin);
        }
        if validate && let Err(error) = self.validate(true) {
            ending = Ending::Failed(error);
        }
        let written = self.writer.finish();
        if let (Err(error), false) = (self.losses.finish(), matches!(ending, Ending::Failed(_))) {
            ending = Ending::Failed(error);
        }
        let (outcome, why) = ending.as_event();
        self.recorder.send(Final { outcome, why, steps: step, flags: flags.clone() });
        let best = written.standing.best;
        VocoderOutcome { ending, step, written, started, flags, best }
    }
}
