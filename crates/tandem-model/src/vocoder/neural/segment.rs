//! Segments of recordings, with everything that a training step of the vocoder needs.
//!
//! In: samples of a recording and the frame to cut at. Out: a [`SegmentBatch`] in host memory, then [`DeviceSegments`].
//! Pitch and excitation are computed here, on the host: no gradient flows to them. A recording that is too short is
//! followed by silence. Next: [`super::losses`].

use super::config::VocoderConfig;
use super::envelope::Envelope;
use super::network::pitch_features;
use super::pitch_bins::{PITCH_BINS, target_of};
use super::source::Source;
use crate::host_tensor::floats;
use crate::mel_scale::MelScale;
use crate::metrics::MetricError;
use crate::metrics::pitch::{PitchConfig, PitchTrack};
use crate::vocoder::VocoderError;
use burn::tensor::{Device, Tensor};
use tandem_data::audio::Sound;
use tandem_data::audio::mel::{MelConfig, MelError, MelExtractor};
use tandem_units::{Bytes, Hint, Seed};

/// Hops with full overlap in a segment: at 22 kHz 16384 samples, a multiple of every hop of the loss.
pub const SEGMENT_HOPS: usize = 64;

/// Cuts segments. Owns its tables and scratch memory: one per thread.
pub struct SegmentCutter {
    config: VocoderConfig,
    scale: MelScale,
    extractor: MelExtractor,
    envelope: Envelope,
    source: Source,
    pitch: PitchConfig,
}

/// Segments in host memory, one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SegmentBatch {
    pub segments: usize,
    /// Frames of each segment.
    pub frames: usize,
    /// Normalised: `[segments, frames, bands]`.
    mel: Vec<f32>,
    /// `[segments, frames, bins]`.
    envelope: Vec<f32>,
    /// `[segments, frames, PITCH_FEATURES]`.
    pitch: Vec<f32>,
    /// Probability of each pitch class, zero in unvoiced frames: `[segments, frames, PITCH_BINS]`.
    pitch_target: Vec<f32>,
    /// One in voiced frames: `[segments, frames]`.
    voiced: Vec<f32>,
    /// Spectra of pulses and noise, real and imaginary parts: `[segments, frames, bins]` each.
    source: [Vec<f32>; 4],
    /// The samples that all of their frames cover: `[segments, samples]`.
    truth: Vec<f32>,
}

/// The same on a device.
#[derive(Clone, Debug)]
pub struct DeviceSegments {
    pub segments: usize,
    pub mel: Tensor<3>,
    pub envelope: Tensor<3>,
    pub pitch: Tensor<3>,
    pub pitch_target: Tensor<3>,
    pub voiced: Tensor<2>,
    pub source: [Tensor<3>; 4],
    pub truth: Tensor<2>,
}

/// Why a segment cannot be cut.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    #[error(transparent)]
    Mel(#[from] MelError),
    #[error(transparent)]
    Pitch(#[from] MetricError),
}

impl Hint for SegmentError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Mel(error) => error.hint(),
            Self::Pitch(_) => Some("decode the recording again or remove it: it is damaged".into()),
        }
    }
}

impl SegmentCutter {
    pub fn new(
        config: &VocoderConfig,
        mel: &MelConfig,
        scale: MelScale,
    ) -> Result<SegmentCutter, VocoderError> {
        Ok(SegmentCutter {
            config: config.clone(),
            scale,
            extractor: MelExtractor::new(mel.clone()).map_err(VocoderError::Settings)?,
            envelope: Envelope::new(mel)?,
            source: Source::new(mel),
            pitch: PitchConfig { rate: mel.rate, hop: mel.hop, ..PitchConfig::SPEECH_22K },
        })
    }

    /// Frames of a segment.
    pub fn frames(&self) -> usize {
        SEGMENT_HOPS + self.config.overlap() - 1
    }

    /// Appends the segment that begins at frame `first`. The seed decides the noise and the place of the pulses.
    pub fn cut(
        &mut self,
        samples: &[f32],
        first: usize,
        seed: Seed,
        batch: &mut SegmentBatch,
    ) -> Result<(), SegmentError> {
        let (hop, frames, overlap) = (self.config.hop, self.frames(), self.config.overlap());
        let slice = self.slice(samples, first);
        let mel = self.extractor.extract(Sound::F32(&slice))?;
        let bands = self.config.bands;
        let mel = &mel.values()[overlap * bands..][..frames * bands];
        let pitch = self.pitch_of(&slice)?;
        let phase = (seed.derive(1).0 >> 40) as f32 / (1u64 << 24) as f32;
        let source = self.source.excitation(&pitch, phase, seed.derive(2));
        let pulses = self.source.transform(&source.pulses, 0..frames);
        let noise = self.source.transform(&source.noise, 0..frames);

        (batch.segments, batch.frames) = (batch.segments + 1, frames);
        batch.mel.extend(self.scale.normalised(mel));
        batch.envelope.extend(self.envelope.log_magnitudes(mel));
        for hertz in &pitch {
            batch.pitch.extend(pitch_features(*hertz));
            let from = batch.pitch_target.len();
            batch.pitch_target.resize(from + PITCH_BINS, 0.0);
            if let Some(hertz) = hertz {
                target_of(*hertz, &mut batch.pitch_target[from..]);
            }
            batch.voiced.push(if hertz.is_some() { 1.0 } else { 0.0 });
        }
        let parts = [pulses.re, pulses.im, noise.re, noise.im];
        batch.source.iter_mut().zip(parts).for_each(|(all, part)| all.extend(part));
        // Hop `overlap - 1` is the first that all frames of the segment cover.
        let from = (2 * overlap - 1) * hop - self.config.n_fft / 2;
        batch.truth.extend_from_slice(&slice[from..][..SEGMENT_HOPS * hop]);
        Ok(())
    }

    /// The samples of a segment and of as many hops before and after it as frames overlap.
    fn slice(&self, samples: &[f32], first: usize) -> Vec<f32> {
        let (hop, overlap) = (self.config.hop, self.config.overlap());
        let length = (self.frames() + 2 * overlap) * hop;
        let start = (first * hop) as isize - (overlap * hop) as isize;
        let at = |index: isize| usize::try_from(index).ok().and_then(|index| samples.get(index));
        (start..start + length as isize).map(|index| at(index).copied().unwrap_or(0.0)).collect()
    }

    /// The pitch at the centre of each frame of the segment.
    fn pitch_of(&self, slice: &[f32]) -> Result<Vec<Option<f32>>, MetricError> {
        let half = (self.pitch.rate.0 as f32 / self.pitch.lowest).ceil() as usize;
        let first = self.config.overlap() * self.config.hop;
        let mut track = PitchTrack::of(&slice[first.saturating_sub(half)..], &self.pitch)?.hertz;
        track.resize(self.frames(), None);
        Ok(track)
    }
}

impl SegmentBatch {
    /// The size in memory.
    pub fn size(&self) -> Bytes {
        let SegmentBatch { mel, envelope, pitch, pitch_target, voiced, source, truth, .. } = self;
        let parts = [mel, envelope, pitch, pitch_target, voiced, truth];
        parts.into_iter().chain(source).map(|part| Bytes::of_slice(part)).sum()
    }

    pub fn to_device(&self, device: &Device) -> DeviceSegments {
        let (segments, frames) = (self.segments, self.frames);
        let three = |values: &Vec<f32>| -> Tensor<3> {
            let width = values.len() / (segments * frames);
            floats(values.clone(), [segments, frames, width], device)
        };
        DeviceSegments {
            segments,
            mel: three(&self.mel),
            envelope: three(&self.envelope),
            pitch: three(&self.pitch),
            pitch_target: three(&self.pitch_target),
            voiced: floats(self.voiced.clone(), [segments, frames], device),
            source: std::array::from_fn(|part| three(&self.source[part])),
            truth: floats(self.truth.clone(), [segments, self.truth.len() / segments], device),
        }
    }
}

impl DeviceSegments {
    /// A copy on another device.
    pub fn to_device(self, device: &Device) -> DeviceSegments {
        DeviceSegments {
            segments: self.segments,
            mel: self.mel.to_device(device),
            envelope: self.envelope.to_device(device),
            pitch: self.pitch.to_device(device),
            pitch_target: self.pitch_target.to_device(device),
            voiced: self.voiced.to_device(device),
            source: self.source.map(|part| part.to_device(device)),
            truth: self.truth.to_device(device),
        }
    }

    /// The same as inputs of a network with autodiff.
    pub fn autodiff(&self) -> DeviceSegments {
        let on = |tensor: &Tensor<3>| tensor.clone().autodiff();
        DeviceSegments {
            segments: self.segments,
            mel: on(&self.mel),
            envelope: on(&self.envelope),
            pitch: on(&self.pitch),
            pitch_target: on(&self.pitch_target),
            voiced: self.voiced.clone().autodiff(),
            source: std::array::from_fn(|part| on(&self.source[part])),
            truth: self.truth.clone().autodiff(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocoder::neural::config::VocoderSize;
    use crate::vocoder::neural::network::PITCH_FEATURES;

    const MEL: MelConfig = MelConfig::SPEECH_22K;

    pub fn cutter() -> SegmentCutter {
        let config = VocoderConfig::of(VocoderSize::Micro, &MEL).unwrap();
        SegmentCutter::new(&config, &MEL, MelScale { mean: -5.0, deviation: 2.0, level: None })
            .unwrap()
    }

    fn tone(hertz: f32, length: usize) -> Vec<f32> {
        let sample = |i: usize| {
            let turn = std::f32::consts::TAU * hertz * i as f32 / 22050.0;
            (1..10).map(|h| (turn * h as f32).sin() / h as f32).sum::<f32>() * 0.2
        };
        (0..length).map(sample).collect()
    }

    #[test]
    fn a_segment_has_the_frames_and_samples_of_its_place() {
        let mut cutter = cutter();
        let sound = tone(140.0, 40_000);
        let whole = MelExtractor::new(MEL).unwrap().extract(Sound::F32(&sound)).unwrap();
        let mut batch = SegmentBatch::default();
        cutter.cut(&sound, 20, Seed(1), &mut batch).unwrap();
        assert_eq!((batch.segments, batch.frames), (1, 67));
        for (found, truth) in batch.mel.iter().zip(&whole.values()[20 * 80..]) {
            assert!((found - (truth + 5.0) / 2.0).abs() < 1e-3, "{found} {truth}");
        }
        // Frame 20 begins at sample 20 * 256 - 512; three hops later all frames overlap.
        assert_eq!(batch.truth, &sound[20 * 256 - 512 + 768..][..64 * 256]);
        assert!(batch.voiced.iter().all(|&voiced| voiced == 1.0));
        assert!((batch.pitch[1] - (140f32 / 150.0).log2()).abs() < 0.01);
    }

    #[test]
    fn a_short_recording_is_followed_by_silence() {
        let mut batch = SegmentBatch::default();
        cutter().cut(&tone(140.0, 3000), 0, Seed(1), &mut batch).unwrap();
        assert_eq!(batch.truth.len(), 64 * 256);
        assert!(batch.truth[4000..].iter().all(|&sample| sample == 0.0));
        let device = batch.to_device(&Device::flex());
        assert_eq!(device.envelope.dims(), [1, 67, 513]);
        assert_eq!(device.pitch.dims(), [1, 67, PITCH_FEATURES]);
    }
}
