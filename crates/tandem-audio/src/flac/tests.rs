//! The decoder against symphonia, an encoder, and streams of every shape.

use super::frame::Predictor;
use super::test_stream::{TestStream, below, random_stream, stream_with_a_frame_inside};
use super::*;
use crate::compressed::CompressedReader;
use crate::sniff::AudioFormat;
use flacenc::bitsink::ByteSink;
use flacenc::component::BitRepr;
use flacenc::error::Verify;
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use tandem_units::Seconds;

fn limits() -> AudioConfig {
    AudioConfig { min_length: Seconds(0.0), ..AudioConfig::default() }
}

/// The samples of this decoder; `None` if it leaves the file to the other one.
fn decoded(bytes: &[u8]) -> Option<Vec<i16>> {
    let mut out = Vec::new();
    let rate = FlacReader::default().decode(bytes, &limits(), &mut out).unwrap();
    rate.map(|_| out)
}

/// The same without the instructions of this CPU.
fn plainly_decoded(bytes: &[u8]) -> Option<Vec<i16>> {
    let (info, body) = stream_info(bytes)?;
    let mut out = Vec::new();
    FlacReader::default().read_groups(Plain, body, &info, usize::MAX, &mut out).map(|()| out)
}

fn by_symphonia(bytes: &[u8]) -> Result<Vec<f32>, AudioError> {
    let mut out = Vec::new();
    CompressedReader::default().decode(AudioFormat::Flac, bytes, &limits(), &mut out).map(|_| out)
}

fn floats(samples: &[i16]) -> Vec<f32> {
    samples.iter().map(|&sample| f32::from(sample) / 32768.0).collect()
}

fn samples_of(stream: &TestStream) -> Vec<i16> {
    stream.samples.iter().map(|&level| (level << (16 - stream.bits)) as i16).collect()
}

fn fixture(name: &str) -> Vec<u8> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::read(root.join("tests/audio").join(name)).unwrap()
}

/// One whole second of 16-bit sound by the encoder.
fn encoded(samples: &[i32], bits: usize, block: usize) -> Vec<u8> {
    let config = flacenc::config::Encoder::default().into_verified().unwrap();
    let source = flacenc::source::MemSource::from_samples(samples, 1, bits, 22050);
    let stream = flacenc::encode_with_fixed_block_size(&config, source, block).unwrap();
    let mut sink = ByteSink::new();
    stream.write(&mut sink).unwrap();
    sink.into_inner()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn streams_of_every_shape_give_their_samples(seed: u64) {
        let stream = random_stream(&mut ChaCha8Rng::seed_from_u64(seed));
        let wanted = samples_of(&stream);
        let found = decoded(&stream.bytes);
        prop_assert_eq!(found.as_ref(), Some(&wanted));
        prop_assert_eq!(&plainly_decoded(&stream.bytes), &found);
        // It refuses short frames and other unusual streams.
        if let Ok(found) = by_symphonia(&stream.bytes) {
            prop_assert_eq!(found, floats(&wanted));
        }
    }

    #[test]
    fn a_damaged_stream_never_gives_other_samples(seed: u64) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut stream = random_stream(&mut rng);
        let place = below(&mut rng, stream.bytes.len() as u32) as usize;
        match below(&mut rng, 3) {
            0 => stream.bytes.truncate(place),
            1 => stream.bytes[place] ^= 1 << below(&mut rng, 8),
            _ => stream.bytes.extend(std::iter::repeat_with(|| rng.next_u32() as u8).take(place)),
        }
        let mut out = Vec::new();
        let found = FlacReader::default().decode(&stream.bytes, &limits(), &mut out);
        // Damage in unused bytes, or after the last frame; and without a length in the header, the frames that are left.
        if let Ok(Some(_)) = found {
            prop_assert!(samples_of(&stream).starts_with(&out));
        }
        // A damaged length may be above the limit: no frame is read then.
        if let Ok(rate) = found {
            prop_assert_eq!(plainly_decoded(&stream.bytes), rate.map(|_| out));
        }
    }

    #[test]
    fn a_frame_inside_of_another_is_not_taken_for_the_next(seed: u64) {
        let stream = stream_with_a_frame_inside(&mut ChaCha8Rng::seed_from_u64(seed));
        let (info, body) = stream_info(&stream.bytes).unwrap();
        let first = FrameStart::read(body, 0, &info, 0).unwrap();
        let found = first.find_next(body, &info, first.length).unwrap();
        prop_assert!(found.at < first.length * 2, "the search finds the one inside");
        prop_assert_eq!(decoded(&stream.bytes), Some(samples_of(&stream)));
        prop_assert_eq!(plainly_decoded(&stream.bytes), Some(samples_of(&stream)));
    }

    #[test]
    fn both_units_give_the_same_numbers(
        square: [[i32; 8]; 8], sum: [i32; 8], bytes in prop::collection::vec(any::<u8>(), 0..700),
    ) {
        let mut turned = square;
        Plain.transpose(&mut turned);
        for (n, row) in turned.iter().enumerate() {
            prop_assert_eq!(*row, square.map(|row| row[n]));
        }
        let products = Plain.add_products(sum, &square[0], &square[1]);
        let pair = |number: i32| [i64::from(number as i16), i64::from(number >> 16)];
        for lane in 0..8 {
            let [[a, b], [c, d]] = [pair(square[0][lane]), pair(square[1][lane])];
            prop_assert_eq!(products[lane], (i64::from(sum[lane]) + a * c + b * d) as i32);
        }
        prop_assert_eq!(Plain.frame_sum(&bytes), frame_sum::FRAME_SUM.checksum(&bytes));
        #[cfg(target_arch = "x86_64")]
        if let Some(unit) = unit::Avx2::detect() {
            let mut other = square;
            unit.transpose(&mut other);
            prop_assert_eq!(other, turned);
            prop_assert_eq!(unit.add_products(sum, &square[0], &square[1]), products);
            prop_assert_eq!(unit.frame_sum(&bytes), Plain.frame_sum(&bytes));
        }
    }
}

/// Restores frames whose samples are 0, `rise`, twice `rise`, and so on.
fn restored_ramps(lengths_and_rises: &[(usize, i32)], bits: u32) -> Option<Vec<i16>> {
    let mut coefficients = Predictor::default().coefficients;
    coefficients[0] = 1;
    let predictor = Predictor { order: 1, coefficients, ..Predictor::default() };
    let (mut frames, mut residual) = (Vec::new(), Vec::new());
    for &(length, rise) in lengths_and_rises {
        frames.push(Waiting { start: residual.len(), length, predictor });
        residual.push(0);
        residual.resize(residual.len() + length - 1, rise);
    }
    let plain = restored_by(Plain, &frames, &residual, bits);
    #[cfg(target_arch = "x86_64")]
    if let Some(unit) = unit::Avx2::detect() {
        let other = restored_by(unit, &frames, &residual, bits);
        assert_eq!(other, plain, "{lengths_and_rises:?}");
    }
    plain
}

fn restored_by(
    unit: impl Unit,
    frames: &[Waiting],
    residual: &[i32],
    bits: u32,
) -> Option<Vec<i16>> {
    let mut out = Vec::new();
    restore(unit, &mut frames.to_vec(), &mut residual.to_vec(), bits, &mut out).map(|()| out)
}

#[test]
fn a_sample_with_more_bits_than_the_stream_is_an_error_wherever_it_is() {
    // The last sample of the first frame is the largest one that fits, or does not: first samples, a whole group of steps
    // and one that the frame ends in. The other frame is longer: what follows the end of the first does not count.
    for (bits, full) in [(16u32, 32767), (12, 2047)] {
        for length in [2, 4, 65, 68, 69, 100, 133, 700] {
            let rise = full / (length as i32 - 1);
            let other = (900, 1);
            let fits = restored_ramps(&[(length, rise), other], bits).unwrap();
            let last = rise * (length as i32 - 1);
            assert_eq!(i32::from(fits[length - 1]), last << (16 - bits), "{length}");
            let too_high = full / (length as i32 - 1) + 1;
            assert_eq!(restored_ramps(&[(length, too_high), other], bits), None, "{length}");
            assert_eq!(restored_ramps(&[(length, -too_high - 1), other], bits), None, "{length}");
        }
    }
}

#[test]
fn what_an_encoder_writes_is_decoded_here() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    for (bits, block) in [(16, 4096), (16, 1000), (12, 576), (8, 4096)] {
        for noise in [0, 1, 40, 1000] {
            let full = (1 << (bits - 1)) as f32;
            let wave = |i: usize| {
                let turn = i as f32;
                ((turn * 0.03).sin() * 0.5 + (turn * 0.171).sin() * 0.3) * full * 0.99
            };
            let samples: Vec<i32> = (0..22050)
                .map(|i| wave(i) as i32 + below(&mut rng, noise + 1) as i32)
                .map(|level| level.clamp(-(full as i32), full as i32 - 1))
                .collect();
            let bytes = encoded(&samples, bits, block);
            let wanted: Vec<i16> = samples.iter().map(|&s| (s << (16 - bits)) as i16).collect();
            assert_eq!(decoded(&bytes), Some(wanted), "{bits} bits, {block}, noise {noise}");
        }
    }
}

#[test]
fn every_recording_of_the_demo_corpus_is_decoded_here() {
    let wavs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tandem/demo-corpus/wavs");
    let mut clips = 0;
    for folder in ["en", "fa"] {
        for entry in std::fs::read_dir(wavs.join(folder)).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            let samples = decoded(&bytes).unwrap();
            assert_eq!(floats(&samples), by_symphonia(&bytes).unwrap());
            assert_eq!(plainly_decoded(&bytes), Some(samples));
            clips += 1;
        }
    }
    assert!(clips > 100, "{clips}");
}

#[test]
fn other_streams_and_broken_ones_are_left_to_symphonia() {
    // Two channels, 24 bits.
    let stereo = fixture("tone_48k_24_stereo.flac");
    assert_eq!(decoded(&stereo), None);
    assert!(by_symphonia(&stereo).is_ok());
    let whole = fixture("tone_22k_16.flac");
    let samples = decoded(&whole).unwrap();
    let (_, body) = stream_info(&whole).unwrap();
    let start = whole.len() - body.len();
    // A changed bit in the first frame: in its sync code, its number, its sound.
    for place in [start, start + 4, start + 100] {
        let mut broken = whole.clone();
        broken[place] ^= 1;
        assert_eq!(decoded(&broken), None, "{place}");
    }
    // A cut, at the end of a frame, too.
    assert_eq!(decoded(&whole[..whole.len() - 1]), None);
    assert_eq!(decoded(&whole[..start]), None);
    assert_eq!(decoded(&whole[..30]), None);
    // A tag at the end is no damage.
    assert_eq!(decoded(&[&whole[..], b"TAG", &[0; 125]].concat()), Some(samples));
}
