//! Everything that changes what the model sees of a corpus. What only changes how fast it gets
//! there (workers, depth) is not here, since it must not make a cache stale.

use crate::TrainError;
use serde::{Deserialize, Serialize};
use tandem_data::audio::mel::MelConfig;
use tandem_data::audio::{AUDIO_VERSION, AudioLimits};
use tandem_data::cache::Fingerprint;
use tandem_data::corpus::{CORPUS_VERSION, CorpusConfig};
use tandem_data::text::{FrontEnd, TextConfig};

/// Changes when the rules of [`crate::prepare::row`] or the layout of cache entries do.
const PREPARE_VERSION: u32 = 1;

/// How a corpus is read, spoken and heard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DataSettings {
    /// How manifests are read.
    pub corpus: CorpusConfig,
    /// How text becomes symbols.
    pub text: TextConfig,
    /// How sound becomes mel frames.
    pub mel: MelConfig,
    /// What a recording may be.
    pub audio: AudioLimits,
    /// Longest recording in mel frames; longer rows are listed and left out.
    pub max_mel_frames: usize,
}

impl Default for DataSettings {
    fn default() -> Self {
        Self {
            corpus: CorpusConfig::default(),
            text: TextConfig::default(),
            mel: MelConfig::SPEECH_22K,
            audio: AudioLimits::default(),
            max_mel_frames: 800,
        }
    }
}

impl DataSettings {
    /// Which cache belongs to these settings: one directory per value.
    pub fn fingerprint(&self, front_end: &FrontEnd) -> Result<Fingerprint, TrainError> {
        let json = |value: serde_json::Result<String>| value.map_err(TrainError::Settings);
        let versions = format!("{PREPARE_VERSION} {CORPUS_VERSION} {AUDIO_VERSION}");
        Ok(Fingerprint::of_parts(&[
            versions.as_bytes(),
            json(serde_json::to_string(&self.corpus))?.as_bytes(),
            json(serde_json::to_string(&self.audio))?.as_bytes(),
            &self.max_mel_frames.to_le_bytes(),
            &front_end.fingerprint(),
            self.mel.fingerprint().as_bytes(),
        ]))
    }
}
