//! The dimensions of a neural vocoder.
//!
//! In: a size by name and the mel settings. Out: [`VocoderConfig`], from which every module takes its widths.

use crate::vocoder::VocoderError;
use serde::{Deserialize, Serialize};
use tandem_audio::mel::MelConfig;

/// The number of parameters, by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VocoderSize {
    /// About 1 million parameters: learns the demo corpus on a CPU.
    #[default]
    Tiny,
    /// About 4 million.
    Small,
    /// About ten thousand: too small for speech, for tests.
    Micro,
}

impl VocoderSize {
    /// All sizes that are useful for training, smallest first.
    pub const ALL: [VocoderSize; 2] = [VocoderSize::Tiny, VocoderSize::Small];

    /// The value of `--size`.
    pub fn name(self) -> &'static str {
        match self {
            VocoderSize::Tiny => "tiny",
            VocoderSize::Small => "small",
            VocoderSize::Micro => "micro",
        }
    }
}

/// The dimensions of a neural vocoder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VocoderConfig {
    /// Mel bands.
    pub bands: usize,
    /// Points of the Fourier transform.
    pub n_fft: usize,
    /// Samples from one frame to the next.
    pub hop: usize,
    /// Width of the network.
    pub width: usize,
    pub blocks: usize,
}

impl VocoderConfig {
    /// The dimensions of a named size, for mel frames of these settings.
    pub fn of(size: VocoderSize, mel: &MelConfig) -> Result<VocoderConfig, VocoderError> {
        check_mel_settings(mel)?;
        let (width, blocks) = match size {
            VocoderSize::Tiny => (192, 5),
            VocoderSize::Small => (320, 6),
            VocoderSize::Micro => (16, 1),
        };
        let (bands, n_fft, hop) = (mel.bands, mel.n_fft, mel.hop.0);
        Ok(VocoderConfig { bands, n_fft, hop, width, blocks })
    }

    /// Frequency bins of a frame.
    pub fn bins(&self) -> usize {
        self.n_fft / 2 + 1
    }

    /// Frames that overlap at a sample.
    pub fn overlap(&self) -> usize {
        self.n_fft / self.hop
    }

    /// Frames on each side of a frame that its output depends on.
    pub fn context(&self) -> usize {
        self.blocks * (super::network::KERNEL / 2) + 1
    }
}

/// Frames must overlap at least four times, and the window must fill the transform: the inverse transform adds them up.
fn check_mel_settings(mel: &MelConfig) -> Result<(), VocoderError> {
    mel.validate().map_err(VocoderError::Settings)?;
    let refuse = |key, value: usize, expected| {
        Err(VocoderError::Setting { key, value: value.to_string(), expected })
    };
    if mel.window != mel.n_fft {
        return refuse("mel.window", mel.window, "the value of `mel.n_fft` for a neural vocoder");
    }
    if !mel.n_fft.is_multiple_of(mel.hop.0) || mel.n_fft / mel.hop.0 < 4 {
        let expected = "a divisor of `mel.n_fft`, at most a quarter of it, for a neural vocoder";
        return refuse("mel.hop", mel.hop.0, expected);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_units::Hop;

    #[test]
    fn settings_without_enough_overlap_are_refused() {
        let speech = MelConfig::SPEECH_22K;
        assert!(VocoderConfig::of(VocoderSize::Tiny, &speech).is_ok());
        for mel in [
            MelConfig { hop: Hop(300), ..speech.clone() },
            MelConfig { hop: Hop(512), ..speech.clone() },
            MelConfig { window: 800, ..speech.clone() },
        ] {
            let error = VocoderConfig::of(VocoderSize::Tiny, &mel).unwrap_err();
            assert!(error.to_string().contains("for a neural vocoder"), "{error}");
        }
    }
}
