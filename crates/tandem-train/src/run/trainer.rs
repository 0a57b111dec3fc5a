//! The training loop. Start reading here.
//!
//! In: a prepared corpus, devices, settings. Out: a directory with checkpoints, and a record of what
//! happened. The training thread takes a ready batch, accumulates its gradients, changes the weights
//! and passes tensors to other threads. It does nothing else: losses are read by
//! [`crate::run::loss_reader`], checkpoints written by [`crate::run::checkpoint_writer`], validation
//! done by [`crate::run::validator`]. Step numbers follow the one rule of [`crate::run::schedule`].

use crate::TrainError;
use crate::feed::align::snapshots::AlignerSnapshots;
use crate::feed::train_route::{BatchSource, TrainRoute};
use crate::feed::transfer::Transferred;
use crate::feed::{FeedSettings, Rows};
use crate::log::{LogMessage, LogSender};
use crate::prepare::Prepared;
use crate::run::all_reduce::lost_rank;
use crate::run::background::{on_training_pool, priority_on};
use crate::run::checkpoint_writer::{Accepted, Pin};
use crate::run::current_step::CurrentStep;
use crate::run::graphs::{self, GraphLog};
use crate::run::job::{Ending, Job, Outcome, RunStart};
use crate::run::memory_accounting::MemoryAccounting;
use crate::run::plan::{
    distinct_shapes, planned_shapes, total_steps, try_largest_batch, warm_up_shapes,
};
use crate::run::ranks::{Contribution, Decision, Ranks, Vote};
use crate::run::schedule::{AfterStep, StepSchedule};
use crate::run::services::{LastStep, ServiceInputs, Services};
use crate::run::shapes::ShapeLog;
use crate::run::state::{RunState, Snapshot, validation_rows};
use crate::run::step::{StepMetrics, TrainState};
use crate::run::validator::{Samples, ValidationRequest};
use crate::run::warm_up::WarmedUp;
use crate::train_settings::TrainSettings;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tandem_data::batch::BatchShape;
use tandem_data::corpus::Split;
use tandem_device::backend::{KernelReport, guarded, kernel_report};
use tandem_device::cpu_use::CpuUse;
use tandem_device::memory::{Charge, Phase};
use tandem_device::placement::OpenDevices;
use tandem_model::between_threads::flush;
use tandem_model::gradients::{GradientReducer, LocalGradients};
use tandem_model::trained_voice::VoiceDocument;
use tandem_pipeline::watchdog::OnFrozen;
use tandem_pipeline::{CancelToken, Delivery, Feed, PipelineError};
use tandem_telemetry::Recorder;
use tandem_telemetry::event::{EmptyStep, Final, Loss, Started, Step, Warning};
use tandem_telemetry::pending::Pending;
use tandem_units::Ticket;

/// How many steps the training thread launches as graphs ahead of the newest loss that was read. Enough that the card has
/// the next step, and few enough that a lost card is noticed soon and copies are read soon: a read waits for what is launched.
const STEPS_AHEAD: usize = 2;

/// Trains until all steps are done, the user stops it, or it cannot continue.
pub fn train(job: Job, start: RunStart) -> Result<Outcome, TrainError> {
    train_on(job, start, BatchSource::FromCorpus)
}

/// The same, on batches from another source.
pub fn train_on(job: Job, mut start: RunStart, source: BatchSource) -> Result<Outcome, TrainError> {
    let shapes = planned_shapes(&job)?;
    job.phases.enter(Phase::WarmUp);
    graphs::fix_in_place(&job, &mut start, &shapes)?;
    let warm_up = warm_up_shapes(&job, &start, &shapes)?;
    report_kernels(&job.recorder);
    // After the warm-up: what the tuner needed is given back, and does not count.
    let worst = match job.limits {
        Some(_) => Some(try_largest_batch(&job, &start, &shapes)?),
        None => None,
    };
    let graphs = graphs::capture(&job, &mut start, &shapes)?;
    job.phases.enter(Phase::Training);
    let mut trainer = Trainer::new(job, start, &shapes, graphs)?;
    let mut batches = match trainer.start_feed(source) {
        Ok(batches) => batches,
        // Stopped before the first step: the other ranks must hear of it.
        Err(error) if error.is_cancelled() && trainer.ranks.is_some() => {
            let ending = trainer.end_together(Ending::Interrupted, Vote::Interrupted);
            return Ok(Outcome { worst, warm_up, ..trainer.finish(ending, None, Vec::new()) });
        }
        Err(error) => return Err(error),
    };
    let started = batches.wait_ready(trainer.batches_to_start(), trainer.start_delay);
    // Whatever happens in the loop, the aligning thread must not wait for snapshots after it.
    let close = CloseOnDrop(trainer.snapshots.clone());
    let ending =
        on_training_pool(priority_on(&trainer.devices), || trainer.train_loop(&mut batches));
    batches.stop();
    drop(close);
    let flags = batches.close().flags;
    Ok(Outcome { worst, warm_up, ..trainer.finish(ending, Some(started), flags) })
}

/// What compiling and tuning cost, and what the cache of earlier starts saved.
fn report_kernels(recorder: &Recorder) {
    let Some(KernelReport { kernels, fault }) = kernel_report() else { return };
    recorder.send(kernels);
    if let Some(text) = fault {
        recorder.send(Warning { code: "kernel_cache".into(), text });
    }
}

struct CloseOnDrop(AlignerSnapshots);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

struct Trainer {
    prepared: Arc<Prepared>,
    feed: FeedSettings,
    settings: TrainSettings,
    devices: OpenDevices,
    start_delay: Duration,
    recorder: Recorder,
    log: LogSender,
    cancel: CancelToken,
    on_frozen: Option<OnFrozen>,
    /// Weights and optimizer.
    train_state: TrainState,
    /// Step numbers, and what is due.
    schedule: StepSchedule,
    snapshots: AlignerSnapshots,
    services: Services,
    accounting: MemoryAccounting,
    /// Weights and graphs in the memory accounting.
    _weights: [Charge; 2],
    graphs: GraphLog,
    saved: SavedParts,
    shapes: ShapeLog,
    /// The other ranks; none where this process trains alone.
    ranks: Option<Ranks>,
    /// Distinct padded shapes of the plan.
    planned_shapes: usize,
    /// Steps of this process.
    steps_done: u64,
    /// The step under way.
    current: CurrentStep,
    last_step_at: Instant,
    last_cpu_use: Option<CpuUse>,
}

/// What every checkpoint holds besides tensors.
struct SavedParts {
    state: RunState,
    document: Arc<VoiceDocument>,
    speakers: Arc<Vec<Vec<f32>>>,
    config: serde_json::Value,
    /// The newest step whose checkpoint the writer accepted.
    step: Option<u64>,
}

impl Trainer {
    fn new(
        job: Job,
        start: RunStart,
        shapes: &[BatchShape],
        graphs: GraphLog,
    ) -> Result<Trainer, TrainError> {
        let RunStart { train_state, snapshots, state, document, speakers } = start;
        let Job { prepared, validation, feed, settings, config, devices, cluster, .. } = job;
        let (recorder, log, cancel) = (job.recorder, job.log, job.cancel);
        let rows = validation_rows(validation.as_deref(), &feed);
        let accounting = MemoryAccounting::new(job.limits, &devices);
        let weights = [accounting.weights(&train_state.voice), accounting.graphs(graphs.memory())];
        snapshots.account(&accounting);
        let last_step = total_steps(&prepared, &feed, &settings)?;
        let schedule = StepSchedule::new(&settings, train_state.step, state.position, last_step)
            .for_ranks(feed.shard.ranks);
        let services = ServiceInputs {
            corpus: validation.as_ref().unwrap_or(&prepared),
            split: if validation.is_some() { None } else { Some(Split::Eval) },
            feed: &feed,
            settings: &settings,
            devices: &devices,
            step: train_state.step,
            rows: &rows,
            document: &document,
            speakers: &speakers,
            accounting: &accounting,
            log: &log,
            recorder: &recorder,
            cancel: &cancel,
            cluster: cluster.as_ref(),
        };
        let services = services.start(job.checkpoints)?;
        let saved_step = (train_state.step > 0).then_some(train_state.step);
        let planned_shapes = distinct_shapes(shapes, document.config.patch);
        let ranks = match cluster {
            Some(cluster) => {
                let feed = from_here(&feed, &settings, &schedule);
                let plan = feed.tickets(&Rows::of(&prepared, feed.split))?;
                Some(Ranks::new(cluster, plan, &train_state.voice, &devices.model))
            }
            None => None,
        };
        Ok(Trainer {
            ranks,
            prepared,
            feed,
            settings,
            devices,
            start_delay: job.start_delay,
            recorder,
            log,
            cancel,
            on_frozen: job.on_frozen,
            train_state,
            schedule,
            snapshots,
            services,
            accounting,
            _weights: weights,
            graphs,
            saved: SavedParts { state, document, speakers, config, step: saved_step },
            shapes: ShapeLog::default(),
            planned_shapes,
            steps_done: 0,
            current: CurrentStep::default(),
            last_step_at: Instant::now(),
            last_cpu_use: CpuUse::now(),
        })
    }

    /// The whole path of a batch, from the plan to the model device; or batches from memory.
    fn start_feed(&self, source: BatchSource) -> Result<Feed<Transferred>, TrainError> {
        let feed = from_here(&self.feed, &self.settings, &self.schedule);
        let route = TrainRoute {
            prepared: &self.prepared,
            feed: &feed,
            devices: &self.devices,
            accounting: &self.accounting,
            document: &self.saved.document,
            snapshots: &self.snapshots,
            flat_start: self.settings.alignment.flat_start,
            batches_per_step: (self.settings.grad_accum * self.feed.shard.ranks) as u64,
            seed: self.settings.seed,
            recorder: &self.recorder,
            cancel: &self.cancel,
            on_frozen: self.on_frozen.clone(),
        };
        match source {
            BatchSource::FromCorpus => route.start(),
            BatchSource::Replayed(batches) => route.replay(batches),
        }
    }

    /// A full buffer, or what can be aligned before the first step: more would only run into the start delay.
    fn batches_to_start(&self) -> usize {
        let steps = self.settings.alignment.steps_ahead(self.train_state.step);
        let batches = steps.saturating_mul(self.settings.grad_accum as u64);
        self.feed.depth.min(usize::try_from(batches).unwrap_or(usize::MAX))
    }

    fn train_loop(&mut self, batches: &mut Feed<Transferred>) -> Ending {
        self.last_step_at = Instant::now();
        self.last_cpu_use = CpuUse::now();
        loop {
            if self.after() == AfterStep::Done {
                return Ending::Done;
            }
            if self.cancel.is_cancelled() {
                return self.end_together(Ending::Interrupted, Vote::Interrupted);
            }
            let delivery = match self.next_delivery(batches) {
                Ok(Some(delivery)) => delivery,
                Ok(None) => return self.end_of_data(),
                Err(PipelineError::Cancelled) => {
                    return self.end_together(Ending::Interrupted, Vote::Interrupted);
                }
                Err(error) => return Ending::Failed(error.into()),
            };
            if !matches!(delivery, Delivery::Skipped(_)) {
                // Waits for skipped items are part of the wait for the next one.
                self.current.add_delivery(batches.waited(), batches.work());
            }
            match self.receive(delivery) {
                Ok(None) => {}
                Ok(Some(ending)) => return ending,
                Err(error) => return Ending::Failed(error),
            }
        }
    }

    fn after(&self) -> AfterStep {
        let since_best = self.services.since_best();
        AfterStep::of(&self.settings, self.train_state.step, since_best)
    }

    /// The next batch of the plan. One of another rank is like a skipped one: it only counts.
    fn next_delivery(
        &mut self,
        batches: &mut Feed<Transferred>,
    ) -> Result<Option<Delivery<Transferred>>, PipelineError> {
        match self.ranks.as_mut().map(Ranks::next_batch) {
            None | Some(Some((_, true))) => batches.next_delivery(),
            Some(Some((ticket, false))) => Ok(Some(Delivery::Skipped(Some(ticket)))),
            Some(None) => Ok(None),
        }
    }

    /// Ends this run on all ranks after the last complete step. A rank that is lost comes before every
    /// other reason.
    fn end_together(&mut self, ending: Ending, vote: Vote) -> Ending {
        match self.agree(vote) {
            Ok(Some(Decision::End(agreed))) => self.end_as(agreed),
            Ok(_) => ending,
            Err(error) => Ending::Failed(error),
        }
    }

    /// How all ranks agreed to end. A rank that another one interrupts stops its validation, too: rank 0 waits
    /// for it.
    fn end_as(&self, vote: Vote) -> Ending {
        match vote {
            Vote::Continue => Ending::Done,
            Vote::NoProgress => Ending::NoProgress,
            Vote::Interrupted => {
                self.cancel.cancel();
                Ending::Interrupted
            }
        }
    }

    /// What all ranks do next; none where this process trains alone.
    fn agree(&mut self, vote: Vote) -> Result<Option<Decision>, TrainError> {
        let Some(ranks) = &mut self.ranks else { return Ok(None) };
        let CurrentStep { utterances, frames, waited, .. } = self.current;
        let batches = self.current.shapes.len() as u64;
        let busy = self.last_step_at.elapsed().saturating_sub(waited);
        let validator_full = !self.services.can_validate();
        let starved = waited;
        let brought = Contribution { utterances, frames, batches, busy, starved, validator_full };
        let (voice, next) = (&self.train_state.voice, self.train_state.step + 1);
        ranks.agree(vote, brought, voice, next).map(Some)
    }

    /// One batch of the plan, trained or skipped.
    fn receive(&mut self, delivery: Delivery<Transferred>) -> Result<Option<Ending>, TrainError> {
        let (ticket, batch) = match delivery {
            Delivery::Item(batch) => (batch.ticket, Some(batch)),
            // Only batches travel here, and each has a ticket.
            Delivery::Skipped(None) => return Ok(None),
            Delivery::Skipped(Some(ticket)) => (ticket, None),
        };
        if let Some(batch) = &batch {
            let state = &mut self.train_state;
            guarded("training", || state.take_batch(&batch.batch))?;
            self.current.add_batch(batch);
        }
        let completed = self.schedule.pass(ticket);
        if let Some(step) = completed
            && let Some(ending) = self.complete_step(step, ticket)?
        {
            return Ok(Some(ending));
        }
        if let Some(error) = self.feed.row_failures.error() {
            return Err(error);
        }
        if let Some(error) = self.services.losses.failure() {
            return Err(error.into());
        }
        let steps = self.services.losses.non_finite_in_a_row();
        if steps >= self.settings.nan_limit {
            return Err(TrainError::NonFinite { steps, step: self.train_state.step });
        }
        // Between two steps only: what was computed of one is not thrown away.
        if completed.is_none() || self.after() != AfterStep::NoProgress {
            return Ok(None);
        }
        Ok(Some(self.end_together(Ending::NoProgress, Vote::NoProgress)))
    }

    /// The epochs end in the middle of a step: its batches count, with every guard of a full step.
    fn end_of_data(&mut self) -> Ending {
        let Some(step) = self.schedule.end_of_data() else {
            // A rank may be waiting for the others to stop with it.
            return self.end_together(Ending::Done, Vote::Continue);
        };
        let ticket = Ticket {
            epoch: self.schedule.resume_position().epoch,
            seq: self.schedule.next_batch() - 1,
        };
        match self.complete_step(step, ticket) {
            Ok(None) => Ending::Done,
            Ok(Some(ending)) => ending,
            Err(error) => Ending::Failed(error),
        }
    }

    /// Changes the weights by the gradients of this step, if it has any, and starts what is due. Returns
    /// how the run ends, where another rank ended it: the step did not happen then.
    fn complete_step(&mut self, step: u64, ticket: Ticket) -> Result<Option<Ending>, TrainError> {
        match self.agree(Vote::Continue)? {
            Some(Decision::End(vote)) => return Ok(Some(self.end_as(vote))),
            // From here on, the step is that of all ranks.
            Some(Decision::Step(agreed)) => self.current.frames = agreed.frames,
            None => {}
        }
        let (state, mut alone) = (&mut self.train_state, LocalGradients);
        let reducer: &mut dyn GradientReducer = match &mut self.ranks {
            Some(ranks) => ranks,
            None => &mut alone,
        };
        let device = &self.devices.model;
        let metrics = guarded("changing the weights", || {
            let metrics = state.optimizer_step(step, reducer);
            // Others read losses and weights: from here on they find them without running anything of the next step.
            flush(device);
            metrics
        });
        // Also where the flush failed: a checkpoint of this step must not train its batches again.
        if self.train_state.step == step {
            self.saved.state.position = self.schedule.resume_position();
            self.saved.state.next_batch = self.schedule.next_batch();
        }
        let metrics = metrics?.map_err(lost_rank)?;
        let took = std::mem::replace(&mut self.last_step_at, Instant::now()).elapsed();
        if let Some(interval) = self.ranks.as_mut().and_then(|ranks| ranks.after_step(step, took)) {
            self.recorder.send(interval);
        }
        match metrics {
            Some(metrics) => self.report(ticket, metrics, took),
            None => {
                self.current = CurrentStep::default();
                self.recorder.send(EmptyStep { step, ticket });
            }
        }
        self.after_step(step).map(|()| None)
    }

    fn report(&mut self, ticket: Ticket, metrics: StepMetrics, took: Duration) {
        let step = self.train_state.step;
        self.graphs.add(metrics.replayed);
        let mut losses = self.services.losses.promise(step, metrics.names, metrics.values);
        if metrics.replayed {
            self.services.losses.wait_for(STEPS_AHEAD);
        }
        let mut known = |name: &'static str, value: f64| {
            losses.push(Loss { name: name.into(), value: Pending::known(value as f32) });
        };
        known("rate", metrics.rate);
        let CurrentStep { frames, waited, shapes, age, work, .. } =
            std::mem::take(&mut self.current);
        if !shapes.is_empty() {
            known("alignment_age", age as f64);
        }
        let scalars = losses.iter().map(|loss| Loss {
            name: format!("train/{}", loss.name).into(),
            value: loss.value.clone(),
        });
        self.log.send(LogMessage::Scalars { step, values: scalars.collect() });
        if let Some(shape) = shapes.last() {
            self.shapes.add(*shape, took);
        }
        let now = CpuUse::now();
        let before = std::mem::replace(&mut self.last_cpu_use, now);
        let used = now.zip(before).map(|(now, before)| now.since(before));
        let numbers =
            |shape: &BatchShape| [shape.rows, shape.symbols, shape.frames].map(|n| n as u32);
        let shapes: Vec<_> = shapes.iter().map(numbers).collect();
        self.recorder.send(Step {
            step,
            ticket,
            took: took.into(),
            waited: waited.into(),
            items: metrics.utterances as u32,
            frames,
            shape: shapes.last().copied(),
            batches: if shapes.len() > 1 { shapes } else { Vec::new() },
            work,
            cpu: used.map(|used| used.time.into()),
            preempted: used.map(|used| u32::try_from(used.preempted).unwrap_or(u32::MAX)),
            losses,
        });
    }

    /// Starts what is due after this step.
    fn after_step(&mut self, step: u64) -> Result<(), TrainError> {
        self.steps_done += 1;
        let memory = &self.services.memory;
        memory.after_step(self.steps_done, self.shapes.distinct(), self.planned_shapes);
        if self.snapshots.wants(step) {
            let state = &self.train_state;
            let encoder = guarded("copying the encoder", || {
                let encoder = state.encoder();
                flush(&self.devices.model);
                encoder
            })?;
            let memory = self.accounting.aligner_snapshot(&encoder);
            self.snapshots.publish(step, encoder, memory);
        }
        let due = self.schedule.due(step);
        let validation = (due.validation || due.samples) && self.services.validator.is_some();
        if !due.checkpoint && !validation {
            return Ok(());
        }
        let pin = if validation { Pin::UntilValidated } else { Pin::No };
        let can_validate = validation && self.ranks.as_ref().is_none_or(Ranks::can_validate);
        let samples = if due.samples { Samples::Yes } else { Samples::No };
        let (snapshot, request) = guarded("copying the weights", || {
            let request = can_validate.then(|| self.validation(samples));
            let snapshot = self.snapshot();
            flush(&self.devices.model);
            (snapshot, request)
        })?;
        if self.services.save(snapshot, due.as_reason(), pin)? == Accepted::Yes {
            self.saved.step = Some(step);
        }
        match request {
            Some(request) => self.services.validate(request),
            None if validation => self.services.skip_validation(step),
            None => {}
        }
        Ok(())
    }

    fn validation(&self, samples: Samples) -> ValidationRequest {
        let (step, voice) = (self.train_state.step, self.train_state.inference_voice());
        let memory = self.accounting.validation(&voice);
        ValidationRequest { step, voice, samples, memory }
    }

    fn snapshot(&self) -> Snapshot {
        let SavedParts { state, document, speakers, config, .. } = &self.saved;
        Snapshot {
            step: self.train_state.step,
            state: state.clone(),
            document: document.clone(),
            speakers: speakers.clone(),
            config: config.clone(),
            weights: self.train_state.weights(),
            optimizer: self.train_state.optimizer.state(),
            aligner_snapshots: self.snapshots.needed_from(self.train_state.step),
            memory: self.accounting.checkpoint(&self.train_state.voice),
        }
    }

    fn finish(mut self, ending: Ending, started: Option<Started>, flags: Vec<String>) -> Outcome {
        let step = self.train_state.step;
        if let Some(interval) = self.ranks.as_mut().and_then(|ranks| ranks.take_interval(step)) {
            self.recorder.send(interval);
        }
        let is_saved = step == 0 || self.saved.step == Some(step);
        let is_complete = self.train_state.is_complete();
        if !is_complete {
            self.recorder.send(unfinished_step(step + 1));
        }
        // Nothing is due after the last step itself, so a run that is done was not validated there.
        let validate = matches!(ending, Ending::Done) && self.steps_done > 0;
        let copied = guarded("copying the weights", || {
            let checkpoint = (is_complete && !is_saved).then(|| self.snapshot());
            let validation = validate.then(|| self.validation(Samples::Yes));
            flush(&self.devices.model);
            (checkpoint, validation)
        });
        let (ending, (checkpoint, validation)) = match (ending, copied) {
            (ending, Ok(copied)) => (ending, copied),
            (Ending::Failed(error), Err(_)) => (Ending::Failed(error), (None, None)),
            (_, Err(error)) => (Ending::Failed(error.into()), (None, None)),
        };
        if let Some(graphs) = self.graphs.event() {
            self.recorder.send(graphs);
        }
        let last = LastStep { why: ending.as_reason(), checkpoint, validation };
        let ended = self.services.finish(last);
        // A run that ended well but whose background work did not is a failure.
        let ending = match (ending, ended.failure) {
            (Ending::Failed(error), _) => Ending::Failed(error),
            (_, Some(error)) => Ending::Failed(error),
            (ending, None) => ending,
        };
        let (outcome, why) = ending.as_event();
        self.recorder.send(Final { outcome, why, steps: step, flags: flags.clone() });
        Outcome {
            ending,
            step,
            written: ended.written,
            started,
            worst: None,
            memory: ended.memory,
            warm_up: WarmedUp::NotNeeded,
            shapes: self.shapes.report(),
            flags,
            best: ended.best,
        }
    }
}

/// Tells why the run ends without a checkpoint.
pub(crate) fn unfinished_step(step: u64) -> Warning {
    let text = format!(
        "step {step} failed while it changed the weights: no checkpoint is made of them; `--resume` continues from the \
         newest checkpoint"
    );
    Warning { code: "step_unfinished".into(), text }
}

/// The feed from the next step on.
fn from_here(
    feed: &FeedSettings,
    settings: &TrainSettings,
    schedule: &StepSchedule,
) -> FeedSettings {
    FeedSettings {
        start: schedule.resume_position(),
        first: schedule.next_batch(),
        epochs: settings.epochs,
        ..feed.clone()
    }
}
