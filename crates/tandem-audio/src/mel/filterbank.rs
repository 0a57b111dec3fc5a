//! The window and the mel filters, computed once in double precision.
//!
//! In: [`MelConfig`]. Out: a Hann window and triangular filters, as runs of weights per band and
//! as a dense matrix. Synthesis uses them in the inverse direction.
//! Facts: the mel scale and the area norm are those of Slaney's Auditory Toolbox (1998): linear
//! with 200/3 Hz per mel below 1000 Hz, above it 27 mels per factor 6.4.

use super::config::{MelConfig, MelError};
use std::f64::consts::PI;
use std::ops::Range;

/// Hz per mel in the linear part of the scale.
const HZ_PER_MEL: f64 = 200.0 / 3.0;
/// Start of the logarithmic part of the scale, in Hz; 15 mels.
const LINEAR_UNTIL: f64 = 1000.0;

/// The mel filters of one setting. Shape of the dense view: `[bands, n_fft / 2 + 1]`.
#[derive(Clone, Debug)]
pub struct Filterbank {
    bins: usize,
    bands: Vec<Band>,
}

/// One filter: a run of weights over neighbouring frequency bins.
#[derive(Clone, Debug)]
pub struct Band {
    first: usize,
    weights: Vec<f64>,
}

/// The filters of these settings: Slaney scale, Slaney norm.
pub fn filterbank(config: &MelConfig) -> Result<Filterbank, MelError> {
    config.validate()?;
    let bins = config.n_fft / 2 + 1;
    let edges = band_edges(config);
    let bin_hz = f64::from(config.rate.0) / config.n_fft as f64;
    let bands = edges.windows(3).map(|e| triangle([e[0], e[1], e[2]], bin_hz, bins)).collect();
    Ok(Filterbank { bins, bands })
}

/// A periodic Hann window of `window` samples, centred among `n_fft` (zero outside it).
pub fn hann_window(config: &MelConfig) -> Vec<f64> {
    let before = (config.n_fft - config.window) / 2;
    let mut window = vec![0.0; config.n_fft];
    for (i, value) in window[before..before + config.window].iter_mut().enumerate() {
        *value = 0.5 - 0.5 * (2.0 * PI * i as f64 / config.window as f64).cos();
    }
    window
}

/// Hz to mels on the Slaney scale.
pub fn mel_of_hz(hz: f64) -> f64 {
    if hz < LINEAR_UNTIL {
        hz / HZ_PER_MEL
    } else {
        LINEAR_UNTIL / HZ_PER_MEL + (hz / LINEAR_UNTIL).ln() * 27.0 / 6.4f64.ln()
    }
}

/// Mels on the Slaney scale to Hz.
pub fn hz_of_mel(mel: f64) -> f64 {
    let linear_mels = LINEAR_UNTIL / HZ_PER_MEL;
    if mel < linear_mels {
        mel * HZ_PER_MEL
    } else {
        LINEAR_UNTIL * ((mel - linear_mels) * 6.4f64.ln() / 27.0).exp()
    }
}

impl Filterbank {
    /// Frequency bins: `n_fft / 2 + 1`.
    pub fn bins(&self) -> usize {
        self.bins
    }

    /// The filters, lowest first.
    pub fn bands(&self) -> &[Band] {
        &self.bands
    }

    /// All weights, zeros included. Shape: `[bands, bins]`, row after row.
    pub fn dense(&self) -> Vec<f32> {
        let mut matrix = vec![0.0; self.bands.len() * self.bins];
        for (row, band) in matrix.chunks_exact_mut(self.bins).zip(&self.bands) {
            for (cell, weight) in row[band.range()].iter_mut().zip(&band.weights) {
                *cell = *weight as f32;
            }
        }
        matrix
    }
}

impl Band {
    /// The bins with a weight above zero; empty if the filter falls between two bins.
    pub fn range(&self) -> Range<usize> {
        self.first..self.first + self.weights.len()
    }

    /// The weights of [`Band::range`].
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }
}

/// The corners of the triangles in Hz: `bands + 2` of them, evenly spaced in mels.
pub(super) fn band_edges(config: &MelConfig) -> Vec<f64> {
    let (low, high) = (mel_of_hz(f64::from(config.low)), mel_of_hz(f64::from(config.high)));
    let step = (high - low) / (config.bands + 1) as f64;
    (0..config.bands + 2).map(|i| hz_of_mel(low + step * i as f64)).collect()
}

/// A triangle over three corners, scaled so that its area in Hz is one.
fn triangle([left, centre, right]: [f64; 3], bin_hz: f64, bins: usize) -> Band {
    let height = 2.0 / (right - left);
    let weight = |bin: usize| {
        let hz = bin as f64 * bin_hz;
        let rising = (hz - left) / (centre - left);
        let falling = (right - hz) / (right - centre);
        rising.min(falling).max(0.0) * height
    };
    let first = (0..bins).find(|&bin| weight(bin) > 0.0).unwrap_or(0);
    let weights = (first..bins).map(weight).take_while(|&weight| weight > 0.0).collect();
    Band { first, weights }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(hz: f64, mel: f64) {
        assert!((mel_of_hz(hz) - mel).abs() < 1e-9, "{hz} Hz is {} mel", mel_of_hz(hz));
        assert!((hz_of_mel(mel) - hz).abs() < 1e-6, "{mel} mel is {} Hz", hz_of_mel(mel));
    }

    #[test]
    fn the_scale_is_slaneys_and_not_htks() {
        // HTK has 1000 Hz at 999.99 mel; Slaney at exactly 15.
        check(0.0, 0.0);
        check(500.0, 7.5);
        check(1000.0, 15.0);
        check(6400.0, 42.0);
    }

    #[test]
    fn each_filter_has_an_area_of_one() {
        // Fine bins, so that the sum is close to the integral.
        let config = MelConfig { n_fft: 1 << 16, window: 1024, ..MelConfig::SPEECH_22K };
        let bank = filterbank(&config).unwrap();
        let bin_hz = 22050.0 / f64::from(1 << 16);
        for (index, band) in bank.bands().iter().enumerate() {
            let area: f64 = band.weights().iter().sum::<f64>() * bin_hz;
            assert!((area - 1.0).abs() < 1e-3, "band {index}: {area}");
        }
    }

    #[test]
    fn the_dense_view_has_the_runs_and_zeros_elsewhere() {
        let bank = filterbank(&MelConfig::SPEECH_22K).unwrap();
        let dense = bank.dense();
        assert_eq!(dense.len(), 80 * 513);
        for (row, band) in dense.chunks(513).zip(bank.bands()) {
            let positive = row.iter().filter(|&&weight| weight > 0.0).count();
            assert_eq!(positive, band.range().len());
            assert!(!band.range().is_empty());
        }
    }

    #[test]
    fn a_short_window_is_centred() {
        let config = MelConfig { window: 512, ..MelConfig::SPEECH_22K };
        let window = hann_window(&config);
        assert_eq!(window.len(), 1024);
        assert_eq!(window[512], 1.0, "periodic: the peak is at half the window, centred");
        assert_eq!((window[255], window[256], window[768]), (0.0, 0.0, 0.0));
        assert!(window[257] > 0.0 && window[767] > 0.0);
    }
}
