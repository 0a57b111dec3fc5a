//! Samples of a batch on the host, each row with its padding, ready for one copy.

use tandem_data::audio::Sound;
use tandem_data::audio::mel::{MelConfig, MelError, reflected};
use tandem_units::Frames;

/// Rows of samples: `reset`, `push` for each utterance, then
/// [`DeviceMel::extract`](super::DeviceMel::extract), and again. Allocates only where no earlier
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
    /// Empty, for features of this kind.
    pub fn new(config: &MelConfig) -> SoundBatch {
        let config = config.clone();
        SoundBatch { config, rows: 0, frames: 0, samples: vec![], frame_counts: vec![], used: 0 }
    }

    /// Begins a batch of so many rows, each padded to so many frames.
    pub fn reset(&mut self, rows: usize, frames: usize) {
        (self.rows, self.frames, self.used) = (rows, frames.max(1), 0);
        let length = rows * self.row_length();
        self.samples.clear();
        self.samples.resize(length, 0.0);
        self.frame_counts.clear();
        self.frame_counts.resize(rows, 0);
    }

    /// Enters the next utterance.
    ///
    /// # Panics
    /// Where the shape has no place for it: that is a plan made for other lengths.
    pub fn push(&mut self, sound: Sound<'_>) -> Result<Frames, MelError> {
        if sound.is_empty() {
            return Err(MelError::Empty);
        }
        let count = self.config.frames(sound.len());
        let fits = self.used < self.rows && count.0 <= self.frames;
        assert!(fits, "{count:?} do not fit place {} of {} frames", self.used, self.frames);
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

    /// Rows, empty ones included.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Frames that each row is padded to.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Samples of a row, padding included.
    pub fn row_length(&self) -> usize {
        (self.frames - 1) * self.config.hop.0 + self.config.n_fft
    }

    /// `[rows, row_length]`.
    pub fn samples(&self) -> &[f32] {
        &self.samples
    }

    /// Real frames of each row, zero where it is empty: `[rows]`.
    pub fn frame_counts(&self) -> &[i32] {
        &self.frame_counts
    }
}

/// The samples with their reflection in front and behind; what lies further stays zero.
fn fill<T: Copy>(row: &mut [f32], config: &MelConfig, samples: &[T], scale: impl Fn(T) -> f32) {
    let (before, length) = (config.n_fft / 2, samples.len());
    let end = (length + 2 * before).min(row.len());
    let sound_end = (before + length).min(end);
    for (cell, &sample) in row[before..sound_end].iter_mut().zip(samples) {
        *cell = scale(sample);
    }
    for place in (0..before).chain(sound_end..end) {
        row[place] = scale(samples[reflected(place, before, length)]);
    }
}
