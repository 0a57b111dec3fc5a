//! Validation and samples, on a thread of their own, from a copy of the weights.
//!
//! In: a voice after so many steps. Out: its losses on held-out rows, the health of its alignments, a
//! few sentences as audio and pictures; the checkpoint writer marks the best one. Runs on the data device while
//! the model device trains. A request that arrives while the last one is still running is skipped
//! with a warning. A stopped run ends its validation between two batches. Several ranks measure a share of the
//! batches each ([`crate::run::shared_validation`]); rank 0 does everything else.

mod metrics; // sums over batches, and their means

pub(crate) use metrics::BatchMetrics;

use crate::TrainError;
use crate::feed::align::{align_with_health, priors};
use crate::judge::HearingErrors;
use crate::log::picture::Alignment;
use crate::log::{LogMessage, LogSender};
use crate::run::background::BackgroundPool;
use crate::run::checkpoint_writer::{ValidationResult, ValidationResults};
use crate::run::hearing::Hearing;
use crate::run::join::{ProgressCounter, Stuck, join_within, send_within};
use crate::run::judged_sentences::JudgedSentence;
use crate::run::shared_validation::{Combined, OwnPart, combine};
use crate::run::validation_set::{NumberedBatch, Sentence, ValidationSet};
use metrics::Metrics;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tandem_cluster::Cluster;
use tandem_device::backend::guarded;
use tandem_device::memory::Charge;
use tandem_model::Device;
use tandem_model::alignment::Aligner;
use tandem_model::between_threads::copy_to;
use tandem_model::metrics::HealthLimits;
use tandem_model::metrics::alignment::Finding;
use tandem_model::network::voice::Voice;
use tandem_model::synthesis::mel::{MelSynthesizer, SamplingOptions};
use tandem_model::trained_voice::VoiceDocument;
use tandem_model::vocoder::{Vocoder, VocoderChoice};
use tandem_pipeline::CancelToken;
use tandem_telemetry::Recorder;
use tandem_telemetry::event::{Loss, Validation, Warning};
use tandem_telemetry::pending::Pending;

/// The longest that the end of a run waits for a validation that makes no progress, before anything is known about its
/// speed, or where it waits for other ranks.
const SLOWEST_BATCH: Duration = Duration::from_secs(300);
/// The same where batches take far less: this many times as long as the slowest one.
const TIMES_THE_SLOWEST: u32 = 20;
/// And at least so long: the first sentence may compile kernels.
const LEAST_LIMIT: Duration = Duration::from_secs(60);

/// A voice to validate.
pub struct ValidationRequest {
    /// Completed steps.
    pub step: u64,
    pub voice: Voice,
    pub samples: Samples,
    /// Its memory in the accounting of the run.
    pub memory: Charge,
}

/// Whether sentences are synthesized too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Samples {
    No,
    Yes,
}

/// The longest time that a batch or a sentence took. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct SlowestPart(Arc<AtomicU64>);

impl SlowestPart {
    fn add(&self, took: Duration) {
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.0.fetch_max(millis.max(1), Ordering::Relaxed);
    }

    /// How long no progress may be seen before the validator counts as stuck.
    fn limit(&self) -> Duration {
        match self.0.load(Ordering::Relaxed) {
            0 => SLOWEST_BATCH,
            millis => Duration::from_millis(millis)
                .saturating_mul(TIMES_THE_SLOWEST)
                .clamp(LEAST_LIMIT, SLOWEST_BATCH),
        }
    }
}

enum Request {
    Validate(Box<ValidationRequest>),
    End,
}

/// Owns the validation thread.
pub struct Validator {
    requests: SyncSender<Request>,
    thread: JoinHandle<()>,
    results: Option<ValidationResults>,
    progress: ProgressCounter,
    slowest: SlowestPart,
    has_ranks: bool,
    recorder: Recorder,
    waiting: Arc<AtomicBool>,
    /// The last request found no room in the queue within the limit.
    stuck: Option<Stuck>,
}

/// What the validation thread works with.
pub struct ValidationWorker {
    pub set: ValidationSet,
    /// A judge and what it listens to.
    pub hearing: Option<Hearing>,
    pub document: Arc<VoiceDocument>,
    pub device: Device,
    /// For samples.
    pub vocoder: VocoderChoice,
    /// Its own threads, where the CPU trains.
    pub pool: BackgroundPool,
    pub log: LogSender,
    /// Where the losses go; none on a rank that writes no checkpoints.
    pub results: Option<ValidationResults>,
    pub recorder: Recorder,
    pub cancel: CancelToken,
    pub progress: ProgressCounter,
    pub slowest: SlowestPart,
    /// The other ranks; none where this process trains alone.
    pub cluster: Option<Cluster>,
    /// Whether a request waits in the queue.
    pub waiting: Arc<AtomicBool>,
}

impl Validator {
    pub fn start(worker: ValidationWorker) -> Result<Validator, TrainError> {
        let (requests, received) = sync_channel(1);
        let (results, recorder) = (worker.results.clone(), worker.recorder.clone());
        let (progress, slowest) = (worker.progress.clone(), worker.slowest.clone());
        let (waiting, has_ranks) = (worker.waiting.clone(), worker.cluster.is_some());
        let thread = std::thread::Builder::new()
            .name("tandem-validate".into())
            .spawn(move || worker.run(&received))
            .map_err(TrainError::Thread)?;
        let stuck = None;
        Ok(Validator {
            requests,
            thread,
            results,
            progress,
            slowest,
            has_ranks,
            recorder,
            waiting,
            stuck,
        })
    }

    /// Requests a validation. Never waits.
    pub fn request(&self, request: ValidationRequest) {
        let step = request.step;
        // Before the request is sent: the worker resets it when it takes the request.
        self.waiting.store(true, Ordering::Release);
        match self.requests.try_send(Request::Validate(Box::new(request))) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => self.skip(step),
            Err(TrySendError::Disconnected(_)) => self.not_validated(step),
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
        self.not_validated(step);
    }

    /// Requests the validation of the last step. Waits for its turn while the validator makes progress;
    /// `finish` reports one that does not.
    pub fn request_last(&mut self, request: ValidationRequest) {
        self.send(Request::Validate(Box::new(request)));
    }

    /// Waits for the requested validations.
    pub fn finish(mut self) -> Result<(), TrainError> {
        self.send(Request::End);
        let limit = self.limit();
        let ended = match self.stuck.take() {
            Some(stuck) => Err(stuck),
            None => join_within(self.thread, &self.progress, limit),
        };
        let why = match ended {
            Ok(()) => return Ok(()),
            Err(Stuck::Panicked(message)) => message,
            Err(Stuck::NoProgress(limit)) => format!("no batch in {} s", limit.as_secs()),
        };
        Err(TrainError::BackgroundThread { what: "the validator", why })
    }

    fn send(&mut self, request: Request) {
        if self.stuck.is_none() {
            let limit = self.limit();
            self.stuck = send_within(&self.requests, request, &self.progress, limit).err();
        }
    }

    /// Ranks wait for the slowest of them, of which nothing is known here.
    fn limit(&self) -> Duration {
        if self.has_ranks { SLOWEST_BATCH } else { self.slowest.limit() }
    }

    fn not_validated(&self, step: u64) {
        self.results.iter().for_each(|results| results.not_validated(step));
    }
}

impl ValidationWorker {
    fn run(&self, requests: &Receiver<Request>) {
        // Rank 0 synthesizes the samples.
        let speaks = self.cluster.as_ref().is_none_or(Cluster::is_first);
        let mut vocoder = if speaks { self.open_vocoder() } else { None };
        for request in requests {
            let Request::Validate(request) = request else { return };
            self.waiting.store(false, Ordering::Release);
            if let Err(why) = self.validate(&request, &mut vocoder) {
                let text = format!("no validation at step {}: {why}", request.step);
                self.recorder.send(Warning { code: "validation_failed".into(), text });
            }
            // After a result this changes nothing; after a failure or a stop it frees the checkpoint.
            self.results.iter().for_each(|results| results.not_validated(request.step));
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
        let heard = self.heard(request.step, &voice, vocoder);
        if heard.is_none() && self.hearing.is_some() && self.cancel.is_cancelled() {
            // Without what it would have heard, this validation would count for another measure.
            return Ok(());
        }
        self.publish(request.step, &metrics, heard, began);
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

    /// The voice on this device, and the metrics of this rank's batches; none when the run is stopped.
    fn measure(&self, request: &ValidationRequest) -> (Voice, Option<Vec<BatchMetrics>>) {
        let voice = copy_to(&request.voice, &self.device);
        let (mut aligner, limits) = (Aligner::default(), HealthLimits::default());
        let mut measured = Vec::with_capacity(self.set.batches.len());
        for NumberedBatch { number, batch } in &self.set.batches {
            if self.cancel.is_cancelled() {
                return (voice, None);
            }
            let began = Instant::now();
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
            self.slowest.add(began.elapsed());
            self.progress.advance();
        }
        (voice, Some(measured))
    }

    /// What the judge hears; none without one, and after one that failed.
    fn heard(
        &self,
        step: u64,
        voice: &Voice,
        vocoder: &mut Option<Box<dyn Vocoder>>,
    ) -> Option<HearingErrors> {
        let hearing = self.hearing.as_ref().filter(|hearing| hearing.is_listening())?;
        let speak = || {
            self.pool.run(|| {
                let spoken = |said: &JudgedSentence| self.speak(&said.sentence, voice, vocoder);
                hearing.speak(&self.document, spoken)
            })
        };
        let mut watch = || {
            self.progress.advance();
            match self.cancel.is_cancelled() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let spoken =
            guarded("synthesizing for the judge", speak).map_err(|error| error.to_string());
        match spoken.and_then(|spoken| spoken).and_then(|wavs| hearing.listen(&wavs, &mut watch)) {
            Ok(heard) => Some(heard),
            // A stopped run says nothing about its judge.
            Err(_) if self.cancel.is_cancelled() => None,
            Err(why) => {
                let text = format!(
                    "the judge did not hear the voice of step {step}: {why}; it is not asked again in this run, and the \
                     best checkpoint is the one with the lowest acoustic loss"
                );
                self.recorder.send(Warning { code: "judge_failed".into(), text });
                None
            }
        }
    }

    /// The samples of a sentence for the judge; none when the run is stopped, or there is no vocoder.
    fn speak(
        &self,
        sentence: &Sentence,
        voice: &Voice,
        vocoder: &mut Option<Box<dyn Vocoder>>,
    ) -> Option<Vec<f32>> {
        if self.cancel.is_cancelled() {
            return None;
        }
        self.progress.advance();
        let began = Instant::now();
        let document = &self.document;
        let synthesizer = MelSynthesizer { voice, config: &document.config, device: &self.device };
        let Sentence { symbols, language, reference, .. } = sentence;
        let sampling = SamplingOptions::default();
        let mut spoken = synthesizer.synthesize(symbols, *language, reference, None, &sampling);
        document.restore(&mut spoken.mel, reference);
        let samples = vocoder.as_mut()?.synthesize(&spoken.mel).ok();
        self.slowest.add(began.elapsed());
        samples
    }

    /// Passes the loss on. The event follows when it is known whether this is the best voice so far.
    fn publish(&self, step: u64, metrics: &Metrics, heard: Option<HearingErrors>, began: Instant) {
        let mut named = vec![
            ("total", metrics.acoustic() + metrics.duration),
            ("acoustic", metrics.acoustic()),
            ("prior", metrics.prior),
            ("duration", metrics.duration),
            ("flow", metrics.flow),
            ("alignment_coverage", metrics.coverage),
            ("alignment_diagonality", metrics.diagonality),
            ("alignment_entropy", metrics.entropy),
        ];
        if let Some(HearingErrors { words, characters }) = heard {
            named.extend([("wer", words), ("cer", characters)]);
        }
        let scalar = |(name, value): &(&'static str, f64)| Loss {
            name: format!("validation/{name}").into(),
            value: Pending::known(*value as f32),
        };
        let values = named.iter().map(scalar).collect();
        self.log.send(LogMessage::Scalars { step, values });
        let values = named.iter().map(|(name, value)| (name.to_string(), *value)).collect();
        let (recorder, took) = (self.recorder.clone(), began.elapsed().into());
        let report = move |best| recorder.send(Validation { step, took, best, values });
        match &self.results {
            Some(results) => {
                let (loss, report) = (metrics.acoustic(), Box::new(report));
                let heard = heard.map(|heard| heard.characters);
                results.validated(ValidationResult { step, loss, heard, report });
            }
            None => report(false),
        }
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
            let began = Instant::now();
            let Sentence { name, text, symbols, language, reference } = sentence;
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
            let (name_of_text, text) = (name.clone(), text.clone());
            self.log.send(LogMessage::Text { step, name: name_of_text, text });
            let alignment = Alignment::Path(spoken.durations.clone());
            self.log.send(LogMessage::Alignment { step, name: name.clone(), alignment });
            self.log.send(LogMessage::Mel { step, name: name.clone(), frames: spoken.mel });
            self.slowest.add(began.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_validator_with_fast_batches_is_given_up_soon() {
        let slowest = SlowestPart::default();
        assert_eq!(slowest.limit(), SLOWEST_BATCH, "nothing is known yet");
        slowest.add(Duration::from_millis(200));
        assert_eq!(slowest.limit(), LEAST_LIMIT);
        slowest.add(Duration::from_secs(5));
        slowest.add(Duration::from_secs(1));
        assert_eq!(slowest.limit(), Duration::from_secs(100));
        slowest.add(Duration::from_secs(60));
        assert_eq!(slowest.limit(), SLOWEST_BATCH);
    }
}
