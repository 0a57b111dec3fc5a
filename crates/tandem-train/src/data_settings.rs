//! Settings that change the training data. Settings that only change the speed (workers, depth) are
//! not here, since they must not invalidate a cache.
//!
//! In: the configuration. Out: [`DataSettings`] and its fingerprint. Next: [`mod@crate::prepare`].

use crate::TrainError;
use serde::{Deserialize, Serialize};
use tandem_audio::mel::MelConfig;
use tandem_audio::{AUDIO_VERSION, AudioConfig};
use tandem_data::batch::BatchConfig;
use tandem_data::corpus::{CORPUS_VERSION, CorpusConfig};
use tandem_disk::Fingerprint;
use tandem_text::{FrontEnd, TextConfig};

/// Incremented when the rules of [`crate::prepare::row`] or the layout of cache entries change.
const PREPARE_VERSION: u32 = 2;

/// How manifests, texts and recordings are processed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DataSettings {
    pub corpus: CorpusConfig,
    pub text: TextConfig,
    pub mel: MelConfig,
    pub audio: AudioConfig,
    /// Longest recording in mel frames; longer rows are rejected.
    pub max_mel_frames: usize,
}

impl Default for DataSettings {
    fn default() -> Self {
        Self {
            corpus: CorpusConfig::default(),
            text: TextConfig::default(),
            mel: MelConfig::SPEECH_22K,
            audio: AudioConfig::default(),
            max_mel_frames: BatchConfig::default().max_mel_frames,
        }
    }
}

impl DataSettings {
    /// Identifies the cache of these settings: one directory per value.
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
