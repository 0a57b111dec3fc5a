//! Recognises the layout of a corpus, and finds its manifests.
//!
//! In: a path from the user, and perhaps the layout. Out: [`CorpusFiles`]. A path that does not exist, and a directory
//! without any known layout, are errors that list the expected names and what is there instead. Each layout has a file:
//! how it is recognised, and how its rows are read.

pub(super) mod walk; // folders and small text files
mod ljspeech; // LJSpeech and Piper: metadata.csv
mod common_voice; // validated.tsv and clips/
pub(super) mod kaldi; // ESPnet and Kaldi: wav.scp and text
pub(super) mod json_lines; // NeMo, lhotse: one object per line
pub(super) mod hugging_face; // metadata.csv or metadata.jsonl with file_name
pub(super) mod vctk; // txt/ and wav48/
pub(super) mod libri; // LibriSpeech and LibriTTS
pub(super) mod text_files; // one .txt beside each recording

use super::CorpusConfig;
use super::decisions::DECISIONS;
use crate::DataError;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use tandem_disk::{ReadFile, retry};
use tandem_settings::{SettingValue, ValueKind, words};

const WHOLE: &str = "metadata.csv";
const TRAIN: &str = "metadata_train.csv";
const EVAL: [&str; 2] = ["metadata_eval.csv", "metadata_val.csv"];
/// Bytes of a first line that are looked at.
const FIRST_LINE: u64 = 1 << 16;

/// How the files of a corpus are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// `id|text`, `id|text|normalised` and columns for speaker and language.
    Ljspeech,
    /// The same, with `id|speaker|text`.
    Piper,
    CommonVoice,
    Vctk,
    /// LibriSpeech and LibriTTS.
    Libri,
    /// A `.txt` beside each recording.
    TextFiles,
    /// JSON Lines with a path and a text, as NeMo and others write them.
    Nemo,
    Lhotse,
    /// ESPnet and Kaldi.
    Espnet,
    /// Audio folder.
    HuggingFace,
}

impl SettingValue for Layout {
    const KIND: ValueKind = ValueKind::Word;
    const WORDS: &'static [&'static str] = words!(Layout);

    fn parse(text: &str) -> Result<Layout, String> {
        let known = Layout::ALL.into_iter().find(|layout| layout.name() == text);
        known.ok_or_else(|| format!("expected {}", Layout::WORDS.join(", ")))
    }

    fn text(&self) -> String {
        self.name().to_string()
    }
}

impl Layout {
    pub const ALL: [Layout; 10] = [
        Layout::Ljspeech,
        Layout::Piper,
        Layout::CommonVoice,
        Layout::Vctk,
        Layout::Libri,
        Layout::TextFiles,
        Layout::Nemo,
        Layout::Lhotse,
        Layout::Espnet,
        Layout::HuggingFace,
    ];
    /// The order in which they are looked for: first those that a file of a certain name or header shows.
    const SEARCHED: [Layout; 9] = [
        Layout::HuggingFace,
        Layout::Ljspeech,
        Layout::CommonVoice,
        Layout::Espnet,
        Layout::Nemo,
        Layout::Lhotse,
        Layout::Vctk,
        Layout::Libri,
        Layout::TextFiles,
    ];

    /// The word of the flag and the configuration file.
    pub const fn name(self) -> &'static str {
        match self {
            Layout::Ljspeech => "ljspeech",
            Layout::Piper => "piper",
            Layout::CommonVoice => "common-voice",
            Layout::Vctk => "vctk",
            Layout::Libri => "libri",
            Layout::TextFiles => "text-files",
            Layout::Nemo => "nemo",
            Layout::Lhotse => "lhotse",
            Layout::Espnet => "espnet",
            Layout::HuggingFace => "hugging-face",
        }
    }

    /// The name for people.
    pub fn title(self) -> &'static str {
        match self {
            Layout::Ljspeech => "LJSpeech",
            Layout::Piper => "Piper",
            Layout::CommonVoice => "Common Voice",
            Layout::Vctk => "VCTK",
            Layout::Libri => "LibriSpeech or LibriTTS",
            Layout::TextFiles => "a text file beside each recording",
            Layout::Nemo => "JSON Lines (NeMo)",
            Layout::Lhotse => "lhotse cuts",
            Layout::Espnet => "ESPnet or Kaldi",
            Layout::HuggingFace => "Hugging Face audio folder",
        }
    }

    /// Its manifests name recordings by absolute paths.
    pub(super) fn has_absolute_paths(self) -> bool {
        matches!(self, Layout::Nemo | Layout::Lhotse | Layout::Espnet)
    }

    /// The files that show it.
    fn looked_for(self) -> &'static [&'static str] {
        match self {
            Layout::Ljspeech | Layout::Piper => &[WHOLE, TRAIN],
            Layout::CommonVoice => &["validated.tsv", "train.tsv"],
            Layout::Vctk => &["txt/", "wav48*/"],
            Layout::Libri => &["*.trans.txt", "*.normalized.txt"],
            Layout::TextFiles => &["NAME.txt beside NAME.wav"],
            Layout::Nemo | Layout::Lhotse => &["*.jsonl", "*.json"],
            Layout::Espnet => &["wav.scp", "text"],
            Layout::HuggingFace => &["metadata.csv with file_name", "metadata.jsonl"],
        }
    }

    fn find(self, folder: &Path) -> Option<Found> {
        match self {
            Layout::Ljspeech | Layout::Piper => ljspeech::find(folder),
            Layout::CommonVoice => common_voice::find(folder),
            Layout::Vctk => vctk::find(folder),
            Layout::Libri => libri::find(folder),
            Layout::TextFiles => text_files::find(folder),
            Layout::Nemo | Layout::Lhotse => json_lines::find(folder),
            Layout::Espnet => kaldi::find(folder),
            Layout::HuggingFace => hugging_face::find(folder),
        }
    }
}

/// A corpus directory and its manifests, in the order in which they are read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CorpusFiles {
    /// Symbolic links are resolved, so that a prefix decides what is inside.
    pub root: PathBuf,
    pub layout: Layout,
    pub sources: Vec<Source>,
    /// Other files whose contents change rows, whether they exist or not.
    pub companions: Vec<PathBuf>,
}

/// What a directory was recognised as.
struct Found {
    layout: Layout,
    sources: Vec<Source>,
    companions: Vec<PathBuf>,
}

impl Found {
    fn new(layout: Layout, sources: Vec<Source>) -> Found {
        Found { layout, sources, companions: Vec::new() }
    }
}

/// One manifest, or the folder of the text files that stand in its place.
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

/// Recognises the corpus at `path`, or uses `path` as the manifest.
pub(super) fn find(path: &Path, config: &CorpusConfig) -> Result<CorpusFiles, DataError> {
    let kind = retry(|| fs::metadata(path)).map_err(|source| missing_or_closed(path, source))?;
    let (folder, found) = match kind.is_dir() {
        true => (path, in_folder(path, config.layout)?),
        false => single_manifest(path, config.layout),
    };
    let root = folder.canonicalize().map_err(|source| closed(folder, source))?;
    let Found { layout, sources, mut companions } = found;
    if root.join(DECISIONS).exists() {
        companions.push(DECISIONS.into());
    }
    Ok(CorpusFiles { root, layout: config.layout.unwrap_or(layout), sources, companions })
}

fn in_folder(folder: &Path, wanted: Option<Layout>) -> Result<Found, DataError> {
    let one = wanted.map(|layout| [layout]);
    let searched = one.as_ref().map_or(&Layout::SEARCHED[..], |one| &one[..]);
    if let Some(found) = searched.iter().find_map(|layout| layout.find(folder)) {
        return Ok(found);
    }
    if let Some(packed) = packed_manifest(folder) {
        return Err(packed);
    }
    let looked_for = wanted.unwrap_or(Layout::Ljspeech).looked_for();
    Err(DataError::ManifestMissing {
        root: folder.into(),
        looked_for: looked_for.iter().map(|name| (*name).to_owned()).collect(),
        near: files_that_may_be_manifests(folder),
    })
}

/// Manifests that are recognised but not read.
fn packed_manifest(folder: &Path) -> Option<DataError> {
    let names: Vec<String> =
        names_in(folder).into_iter().chain(names_in(&folder.join("data"))).collect();
    let ends = |end: &str| names.iter().any(|name| name.ends_with(end));
    let unsupported = |what: &str, fix: &str| {
        Some(DataError::LayoutUnsupported {
            root: folder.into(),
            what: what.into(),
            fix: fix.into(),
        })
    };
    match () {
        () if ends(".parquet") => unsupported(
            "parquet files, which are not read",
            "write them as an audio folder: recordings, and `metadata.jsonl` with `file_name` and `text`",
        ),
        () if ends(".jsonl.gz") => {
            unsupported("a compressed manifest, which is not read", "unpack it: gunzip *.jsonl.gz")
        }
        () => None,
    }
}

/// A manifest that the user names keeps the meaning of its file name.
fn single_manifest(path: &Path, wanted: Option<Layout>) -> (&Path, Found) {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let name = path.file_name().unwrap_or(path.as_os_str());
    let rows = match name.to_str() {
        Some(TRAIN) => Rows::Train,
        Some(name) if EVAL.contains(&name) => Rows::Eval,
        _ => Rows::Mixed,
    };
    let layout = wanted.unwrap_or_else(|| layout_of_manifest(path));
    let source = Source { file: name.into(), rows };
    (folder.unwrap_or(Path::new(".")), Found::new(layout, vec![source]))
}

fn layout_of_manifest(path: &Path) -> Layout {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match () {
        () if json_lines::is_manifest_name(name) => {
            json_lines::layout_of(path).unwrap_or(Layout::Nemo)
        }
        () if hugging_face::is_manifest(path) => Layout::HuggingFace,
        () if common_voice::is_table(path) => Layout::CommonVoice,
        () => Layout::Ljspeech,
    }
}

/// The first line of a file, to recognise it; none if it is not UTF-8 or cannot be read. Reading the rows reports why.
fn first_line(file: &Path) -> Option<String> {
    let mut line = Vec::new();
    let opened = ReadFile::open(file).ok()?.take(FIRST_LINE);
    BufReader::new(opened).read_until(b'\n', &mut line).ok()?;
    let line = String::from_utf8(line).ok()?;
    Some(line.trim_start_matches('\u{feff}').trim_end().to_owned())
}

/// The folder of a manifest, relative to the corpus: empty, or with `/` at its end.
fn folder_of(manifest: &Path) -> String {
    match manifest.parent().and_then(Path::to_str) {
        None | Some("") => String::new(),
        Some(folder) => format!("{folder}/"),
    }
}

/// The first folder whose name fits.
fn named_folder(folder: &Path, fits: impl Fn(&str) -> bool) -> Option<String> {
    let mut names = names_in(folder);
    names.retain(|name| fits(name) && folder.join(name).is_dir());
    names.sort();
    names.into_iter().next()
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
        let found = find(folder.path(), &CorpusConfig::default()).expect("a corpus").sources;
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
            let found =
                find(&folder.path().join(file), &CorpusConfig::default()).expect("a manifest");
            assert_eq!(found.sources, [Source { file: file.into(), rows }]);
            assert_eq!(found.root, folder.path().canonicalize().expect("it exists"));
        }
    }

    #[test]
    fn the_error_for_a_missing_manifest_lists_expected_and_existing_files() {
        let folder = folder_with(&["transcripts.txt", "README.txt"]);
        let fault = find(folder.path(), &CorpusConfig::default()).expect_err("no manifest");
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
        let fault =
            find(&folder.path().join("LJspech"), &CorpusConfig::default()).expect_err("not there");
        assert!(matches!(&fault, DataError::CorpusMissing { near, .. } if near == &["ljspeech"]));
        assert!(fault.hint().is_some_and(|hint| hint.contains("ljspeech")));
    }
}
