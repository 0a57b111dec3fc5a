//! Every kernel against the double-precision reference, on simple and on difficult signals.

use super::reference::log_mel;
use super::*;
use proptest::prelude::*;
use std::f64::consts::PI;
use tandem_units::{Hint, Hop, SampleRate};

const SPEECH: MelConfig = MelConfig::SPEECH_22K;
/// The tolerance: largest and mean difference to the reference, in natural logarithm.
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

/// A synthetic voice: gliding harmonics that fade in and out, breath and room noise.
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
    // Written so that NaN counts as a difference.
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
        check(&(0..6000).map(square).collect::<Vec<f32>>());
    }
}

/// For tones without any noise: rounding alone is about 1e-8 of full scale per bin, which shows in
/// the logarithm of faint bands; there the band itself must be right.
#[track_caller]
fn check_to_rounding(signal: &[f32]) {
    let exact: Vec<f64> = signal.iter().map(|&x| f64::from(x)).collect();
    let expected = log_mel(&SPEECH, &exact).unwrap();
    for kernel in MelKernel::available() {
        let mut extractor = MelExtractor::with_kernel(SPEECH, kernel).unwrap();
        let found = extractor.extract(Sound::F32(signal)).unwrap();
        for (found, expected) in found.values().iter().zip(&expected) {
            let (found, expected) = (f64::from(*found), *expected);
            let off = (found.exp() - expected.exp()).abs();
            let near = (found - expected).abs() <= LARGEST || off <= 5e-7;
            assert!(near, "{kernel}: {found} instead of {expected}");
        }
    }
}

#[test]
fn a_pure_tone_is_as_exact_as_single_precision_allows() {
    for hz in [50.0, 440.0, 1000.0, 5000.0, 22050.0 / 16.0, 10_900.0] {
        let tone = |i| (2.0 * PI * hz * f64::from(i) / 22050.0).sin() as f32;
        check_to_rounding(&(0..6000).map(tone).collect::<Vec<f32>>());
    }
}

#[test]
fn the_extremes_of_16_bits_match_the_reference() {
    check_with(&SPEECH, Sound::I16(&[i16::MIN; 3000]));
    check_with(&SPEECH, Sound::I16(&[i16::MAX; 3000]));
    let signs = noise(3, 5000);
    let extremes = signs.iter().map(|&x| if x < 0.0 { i16::MIN } else { i16::MAX });
    check_with(&SPEECH, Sound::I16(&extremes.collect::<Vec<i16>>()));
}

#[test]
fn tiny_noise_matches_the_reference() {
    for scale in [1e-12, 1e-7, 1e-5, 1e-4] {
        let signal: Vec<f32> = noise(5, 5000).iter().map(|x| x * scale).collect();
        check_with(&SPEECH, Sound::F32(&signal));
    }
    let one_bit: Vec<i16> = noise(9, 5000).iter().map(|&x| i16::from(x > 0.5)).collect();
    check_with(&SPEECH, Sound::I16(&one_bit));
}

#[test]
fn signals_shorter_than_the_padding_match_the_reference() {
    let signal = noise(11, 3000);
    // Reflected again and again, a few samples are a tone.
    for length in 1..200 {
        check_to_rounding(&signal[..length]);
    }
    for length in (200..3000).step_by(97).chain([255, 256, 257, 511, 512, 513]) {
        check(&signal[..length]);
    }
}

/// Little enough for Miri, which runs the vector kernels instruction by instruction
/// (`xtask/tests/miri.sh`); it has no arithmetic of AVX-512.
#[test]
fn a_few_samples_are_the_same_under_every_kernel() {
    let signal = noise(12, 300);
    let samples = shorts(&signal);
    let heard = |kernel: MelKernel| {
        let mut extractor = MelExtractor::with_kernel(SPEECH, kernel).unwrap();
        let mut hear = |pcm: Sound<'_>| extractor.extract(pcm).unwrap().values().to_vec();
        [hear(Sound::F32(&signal)), hear(Sound::I16(&samples))].concat()
    };
    let expected: Vec<f64> = heard(MelKernel::Portable).into_iter().map(f64::from).collect();
    let others = MelKernel::available().into_iter().filter(|kernel| match kernel {
        MelKernel::Portable => false,
        MelKernel::Avx512 | MelKernel::General => !cfg!(miri),
        _ => true,
    });
    for kernel in others {
        let (largest, _) = difference(&heard(kernel), &expected);
        assert!(largest <= LARGEST, "{kernel}: {largest:.2e} apart");
    }
}

#[test]
fn full_and_partial_groups_of_frames_match_the_reference() {
    let signal = voice(34 * 256);
    for frames in [14, 15, 16, 17, 29, 31, 32, 33] {
        check(&signal[..256 * (frames - 1)]);
    }
}

#[test]
fn other_settings_match_the_reference() {
    let signal = voice(9000);
    for config in [
        MelConfig { bands: 100, ..SPEECH },
        MelConfig { bands: 1, ..SPEECH },
        MelConfig { bands: 13, low: 80.0, high: 7600.0, ..SPEECH },
        MelConfig { window: 800, ..SPEECH },
        MelConfig { rate: SampleRate(16000), high: 8000.0, floor: 1e-6, ..SPEECH },
        MelConfig { hop: Hop(300), ..SPEECH },
        MelConfig { n_fft: 512, window: 400, hop: Hop(160), bands: 40, ..SPEECH },
        MelConfig { n_fft: 2048, window: 1200, ..SPEECH },
        MelConfig { n_fft: 600, window: 600, ..SPEECH },
    ] {
        check_with(&config, Sound::F32(&signal));
        check_with(&config, Sound::I16(&shorts(&signal)));
    }
}

#[test]
fn an_htk_scale_would_be_detected() {
    // HTK's formula: 2595 log10(1 + hz / 700). A tone peaks in another band there.
    let htk = |hz: f64| 2595.0 * (1.0 + hz / 700.0).log10();
    let band_of = |mel: f64, top: f64| (mel / top * 81.0).round() as usize - 1;
    let slaney_band = band_of(mel_of_hz(400.0), mel_of_hz(11025.0));
    let htk_band = band_of(htk(400.0), htk(11025.0));
    assert!(slaney_band.abs_diff(htk_band) >= 3);
    let tone = |i| (2.0 * PI * 400.0 * f64::from(i) / 22050.0).sin() as f32;
    let signal: Vec<f32> = (0..8000).map(tone).collect();
    for kernel in MelKernel::available() {
        let mut extractor = MelExtractor::with_kernel(SPEECH, kernel).unwrap();
        let mel = extractor.extract(Sound::F32(&signal)).unwrap();
        let middle = mel.rows().nth(15).unwrap();
        let loudest = (0..80).max_by(|&a, &b| middle[a].total_cmp(&middle[b])).unwrap();
        assert!(loudest.abs_diff(slaney_band) <= 1, "{kernel}: band {loudest}");
    }
}

#[test]
fn a_batch_row_is_written_without_touching_its_neighbours() {
    let signal = shorts(&voice(5000));
    for kernel in MelKernel::available() {
        let mut extractor = MelExtractor::with_kernel(SPEECH, kernel).unwrap();
        let size = extractor.frames(Samples(signal.len())).0 * 80;
        let mut batch = vec![7.0; size + 160];
        let frames =
            extractor.extract_into(Sound::I16(&signal), &mut batch[80..80 + size]).unwrap();
        assert_eq!(frames, Frames(5000 / 256 + 1));
        assert_eq!((&batch[..80], &batch[80 + size..]), (&[7.0; 80][..], &[7.0; 80][..]));
        assert_eq!(batch[80..80 + size], *extractor.extract(Sound::I16(&signal)).unwrap().values());
    }
}

#[test]
fn earlier_recordings_have_no_effect() {
    let (long, short) = (voice(20_000), noise(1, 700));
    for kernel in MelKernel::available() {
        let mut fresh = MelExtractor::with_kernel(SPEECH, kernel).unwrap();
        let expected = fresh.extract(Sound::F32(&short)).unwrap();
        let mut used = MelExtractor::with_kernel(SPEECH, kernel).unwrap();
        used.extract(Sound::F32(&long)).unwrap();
        used.extract(Sound::I16(&shorts(&long))).unwrap();
        assert_eq!(used.extract(Sound::F32(&short)).unwrap(), expected, "{kernel}");
    }
}

#[test]
fn invalid_input_is_an_error_with_a_hint() {
    let mut extractor = MelExtractor::new(SPEECH).unwrap();
    let mut nan = noise(1, 3000);
    nan[2345] = f32::NAN;
    let errors = [
        (extractor.extract(Sound::I16(&[])).unwrap_err(), "no samples"),
        (extractor.extract(Sound::F32(&nan)).unwrap_err(), "sample 2345"),
        (extractor.extract(Sound::F32(&[0.0, f32::NEG_INFINITY])).unwrap_err(), "sample 1"),
        (extractor.extract(Sound::F32(&[1e20])).unwrap_err(), "sample 0"),
        (extractor.extract_into(Sound::I16(&[1; 300]), &mut [0.0; 100]).unwrap_err(), "160"),
        (
            MelExtractor::with_kernel(
                MelConfig { n_fft: 512, window: 512, ..SPEECH },
                MelKernel::Portable,
            )
            .unwrap_err(),
            "built for 1024",
        ),
    ];
    for (error, fact) in errors {
        assert!(error.to_string().contains(fact), "`{error}` does not say `{fact}`");
        assert!(error.hint().is_some());
    }
}

#[test]
fn a_kernel_of_another_cpu_is_refused_by_name() {
    for kernel in MelKernel::ALL {
        let available = MelKernel::available().contains(&kernel);
        match MelExtractor::with_kernel(SPEECH, kernel) {
            Ok(extractor) => assert!(available && extractor.kernel() == kernel),
            Err(error) => assert!(!available && error.to_string().contains(kernel.name())),
        }
    }
    let best = MelExtractor::new(SPEECH).unwrap().kernel();
    assert_eq!(best, MelKernel::available()[0]);
    let other = MelConfig { hop: Hop(200), ..SPEECH };
    assert_eq!(MelExtractor::new(other).unwrap().kernel(), MelKernel::General);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_noise_of_any_length_matches_the_reference(
        seed in any::<u64>(),
        length in 1usize..6000,
        loudness in -7.0f32..0.0,
    ) {
        let signal: Vec<f32> = noise(seed, length).iter().map(|x| x * 10f32.powf(loudness)).collect();
        // Mirrored at its ends again and again, less than a window of noise is a tone.
        if length < SPEECH.window { check_to_rounding(&signal) } else { check(&signal) }
    }
}
