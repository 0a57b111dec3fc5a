//! The mel settings of the whole program, and their validation.
//!
//! Training, reference audio, synthesis and the cache key all read the same [`MelConfig`].
//! Computes nothing. Next on the path: [`mod@super::filterbank`].

use serde::{Deserialize, Serialize};
use tandem_settings::{Range, settings};
use tandem_units::{Frames, Hint, Hop, SampleRate, Samples};

/// Incremented when features change for the same settings, so that cached features are computed
/// again.
pub const MEL_VERSION: u32 = 1;

/// A larger transform is surely a mistake in the settings.
const LARGEST_TRANSFORM: usize = 1 << 16;

settings! {
    /// How samples become mel frames. The full definition:
    ///
    /// 1. The signal is padded by `n_fft / 2` samples on both sides by reflection without
    ///    repeating the edge sample. A signal shorter than that is reflected repeatedly (as
    ///    `numpy.pad` does with `mode="reflect"`); a single sample is repeated.
    /// 2. Frame `t` is the `n_fft` padded samples from `t * hop` on; there are
    ///    `samples / hop + 1` of them.
    /// 3. Each is multiplied by a periodic Hann window of `window` samples, centred in `n_fft`.
    /// 4. Magnitude of the Fourier transform, power 1 (not 2).
    /// 5. `bands` triangular filters on the Slaney mel scale from `low` to `high`, each with area
    ///    norm (Slaney norm). Not HTK: the two differ by whole units after the logarithm.
    /// 6. `ln(max(x, floor))`.
    ///
    /// Agrees with `librosa.feature.melspectrogram(power=1, center=True, pad_mode="reflect",
    /// htk=False, norm="slaney")` followed by `numpy.log(numpy.maximum(mel, floor))` to within
    /// 1e-3 in every value and 1e-5 on average (3e-5 for a pure tone); `tests/mel_goldens.rs` checks it.
    /// The same bounds hold against double precision, with one exception of every single-precision
    /// transform: next to a full-scale tone without noise, a faint band has an error of 5e-7 before the
    /// logarithm, which is up to 5e-2 after it at the floor.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct MelConfig in "mel" {
        /// Sample rate of the features in Hz; recordings of other rates are resampled
        rate: SampleRate = MelConfig::SPEECH_22K.rate, "" { myxtts: &["dm.sample_rate"] }
        /// Size of the Fourier transform in samples; even
        n_fft: usize = MelConfig::SPEECH_22K.n_fft, "" { myxtts: &["m.n_fft", "d.n_fft"] }
        /// Length of the Hann window in samples; at most `n_fft`
        window: usize = MelConfig::SPEECH_22K.window, "" {
            myxtts: &["m.win_length", "d.win_length"],
        }
        /// Hop size in samples; at most `n_fft`
        hop: Hop = MelConfig::SPEECH_22K.hop, "" {
            range: Range::AtLeastOne,
            myxtts: &["m.hop_length", "d.hop_length"],
        }
        /// Number of mel bands; at most half of `n_fft`
        bands: usize = MelConfig::SPEECH_22K.bands, "" {
            range: Range::AtLeastOne,
            myxtts: &["m.n_mels", "d.n_mels"],
        }
        /// Lower edge of the lowest band, in Hz; below `high`
        low: f32 = MelConfig::SPEECH_22K.low, "" { range: Range::FromZero, myxtts: &["dm.fmin"] }
        /// Upper edge of the highest band, in Hz; at most half the rate
        high: f32 = MelConfig::SPEECH_22K.high, "" { range: Range::AboveZero, myxtts: &["dm.fmax"] }
        /// Smallest value of a band before the logarithm
        floor: f32 = MelConfig::SPEECH_22K.floor, "" { range: Range::AboveZeroTo(1.0) }
    }
}

impl MelConfig {
    /// The default: 22.05 kHz speech, 80 bands over the whole range.
    pub const SPEECH_22K: MelConfig = MelConfig {
        rate: SampleRate(22050),
        n_fft: 1024,
        window: 1024,
        hop: Hop(256),
        bands: 80,
        low: 0.0,
        high: 11025.0,
        floor: 1e-5,
    };

    /// Checks that features can be computed with these settings.
    pub fn validate(&self) -> Result<(), MelError> {
        let n_fft = self.n_fft;
        if n_fft < 2 || !n_fft.is_multiple_of(2) || n_fft > LARGEST_TRANSFORM {
            return Err(MelError::Transform { n_fft });
        }
        if self.window < 2 || self.window > n_fft {
            return Err(MelError::Window { window: self.window, n_fft });
        }
        if self.hop.0 == 0 || self.hop.0 > n_fft {
            return Err(MelError::Hop { hop: self.hop.0, n_fft });
        }
        if self.bands == 0 || self.bands > n_fft / 2 {
            return Err(MelError::Bands { bands: self.bands, most: n_fft / 2 });
        }
        let nyquist = self.rate.0 as f32 / 2.0;
        // Written so that NaN fails too.
        if !(self.low >= 0.0 && self.low < self.high && self.high <= nyquist) {
            return Err(MelError::Range { low: self.low, high: self.high, nyquist });
        }
        if !(self.floor.is_normal() && self.floor > 0.0 && self.floor <= 1.0) {
            return Err(MelError::Floor { floor: self.floor });
        }
        Ok(())
    }

    /// Frames of a signal: one more than whole hops, because of the padding.
    pub fn frames(&self, samples: Samples) -> Frames {
        self.hop.frames(samples)
    }

    /// Everything that changes a feature's bytes, as text for a cache key.
    ///
    /// Floats are written as bits: two settings share a fingerprint only if they are identical.
    pub fn fingerprint(&self) -> String {
        let Self { rate, n_fft, window, hop, bands, low, high, floor } = self;
        format!(
            "mel v{MEL_VERSION} rate={} n_fft={n_fft} window={window} hop={} bands={bands} \
             low={:08x} high={:08x} floor={:08x} hann-periodic centre-reflect power1 slaney ln",
            rate.0,
            hop.0,
            low.to_bits(),
            high.to_bits(),
            floor.to_bits(),
        )
    }
}

/// Why mel features cannot be computed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MelError {
    /// The transform size is odd, zero or too large.
    #[error("a transform of {n_fft} points cannot be used")]
    Transform { n_fft: usize },
    /// The window does not fit into the transform.
    #[error("a window of {window} samples does not fit a transform of {n_fft} points")]
    Window { window: usize, n_fft: usize },
    /// The hop is zero, or so long that samples between frames would be lost.
    #[error("a hop of {hop} samples does not fit a transform of {n_fft} points")]
    Hop { hop: usize, n_fft: usize },
    /// No bands, or more bands than frequency bins.
    #[error("{bands} mel bands are not possible, at most {most} with this transform")]
    Bands { bands: usize, most: usize },
    /// The band edges are out of order or beyond half the sample rate.
    #[error("mel bands cannot reach from {low} Hz to {high} Hz (half the rate is {nyquist} Hz)")]
    Range {
        low: f32,
        high: f32,
        /// Half the sample rate.
        nyquist: f32,
    },
    /// The floor under the logarithm is no small positive number.
    #[error("a floor of {floor} under the logarithm cannot be used")]
    Floor { floor: f32 },
    #[error("the recording has no samples")]
    Empty,
    /// A sample is NaN, infinite or far beyond full scale.
    #[error("sample {index} is NaN, infinite or far above full scale ({value})")]
    Sample { index: usize, value: f32 },
    /// The caller's slice has another size than the features.
    #[error("room for {found} values, but the features have {expected}")]
    Room { found: usize, expected: usize },
    /// The given kernel cannot run on this CPU or with these settings.
    #[error("the {kernel} mel kernel cannot be used: {why}")]
    Kernel { kernel: &'static str, why: &'static str },
}

impl Hint for MelError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Transform { .. } => {
                format!("set `n_fft` to an even number up to {LARGEST_TRANSFORM}; 1024 is usual")
            }
            Self::Window { n_fft, .. } => format!("set `window` from 2 to {n_fft} (= `n_fft`)"),
            Self::Hop { n_fft, .. } => {
                format!("set `hop` from 1 to {n_fft}; a quarter of `n_fft` is usual")
            }
            Self::Bands { most, .. } => format!("set `bands` from 1 to {most}; 80 is usual"),
            Self::Range { nyquist, .. } => {
                format!("set `low` below `high`, and `high` to at most {nyquist}")
            }
            Self::Floor { .. } => "set `floor` to a small positive number; 1e-5 is usual".into(),
            Self::Empty => "remove the recording from the manifest, or record it again".into(),
            Self::Sample { .. } => "decode the recording again or remove it: it is damaged".into(),
            Self::Room { expected, .. } => {
                format!("pass a slice of exactly {expected} values: frames times bands")
            }
            Self::Kernel { .. } => "leave the choice of the kernel to the program".into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEECH: MelConfig = MelConfig::SPEECH_22K;

    #[track_caller]
    fn check(config: MelConfig, fact: &str) {
        let error = config.validate().expect_err(fact);
        assert!(error.to_string().contains(fact), "`{error}` does not say `{fact}`");
        assert!(error.hint().is_some_and(|hint| hint.starts_with("set `")), "{error:?}");
    }

    #[test]
    fn the_preset_is_valid_and_is_the_default() {
        assert_eq!(SPEECH.validate(), Ok(()));
        assert_eq!(MelConfig::default(), SPEECH);
    }

    #[test]
    fn invalid_settings_are_refused_with_a_hint() {
        check(MelConfig { n_fft: 0, ..SPEECH }, "0 points");
        check(MelConfig { n_fft: 1023, ..SPEECH }, "1023 points");
        check(MelConfig { n_fft: 1 << 20, ..SPEECH }, "1048576 points");
        check(MelConfig { window: 2048, ..SPEECH }, "window of 2048");
        check(MelConfig { window: 0, ..SPEECH }, "window of 0");
        check(MelConfig { hop: Hop(0), ..SPEECH }, "hop of 0");
        check(MelConfig { hop: Hop(1025), ..SPEECH }, "hop of 1025");
        check(MelConfig { bands: 0, ..SPEECH }, "0 mel bands");
        check(MelConfig { bands: 513, ..SPEECH }, "513 mel bands");
        check(MelConfig { low: 9000.0, high: 8000.0, ..SPEECH }, "9000 Hz to 8000 Hz");
        check(MelConfig { high: 12000.0, ..SPEECH }, "12000 Hz");
        check(MelConfig { low: f32::NAN, ..SPEECH }, "NaN Hz");
        check(MelConfig { floor: 0.0, ..SPEECH }, "floor of 0");
        check(MelConfig { floor: f32::INFINITY, ..SPEECH }, "floor of inf");
    }

    #[test]
    fn an_unknown_setting_is_an_error() {
        let mut text = serde_json::to_value(SPEECH).unwrap();
        assert_eq!(serde_json::from_value::<MelConfig>(text.clone()).unwrap(), SPEECH);
        text["n_mels"] = 80.into();
        let error = serde_json::from_value::<MelConfig>(text).unwrap_err();
        assert!(error.to_string().contains("n_mels"), "{error}");
    }

    #[test]
    fn every_setting_changes_the_fingerprint() {
        let variants = [
            SPEECH,
            MelConfig { rate: SampleRate(24000), ..SPEECH },
            MelConfig { n_fft: 2048, ..SPEECH },
            MelConfig { window: 800, ..SPEECH },
            MelConfig { hop: Hop(200), ..SPEECH },
            MelConfig { bands: 100, ..SPEECH },
            MelConfig { low: 20.0, ..SPEECH },
            MelConfig { high: 8000.0, ..SPEECH },
            MelConfig { floor: 1e-6, ..SPEECH },
        ];
        let prints: std::collections::HashSet<String> =
            variants.iter().map(MelConfig::fingerprint).collect();
        assert_eq!(prints.len(), variants.len());
        assert!(SPEECH.fingerprint().starts_with(&format!("mel v{MEL_VERSION} ")));
    }
}
