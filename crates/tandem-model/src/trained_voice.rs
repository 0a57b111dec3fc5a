//! A voice in a checkpoint: its configuration, text and mel settings, and weights.
//!
//! In and out: the parts of a checkpoint that synthesis needs. Synthesis and evaluation read
//! nothing but the checkpoint. Next: [`crate::synthesis::mel`].

use crate::checkpoint::{CheckpointError, Contents, Parts, TensorSet, Values, find_usable};
use crate::host_tensor::host_floats_of_all;
use crate::mel_scale::MelScale;
use crate::network::size::{ModelSize, VoiceConfig};
use crate::network::voice::Voice;
use crate::spectral_detail::match_detail;
use crate::synthesis::mel::Reference;
use crate::weights::{Weight, WeightsError, with_named};
use burn::tensor::Device;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use tandem_audio::AudioConfig;
use tandem_audio::mel::MelConfig;
use tandem_text::{FrontEnd, Pronunciation, SymbolTable, TextConfig, TextError};
use tandem_units::{Hint, Seed};

/// Raised when the document or the weights of a voice mean something else than before.
///
/// 2: weights have standard names, such as `encoder.*` and `qkv`; version 1 had `reader.*` and `attend`, and is refused.
/// 3: `auto` reads Persian in phonemes. Version 2 is read; its `auto` is [`Pronunciation::BuiltInEnglish`].
/// 4 to 6: text versions 5 to 7 read more of a text as it is spoken. A voice that learned another reading is refused, except as
///    the start of fine-tuning, which teaches the new one.
pub const VOICE_VERSION: u32 = 6;
const OLDEST_VERSION: u32 = 2;

/// The tensor set with the moving averages of the weights, which synthesis uses.
pub const EMA: &str = "ema";
/// The tensor set with the weights as they are trained.
pub const WEIGHTS: &str = "weights";
/// The tensor set with reference segments of the corpus's speakers.
pub const SPEAKERS: &str = "speakers";
/// The document that describes the voice.
pub const VOICE: &str = "voice";

/// Everything about a voice except its weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VoiceDocument {
    /// [`VOICE_VERSION`].
    pub version: u32,
    pub size: ModelSize,
    pub config: VoiceConfig,
    pub scale: MelScale,
    pub mel: MelConfig,
    /// How its recordings were trimmed and levelled: references are prepared in the same way.
    #[serde(default, skip_serializing_if = "AudioConfig::is_default")]
    pub audio: AudioConfig,
    pub text: TextConfig,
    /// The text of the lexicon it was trained with, so that synthesis does not need the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lexicon: Option<String>,
    /// The version of the symbol table.
    pub symbols: u32,
    /// Language tags, in the order of the model's embedding.
    pub languages: Vec<String>,
    /// The speakers of its corpus with a reference segment in [`SPEAKERS`].
    pub speakers: Vec<KnownSpeaker>,
}

/// A speaker of the corpus.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownSpeaker {
    /// The name in the corpus; may be empty.
    pub name: String,
    /// The language tag of the reference segment.
    pub language: String,
    /// Mean level of its recordings in dB, as [`crate::metrics::level`] measures it; none in checkpoints of older
    /// versions, whose speakers all have the level of the corpus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<f32>,
}

/// A voice that is ready for synthesis.
#[derive(Debug)]
pub struct TrainedVoice {
    pub document: VoiceDocument,
    /// Without gradients.
    pub voice: Voice,
    /// A reference segment of each known speaker, normalised: `[frames, bands]`.
    pub speakers: Vec<Vec<f32>>,
    /// Optimizer steps it was trained for.
    pub step: u64,
    /// The checkpoint it was read from.
    pub path: PathBuf,
    /// Damaged checkpoints, each in a sentence, that this one stands for: users are to be warned.
    pub damaged: Vec<String>,
}

/// Why a voice cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum VoiceError {
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error("the weights in `{}` do not match the voice's configuration", path.display())]
    Weights {
        path: PathBuf,
        #[source]
        source: WeightsError,
    },
    #[error(
        "the voice in `{}` has format version {found}, this program reads versions {OLDEST_VERSION} to {VOICE_VERSION}",
        path.display()
    )]
    Version { path: PathBuf, found: u32 },
    /// It learned what an older front end made of texts.
    #[error("the voice in `{}` was trained with an older reading of texts (voice version {found}, now {VOICE_VERSION})", path.display())]
    Reading { path: PathBuf, found: u32 },
    #[error("the checkpoint `{}` has no voice", path.display())]
    NoVoice { path: PathBuf },
    /// Its symbol ids mean other symbols.
    #[error(
        "the voice in `{}` uses symbol table {found}, this program has symbol table {expected}",
        path.display()
    )]
    Symbols { path: PathBuf, found: u32, expected: u32 },
}

impl Hint for VoiceError {
    fn hint(&self) -> Option<String> {
        match self {
            VoiceError::Checkpoint(error) => error.hint(),
            VoiceError::Weights { source, .. } => source.hint(),
            VoiceError::NoVoice { .. } => {
                Some("name the directory of a `tandem train` run, or a checkpoint in one".into())
            }
            VoiceError::Reading { path, .. } => Some(format!(
                "use the version of tandem that trained it, or teach it the new reading: `tandem train --from {}`",
                path.display()
            )),
            VoiceError::Version { .. } | VoiceError::Symbols { .. } => Some(
                "use the version of tandem that trained it, or train it again from the corpus"
                    .into(),
            ),
        }
    }
}

impl TrainedVoice {
    /// Reads the voice of a checkpoint, or of the best one of a run directory.
    pub fn read(path: &Path, device: &Device) -> Result<TrainedVoice, VoiceError> {
        let loaded = find_usable(path, Parts::Only(&[EMA, SPEAKERS]))?;
        let damaged = loaded.passed_over.iter().map(ToString::to_string).collect();
        let mut contents = loaded.contents;
        let document = read_document(&contents, &loaded.path)?;
        let set = contents.take_tensors(EMA)?;
        let voice = Voice::new(&document.config, Seed(0), device);
        let voice = with_named(voice, |name| host_values(&set, name), device)
            .map_err(|source| VoiceError::Weights { path: loaded.path.clone(), source })?;
        let set = contents.take_tensors(SPEAKERS)?;
        let segment = |number: usize| {
            host_values(&set, &number.to_string()).map_or(Vec::new(), |(_, values)| values)
        };
        let speakers = (0..document.speakers.len()).map(segment).collect();
        let (step, path) = (contents.step, loaded.path);
        Ok(TrainedVoice { document, voice, speakers, step, path, damaged })
    }

    /// The reference of a known speaker, by its place in the document.
    pub fn reference(&self, number: usize) -> Reference {
        let mel = self.speakers.get(number).cloned().unwrap_or_default();
        let level = self.document.speakers.get(number).and_then(|known| known.level);
        Reference { mel, level }
    }
}

impl VoiceDocument {
    /// Normalised frames that were synthesized with this reference, as natural logarithms with the detail and the level
    /// of the speaker; in place.
    pub fn restore(&self, mel: &mut [f32], reference: &Reference) {
        match_detail(mel, &reference.mel, self.mel.bands);
        self.scale.restore(mel);
        self.scale.match_level(mel, self.mel.bands, reference.level);
    }

    /// The text front end of the training run. Needs no file except the checkpoint, unless the
    /// checkpoint is too old to contain the lexicon.
    pub fn front_end(&self) -> Result<FrontEnd, TextError> {
        match &self.lexicon {
            Some(lexicon) => FrontEnd::with_lexicon(&self.text, lexicon),
            None => FrontEnd::new(&self.text),
        }
    }
}

/// The document of a voice, if this program can use it.
pub fn read_document(contents: &Contents, path: &Path) -> Result<VoiceDocument, VoiceError> {
    let document = read_older_document(contents, path)?;
    let saved = contents.documents.get(VOICE).and_then(|voice| voice.get("version")?.as_u64());
    if let Some(found) = saved.filter(|saved| *saved < u64::from(VOICE_VERSION)) {
        return Err(VoiceError::Reading { path: path.into(), found: found as u32 });
    }
    let expected = SymbolTable::standard().version();
    if document.symbols != expected {
        return Err(VoiceError::Symbols { path: path.into(), found: document.symbols, expected });
    }
    Ok(document)
}

/// The same for a voice whose symbol table or reading of texts may be older: its table has the first rows of the table of now.
/// Such a voice can be fine-tuned, but not used as it is.
pub fn read_older_document(contents: &Contents, path: &Path) -> Result<VoiceDocument, VoiceError> {
    let Some(voice) = contents.documents.get(VOICE) else {
        return Err(VoiceError::NoVoice { path: path.into() });
    };
    // The version is checked first: another one may have other fields.
    if let Some(found) = voice.get("version").and_then(serde_json::Value::as_u64)
        && !(u64::from(OLDEST_VERSION)..=u64::from(VOICE_VERSION)).contains(&found)
    {
        return Err(VoiceError::Version { path: path.into(), found: found as u32 });
    }
    let mut document: VoiceDocument = contents.document(VOICE)?;
    if document.version < 3 && document.text.pronunciation == Pronunciation::Auto {
        document.text.pronunciation = Pronunciation::BuiltInEnglish;
    }
    document.version = VOICE_VERSION;
    let expected = SymbolTable::standard().version();
    if document.symbols > expected {
        return Err(VoiceError::Symbols { path: path.into(), found: document.symbols, expected });
    }
    Ok(document)
}

/// Weights as a tensor set of a checkpoint. Waits for the device.
pub fn tensor_set(weights: &[Weight]) -> Result<TensorSet, CheckpointError> {
    let mut set = TensorSet::new();
    let all = weights.iter().map(|weight| weight.values.clone()).collect();
    for (weight, values) in weights.iter().zip(host_floats_of_all(all)) {
        set.insert(&weight.name, &weight.shape, Values::F32(values))?;
    }
    Ok(set)
}

/// Shape and values of a tensor of a checkpoint.
pub fn host_values(set: &TensorSet, name: &str) -> Option<(Vec<usize>, Vec<f32>)> {
    let tensor = set.get(name)?;
    match tensor.values() {
        Values::F32(values) => Some((tensor.shape().to_vec(), values.clone())),
        Values::I64(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_voice_of_an_older_version_is_refused_with_a_hint() {
        let mut contents = Contents::new(100);
        // Version 1 named the text encoder's weights `reader.*`.
        contents.add_document(VOICE, &serde_json::json!({ "version": 1, "size": "tiny" })).unwrap();
        let error = read_document(&contents, Path::new("run/step-00000100")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the voice in `run/step-00000100` has format version 1, this program reads versions 2 to 6"
        );
        assert!(error.hint().unwrap().contains("the version of tandem that trained it"));
    }

    #[test]
    fn a_voice_that_read_persian_in_characters_still_does() {
        let read = |version: u32, pronunciation| {
            let table = SymbolTable::standard();
            let document = VoiceDocument {
                version,
                size: ModelSize::Tiny,
                config: VoiceConfig::of(ModelSize::Tiny, table.len(), 2, 80),
                scale: MelScale { mean: -5.0, deviation: 2.0, level: None },
                mel: MelConfig::SPEECH_22K,
                audio: AudioConfig::default(),
                text: TextConfig { pronunciation, ..TextConfig::default() },
                lexicon: None,
                symbols: table.version(),
                languages: vec!["en".into(), "fa".into()],
                speakers: vec![],
            };
            let mut contents = Contents::new(100);
            contents.add_document(VOICE, &document).unwrap();
            let usable = read_document(&contents, Path::new("run"));
            match usable {
                Ok(_) => assert_eq!(version, VOICE_VERSION),
                Err(error) => {
                    assert!(
                        matches!(&error, VoiceError::Reading { found, .. } if *found == version),
                        "{error}"
                    );
                    assert!(error.hint().unwrap().contains("train --from run"), "{error}");
                    assert!(version < VOICE_VERSION);
                }
            }
            let read = read_older_document(&contents, Path::new("run")).unwrap();
            assert_eq!(read.version, VOICE_VERSION);
            read.text.pronunciation
        };
        assert_eq!(read(2, Pronunciation::Auto), Pronunciation::BuiltInEnglish);
        assert_eq!(read(2, Pronunciation::Espeak), Pronunciation::Espeak);
        assert_eq!(read(3, Pronunciation::Auto), Pronunciation::Auto);
        assert_eq!(read(4, Pronunciation::Auto), Pronunciation::Auto);
        assert_eq!(read(5, Pronunciation::Auto), Pronunciation::Auto);
        assert_eq!(read(6, Pronunciation::Auto), Pronunciation::Auto);
    }

    #[test]
    fn another_reading_of_texts_is_another_version_of_the_voice() {
        assert_eq!((VOICE_VERSION, tandem_text::TEXT_VERSION), (6, 7), "raise both");
    }
}
