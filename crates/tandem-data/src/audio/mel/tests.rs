//! Every kernel against the double-precision reference, on easy and on nasty signals.

use super::reference::log_mel;
use super::*;
use proptest::prelude::*;
use std::f64::consts::PI;
use tandem_units::{Hint, Hop, SampleRate};

const SPEECH: MelConfig = MelConfig::SPEECH_22K;
/// The promise: largest and mean difference to the reference, in natural logarithm.
const LARGEST: f64 = 1e-3;
const MEAN: f64 = 1e-5;

/// Noise in `[-1, 1)` by a linear congruential generator (Knuth's MMIX constants).
fn noise(seed: u64, length: usize) -> Vec<f32> {
    let mut state = seed;
    let step = |_| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f32 / (1u32 << 23) as f32 - 1.0
    };
    (0..length).map(step).collect()
}

/// A voice of sorts: gliding harmonics that fade in and out, breath, and room noise.
fn voice(length: usize) -> Vec<f32> {
    let breath = noise(7, length);
    let mut phase = 0.0f64;
    (0..length)
        .map(|i| {
            let t = i as f64 / 22050.0;
            phase += 2.0 * PI * (140.0 + 40.0 * (2.0 * PI * 1.3 * t).sin()) / 22050.0;
            let tone: f64 = (1..30).map(|h| (f64::from(h) * phase).sin() / f64::from(h)).sum();
            let loud = (2.0 * PI * 2.1 * t).sin().max(0.0);
            (0.2 * loud * tone) as f32 + (0.02 * loud as f32 + 0.001) * breath[i]
        })
        .collect()
}

fn shorts(signal: &[f32]) -> Vec<i16> {
    signal.iter().map(|x| (x * 32767.0).round() as i16).collect()
}

/// Largest and mean difference between a kernel and the reference.
fn difference(found: &[f32], expected: &[f64]) -> (f64, f64) {
    assert_eq!(found.len(), expected.len());
    let apart = found.iter().zip(expected).map(|(f, e)| (f64::from(*f) - e).abs());
    // Written so that NaN counts as far apart.
    let largest = apart.clone().fold(0.0, |max, d| if d <= max { max } else { d });
    (largest, apart.sum::<f64>() / found.len() as f64)
}

#[track_caller]
fn check_with(config: &MelConfig, pcm: Sound<'_>) {
    let signal: Vec<f64> = match pcm {
        Sound::I16(samples) => samples.iter().map(|&s| f64::from(s) / 32768.0).collect(),
        Sound::F32(samples) => samples.iter().map(|&s| f64::from(s)).collect(),
    };
    let expected = log_mel(config, &signal).unwrap();
    let served = MelKernel::available().into_iter().filter(|kernel| kernel.serves(config));
    for kernel in served {
        let mut extractor = MelExtractor::with_kernel(config.clone(), kernel).unwrap();
        let found = extractor.extract(pcm).unwrap();
        let (largest, mean) = difference(found.values(), &expected);
        println!("{kernel}: {largest:.2e} {mean:.2e}");
        assert!(largest <= LARGEST, "{kernel}: {largest:.2e} apart");
        assert!(mean <= MEAN, "{kernel}: {mean:.2e} apart on average");
    }
}

/// Both kinds of samples, default settings.
#[track_caller]
fn check(signal: &[f32]) {
    check_with(&SPEECH, Sound::F32(signal));
    check_with(&SPEECH, Sound::I16(&shorts(signal)));
}

#[test]
fn a_voice_matches_the_reference() {
    check(&voice(40_000));
}

#[test]
fn silence_is_the_floor() {
    check(&[0.0; 5000]);
    for kernel in MelKernel::available() {
        let mut extractor = MelExtractor::with_kernel(SPEECH, kernel).unwrap();
        let mel = extractor.extract(Sound::I16(&[0; 5000])).unwrap();
        for value in mel.values() {
            assert!((f64::from(*value) - 1e-5f64.ln()).abs() < 2e-6, "{kernel}: {value}");
        }
    }
}

#[test]
fn a_full_scale_square_matches_the_reference() {
    for period in [2, 7, 64, 100, 501] {
        let square = |i| if i / (period / 2 + 1) % 2 == 0 { 1.0 } else { -1.0 };
        println!("period {period}");
        check(&(0..6000).map(square).collect::<Vec<f32>>());
    }
}

#[test]
fn tones_match_the_reference() {
    for hz in [50.0, 440.0, 1000.0, 5000.0, 22050.0 / 16.0, 10_900.0] {
        println!("tone {hz}");
        check(
            &(0..6000)
                .map(|i| (2.0 * PI * hz * f64::from(i) / 22050.0).sin() as f32)
                .collect::<Vec<_>>(),
        );
    }
}
