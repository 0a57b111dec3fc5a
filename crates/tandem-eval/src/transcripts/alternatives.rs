//! Which other texts a text is compared with.
//!
//! In: the rows of a corpus. Out: for each, a few texts of the same language and nearly the same
//! length, and those of the rows before and after it, since a manifest that is shifted by a line is
//! the most common error. Deterministic for a given corpus.

use tandem_train::feed::Rows;
use tandem_train::feed::align::corpus_fit::CachedText;
use tandem_train::prepare::Prepared;

/// Shorter and longer texts, of each.
const EACH_SIDE: usize = 6;
/// Rows before and after in the manifest, of each.
const NEIGHBOURS: u32 = 2;

pub struct Text {
    /// Index into [`Rows`].
    pub row: u32,
    pub cached: CachedText,
    /// Whether it was chosen by its length.
    pub of_same_length: bool,
}

/// Rows sorted by language and length of text.
pub struct AlternativeTexts {
    order: Vec<u32>,
    /// Position of each row in `order`.
    positions: Vec<u32>,
    languages: Vec<u16>,
}

impl AlternativeTexts {
    pub fn of(prepared: &Prepared, rows: &Rows) -> AlternativeTexts {
        let language = |&number: &u32| {
            let record = prepared.cache.record(number as usize);
            record.map_or(u16::MAX, |record| record.language)
        };
        let languages: Vec<u16> = rows.cache_row.iter().map(language).collect();
        let mut order: Vec<u32> = (0..rows.cache_row.len() as u32).collect();
        order.sort_by_key(|&row| (languages[row as usize], rows.symbols[row as usize], row));
        let mut positions = vec![0; order.len()];
        for (position, &row) in order.iter().enumerate() {
            positions[row as usize] = position as u32;
        }
        AlternativeTexts { order, positions, languages }
    }

    /// The text of a row; none where the cache is damaged.
    pub fn text(&self, prepared: &Prepared, rows: &Rows, row: u32) -> Option<Text> {
        let cached = CachedText::of(prepared, rows, row)?;
        Some(Text { row, cached, of_same_length: true })
    }

    /// The texts to compare with the text of a row: different, in the same language, and with at most
    /// `frames` symbols.
    pub fn of_row(&self, prepared: &Prepared, rows: &Rows, row: u32, frames: usize) -> Vec<Text> {
        let own =
            self.text(prepared, rows, row).map(|text| text.cached.symbols).unwrap_or_default();
        let fits = |text: &Text| text.cached.symbols.len() <= frames && text.cached.symbols != own;
        let read = |other: u32| self.text(prepared, rows, other).filter(fits);
        let mut found: Vec<Text> = self.of_same_length(row).filter_map(read).collect();
        let last = (self.positions.len() as u32 - 1).min(row.saturating_add(NEIGHBOURS));
        for other in row.saturating_sub(NEIGHBOURS)..=last {
            if self.is_same_language(row, other) && found.iter().all(|text| text.row != other) {
                let neighbour = read(other).map(|text| Text { of_same_length: false, ..text });
                found.extend(neighbour);
            }
        }
        found
    }

    fn of_same_length(&self, row: u32) -> impl Iterator<Item = u32> + '_ {
        let position = self.positions[row as usize] as usize;
        let from = position.saturating_sub(EACH_SIDE);
        let to = (position + EACH_SIDE + 1).min(self.order.len());
        let around = self.order[from..to].iter().copied();
        around.filter(move |&other| other != row && self.is_same_language(row, other))
    }

    fn is_same_language(&self, row: u32, other: u32) -> bool {
        self.languages[row as usize] == self.languages[other as usize]
    }
}
