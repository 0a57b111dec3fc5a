//! Reference segments: a segment of another utterance of each row's speaker, which conditions the
//! voice during training.
//!
//! In: mel frames or sound of another utterance, and the first frame of the segment. Out:
//! frames next to the batch, `[rows, frames, bands]`. Never a segment of the utterance itself. Next: [`crate::feed::align`].

use crate::feed::load::Clip;
use tandem_units::Bytes;

/// The references of one batch, row by row.
#[derive(Debug, Default)]
pub struct References {
    frames: usize,
    bands: usize,
    mel: Vec<f32>,
    counts: Vec<usize>,
    /// Rows whose frames are not computed yet: row, sound, first frame.
    sounds: Vec<(usize, Clip, usize)>,
}

impl References {
    /// `frames` is the length of each segment; 0: no references.
    pub fn new(frames: usize, bands: usize) -> References {
        References { frames, bands, ..References::default() }
    }

    /// The next row has no reference.
    pub fn push_none(&mut self) {
        self.counts.push(0);
        self.mel.resize(self.counts.len() * self.frames * self.bands, 0.0);
    }

    /// The reference of the next row: this utterance, from frame `at`.
    pub fn push_frames(&mut self, mel: &[f32], at: usize) {
        self.push_none();
        let row = self.counts.len() - 1;
        self.fill(row, mel, at);
    }

    /// Like [`References::push_frames`], with frames that are computed later.
    pub fn push_clip(&mut self, clip: Clip, at: usize) {
        self.sounds.push((self.counts.len(), clip, at));
        self.push_none();
    }

    /// Takes the sounds whose frames are missing: row, sound, first frame.
    pub(crate) fn take_sounds(&mut self) -> Vec<(usize, Clip, usize)> {
        std::mem::take(&mut self.sounds)
    }

    /// Frames per row, padding included.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Real frames of each row; 0: no reference.
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// `[rows, frames, bands]`.
    pub fn mel(&self) -> &[f32] {
        &self.mel
    }

    pub fn size(&self) -> Bytes {
        Bytes::of_slice(&self.mel) + self.sounds.iter().map(|(_, clip, _)| clip.size()).sum()
    }

    /// Copies the frames of an utterance, from frame `at`.
    pub(crate) fn fill(&mut self, row: usize, mel: &[f32], at: usize) {
        let from = (at * self.bands).min(mel.len());
        let length = (mel.len() - from).min(self.frames * self.bands);
        let start = row * self.frames * self.bands;
        self.mel[start..start + length].copy_from_slice(&mel[from..from + length]);
        self.counts[row] = length / self.bands;
    }
}
