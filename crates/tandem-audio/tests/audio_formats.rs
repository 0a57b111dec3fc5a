//! Every supported format, rate and channel count against a computed sine; and every kind of broken
//! file against its error message.

use hound::{SampleFormat, WavSpec, WavWriter};
use std::f64::consts::TAU;
use std::io::Cursor;
use tandem_audio::{AudioConfig, AudioError, Decoder, FileReader, Sound};
use tandem_units::{Hint, SampleRate, Seconds};

const RATE: SampleRate = SampleRate(22_050);
const HERTZ: f64 = 440.0;

fn sine(rate: u32, frame: usize) -> f64 {
    0.5 * (TAU * HERTZ * frame as f64 / f64::from(rate)).sin()
}

fn decode(bytes: &[u8], hint: &str) -> Result<Vec<f32>, AudioError> {
    let mut decoder = Decoder::new(RATE, AudioConfig::default());
    decoder.decode(bytes, Some(hint)).map(|sound| sound.to_f32())
}

fn fixture(name: &str) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/audio").join(name);
    std::fs::read(path).unwrap()
}

/// Half a second of the sine in every channel, scaled so that their mean is the sine again.
fn wav(rate: u32, channels: u16, bits: u16, sample_format: SampleFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    let spec = WavSpec { channels, sample_rate: rate, bits_per_sample: bits, sample_format };
    let mut writer = WavWriter::new(&mut bytes, spec).unwrap();
    for frame in 0..rate as usize / 2 {
        for channel in 0..channels {
            let weight = 2.0 * f64::from(channel + 1) / f64::from(channels + 1);
            let value = sine(rate, frame) * weight;
            match sample_format {
                SampleFormat::Float => writer.write_sample(value as f32).unwrap(),
                SampleFormat::Int => {
                    let full = f64::from(1u32 << (bits - 1)) - 1.0;
                    writer.write_sample((value * full).round() as i32).unwrap();
                }
            }
        }
    }
    writer.finalize().unwrap();
    bytes.into_inner()
}

/// Checks the exact length, and the signal-to-error ratio away from the ends in dB.
#[track_caller]
fn check(bytes: &[u8], hint: &str, at_least: f64) {
    let sound = decode(bytes, hint).unwrap();
    let decibels = agreement(&sound, 1.0);
    assert!(decibels > at_least, "{decibels:.1} dB, expected {at_least}");
}

/// Like [`check`], for formats that may change the level slightly, but not the time.
#[track_caller]
fn check_lossy(bytes: &[u8], hint: &str, at_least: f64) {
    let sound = decode(bytes, hint).unwrap();
    let middle = sound.iter().enumerate().skip(2000).take(7000);
    let (mut with, mut alone) = (0.0, 0.0);
    for (i, &found) in middle {
        with += f64::from(found) * sine(RATE.0, i);
        alone += sine(RATE.0, i).powi(2);
    }
    let level = with / alone;
    assert!((0.9..1.1).contains(&level), "level {level:.3}");
    let decibels = agreement(&sound, level);
    assert!(decibels > at_least, "{decibels:.1} dB, expected {at_least}");
}

#[track_caller]
fn agreement(sound: &[f32], level: f64) -> f64 {
    assert_eq!(sound.len(), RATE.0 as usize / 2);
    let (mut signal, mut error) = (0.0, 0.0);
    for (i, &found) in sound.iter().enumerate().skip(2000).take(7000) {
        let expected = level * sine(RATE.0, i);
        signal += expected * expected;
        error += (f64::from(found) - expected).powi(2);
    }
    10.0 * (signal / error.max(1e-30)).log10()
}

#[track_caller]
fn refused(bytes: &[u8], line: &str) {
    let error = decode(bytes, "wav").unwrap_err();
    assert_eq!(error.to_string(), line);
    assert!(error.hint().is_some(), "{error}");
}

#[test]
fn wav_of_every_bit_depth_keeps_its_precision() {
    // Six decibels a bit, less the headroom of half scale; f32 arithmetic ends near 140.
    let depths = [
        (8, SampleFormat::Int, 38.0),
        (16, SampleFormat::Int, 85.0),
        (24, SampleFormat::Int, 125.0),
        (32, SampleFormat::Int, 130.0),
        (32, SampleFormat::Float, 130.0),
    ];
    for (bits, format, decibels) in depths {
        check(&wav(RATE.0, 1, bits, format), "wav", decibels);
    }
}

#[test]
fn one_to_eight_channels_are_mixed_to_their_mean() {
    for channels in 1..=8 {
        check(&wav(RATE.0, channels, 16, SampleFormat::Int), "wav", 80.0);
        check(&wav(48_000, channels, 24, SampleFormat::Int), "wav", 80.0);
    }
}

#[test]
fn every_rate_is_resampled_to_the_right_speed() {
    for rate in [8_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000, 192_000] {
        check(&wav(rate, 1, 16, SampleFormat::Int), "wav", 80.0);
    }
}

#[test]
fn sixteen_bit_mono_at_the_corpus_rate_is_not_copied() {
    let bytes = wav(RATE.0, 1, 16, SampleFormat::Int);
    let mut decoder = Decoder::new(RATE, AudioConfig::default());
    let Sound::I16(samples) = decoder.decode(&bytes, None).unwrap() else { panic!("converted") };
    let expected = (sine(RATE.0, 1000) * 32767.0).round() as i16;
    assert_eq!(samples[1000], expected);
    // The same bytes at an odd address: copied, but the same.
    let shifted = [&[0u8][..], &bytes].concat();
    let mut second = Decoder::new(RATE, AudioConfig::default());
    assert_eq!(second.decode(&shifted[1..], None).unwrap(), Sound::I16(samples));
}

#[test]
fn flac_mp3_ogg_and_mulaw_agree_with_the_sine_they_were_made_from() {
    check(&fixture("tone_22k_16.flac"), "flac", 85.0);
    check(&fixture("tone_48k_24_stereo.flac"), "flac", 80.0);
    // Half a sample off would leave 24 dB.
    check_lossy(&fixture("tone_44k.mp3"), "mp3", 40.0);
    check_lossy(&fixture("tone_44k_id3.mp3"), "mp3", 40.0);
    check_lossy(&fixture("tone_44k.ogg"), "ogg", 40.0);
    check_lossy(&fixture("tone_8k_mulaw.wav"), "wav", 30.0);
}

#[test]
fn an_mp3_without_a_length_tag_is_decoded_to_its_end() {
    // Encoder delay and padding stay, because their length is unknown.
    let sound = decode(&fixture("tone_44k_untagged.mp3"), "mp3").unwrap();
    assert!((11_025..=11_025 + 1_200).contains(&sound.len()), "{}", sound.len());
}

#[test]
fn a_wrong_extension_changes_nothing() {
    check(&fixture("tone_22k_16.flac"), "wav", 85.0);
    check_lossy(&fixture("tone_44k.mp3"), "ogg", 40.0);
    check(&wav(RATE.0, 1, 16, SampleFormat::Int), "mp3", 85.0);
}

#[test]
fn truncated_files_are_refused() {
    let cut = |name: &str, share: f64| {
        let bytes = fixture(name);
        decode(&bytes[..(bytes.len() as f64 * share) as usize], name).unwrap_err().to_string()
    };
    for name in ["tone_22k_16.flac", "tone_44k.mp3", "tone_44k.ogg", "tone_8k_mulaw.wav"] {
        // Most of a short Ogg file is its header.
        for share in if name.ends_with("ogg") { [0.95, 0.98] } else { [0.6, 0.9] } {
            let line = cut(name, share);
            let known = ["truncated: the header says", "broken file: the stream ends without"];
            assert!(known.iter().any(|head| line.starts_with(head)), "{name} at {share}: {line}");
        }
    }
    let bytes = wav(RATE.0, 1, 16, SampleFormat::Int);
    refused(
        &bytes[..bytes.len() / 2],
        "truncated: the header says 21.5 KiB of samples, the file holds 10.7 KiB",
    );
}

#[test]
fn files_that_are_not_audio_are_refused_with_a_reason() {
    refused(b"", "the file is empty");
    refused(b"<!DOCTYPE html><html>not found</html>", "the content is not audio in a known format");
    refused(&fixture("tone.opus"), "Opus is not supported");
    let silent = {
        let mut bytes = wav(RATE.0, 1, 16, SampleFormat::Int);
        bytes[44..].fill(0);
        bytes
    };
    refused(&silent, "silent: the loudest sample is at zero of full scale, below -66 dB");
    let mut empty = wav(RATE.0, 1, 16, SampleFormat::Int)[..44].to_vec();
    empty[40..44].fill(0);
    refused(&empty, "there are no samples in it");
    empty[40..44].copy_from_slice(&200u32.to_le_bytes());
    empty.extend([1; 200]);
    refused(&empty, "lasts 4.54 ms, the minimum is 100.00 ms");
}

#[test]
fn non_finite_and_out_of_scale_floats_are_refused() {
    let mut bytes = wav(RATE.0, 1, 32, SampleFormat::Float);
    let at = bytes.len() - 4 * (RATE.0 as usize / 4);
    bytes[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    refused(&bytes, "the sample at 250.02 ms is NaN or infinite");
    bytes[at..at + 4].copy_from_slice(&20_000f32.to_le_bytes());
    refused(&bytes, "the loudest sample is 2.000e4 times full scale");
}

#[test]
fn hours_of_sound_stop_at_the_limit_with_or_without_a_length_in_the_header() {
    let mut bytes = fixture("hours_of_silence.flac");
    refused(&bytes, "lasts 3.0 h, the limit is 2.0 min");
    // The low 36 bits of eight bytes at 18 are the length: zero is "unknown".
    bytes[21] &= 0xF0;
    bytes[22..26].fill(0);
    refused(
        &bytes,
        "still not at its end after 2.0 min of sound, the limit, from a file of 18.0 KiB",
    );
    let short = AudioConfig { max_length: Seconds(0.4), ..AudioConfig::default() };
    let error =
        Decoder::new(RATE, short).decode(&wav(48_000, 2, 16, SampleFormat::Int), None).unwrap_err();
    assert_eq!(error.to_string(), "lasts 500.00 ms, the limit is 400.00 ms");
}

#[test]
fn a_header_with_an_impossible_rate_is_refused() {
    let mut bytes = wav(RATE.0, 1, 16, SampleFormat::Int);
    bytes[24..28].fill(0);
    refused(&bytes, "the header gives a sample rate of 0 Hz, which cannot be right");
    bytes[24..28].fill(0xFF);
    refused(&bytes, "the header gives a sample rate of 4294967295 Hz, which cannot be right");
}

#[test]
fn the_demo_corpus_is_read_whole() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tandem/demo-corpus/wavs");
    let mut folders = vec![root];
    let mut reader = FileReader::default();
    let mut decoder = Decoder::new(RATE, AudioConfig::default());
    let mut clips = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = reader.read(&path, &AudioConfig::default()).unwrap();
            let sound = decoder.decode(bytes, None).unwrap_or_else(|e| panic!("{path:?}: {e}"));
            let length = RATE.seconds(sound.len());
            assert!((1.0..8.0).contains(&length.0), "{path:?} lasts {length}");
            clips += 1;
        }
    }
    assert!(clips > 100, "{clips}");
}
