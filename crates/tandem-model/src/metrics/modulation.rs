//! Modulation and level: how much fine detail speech has, and how loud it is.
//!
//! In: mel frames of synthesized and recorded speech. Out: [`Modulation`], shares of the recording's change, and
//! levels in dB. A blurred voice changes less from frame to frame and from band to band than a recording does.

use super::{MelFrames, MetricError};
use std::f64::consts::LN_10;

/// Frames this far below the mean are pauses, which do not count in the level.
pub const LEVEL_GATE: f64 = -10.0;

/// Change of the synthesized relative to the recorded speech; 1 is equal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Modulation {
    /// Mean absolute difference of neighbouring frames.
    pub over_time: f64,
    /// Mean absolute difference of neighbouring bands.
    pub over_bands: f64,
}

impl Modulation {
    /// An error where the recording has no change at all.
    pub fn of(found: MelFrames<'_>, truth: MelFrames<'_>) -> Result<Modulation, MetricError> {
        found.same_bands(&truth)?;
        let share = |found: f64, truth: f64| match truth > 0.0 {
            true => Ok(found / truth),
            false => Err(MetricError::Empty { what: "change of mel frames" }),
        };
        Ok(Modulation {
            over_time: share(change_over_time(found), change_over_time(truth))?,
            over_bands: share(change_over_bands(found), change_over_bands(truth))?,
        })
    }
}

/// The level of speech in dB: the mean power of all frames that are at most 10 dB below the mean of all (the gate of
/// ITU-R BS.1770, without its filter). Only differences of levels have a meaning.
pub fn level(mel: MelFrames<'_>) -> f64 {
    let power = |row: &[f32]| row.iter().map(|value| (2.0 * f64::from(*value)).exp()).sum::<f64>();
    let powers: Vec<f64> = mel.rows().map(power).collect();
    let mean = |powers: &[f64]| powers.iter().sum::<f64>() / powers.len() as f64;
    let limit = mean(&powers) * 10f64.powf(LEVEL_GATE / 10.0);
    let loud: Vec<f64> = powers.into_iter().filter(|power| *power >= limit).collect();
    10.0 / LN_10 * mean(&loud).ln()
}

fn change_over_time(mel: MelFrames<'_>) -> f64 {
    let pairs = mel.rows().zip(mel.rows().skip(1));
    let sum: f64 = pairs.map(|(a, b)| change(a, b)).sum();
    sum / mel.frames().saturating_sub(1).max(1) as f64
}

fn change_over_bands(mel: MelFrames<'_>) -> f64 {
    let sum: f64 = mel.rows().map(|row| change(row, &row[1..])).sum();
    sum / mel.frames() as f64
}

fn change(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from((a - b).abs())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(values: &[f32]) -> MelFrames<'_> {
        MelFrames::new(values, 2).unwrap()
    }

    #[test]
    fn a_blurred_mel_has_a_share_of_the_change() {
        // From frame to frame both bands change by 2, from band to band by 1.
        let truth = [0.0, 1.0, 2.0, 3.0, 0.0, 1.0];
        let blurred = [0.5, 1.25, 1.5, 2.25, 0.5, 1.25];
        let found = Modulation::of(frames(&blurred), frames(&truth)).unwrap();
        assert_eq!(found, Modulation { over_time: 0.5, over_bands: 0.75 });
        assert!(Modulation::of(frames(&truth), frames(&[0.0; 6])).is_err());
    }

    #[test]
    fn a_gain_changes_the_level_and_a_pause_does_not() {
        let quiet = [0.0f32, -1.0, 0.3, -0.7];
        let gain = 6.0 * LN_10 as f32 / 20.0;
        let loud: Vec<f32> = quiet.iter().map(|value| value + gain).collect();
        assert!((level(frames(&loud)) - level(frames(&quiet)) - 6.0).abs() < 1e-4);
        let paused = [&quiet[..], &[-11.5; 2]].concat();
        assert!((level(frames(&paused)) - level(frames(&quiet))).abs() < 1e-4);
    }
}
