//! Validation and samples, on a thread of their own, from a copy of the weights.
//!
//! In: a voice after so many steps. Out: its losses on held-out rows, the health of its alignments, a
//! few sentences as audio and pictures; the best checkpoint is marked. Runs on the data device while
//! the model device trains. A request that arrives while the last one is still running is skipped
//! with a warning. A stopped run ends its validation between two batches. Several ranks measure a share of the
//! batches each ([`crate::run::shared_validation`]); rank 0 does everything else.

use crate::TrainError;
use crate::feed::align::{align_with_health, priors};
use crate::log::picture::Alignment;
use crate::log::{LogMessage, LogSender};
use crate::run::background::BackgroundPool;
use crate::run::checkpoint_writer::{BestMark, BestMarker};
use crate::run::join::{ProgressCounter, Stuck, join_within, send_within};
use crate::run::shared_validation::{Combined, OwnPart, combine};
use crate::run::validation_set::{NumberedBatch, Sentence, ValidationSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tandem_cluster::Cluster;
use tandem_device::backend::guarded;
use tandem_device::memory::Charge;
use tandem_model::alignment::Aligner;
use tandem_model::metrics::alignment::Finding;
use tandem_model::metrics::{AlignmentHealth, HealthLimits};
use tandem_model::network::voice::Voice;
use tandem_model::synthesis::mel::{MelSynthesizer, SamplingOptions};
use tandem_model::trained_voice::VoiceDocument;
use tandem_model::vocoder::{Vocoder, VocoderChoice};
use tandem_model::{Device, Module};
use tandem_pipeline::CancelToken;
use tandem_telemetry::Recorder;
use tandem_telemetry::event::{Loss, Validation, Warning};
use tandem_telemetry::pending::Pending;

/// The longest that the end of a run waits for a validation that makes no progress.
const SLOWEST_BATCH: Duration = Duration::from_secs(300);

/// A voice to validate.
pub struct ValidationRequest {
    /// Completed steps.
    pub step: u64,
    pub voice: Voice,
    pub samples: Samples,
    pub saved: CheckpointSaved,
    /// Its memory in the accounting of the run.
    pub memory: Charge,
}

/// Whether sentences are synthesized too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Samples {
    No,
    Yes,
}

/// Whether a checkpoint of the step was accepted by the writer, which pinned it. Without one the step
/// is measured, but it cannot become the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointSaved {
    No,
    Yes,
}

/// The best validation so far, as the training thread sees it without waiting. Clones share it.
#[derive(Clone, Debug)]
pub struct BestSoFar {
    since_best: Arc<AtomicU32>,
    best: Arc<AtomicU64>,
}

/// Owns the validation thread.
pub struct Validator {
    requests: Option<SyncSender<ValidationRequest>>,
    thread: Option<JoinHandle<()>>,
    pub best_so_far: BestSoFar,
    marker: Option<BestMarker>,
    progress: ProgressCounter,
    recorder: Recorder,
    waiting: Arc<AtomicBool>,
    /// The last request found no room in the queue within the limit.
    stuck: Option<Stuck>,
}

/// What the validation thread works with.
pub struct ValidationWorker {
    pub set: ValidationSet,
    pub document: Arc<VoiceDocument>,
    pub device: Device,
    /// For samples.
    pub vocoder: VocoderChoice,
    /// Its own threads, where the CPU trains.
    pub pool: BackgroundPool,
    pub log: LogSender,
    /// Marks the best checkpoint.
    pub marker: Option<BestMarker>,
    pub recorder: Recorder,
    pub cancel: CancelToken,
    pub best_so_far: BestSoFar,
    pub progress: ProgressCounter,
    /// The other ranks; none where this process trains alone.
    pub cluster: Option<Cluster>,
    /// Whether a request waits in the queue.
    pub waiting: Arc<AtomicBool>,
}

impl BestSoFar {
    /// As a resumed run left it.
    pub fn new(best: Option<f64>, since_best: u32) -> BestSoFar {
        BestSoFar {
            best: Arc::new(AtomicU64::new(best.unwrap_or(f64::INFINITY).to_bits())),
            since_best: Arc::new(AtomicU32::new(since_best)),
        }
    }

    /// The lowest acoustic loss so far.
    pub fn best(&self) -> Option<f64> {
        let best = f64::from_bits(self.best.load(Ordering::Relaxed));
        best.is_finite().then_some(best)
    }

    /// Validations since then.
    pub fn since_best(&self) -> u32 {
        self.since_best.load(Ordering::Relaxed)
    }

    fn is_better(&self, loss: f64) -> bool {
        loss < self.best().unwrap_or(f64::INFINITY)
    }

    fn set_best(&self, loss: f64) {
        self.best.store(loss.to_bits(), Ordering::Relaxed);
        self.since_best.store(0, Ordering::Relaxed);
    }

    fn count_worse(&self) {
        self.since_best.fetch_add(1, Ordering::Relaxed);
    }
}

impl Validator {
    pub fn start(worker: ValidationWorker) -> Result<Validator, TrainError> {
        let (sender, requests) = sync_channel::<ValidationRequest>(1);
        let (best_so_far, recorder) = (worker.best_so_far.clone(), worker.recorder.clone());
        let (marker, progress) = (worker.marker.clone(), worker.progress.clone());
        let waiting = worker.waiting.clone();
        let thread = std::thread::Builder::new()
            .name("tandem-validate".into())
            .spawn(move || worker.run(&requests))
            .map_err(TrainError::Thread)?;
        let (requests, thread, stuck) = (Some(sender), Some(thread), None);
        Ok(Validator { requests, thread, best_so_far, marker, progress, recorder, waiting, stuck })
    }

    /// Requests a validation. Never waits.
    pub fn request(&self, request: ValidationRequest) {
        let Some(requests) = &self.requests else { return };
        let step = request.step;
        // Before the request is sent: the worker resets it when it takes the request.
        self.waiting.store(true, Ordering::Release);
        match requests.try_send(request) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => self.skip(step),
            Err(TrySendError::Disconnected(_)) => self.unpin(step),
        }
    }

    /// Whether a request would find room. Ranks validate a step only if all of them have room, so that
    /// they validate the same steps.
    pub fn has_room(&self) -> bool {
        !self.waiting.load(Ordering::Acquire)
    }

    /// A step that is not validated, because this rank or another one still validates an earlier step.
    pub fn skip(&self, step: u64) {
        let text = format!(
            "no validation at step {step}: the last one is still running; a larger \
             `--validate-every` gives it time"
        );
        self.recorder.send(Warning { code: "validation_slow".into(), text });
        self.unpin(step);
    }

    /// Requests the validation of the last step. Waits for its turn while the validator makes progress;
    /// `finish` reports one that does not.
    pub fn request_last(&mut self, request: ValidationRequest) {
        let Some(requests) = &self.requests else { return };
        self.stuck = send_within(requests, request, &self.progress, SLOWEST_BATCH).err();
    }

    /// Waits for the requested validations.
    pub fn finish(mut self) -> Result<(), TrainError> {
        self.requests = None;
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let ended = match self.stuck.take() {
            Some(stuck) => Err(stuck),
            None => join_within(thread, &self.progress, SLOWEST_BATCH),
        };
        let why = match ended {
            Ok(()) => return Ok(()),
            Err(Stuck::Panicked(message)) => message,
            Err(Stuck::NoProgress(limit)) => format!("no batch in {} s", limit.as_secs()),
        };
        Err(TrainError::BackgroundThread { what: "the validator", why })
    }

    fn unpin(&self, step: u64) {
        if let Some(marker) = &self.marker {
            marker.unpin(step);
        }
    }
}

impl ValidationWorker {
    fn run(&self, requests: &Receiver<ValidationRequest>) {
        // Rank 0 synthesizes the samples.
        let speaks = self.cluster.as_ref().is_none_or(Cluster::is_first);
        let mut vocoder = if speaks { self.open_vocoder() } else { None };
        for request in requests {
            self.waiting.store(false, Ordering::Release);
            if let Err(why) = self.validate(&request, &mut vocoder) {
                let text = format!("no validation at step {}: {why}", request.step);
                self.recorder.send(Warning { code: "validation_failed".into(), text });
            }
            // After a mark this changes nothing; after a failure or a stop it frees the checkpoint.
            if let Some(marker) = &self.marker {
                marker.unpin(request.step);
            }
        }
    }

    fn open_vocoder(&self) -> Option<Box<dyn Vocoder>> {
        match self.vocoder.open(&self.document.mel) {
            Ok(vocoder) => Some(vocoder),
            Err(error) => {
                let text = format!("samples have pictures, but no audio: {error}");
                self.recorder.send(Warning { code: "samples_silent".into(), text });
                None
            }
        }
    }

    /// Measures this rank's batches; rank 0 continues with those of all ranks.
    fn validate(
        &self,
        request: &ValidationRequest,
        vocoder: &mut Option<Box<dyn Vocoder>>,
    ) -> Result<(), String> {
        let began = Instant::now();
        let own = || self.pool.run(|| self.measure(request));
        let (voice, own) = match guarded("validating the voice", own) {
            Ok((voice, batches)) => (Some(voice), Ok(batches)),
            Err(error) => (None, Err(error.to_string())),
        };
        let (voice, batches) = match (voice, self.combined(request.step, own)) {
            (Some(voice), Combined::All(batches)) => (voice, batches),
            (_, Combined::Failed(why)) => return Err(why),
            _ => return Ok(()),
        };
        let metrics = Metrics::of(&batches);
        let best = self.enter(request, metrics.acoustic());
        self.publish(request.step, &metrics, best, began);
        if request.samples == Samples::No {
            return Ok(());
        }
        let speak = || self.pool.run(|| self.synthesize(request.step, &voice, vocoder));
        guarded("synthesizing samples", speak).map_err(|error| error.to_string())
    }

    /// Waits for the other ranks outside the thread pool, which others may need.
    fn combined(&self, step: u64, own: OwnPart) -> Combined {
        combine(self.cluster.as_ref(), step, self.set.total, own)
    }

    /// Whether this is the best validation so far. It counts only when its checkpoint is marked:
    /// what `best.json` does not name cannot be used later.
    fn enter(&self, request: &ValidationRequest, loss: f64) -> bool {
        if !self.best_so_far.is_better(loss) {
            self.best_so_far.count_worse();
            return false;
        }
        let mark = match (&self.marker, request.saved) {
            (Some(marker), CheckpointSaved::Yes) => marker.mark_best(request.step, loss),
            (Some(_), CheckpointSaved::No) => {
                BestMark::NotSaved("the writer was busy with earlier checkpoints".into())
            }
            (None, _) => BestMark::Marked,
        };
        if let BestMark::NotSaved(why) = mark {
            let text = format!(
                "step {} has the lowest acoustic validation loss so far ({loss:.4}), but its checkpoint is \
                 not on disk: {why}; the best checkpoint stays the one before",
                request.step
            );
            self.recorder.send(Warning { code: "best_not_saved".into(), text });
            return false;
        }
        self.best_so_far.set_best(loss);
        true
    }

    /// The voice on this device, and the metrics of this rank's batches; none when the run is stopped.
    fn measure(&self, request: &ValidationRequest) -> (Voice, Option<Vec<BatchMetrics>>) {
        let voice = Module::fork(request.voice.clone(), &self.device);
        let (mut aligner, limits) = (Aligner::default(), HealthLimits::default());
        let mut measured = Vec::with_capacity(self.set.batches.len());
        for NumberedBatch { number, batch } in &self.set.batches {
            if self.cancel.is_cancelled() {
                return (voice, None);
            }
            let mut metrics = BatchMetrics { number: *number, ..BatchMetrics::default() };
            let mut batch = batch.clone();
            let priors = priors(&voice.encoder, &batch, &self.device);
            let healths = align_with_health(&mut aligner, &mut batch, &priors, &limits);
            healths.iter().for_each(|health| metrics.add_health(health));
            let batch = batch.to_device(&self.device);
            let losses = voice.losses(&batch);
            metrics.utterances = batch.utterances as f64;
            metrics.prior = f64::from(losses.prior.into_scalar::<f32>());
            metrics.duration = f64::from(losses.duration.into_scalar::<f32>());
            metrics.flow = f64::from(losses.flow.into_scalar::<f32>());
            measured.push(metrics);
            self.progress.advance();
        }
        (voice, Some(measured))
    }

    fn publish(&self, step: u64, metrics: &Metrics, best: bool, began: Instant) {
        let named = [
            ("total", metrics.acoustic() + metrics.duration),
            ("acoustic", metrics.acoustic()),
            ("prior", metrics.prior),
            ("duration", metrics.duration),
            ("flow", metrics.flow),
            ("alignment_coverage", metrics.coverage),
            ("alignment_diagonality", metrics.diagonality),
            ("alignment_entropy", metrics.entropy),
        ];
        let scalar = |(name, value): &(&'static str, f64)| Loss {
            name: format!("validation/{name}").into(),
            value: Pending::known(*value as f32),
        };
        let values = named.iter().map(scalar).collect();
        self.log.send(LogMessage::Scalars { step, values });
        let values = named.iter().map(|(name, value)| (name.to_string(), *value)).collect();
        self.recorder.send(Validation { step, took: began.elapsed().into(), best, values });
        self.warn_of_health(metrics);
    }

    /// What is out of bounds in the mean of all alignments, with advice.
    fn warn_of_health(&self, metrics: &Metrics) {
        let Some(health) = metrics.health() else { return };
        for Finding { fact, advice } in health.findings(&HealthLimits::default()) {
            let text = format!(
                "alignment of held-out texts: {fact}; {advice}; `tandem analyze --alignments` with \
                 this run's directory ranks the transcripts to check"
            );
            self.recorder.send(Warning { code: "alignment_health".into(), text });
        }
    }

    fn synthesize(&self, step: u64, voice: &Voice, vocoder: &mut Option<Box<dyn Vocoder>>) {
        let document = &self.document;
        let synthesizer = MelSynthesizer { voice, config: &document.config, device: &self.device };
        for sentence in &self.set.sentences {
            if self.cancel.is_cancelled() {
                return;
            }
            self.progress.advance();
            let Sentence { name, symbols, language, reference } = sentence;
            let mut spoken = synthesizer.synthesize(
                symbols,
                *language,
                reference,
                None,
                &SamplingOptions::default(),
            );
            document.restore(&mut spoken.mel, reference);
            if let Some(Ok(samples)) =
                vocoder.as_mut().map(|vocoder| vocoder.synthesize(&spoken.mel))
            {
                let (name, rate) = (name.clone(), document.mel.rate);
                self.log.send(LogMessage::Audio { step, name, rate, samples });
            }
            let alignment = Alignment::Path(spoken.durations.clone());
            self.log.send(LogMessage::Alignment { step, name: name.clone(), alignment });
            self.log.send(LogMessage::Mel { step, name: name.clone(), frames: spoken.mel });
        }
    }
}

/// Sums over one batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct BatchMetrics {
    /// Its place in the validation set.
    pub(crate) number: u64,
    pub(crate) utterances: f64,
    pub(crate) prior: f64,
    pub(crate) duration: f64,
    pub(crate) flow: f64,
    pub(crate) coverage: f64,
    pub(crate) diagonality: f64,
    pub(crate) entropy: f64,
    /// Utterances with an alignment.
    pub(crate) aligned: f64,
}

impl BatchMetrics {
    /// Numbers of a batch in a message.
    pub(crate) const VALUES: usize = 9;

    pub(crate) fn to_bits(&self) -> [u64; Self::VALUES] {
        let BatchMetrics { number, utterances, prior, duration, flow, .. } = self;
        let BatchMetrics { coverage, diagonality, entropy, aligned, .. } = self;
        let floats = [utterances, prior, duration, flow, coverage, diagonality, entropy, aligned];
        let mut bits = [*number; Self::VALUES];
        bits[1..].iter_mut().zip(floats).for_each(|(bits, value)| *bits = value.to_bits());
        bits
    }

    pub(crate) fn from_bits(bits: [u64; Self::VALUES]) -> BatchMetrics {
        let [number, rest @ ..] = bits;
        let [utterances, prior, duration, flow, coverage, diagonality, entropy, aligned] =
            rest.map(f64::from_bits);
        BatchMetrics {
            number,
            utterances,
            prior,
            duration,
            flow,
            coverage,
            diagonality,
            entropy,
            aligned,
        }
    }

    fn add_health(&mut self, health: &AlignmentHealth) {
        self.coverage += health.coverage;
        self.diagonality += health.diagonality;
        self.entropy += health.entropy.unwrap_or_default();
        self.aligned += 1.0;
    }
}

/// Means over the whole set.
#[derive(Default)]
struct Metrics {
    prior: f64,
    duration: f64,
    flow: f64,
    coverage: f64,
    diagonality: f64,
    entropy: f64,
    aligned: f64,
}

impl Metrics {
    /// Every utterance counts the same. Sums go through the batches in order, whichever rank measured them.
    fn of(batches: &[BatchMetrics]) -> Metrics {
        let sum = |value: fn(&BatchMetrics) -> f64| batches.iter().map(value).sum::<f64>();
        let utterances = sum(|batch| batch.utterances).max(1.0);
        let aligned = sum(|batch| batch.aligned);
        Metrics {
            prior: sum(|batch| batch.prior) / utterances,
            duration: sum(|batch| batch.duration) / utterances,
            flow: sum(|batch| batch.flow) / utterances,
            coverage: sum(|batch| batch.coverage) / aligned.max(1.0),
            diagonality: sum(|batch| batch.diagonality) / aligned.max(1.0),
            entropy: sum(|batch| batch.entropy) / aligned.max(1.0),
            aligned,
        }
    }

    /// What is heard: the loss of the frames, without that of the durations. The duration loss is the largest of the
    /// three and is at its lowest long before the spectrum is, so that a sum of all three would choose a blurred voice.
    fn acoustic(&self) -> f64 {
        self.prior + self.flow
    }

    /// The mean of all alignments; none where nothing could be aligned. Paths of the search are
    /// monotonic by themselves.
    fn health(&self) -> Option<AlignmentHealth> {
        (self.aligned > 0.0).then_some(AlignmentHealth {
            coverage: self.coverage,
            monotonic: 1.0,
            diagonality: self.diagonality,
            entropy: Some(self.entropy),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_voice_is_the_one_whose_frames_are_best() {
        let early = Metrics { prior: 0.30, flow: 0.25, duration: 0.60, ..Metrics::default() };
        let late = Metrics { prior: 0.28, flow: 0.22, duration: 0.90, ..Metrics::default() };
        let best = BestSoFar::new(None, 0);
        best.set_best(early.acoustic());
        assert!(best.is_better(late.acoustic()), "the durations got worse, the frames did not");
        best.set_best(late.acoustic());
        assert!(!best.is_better(early.acoustic()), "shorter durations do not outweigh blur");
    }

    #[test]
    fn patience_counts_validations_since_the_best_frames() {
        let best = BestSoFar::new(Some(0.5), 0);
        best.count_worse();
        best.count_worse();
        assert_eq!((best.since_best(), best.best()), (2, Some(0.5)));
        best.set_best(0.4);
        assert_eq!(best.since_best(), 0);
    }
}
