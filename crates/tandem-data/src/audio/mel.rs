//! Samples to mel frames: the features the model learns from and speaks in.
//!
//! In: [`Sound`] at the configured rate. Out: log-mel values, `[frames, bands]`, written straight
//! into the caller's memory. Opens no file, starts no thread, allocates nothing after the first
//! call. The definition is that of [`MelConfig`]; all kernels compute the same.
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

/// Beyond this a square would leave single precision; full scale is one.
const LARGEST_SAMPLE: f32 = 1e15;

/// Log-mel features of one recording. Shape: `[frames, bands]`, frame after frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Mel {
    bands: usize,
    values: Vec<f32>,
}

impl Mel {
    /// Number of frames.
    pub fn frames(&self) -> Frames {
        Frames(self.values.len() / self.bands)
    }

    /// Bands per frame.
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

    /// The values, given away.
    pub fn into_values(self) -> Vec<f32> {
        self.values
    }
}

/// Makes mel features with one setting. Owns its tables and scratch: one per thread.
pub struct MelExtractor {
    config: MelConfig,
    engine: Engine,
}

impl MelExtractor {
    /// With the fastest kernel that this CPU and these settings allow.
    pub fn new(config: MelConfig) -> Result<Self, MelError> {
        let kernel = MelKernel::best_for(&config);
        Self::with_kernel(config, kernel)
    }

    /// With the kernel named; an error if it cannot run here.
    pub fn with_kernel(config: MelConfig, kernel: MelKernel) -> Result<Self, MelError> {
        config.validate()?;
        let engine = Engine::new(&config, kernel)?;
        Ok(Self { config, engine })
    }

    /// The settings.
    pub fn config(&self) -> &MelConfig {
        &self.config
    }

    /// The kernel in use.
    pub fn kernel(&self) -> MelKernel {
        self.engine.kernel()
    }

    /// Frames that so many samples give.
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

    /// The features as a value of their own.
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

/// Refuses what would give features that are no numbers.
fn check_samples(samples: &[f32]) -> Result<(), MelError> {
    const PART: usize = 1024;
    // NaN compares as not usable. Whole parts first: this loop becomes vector instructions.
    let usable = |sample: &f32| sample.abs() <= LARGEST_SAMPLE;
    for (part, values) in samples.chunks(PART).enumerate() {
        if values.iter().fold(0, |bad, sample| bad | u32::from(!usable(sample))) == 0 {
            continue;
        }
        let place = values.iter().position(|sample| !usable(sample)).unwrap_or(0);
        return Err(MelError::Sample { index: part * PART + place, value: values[place] });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
