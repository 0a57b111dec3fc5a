//! Spectral detail: how much the fine structure of the spectrum moves during speech.
//!
//! In: synthesized frames, and a reference segment of the same speaker. Out: frames whose high cepstral coefficients deviate
//! from their means nearly as much as those of the reference. A voice predicts means over many utterances, which move less than
//! any of them: sharp formants and harmonics become flat. Statistical synthesis compensates "global variance" in the same
//! place (Toda and Tokuda 2007), by scaling (Silen et al. 2012). Each speaker needs a measure of its own: the harmonics of
//! a high voice are visible in 80 bands and those of a low one are not, so that coefficient 30 moves six times as much.

use crate::metrics::distortion::COEFFICIENTS;
use std::f64::consts::PI;

/// The first coefficient that is changed. A voice predicts the lower ones, the broad shape of the spectrum, at 86 to 97 %
/// of their deviation; changing those would move formants away from the recording's (measured in docs/training.md).
pub const FIRST: usize = COEFFICIENTS + 1;
/// The share of the missing deviation that is added. All of it gave 62 % word errors instead of 60 %.
pub const STRENGTH: f64 = 0.5;
/// Below this a deviation counts as none.
pub const SMALLEST: f64 = 1e-9;
/// The largest factor of a deviation: a voice that has learned nothing is not made to shout.
pub const LARGEST_FACTOR: f64 = 1.5;
/// Frames of a text with enough different sounds for a measure (two seconds). Of a shorter one, only its share of the
/// change is made.
pub const ENOUGH_FRAMES: usize = 172;
/// A shorter reference (one second) is no measure.
const SHORTEST_REFERENCE: usize = 86;

/// Scales the deviations of `mel` half of the way up to those of `reference`, in place. Both are normalised: `[frames, bands]`. The mean
/// frame and the loudness of each frame do not change. A short reference changes nothing.
pub fn match_detail(mel: &mut [f32], reference: &[f32], bands: usize) {
    let Some(wanted) = deviations(reference, bands) else { return };
    let share = (mel.len() / bands).min(ENOUGH_FRAMES) as f64 / ENOUGH_FRAMES as f64;
    let mut change = vec![0f64; mel.len()];
    for (wave, wanted) in cosines(bands).chunks_exact(bands).zip(wanted) {
        let own = Coefficient::of(mel, wave);
        let factor = (wanted / own.deviation.max(SMALLEST)).clamp(1.0, LARGEST_FACTOR);
        let more = STRENGTH * share * (factor - 1.0);
        for (value, row) in own.values.iter().zip(change.chunks_exact_mut(bands)) {
            let more = more * (value - own.mean);
            row.iter_mut().zip(wave).for_each(|(change, wave)| *change += more * wave);
        }
    }
    mel.iter_mut().zip(change).for_each(|(value, change)| *value += change as f32);
}

/// Deviations of the coefficients of a reference, from [`FIRST`]; none where it is too short.
pub fn deviations(reference: &[f32], bands: usize) -> Option<Vec<f64>> {
    let of_wave = |wave: &[f64]| Coefficient::of(reference, wave).deviation;
    let of_all = || cosines(bands).chunks_exact(bands).map(of_wave).collect();
    (reference.len() >= SHORTEST_REFERENCE * bands).then(of_all)
}

/// The orthonormal cosine transform from [`FIRST`]: `[bands - FIRST, bands]`.
pub fn cosines(bands: usize) -> Vec<f64> {
    let scale = (2.0 / bands as f64).sqrt();
    let wave = |k: usize, n: usize| scale * (PI * k as f64 * (n as f64 + 0.5) / bands as f64).cos();
    (FIRST..bands).flat_map(|k| (0..bands).map(move |n| wave(k, n))).collect()
}

/// One cepstral coefficient over time.
struct Coefficient {
    values: Vec<f64>,
    mean: f64,
    deviation: f64,
}

impl Coefficient {
    fn of(mel: &[f32], wave: &[f64]) -> Coefficient {
        let one = |row: &[f32]| row.iter().zip(wave).map(|(a, b)| f64::from(*a) * b).sum::<f64>();
        let values: Vec<f64> = mel.chunks_exact(wave.len()).map(one).collect();
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>();
        Coefficient { mean, deviation: (squares / count).sqrt(), values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames whose coefficients move by `size`.
    fn speech(frames: usize, size: f32) -> Vec<f32> {
        let value = |frame: usize, band: usize| {
            let wave = (frame as f32 * 0.7).sin() * (band as f32 * 2.3).cos();
            -3.0 + 0.02 * band as f32 + size * wave
        };
        (0..frames).flat_map(|frame| (0..40).map(move |band| value(frame, band))).collect()
    }

    fn of_any(mel: &[f32]) -> Vec<f64> {
        cosines(40).chunks_exact(40).map(|wave| Coefficient::of(mel, wave).deviation).collect()
    }

    fn mean_frame(mel: &[f32]) -> Vec<f32> {
        (0..40)
            .map(|band| mel.iter().skip(band).step_by(40).sum::<f32>() * 40.0 / mel.len() as f32)
            .collect()
    }

    #[test]
    fn flat_speech_moves_more_like_its_reference_and_keeps_mean_and_loudness() {
        let (before, like) = (speech(400, 0.8), speech(300, 1.0));
        let mut mel = before.clone();
        match_detail(&mut mel, &like, 40);
        for (place, found) in of_any(&mel).into_iter().enumerate() {
            let (from, to) = (of_any(&before)[place], of_any(&like)[place]);
            let wanted = from + STRENGTH * (to - from);
            assert!((found - wanted).abs() < 1e-3, "{found} {wanted}");
        }
        let sum = |mel: &[f32]| of_any(mel).iter().sum::<f64>();
        assert!(sum(&mel) > 1.1 * sum(&before), "{} {}", sum(&mel), sum(&before));
        for (found, wanted) in mean_frame(&mel).into_iter().zip(mean_frame(&before)) {
            assert!((found - wanted).abs() < 1e-4, "{found} {wanted}");
        }
        let loudness = |mel: &[f32]| {
            mel.chunks_exact(40).map(|row| row.iter().sum::<f32>()).collect::<Vec<_>>()
        };
        for (found, wanted) in loudness(&mel).into_iter().zip(loudness(&before)) {
            assert!((found - wanted).abs() < 1e-3, "{found} {wanted}");
        }
    }

    #[test]
    fn lively_speech_stays_as_it_is_and_noise_is_not_made_loud() {
        let (before, like) = (speech(400, 1.0), speech(400, 0.5));
        let mut mel = before.clone();
        match_detail(&mut mel, &like, 40);
        assert_eq!(mel, before);
        let mut flat = speech(400, 0.1);
        let largest = of_any(&flat)
            .iter()
            .map(|one| one * (1.0 + STRENGTH * (LARGEST_FACTOR - 1.0)))
            .collect::<Vec<_>>();
        match_detail(&mut flat, &like, 40);
        for (found, wanted) in of_any(&flat).into_iter().zip(largest) {
            assert!((found - wanted).abs() < 1e-4, "{found} {wanted}");
        }
    }

    #[test]
    fn a_short_text_is_changed_less_and_a_short_reference_changes_nothing() {
        let like = speech(400, 1.0);
        let change = |frames: usize| {
            let before = speech(frames, 0.8);
            let mut mel = before.clone();
            match_detail(&mut mel, &like, 40);
            of_any(&mel)[3] / of_any(&before)[3] - 1.0
        };
        assert!(change(20) < 0.2 * change(400), "{} {}", change(20), change(400));
        let mut mel = speech(20, 0.8);
        match_detail(&mut mel, &like[..40 * 85], 40);
        assert_eq!(mel, speech(20, 0.8));
    }
}
