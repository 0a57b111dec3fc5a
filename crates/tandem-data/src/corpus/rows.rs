//! Rows of sources that are not lines of columns: one reader per layout gives them.
//!
//! In: what a [`RowReader`] of [`super::layout`] finds. Out: [`Entry`]s, with fields that own their text. Decides
//! nothing about a row: [`super::manifest`] cleans ids, finds recordings and rejects.

use super::Part;
use super::columns::Row;
use super::rejected::{Fault, RejectReason};
use crate::DataError;

/// Reads one source.
pub(super) trait RowReader: Send {
    /// The next row; `None` at the end of the source.
    fn next_entry(&mut self) -> Result<Option<Entry>, DataError>;
}

/// One row, or why it cannot be read.
pub(super) struct Entry {
    /// Line of the file, or number of the text file; counted from one.
    pub line: u32,
    /// Names the row in the list of rejected rows.
    pub id: String,
    pub row: Result<OwnedRow, Fault>,
}

/// The fields of [`Row`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OwnedRow {
    /// Empty: the name of the recording.
    pub id: String,
    pub recording: String,
    pub text: String,
    pub normalised: String,
    pub speaker: String,
    pub language: String,
    pub phonemes: String,
    pub part: Option<Part>,
}

impl OwnedRow {
    pub(super) fn borrow(&self) -> Row<'_> {
        Row {
            id: &self.id,
            text: &self.text,
            normalised: &self.normalised,
            speaker: &self.speaker,
            language: &self.language,
            phonemes: &self.phonemes,
            recording: &self.recording,
            part: self.part,
        }
    }
}

/// A text without line ends and repeated blanks.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A row whose source is not UTF-8.
pub(super) fn not_utf8(bytes: &[u8]) -> Fault {
    let message = "not valid UTF-8".to_owned();
    let fix =
        format!("save it as UTF-8 (it is probably {})", super::encoding::likely_encoding(bytes));
    Fault::new(RejectReason::InvalidUtf8, message, &fix)
}
