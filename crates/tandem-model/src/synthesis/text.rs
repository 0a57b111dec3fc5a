//! Text to speech with a trained voice, for texts of any length.
//!
//! In: text, and the speaker to use. Out: [`SynthesizedSpeech`]: samples, mel frames, the time of
//! each sentence. Reads only the checkpoint, which contains the lexicon, and a reference recording.
//! Writes no file, starts no thread. Sentences are synthesized one by one, so that memory does not
//! grow with the text. The same text and seed give the same samples.

mod error;
mod pieces;

pub use error::SynthesisError;

use crate::synthesis::mel::{MelSynthesizer, Reference, SamplingOptions, SynthesizedMel};
use crate::trained_voice::TrainedVoice;
use crate::vocoder::{Vocoder, VocoderChoice};
use burn::tensor::Device;
use pieces::Piece;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};
use tandem_audio::mel::MelExtractor;
use tandem_audio::{AudioConfig, Decoder, FileReader};
use tandem_device::backend::guarded;
use tandem_text::chat::TextTreatment;
use tandem_text::{FrontEnd, Language, ProcessedText, TextError};
use tandem_units::Seconds;

/// The shortest reference recording. Shorter ones do not identify a speaker.
const SHORTEST_REFERENCE: Seconds = Seconds(0.8);
/// Samples of the fade at both ends of a sentence, so that it does not begin with a click.
pub const FADE: usize = 96;

/// Which speaker a text is synthesized with.
#[derive(Clone, Debug)]
pub enum SpeakerChoice {
    /// The first speaker of the corpus with the language of the text, or no particular speaker if
    /// the checkpoint has none.
    AnyKnown,
    /// A speaker of the corpus, by name.
    Known(String),
    /// The speaker of a recording.
    Reference(Reference),
}

/// Settings of one text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpeechOptions {
    pub sampling: SamplingOptions,
    /// `None` to detect it for each sentence.
    pub language: Option<Language>,
    /// Silence between two sentences.
    pub pause: Seconds,
    /// Markdown, and signs that the voice does not know.
    pub text: TextTreatment,
}

impl Default for SpeechOptions {
    fn default() -> SpeechOptions {
        let (sampling, text) = (SamplingOptions::default(), TextTreatment::default());
        SpeechOptions { sampling, language: None, pause: Seconds(0.25), text }
    }
}

/// A text as speech.
#[derive(Clone, Debug, Default)]
pub struct SynthesizedSpeech {
    /// Samples at the rate of the voice's mel settings; one hop for each frame.
    pub samples: Vec<f32>,
    /// Natural logarithms, pauses included: `[frames, bands]`.
    pub mel: Vec<f32>,
    /// In the order of the text.
    pub sentences: Vec<SynthesizedSentence>,
    /// Parts of the text without a pronounceable word, such as a line of stars.
    pub skipped: Vec<String>,
    /// Signs that the voice does not know and code blocks, each once and in a few words.
    pub left_out: Vec<String>,
    pub time: SynthesisTime,
}

/// One sentence of a [`SynthesizedSpeech`].
#[derive(Clone, Debug)]
pub struct SynthesizedSentence {
    /// The original text.
    pub text: String,
    pub language: Language,
    /// The number of symbols.
    pub symbols: usize,
    /// The first frame.
    pub start: usize,
    /// Frames of each symbol.
    pub durations: Vec<u32>,
}

/// The time that each part took.
#[derive(Clone, Copy, Debug, Default)]
pub struct SynthesisTime {
    /// Text to symbols.
    pub text: Duration,
    /// Symbols to mel frames.
    pub voice: Duration,
    /// Mel frames to samples.
    pub vocoder: Duration,
}

impl SynthesisTime {
    pub fn total(&self) -> Duration {
        self.text + self.voice + self.vocoder
    }
}

/// A trained voice with its front end and vocoder. One per thread.
pub struct Synthesizer {
    trained: TrainedVoice,
    front_end: FrontEnd,
    vocoder: Box<dyn Vocoder>,
    vocoder_name: &'static str,
    device: Device,
}

impl Synthesizer {
    /// Reads the voice of a checkpoint, or of the best one of a run directory.
    pub fn open(
        checkpoint: &Path,
        device: &Device,
        vocoder: &VocoderChoice,
    ) -> Result<Synthesizer, SynthesisError> {
        let trained = guarded("reading the voice", || TrainedVoice::read(checkpoint, device))??;
        Synthesizer::new(trained, device, vocoder)
    }

    /// With a voice that is already in memory.
    pub fn new(
        trained: TrainedVoice,
        device: &Device,
        vocoder: &VocoderChoice,
    ) -> Result<Synthesizer, SynthesisError> {
        let front_end = trained.document.front_end().map_err(SynthesisError::FrontEnd)?;
        let choice = vocoder.for_voice(&trained.path);
        let vocoder = choice.open(&trained.document.mel)?;
        let vocoder_name = choice.name();
        Ok(Synthesizer { trained, front_end, vocoder, vocoder_name, device: device.clone() })
    }

    pub fn trained(&self) -> &TrainedVoice {
        &self.trained
    }

    /// Which vocoder is used, for messages.
    pub fn vocoder_name(&self) -> &'static str {
        self.vocoder_name
    }

    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The normalised frames of a recording of the speaker to imitate.
    pub fn read_reference(&self, recording: &Path) -> Result<Reference, SynthesisError> {
        let document = &self.trained.document;
        let limits = AudioConfig { min_length: SHORTEST_REFERENCE, ..AudioConfig::default() };
        let config = limits.conditioned_like(&document.audio);
        let failed = |source| SynthesisError::Reference { path: recording.into(), source };
        let mut file = FileReader::default();
        let bytes = file.read(recording, &config).map_err(failed)?;
        let mut decoder = Decoder::new(document.mel.rate, config);
        let extension = recording.extension().and_then(|extension| extension.to_str());
        let sound = decoder.decode(bytes, extension).map_err(failed)?;
        let mut extractor = MelExtractor::new(document.mel.clone())?;
        let mel = extractor.extract(sound)?;
        Ok(Reference { mel: document.scale.normalised(mel.values()), level: None })
    }

    /// Synthesizes a text. `progress` receives the number of finished sentences and of all.
    pub fn synthesize(
        &mut self,
        text: &str,
        speaker: &SpeakerChoice,
        options: &SpeechOptions,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<SynthesizedSpeech, SynthesisError> {
        self.synthesize_by_sentence(text, speaker, options, &mut |speech, all| {
            progress(speech.sentences.len(), all);
            ControlFlow::Continue(())
        })
    }

    /// Synthesizes a text, and shows `observe` the speech so far and the number of all sentences:
    /// before the first sentence, when the whole text is known to be readable, and after each one.
    /// Samples that were shown do not change any more. `Break` ends the synthesis.
    pub fn synthesize_by_sentence(
        &mut self,
        text: &str,
        speaker: &SpeakerChoice,
        options: &SpeechOptions,
        observe: &mut dyn FnMut(&SynthesizedSpeech, usize) -> ControlFlow<()>,
    ) -> Result<SynthesizedSpeech, SynthesisError> {
        let started = Instant::now();
        error::check_sampling(&options.sampling)?;
        let pieces::Pieces { pieces, skipped, left_out } =
            pieces::read(text, options.language, options.text, &self.front_end)?;
        for piece in &pieces {
            self.language_number(piece.language)?;
        }
        let reference = self.reference(speaker, &pieces)?;
        let mut speech = SynthesizedSpeech { skipped, left_out, ..SynthesizedSpeech::default() };
        speech.time.text = started.elapsed();
        for piece in &pieces {
            if observe(&speech, pieces.len()).is_break() {
                return Ok(speech);
            }
            self.append_piece(piece, &reference, options, &mut speech)?;
        }
        let _ = observe(&speech, pieces.len());
        Ok(speech)
    }

    /// Converts a text to symbols in the same way as in training.
    pub fn read(&self, text: &str, language: Option<Language>) -> Result<ProcessedText, TextError> {
        self.front_end.read(text, language)
    }

    /// The speaker embedding of a reference.
    pub fn speaker_embedding(&self, reference: &Reference) -> Result<Vec<f32>, SynthesisError> {
        let embed = || self.mel_synthesizer().speaker_embedding(reference);
        Ok(guarded("computing a speaker embedding", embed)?)
    }

    /// The samples of mel frames: natural logarithms, `[frames, bands]`.
    pub fn vocode(&mut self, mel: &[f32]) -> Result<Vec<f32>, SynthesisError> {
        Ok(self.vocoder.synthesize(mel)?)
    }

    /// The part from symbols to mel frames.
    pub fn mel_synthesizer(&self) -> MelSynthesizer<'_> {
        let TrainedVoice { document, voice, .. } = &self.trained;
        MelSynthesizer { voice, config: &document.config, device: &self.device }
    }

    /// The normalised frames of symbols in a language.
    pub fn synthesize_mel(
        &self,
        symbols: &[i32],
        language: Language,
        reference: &Reference,
        sampling: &SamplingOptions,
    ) -> Result<SynthesizedMel, SynthesisError> {
        error::check_sampling(sampling)?;
        let number = self.language_number(language)?;
        Ok(guarded("synthesizing speech", || {
            self.mel_synthesizer().synthesize(symbols, number, reference, None, sampling)
        })?)
    }

    /// Appends a pause and a sentence.
    fn append_piece(
        &mut self,
        piece: &Piece,
        reference: &Reference,
        options: &SpeechOptions,
        speech: &mut SynthesizedSpeech,
    ) -> Result<(), SynthesisError> {
        let started = Instant::now();
        let mut sentence =
            self.synthesize_mel(&piece.symbols, piece.language, reference, &options.sampling)?;
        let document = &self.trained.document;
        document.restore(&mut sentence.mel, reference);
        speech.time.voice += started.elapsed();
        let started = Instant::now();
        let mut samples = self.vocoder.synthesize(&sentence.mel)?;
        speech.time.vocoder += started.elapsed();
        fade(&mut samples);
        let (bands, hop) = (document.mel.bands, document.mel.hop.0);
        if !speech.sentences.is_empty() {
            let pause = Seconds(options.pause.0.max(0.0) * piece.pause_before());
            let frames = document.mel.rate.samples(pause).0 / hop;
            let silence = document.mel.floor.ln();
            speech.mel.resize(speech.mel.len() + frames * bands, silence);
        }
        let start = speech.mel.len() / bands;
        speech.mel.extend_from_slice(&sentence.mel);
        speech.samples.resize(start * hop, 0.0);
        speech.samples.extend_from_slice(&samples);
        speech.samples.resize(speech.mel.len() / bands * hop, 0.0);
        speech.sentences.push(SynthesizedSentence {
            text: piece.text.clone(),
            language: piece.language,
            symbols: piece.symbols.len(),
            start,
            durations: sentence.durations,
        });
        Ok(())
    }

    /// The reference frames. Chosen once: a text has one speaker.
    fn reference(
        &self,
        speaker: &SpeakerChoice,
        pieces: &[Piece],
    ) -> Result<Reference, SynthesisError> {
        let known = &self.trained.document.speakers;
        let number = match speaker {
            SpeakerChoice::Reference(reference) => return Ok(reference.clone()),
            SpeakerChoice::Known(name) => {
                let same = |known: &crate::trained_voice::KnownSpeaker| known.name == *name;
                let missing = || SynthesisError::unknown_speaker(name, known);
                Some(known.iter().position(same).ok_or_else(missing)?)
            }
            SpeakerChoice::AnyKnown => {
                let tag = pieces.first().map(|piece| piece.language.tag());
                let fits = known.iter().position(|known| Some(known.language.as_str()) == tag);
                fits.or((!known.is_empty()).then_some(0))
            }
        };
        Ok(number.map_or(Reference::default(), |number| self.trained.reference(number)))
    }

    /// The index of a language in the model.
    pub fn language_number(&self, language: Language) -> Result<i32, SynthesisError> {
        let known = &self.trained.document.languages;
        let number = known.iter().position(|tag| tag == language.tag());
        let missing = || SynthesisError::Language { language, known: known.clone() };
        number.map(|number| number as i32).ok_or_else(missing)
    }
}

/// Fades both ends in and out.
fn fade(samples: &mut [f32]) {
    let length = FADE.min(samples.len() / 2);
    for index in 0..length {
        let level = (index as f32 + 0.5) / length as f32;
        let last = samples.len() - 1 - index;
        samples[index] *= level;
        samples[last] *= level;
    }
}

#[cfg(test)]
mod tests;
