//! A voice as it is kept: its shape, what it reads and hears, its weights.
//!
//! In and out: the parts of a checkpoint that speaking needs. Whoever speaks or judges reads
//! nothing but the checkpoint. Next: [`crate::synthesis::mel`].

use crate::checkpoint::{CheckpointError, Contents, Parts, TensorSet, Values, find};
use crate::mel_scale::MelScale;
use crate::network::size::{ModelSize, VoiceConfig};
use crate::network::voice::Voice;
use crate::weights::{Weight, WeightsError, with_named};
use burn::tensor::Device;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use tandem_data::audio::mel::MelConfig;
use tandem_data::text::{FrontEnd, TextConfig, TextError};
use tandem_units::{Hint, Seed};

/// Changes when a checkpoint of before cannot be spoken with any more.
pub const VOICE_VERSION: u32 = 1;

/// The set of running means of weights: what speaks.
pub const EMA: &str = "ema";
/// The set of weights as they are trained.
pub const WEIGHTS: &str = "weights";
/// The set of stretches of the corpus's speakers.
pub const SPEAKERS: &str = "speakers";
/// The document that describes the voice.
pub const VOICE: &str = "voice";

/// Everything about a voice but its numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VoiceDocument {
    /// [`VOICE_VERSION`].
    pub version: u32,
    /// The name of its size.
    pub size: ModelSize,
    /// Its shape.
    pub config: VoiceConfig,
    /// How its mel frames are normalised.
    pub scale: MelScale,
    /// How sound becomes mel frames.
    pub mel: MelConfig,
    /// How text becomes symbols.
    pub text: TextConfig,
    /// The text of the lexicon it was trained with, so that it speaks without the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lexicon: Option<String>,
    /// The version of the symbol table.
    pub symbols: u32,
    /// Language tags, by the number the model knows them by.
    pub languages: Vec<String>,
    /// The speakers of its corpus of whom it keeps a stretch of speech.
    pub speakers: Vec<KnownSpeaker>,
}

/// A speaker of the corpus.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownSpeaker {
    /// The name in the corpus; may be empty.
    pub name: String,
    /// The tag of the language of the stretch that is kept.
    pub language: String,
}

/// A voice that can speak.
#[derive(Debug)]
pub struct TrainedVoice {
    /// What it is.
    pub document: VoiceDocument,
    /// Its weights, without gradients.
    pub voice: Voice,
    /// A stretch of each known speaker, normalised: `[frames, bands]`.
    pub speakers: Vec<Vec<f32>>,
    /// Steps it was trained.
    pub step: u64,
    /// Where it was read.
    pub path: PathBuf,
}

/// Why a voice cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum VoiceError {
    /// The checkpoint cannot be read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Its weights do not fit its description.
    #[error("the weights in `{}` do not fit their description", path.display())]
    Weights {
        /// The checkpoint.
        path: PathBuf,
        /// What does not fit.
        #[source]
        source: WeightsError,
    },
    /// It was written by another version.
    #[error(
        "the voice in `{}` has version {found}, this program speaks version {VOICE_VERSION}",
        path.display()
    )]
    Version {
        /// The checkpoint.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// It knows another alphabet.
    #[error(
        "the voice in `{}` knows version {found} of the symbols, this program has {expected}",
        path.display()
    )]
    Symbols {
        /// The checkpoint.
        path: PathBuf,
        /// The voice's.
        found: u32,
        /// The program's.
        expected: u32,
    },
}

impl Hint for VoiceError {
    fn hint(&self) -> Option<String> {
        match self {
            VoiceError::Checkpoint(error) => error.hint(),
            VoiceError::Weights { source, .. } => source.hint(),
            VoiceError::Version { .. } | VoiceError::Symbols { .. } => {
                Some("use the version of tandem that trained it, or train it anew".into())
            }
        }
    }
}

impl TrainedVoice {
    /// Reads the voice of a checkpoint, or of the best one of a run directory.
    pub fn read(path: &Path, device: &Device) -> Result<TrainedVoice, VoiceError> {
        let loaded = find(path, Parts::Only(&[EMA, SPEAKERS]))?;
        let mut contents = loaded.contents;
        let document = read_document(&contents, &loaded.path)?;
        let set = contents.take_tensors(EMA)?;
        let voice = Voice::new(&document.config, Seed(0), device);
        let voice = with_named(voice, |name| host_values(&set, name), device)
            .map_err(|source| VoiceError::Weights { path: loaded.path.clone(), source })?;
        let set = contents.take_tensors(SPEAKERS)?;
        let stretch = |number: usize| {
            host_values(&set, &number.to_string()).map_or(Vec::new(), |(_, values)| values)
        };
        let speakers = (0..document.speakers.len()).map(stretch).collect();
        Ok(TrainedVoice { document, voice, speakers, step: contents.step, path: loaded.path })
    }
}

impl VoiceDocument {
    /// Reads texts as they were read in training. Needs no file but the checkpoint; one of before
    /// lexicons were kept in it names the file it needs.
    pub fn front_end(&self) -> Result<FrontEnd, TextError> {
        match &self.lexicon {
            Some(lexicon) => FrontEnd::with_lexicon(&self.text, lexicon),
            None => FrontEnd::new(&self.text),
        }
    }
}

/// The description of a voice, if this program can speak with it.
pub fn read_document(contents: &Contents, path: &Path) -> Result<VoiceDocument, VoiceError> {
    // Looked at before the rest: another version may have other fields.
    let version = contents.documents.get(VOICE).and_then(|voice| voice.get("version"));
    if let Some(found) = version.and_then(serde_json::Value::as_u64)
        && found != u64::from(VOICE_VERSION)
    {
        return Err(VoiceError::Version { path: path.into(), found: found as u32 });
    }
    let document: VoiceDocument = contents.document(VOICE)?;
    let expected = tandem_data::text::SymbolTable::standard().version();
    if document.symbols != expected {
        return Err(VoiceError::Symbols { path: path.into(), found: document.symbols, expected });
    }
    Ok(document)
}

/// Weights as a checkpoint keeps them. Reads the device back.
pub fn tensor_set(weights: &[Weight]) -> Result<TensorSet, CheckpointError> {
    let mut set = TensorSet::new();
    for Weight { name, shape, values } in weights {
        let numbers = values.clone().try_into_vec_as::<f32>();
        let numbers = numbers.expect("floats can be read as 32 bits");
        set.insert(name, shape, Values::F32(numbers))?;
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
