//! Measures time and quality of Griffin-Lim: `cargo run --release -p tandem-model --example
//! griffin_lim [CLIP...]`. Without clips, some of the demo corpus. One thread.

#![allow(clippy::print_stdout)]

use std::path::{Path, PathBuf};
use std::time::Instant;
use tandem_audio::mel::{Mel, MelConfig, MelExtractor};
use tandem_audio::{AudioConfig, Decoder, Sound};
use tandem_model::metrics::frames::{MelFrames, mel_error};
use tandem_model::vocoder::Vocoder;
use tandem_model::vocoder::griffin_lim::{GriffinLim, GriffinLimConfig};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let clips = clips()?;
    let seconds: f64 = clips.iter().map(|(_, seconds)| seconds).sum();
    println!("{} clips, {seconds:.1} s of sound", clips.len());
    println!("rounds  momentum  refits  real-time factor  mean log-mel error");
    let speech = GriffinLimConfig::SPEECH;
    for iterations in [8, 16, 32, 60] {
        measure(&clips, seconds, GriffinLimConfig { iterations, ..speech.clone() })?;
    }
    for refits in [0, 1, 4] {
        measure(&clips, seconds, GriffinLimConfig { refits, ..speech.clone() })?;
    }
    for momentum in [0.0, 0.8] {
        measure(&clips, seconds, GriffinLimConfig { momentum, ..speech.clone() })?;
    }
    Ok(())
}

/// Mel frames of each clip, and its length in seconds.
fn clips() -> Result<Vec<(Mel, f64)>, Box<dyn std::error::Error>> {
    let named: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tandem/demo-corpus/wavs");
    let demo = ["en/en_emma_001", "en/en_henry_003", "en/en_jack_002"]
        .into_iter()
        .chain(["fa/fa_arash_002", "fa/fa_darius_003", "fa/fa_mina_001"])
        .map(|name| corpus.join(name).with_extension("flac"));
    let paths = if named.is_empty() { demo.collect() } else { named };
    let config = MelConfig::SPEECH_22K;
    let mut decoder = Decoder::new(config.rate, AudioConfig::default());
    let mut extractor = MelExtractor::new(config.clone())?;
    let mut read = |path: &PathBuf| -> Result<(Mel, f64), Box<dyn std::error::Error>> {
        let sound = std::fs::read(path)?;
        let sound = decoder.decode(&sound, path.extension().and_then(|ending| ending.to_str()))?;
        Ok((extractor.extract(sound)?, config.rate.seconds(sound.len()).0))
    };
    paths.iter().map(&mut read).collect()
}

fn measure(
    clips: &[(Mel, f64)],
    seconds: f64,
    config: GriffinLimConfig,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut vocoder = GriffinLim::new(&MelConfig::SPEECH_22K, config.clone())?;
    let mut extractor = MelExtractor::new(MelConfig::SPEECH_22K)?;
    let (mut best, mut error) = (f64::INFINITY, 0.0);
    // The best of three, since other processes may use this machine.
    for _ in 0..3 {
        let (mut spent, mut sum) = (0.0, 0.0);
        for (mel, _) in clips {
            let start = Instant::now();
            let sound = vocoder.synthesize(mel.values())?;
            spent += start.elapsed().as_secs_f64();
            let again = extractor.extract(Sound::F32(&sound))?;
            sum += mel_error(MelFrames::of(&again)?, MelFrames::of(mel)?)?;
        }
        (best, error) = (best.min(spent / seconds), sum / clips.len() as f64);
    }
    let GriffinLimConfig { iterations, momentum, refits } = config;
    println!("{iterations:>6}  {momentum:>8}  {refits:>6}  {best:>16.4}  {error:>18.4}");
    Ok(())
}
