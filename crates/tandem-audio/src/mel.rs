//! Computes log-mel frames from samples: the features of the model.
//!
//! In: [`Sound`] at the configured rate. Out: log-mel values, `[frames, bands]`, written directly
//! into the caller's memory. Opens no file, starts no thread, allocates nothing after the first
//! call. [`MelConfig`] has the definition; all kernels compute the same.
//! Next on the path: the cache.

mod butterfly;
mod config;
mod fast;
mod filterbank;
mod general;
mod kernel;
mod lanes;
mod padding;
mod plan;
#[doc(hidden)]
pub mod reference;
mod tile;

pub use config::{MEL_VERSION, MelConfig, MelError};
pub use filterbank::{Band, Filterbank, filterbank, hann_window, hz_of_mel, mel_of_hz};
pub use kernel::MelKernel;
pub use padding::reflected;

use super::Sound;
use kernel::Engine;
use tandem_units::{Frames, Samples};

/// The square of a larger sample would overflow single precision; full scale is one.
const LARGEST_SAMPLE: f32 = 1e15;

/// Log-mel features of one recording. Shape: `[frames, bands]`, frame after frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Mel {
    bands: usize,
    values: Vec<f32>,
}

impl Mel {
    pub fn frames(&self) -> Frames {
        Frames(self.values.len() / self.bands)
    }

    pub fn bands(&self) -> usize {
        self.bands
    }

    /// All values, frame after frame.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The frames in order, each a slice of its bands.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.values.chunks_exact(self.bands)
    }

    pub fn into_values(self) -> Vec<f32> {
        self.values
    }
}

/// Computes mel features with one setting. Owns its tables and scratch memory: one per thread.
pub struct MelExtractor {
    config: MelConfig,
    engine: Engine,
}

impl MelExtractor {
    /// Uses the fastest kernel for this CPU and these settings.
    pub fn new(config: MelConfig) -> Result<Self, MelError> {
        let kernel = MelKernel::best_for(&config);
        Self::with_kernel(config, kernel)
    }

    /// Uses the given kernel; an error if it cannot run here.
    pub fn with_kernel(config: MelConfig, kernel: MelKernel) -> Result<Self, MelError> {
        config.validate()?;
        let engine = Engine::new(&config, kernel)?;
        Ok(Self { config, engine })
    }

    pub fn config(&self) -> &MelConfig {
        &self.config
    }

    pub fn kernel(&self) -> MelKernel {
        self.engine.kernel()
    }

    pub fn frames(&self, samples: Samples) -> Frames {
        self.config.frames(samples)
    }

    /// Writes the features into a slice of exactly frames times bands values, which may be part
    /// of a padded batch. Shape: `[frames, bands]`.
    pub fn extract_into(&mut self, sound: Sound<'_>, out: &mut [f32]) -> Result<Frames, MelError> {
        if sound.is_empty() {
            return Err(MelError::Empty);
        }
        let frames = self.frames(sound.len());
        let expected = frames.0 * self.config.bands;
        if out.len() != expected {
            return Err(MelError::Room { found: out.len(), expected });
        }
        if let Sound::F32(samples) = sound {
            check_samples(samples)?;
        }
        self.engine.run(sound, out);
        Ok(frames)
    }

    pub fn extract(&mut self, sound: Sound<'_>) -> Result<Mel, MelError> {
        let bands = self.config.bands;
        let mut values = vec![0.0; self.frames(sound.len()).0 * bands];
        self.extract_into(sound, &mut values)?;
        Ok(Mel { bands, values })
    }
}

impl std::fmt::Debug for MelExtractor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (config, kernel) = (&self.config, self.kernel());
        f.debug_struct("MelExtractor").field("config", config).field("kernel", &kernel).finish()
    }
}

/// Refuses samples that would give non-finite features.
fn check_samples(samples: &[f32]) -> Result<(), MelError> {
    const PART: usize = 1024;
    // NaN fails the comparison. Whole chunks first: this loop is vectorised.
    let usable = |sample: &f32| sample.abs() <= LARGEST_SAMPLE;
    for (part, values) in samples.chunks(PART).enumerate() {
        if values.iter().fold(0, |bad, sample| bad | u32::from(!usable(sample))) == 0 {
            continue;
        }
        let index = values.iter().position(|sample| !usable(sample)).unwrap_or(0);
        return Err(MelError::Sample { index: part * PART + index, value: values[index] });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
