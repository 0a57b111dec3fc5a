use super::choice::largest_difference;
use super::*;
use std::path::Path;
use tandem_audio::mel::MelExtractor;
use tandem_audio::{AudioConfig, Decoder, Sound};
use tandem_units::{Hop, Seconds};

/// A synthetic voice: gliding harmonics and noise, from a fixed sequence.
fn voice(samples: usize, pitch: f32, seed: u32) -> Vec<i16> {
    let mut state = seed;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    let mut phase = 0.0f32;
    (0..samples)
        .map(|at| {
            let time = at as f32 / 22050.0;
            phase += pitch * (1.0 + 0.1 * (3.0 * time).sin()) / 22050.0;
            let harmonic = |n: f32| (std::f32::consts::TAU * phase * n).sin() / n;
            let tone: f32 = (1..=20).map(|n| harmonic(n as f32)).sum();
            let level = 0.5 + 0.5 * (5.0 * time).sin();
            ((0.2 * tone * level + 0.003 * noise()) * 32767.0) as i16
        })
        .collect()
}

fn on_host(config: &MelConfig, sounds: &[Vec<f32>], frames: usize) -> Vec<f32> {
    let mut extractor = MelExtractor::new(config.clone()).unwrap();
    let mut values = vec![config.floor.ln(); sounds.len() * frames * config.bands];
    for (row, sound) in values.chunks_exact_mut(frames * config.bands).zip(sounds) {
        let mel = extractor.extract(Sound::F32(sound)).unwrap();
        row[..mel.values().len()].copy_from_slice(mel.values());
    }
    values
}

fn on_device(config: &MelConfig, sounds: &[Vec<f32>], frames: usize) -> Vec<f32> {
    let mel = DeviceMel::new(config, &Device::flex()).unwrap();
    let mut batch = SoundBatch::new(config);
    batch.reset(sounds.len(), frames);
    for sound in sounds {
        batch.push(Sound::F32(sound)).unwrap();
    }
    let made = mel.extract(&batch).unwrap();
    assert_eq!(made.dims(), [sounds.len(), frames, config.bands]);
    made.try_into_vec_as().unwrap()
}

#[track_caller]
fn check(config: &MelConfig, sounds: &[Vec<f32>], frames: usize) {
    let (host, device) = (on_host(config, sounds, frames), on_device(config, sounds, frames));
    let worst = host.iter().zip(&device).map(|(h, d)| (h - d).abs()).fold(0.0, f32::max);
    let relative = largest_difference(&host, &device);
    assert!(worst <= TOLERANCE, "{worst} in the logarithm");
    assert!(relative <= BAND_TOLERANCE, "{relative} of the loudest band");
}

fn voices(lengths: &[usize]) -> Vec<Vec<f32>> {
    let voice = |(at, &length): (usize, &usize)| voice(length, 90.0 + 60.0 * at as f32, 7);
    lengths.iter().enumerate().map(voice).map(|v| Sound::I16(&v).to_f32()).collect()
}

#[test]
fn a_padded_batch_has_the_frames_of_the_host_and_silence_as_padding() {
    check(&MelConfig::SPEECH_22K, &voices(&[22050, 12345, 30000]), 130);
}

#[test]
fn recordings_of_the_demo_corpus_have_the_frames_of_the_host() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tandem/demo-corpus/wavs");
    let config = MelConfig::SPEECH_22K;
    let mut decoder = Decoder::new(config.rate, AudioConfig::default());
    let sounds: Vec<Vec<f32>> = ["en/en_emma_001", "en/en_jack_002", "fa/fa_mina_001"]
        .iter()
        .map(|name| {
            let bytes = std::fs::read(folder.join(name).with_extension("flac")).unwrap();
            decoder.decode(&bytes, Some("flac")).unwrap().to_f32()
        })
        .collect();
    check(&config, &sounds, 800);
}

#[test]
fn other_settings_and_very_short_utterances_have_the_frames_of_the_host() {
    let other = MelConfig {
        n_fft: 800,
        window: 640,
        hop: Hop(160),
        bands: 40,
        low: 60.0,
        high: 7600.0,
        ..MelConfig::SPEECH_22K
    };
    check(&other, &voices(&[5000, 300]), 40);
    check(&MelConfig::SPEECH_22K, &voices(&[1, 2, 255, 256, 511]), 4);
}

#[test]
fn an_empty_row_is_silence() {
    let config = MelConfig::SPEECH_22K;
    let mel = DeviceMel::new(&config, &Device::flex()).unwrap();
    let mut batch = SoundBatch::new(&config);
    batch.reset(2, 3);
    batch.push(Sound::I16(&voice(512, 100.0, 1))).unwrap();
    let values = mel.extract(&batch).unwrap().try_into_vec_as::<f32>().unwrap();
    assert!(values[3 * 80..].iter().all(|&value| value == 1e-5f32.ln()));
    assert_eq!(batch.push(Sound::I16(&[])), Err(MelError::Empty));
}

#[test]
fn a_reused_batch_contains_nothing_of_the_previous_one() {
    let config = MelConfig::SPEECH_22K;
    let (mut used, mut fresh) = (SoundBatch::new(&config), SoundBatch::new(&config));
    used.reset(2, 20);
    used.push(Sound::I16(&voice(4000, 100.0, 1))).unwrap();
    for batch in [&mut used, &mut fresh] {
        batch.reset(1, 9);
        batch.push(Sound::I16(&voice(2000, 200.0, 2))).unwrap();
    }
    assert_eq!((used.samples(), used.frame_counts()), (fresh.samples(), fresh.frame_counts()));
}

#[test]
fn the_measurement_decides_and_displays_the_reason() {
    let sounds = [voice(22050, 110.0, 3), voice(11025, 210.0, 4)];
    let sounds = [Sound::I16(&sounds[0]), Sound::I16(&sounds[1])];
    let config = MelConfig::SPEECH_22K;
    let choice = choose_mel_place(&config, &sounds, &Device::flex(), 2, 1).unwrap();
    assert!(choice.host.0 > 0.0 && choice.device.0 > 0.0, "{choice:?}");
    assert!(choice.difference <= BAND_TOLERANCE, "{choice:?}");
    let text = choice.to_string();
    assert!(text.starts_with("computed on the ") && text.contains("2 host threads"), "{text}");
    let none = choose_mel_place(&config, &[], &Device::flex(), 2, 1).unwrap_err();
    assert_eq!(none, DeviceMelError::Mel(MelError::Empty));
}

#[test]
fn the_device_must_be_accurate_and_faster_than_all_threads() {
    let us = |count: f64| Seconds(count * 1e-6);
    let place =
        |host, threads, device, off| MelChoice::of(us(host), threads, us(device), off).place;
    assert_eq!(place(50.0, 1, 10.0, 1e-7), MelPlace::Device);
    assert_eq!(place(50.0, 8, 10.0, 1e-7), MelPlace::Host, "eight threads are faster");
    assert_eq!(place(50.0, 1, 10.0, 1e-3), MelPlace::Host, "not accurate");
    assert_eq!(place(50.0, 1, 10.0, f32::NAN), MelPlace::Host, "NaN");
}
