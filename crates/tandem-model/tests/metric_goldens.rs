//! The metrics against NumPy, SciPy and librosa (`xtask/generators/make_metric_goldens.py`).

use serde::Deserialize;
use std::path::Path;
use tandem_audio::{AudioConfig, Decoder};
use tandem_model::metrics::{
    AlignmentHealth, Band, Distortion, HealthLimits, MeanMel, MelFrames, PitchConfig, PitchTrack,
    cosine_distance, mel_cepstral_distortion,
};

#[derive(Deserialize)]
struct Golden {
    mel_a: Vec<f32>,
    mel_b: Vec<f32>,
    whole: GoldenDistortion,
    banded: GoldenDistortion,
    mean_a_of_b: f64,
    pitch: Vec<GoldenPitch>,
    alignment: Vec<GoldenAlignment>,
    soft: GoldenSoft,
    voices: GoldenVoices,
}

#[derive(Deserialize)]
struct GoldenDistortion {
    decibels: f64,
    pairs: usize,
}

#[derive(Deserialize)]
struct GoldenPitch {
    clip: String,
    median: f64,
}

#[derive(Deserialize)]
struct GoldenAlignment {
    durations: Vec<usize>,
    coverage: f64,
    monotonic: f64,
    diagonality: f64,
}

#[derive(Deserialize)]
struct GoldenSoft {
    symbols: usize,
    weights: Vec<f32>,
    entropy: f64,
}

#[derive(Deserialize)]
struct GoldenVoices {
    a: Vec<f32>,
    b: Vec<f32>,
    distance: f64,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("goldens/metrics.json")).unwrap()
}

#[track_caller]
fn close(found: f64, wanted: f64, within: f64) {
    assert!((found - wanted).abs() <= within, "{found} for {wanted}");
}

#[test]
fn distortion_equals_that_of_scipy() {
    let golden = golden();
    let a = MelFrames::new(&golden.mel_a, 80).unwrap();
    let b = MelFrames::new(&golden.mel_b, 80).unwrap();
    for (band, wanted) in [(Band::Whole, &golden.whole), (Band::Around(0.1), &golden.banded)] {
        let Distortion { decibels, pairs } = mel_cepstral_distortion(a, b, band).unwrap();
        close(decibels, wanted.decibels, 1e-5);
        assert_eq!(pairs, wanted.pairs, "{band:?}");
    }
    assert!(golden.banded.decibels > golden.whole.decibels, "the band must have an effect here");
    let mut mean = MeanMel::new(80);
    mean.add(a).unwrap();
    close(mean.distortion(b).unwrap().decibels, golden.mean_a_of_b, 1e-5);
}

#[test]
fn pitch_of_the_demo_voices_equals_that_of_librosa() {
    let wavs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tandem/demo-corpus/wavs");
    let config = PitchConfig::SPEECH_22K;
    let mut decoder = Decoder::new(config.rate, AudioConfig::default());
    for GoldenPitch { clip, median } in golden().pitch {
        let bytes = std::fs::read(wavs.join(&clip)).unwrap();
        let samples = decoder.decode(&bytes, Some("flac")).unwrap().to_f32();
        let track = PitchTrack::of(&samples, &config).unwrap();
        let found = track.median().unwrap();
        assert!((found / median - 1.0).abs() < 0.03, "{clip}: {found} for {median}");
        assert!(track.voiced_share() > 0.2, "{clip}: {}", track.voiced_share());
    }
}

#[test]
fn alignment_health_equals_that_of_numpy() {
    let golden = golden();
    let limits = HealthLimits::SPEECH;
    for wanted in golden.alignment {
        let found = AlignmentHealth::of_durations(&wanted.durations, &limits).unwrap();
        close(found.coverage, wanted.coverage, 1e-12);
        close(found.diagonality, wanted.diagonality, 1e-12);
        close(found.monotonic, wanted.monotonic, 1e-12);
    }
    let GoldenSoft { symbols, weights, entropy } = golden.soft;
    let found = AlignmentHealth::of_soft(&weights, symbols, &limits).unwrap();
    close(found.entropy.unwrap(), entropy, 1e-6);
}

#[test]
fn the_distance_of_embeddings_equals_that_of_scipy() {
    let GoldenVoices { a, b, distance } = golden().voices;
    close(cosine_distance(&a, &b).unwrap(), distance, 1e-6);
}
