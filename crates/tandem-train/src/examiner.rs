//! Validation and samples, on a thread of their own, from a copy of the weights.
//!
//! In: a voice after so many steps. Out: its losses on rows it never learned from, the health of
//! its alignments, a few sentences as sound and pictures; the best checkpoint is marked. Runs on
//! the data device while the model device trains. An exam that comes while the last one is still
//! being held is left out, and that is said. One that a stopped run is still holding ends between two
//! questions.

use crate::TrainError;
use crate::align::{lay_over_judged, priors, unaligned};
use crate::beside::Beside;
use crate::feed::{FeedSettings, feed};
use crate::keeper::Marker;
use crate::known_languages::language_numbers;
use crate::picture::Alignment;
use crate::prepare::Prepared;
use crate::run_log::{LogMessage, LogSender};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Instant;
use tandem_data::batch::Position;
use tandem_data::corpus::Split;
use tandem_model::Device;
use tandem_model::alignment::Aligner;
use tandem_model::device::guarded;
use tandem_model::griffin_lim::{GriffinLim, GriffinLimConfig};
use tandem_model::lesson::HostLesson;
use tandem_model::memory::Charge;
use tandem_model::metrics::alignment::Finding;
use tandem_model::metrics::{AlignmentHealth, HealthLimits};
use tandem_model::synthesis::{Manner, Reference, Speaker};
use tandem_model::trained::VoiceDocument;
use tandem_model::vocoder::Vocoder;
use tandem_model::voice::Voice;
use tandem_pipeline::{Adapt, CancelToken};
use tandem_telemetry::Recorder;
use tandem_telemetry::event::{Loss, Validation, Warning};
use tandem_telemetry::pending::Pending;
use tandem_units::Seed;

/// Batches of an exam at most: it is held again and again.
const BATCHES: usize = 16;
/// Sentences that are spoken.
const SENTENCES: usize = 4;

/// What is asked: the same questions every time.
pub struct Paper {
    lessons: Vec<HostLesson>,
    sentences: Vec<Sentence>,
}

struct Sentence {
    name: String,
    symbols: Vec<i32>,
    language: i32,
    reference: Reference,
}

/// One exam.
pub struct Exam {
    /// Steps done.
    pub step: u64,
    /// The voice that speaks.
    pub voice: Voice,
    /// Whether sentences are spoken too.
    pub speak: Speak,
    /// Its memory in the accounts of the run.
    pub held: Charge,
}

/// Whether an exam includes speaking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speak {
    /// Losses alone.
    No,
    /// Sentences too.
    Yes,
}

/// What the training thread can see of past exams without waiting.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    since_best: Arc<AtomicU32>,
    best: Arc<AtomicU64>,
}

/// Owns the thread.
pub struct Examiner {
    exams: Option<SyncSender<Exam>>,
    thread: Option<JoinHandle<()>>,
    /// How the run stands.
    pub standing: Standing,
    recorder: Recorder,
}

impl Paper {
    /// From the rows of a split, or from all; `None` where there are none.
    pub fn write(
        prepared: &Arc<Prepared>,
        split: Option<Split>,
        settings: &FeedSettings,
        document: &VoiceDocument,
        speakers: &[Vec<f32>],
        cancel: &CancelToken,
    ) -> Result<Option<Paper>, TrainError> {
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
        let mut batches = feed(prepared, &settings, &Recorder::off(), cancel)?;
        let (mut lessons, mut sentences) = (Vec::new(), Vec::<Sentence>::new());
        while lessons.len() < BATCHES
            && let Some(ready) = batches.next()?
        {
            let seed = Seed(lessons.len() as u64);
            let mut lesson = unaligned(&ready, &document.scale, document.config.patch, seed);
            // Another corpus may number its languages in another way than the voice does.
            for language in &mut lesson.languages[..ready.batch.used()] {
                *language = numbers.get(*language as usize).copied().unwrap_or(*language);
            }
            for row in 0..ready.batch.used() {
                let language = lesson.languages[row];
                let fresh = sentences.iter().all(|other| other.language != language);
                if sentences.len() < SENTENCES && fresh {
                    sentences.push(sentence(&lesson, row, document, speakers));
                }
            }
            lessons.push(lesson);
        }
        Ok(Some(Paper { lessons, sentences }))
    }
}

fn sentence(
    lesson: &HostLesson,
    row: usize,
    document: &VoiceDocument,
    speakers: &[Vec<f32>],
) -> Sentence {
    let language = lesson.languages[row];
    let tag = document.languages.get(language as usize).cloned().unwrap_or_default();
    let known = document.speakers.iter().position(|speaker| speaker.language == tag);
    let mel = known.map_or(Vec::new(), |number| speakers[number].clone());
    let symbols = &lesson.symbol_ids[row * lesson.symbols..][..lesson.symbol_counts[row]];
    Sentence { name: tag, symbols: symbols.to_vec(), language, reference: Reference { mel } }
}

/// What an examiner works with.
pub struct Desk {
    /// The questions.
    pub paper: Paper,
    /// What the voice is.
    pub document: Arc<VoiceDocument>,
    /// Where it is examined.
    pub device: Device,
    /// By whom, where that is the processor that trains.
    pub beside: Beside,
    /// Where sound and pictures go.
    pub log: LogSender,
    /// Marks the best checkpoint.
    pub marker: Option<Marker>,
    /// Where events go.
    pub recorder: Recorder,
    /// Ends an exam in the middle.
    pub cancel: CancelToken,
    /// How the run stands.
    pub standing: Standing,
}

impl Standing {
    /// As a resumed run left it.
    pub fn from(best: Option<f64>, since_best: u32) -> Standing {
        let standing = Standing::default();
        standing.best.store(best.unwrap_or(f64::INFINITY).to_bits(), Ordering::Relaxed);
        standing.since_best.store(since_best, Ordering::Relaxed);
        standing
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

impl Examiner {
    /// Starts the thread.
    pub fn start(desk: Desk) -> Result<Examiner, TrainError> {
        let (sender, exams) = sync_channel::<Exam>(1);
        let (standing, recorder) = (desk.standing.clone(), desk.recorder.clone());
        let thread = std::thread::Builder::new()
            .name("tandem-exam".into())
            .spawn(move || desk.hold_all(&exams))
            .map_err(TrainError::Thread)?;
        Ok(Examiner { exams: Some(sender), thread: Some(thread), standing, recorder })
    }

    /// Asks for an exam. Never waits.
    pub fn examine(&self, exam: Exam) {
        let Some(exams) = &self.exams else { return };
        let step = exam.step;
        if let Err(TrySendError::Full(_)) = exams.try_send(exam) {
            let text = format!(
                "no validation at step {step}: the last one is still under way; a larger \
                 `--validate-every` gives it time"
            );
            self.recorder.send(Warning { code: "validation_slow".into(), text });
        }
    }

    /// Waits for the exams that were asked for, and ends.
    pub fn finish(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.exams = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Examiner {
    fn drop(&mut self) {
        self.end();
    }
}

impl Desk {
    fn hold_all(&self, exams: &Receiver<Exam>) {
        let mut vocoder = GriffinLim::new(&self.document.mel, GriffinLimConfig::default()).ok();
        for exam in exams {
            let held = guarded("examining the voice", || {
                self.beside.run(|| self.hold(&exam, &mut vocoder));
            });
            if let Err(error) = held {
                let text = format!("no validation at step {}: {error}", exam.step);
                self.recorder.send(Warning { code: "validation_failed".into(), text });
            }
        }
    }

    fn hold(&self, exam: &Exam, vocoder: &mut Option<GriffinLim>) {
        let began = Instant::now();
        let voice = tandem_model::Module::fork(exam.voice.clone(), &self.device);
        let Some(marks) = self.marks(&voice) else { return };
        let loss = marks.prior + marks.duration + marks.flow;
        let best = self.standing.enter(loss);
        if best && let Some(marker) = &self.marker {
            marker.mark_best(exam.step, loss);
        }
        self.publish(exam.step, &marks, loss, best, began);
        if exam.speak == Speak::Yes {
            self.speak(exam.step, &voice, vocoder);
        }
    }

    /// Losses over all questions, every utterance counting the same; none where the run is being stopped.
    fn marks(&self, voice: &Voice) -> Option<Marks> {
        let mut marks = Marks::default();
        let (mut aligner, limits) = (Aligner::default(), HealthLimits::default());
        let mut utterances = 0.0;
        for question in &self.paper.lessons {
            if self.cancel.is_cancelled() {
                return None;
            }
            let mut lesson = question.clone();
            let priors = priors(&voice.reader, &lesson, &self.device);
            let healths = lay_over_judged(&mut aligner, &mut lesson, &priors, &limits);
            healths.iter().for_each(|health| marks.add_health(health));
            let lesson = lesson.to_device(&self.device);
            let losses = voice.losses(&lesson);
            utterances += lesson.utterances as f64;
            marks.prior += f64::from(losses.prior.into_scalar::<f32>());
            marks.duration += f64::from(losses.duration.into_scalar::<f32>());
            marks.flow += f64::from(losses.flow.into_scalar::<f32>());
        }
        Some(marks.over(f64::max(utterances, 1.0)))
    }

    fn publish(&self, step: u64, marks: &Marks, loss: f64, best: bool, began: Instant) {
        let named = [
            ("total", loss),
            ("prior", marks.prior),
            ("duration", marks.duration),
            ("flow", marks.flow),
            ("alignment_coverage", marks.coverage),
            ("alignment_diagonality", marks.diagonality),
            ("alignment_entropy", marks.entropy),
        ];
        let scalar = |(name, value): &(&'static str, f64)| Loss {
            name: format!("validation/{name}").into(),
            value: Pending::known(*value as f32),
        };
        let values = named.iter().map(scalar).collect();
        self.log.send(LogMessage::Scalars { step, values });
        let values = named.iter().map(|(name, value)| (name.to_string(), *value)).collect();
        self.recorder.send(Validation { step, took: began.elapsed().into(), best, values });
        self.warn_of_health(marks);
    }

    /// What is out of bounds in the mean of all questions, with advice.
    fn warn_of_health(&self, marks: &Marks) {
        let Some(health) = marks.health() else { return };
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
        for sentence in &self.paper.sentences {
            if self.cancel.is_cancelled() {
                return;
            }
            let Sentence { name, symbols, language, reference } = sentence;
            let mut spoken = speaker.speak(symbols, *language, reference, None, &Manner::default());
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
struct Marks {
    prior: f64,
    duration: f64,
    flow: f64,
    coverage: f64,
    diagonality: f64,
    entropy: f64,
    aligned: f64,
}

impl Marks {
    fn add_health(&mut self, health: &AlignmentHealth) {
        self.coverage += health.coverage;
        self.diagonality += health.diagonality;
        self.entropy += health.entropy.unwrap_or_default();
        self.aligned += 1.0;
    }

    fn over(self, utterances: f64) -> Marks {
        let aligned = self.aligned.max(1.0);
        Marks {
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
