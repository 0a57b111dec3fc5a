//! LJSpeech and Piper: `metadata.csv` with columns between `|`, and a folder of recordings.
//!
//! In: a directory. Out: its manifests and their use. The columns are found in [`crate::corpus::columns`].

use super::{EVAL, Found, Layout, Rows, Source, TRAIN, WHOLE};
use std::path::Path;

pub(super) fn find(folder: &Path) -> Option<Found> {
    let there = |name: &&str| folder.join(name).is_file();
    let source = |name: &str, rows| Source { file: name.into(), rows };
    let evals: Vec<&str> = EVAL.into_iter().filter(there).collect();
    let evals = || evals.iter().map(|name| source(name, Rows::Eval));
    let alone = evals().len() == 0;
    let sources = if there(&TRAIN) {
        let rows = if alone { Rows::Mixed } else { Rows::Train };
        [source(TRAIN, rows)].into_iter().chain(evals()).collect()
    } else if there(&WHOLE) {
        // Eval manifests first: their ids must be known when `metadata.csv` is read.
        let rows = if alone { Rows::Mixed } else { Rows::TrainOutsideEval };
        evals().chain([source(WHOLE, rows)]).collect()
    } else {
        return None;
    };
    Some(Found::new(Layout::Ljspeech, sources))
}
