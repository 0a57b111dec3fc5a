//! Segments of recordings, with everything that a training step of the vocoder needs.
//!
//! In: samples of a recording and the sample to cut at. Out: a [`SegmentBatch`] in host memory, then [`DeviceSegments`].
//! A recording that is too short is followed by silence. Next: [`super::losses`].

use super::config::VocoderConfig;
use super::envelope::Envelope;
use super::losses::QUIETEST;
use crate::mel_scale::MelScale;
use crate::upload::{Pack, Upload};
use crate::vocoder::VocoderError;
use burn::tensor::{Device, Tensor};
use realfft::num_complex::Complex;
use realfft::{RealFftPlanner, RealToComplex};
use std::sync::Arc;
use tandem_audio::Sound;
use tandem_audio::mel::{MelConfig, MelError, MelExtractor, hann_window};
use tandem_units::Bytes;

/// Frames of a segment: 0.74 s at 22 kHz.
pub const SEGMENT_FRAMES: usize = 64;

/// Cuts segments. Owns its tables and scratch memory: one per thread.
pub struct SegmentCutter {
    config: VocoderConfig,
    scale: MelScale,
    extractor: MelExtractor,
    envelope: Envelope,
    window: Vec<f32>,
    forward: Arc<dyn RealToComplex<f32>>,
    block: Vec<f32>,
    spectrum: Vec<Complex<f32>>,
    scratch: Vec<Complex<f32>>,
}

/// Segments in host memory, one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SegmentBatch {
    pub segments: usize,
    /// Normalised: `[segments, frames, bands]`.
    mel: Vec<f32>,
    /// `[segments, frames, bins]`.
    envelope: Vec<f32>,
    /// Log-magnitudes of the recording: `[segments, frames, bins]`.
    truth: Vec<f32>,
}

/// The same on its way to a device, or there. Clones share it.
#[derive(Clone, Debug)]
pub struct UploadedSegments {
    segments: usize,
    arrays: Upload,
}

/// The same on a device.
#[derive(Clone, Debug)]
pub struct DeviceSegments {
    pub segments: usize,
    pub mel: Tensor<3>,
    pub envelope: Tensor<3>,
    pub truth: Tensor<3>,
}

impl SegmentCutter {
    pub fn new(
        config: &VocoderConfig,
        mel: &MelConfig,
        scale: MelScale,
    ) -> Result<SegmentCutter, VocoderError> {
        let forward = RealFftPlanner::new().plan_fft_forward(mel.n_fft);
        Ok(SegmentCutter {
            config: config.clone(),
            scale,
            extractor: MelExtractor::new(mel.clone()).map_err(VocoderError::Settings)?,
            envelope: Envelope::new(mel)?,
            window: hann_window(mel).into_iter().map(|value| value as f32).collect(),
            block: forward.make_input_vec(),
            spectrum: forward.make_output_vec(),
            scratch: forward.make_scratch_vec(),
            forward,
        })
    }

    /// Appends the segment whose first frame is centred at sample `start`.
    pub fn cut(
        &mut self,
        samples: &[f32],
        start: usize,
        batch: &mut SegmentBatch,
    ) -> Result<(), MelError> {
        let (bands, overlap) = (self.config.bands, self.config.overlap());
        let slice = self.slice(samples, start);
        let mel = self.extractor.extract(Sound::F32(&slice))?;
        let mel = &mel.values()[overlap * bands..][..SEGMENT_FRAMES * bands];
        batch.segments += 1;
        batch.mel.extend(self.scale.normalised(mel));
        batch.envelope.extend(self.envelope.log_magnitudes(mel));
        for frame in overlap..overlap + SEGMENT_FRAMES {
            self.push_log_magnitudes(&slice, frame, &mut batch.truth);
        }
        Ok(())
    }

    /// The samples of a segment and of as many hops before and after it as frames overlap.
    fn slice(&self, samples: &[f32], start: usize) -> Vec<f32> {
        let (hop, overlap) = (self.config.hop, self.config.overlap());
        let length = (SEGMENT_FRAMES + 2 * overlap) * hop;
        let start = start as isize - (overlap * hop) as isize;
        let at = |index: isize| usize::try_from(index).ok().and_then(|index| samples.get(index));
        (start..start + length as isize).map(|index| at(index).copied().unwrap_or(0.0)).collect()
    }

    fn push_log_magnitudes(&mut self, slice: &[f32], frame: usize, out: &mut Vec<f32>) {
        let SegmentCutter { config, window, forward, block, spectrum, scratch, .. } = self;
        let samples = &slice[frame * config.hop - config.n_fft / 2..][..config.n_fft];
        let inputs = samples.iter().zip(&*window);
        block.iter_mut().zip(inputs).for_each(|(out, (x, w))| *out = x * w);
        // The lengths are those of the plan, which is all that can be wrong.
        let _ = forward.process_with_scratch(block, spectrum, scratch);
        let log = |value: &Complex<f32>| (0.5 * value.norm_sqr().ln()).max(QUIETEST);
        out.extend(spectrum.iter().map(log));
    }
}

impl SegmentBatch {
    /// Mel frames of all segments.
    pub fn frames(&self) -> usize {
        self.segments * SEGMENT_FRAMES
    }

    /// The size in memory.
    pub fn size(&self) -> Bytes {
        [&self.mel, &self.envelope, &self.truth].map(|part| Bytes::of_slice(part)).into_iter().sum()
    }

    /// Its tensors on a device, for the calling thread.
    pub fn to_device(&self, device: &Device) -> DeviceSegments {
        self.upload(device).tensors()
    }

    /// Starts the copy to a device.
    pub fn upload(&self, device: &Device) -> UploadedSegments {
        let mut arrays = Pack::default();
        for values in [&self.mel, &self.envelope, &self.truth] {
            let width = values.len() / self.frames();
            arrays.floats([self.segments, SEGMENT_FRAMES, width], values.iter().copied());
        }
        UploadedSegments { segments: self.segments, arrays: arrays.upload(device) }
    }
}

impl UploadedSegments {
    /// Its tensors, for the calling thread. Waits for nothing.
    pub fn tensors(&self) -> DeviceSegments {
        let (segments, mut arrays) = (self.segments, self.arrays.tensors());
        let [mel, envelope, truth] = std::array::from_fn(|_| arrays.floats());
        DeviceSegments { segments, mel, envelope, truth }
    }
}

impl DeviceSegments {
    /// The same as inputs of a network with autodiff.
    pub fn autodiff(&self) -> DeviceSegments {
        self.clone().map(Tensor::autodiff)
    }

    fn map(self, change: impl Fn(Tensor<3>) -> Tensor<3>) -> DeviceSegments {
        let DeviceSegments { segments, mel, envelope, truth } = self;
        let [mel, envelope, truth] = [mel, envelope, truth].map(change);
        DeviceSegments { segments, mel, envelope, truth }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocoder::neural::config::VocoderSize;

    const MEL: MelConfig = MelConfig::SPEECH_22K;

    fn cutter() -> SegmentCutter {
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
    fn a_segment_has_the_frames_and_magnitudes_of_its_place() {
        let mut cutter = cutter();
        let sound = tone(140.0, 40_000);
        let whole = MelExtractor::new(MEL).unwrap().extract(Sound::F32(&sound)).unwrap();
        let mut batch = SegmentBatch::default();
        cutter.cut(&sound, 20 * 256, &mut batch).unwrap();
        assert_eq!((batch.segments, batch.frames()), (1, 64));
        for (found, truth) in batch.mel.iter().zip(&whole.values()[20 * 80..]) {
            assert!((found - (truth + 5.0) / 2.0).abs() < 1e-3, "{found} {truth}");
        }
        // The mel filters weigh the same magnitudes; fainter bands have bins below `QUIETEST`.
        let bank = tandem_audio::mel::filterbank(&MEL).unwrap();
        let wanted = &whole.values()[27 * 80..][..80];
        let loud = bank.bands().iter().zip(wanted).filter(|(_, truth)| **truth > -6.0);
        assert!(loud.clone().count() > 20);
        for (band, truth) in loud {
            let bins = batch.truth[7 * 513..][band.range()].iter().zip(band.weights());
            let sum: f64 = bins.map(|(bin, weight)| f64::from(bin.exp()) * weight).sum();
            assert!((sum.ln() as f32 - truth).abs() < 1e-2, "{} {truth}", sum.ln());
        }
    }

    #[test]
    fn a_segment_may_begin_between_two_frames() {
        let sound = tone(140.0, 40_000);
        let (mut later, mut shorter) = (SegmentBatch::default(), SegmentBatch::default());
        cutter().cut(&sound, 20 * 256 + 100, &mut later).unwrap();
        cutter().cut(&sound[100..], 20 * 256, &mut shorter).unwrap();
        assert_eq!(later, shorter);
    }

    #[test]
    fn a_short_recording_is_followed_by_silence() {
        let mut batch = SegmentBatch::default();
        cutter().cut(&tone(140.0, 3000), 0, &mut batch).unwrap();
        assert_eq!(batch.truth.len(), 64 * 513);
        assert!(batch.truth[16 * 513..].iter().all(|&value| value == QUIETEST));
        let device = batch.to_device(&Device::flex());
        assert_eq!(device.envelope.dims(), [1, 64, 513]);
    }
}
