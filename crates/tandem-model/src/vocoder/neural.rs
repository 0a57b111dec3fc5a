//! The neural vocoder: mel frames to samples with a small trained network.
//!
//! In: mel frames. Out: samples. Deterministic. Three steps:
//!
//! 1. [`envelope`]: smooth magnitudes of the mel frames.
//! 2. [`network`]: what the frequency bins have above or below them: harmonics, which mel bands blur.
//! 3. Griffin-Lim ([`SEARCH`]) finds phases for these magnitudes, and brings them back to the mel bands, which are known
//!    exactly.
//!
//! Training is in [`segment`] and [`losses`]; `tandem-train` runs it. Works on long inputs in pieces, so that memory does not
//! grow with the network's layers. Uses rayon's threads and no device but the CPU: it is faster than a copy to a GPU.

pub mod config; // sizes
pub mod envelope; // smooth magnitudes of mel frames
pub mod network; // ConvNeXt blocks over mel frames
pub mod segment; // segments of recordings for training
pub mod losses; // what training lowers
pub mod trained; // a vocoder in a checkpoint

use crate::host_tensor::{floats, host_floats};
use crate::vocoder::griffin_lim::{GriffinLim, GriffinLimConfig};
use crate::vocoder::{Vocoder, VocoderError, check_mel};
use burn::tensor::Device;
use envelope::Envelope;
use losses::LOUDEST;
use network::VocoderNetwork;
use tandem_audio::mel::MelConfig;
use trained::VocoderDocument;

/// Frames that the network reads at a time.
const PIECE: usize = 1024;

/// The search for phases. Not part of training. One fit per iteration is as good as two here: the guide already fits.
pub const SEARCH: GriffinLimConfig = GriffinLimConfig { refits: 1, ..GriffinLimConfig::SPEECH };

/// A trained vocoder, ready for synthesis.
pub struct NeuralVocoder {
    document: VocoderDocument,
    /// Without gradients, on the CPU.
    network: VocoderNetwork,
    envelope: Envelope,
    search: GriffinLim,
}

impl NeuralVocoder {
    pub fn new(
        document: VocoderDocument,
        network: VocoderNetwork,
    ) -> Result<NeuralVocoder, VocoderError> {
        let mel = &document.mel;
        let (envelope, search) = (Envelope::new(mel)?, GriffinLim::new(mel, SEARCH)?);
        Ok(NeuralVocoder { envelope, search, document, network })
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

    /// The magnitudes of the frequency bins. Shapes: `[frames, bands]`, not normalised, to `[frames, bins]`.
    fn magnitudes(&self, mel: &[f32]) -> Vec<f32> {
        let frames = mel.len() / self.document.mel.bands;
        let pieces = (0..frames).step_by(PIECE);
        pieces.flat_map(|start| self.magnitudes_of(mel, start, frames)).collect()
    }

    /// Those of the piece that begins at a frame. It is read with enough context that the result is that of one run.
    fn magnitudes_of(&self, mel: &[f32], start: usize, frames: usize) -> Vec<f32> {
        let (bands, context) = (self.document.mel.bands, self.document.config.context());
        let end = (start + PIECE).min(frames);
        let (from, to) = (start.saturating_sub(context), (end + context).min(frames));
        let input = self.document.scale.normalised(&mel[from * bands..to * bands]);
        let input = floats(input, [1, to - from, bands], &Device::flex());
        let relative = self.network.forward(input).narrow(1, start - from, end - start);
        let envelope = self.envelope.log_magnitudes(&mel[start * bands..end * bands]);
        let pairs = host_floats(relative).into_iter().zip(envelope);
        pairs.map(|(relative, envelope)| (relative + envelope).min(LOUDEST).exp()).collect()
    }
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
        let magnitudes = self.magnitudes(&mel);
        Ok(self.search.guided(magnitudes, &mel))
    }
}

impl std::fmt::Debug for NeuralVocoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NeuralVocoder").field("document", &self.document).finish()
    }
}

#[cfg(test)]
mod tests;
