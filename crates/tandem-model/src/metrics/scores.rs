//! All metrics of one utterance, and their means over many.
//!
//! In: [`Scores`] of utterances. Out: [`Tally`].

use super::AlignmentHealth;
use serde::Serialize;

/// The metrics of one utterance; `None` if one could not be computed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Scores {
    /// Mel-cepstral distortion after warping, in dB.
    pub distortion: f64,
    /// The distortion of the mean frame of the training data, in dB.
    pub baseline: f64,
    /// Relative error of the duration, with its sign.
    pub duration: f64,
    pub alignment: Option<AlignmentHealth>,
    /// Cosine distance of the speaker embeddings of synthesized and recorded speech.
    pub speaker: Option<f64>,
    /// Pitch of the synthesized relative to the recorded speech, in semitones.
    pub pitch: Option<f64>,
    /// Change from frame to frame relative to the recording's.
    pub change_over_time: f64,
    /// Change from band to band relative to the recording's.
    pub change_over_bands: f64,
    /// Level relative to the recording's, in dB.
    pub level: f64,
}

/// Means over utterances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Tally {
    pub utterances: usize,
    /// Mean distortion, in dB.
    pub distortion: f64,
    /// Mean distortion of the mean frame, in dB.
    pub baseline: f64,
    /// How far the distortion is below the baseline, as a fraction; positive if the voice is better.
    pub gain: f64,
    /// Mean absolute relative error of the duration.
    pub duration_error: f64,
    /// Mean relative error of the duration; negative if the speech is too fast.
    pub duration_bias: f64,
    pub coverage: Option<f64>,
    pub monotonic: Option<f64>,
    pub diagonality: Option<f64>,
    pub entropy: Option<f64>,
    /// Mean distance of the speaker embeddings.
    pub speaker: Option<f64>,
    /// Mean absolute difference in pitch, in semitones.
    pub pitch_error: Option<f64>,
    /// Mean change from frame to frame relative to the recordings'; 1 is equal, less is blurred.
    pub change_over_time: f64,
    /// Mean change from band to band relative to the recordings'.
    pub change_over_bands: f64,
    /// Mean level relative to the recordings', in dB.
    pub level: f64,
}

impl Tally {
    /// `None` without utterances.
    pub fn of(scores: &[Scores]) -> Option<Tally> {
        if scores.is_empty() {
            return None;
        }
        let mean =
            |of: fn(&Scores) -> f64| scores.iter().map(of).sum::<f64>() / scores.len() as f64;
        let known = |of: &dyn Fn(&Scores) -> Option<f64>| {
            let values: Vec<f64> = scores.iter().filter_map(of).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let health = |of: fn(AlignmentHealth) -> f64| known(&|score| score.alignment.map(of));
        let (distortion, baseline) = (mean(|s| s.distortion), mean(|s| s.baseline));
        Some(Tally {
            utterances: scores.len(),
            distortion,
            baseline,
            gain: if baseline > 0.0 { 1.0 - distortion / baseline } else { 0.0 },
            duration_error: mean(|s| s.duration.abs()),
            duration_bias: mean(|s| s.duration),
            coverage: health(|health| health.coverage),
            monotonic: health(|health| health.monotonic),
            diagonality: health(|health| health.diagonality),
            entropy: known(&|score| score.alignment.and_then(|health| health.entropy)),
            speaker: known(&|score| score.speaker),
            pitch_error: known(&|score| score.pitch.map(f64::abs)),
            change_over_time: mean(|s| s.change_over_time),
            change_over_bands: mean(|s| s.change_over_bands),
            level: mean(|s| s.level),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_leave_out_missing_values() {
        let one = Scores {
            distortion: 6.0,
            baseline: 10.0,
            duration: -0.1,
            alignment: None,
            speaker: Some(0.2),
            pitch: None,
            change_over_time: 0.5,
            change_over_bands: 0.8,
            level: -3.0,
        };
        let health =
            AlignmentHealth { coverage: 0.5, monotonic: 1.0, diagonality: 0.75, entropy: None };
        let other = Scores {
            distortion: 8.0,
            duration: 0.3,
            alignment: Some(health),
            pitch: Some(-2.0),
            change_over_time: 1.0,
            level: 1.0,
            ..one
        };
        let tally = Tally::of(&[one, other]).unwrap();
        assert_eq!((tally.utterances, tally.distortion, tally.baseline), (2, 7.0, 10.0));
        assert!((tally.gain - 0.3).abs() < 1e-12);
        assert!((tally.duration_error - 0.2).abs() < 1e-12);
        assert!((tally.duration_bias - 0.1).abs() < 1e-12);
        assert_eq!((tally.coverage, tally.diagonality), (Some(0.5), Some(0.75)));
        assert_eq!((tally.entropy, tally.speaker), (None, Some(0.2)));
        assert_eq!(tally.pitch_error, Some(2.0));
        assert_eq!((tally.change_over_time, tally.change_over_bands), (0.75, 0.8));
        assert_eq!(tally.level, -1.0);
        assert_eq!(Tally::of(&[]), None);
    }
}
