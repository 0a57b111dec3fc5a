//! A run with one checkpoint of a small untrained voice: English and Persian, the speaker `emma`.

use super::TestDir;
use tandem_audio::AudioConfig;
use tandem_audio::mel::MelConfig;
use tandem_model::Device;
use tandem_model::checkpoint::{Checkpoints, Contents, Keep, Mark, TensorSet, Values};
use tandem_model::mel_scale::MelScale;
use tandem_model::network::size::{ModelSize, VoiceConfig};
use tandem_model::network::voice::Voice;
use tandem_model::trained_voice::{
    EMA, KnownSpeaker, SPEAKERS, VOICE, VOICE_VERSION, VoiceDocument, tensor_set,
};
use tandem_model::weights::weights_of;
use tandem_text::{SymbolTable, TextConfig};
use tandem_units::Seed;

/// A run directory with one checkpoint.
pub fn dir_with_voice() -> TestDir {
    let dir = TestDir::new();
    let table = SymbolTable::standard();
    let config = VoiceConfig {
        text_width: 16,
        text_blocks: 1,
        decoder_width: 16,
        decoder_blocks: 1,
        head_width: 8,
        voice_width: 8,
        ..VoiceConfig::of(ModelSize::Tiny, table.len(), 2, 80)
    };
    let voice = Voice::new(&config, Seed(1), &Device::flex());
    let document = VoiceDocument {
        version: VOICE_VERSION,
        size: ModelSize::Tiny,
        config,
        scale: MelScale { mean: -5.0, deviation: 2.0, level: None },
        mel: MelConfig::SPEECH_22K,
        audio: AudioConfig::default(),
        text: TextConfig::default(),
        lexicon: None,
        symbols: table.version(),
        languages: vec!["en".into(), "fa".into()],
        speakers: vec![KnownSpeaker { name: "emma".into(), language: "en".into(), level: None }],
    };
    let mut contents = Contents::new(40);
    contents.add_document(VOICE, &document).expect("a document");
    contents.tensors.insert(EMA.into(), tensor_set(&weights_of(&voice)).expect("weights"));
    let mut speakers = TensorSet::new();
    speakers.insert("0", &[30, 80], Values::F32(vec![0.1; 2400])).expect("a speaker");
    contents.tensors.insert(SPEAKERS.into(), speakers);
    let mut checkpoints = Checkpoints::open(&dir.path("run"), Keep { last: 1 }).expect("a run");
    checkpoints.save(&contents, Mark::Last).expect("a checkpoint");
    dir
}
