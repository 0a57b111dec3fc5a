//! How well one text fits one recording: the alignment, its health and its misfit.
//!
//! In: normalised mel frames, and the frame that a text encoder predicts for each symbol. Out:
//! [`TextFit`]. The same search as in training. Runs on the host, one utterance at a time. Used
//! by [`crate::run::validator`] and the crate `tandem-eval`.

use crate::feed::align::search_path;
use tandem_model::alignment::{Aligner, log_likelihoods};
use tandem_model::metrics::{AlignmentHealth, HealthLimits};

/// A text aligned to a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct TextFit {
    /// Frames of each symbol.
    pub durations: Vec<u32>,
    pub health: AlignmentHealth,
    /// Mean squared distance between the frames and the predicted frames of their symbols, per band,
    /// in units of normalised frames.
    pub misfit: f64,
}

/// Aligns a text to a recording. None where the text has more symbols than the recording has frames,
/// or where a value is NaN. Shapes: `[frames, bands]`, `[symbols, bands]`.
pub fn fit_text(
    aligner: &mut Aligner,
    mel: &[f32],
    prior: &[f32],
    bands: usize,
    limits: &HealthLimits,
) -> Option<TextFit> {
    let symbols = prior.len() / bands;
    let likelihoods = log_likelihoods(mel, prior, bands);
    let durations = search_path(aligner, likelihoods.clone(), symbols)?;
    let misfit = misfit(&likelihoods, &durations, bands);
    let whole: Vec<usize> = durations.iter().map(|&frames| frames as usize).collect();
    let health = AlignmentHealth::of_durations(&whole, limits).ok()?;
    let mut shares = likelihoods;
    shares.chunks_exact_mut(symbols).for_each(to_shares);
    let entropy = AlignmentHealth::of_soft(&shares, symbols, limits).ok()?.entropy;
    Some(TextFit { durations, health: AlignmentHealth { entropy, ..health }, misfit })
}

/// A log-likelihood is minus half the squared distance of a frame. Shape: `[frames, symbols]`.
fn misfit(likelihoods: &[f32], durations: &[u32], bands: usize) -> f64 {
    let symbols = durations.len();
    let path = durations.iter().enumerate();
    let path = path.flat_map(|(symbol, &frames)| std::iter::repeat_n(symbol, frames as usize));
    let on_path = path.zip(likelihoods.chunks_exact(symbols));
    let sum: f64 = on_path.map(|(symbol, frame)| -2.0 * f64::from(frame[symbol])).sum();
    sum / (likelihoods.len() / symbols * bands) as f64
}

/// Softmax over the symbols of one frame.
fn to_shares(scores: &mut [f32]) {
    let best = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    scores.iter_mut().for_each(|score| *score = (*score - best).exp());
    let sum: f32 = scores.iter().sum();
    scores.iter_mut().for_each(|score| *score /= sum);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two symbols at 0 and 4, in one band.
    fn fit(mel: &[f32]) -> Option<TextFit> {
        fit_text(&mut Aligner::default(), mel, &[0.0, 4.0], 1, &HealthLimits::SPEECH)
    }

    #[test]
    fn misfit_is_the_mean_squared_distance_along_the_path() {
        let found = fit(&[0.0, 1.0, 4.0, 4.0]).unwrap();
        assert_eq!(found.durations, [2, 2]);
        assert!((found.misfit - 0.25).abs() < 1e-6, "{found:?}");
        // In the wrong order at most one frame fits, since the first symbol must come first.
        let wrong = fit(&[4.0, 4.0, 0.0, 0.0]).unwrap();
        assert!((wrong.misfit - 12.0).abs() < 1e-6, "{wrong:?}");
    }

    #[test]
    fn frames_between_two_symbols_have_a_high_entropy() {
        let (clear, ambiguous) = (fit(&[0.0, 4.0]).unwrap(), fit(&[2.0, 2.0]).unwrap());
        assert!(clear.health.entropy.unwrap() < 0.01, "{clear:?}");
        assert!(ambiguous.health.entropy.unwrap() > 0.99, "{ambiguous:?}");
    }

    #[test]
    fn a_text_longer_than_its_recording_and_nan_frames_have_no_fit() {
        assert_eq!(fit(&[0.0]), None);
        assert_eq!(fit(&[f32::NAN, 0.0]), None);
    }
}
