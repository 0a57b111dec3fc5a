//! Rows beyond the length limits: how many, and which limit would keep them.
//!
//! In: the records of rejected rows, and the limits. Out: one [`TooLong`] for each limit that rows exceed.
//! Reads no recording: the length of a rejected row is part of its record.

use crate::DataSettings;
use serde::Serialize;
use std::fmt;
use tandem_data::cache::Record;

/// Rows that one limit rejects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TooLong {
    pub limit: LengthLimit,
    /// The value of the limit.
    pub value: usize,
    /// Rows beyond it.
    pub rows: usize,
    /// All rows of the corpus.
    pub of: usize,
    /// The length of the longest row: as a limit it would keep them all.
    pub longest: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LengthLimit {
    MelFrames,
    Symbols,
}

impl LengthLimit {
    pub fn flag(self) -> &'static str {
        match self {
            LengthLimit::MelFrames => "--max-mel-frames",
            LengthLimit::Symbols => "--max-text-length",
        }
    }

    fn unit(self) -> &'static str {
        match self {
            LengthLimit::MelFrames => "mel frames",
            LengthLimit::Symbols => "symbols",
        }
    }
}

/// Counts rejected rows by limit.
pub struct TooLongCounts([TooLong; 2]);

impl TooLongCounts {
    /// No row so far, of `rows` rows of the corpus.
    pub fn new(settings: &DataSettings, rows: usize) -> TooLongCounts {
        let limits = [
            (LengthLimit::MelFrames, settings.max_mel_frames),
            (LengthLimit::Symbols, settings.text.max_symbols),
        ];
        TooLongCounts(limits.map(|(limit, value)| TooLong {
            limit,
            value,
            rows: 0,
            of: rows,
            longest: 0,
        }))
    }

    /// Adds a rejected row.
    pub fn add(&mut self, record: &Record) {
        for counted in &mut self.0 {
            let length = match counted.limit {
                LengthLimit::MelFrames => record.frames as usize,
                LengthLimit::Symbols => record.symbols as usize,
            };
            if length > counted.value {
                counted.rows += 1;
                counted.longest = counted.longest.max(length);
            }
        }
    }

    /// Adds the counts of other rows with the same limits.
    pub fn join(&mut self, other: TooLongCounts) {
        for (all, more) in self.0.iter_mut().zip(other.0) {
            all.rows += more.rows;
            all.longest = all.longest.max(more.longest);
        }
    }

    /// The limits that rows exceed.
    pub fn finish(self) -> Vec<TooLong> {
        self.0.into_iter().filter(|counted| counted.rows > 0).collect()
    }
}

impl TooLong {
    /// Share of all rows.
    pub fn share(&self) -> f64 {
        self.rows as f64 / self.of.max(1) as f64
    }

    /// The flag that keeps these rows.
    pub fn flag(&self) -> String {
        format!("{} {}", self.limit.flag(), self.longest)
    }
}

/// `131 of 1310 rows (10.0 %) are longer than 800 mel frames and are not used`
impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooLong { value, rows, of, .. } = self;
        let (share, unit) = (100.0 * self.share(), self.limit.unit());
        let (is, used) = if *rows == 1 { ("is", "is") } else { ("are", "are") };
        write!(
            f,
            "{rows} of {of} rows ({share:.1} %) {is} longer than {value} {unit} and {used} not used"
        )
    }
}
