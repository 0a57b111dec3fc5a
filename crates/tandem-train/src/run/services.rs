//! The background threads of a run: checkpoints, validation, losses, memory.
//!
//! In: what the training thread passes on. Out: files, events, and how it all ended. Each service has a
//! thread of its own; none of them makes the training thread wait before the end of the run.

use crate::TrainError;
use crate::feed::FeedSettings;
use crate::judge::Judge;
use crate::log::LogSender;
use crate::prepare::Prepared;
use crate::run::background::{BackgroundPool, priority_on};
use crate::run::checkpoint_writer::{
    Accepted, CheckpointWriter, Pin, ScoredBy, WrittenCheckpoints,
};
use crate::run::hearing::Hearing;
use crate::run::join::ProgressCounter;
use crate::run::judged_sentences::judged_sentences;
use crate::run::loss_reader::LossReader;
use crate::run::memory_accounting::MemoryAccounting;
use crate::run::memory_watch::{self, MemoryReport, MemoryWatch};
use crate::run::state::Snapshot;
use crate::run::validation_set::ValidationSet;
use crate::run::validator::{SlowestPart, ValidationRequest, ValidationWorker, Validator};
use crate::train_settings::TrainSettings;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tandem_cluster::Cluster;
use tandem_data::corpus::Split;
use tandem_device::placement::OpenDevices;
use tandem_model::checkpoint::Checkpoints;
use tandem_model::trained_voice::VoiceDocument;
use tandem_model::vocoder::VocoderChoice;
use tandem_pipeline::CancelToken;
use tandem_telemetry::Recorder;

pub(crate) struct Services {
    /// None on a rank that writes no checkpoints.
    checkpoint_writer: Option<CheckpointWriter>,
    pub(crate) validator: Option<Validator>,
    pub(crate) losses: LossReader,
    pub(crate) memory: MemoryWatch,
}

/// What is left to do after the last step.
pub(crate) struct LastStep {
    pub(crate) why: &'static str,
    /// The last checkpoint, unless it is written already.
    pub(crate) checkpoint: Option<Snapshot>,
    pub(crate) validation: Option<ValidationRequest>,
}

/// How the services ended.
pub(crate) struct ServicesEnded {
    pub(crate) written: WrittenCheckpoints,
    pub(crate) memory: MemoryReport,
    /// The lowest acoustic validation loss.
    pub(crate) best: Option<f64>,
    /// A service that did not end by itself.
    pub(crate) failure: Option<TrainError>,
}

/// What the services of a run need.
pub(crate) struct ServiceInputs<'a> {
    /// The corpus to validate on.
    pub(crate) corpus: &'a Arc<Prepared>,
    /// Which rows of it; none: all of them.
    pub(crate) split: Option<Split>,
    pub(crate) feed: &'a FeedSettings,
    pub(crate) settings: &'a TrainSettings,
    pub(crate) devices: &'a OpenDevices,
    /// Completed steps.
    pub(crate) step: u64,
    /// The rows to validate on.
    pub(crate) rows: &'a str,
    pub(crate) document: &'a Arc<VoiceDocument>,
    pub(crate) speakers: &'a Arc<Vec<Vec<f32>>>,
    pub(crate) accounting: &'a MemoryAccounting,
    pub(crate) log: &'a LogSender,
    pub(crate) recorder: &'a Recorder,
    pub(crate) cancel: &'a CancelToken,
    /// The other ranks; none where this process trains alone.
    pub(crate) cluster: Option<&'a Cluster>,
}

impl ServiceInputs<'_> {
    pub(crate) fn start(&self, checkpoints: Option<Checkpoints>) -> Result<Services, TrainError> {
        let (recorder, priority) = (self.recorder, priority_on(self.devices));
        let start_writer = |checkpoints| {
            let scored = ScoredBy { rows: self.rows, judged: self.settings.judge.is_some() };
            CheckpointWriter::start(checkpoints, (self.step, scored), recorder.clone(), priority)
        };
        let vocoder = checkpoints.as_ref().map_or_else(VocoderChoice::default, |checkpoints| {
            VocoderChoice::default().for_voice(checkpoints.directory())
        });
        let checkpoint_writer = checkpoints.map(start_writer).transpose()?;
        if let (Some(writer), Some(cluster)) = (&checkpoint_writer, self.cluster) {
            // A rank that fails waits while this one saves.
            cluster.show_progress(writer.progress().shared());
        }
        // Other ranks than the first write nothing, but validate their share.
        let validates = checkpoint_writer.is_some() || self.cluster.is_some();
        let validation_set = if validates { self.validation_set()? } else { None };
        let validator = match validation_set {
            Some(set) => Some(Validator::start(ValidationWorker {
                set,
                hearing: self.hearing()?,
                results: checkpoint_writer.as_ref().map(CheckpointWriter::results),
                cluster: self.cluster.cloned(),
                waiting: Arc::new(AtomicBool::new(false)),
                document: self.document.clone(),
                device: self.devices.data.clone(),
                vocoder,
                pool: BackgroundPool::start(priority, "validate")?,
                log: self.log.clone(),
                recorder: recorder.clone(),
                cancel: self.cancel.clone(),
                progress: ProgressCounter::default(),
                slowest: SlowestPart::default(),
            })?),
            None => None,
        };
        let queries = memory_watch::queries(self.devices);
        let memory = MemoryWatch::start(self.accounting, queries, recorder, memory_watch::EVERY)?;
        let losses = LossReader::start(recorder.clone())?;
        Ok(Services { checkpoint_writer, validator, losses, memory })
    }

    /// None without a judge, and on ranks that do not speak.
    fn hearing(&self) -> Result<Option<Hearing>, TrainError> {
        let speaks = self.cluster.is_none_or(Cluster::is_first);
        let Some(judge) = self.settings.judge.as_ref().filter(|_| speaks) else { return Ok(None) };
        let sentences = judged_sentences(self.corpus, self.split, self.document, self.speakers);
        Ok(Some(Hearing::new(Judge::parse(judge)?, sentences)))
    }

    /// None for a run that never validates, or has nothing to validate on.
    fn validation_set(&self) -> Result<Option<ValidationSet>, TrainError> {
        if self.settings.validate_every.max(self.settings.sample_every) == 0 {
            return Ok(None);
        }
        let ServiceInputs { corpus, split, feed, document, speakers, cancel, .. } = self;
        ValidationSet::build(corpus, *split, feed, document, speakers, cancel)
    }
}

impl Services {
    /// Saves a checkpoint in the background. One that will be validated is pinned until then.
    pub(crate) fn save(
        &self,
        snapshot: Snapshot,
        why: &'static str,
        pin: Pin,
    ) -> Result<Accepted, TrainError> {
        let Some(writer) = &self.checkpoint_writer else { return Ok(Accepted::Busy) };
        writer.save(snapshot, why, pin)
    }

    pub(crate) fn validate(&self, request: ValidationRequest) {
        if let Some(validator) = &self.validator {
            validator.request(request);
        }
    }

    /// Whether this rank can take a validation now.
    pub(crate) fn can_validate(&self) -> bool {
        self.validator.as_ref().is_none_or(Validator::has_room)
    }

    /// A step whose validation another rank has no room for.
    pub(crate) fn skip_validation(&self, step: u64) {
        if let Some(validator) = &self.validator {
            validator.skip(step);
        }
    }

    /// Validations since the best one.
    pub(crate) fn since_best(&self) -> u32 {
        self.checkpoint_writer.as_ref().map_or(0, |writer| writer.standing().since_best)
    }

    /// Saves and validates the last step, and waits for every service. The checkpoint comes first: the
    /// validation may take long, and a program that is killed meanwhile loses nothing.
    pub(crate) fn finish(self, last: LastStep) -> ServicesEnded {
        let Services { mut checkpoint_writer, mut validator, losses, memory } = self;
        let pin = match (&last.validation, &validator) {
            (Some(_), Some(_)) => Pin::UntilValidated,
            _ => Pin::No,
        };
        if let (Some(checkpoint_writer), Some(snapshot)) = (&mut checkpoint_writer, last.checkpoint)
        {
            checkpoint_writer.save_last(snapshot, last.why, pin);
        }
        if let (Some(validator), Some(request)) = (&mut validator, last.validation) {
            validator.request_last(request);
        }
        // Its results go to the writer: it ends first. The writer does not wait for one that is stuck.
        let validated = validator.map_or(Ok(()), Validator::finish);
        let written = checkpoint_writer.map(CheckpointWriter::finish).unwrap_or_default();
        let losses = losses.finish();
        let memory = memory.finish();
        let best = written.standing.best;
        ServicesEnded { written, memory, best, failure: validated.and(losses).err() }
    }
}
