//! Why a row is rejected: a message for people and a code for scripts.
//!
//! Every step from the manifest to the features reports unusable rows with this type, so that one
//! table and one file list them all. A rejected row never stops a run by itself.

use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// A row that is left out: its position, the reason and a fix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedRow {
    /// The manifest, relative to the corpus directory.
    pub manifest: String,
    /// Line in the manifest, counted from one.
    pub line: u32,
    /// The row's id, as far as it could be parsed.
    pub id: String,
    pub reason: RejectReason,
    /// The fact, as one clause.
    pub message: String,
    /// What to do, as one sentence.
    pub fix: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RejectReason {
    InvalidUtf8,
    WrongColumns,
    LineTooLong,
    EmptyId,
    EmptyText,
    /// An earlier row has the same id.
    DuplicateId,
    /// A path or link that leads out of the corpus.
    LeavesCorpus,
    /// The text belongs to a part of a longer recording.
    PartOfRecording,
    /// A sentence of a long recording that is not what is heard there.
    TextDoesNotFit,
    /// A sentence of a long recording that cannot be cut out of it.
    NoPlaceToCut,
    /// No recording of that name.
    MissingAudio,
    /// A recording that cannot be read or decoded, or is unusable.
    BrokenAudio,
    AudioTooLong,
    TextTooLong,
    /// A character without a symbol in the model.
    UnknownSymbol,
    UnknownLanguage,
}

/// A fault in a row, without the position.
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

    /// An absolute path of a layout that has such.
    pub(super) fn outside(path: &str) -> Self {
        Self::new(
            RejectReason::LeavesCorpus,
            format!("`{}` is outside the corpus directory", short(path)),
            "name the directory that it may be in with `--recordings-dir`, or write paths relative to the manifest",
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

/// The beginning of a string, short enough for a table.
pub(super) fn short(text: &str) -> String {
    const LIMIT: usize = 80;
    match text.char_indices().nth(LIMIT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
