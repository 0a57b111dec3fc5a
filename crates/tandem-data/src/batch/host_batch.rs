//! One padded batch in memory; the buffers are reused.
//!
//! In: rows of mel frames and symbols, written in place by the caller. Out: flat arrays, ready to be
//! copied to a device. Only the padding after each row is filled; data that will be overwritten is not
//! cleared first. Knows no corpus and no order.

use super::BatchShape;
use tandem_audio::mel::MelConfig;
use tandem_units::Bytes;

/// Fills the symbols after the end of a text; it is never a real symbol.
pub const SYMBOL_PADDING: i32 = 0;

/// The metadata of one row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowInfo {
    /// Index of the utterance in the corpus.
    pub row: u32,
    /// Mel frames without padding.
    pub frames: usize,
    /// Symbols without padding.
    pub symbols: usize,
    pub speaker: u32,
    pub language: u32,
}

/// The memory of one row without padding. The caller must overwrite all of it.
#[derive(Debug, PartialEq)]
pub struct RowMut<'a> {
    /// `[frames, bands]`.
    pub mel: &'a mut [f32],
    /// `[symbols]`.
    pub symbols: &'a mut [i32],
}

/// The arrays of a finished batch; shapes as those of the accessors of the same name.
#[derive(Debug, PartialEq)]
pub struct ArraysMut<'a> {
    pub mel: &'a mut [f32],
    pub symbols: &'a mut [i32],
    pub frame_counts: &'a mut [i32],
    pub symbol_counts: &'a mut [i32],
    pub speakers: &'a mut [i32],
    pub languages: &'a mut [i32],
}

/// The buffers of one batch. Call [`reset`](Self::reset), [`push_row`](Self::push_row) for each
/// utterance and [`finish`](Self::finish), then read the arrays.
#[derive(Clone, Debug)]
pub struct HostBatch {
    shape: BatchShape,
    bands: usize,
    /// Fills the frames after the end of an utterance: the log-mel value of silence.
    silence: f32,
    /// This and the next one never shrink; the accessors return the part in use.
    mel: Vec<f32>,
    symbols: Vec<i32>,
    row_ids: Vec<u32>,
    frame_counts: Vec<i32>,
    symbol_counts: Vec<i32>,
    speakers: Vec<i32>,
    languages: Vec<i32>,
}

impl HostBatch {
    /// Empty buffers; the padding is the logarithm of `mel.floor`.
    pub fn new(mel: &MelConfig) -> Self {
        Self {
            shape: BatchShape::default(),
            bands: mel.bands,
            silence: mel.floor.ln(),
            mel: Vec::new(),
            symbols: Vec::new(),
            row_ids: Vec::new(),
            frame_counts: Vec::new(),
            symbol_counts: Vec::new(),
            speakers: Vec::new(),
            languages: Vec::new(),
        }
    }

    /// Starts a batch of this shape. Allocates only if no earlier batch was as large.
    pub fn reset(&mut self, shape: BatchShape) {
        self.shape = shape;
        grow(&mut self.mel, shape.rows * shape.frames * self.bands, self.silence);
        grow(&mut self.symbols, shape.rows * shape.symbols, SYMBOL_PADDING);
        self.row_ids.clear();
        for list in self.lists_mut() {
            list.clear();
        }
    }

    /// Adds an utterance and returns its memory, which contains data of an earlier batch. The padding
    /// after it is already filled.
    ///
    /// # Panics
    /// If the utterance does not fit the shape, because the plan was for other lengths.
    pub fn push_row(&mut self, info: RowInfo) -> RowMut<'_> {
        let (shape, at) = (self.shape, self.row_ids.len());
        let fits = at < shape.rows && info.frames <= shape.frames && info.symbols <= shape.symbols;
        assert!(fits, "{info:?} does not fit row {at} of {shape:?}");
        self.row_ids.push(info.row);
        let values = [info.frames, info.symbols, info.speaker as usize, info.language as usize];
        for (list, value) in self.lists_mut().into_iter().zip(values) {
            list.push(value as i32);
        }
        let (mel_row, mel_end) = (shape.frames * self.bands, info.frames * self.bands);
        let (mel, rest) = self.mel[at * mel_row..][..mel_row].split_at_mut(mel_end);
        rest.fill(self.silence);
        let row = &mut self.symbols[at * shape.symbols..][..shape.symbols];
        let (symbols, rest) = row.split_at_mut(info.symbols);
        rest.fill(SYMBOL_PADDING);
        RowMut { mel, symbols }
    }

    /// Removes the utterance that was added last, because it could not be loaded after all.
    pub fn pop_row(&mut self) {
        self.row_ids.pop();
        for list in self.lists_mut() {
            list.pop();
        }
    }

    /// The rows added so far, each with its own memory, so that several threads can fill them at
    /// once.
    pub fn rows_mut(&mut self) -> impl Iterator<Item = RowMut<'_>> {
        let (shape, bands) = (self.shape, self.bands);
        let mel = self.mel.chunks_mut((shape.frames * bands).max(1));
        let symbols = self.symbols.chunks_mut(shape.symbols.max(1));
        let lengths = self.frame_counts.iter().zip(&self.symbol_counts);
        mel.zip(symbols).zip(lengths).map(move |((mel, symbols), (&frames, &count))| RowMut {
            mel: &mut mel[..frames as usize * bands],
            symbols: &mut symbols[..count as usize],
        })
    }

    /// Ends the batch: unused rows get padding and a length of zero.
    pub fn finish(&mut self) {
        let (shape, used, mel_row) = (self.shape, self.used(), self.shape.frames * self.bands);
        self.mel[used * mel_row..shape.rows * mel_row].fill(self.silence);
        self.symbols[used * shape.symbols..shape.rows * shape.symbols].fill(SYMBOL_PADDING);
        for list in self.lists_mut() {
            list.resize(shape.rows, 0);
        }
    }

    pub fn shape(&self) -> BatchShape {
        self.shape
    }

    pub fn bands(&self) -> usize {
        self.bands
    }

    /// Rows with an utterance; the rows after them are empty.
    pub fn used(&self) -> usize {
        self.row_ids.len()
    }

    /// `[rows, frames, bands]`.
    pub fn mel(&self) -> &[f32] {
        self.assert_finished();
        &self.mel[..self.shape.rows * self.shape.frames * self.bands]
    }

    /// `[rows, symbols]`.
    pub fn symbols(&self) -> &[i32] {
        self.assert_finished();
        &self.symbols[..self.shape.rows * self.shape.symbols]
    }

    /// Frames of each row without padding, zero for an empty row: `[rows]`.
    pub fn frame_counts(&self) -> &[i32] {
        self.assert_finished();
        &self.frame_counts
    }

    /// Symbols of each row without padding, zero for an empty row: `[rows]`.
    pub fn symbol_counts(&self) -> &[i32] {
        self.assert_finished();
        &self.symbol_counts
    }

    /// `[rows]`.
    pub fn speakers(&self) -> &[i32] {
        self.assert_finished();
        &self.speakers
    }

    /// `[rows]`.
    pub fn languages(&self) -> &[i32] {
        self.assert_finished();
        &self.languages
    }

    /// Indices of the utterances in the corpus: `[used]`.
    pub fn row_ids(&self) -> &[u32] {
        &self.row_ids
    }

    /// The arrays of a finished batch, for a consumer that owns the batch and may change them.
    pub fn arrays_mut(&mut self) -> ArraysMut<'_> {
        self.assert_finished();
        let BatchShape { rows, frames, symbols } = self.shape;
        ArraysMut {
            mel: &mut self.mel[..rows * frames * self.bands],
            symbols: &mut self.symbols[..rows * symbols],
            frame_counts: &mut self.frame_counts,
            symbol_counts: &mut self.symbol_counts,
            speakers: &mut self.speakers,
            languages: &mut self.languages,
        }
    }

    /// Allocated memory, in use or not.
    pub fn size(&self) -> Bytes {
        let lists = [&self.frame_counts, &self.symbol_counts, &self.speakers, &self.languages];
        let four_bytes = self.mel.capacity()
            + self.symbols.capacity()
            + self.row_ids.capacity()
            + lists.iter().map(|list| list.capacity()).sum::<usize>();
        Bytes(4 * four_bytes as u64)
    }

    fn lists_mut(&mut self) -> [&mut Vec<i32>; 4] {
        let Self { frame_counts, symbol_counts, speakers, languages, .. } = self;
        [frame_counts, symbol_counts, speakers, languages]
    }

    /// A partial batch must be finished first: otherwise it would contain rows of an earlier batch.
    fn assert_finished(&self) {
        assert_eq!(self.frame_counts.len(), self.shape.rows, "the batch is not finished");
    }
}

/// Fills only the growth beyond the largest batch so far.
fn grow<T: Clone>(list: &mut Vec<T>, length: usize, value: T) {
    if list.len() < length {
        list.resize(length, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: BatchShape = BatchShape { rows: 3, frames: 4, symbols: 5 };

    fn two_bands() -> HostBatch {
        HostBatch::new(&MelConfig { bands: 2, ..MelConfig::SPEECH_22K })
    }

    fn info(row: u32, frames: usize, symbols: usize) -> RowInfo {
        RowInfo { row, frames, symbols, speaker: row + 10, language: 1 }
    }

    fn fill(batch: &mut HostBatch, shape: BatchShape, rows: &[RowInfo]) {
        batch.reset(shape);
        for &info in rows {
            let row = batch.push_row(info);
            row.mel.fill(info.row as f32);
            row.symbols.fill(info.row as i32);
        }
        batch.finish();
    }

    #[test]
    fn only_the_rest_of_a_row_is_padding() {
        let mut batch = two_bands();
        fill(&mut batch, SHAPE, &[info(7, 3, 5), info(8, 4, 1)]);
        let p = 1e-5f32.ln();
        let mel: Vec<&[f32]> = batch.mel().chunks(8).collect();
        assert_eq!(mel[0], [7.0, 7.0, 7.0, 7.0, 7.0, 7.0, p, p]);
        assert_eq!(mel[1], [8.0; 8]);
        assert_eq!(mel[2], [p; 8]);
        assert_eq!(batch.symbols(), [7, 7, 7, 7, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!((batch.frame_counts(), batch.symbol_counts()), (&[3, 4, 0][..], &[5, 1, 0][..]));
        assert_eq!((batch.speakers(), batch.languages()), (&[17, 18, 0][..], &[1, 1, 0][..]));
        assert_eq!((batch.row_ids(), batch.used()), (&[7, 8][..], 2));
    }

    #[test]
    fn a_batch_contains_nothing_of_earlier_batches() {
        let mut used = two_bands();
        fill(&mut used, BatchShape { rows: 5, frames: 9, symbols: 9 }, &[info(9, 9, 9); 5]);
        let size = used.size();
        let rows = [info(1, 2, 0), info(2, 1, 3)];
        fill(&mut used, SHAPE, &rows);
        let mut fresh = two_bands();
        fill(&mut fresh, SHAPE, &rows);
        assert_eq!((used.mel(), used.symbols()), (fresh.mel(), fresh.symbols()));
        assert_eq!((used.frame_counts(), used.row_ids()), (fresh.frame_counts(), fresh.row_ids()));
        assert_eq!(used.size(), size, "a smaller batch keeps the larger one's memory");
        assert!(size >= Bytes(4 * 5 * 9 * 2 + 4 * 5 * 9));
    }

    #[test]
    fn a_removed_row_leaves_nothing_behind() {
        let (mut removed, mut fresh) = (two_bands(), two_bands());
        removed.reset(SHAPE);
        removed.push_row(info(1, 2, 2)).mel.fill(1.0);
        removed.push_row(info(2, 4, 5)).mel.fill(2.0);
        removed.pop_row();
        fresh.reset(SHAPE);
        fresh.push_row(info(1, 2, 2)).mel.fill(1.0);
        for batch in [&mut removed, &mut fresh] {
            batch.finish();
        }
        assert_eq!((removed.mel(), removed.symbols()), (fresh.mel(), fresh.symbols()));
        assert_eq!((removed.row_ids(), removed.speakers()), (fresh.row_ids(), fresh.speakers()));
    }

    #[test]
    fn rows_can_be_filled_independently() {
        let mut batch = two_bands();
        batch.reset(SHAPE);
        for info in [info(1, 2, 3), info(2, 4, 0)] {
            batch.push_row(info);
        }
        let lengths: Vec<_> = batch.rows_mut().map(|r| (r.mel.len(), r.symbols.len())).collect();
        assert_eq!(lengths, [(4, 3), (8, 0)]);
    }

    #[test]
    #[should_panic(expected = "the batch is not finished")]
    fn an_unfinished_batch_cannot_be_read() {
        let mut batch = two_bands();
        batch.reset(SHAPE);
        batch.push_row(info(1, 1, 1));
        batch.mel();
    }

    #[test]
    #[should_panic(expected = "does not fit row 0")]
    fn a_row_longer_than_the_shape_panics() {
        let mut batch = two_bands();
        batch.reset(SHAPE);
        batch.push_row(info(1, 5, 1));
    }
}
