//! Finds the manifests of a corpus and the use of each.
//!
//! In: a path from the user. Out: [`CorpusFiles`]. A path that does not exist is an error that lists
//! the expected names and what is there instead.

use crate::DataError;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tandem_disk::retry;

const WHOLE: &str = "metadata.csv";
const TRAIN: &str = "metadata_train.csv";
const EVAL: [&str; 2] = ["metadata_eval.csv", "metadata_val.csv"];

/// A corpus directory and its manifests, in the order in which they are read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CorpusFiles {
    /// Symbolic links are resolved, so that a prefix decides what is inside.
    pub root: PathBuf,
    pub sources: Vec<Source>,
}

/// One manifest.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Source {
    /// Relative to the root.
    pub file: PathBuf,
    pub rows: Rows,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rows {
    Train,
    Eval,
    /// Training, except for the rows that are also in an eval manifest.
    TrainOutsideEval,
    /// Both; a hash of the id decides.
    Mixed,
}

impl CorpusFiles {
    /// There is no eval manifest.
    pub(super) fn splits_itself(&self) -> bool {
        self.sources.iter().any(|source| source.rows == Rows::Mixed)
    }
}

/// Finds the manifests of the corpus at `path`, or uses `path` as the manifest.
pub(super) fn find(path: &Path) -> Result<CorpusFiles, DataError> {
    let kind = retry(|| fs::metadata(path)).map_err(|source| missing_or_closed(path, source))?;
    let (folder, sources) =
        if kind.is_dir() { (path, sources_in(path)?) } else { single_manifest(path) };
    let root = folder.canonicalize().map_err(|source| closed(folder, source))?;
    Ok(CorpusFiles { root, sources })
}

fn sources_in(folder: &Path) -> Result<Vec<Source>, DataError> {
    let there = |name: &&str| folder.join(name).is_file();
    let source = |name: &str, rows| Source { file: name.into(), rows };
    let evals: Vec<&str> = EVAL.into_iter().filter(there).collect();
    let evals = || evals.iter().map(|name| source(name, Rows::Eval));
    let alone = evals().len() == 0;
    if there(&TRAIN) {
        let rows = if alone { Rows::Mixed } else { Rows::Train };
        return Ok([source(TRAIN, rows)].into_iter().chain(evals()).collect());
    }
    if there(&WHOLE) {
        // Eval manifests first: their ids must be known when `metadata.csv` is read.
        let rows = if alone { Rows::Mixed } else { Rows::TrainOutsideEval };
        return Ok(evals().chain([source(WHOLE, rows)]).collect());
    }
    Err(DataError::ManifestMissing {
        root: folder.into(),
        looked_for: vec![WHOLE.into(), TRAIN.into()],
        near: files_that_may_be_manifests(folder),
    })
}

/// A manifest that the user names keeps the meaning of its file name.
fn single_manifest(path: &Path) -> (&Path, Vec<Source>) {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let name = path.file_name().unwrap_or(path.as_os_str());
    let rows = match name.to_str() {
        Some(TRAIN) => Rows::Train,
        Some(name) if EVAL.contains(&name) => Rows::Eval,
        _ => Rows::Mixed,
    };
    (folder.unwrap_or(Path::new(".")), vec![Source { file: name.into(), rows }])
}

fn missing_or_closed(path: &Path, source: io::Error) -> DataError {
    if source.kind() != io::ErrorKind::NotFound {
        return closed(path, source);
    }
    DataError::CorpusMissing { path: path.into(), near: near_names(path) }
}

fn closed(path: &Path, source: io::Error) -> DataError {
    DataError::Read { path: path.into(), source }
}

/// Names in the same directory that may be what the user meant, the most similar first.
fn near_names(path: &Path) -> Vec<String> {
    let Some(wanted) = path.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let mut near: Vec<(f64, String)> = names_in(folder.unwrap_or(Path::new(".")))
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&wanted.to_lowercase(), &name.to_lowercase()), name))
        .filter(|(similarity, _)| *similarity > 0.85)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    near.into_iter().take(3).map(|(_, name)| name).collect()
}

fn files_that_may_be_manifests(folder: &Path) -> Vec<String> {
    let mut names = names_in(folder);
    names.retain(|name| {
        let end = Path::new(name).extension().and_then(|end| end.to_str()).unwrap_or("");
        ["csv", "tsv", "txt"].iter().any(|known| end.eq_ignore_ascii_case(known))
            && !name.to_lowercase().starts_with("readme")
            && folder.join(name).is_file()
    });
    names.sort();
    names.truncate(5);
    names
}

/// The folders in `folder`, for an error message.
pub(super) fn folders_in(folder: &Path) -> Vec<String> {
    let mut names = names_in(folder);
    names.retain(|name| !name.starts_with('.') && folder.join(name).is_dir());
    names.sort();
    names.truncate(5);
    names
}

/// For hints only: a directory that cannot be listed has no names.
fn names_in(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_units::Hint;

    fn folder_with(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a directory");
        for file in files {
            fs::write(folder.path().join(file), "a|b\n").expect("written");
        }
        folder
    }

    #[track_caller]
    fn check(files: &[&str], expected: &[(&str, Rows)]) {
        let folder = folder_with(files);
        let found = find(folder.path()).expect("a corpus").sources;
        let expected: Vec<Source> =
            expected.iter().map(|&(file, rows)| Source { file: file.into(), rows }).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_name_of_a_manifest_decides_its_use() {
        check(&["metadata.csv"], &[("metadata.csv", Rows::Mixed)]);
        check(
            &["metadata.csv", "metadata_train.csv", "metadata_eval.csv"],
            &[("metadata_train.csv", Rows::Train), ("metadata_eval.csv", Rows::Eval)],
        );
        check(
            &["metadata.csv", "metadata_val.csv"],
            &[("metadata_val.csv", Rows::Eval), ("metadata.csv", Rows::TrainOutsideEval)],
        );
        check(&["metadata_train.csv"], &[("metadata_train.csv", Rows::Mixed)]);
    }

    #[test]
    fn the_user_may_name_a_manifest() {
        let folder = folder_with(&["lines.txt", "metadata_eval.csv"]);
        for (file, rows) in [("lines.txt", Rows::Mixed), ("metadata_eval.csv", Rows::Eval)] {
            let found = find(&folder.path().join(file)).expect("a manifest");
            assert_eq!(found.sources, [Source { file: file.into(), rows }]);
            assert_eq!(found.root, folder.path().canonicalize().expect("it exists"));
        }
    }

    #[test]
    fn the_error_for_a_missing_manifest_lists_expected_and_existing_files() {
        let folder = folder_with(&["transcripts.txt", "README.txt"]);
        let fault = find(folder.path()).expect_err("no manifest");
        let message = fault.to_string();
        assert!(
            message.contains("metadata.csv") && message.contains("metadata_train.csv"),
            "{message}"
        );
        let hint = fault.hint().expect("a hint");
        assert!(hint.contains("transcripts.txt") && !hint.contains("README"), "{hint}");
    }

    #[test]
    fn the_hint_for_a_mistyped_corpus_names_a_similar_one() {
        let folder = folder_with(&[]);
        fs::create_dir(folder.path().join("ljspeech")).expect("created");
        let fault = find(&folder.path().join("LJspech")).expect_err("not there");
        assert!(matches!(&fault, DataError::CorpusMissing { near, .. } if near == &["ljspeech"]));
        assert!(fault.hint().is_some_and(|hint| hint.contains("ljspeech")));
    }
}
