//! Errors between a corpus and its batches: the fact, the cause and a hint.

use std::io;
use std::path::PathBuf;
use tandem_disk::retry;
use tandem_units::Hint;

/// An error that stops the work on a corpus. A single bad row is not an error: it is listed as a
/// rejected row and left out.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    #[error("there is no corpus at `{}`", path.display())]
    CorpusMissing {
        path: PathBuf,
        /// Similar names in the same directory.
        near: Vec<String>,
    },
    #[error("`{}` holds no manifest (looked for {})", root.display(), quoted(looked_for))]
    ManifestMissing {
        root: PathBuf,
        looked_for: Vec<String>,
        /// Files that may be a manifest under another name.
        near: Vec<String>,
    },
    #[error("manifest `{}` has no rows", manifest.display())]
    ManifestEmpty { manifest: PathBuf },
    #[error("manifest `{}` is not UTF-8 text but probably {found}", manifest.display())]
    ManifestEncoding {
        manifest: PathBuf,
        /// The encoding that it seems to have.
        found: String,
    },
    #[error(
        "no line of `{}` has {expected} columns between {separator:?}; most have {found}",
        manifest.display()
    )]
    ManifestColumns {
        manifest: PathBuf,
        expected: String,
        /// The number of columns of most lines.
        found: usize,
        separator: char,
        /// A separator that would fit every sampled line.
        likely: Option<char>,
    },
    #[error("the first line of `{}` names no `file_name` and text", manifest.display())]
    ManifestHeader { manifest: PathBuf },
    /// A layout that is recognised and not read.
    #[error("`{}` has {what}", root.display())]
    LayoutUnsupported {
        root: PathBuf,
        what: String,
        /// What to do, as one clause.
        fix: String,
    },
    #[error("the lines of manifest `{}` end in a carriage return alone", manifest.display())]
    ManifestLineEnds { manifest: PathBuf },
    /// No folder of recordings, and no recording in the corpus directory either.
    #[error("`{}` holds no recordings (looked for {})", root.display(), quoted(looked_for))]
    RecordingsMissing {
        root: PathBuf,
        looked_for: Vec<String>,
        /// Folders that exist in the corpus.
        near: Vec<String>,
        /// Folders of recordings that are links to nothing, such as `wavs`.
        broken_links: Vec<String>,
    },
    #[error("`corpus.{key}` is {value}, expected {expected}")]
    CorpusSetting {
        key: &'static str,
        /// What it was set to.
        value: String,
        expected: &'static str,
    },
    #[error("line {line} of `{}` is no decision", path.display())]
    Decision { path: PathBuf, line: usize },
    #[error("cannot read `{}`", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot write `{}`", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The corpus is read-only and there is no user directory for its cache.
    #[error("`{}` cannot be written and this user has no home directory", corpus.display())]
    NoHome { corpus: PathBuf },
    /// The cache was written, but cannot be opened right afterwards.
    #[error("the cache just written at `{}` cannot be used: {why}", path.display())]
    CacheLost { path: PathBuf, why: String },
}

impl Hint for DataError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::CorpusMissing { near, .. } if near.is_empty() => Some(
                "name a corpus directory, or `demo` for the built-in corpus".into(),
            ),
            Self::CorpusMissing { near, .. } => Some(format!("did you mean {}?", quoted(near))),
            Self::ManifestMissing { near, .. } if near.is_empty() => {
                Some(
                "write `metadata.csv` with lines of `id|text`, one for each recording, or name a directory in another \
                 known layout (docs/data.md)"
                    .into(),
            )
            }
            Self::ManifestMissing { near, .. } => Some(format!(
                "if {} is the manifest, name that file instead of the directory",
                quoted(near)
            )),
            Self::Decision { .. } => Some(
                "write an id, then keep, drop or fix, and behind fix the text, with tabs between".into(),
            ),
            Self::ManifestEmpty { .. } => {
                Some("write one line of `id|text` for each recording".into())
            }
            Self::ManifestEncoding { manifest, found } => Some(format!(
                "save it as UTF-8, for example: iconv -f {found} -t UTF-8 {} > new.csv",
                manifest.display()
            )),
            Self::ManifestLineEnds { manifest } => Some(format!(
                "convert it: tr '\\r' '\\n' < {} > new.csv, and put new.csv in its place",
                manifest.display()
            )),
            Self::ManifestHeader { .. } => {
                Some("write a first line such as `file_name,text`, or name the layout with `--layout`".into())
            }
            Self::LayoutUnsupported { fix, .. } => Some(fix.clone()),
            Self::ManifestColumns { likely: Some(likely), .. } => {
                let typed = if *likely == '\t' { "tab".into() } else { format!("'{likely}'") };
                Some(format!(
                    "type `--separator {typed}` (key `corpus.separator = {:?}`): it fits the lines looked at",
                    likely.to_string()
                ))
            }
            Self::ManifestColumns { .. } => Some(
                "type `--separator CHAR` (key `corpus.separator`) if columns are not split by it, or add a header line \
                 that names the columns (id, text, normalised, speaker, language)"
                    .into(),
            ),
            Self::RecordingsMissing { broken_links, .. } if !broken_links.is_empty() => {
                Some(format!(
                    "the link {} leads to no directory: mount the disk, or correct the link",
                    quoted(broken_links)
                ))
            }
            Self::RecordingsMissing { near, .. } if near.is_empty() => {
                Some("put the recordings into a folder `wavs` next to the manifest".into())
            }
            Self::RecordingsMissing { near, .. } => Some(format!(
                "if they are in {}, rename it to `wavs`, or write its name before the ids",
                quoted(near)
            )),
            Self::CorpusSetting { key, .. } => {
                let typed = match *key {
                    "separator" => "`--separator`, or ",
                    "recordings_dir" => "`--recordings-dir`, or ",
                    _ => "",
                };
                Some(format!("correct {typed}`corpus.{key}`, or leave it out for the default"))
            }
            Self::Read { source, .. } if is_missing(source) => {
                Some("check the path for typing errors".into())
            }
            Self::Read { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some("give yourself read permission, or run as the owner".into())
            }
            Self::Read { source, .. } if retry::gave_up(source) => Some(retry::HINT.into()),
            Self::Read { source, .. } if source.kind() == io::ErrorKind::IsADirectory => {
                Some("name a file, not a directory".into())
            }
            Self::Read { .. } => Some("check the disk (`dmesg`) and the path".into()),
            Self::Write { source, .. } if is_full(source) => Some(
                "free some disk space and run the same command again: finished work is not lost"
                    .into(),
            ),
            Self::Write { source, .. } if source.kind() == io::ErrorKind::FileTooLarge => Some(
                "raise the limit for the size of a file (`ulimit -f`), or name another disk with \
                 `--cache-dir`"
                    .into(),
            ),
            Self::CacheLost { .. } => {
                Some("check the disk (`dmesg`), then run the same command again".into())
            }
            Self::Write { .. } | Self::NoHome { .. } => {
                Some("name a directory you may write to with `--cache-dir`".into())
            }
        }
    }
}

/// The path does not exist, at its end or before.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The disk or the quota of this user is full.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}
