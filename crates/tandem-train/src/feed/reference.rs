//! Another stretch of each row's speaker: what the voice is conditioned on while it learns.
//!
//! In: mel frames or sound of another utterance, and where the stretch begins. Out: frames beside
//! the batch, `[rows, frames, bands]`. Never the utterance itself. Next: [`crate::feed::align`].

use crate::TrainError;
use crate::feed::load::Clip;
use crate::feed::worker_mel::WorkerMel;
use tandem_units::Bytes;

/// The references of one batch, row by row.
#[derive(Debug, Default)]
pub struct References {
    frames: usize,
    bands: usize,
    mel: Vec<f32>,
    counts: Vec<usize>,
    /// Rows whose frames have still to be made: row, sound, first frame.
    sounds: Vec<(usize, Clip, usize)>,
}

impl References {
    /// None yet, of so many frames each; 0: there will be none.
    pub fn new(frames: usize, bands: usize) -> References {
        References { frames, bands, ..References::default() }
    }

    /// The next row has none.
    pub fn push_none(&mut self) {
        self.counts.push(0);
        self.mel.resize(self.counts.len() * self.frames * self.bands, 0.0);
    }

    /// The next row's is this utterance, from this frame on.
    pub fn push_frames(&mut self, mel: &[f32], at: usize) {
        self.push_none();
        let row = self.counts.len() - 1;
        self.fill(row, mel, at);
    }

    /// The same, its frames still to be made.
    pub fn push_clip(&mut self, clip: Clip, at: usize) {
        self.sounds.push((self.counts.len(), clip, at));
        self.push_none();
    }

    /// Makes the frames that are missing.
    pub(crate) fn make_frames(&mut self, kernel: &mut WorkerMel) -> Result<(), TrainError> {
        for (row, clip, at) in self.take_sounds() {
            let mel = kernel.extract(clip.as_sound())?;
            self.fill(row, &mel, at);
        }
        Ok(())
    }

    /// The sounds whose frames are missing, for whoever makes them: row, sound, first frame.
    pub(crate) fn take_sounds(&mut self) -> Vec<(usize, Clip, usize)> {
        std::mem::take(&mut self.sounds)
    }

    /// Frames of a row, padding included.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Real frames of each row; 0: it has none.
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// `[rows, frames, bands]`.
    pub fn mel(&self) -> &[f32] {
        &self.mel
    }

    /// The memory held.
    pub fn size(&self) -> Bytes {
        Bytes::of_slice(&self.mel) + self.sounds.iter().map(|(_, clip, _)| clip.size()).sum()
    }

    /// Enters the frames of an utterance, from one of them on.
    pub(crate) fn fill(&mut self, row: usize, mel: &[f32], at: usize) {
        let from = (at * self.bands).min(mel.len());
        let length = (mel.len() - from).min(self.frames * self.bands);
        let place = row * self.frames * self.bands;
        self.mel[place..place + length].copy_from_slice(&mel[from..from + length]);
        self.counts[row] = length / self.bands;
    }
}
