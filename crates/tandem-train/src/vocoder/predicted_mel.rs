//! Mel frames that a voice predicts for the recordings of a corpus.
//!
//! In: a trained voice and a prepared corpus. Out: the predicted frames of every row whose text could be aligned, at the times
//! and with the level of its recording. A vocoder that learns from them, too, is prepared for what this voice gives it. The
//! frames are in a temporary file: those of a large corpus do not fit in memory. It has no name, so that nothing is left of it
//! after a crash. Next: [`crate::vocoder::segments`].

use crate::TrainError;
use crate::feed::align::corpus_fit::{CachedText, CorpusFit};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tandem_device::backend::guarded;
use tandem_model::metrics::{MelFrames, level};
use tandem_model::synthesis::mel::{MelSynthesizer, Reference, SamplingOptions};
use tandem_pipeline::{CancelToken, PipelineError};
use tandem_units::Seed;

/// Predicted frames of the training rows.
#[derive(Debug)]
pub struct PredictedMel {
    file: File,
    /// Where the file is, for messages.
    directory: PathBuf,
    bands: usize,
    /// First frame in the file and number of frames of each row; none: not aligned.
    rows: Vec<Option<(u64, usize)>>,
    /// Sum of the absolute differences to the recorded frames, and how many values it has.
    differences: (f64, usize),
}

impl PredictedMel {
    /// Predicts the frames of all rows, into a file in `directory`. `progress` receives the finished rows and all rows.
    pub fn predict(
        corpus: &mut CorpusFit<'_>,
        directory: &Path,
        progress: &mut dyn FnMut(usize, usize),
        cancel: &CancelToken,
    ) -> Result<PredictedMel, TrainError> {
        let written = |source| TrainError::PredictedMel { directory: directory.into(), source };
        let file = tempfile::tempfile_in(directory).map_err(written)?;
        let mut out = BufWriter::new(file);
        let (count, bands) = (corpus.rows.cache_row.len(), corpus.bands());
        let (mut rows, mut frames) = (Vec::with_capacity(count), 0);
        let mut differences = (0.0, 0);
        for row in 0..count {
            progress(row, count);
            if cancel.is_cancelled() {
                return Err(PipelineError::Cancelled.into());
            }
            let Some(PredictedRow { mel, recorded }) = predict_row(corpus, row as u32)? else {
                rows.push(None);
                continue;
            };
            rows.push(Some((frames, mel.len() / bands)));
            frames += (mel.len() / bands) as u64;
            differences.1 += mel.len();
            for (value, recorded) in mel.iter().zip(recorded) {
                differences.0 += f64::from((value - recorded).abs());
                out.write_all(&value.to_le_bytes()).map_err(written)?;
            }
        }
        progress(count, count);
        let file = out.into_inner().map_err(|error| written(error.into_error()))?;
        Ok(PredictedMel { file, directory: directory.into(), bands, rows, differences })
    }

    /// Mean absolute difference to the recorded frames, natural logarithms; NaN where no row was aligned.
    pub fn difference(&self) -> f64 {
        self.differences.0 / self.differences.1 as f64
    }

    /// Rows that have predicted frames.
    pub fn count(&self) -> usize {
        self.rows.iter().flatten().count()
    }

    /// Natural logarithms of `count` frames of a row from frame `first` on, or as many as it has: `[frames, bands]`. None
    /// where the row has no predicted frames.
    pub fn frames(
        &self,
        row: u32,
        first: usize,
        count: usize,
    ) -> Result<Option<Vec<f32>>, TrainError> {
        let Some((start, frames)) = self.rows[row as usize] else { return Ok(None) };
        let count = frames.saturating_sub(first).min(count);
        let mut bytes = vec![0; count * self.bands * size_of::<f32>()];
        let at = (start + first as u64) * (self.bands * size_of::<f32>()) as u64;
        let unread =
            |source| TrainError::PredictedMel { directory: self.directory.clone(), source };
        self.file.read_exact_at(&mut bytes, at).map_err(unread)?;
        let values = bytes.as_chunks::<4>().0.iter();
        Ok(Some(values.map(|&value| f32::from_le_bytes(value)).collect()))
    }
}

/// Natural logarithms, as many of both.
struct PredictedRow {
    mel: Vec<f32>,
    recorded: Vec<f32>,
}

/// None where the recording cannot be read, or its text not aligned to it.
fn predict_row(corpus: &mut CorpusFit<'_>, row: u32) -> Result<Option<PredictedRow>, TrainError> {
    // A recording that cannot be read is reported when the run reads it.
    let Ok(normalised) = corpus.frames_of(row) else { return Ok(None) };
    let Some(text) = CachedText::of(corpus.prepared, &corpus.rows, row) else { return Ok(None) };
    let reference = corpus.reference_for(row);
    let fit = corpus.fit(&[&text], &normalised, &reference)?.pop().flatten();
    let Some(fit) = fit else { return Ok(None) };
    let (bands, document) = (corpus.bands(), &corpus.trained.document);
    let mut recorded = normalised;
    document.scale.restore(&mut recorded);
    let recorded_level = MelFrames::new(&recorded, bands).ok().map(|frames| level(frames) as f32);
    let reference = Reference { mel: reference, level: recorded_level };
    let synthesizer = MelSynthesizer {
        voice: &corpus.trained.voice,
        config: &document.config,
        device: corpus.device,
    };
    let sampling = SamplingOptions { seed: Seed(u64::from(row)), ..SamplingOptions::default() };
    let language = corpus.language(text.language);
    let durations = Some(fit.durations.as_slice());
    let mut mel = guarded("predicting mel frames", || {
        synthesizer.synthesize(&text.symbols, language, &reference, durations, &sampling).mel
    })?;
    document.restore(&mut mel, &reference);
    // A voice that gives no finite values teaches nothing.
    let is_usable = mel.len() == recorded.len() && mel.iter().all(|value| value.is_finite());
    Ok(is_usable.then_some(PredictedRow { mel, recorded }))
}
