//! The smooth magnitudes of a mel frame: a prior for the network.
//!
//! In: log-mel frames. Out: log-magnitudes of frequency bins, `[frames, bins]`. A band divided by the sum of its weights is
//! the mean magnitude around its centre; between two centres the logarithm is interpolated. So the network only predicts
//! what this leaves out. (FreeV, Lv and others 2024, uses a pseudo-inverse in this place.)

use super::super::VocoderError;
use tandem_audio::mel::{MelConfig, filterbank};

/// How bins are interpolated between bands.
#[derive(Clone, Debug)]
pub struct Envelope {
    bands: usize,
    /// For each bin: the band below, and the weight of the band above.
    bins: Vec<(usize, f32)>,
    /// Logarithm of each band's sum of weights.
    gains: Vec<f32>,
}

impl Envelope {
    pub fn new(mel: &MelConfig) -> Result<Envelope, VocoderError> {
        let bank = filterbank(mel).map_err(VocoderError::Settings)?;
        let sum = |weights: &[f64]| weights.iter().sum::<f64>().max(1e-9);
        let gains = bank.bands().iter().map(|band| sum(band.weights()).ln() as f32).collect();
        let mut centres: Vec<f64> = Vec::with_capacity(mel.bands);
        for band in bank.bands() {
            let moments = band.range().zip(band.weights()).map(|(bin, weight)| bin as f64 * weight);
            let centre = moments.sum::<f64>() / sum(band.weights());
            // An empty band has no centre: it stays behind its neighbour.
            centres.push(centre.max(centres.last().map_or(0.0, |last| last + 1e-3)));
        }
        let last = mel.bands - 1;
        let place = |bin: usize| {
            let bin = bin as f64;
            let above = centres.partition_point(|&centre| centre <= bin);
            match above {
                0 => (0, 0.0),
                above if above > last => (last, 0.0),
                above => {
                    let (low, high) = (centres[above - 1], centres[above]);
                    (above - 1, ((bin - low) / (high - low)) as f32)
                }
            }
        };
        Ok(Envelope { bands: mel.bands, bins: (0..bank.bins()).map(place).collect(), gains })
    }

    /// Logarithm of each band's sum of weights, which is subtracted from a mel frame first.
    pub fn gains(&self) -> &[f32] {
        &self.gains
    }

    /// The interpolation as a matrix: `[bands, bins]`.
    pub fn matrix(&self) -> Vec<f32> {
        let mut matrix = vec![0.0; self.bands * self.bins.len()];
        for (bin, &(band, share)) in self.bins.iter().enumerate() {
            matrix[band * self.bins.len() + bin] = 1.0 - share;
            if share > 0.0 {
                matrix[(band + 1) * self.bins.len() + bin] = share;
            }
        }
        matrix
    }

    /// The log-magnitudes of these frames. Shapes: `[frames, bands]` to `[frames, bins]`.
    pub fn log_magnitudes(&self, mel: &[f32]) -> Vec<f32> {
        let mut result = Vec::with_capacity(mel.len() / self.bands * self.bins.len());
        for frame in mel.chunks_exact(self.bands) {
            let level = |band: usize| frame[band] - self.gains[band];
            result.extend(self.bins.iter().map(|&(band, share)| match share {
                0.0 => level(band),
                share => level(band) * (1.0 - share) + level(band + 1) * share,
            }));
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flat_spectrum_has_a_flat_envelope() {
        let mel = MelConfig::SPEECH_22K;
        let bank = filterbank(&mel).unwrap();
        let frame: Vec<f32> = bank
            .bands()
            .iter()
            .map(|b| (3.0 * b.weights().iter().sum::<f64>()).ln() as f32)
            .collect();
        let found = Envelope::new(&mel).unwrap().log_magnitudes(&frame);
        assert_eq!(found.len(), 513);
        assert!(found.iter().all(|value| (value - 3f32.ln()).abs() < 1e-5));
    }
}
