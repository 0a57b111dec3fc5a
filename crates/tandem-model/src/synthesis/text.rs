//! A trained voice that reads texts aloud, however long they are.
//!
//! In: text, and whose voice to use. Out: [`Narration`]: sound, mel frames, what was said when.
//! Reads nothing but the checkpoint, which holds the lexicon too, and a reference recording. Writes no
//! file, starts no thread. Sentences are spoken one by one, so that memory does not grow with the
//! text; the same text and seed give the same sound.

mod error;
mod pieces;

pub use error::SynthesisError;

use crate::synthesis::mel::{Reference, SamplingOptions, Speaker, Spoken};
use crate::trained_voice::TrainedVoice;
use crate::vocoder::Vocoder;
use crate::vocoder::griffin_lim::{GriffinLim, GriffinLimConfig};
use burn::tensor::Device;
use pieces::Piece;
use std::path::Path;
use std::time::{Duration, Instant};
use tandem_data::audio::mel::MelExtractor;
use tandem_data::audio::{AudioLimits, Decoder, FileReader};
use tandem_data::text::{FrontEnd, Language, ProcessedText, TextError};
use tandem_device::backend::guarded;
use tandem_units::Seconds;

/// The shortest reference that tells one voice from another.
const SHORTEST_REFERENCE: Seconds = Seconds(0.8);
/// Samples over which a sentence's sound comes and goes, so that none begins with a click.
const FADE: usize = 96;

/// Whose voice it is.
#[derive(Clone, Debug)]
pub enum Whose {
    /// The first speaker of the corpus with the language of the text; nobody's where none is kept.
    AnyKnown,
    /// A speaker of the corpus, by name.
    Known(String),
    /// Whoever speaks here.
    Reference(Reference),
}

/// How a text is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Telling {
    /// How each sentence is spoken.
    pub sampling: SamplingOptions,
    /// The language; none: found for each sentence.
    pub language: Option<Language>,
    /// Silence between two sentences.
    pub pause: Seconds,
}

impl Default for Telling {
    fn default() -> Telling {
        Telling { sampling: SamplingOptions::default(), language: None, pause: Seconds(0.25) }
    }
}

/// What was told.
#[derive(Clone, Debug, Default)]
pub struct Narration {
    /// Sound at the rate of the voice's mel settings; one hop for each frame.
    pub samples: Vec<f32>,
    /// Natural logarithms, pauses included: `[frames, bands]`.
    pub mel: Vec<f32>,
    /// The sentences in order.
    pub sentences: Vec<Told>,
    /// Parts of the text that have nothing to say, such as a line of stars.
    pub unsaid: Vec<String>,
    /// What it took.
    pub spent: Spent,
}

/// One sentence.
#[derive(Clone, Debug)]
pub struct Told {
    /// As it stands in the text.
    pub text: String,
    /// The language it was read in.
    pub language: Language,
    /// Symbols that were spoken.
    pub symbols: usize,
    /// Its first frame.
    pub start: usize,
    /// Frames of each symbol.
    pub durations: Vec<u32>,
}

/// Time that each part took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// Text to symbols.
    pub reading: Duration,
    /// Symbols to mel frames.
    pub voice: Duration,
    /// Mel frames to sound.
    pub vocoder: Duration,
}

impl Spent {
    /// All together.
    pub fn total(&self) -> Duration {
        self.reading + self.voice + self.vocoder
    }
}

/// A voice that tells texts. One per thread.
pub struct Synthesizer {
    trained: TrainedVoice,
    front_end: FrontEnd,
    vocoder: Box<dyn Vocoder>,
    device: Device,
}

impl Synthesizer {
    /// Reads the voice of a checkpoint, or of the best one of a run directory.
    pub fn open(
        checkpoint: &Path,
        device: &Device,
        vocoder: GriffinLimConfig,
    ) -> Result<Synthesizer, SynthesisError> {
        let trained = guarded("reading the voice", || TrainedVoice::read(checkpoint, device))??;
        Synthesizer::new(trained, device, vocoder)
    }

    /// With a voice that was read before.
    pub fn new(
        trained: TrainedVoice,
        device: &Device,
        vocoder: GriffinLimConfig,
    ) -> Result<Synthesizer, SynthesisError> {
        let front_end = trained.document.front_end().map_err(SynthesisError::FrontEnd)?;
        let vocoder = Box::new(GriffinLim::new(&trained.document.mel, vocoder)?);
        Ok(Synthesizer { trained, front_end, vocoder, device: device.clone() })
    }

    /// The voice.
    pub fn trained(&self) -> &TrainedVoice {
        &self.trained
    }

    /// Where it computes.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The frames of a recording of the voice to imitate.
    pub fn hear(&self, recording: &Path) -> Result<Reference, SynthesisError> {
        let document = &self.trained.document;
        let limits = AudioLimits { min_length: SHORTEST_REFERENCE, ..AudioLimits::default() };
        let failed = |source| SynthesisError::Reference { path: recording.into(), source };
        let mut file = FileReader::default();
        let bytes = file.read(recording, &limits).map_err(failed)?;
        let mut decoder = Decoder::new(document.mel.rate, limits);
        let ending = recording.extension().and_then(|ending| ending.to_str());
        let sound = decoder.decode(bytes, ending).map_err(failed)?;
        let mut extractor = MelExtractor::new(document.mel.clone())?;
        let mel = extractor.extract(sound)?;
        Ok(Reference { mel: document.scale.normalised(mel.values()) })
    }

    /// Tells a text. `watch` hears how many sentences are done, and of how many.
    pub fn tell(
        &mut self,
        text: &str,
        whose: &Whose,
        telling: &Telling,
        watch: &mut dyn FnMut(usize, usize),
    ) -> Result<Narration, SynthesisError> {
        let begun = Instant::now();
        let (pieces, unsaid) = pieces::read(text, telling.language, &self.front_end)?;
        let reference = self.reference(whose, &pieces)?;
        let mut told = Narration { unsaid, ..Narration::default() };
        told.spent.reading = begun.elapsed();
        for (number, piece) in pieces.iter().enumerate() {
            watch(number, pieces.len());
            self.tell_piece(piece, &reference, telling, &mut told)?;
        }
        watch(pieces.len(), pieces.len());
        Ok(told)
    }

    /// Reads a text the way this voice was trained.
    pub fn read(&self, text: &str, language: Option<Language>) -> Result<ProcessedText, TextError> {
        self.front_end.read(text, language)
    }

    /// The vector that stands for whoever speaks here.
    pub fn voice_vector(&self, reference: &Reference) -> Result<Vec<f32>, SynthesisError> {
        Ok(guarded("listening to a voice", || self.speaker().voice_vector(reference))?)
    }

    /// The sound of mel frames: natural logarithms, `[frames, bands]`.
    pub fn sound(&mut self, mel: &[f32]) -> Result<Vec<f32>, SynthesisError> {
        Ok(self.vocoder.speak(mel)?)
    }

    fn speaker(&self) -> Speaker<'_> {
        let TrainedVoice { document, voice, .. } = &self.trained;
        Speaker { voice, config: &document.config, device: &self.device }
    }

    /// Speaks symbols in a language: normalised frames, as the voice gives them.
    pub fn speak(
        &self,
        symbols: &[i32],
        language: Language,
        reference: &Reference,
        sampling: &SamplingOptions,
    ) -> Result<Spoken, SynthesisError> {
        error::check_manner(sampling)?;
        let number = self.language_number(language)?;
        Ok(guarded("speaking", || {
            self.speaker().speak(symbols, number, reference, None, sampling)
        })?)
    }

    /// Adds a pause and a sentence.
    fn tell_piece(
        &mut self,
        piece: &Piece,
        reference: &Reference,
        telling: &Telling,
        told: &mut Narration,
    ) -> Result<(), SynthesisError> {
        let begun = Instant::now();
        let mut spoken =
            self.speak(&piece.symbols, piece.language, reference, &telling.sampling)?;
        let document = &self.trained.document;
        document.scale.restore(&mut spoken.mel);
        told.spent.voice += begun.elapsed();
        let begun = Instant::now();
        let mut samples = self.vocoder.speak(&spoken.mel)?;
        told.spent.vocoder += begun.elapsed();
        fade(&mut samples);
        let (bands, hop) = (document.mel.bands, document.mel.hop.0);
        if !told.sentences.is_empty() {
            let pause = Seconds(telling.pause.0.max(0.0) * piece.silence_before());
            let frames = document.mel.rate.samples(pause).0 / hop;
            let silence = document.mel.floor.ln();
            told.mel.resize(told.mel.len() + frames * bands, silence);
        }
        let start = told.mel.len() / bands;
        told.mel.extend_from_slice(&spoken.mel);
        told.samples.resize(start * hop, 0.0);
        told.samples.extend_from_slice(&samples);
        told.samples.resize(told.mel.len() / bands * hop, 0.0);
        told.sentences.push(Told {
            text: piece.text.clone(),
            language: piece.language,
            symbols: piece.symbols.len(),
            start,
            durations: spoken.durations,
        });
        Ok(())
    }

    /// The frames to imitate. Chosen once: a text has one narrator.
    fn reference(&self, whose: &Whose, pieces: &[Piece]) -> Result<Reference, SynthesisError> {
        let TrainedVoice { document, speakers, .. } = &self.trained;
        let known = &document.speakers;
        let number = match whose {
            Whose::Reference(reference) => return Ok(reference.clone()),
            Whose::Known(name) => {
                let same = |known: &crate::trained_voice::KnownSpeaker| known.name == *name;
                let missing = || SynthesisError::unknown_speaker(name, known);
                Some(known.iter().position(same).ok_or_else(missing)?)
            }
            Whose::AnyKnown => {
                let tag = pieces.first().map(|piece| piece.language.tag());
                let fits = known.iter().position(|known| Some(known.language.as_str()) == tag);
                fits.or((!known.is_empty()).then_some(0))
            }
        };
        let mel = number.and_then(|number| speakers.get(number)).cloned().unwrap_or_default();
        Ok(Reference { mel })
    }

    /// The number the model knows a language by.
    pub fn language_number(&self, language: Language) -> Result<i32, SynthesisError> {
        let known = &self.trained.document.languages;
        let number = known.iter().position(|tag| tag == language.tag());
        let missing = || SynthesisError::Language { language, known: known.clone() };
        number.map(|number| number as i32).ok_or_else(missing)
    }
}

/// Both ends come from silence and go to it.
fn fade(samples: &mut [f32]) {
    let length = FADE.min(samples.len() / 2);
    for place in 0..length {
        let level = (place as f32 + 0.5) / length as f32;
        let last = samples.len() - 1 - place;
        samples[place] *= level;
        samples[last] *= level;
    }
}

#[cfg(test)]
mod tests;
