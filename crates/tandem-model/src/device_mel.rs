//! Mel frames on the data device: the same definition as on the host, as tensor operations.
//!
//! In: [`SoundBatch`], samples with reflected padding, row by row. Out: log-mel frames,
//! `[rows, frames, bands]`, with silence as padding. The transform is a product with the windowed
//! Fourier matrix, restricted to the bins that a band uses. This is more arithmetic than an FFT, but
//! GPUs are fastest at matrix products. [`choose_mel_place`] measures whether it is faster.
//! `tandem-train` runs it as a stage.
//!
//! **Tolerance**: [`TOLERANCE`] in the logarithm against the host kernel on speech, tested on flex and
//! on software Vulkan. Both are single precision, so a faint band next to a loud one is only accurate
//! to [`BAND_TOLERANCE`].

mod choice;
mod matrices;
mod sounds;
#[cfg(test)]
mod tests;

pub use choice::{MelChoice, MelPlace, choose_mel_place};
pub use sounds::SoundBatch;

use crate::host_tensor::{floats, ints};
use burn::tensor::{Device, Int, Tensor};
use matrices::Matrices;
use tandem_audio::mel::{MelConfig, MelError};
use tandem_device::backend::{DeviceError, guarded};
use tandem_units::{Bytes, Hint};

/// Largest difference to the host kernel in the logarithm, on speech.
pub const TOLERANCE: f32 = 2e-3;
/// Largest difference to the host kernel in a band before the logarithm, relative to the loudest band
/// of the batch.
pub const BAND_TOLERANCE: f32 = 2e-6;

/// Why the data device computed no mel frames.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DeviceMelError {
    /// The settings or the samples are invalid.
    #[error(transparent)]
    Mel(#[from] MelError),
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl Hint for DeviceMelError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Mel(error) => error.hint(),
            Self::Device(error) => error.hint(),
        }
    }
}

/// Computes mel frames on one device with one configuration. Owns its matrices there.
#[derive(Clone, Debug)]
pub struct DeviceMel {
    config: MelConfig,
    device: Device,
    /// Window and Fourier matrix, cosines before sines: `[n_fft, 2 * bins]`.
    transform: Tensor<2>,
    /// `[bins, bands]`.
    bands: Tensor<2>,
    /// Bins that some band uses.
    bins: usize,
}

impl DeviceMel {
    /// Uploads the matrices.
    pub fn new(config: &MelConfig, device: &Device) -> Result<DeviceMel, DeviceMelError> {
        let Matrices { transform, bands, bins } = Matrices::of(config)?;
        let (n_fft, count) = (config.n_fft, config.bands);
        let (transform, bands) = guarded("uploading the mel matrices", || {
            let transform = floats(transform, [n_fft, 2 * bins], device);
            (transform, floats(bands, [bins, count], device))
        })?;
        Ok(DeviceMel { config: config.clone(), device: device.clone(), transform, bands, bins })
    }

    /// The mel frames of a batch: `[rows, frames, bands]`.
    pub fn extract(&self, sounds: &SoundBatch) -> Result<Tensor<3>, DeviceError> {
        guarded("computing mel frames on the data device", || {
            let samples = floats(
                sounds.samples().to_vec(),
                [sounds.rows(), sounds.row_length()],
                &self.device,
            );
            let counts = ints(sounds.frame_counts().to_vec(), [sounds.rows()], &self.device);
            self.features(samples, counts, sounds.frames())
        })
    }

    /// The memory that one batch needs while it is computed, including the result.
    pub fn workspace(&self, rows: usize, frames: usize) -> Bytes {
        let MelConfig { n_fft, bands, .. } = self.config;
        // Windows, spectrum, squares and their sum, bands before and after the logarithm.
        Bytes((4 * rows * frames * (n_fft + 2 * self.bins + 2 * self.bins + 2 * bands)) as u64)
    }

    /// Shapes: `[rows, samples]`, `[rows]`.
    fn features(&self, samples: Tensor<2>, counts: Tensor<1, Int>, frames: usize) -> Tensor<3> {
        let [rows, _] = samples.dims();
        let (bins, bands) = (self.bins, self.config.bands);
        let windows: Tensor<3> = samples.unfold(1, self.config.n_fft, self.config.hop.0);
        let windows: Tensor<2> = windows.reshape([rows * frames, self.config.n_fft]);
        let spectrum: Tensor<2> = windows.matmul(self.transform.clone());
        let power = spectrum.clone() * spectrum;
        let cosines = power.clone().narrow(1, 0, bins);
        let magnitude = (cosines + power.narrow(1, bins, bins)).sqrt();
        let mel = magnitude.matmul(self.bands.clone()).clamp_min(self.config.floor).log();
        let mel: Tensor<3> = mel.reshape([rows, frames, bands]);
        // Frames after the end of a row still contain its reflection.
        let at: Tensor<1, Int> = Tensor::arange(0..frames as i64, &self.device);
        let padding = at
            .reshape([1, frames])
            .expand([rows, frames])
            .greater_equal(counts.reshape([rows, 1]).expand([rows, frames]));
        mel.mask_fill(
            padding.reshape([rows, frames, 1]).expand([rows, frames, bands]),
            self.config.floor.ln(),
        )
    }
}
