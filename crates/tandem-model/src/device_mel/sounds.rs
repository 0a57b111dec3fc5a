//! The samples of a batch on the host, each row padded, ready for one upload.
//!
//! In: utterances. Out: `[rows, row_length]` and the frame counts.

use tandem_audio::Sound;
use tandem_audio::mel::{MelConfig, MelError, reflected};
use tandem_units::Frames;

/// Rows of samples: `reset`, `push` for each utterance, then
/// [`DeviceMel::extract`](super::DeviceMel::extract), then `reset` again. Allocates only if no earlier
/// batch was as large.
#[derive(Clone, Debug)]
pub struct SoundBatch {
    config: MelConfig,
    rows: usize,
    frames: usize,
    samples: Vec<f32>,
    frame_counts: Vec<i32>,
    used: usize,
}

impl SoundBatch {
    pub fn new(config: &MelConfig) -> SoundBatch {
        let config = config.clone();
        SoundBatch { config, rows: 0, frames: 0, samples: vec![], frame_counts: vec![], used: 0 }
    }

    /// Starts an empty batch of this shape.
    pub fn reset(&mut self, rows: usize, frames: usize) {
        (self.rows, self.frames, self.used) = (rows, frames.max(1), 0);
        let length = rows * self.row_length();
        self.samples.clear();
        self.samples.resize(length, 0.0);
        self.frame_counts.clear();
        self.frame_counts.resize(rows, 0);
    }

    /// Adds the next utterance.
    ///
    /// # Panics
    /// If it does not fit the shape: the batch was planned for other lengths.
    pub fn push(&mut self, sound: Sound<'_>) -> Result<Frames, MelError> {
        if sound.is_empty() {
            return Err(MelError::Empty);
        }
        let count = self.config.frames(sound.len());
        let fits = self.used < self.rows && count.0 <= self.frames;
        assert!(fits, "{count:?} do not fit row {} of {} frames", self.used, self.frames);
        let (at, length) = (self.used, self.row_length());
        let row = &mut self.samples[at * length..][..length];
        match sound {
            Sound::I16(samples) => fill(row, &self.config, samples, |s| f32::from(s) / 32768.0),
            Sound::F32(samples) => fill(row, &self.config, samples, |s| s),
        }
        self.frame_counts[at] = count.0 as i32;
        self.used += 1;
        Ok(count)
    }

    /// Including empty ones.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Frames per row, including padding.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Samples per row, including padding.
    pub fn row_length(&self) -> usize {
        (self.frames - 1) * self.config.hop.0 + self.config.n_fft
    }

    /// `[rows, row_length]`.
    pub fn samples(&self) -> &[f32] {
        &self.samples
    }

    /// Real frames of each row, zero for an empty one: `[rows]`.
    pub fn frame_counts(&self) -> &[i32] {
        &self.frame_counts
    }
}

/// The samples with their reflection at both ends; the rest stays zero.
fn fill<T: Copy>(row: &mut [f32], config: &MelConfig, samples: &[T], scale: impl Fn(T) -> f32) {
    let (before, length) = (config.n_fft / 2, samples.len());
    let end = (length + 2 * before).min(row.len());
    let sound_end = (before + length).min(end);
    for (cell, &sample) in row[before..sound_end].iter_mut().zip(samples) {
        *cell = scale(sample);
    }
    for index in (0..before).chain(sound_end..end) {
        row[index] = scale(samples[reflected(index, before, length)]);
    }
}
