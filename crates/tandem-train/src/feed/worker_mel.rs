//! A worker's own mel kernel. It is created on the worker's thread, so that its scratch memory is
//! local to that core.

use std::time::{Duration, Instant};
use tandem_audio::Sound;
use tandem_audio::mel::{MelConfig, MelError, MelExtractor, MelKernel};
use tandem_units::Frames;

/// Creates its extractor at the first use.
#[derive(Debug)]
pub struct WorkerMel {
    config: MelConfig,
    kernel: MelKernel,
    extractor: Option<MelExtractor>,
    took: Duration,
}

impl WorkerMel {
    pub fn new(config: MelConfig, kernel: MelKernel) -> WorkerMel {
        WorkerMel { config, kernel, extractor: None, took: Duration::ZERO }
    }

    /// The mel frames of a sound, in a new vector.
    pub fn extract(&mut self, sound: Sound<'_>) -> Result<Vec<f32>, MelError> {
        let mut frames = vec![0.0; self.config.frames(sound.len()).0 * self.config.bands];
        self.extract_into(sound, &mut frames)?;
        Ok(frames)
    }

    /// Writes the mel frames of a sound; see [`MelExtractor::extract_into`].
    pub fn extract_into(&mut self, sound: Sound<'_>, out: &mut [f32]) -> Result<Frames, MelError> {
        let from = Instant::now();
        let mel = match &mut self.extractor {
            Some(mel) => mel,
            none => none.insert(MelExtractor::with_kernel(self.config.clone(), self.kernel)?),
        };
        let frames = mel.extract_into(sound, out);
        self.took += from.elapsed();
        frames
    }

    /// How long mel frames took since the last call.
    pub(crate) fn take_time(&mut self) -> Duration {
        std::mem::take(&mut self.took)
    }
}
