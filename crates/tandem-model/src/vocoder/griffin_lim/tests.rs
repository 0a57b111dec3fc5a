//! Griffin-Lim against recordings of the demo corpus, librosa and NumPy.

use super::*;
use crate::metrics::frames::{MelFrames, mel_error};
use std::path::Path;
use tandem_audio::mel::{Mel, MelExtractor};
use tandem_audio::{AudioConfig, Decoder, Sound};

const SPEECH: MelConfig = MelConfig::SPEECH_22K;

fn clip(name: &str) -> Vec<f32> {
    let wavs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tandem/demo-corpus/wavs");
    let bytes = std::fs::read(wavs.join(name)).unwrap();
    let mut decoder = Decoder::new(SPEECH.rate, AudioConfig::default());
    decoder.decode(&bytes, Some("flac")).unwrap().to_f32()
}

fn mel_of(samples: &[f32]) -> Mel {
    MelExtractor::new(SPEECH).unwrap().extract(Sound::F32(samples)).unwrap()
}

fn vocoder(config: GriffinLimConfig) -> GriffinLim {
    GriffinLim::new(&SPEECH, config).unwrap()
}

/// Magnitudes of the spectra of samples. Shape: `[frames, bins]`.
fn magnitudes_of(samples: &[f32], frames: usize) -> Vec<f32> {
    let mut transform = Transform::new(&SPEECH);
    transform.start_from(frames, samples);
    let mut spectra = vec![Complex::default(); frames * (SPEECH.n_fft / 2 + 1)];
    transform.round(&mut spectra, || (), |_, _, spectrum, kept| kept.copy_from_slice(spectrum));
    spectra.into_iter().map(size).collect()
}

/// Relative error of magnitudes.
fn convergence(found: &[f32], wanted: &[f32]) -> f64 {
    let square = |value: f32| f64::from(value) * f64::from(value);
    let off: f64 = found.iter().zip(wanted).map(|(found, wanted)| square(found - wanted)).sum();
    (off / wanted.iter().map(|wanted| square(*wanted)).sum::<f64>()).sqrt()
}

/// The samples from the mel of a clip have nearly the same mel.
#[track_caller]
fn check(name: &str, config: GriffinLimConfig, most: f64) {
    let mel = mel_of(&clip(name));
    let sound = vocoder(config).synthesize(mel.values()).unwrap();
    let again = mel_of(&sound);
    let error = mel_error(MelFrames::of(&again).unwrap(), MelFrames::of(&mel).unwrap()).unwrap();
    assert!(error < most, "{name}: {error}");
}

#[test]
fn the_samples_of_a_mel_have_the_same_mel() {
    let speech = GriffinLimConfig::SPEECH;
    check("en/en_emma_001.flac", speech.clone(), 0.09);
    check("en/en_henry_003.flac", speech.clone(), 0.09);
    check("fa/fa_mina_001.flac", speech.clone(), 0.07);
    // More iterations help, also without fitting.
    check("fa/fa_mina_001.flac", GriffinLimConfig { iterations: 60, ..speech.clone() }, 0.06);
    check("fa/fa_mina_001.flac", GriffinLimConfig { refits: 0, ..speech }, 0.15);
}

#[test]
fn phases_fit_magnitudes_as_well_as_with_librosa() {
    // Of `xtask/generators/make_vocoder_goldens.py`: librosa.griffinlim, 32 iterations, momentum 0.99,
    // the better of zero and random initial phases.
    for (name, librosa) in LIBROSA {
        let samples = clip(name);
        let frames = SPEECH.frames(tandem_units::Samples(samples.len())).0;
        let length = crate::vocoder::samples_of(frames, &SPEECH).0;
        let mut samples = samples;
        samples.resize(length, 0.0);
        let wanted = magnitudes_of(&samples, frames);
        let sound = vocoder(GriffinLimConfig::SPEECH).search(&wanted, None);
        let found = convergence(&magnitudes_of(&sound, frames), &wanted);
        assert!(found < librosa, "{name}: {found}, librosa {librosa}");
    }
}

const LIBROSA: [(&str, f64); 3] = [
    ("en/en_emma_001.flac", 0.0444),
    ("en/en_henry_003.flac", 0.0655),
    ("fa/fa_mina_001.flac", 0.0480),
];

#[test]
fn the_samples_equal_those_of_the_same_algorithm_in_numpy() {
    let golden = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens").join(name);
        let bytes = std::fs::read(path).unwrap();
        npyz::NpyFile::new(&bytes[..]).unwrap().into_vec::<f32>().unwrap()
    };
    let config = GriffinLimConfig { iterations: 6, ..GriffinLimConfig::SPEECH };
    let mut vocoder = vocoder(config);
    let bands = vocoder.inverse.bands_of(&golden("vocoder.mel.npy"), SPEECH.floor);
    let magnitudes = vocoder.inverse.magnitudes(&bands, FIRST_FIT_ROUNDS);
    let off = convergence(&magnitudes, &golden("vocoder.magnitudes.npy"));
    assert!(off < 1e-5, "magnitudes: {off}");
    let found = vocoder.search(&magnitudes, Some(&bands));
    let wanted = golden("vocoder.wav.npy");
    assert_eq!(found.len(), wanted.len());
    let off = convergence(&found, &wanted);
    assert!(off < 1e-3, "{off}");
}

#[test]
fn rounding_errors_stay_small() {
    for name in ["en/en_jack_002.flac", "en/en_emma_001.flac", "fa/fa_mina_001.flac"] {
        let samples = clip(name);
        let mel = mel_of(&samples);
        // Silence at the floor and bands just above it are part of the clips.
        let shaken = mel.values().iter().enumerate();
        let shaken: Vec<f32> =
            shaken.map(|(at, value)| value + 1e-5 * (at as f32 * 1.7).sin()).collect();
        let mut vocoder = vocoder(GriffinLimConfig::SPEECH);
        let largest = |one: Vec<f32>, other: Vec<f32>| {
            one.iter().zip(&other).map(|(one, other)| (one - other).abs()).fold(0.0, f32::max)
        };
        let one = vocoder.synthesize(mel.values()).unwrap();
        let off = largest(one, vocoder.synthesize(&shaken).unwrap());
        assert!(off < 1e-3, "{name}: {off}");
        // With a guide, too.
        let frames = mel.values().len() / SPEECH.bands;
        let mut samples = samples;
        samples.resize(crate::vocoder::samples_of(frames, &SPEECH).0, 0.0);
        let guide = magnitudes_of(&samples, frames);
        let one = vocoder.guided(guide.clone(), mel.values());
        let off = largest(one, vocoder.guided(guide, &shaken));
        assert!(off < 1e-3, "{name}, guided: {off}");
    }
}

#[test]
fn the_number_of_threads_does_not_change_a_sample() {
    let mel = mel_of(&clip("en/en_jack_002.flac"));
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| vocoder(GriffinLimConfig::SPEECH).synthesize(mel.values()).unwrap())
    };
    assert_eq!(with(1), with(3));
}

#[test]
fn true_magnitudes_guide_the_search_to_the_recording() {
    let mut samples = clip("en/en_jack_002.flac");
    let mel = mel_of(&samples);
    let frames = mel.values().len() / SPEECH.bands;
    samples.resize(crate::vocoder::samples_of(frames, &SPEECH).0, 0.0);
    let truth = magnitudes_of(&samples, frames);
    let mut vocoder = vocoder(GriffinLimConfig::SPEECH);
    let error = |samples: &[f32]| convergence(&magnitudes_of(samples, frames), &truth);
    let alone = error(&vocoder.synthesize(mel.values()).unwrap());
    let guided = error(&vocoder.guided(truth.clone(), mel.values()));
    assert!(guided < 0.6 * alone, "{guided} guided, {alone} alone");
    // A guide that says nothing about the distribution within a band takes nothing away.
    let flat = error(&vocoder.guided(vec![1.0; truth.len()], mel.values()));
    assert!(flat < 1.5 * alone, "{flat} with a flat guide, {alone} alone");
}

#[test]
fn silence_stays_silent() {
    let mel = vec![SPEECH.floor.ln(); 20 * SPEECH.bands];
    let sound = vocoder(GriffinLimConfig::SPEECH).synthesize(&mel).unwrap();
    assert_eq!(sound.len(), 20 * 256 - 128);
    assert!(sound.iter().all(|sample| *sample == 0.0));
}

#[test]
fn one_frame_is_half_a_hop_of_samples() {
    let samples: Vec<f32> = (0..128).map(|i| (i as f32 * 0.3).sin() * 0.5).collect();
    let mel = mel_of(&samples);
    let sound = vocoder(GriffinLimConfig::SPEECH).synthesize(mel.values()).unwrap();
    assert_eq!(sound.len(), 128);
    let peak = sound.iter().fold(0.0f32, |peak, sample| peak.max(sample.abs()));
    assert!((0.1..2.0).contains(&peak), "{peak}");
}

#[test]
fn an_invalid_mel_and_an_invalid_setting_are_errors() {
    let mut vocoder = vocoder(GriffinLimConfig::SPEECH);
    assert!(matches!(vocoder.synthesize(&[]), Err(VocoderError::Empty)));
    assert!(matches!(vocoder.synthesize(&[0.0; 81]), Err(VocoderError::Shape { .. })));
    let mut mel = [-3.0; 160];
    mel[90] = f32::NAN;
    let error = vocoder.synthesize(&mel).unwrap_err();
    assert!(matches!(error, VocoderError::Value { frame: 1, band: 10, .. }), "{error}");
    for momentum in [-0.1, 1.1, f32::NAN] {
        let config = GriffinLimConfig { momentum, ..GriffinLimConfig::SPEECH };
        assert!(GriffinLim::new(&SPEECH, config).is_err());
    }
    let mel = MelConfig { bands: 0, ..SPEECH };
    assert!(GriffinLim::new(&mel, GriffinLimConfig::SPEECH).is_err());
}

#[test]
fn the_same_frames_give_the_same_samples_and_the_loudest_stay_finite() {
    let mel = mel_of(&clip("en/en_jack_002.flac"));
    let mut one = vocoder(GriffinLimConfig::SPEECH);
    let first = one.synthesize(&mel.values()[..4000]).unwrap();
    one.synthesize(&mel.values()[800..2400]).unwrap();
    assert_eq!(one.synthesize(&mel.values()[..4000]).unwrap(), first);
    let loud = vec![crate::vocoder::LOUDEST; 400];
    assert!(one.synthesize(&loud).unwrap().iter().all(|sample| sample.is_finite()));
}

#[test]
fn other_settings_work_too() {
    let mel = MelConfig {
        n_fft: 512,
        window: 400,
        hop: tandem_units::Hop(160),
        bands: 40,
        low: 80.0,
        high: 7600.0,
        rate: tandem_units::SampleRate(16000),
        ..SPEECH
    };
    let samples: Vec<f32> = (0..8000)
        .map(|i| {
            let turn = i as f32 * 0.06;
            (1..15).map(|h| (turn * h as f32).sin() / h as f32).sum::<f32>() * 0.2
        })
        .collect();
    let mut extractor = MelExtractor::new(mel.clone()).unwrap();
    let truth = extractor.extract(Sound::F32(&samples)).unwrap();
    let sound = GriffinLim::new(&mel, GriffinLimConfig::SPEECH).unwrap().synthesize(truth.values());
    let again = extractor.extract(Sound::F32(&sound.unwrap())).unwrap();
    let (again, truth) = (MelFrames::of(&again).unwrap(), MelFrames::of(&truth).unwrap());
    let error = mel_error(again, truth).unwrap();
    assert!(error < 0.1, "{error}");
}
