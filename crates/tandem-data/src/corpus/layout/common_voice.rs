//! Common Voice: `validated.tsv` with `client_id`, `path`, `sentence` and `locale`, and `clips/`.
//!
//! In: a directory. Out: the tables to read. `validated.tsv` has all rows that people accepted. Without it, the tables
//! of the split are used; `test.tsv` is never read beside them.

use super::{Found, Layout, Rows, Source};
use crate::corpus::columns::Columns;
use std::path::Path;

pub(super) fn find(folder: &Path) -> Option<Found> {
    let source = |name: &str, rows| Source { file: name.into(), rows };
    let there = |name: &str| is_table(&folder.join(name));
    let sources = match () {
        () if there("validated.tsv") => vec![source("validated.tsv", Rows::Mixed)],
        () if there("train.tsv") && there("dev.tsv") => {
            vec![source("train.tsv", Rows::Train), source("dev.tsv", Rows::Eval)]
        }
        () if there("train.tsv") => vec![source("train.tsv", Rows::Mixed)],
        () => return None,
    };
    Some(Found::new(Layout::CommonVoice, sources))
}

/// The header names a recording and a sentence between tabs.
pub(super) fn is_table(file: &Path) -> bool {
    super::first_line(file).is_some_and(|line| Columns::from_header(&line, '\t').is_some())
}
