//! A small untrained voice in memory: its speech is noise, but everything around it is real.

use std::net::Ipv4Addr;
use tandem_audio::AudioConfig;
use tandem_audio::mel::MelConfig;
use tandem_http::{Hosts, Limits, Listening};
use tandem_model::Device;
use tandem_model::mel_scale::MelScale;
use tandem_model::network::size::{ModelSize, VoiceConfig};
use tandem_model::network::voice::Voice;
use tandem_model::synthesis::mel::SamplingOptions;
use tandem_model::synthesis::text::{SpeechOptions, Synthesizer};
use tandem_model::trained_voice::{KnownSpeaker, TrainedVoice, VOICE_VERSION, VoiceDocument};
use tandem_model::vocoder::VocoderChoice;
use tandem_model::vocoder::griffin_lim::GriffinLimConfig;
use tandem_page::Lang;
use tandem_serve::request::Offer;
use tandem_serve::workers::Speech;
use tandem_serve::{ServeOptions, SpeechServer, Voices};
use tandem_text::{SymbolTable, TextConfig};
use tandem_units::Seed;

/// What requests get where they name nothing else.
pub fn options() -> SpeechOptions {
    let sampling = SamplingOptions { steps: 2, ..SamplingOptions::default() };
    SpeechOptions { sampling, ..SpeechOptions::default() }
}

/// English and Persian, with the speaker `emma`.
pub fn synthesizer() -> Synthesizer {
    let (device, table) = (Device::flex(), SymbolTable::standard());
    let config = VoiceConfig {
        text_width: 16,
        text_blocks: 1,
        decoder_width: 16,
        decoder_blocks: 1,
        head_width: 8,
        voice_width: 8,
        ..VoiceConfig::of(ModelSize::Tiny, table.len(), 2, 80)
    };
    let trained = TrainedVoice {
        voice: Voice::new(&config, Seed(1), &device),
        document: VoiceDocument {
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
            speakers: vec![KnownSpeaker {
                name: "emma".into(),
                language: "en".into(),
                level: None,
            }],
        },
        speakers: vec![vec![0.1; 80 * 30]],
        step: 7,
        path: "nowhere".into(),
        damaged: Vec::new(),
    };
    let quick = GriffinLimConfig { iterations: 2, ..GriffinLimConfig::SPEECH };
    Synthesizer::new(trained, &device, &VocoderChoice::GriffinLim(quick)).expect("a voice")
}

/// A server with two workers on a free port of loopback.
pub fn serve() -> SpeechServer {
    let first = synthesizer();
    let offer = Offer {
        model: "small".into(),
        voices: Voices::of(&first.trained().document),
        defaults: options(),
        max_text: 4096,
    };
    let speech: Vec<Box<dyn Speech>> = vec![Box::new(first), Box::new(synthesizer())];
    let options = ServeOptions {
        answer_memory: tandem_units::Bytes::mib(512),
        offer,
        queue: 32,
        token: None,
        hosts: Hosts::loopback(),
        limits: Limits::API,
        lang: Lang::En,
    };
    let port = Listening::bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a port");
    SpeechServer::start(port, speech, options).expect("a server")
}
