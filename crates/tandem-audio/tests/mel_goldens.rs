//! Every mel kernel against the output of librosa, computed by `xtask/generators/make_mel_goldens.py`.
//!
//! The files contain the samples as well, so that nothing depends on two implementations of sine.

use std::fs;
use std::path::PathBuf;
use tandem_audio::Sound;
use tandem_audio::mel::{MelConfig, MelExtractor, MelKernel};

/// Largest and mean difference allowed, in natural logarithm.
const LARGEST: f64 = 1e-3;
const MEAN: f64 = 1e-5;
/// Next to a pure tone most bands are rounding noise of the tone in any single-precision transform:
/// realfft has the same error (1.2e-5 for the tone).
const MEAN_OF_A_TONE: f64 = 3e-5;

#[track_caller]
fn check(name: &str) {
    check_to(name, MEAN);
}

#[track_caller]
fn check_to(name: &str, mean_allowed: f64) {
    let pcm: Vec<i16> = golden(&format!("{name}.pcm.npy"));
    let expected: Vec<f32> = golden(&format!("{name}.mel.npy"));
    let floats: Vec<f32> = pcm.iter().map(|&sample| f32::from(sample) / 32768.0).collect();
    for kernel in MelKernel::available() {
        let mut extractor = MelExtractor::with_kernel(MelConfig::SPEECH_22K, kernel).unwrap();
        for input in [Sound::I16(&pcm), Sound::F32(&floats)] {
            let found = extractor.extract(input).unwrap().into_values();
            assert_eq!(found.len(), expected.len(), "{name}");
            let apart = found.iter().zip(&expected).map(|(f, e)| f64::from((f - e).abs()));
            let largest = apart.clone().fold(0.0, |max, d| if d <= max { max } else { d });
            let mean = apart.sum::<f64>() / found.len() as f64;
            assert!(largest <= LARGEST, "{name}, {kernel}: {largest:.2e} apart");
            assert!(mean <= mean_allowed, "{name}, {kernel}: {mean:.2e} apart on average");
        }
    }
}

fn golden<T: npyz::Deserialize>(file: &str) -> Vec<T> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/goldens").join(file);
    let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let npy = npyz::NpyFile::new(&bytes[..]).unwrap();
    assert_eq!(npy.order(), npyz::Order::C, "{file}");
    npy.into_vec().unwrap()
}

#[test]
fn tones_and_chirps_match_librosa() {
    check_to("tone_440", MEAN_OF_A_TONE);
    check_to("chirp", MEAN_OF_A_TONE);
}

#[test]
fn a_voice_matches_librosa() {
    check("voice");
}

#[test]
fn noise_and_clicks_match_librosa() {
    check("noise");
    check("quiet_noise");
    check("clicks");
}

#[test]
fn silence_matches_librosa() {
    check("silence");
}

#[test]
fn signals_shorter_than_the_padding_match_librosa() {
    check("short_300");
    check("short_2");
    check("single");
}
