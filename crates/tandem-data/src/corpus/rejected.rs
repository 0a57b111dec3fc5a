//! Why a row is not used, in words for a table and in a code for scripts.
//!
//! Every step from the manifest to the features lists its unusable rows with this type, so
//! that they end in one table and one file. A row here never stops a run by itself.

use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// A row that is passed over: where it is, why, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedRow {
    /// The manifest, relative to the corpus directory.
    pub manifest: String,
    /// Line in the manifest, counted from one.
    pub line: u32,
    /// The row's id as far as it could be read.
    pub id: String,
    /// The kind of fault.
    pub reason: RejectReason,
    /// The fact, in one clause.
    pub message: String,
    /// The way out, in one sentence.
    pub fix: String,
}

/// The kinds of fault that make a row unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RejectReason {
    /// Bytes that are no text.
    InvalidUtf8,
    /// More or fewer columns than the manifest has.
    WrongColumns,
    /// A line longer than any sentence.
    LineTooLong,
    /// No id.
    EmptyId,
    /// Nothing to speak.
    EmptyText,
    /// An id that an earlier row has.
    DuplicateId,
    /// A path or link that points outside of the corpus.
    LeavesCorpus,
    /// No recording of that name.
    MissingAudio,
    /// A recording that cannot be decoded, or holds nothing usable.
    BrokenAudio,
    /// A recording beyond the longest that is allowed.
    AudioTooLong,
    /// A text beyond the longest that is allowed.
    TextTooLong,
    /// A character the model has no symbol for.
    UnknownSymbol,
    /// A language the front end does not know.
    UnknownLanguage,
}

/// A fault found while a row is read; the reader adds the place.
pub(super) struct Fault {
    pub(super) reason: RejectReason,
    pub(super) message: String,
    pub(super) fix: String,
}

impl Fault {
    pub(super) fn new(reason: RejectReason, message: String, fix: &str) -> Self {
        Self { reason, message, fix: fix.into() }
    }

    pub(super) fn leaves_corpus(what: &str) -> Self {
        Self::new(
            RejectReason::LeavesCorpus,
            format!("`{}` leaves the corpus directory", short(what)),
            "copy the recording into the corpus and write its path relative to it",
        )
    }

    /// A link below the corpus directory or below a linked folder of recordings.
    pub(super) fn link_leaves_corpus(link: &str, target: &Path) -> Self {
        Self::new(
            RejectReason::LeavesCorpus,
            format!(
                "the link `{}` leaves the corpus directory: it leads to `{}`",
                short(link),
                short(&target.display().to_string())
            ),
            "replace the link by the recording (`cp -L`, `git annex unlock`), or link the whole \
             folder `wavs` instead",
        )
    }

    pub(super) fn not_regular(path: &str) -> Self {
        Self::new(
            RejectReason::BrokenAudio,
            format!("`{}` is not a regular file", short(path)),
            "put the recording itself in its place",
        )
    }

    pub(super) fn broken_link(link: &str, why: &io::Error) -> Self {
        Self::new(
            RejectReason::MissingAudio,
            format!("the link `{}` cannot be followed: {why}", short(link)),
            "restore what it leads to (`git annex get`), or put the recording in its place",
        )
    }
}

/// Enough of a string to recognise it by in a table.
pub(super) fn short(text: &str) -> String {
    const LIMIT: usize = 80;
    match text.char_indices().nth(LIMIT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
