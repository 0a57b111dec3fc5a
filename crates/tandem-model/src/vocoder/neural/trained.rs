//! A neural vocoder in a checkpoint: its configuration, mel settings and weights.
//!
//! In and out: the parts of a checkpoint that synthesis needs. A vocoder that belongs to a voice is a checkpoint of its
//! own in the directory [`ATTACHED`] of the voice's run, so that every checkpoint of the run uses it, also later ones.
//! Next: [`super::NeuralVocoder`].

use super::NeuralVocoder;
use super::config::{VocoderConfig, VocoderSize};
use super::network::VocoderNetwork;
use crate::checkpoint::{
    CheckpointError, Checkpoints, Contents, Keep, MANIFEST, Mark, Parts, Saved, find,
};
use crate::mel_scale::MelScale;
use crate::trained_voice::{EMA, VOICE, host_values};
use crate::vocoder::VocoderError;
use crate::weights::{WeightsError, with_named};
use burn::tensor::Device;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use tandem_audio::mel::MelConfig;
use tandem_units::{Hint, Seed};

/// Raised when vocoders of older checkpoints cannot be used any more.
pub const VOCODER_VERSION: u32 = 2;
/// The document that describes a vocoder.
pub const VOCODER: &str = "vocoder";
/// The directory of a voice's run with the vocoder that belongs to it.
pub const ATTACHED: &str = "vocoder";

/// Everything about a vocoder except its weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VocoderDocument {
    /// [`VOCODER_VERSION`].
    pub version: u32,
    pub size: VocoderSize,
    pub config: VocoderConfig,
    pub scale: MelScale,
    pub mel: MelConfig,
}

/// Why a vocoder cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum VocoderFileError {
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error("the checkpoint `{}` has no vocoder", path.display())]
    NoVocoder { path: PathBuf },
    #[error("the weights in `{}` do not match the vocoder's configuration", path.display())]
    Weights {
        path: PathBuf,
        #[source]
        source: WeightsError,
    },
    #[error(
        "the vocoder in `{}` has format version {found}, this program reads version {VOCODER_VERSION}",
        path.display()
    )]
    Version { path: PathBuf, found: u64 },
}

impl Hint for VocoderFileError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Checkpoint(error) => return error.hint(),
            Self::Weights { source, .. } => return source.hint(),
            Self::NoVocoder { .. } => {
                "name the directory of a `tandem train-vocoder` run, or `griffin-lim`".into()
            }
            Self::Version { .. } => {
                "use the version of tandem that trained it, or train it again".into()
            }
        })
    }
}

/// A vocoder that was read, and where from.
#[derive(Debug)]
pub struct TrainedVocoder {
    pub vocoder: NeuralVocoder,
    /// Optimizer steps it was trained for.
    pub step: u64,
    /// The checkpoint.
    pub path: PathBuf,
}

impl TrainedVocoder {
    /// Reads the vocoder of a checkpoint, of the best one of a run directory, or of a voice that has one.
    pub fn read(path: &Path) -> Result<TrainedVocoder, VocoderError> {
        let attached = path.join(ATTACHED);
        let place = if attached.is_dir() { attached.as_path() } else { path };
        let (contents, path) = read_contents(place)?;
        let document = read_document(&contents, &path)?;
        let device = Device::flex();
        let network = VocoderNetwork::new(&document.config, Seed(0), &device);
        let set = contents.tensors.get(EMA);
        let named = |name: &str| set.and_then(|set| host_values(set, name));
        let network = with_named(network, named, &device)
            .map_err(|source| VocoderFileError::Weights { path: path.clone(), source })?;
        let vocoder = NeuralVocoder::new(document, network)?;
        Ok(TrainedVocoder { vocoder, step: contents.step, path })
    }
}

fn read_contents(place: &Path) -> Result<(Contents, PathBuf), VocoderFileError> {
    let loaded = find(place, Parts::Only(&[EMA]))?;
    Ok((loaded.contents, loaded.path))
}

/// The document of a vocoder, if this program can use it.
pub fn read_document(
    contents: &Contents,
    path: &Path,
) -> Result<VocoderDocument, VocoderFileError> {
    let Some(document) = contents.documents.get(VOCODER) else {
        return Err(VocoderFileError::NoVocoder { path: path.into() });
    };
    // The version is checked first: another one may have other fields.
    let found = document.get("version").and_then(serde_json::Value::as_u64);
    if let Some(found) = found.filter(|found| *found != u64::from(VOCODER_VERSION)) {
        return Err(VocoderFileError::Version { path: path.into(), found });
    }
    Ok(contents.document(VOCODER)?)
}

/// The vocoder that belongs to a voice, by the path of the voice's run or of one of its checkpoints.
pub fn attached_to(voice: &Path) -> Option<PathBuf> {
    Some(run_of(voice).join(ATTACHED)).filter(|place| place.is_dir())
}

/// The run directory of a checkpoint; a run directory is its own.
fn run_of(voice: &Path) -> &Path {
    match voice.join(MANIFEST).exists() {
        true => voice.parent().unwrap_or(voice),
        false => voice,
    }
}

/// What [`attach`] did.
#[derive(Debug)]
pub struct AttachedVocoder {
    pub saved: Saved,
    /// The checkpoint that was copied.
    pub from: PathBuf,
    pub document: VocoderDocument,
}

/// Copies a vocoder, without the state of its training, into the run of a voice. A vocoder that is there already is
/// replaced, after the new one is complete on disk.
pub fn attach(voice: &Path, vocoder: &Path) -> Result<AttachedVocoder, VocoderError> {
    let voice = find(voice, Parts::Only(&[])).map_err(VocoderFileError::from)?;
    let settings = voice.contents.documents.get(VOICE).and_then(|voice| voice.get("mel"));
    let settings: Option<MelConfig> =
        settings.and_then(|mel| serde_json::from_value(mel.clone()).ok());
    let Some(settings) = settings else {
        return Err(VocoderError::NotAVoice { path: voice.path });
    };
    attach_to_run(run_of(&voice.path), &settings, vocoder)
}

/// The same for a run directory that has no checkpoint yet. `mel`: the mel settings of its voice.
pub fn attach_to_run(
    run: &Path,
    mel: &MelConfig,
    vocoder: &Path,
) -> Result<AttachedVocoder, VocoderError> {
    let (mut contents, from) = read_contents(vocoder)?;
    let document = read_document(&contents, &from)?;
    if document.mel != *mel {
        return Err(VocoderError::OtherMel { path: from });
    }
    // Reads it as synthesis will, so that a vocoder that cannot be used is not attached.
    TrainedVocoder::read(&from)?;
    contents.documents.retain(|name, _| name == VOCODER);
    let place = run.join(ATTACHED);
    let saved = Checkpoints::open(&place, Keep { last: 1 })
        .and_then(|mut checkpoints| checkpoints.save(&contents, Mark::Best { score: 0.0 }))
        .map_err(VocoderFileError::from)?;
    Ok(AttachedVocoder { saved, from, document })
}
