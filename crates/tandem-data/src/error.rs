//! What can go wrong between a corpus and its batches, as a fact, a cause and a way out.

use std::io;
use std::path::PathBuf;
use tandem_disk::retry;
use tandem_units::Hint;

/// A fault that stops the work on a corpus. A single bad row is not one: it is a
/// rejected row, listed and passed over.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// There is nothing at the path of the corpus.
    #[error("there is no corpus at `{}`", path.display())]
    CorpusMissing {
        /// What was typed.
        path: PathBuf,
        /// Names beside it that look alike.
        near: Vec<String>,
    },
    /// A directory without a manifest.
    #[error("`{}` holds no manifest (looked for {})", root.display(), quoted(looked_for))]
    ManifestMissing {
        /// The directory.
        root: PathBuf,
        /// The names of manifests.
        looked_for: Vec<String>,
        /// Files there that may be one under another name.
        near: Vec<String>,
    },
    /// A manifest without a single row.
    #[error("manifest `{}` has no rows", manifest.display())]
    ManifestEmpty {
        /// Which manifest.
        manifest: PathBuf,
    },
    /// A manifest whose bytes are not UTF-8 from the start.
    #[error("manifest `{}` is not UTF-8 text but {found}", manifest.display())]
    ManifestEncoding {
        /// Which manifest.
        manifest: PathBuf,
        /// What it looks like instead.
        found: String,
    },
    /// A manifest none of whose lines has the columns it should have.
    #[error(
        "no line of `{}` has {expected} columns between {separator:?}; most have {found}",
        manifest.display()
    )]
    ManifestColumns {
        /// Which manifest.
        manifest: PathBuf,
        /// How many columns are needed.
        expected: String,
        /// How many were found in most lines.
        found: usize,
        /// What stands between columns.
        separator: char,
        /// A character that would fit better.
        likely: Option<char>,
    },
    /// No folder of recordings, and no recording beside the manifest either.
    #[error("`{}` holds no recordings (looked for {})", root.display(), quoted(looked_for))]
    RecordingsMissing {
        /// The corpus directory.
        root: PathBuf,
        /// The names of folders.
        looked_for: Vec<String>,
        /// Folders that are there.
        near: Vec<String>,
        /// Folders of recordings that are links to nothing, such as `wavs`.
        broken_links: Vec<String>,
    },
    /// A setting of the corpus that makes no sense.
    #[error("`corpus.{key}` is {value}, expected {expected}")]
    CorpusSetting {
        /// Which one.
        key: &'static str,
        /// What it was set to.
        value: String,
        /// What it may be.
        expected: &'static str,
    },
    /// A file of the corpus or the cache could not be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file of the cache could not be written.
    #[error("cannot write `{}`", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The corpus is read-only and there is no user directory to keep its cache in.
    #[error("`{}` cannot be written and this user has no home directory", corpus.display())]
    NoHome {
        /// The corpus.
        corpus: PathBuf,
    },
    /// The cache was written and is not readable right after.
    #[error("the cache just written at `{}` cannot be used: {why}", path.display())]
    CacheLost {
        /// The index.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl Hint for DataError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::CorpusMissing { near, .. } if near.is_empty() => Some(
                "name a directory in LJSpeech layout, or `demo` for the built-in corpus".into(),
            ),
            Self::CorpusMissing { near, .. } => Some(format!("did you mean {}?", quoted(near))),
            Self::ManifestMissing { near, .. } if near.is_empty() => {
                Some("write `metadata.csv` with lines of `id|text`, one for each recording".into())
            }
            Self::ManifestMissing { near, .. } => Some(format!(
                "if {} is the manifest, name that file instead of the directory",
                quoted(near)
            )),
            Self::ManifestEmpty { .. } => {
                Some("write one line of `id|text` for each recording".into())
            }
            Self::ManifestEncoding { manifest, .. } => Some(format!(
                "save it as UTF-8, for example: iconv -f ENCODING -t UTF-8 {} > new.csv",
                manifest.display()
            )),
            Self::ManifestColumns { likely: Some(likely), .. } => {
                Some(format!("set `corpus.separator` to {likely:?}: it fits every line looked at"))
            }
            Self::ManifestColumns { .. } => Some(
                "set `corpus.separator` if columns are not split by it, or add a header line \
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
                Some("put the recordings into a folder `wavs` beside the manifest".into())
            }
            Self::RecordingsMissing { near, .. } => Some(format!(
                "if they are in {}, rename it to `wavs`, or write its name before the ids",
                quoted(near)
            )),
            Self::CorpusSetting { key, .. } => {
                Some(format!("correct `corpus.{key}`, or leave it out for the default"))
            }
            Self::Read { source, .. } if is_nowhere(source) => {
                Some("check the path for typing errors".into())
            }
            Self::Read { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some("give yourself read permission, or run as the owner".into())
            }
            Self::Read { source, .. } if retry::gave_up(source) => Some(retry::HINT.into()),
            Self::Read { .. } => None,
            Self::Write { source, .. } if is_full(source) => Some(
                "free some disk space and run the same command again: finished work is kept".into(),
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

/// A path that leads nowhere, at its end or on the way.
fn is_nowhere(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// No room on the disk, or none that this user may have.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}
