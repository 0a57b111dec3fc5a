//! Mel frames for metrics: complete frames, at least one, every value finite.
//!
//! In: values and the number of bands. Out: [`MelFrames`], or an error.

use super::MetricError;
use tandem_audio::mel::Mel;

/// Borrowed mel frames. Shape: `[frames, bands]`, natural logarithms, frame after frame.
#[derive(Clone, Copy, Debug)]
pub struct MelFrames<'a> {
    values: &'a [f32],
    bands: usize,
}

impl<'a> MelFrames<'a> {
    pub fn new(values: &'a [f32], bands: usize) -> Result<Self, MetricError> {
        if values.is_empty() || bands == 0 {
            return Err(MetricError::Empty { what: "mel frame" });
        }
        if !values.len().is_multiple_of(bands) {
            let what = "values of whole mel frames";
            let expected = values.len() / bands * bands;
            return Err(MetricError::Size { what, found: values.len(), expected });
        }
        if let Some(index) = values.iter().position(|value| !value.is_finite()) {
            let (what, value) = ("mel", f64::from(values[index]));
            return Err(MetricError::Value { what, index, value, expected: "a finite number" });
        }
        Ok(Self { values, bands })
    }

    /// The frames of a recording.
    pub fn of(mel: &'a Mel) -> Result<Self, MetricError> {
        Self::new(mel.values(), mel.bands())
    }

    pub fn frames(&self) -> usize {
        self.values.len() / self.bands
    }

    pub fn bands(&self) -> usize {
        self.bands
    }

    pub fn rows(&self) -> impl ExactSizeIterator<Item = &'a [f32]> {
        self.values.chunks_exact(self.bands)
    }

    /// An error if the number of bands differs.
    pub(super) fn same_bands(&self, other: &MelFrames<'_>) -> Result<(), MetricError> {
        if self.bands == other.bands {
            return Ok(());
        }
        Err(MetricError::Size { what: "mel bands", found: self.bands, expected: other.bands })
    }
}

/// Mean absolute difference of two mels of the same length, frame by frame.
pub fn mel_error(found: MelFrames<'_>, truth: MelFrames<'_>) -> Result<f64, MetricError> {
    found.same_bands(&truth)?;
    if found.frames() != truth.frames() {
        let (found, expected) = (found.frames(), truth.frames());
        return Err(MetricError::Size { what: "mel frames", found, expected });
    }
    let pairs = found.values.iter().zip(truth.values);
    let sum: f64 = pairs.map(|(found, truth)| f64::from((found - truth).abs())).sum();
    Ok(sum / found.values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_mel_is_an_error() {
        assert!(MelFrames::new(&[], 80).is_err());
        assert!(MelFrames::new(&[0.0; 81], 80).is_err());
        assert!(MelFrames::new(&[0.0, f32::NAN], 2).is_err());
        assert_eq!(MelFrames::new(&[0.0; 160], 80).unwrap().frames(), 2);
    }

    #[test]
    fn the_error_is_the_mean_of_all_differences() {
        let found = MelFrames::new(&[0.0, 1.0, 2.0, 3.0], 2).unwrap();
        let truth = MelFrames::new(&[0.5, 1.0, 1.0, 3.5], 2).unwrap();
        assert_eq!(mel_error(found, truth), Ok(0.5));
        let short = MelFrames::new(&[0.0, 1.0], 2).unwrap();
        assert!(mel_error(short, truth).is_err());
        assert!(mel_error(MelFrames::new(&[0.0; 4], 4).unwrap(), truth).is_err());
    }
}
