//! Validation and samples, on a thread of their own, from a copy of the weights.
//!
//! In: a voice after so many steps. Out: its losses on rows it never learned from, the health of
//! its alignments, a few sentences as sound and pictures; the best checkpoint is marked. Runs on
//! the data device while the model device trains. An request that comes while the last one is still
//! being held is left out, and that is said. One that a stopped run is still holding ends between two
//! questions.

use crate::TrainError;
use crate::feed::align::{align_with_health, priors, unaligned};
use crate::feed::languages::language_numbers;
use crate::feed::{FeedSettings, feed};
use crate::log::picture::Alignment;
use crate::log::{LogMessage, LogSender};
use crate::prepare::Prepared;
use crate::run::background::BackgroundPool;
use crate::run::checkpoint_writer::BestMarker;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Instant;
use tandem_data::batch::Position;
use tandem_data::corpus::Split;
use tandem_device::backend::guarded;
use tandem_device::memory::Charge;
use tandem_model::Device;
use tandem_model::alignment::Aligner;
use tandem_model::metrics::alignment::Finding;
use tandem_model::metrics::{AlignmentHealth, HealthLimits};
use tandem_model::network::voice::Voice;
use tandem_model::synthesis::mel::{Reference, SamplingOptions, Speaker};
use tandem_model::train_batch::AlignedBatch;
use tandem_model::trained_voice::VoiceDocument;
use tandem_model::vocoder::Vocoder;
use tandem_model::vocoder::griffin_lim::{GriffinLim, GriffinLimConfig};
use tandem_pipeline::{Adapt, CancelToken};
use tandem_telemetry::Recorder;
use tandem_telemetry::event::{Loss, Validation, Warning};
use tandem_telemetry::pending::Pending;
use tandem_units::Seed;

/// Batches of an request at most: it is held again and again.
const BATCHES: usize = 16;
/// Sentences that are spoken.
const SENTENCES: usize = 4;

/// What is asked: the same questions every time.
pub struct ValidationSet {
    batches: Vec<AlignedBatch>,
    sentences: Vec<Sentence>,
}

struct Sentence {
    name: String,
    symbols: Vec<i32>,
    language: i32,
    reference: Reference,
}

/// One request.
pub struct ValidationRequest {
    /// Steps done.
    pub step: u64,
    /// The voice that speaks.
    pub voice: Voice,
    /// Whether sentences are spoken too.
    pub speak: Speak,
    /// Its memory in the accounts of the run.
    pub held: Charge,
}

/// Whether an request includes speaking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speak {
    /// Losses alone.
    No,
    /// Sentences too.
    Yes,
}

/// What the training thread can see of past requests without waiting.
#[derive(Clone, Debug, Default)]
pub struct BestSoFar {
    since_best: Arc<AtomicU32>,
    best: Arc<AtomicU64>,
}

/// Owns the thread.
pub struct Validator {
    requests: Option<SyncSender<ValidationRequest>>,
    thread: Option<JoinHandle<()>>,
    /// How the run stands.
    pub best_so_far: BestSoFar,
    recorder: Recorder,
}

impl ValidationSet {
    /// From the rows of a split, or from all; `None` where there are none.
    pub fn build(
        prepared: &Arc<Prepared>,
        split: Option<Split>,
        settings: &FeedSettings,
        document: &VoiceDocument,
        speakers: &[Vec<f32>],
        cancel: &CancelToken,
    ) -> Result<Option<ValidationSet>, TrainError> {
        let numbers = language_numbers(prepared, &document.languages)?;
        let rows = crate::feed::Rows::of(prepared, split);
        if rows.cache_row.is_empty() {
            return Ok(None);
        }
        let settings = FeedSettings {
            split,
            start: Position::start(settings.batch.seed),
            first: 0,
            epochs: Some(1),
            adapt: Adapt::Off,
            ..settings.clone()
        };
        let mut feed = feed(prepared, &settings, &Recorder::off(), cancel)?;
        let (mut batches, mut sentences) = (Vec::new(), Vec::<Sentence>::new());
        while batches.len() < BATCHES
            && let Some(ready) = feed.next()?
        {
            let seed = Seed(batches.len() as u64);
            let mut batch = unaligned(&ready, &document.scale, document.config.patch, seed);
            // Another corpus may number its languages in another way than the voice does.
            for language in &mut batch.languages[..ready.batch.used()] {
                *language = numbers.get(*language as usize).copied().unwrap_or(*language);
            }
            for row in 0..ready.batch.used() {
                let language = batch.languages[row];
                let fresh = sentences.iter().all(|other| other.language != language);
                if sentences.len() < SENTENCES && fresh {
                    sentences.push(sentence(&batch, row, document, speakers));
                }
            }
            batches.push(batch);
        }
        Ok(Some(ValidationSet { batches, sentences }))
    }
}

fn sentence(
    batch: &AlignedBatch,
    row: usize,
    document: &VoiceDocument,
    speakers: &[Vec<f32>],
) -> Sentence {
    let language = batch.languages[row];
    let tag = document.languages.get(language as usize).cloned().unwrap_or_default();
    let known = document.speakers.iter().position(|speaker| speaker.language == tag);
    let mel = known.map_or(Vec::new(), |number| speakers[number].clone());
    let symbols = &batch.symbol_ids[row * batch.symbols..][..batch.symbol_counts[row]];
    Sentence { name: tag, symbols: symbols.to_vec(), language, reference: Reference { mel } }
}

/// What an examiner works with.
pub struct ValidationWorker {
    /// The questions.
    pub set: ValidationSet,
    /// What the voice is.
    pub document: Arc<VoiceDocument>,
    /// Where it is examined.
    pub device: Device,
    /// By whom, where that is the processor that trains.
    pub pool: BackgroundPool,
    /// Where sound and pictures go.
    pub log: LogSender,
    /// Metrics the best checkpoint.
    pub marker: Option<BestMarker>,
    /// Where events go.
    pub recorder: Recorder,
    /// Ends an request in the middle.
    pub cancel: CancelToken,
    /// How the run stands.
    pub best_so_far: BestSoFar,
}

impl BestSoFar {
    /// As a resumed run left it.
    pub fn from(best: Option<f64>, since_best: u32) -> BestSoFar {
        let best_so_far = BestSoFar::default();
        best_so_far.best.store(best.unwrap_or(f64::INFINITY).to_bits(), Ordering::Relaxed);
        best_so_far.since_best.store(since_best, Ordering::Relaxed);
        best_so_far
    }

    /// The lowest loss so far.
    pub fn best(&self) -> Option<f64> {
        let best = f64::from_bits(self.best.load(Ordering::Relaxed));
        best.is_finite().then_some(best)
    }

    /// Exams since then.
    pub fn since_best(&self) -> u32 {
        self.since_best.load(Ordering::Relaxed)
    }

    /// Whether this is the best so far.
    fn enter(&self, loss: f64) -> bool {
        let better = loss < self.best().unwrap_or(f64::INFINITY);
        if better {
            self.best.store(loss.to_bits(), Ordering::Relaxed);
            self.since_best.store(0, Ordering::Relaxed);
        } else {
            self.since_best.fetch_add(1, Ordering::Relaxed);
        }
        better
    }
}

impl Validator {
    /// Starts the thread.
    pub fn start(worker: ValidationWorker) -> Result<Validator, TrainError> {
        let (sender, requests) = sync_channel::<ValidationRequest>(1);
        let (best_so_far, recorder) = (worker.best_so_far.clone(), worker.recorder.clone());
        let thread = std::thread::Builder::new()
            .name("tandem-request".into())
            .spawn(move || worker.run(&requests))
            .map_err(TrainError::Thread)?;
        Ok(Validator { requests: Some(sender), thread: Some(thread), best_so_far, recorder })
    }

    /// Asks for an request. Never waits.
    pub fn request(&self, request: ValidationRequest) {
        let Some(requests) = &self.requests else { return };
        let step = request.step;
        if let Err(TrySendError::Full(_)) = requests.try_send(request) {
            let text = format!(
                "no validation at step {step}: the last one is still under way; a larger \
                 `--validate-every` gives it time"
            );
            self.recorder.send(Warning { code: "validation_slow".into(), text });
        }
    }

    /// Waits for the requests that were asked for, and ends.
    pub fn finish(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Validator {
    fn drop(&mut self) {
        self.end();
    }
}

impl ValidationWorker {
    fn run(&self, requests: &Receiver<ValidationRequest>) {
        let mut vocoder = GriffinLim::new(&self.document.mel, GriffinLimConfig::default()).ok();
        for request in requests {
            let held = guarded("validating the voice", || {
                self.pool.run(|| self.validate(&request, &mut vocoder));
            });
            if let Err(error) = held {
                let text = format!("no validation at step {}: {error}", request.step);
                self.recorder.send(Warning { code: "validation_failed".into(), text });
            }
        }
    }

    fn validate(&self, request: &ValidationRequest, vocoder: &mut Option<GriffinLim>) {
        let began = Instant::now();
        let voice = tandem_model::Module::fork(request.voice.clone(), &self.device);
        let Some(metrics) = self.measure(&voice) else { return };
        let loss = metrics.prior + metrics.duration + metrics.flow;
        let best = self.best_so_far.enter(loss);
        if best && let Some(marker) = &self.marker {
            marker.mark_best(request.step, loss);
        }
        self.publish(request.step, &metrics, loss, best, began);
        if request.speak == Speak::Yes {
            self.speak(request.step, &voice, vocoder);
        }
    }

    /// Losses over all questions, every utterance counting the same; none where the run is being stopped.
    fn measure(&self, voice: &Voice) -> Option<Metrics> {
        let mut metrics = Metrics::default();
        let (mut aligner, limits) = (Aligner::default(), HealthLimits::default());
        let mut utterances = 0.0;
        for question in &self.set.batches {
            if self.cancel.is_cancelled() {
                return None;
            }
            let mut batch = question.clone();
            let priors = priors(&voice.encoder, &batch, &self.device);
            let healths = align_with_health(&mut aligner, &mut batch, &priors, &limits);
            healths.iter().for_each(|health| metrics.add_health(health));
            let batch = batch.to_device(&self.device);
            let losses = voice.losses(&batch);
            utterances += batch.utterances as f64;
            metrics.prior += f64::from(losses.prior.into_scalar::<f32>());
            metrics.duration += f64::from(losses.duration.into_scalar::<f32>());
            metrics.flow += f64::from(losses.flow.into_scalar::<f32>());
        }
        Some(metrics.over(f64::max(utterances, 1.0)))
    }

    fn publish(&self, step: u64, metrics: &Metrics, loss: f64, best: bool, began: Instant) {
        let named = [
            ("total", loss),
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

    /// What is out of bounds in the mean of all questions, with advice.
    fn warn_of_health(&self, metrics: &Metrics) {
        let Some(health) = metrics.health() else { return };
        for Finding { fact, advice } in health.findings(&HealthLimits::default()) {
            let text = format!(
                "alignment of held-out texts: {fact}; {advice}; `tandem analyze --alignments` with \
                 this run's directory ranks the transcripts to look at"
            );
            self.recorder.send(Warning { code: "alignment_health".into(), text });
        }
    }

    fn speak(&self, step: u64, voice: &Voice, vocoder: &mut Option<GriffinLim>) {
        let document = &self.document;
        let speaker = Speaker { voice, config: &document.config, device: &self.device };
        for sentence in &self.set.sentences {
            if self.cancel.is_cancelled() {
                return;
            }
            let Sentence { name, symbols, language, reference } = sentence;
            let mut spoken =
                speaker.speak(symbols, *language, reference, None, &SamplingOptions::default());
            document.scale.restore(&mut spoken.mel);
            if let Some(Ok(samples)) = vocoder.as_mut().map(|vocoder| vocoder.speak(&spoken.mel)) {
                let (name, rate) = (name.clone(), document.mel.rate);
                self.log.send(LogMessage::Audio { step, name, rate, samples });
            }
            let alignment = Alignment::Path(spoken.durations.clone());
            self.log.send(LogMessage::Alignment { step, name: name.clone(), alignment });
            self.log.send(LogMessage::Mel { step, name: name.clone(), frames: spoken.mel });
        }
    }
}

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
    fn add_health(&mut self, health: &AlignmentHealth) {
        self.coverage += health.coverage;
        self.diagonality += health.diagonality;
        self.entropy += health.entropy.unwrap_or_default();
        self.aligned += 1.0;
    }

    fn over(self, utterances: f64) -> Metrics {
        let aligned = self.aligned.max(1.0);
        Metrics {
            prior: self.prior / utterances,
            duration: self.duration / utterances,
            flow: self.flow / utterances,
            coverage: self.coverage / aligned,
            diagonality: self.diagonality / aligned,
            entropy: self.entropy / aligned,
            aligned: self.aligned,
        }
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
