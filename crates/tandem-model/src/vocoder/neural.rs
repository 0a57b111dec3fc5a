//! The neural vocoder: mel frames to samples with a small trained network.
//!
//! In: mel frames. Out: samples. Deterministic. Six steps:
//!
//! 1. [`network`]: the pitch of each frame, from the mel frames alone.
//! 2. [`source`]: pulses at that pitch, and noise.
//! 3. [`envelope`]: smooth magnitudes of the mel frames.
//! 4. [`network`]: filters of pulses and noise, relative to the envelope: magnitudes and a phase.
//! 5. Inverse Fourier transform and overlap-add.
//! 6. Some iterations of Griffin-Lim ([`REFINEMENT`]) from these samples: the network's phases are kept, and the magnitudes
//!    fit the mel frames again, which the network alone does not reach.
//!
//! Training is in [`segment`] and [`losses`]; `tandem-train` runs it. Works on long inputs in pieces, so that memory does
//! not grow with filters of all frames. Uses rayon's threads and no device but the CPU: it is faster than a copy to a GPU.

pub mod config; // sizes
pub mod pitch_bins; // pitch as classes
pub mod source; // pulses and noise
pub mod envelope; // smooth magnitudes of mel frames
pub mod network; // ConvNeXt blocks over mel frames
pub mod segment; // segments of recordings for training
pub mod losses; // what training lowers
pub mod trained; // a vocoder in a checkpoint

use crate::host_tensor::{floats, host_floats};
use crate::vocoder::griffin_lim::{GriffinLim, GriffinLimConfig};
use crate::vocoder::{Vocoder, VocoderError, check_mel, samples_of};
use burn::tensor::{Device, Tensor};
use envelope::Envelope;
use network::{PITCH_FEATURES, VocoderNetwork, pitch_features};
use pitch_bins::{PITCH_OUTPUTS, pitch_of};
use rayon::prelude::*;
use realfft::num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner};
use source::{Source, Spectra};
use std::ops::Range;
use std::sync::Arc;
use tandem_data::audio::mel::{MelConfig, hann_window};
use tandem_units::Seed;
use trained::VocoderDocument;

/// Frames that are synthesized at a time.
const PIECE: usize = 1024;
/// Samples whose squared windows add up to less are silent.
const UNSEEN: f32 = 1e-6;

/// The last step of synthesis. Not part of training.
pub const REFINEMENT: GriffinLimConfig = GriffinLimConfig::SPEECH;

/// A trained vocoder, ready for synthesis.
pub struct NeuralVocoder {
    document: VocoderDocument,
    /// Without gradients, on the CPU.
    network: VocoderNetwork,
    envelope: Envelope,
    source: Source,
    window: Vec<f32>,
    inverse: Arc<dyn ComplexToReal<f32>>,
    refinement: GriffinLim,
}

impl NeuralVocoder {
    pub fn new(
        document: VocoderDocument,
        network: VocoderNetwork,
    ) -> Result<NeuralVocoder, VocoderError> {
        let mel = &document.mel;
        Ok(NeuralVocoder {
            envelope: Envelope::new(mel)?,
            source: Source::new(mel),
            window: hann_window(mel).into_iter().map(|value| value as f32).collect(),
            inverse: RealFftPlanner::new().plan_fft_inverse(mel.n_fft),
            refinement: GriffinLim::new(mel, REFINEMENT)?,
            document,
            network,
        })
    }

    pub fn document(&self) -> &VocoderDocument {
        &self.document
    }

    pub fn network(&self) -> &VocoderNetwork {
        &self.network
    }

    pub fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    /// The pitch of each frame in Hz; none: unvoiced. Shape: `[frames, bands]`, not normalised.
    pub fn pitch(&self, mel: &[f32]) -> Vec<Option<f32>> {
        let outputs = self.in_pieces(mel, |mel, _| self.network.pitch(mel));
        outputs.chunks_exact(PITCH_OUTPUTS).map(pitch_of).collect()
    }

    /// Runs a network over pieces of the frames, each with enough context that the result is that of one run.
    fn in_pieces(
        &self,
        mel: &[f32],
        network: impl Fn(Tensor<3>, Range<usize>) -> Tensor<3>,
    ) -> Vec<f32> {
        let frames = mel.len() / self.document.mel.bands;
        let pieces = (0..frames).step_by(PIECE).map(|start| start..(start + PIECE).min(frames));
        pieces.flat_map(|piece| self.piece(mel, piece, &network)).collect()
    }

    fn piece(
        &self,
        mel: &[f32],
        piece: Range<usize>,
        network: &impl Fn(Tensor<3>, Range<usize>) -> Tensor<3>,
    ) -> Vec<f32> {
        let (bands, context) = (self.document.mel.bands, self.document.config.context());
        let frames = mel.len() / bands;
        let wide = piece.start.saturating_sub(context)..(piece.end + context).min(frames);
        let input = self.document.scale.normalised(&mel[wide.start * bands..wide.end * bands]);
        let input = floats(input, [1, wide.len(), bands], &Device::flex());
        let output = network(input, wide.clone());
        host_floats(output.narrow(1, piece.start - wide.start, piece.len()))
    }

    /// The samples before the refinement. Shape: `[frames, bands]`.
    fn network_samples(&mut self, mel: &[f32]) -> Vec<f32> {
        let settings = self.document.mel.clone();
        let frames = mel.len() / settings.bands;
        let (n_fft, hop) = (settings.n_fft, settings.hop.0);
        let pitch = self.pitch(mel);
        let excitation = self.source.excitation(&pitch, 0.0, Seed(0));
        let mut sum = vec![0.0; (frames - 1) * hop + n_fft];
        let mut weight = vec![0.0; sum.len()];
        for start in (0..frames).step_by(PIECE) {
            let piece = start..(start + PIECE).min(frames);
            let pieces = self.frames_of(mel, piece, &pitch, &excitation);
            for (number, samples) in pieces.iter().enumerate() {
                let at = (start + number) * hop;
                sum[at..][..n_fft].iter_mut().zip(samples).for_each(|(sum, x)| *sum += x);
                let weights = weight[at..][..n_fft].iter_mut().zip(&self.window);
                weights.for_each(|(sum, w)| *sum += w * w);
            }
        }
        let scale = (n_fft as f32).recip();
        let wanted = samples_of(frames, &settings).0;
        let pairs = sum.iter().zip(&weight).skip(n_fft / 2).take(wanted);
        pairs.map(|(&x, &w)| if w > UNSEEN { x * scale / w } else { 0.0 }).collect()
    }

    /// The windowed samples of each frame of a piece.
    fn frames_of(
        &mut self,
        mel: &[f32],
        piece: Range<usize>,
        pitch: &[Option<f32>],
        excitation: &source::Excitation,
    ) -> Vec<Vec<f32>> {
        let (bands, bins) = (self.document.mel.bands, self.document.config.bins());
        let filters = self.piece(mel, piece.clone(), &|mel, wide| {
            let features: Vec<f32> =
                pitch[wide.clone()].iter().copied().flat_map(pitch_features).collect();
            let pitch = floats(features, [1, wide.len(), PITCH_FEATURES], &Device::flex());
            self.network.filters(mel, pitch)
        });
        let pulses = self.source.transform(&excitation.pulses, piece.clone());
        let noise = self.source.transform(&excitation.noise, piece.clone());
        let envelope = self.envelope.log_magnitudes(&mel[piece.start * bands..piece.end * bands]);
        let (inverse, window) = (&self.inverse, &self.window);
        let one = |(spectrum, scratch): &mut (Vec<Complex<f32>>, Vec<Complex<f32>>),
                   frame: usize| {
            let at = |all: &[f32]| frame * bins..frame * bins + bins.min(all.len());
            let filters = &filters[frame * 3 * bins..][..3 * bins];
            combine(filters, &envelope[at(&envelope)], [&pulses, &noise], frame * bins, spectrum);
            let mut samples = inverse.make_output_vec();
            // The lengths are those of the plan, which is all that can be wrong.
            let _ = inverse.process_with_scratch(spectrum, &mut samples, scratch);
            samples.iter_mut().zip(window).for_each(|(sample, weight)| *sample *= weight);
            samples
        };
        let memory = || (inverse.make_input_vec(), inverse.make_scratch_vec());
        (0..piece.len()).into_par_iter().map_init(memory, one).collect()
    }
}

/// The spectrum of one frame; as `losses::samples` does for training.
fn combine(
    filters: &[f32],
    envelope: &[f32],
    [pulses, noise]: [&Spectra; 2],
    from: usize,
    spectrum: &mut [Complex<f32>],
) {
    let bins = spectrum.len();
    for (bin, value) in spectrum.iter_mut().enumerate() {
        let size = |filter: f32| (filter + envelope[bin]).min(losses::loudest()).exp();
        let (sin, cos) = filters[bins + bin].sin_cos();
        let pulse = Complex::new(cos, sin) * size(filters[bin]);
        let pulses = Complex::new(pulses.re[from + bin], pulses.im[from + bin]);
        let noise = Complex::new(noise.re[from + bin], noise.im[from + bin]);
        *value = pulse * pulses + noise * size(filters[2 * bins + bin]);
    }
    spectrum[0].im = 0.0;
    spectrum[bins - 1].im = 0.0;
}

impl Vocoder for NeuralVocoder {
    fn mel(&self) -> &MelConfig {
        &self.document.mel
    }

    fn synthesize(&mut self, mel: &[f32]) -> Result<Vec<f32>, VocoderError> {
        let settings = &self.document.mel;
        check_mel(mel, settings.bands)?;
        // A voice may predict less than silence; the network never saw that.
        let floor = settings.floor.ln();
        let mel: Vec<f32> = mel.iter().map(|value| value.max(floor)).collect();
        let samples = self.network_samples(&mel);
        Ok(self.refinement.refine(&samples, &mel))
    }
}

impl std::fmt::Debug for NeuralVocoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NeuralVocoder").field("document", &self.document).finish()
    }
}

#[cfg(test)]
mod tests;
