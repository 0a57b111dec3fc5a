//! Chooses the directory of a corpus's cache.
//!
//! In: the corpus and the user's choice, if any. Out: [`CacheLocation`], a directory that exists and
//! can be written: inside the corpus, or in the user's cache directory if the corpus is read-only.

use crate::DataError;
use etcetera::BaseStrategy;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tandem_disk::Fingerprint;

/// Name of the cache directory inside a corpus.
pub const DIRECTORY: &str = ".tandem-cache";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheLocation {
    /// It exists and can be written.
    pub root: PathBuf,
    pub kind: LocationKind,
}

/// Why this directory was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocationKind {
    /// The user named it.
    Named,
    /// Inside the corpus directory; the default.
    InCorpus,
    /// In the user's cache directory, because the corpus cannot be written.
    UserCache,
}

impl CacheLocation {
    /// Finds and creates the directory. `named` is the user's choice: if it cannot be used, that is
    /// an error, never another directory.
    pub fn find(corpus: &Path, named: Option<&Path>) -> Result<CacheLocation, DataError> {
        if let Some(root) = named {
            let root = root.join(corpus_name(corpus)?);
            return match writable(&root) {
                Ok(()) => Ok(CacheLocation { root, kind: LocationKind::Named }),
                Err(source) => Err(DataError::Write { path: root, source }),
            };
        }
        let inside = corpus.join(DIRECTORY);
        match writable(&inside) {
            Ok(()) => return Ok(CacheLocation { root: inside, kind: LocationKind::InCorpus }),
            Err(error) if is_read_only(&error) => {}
            Err(source) => return Err(DataError::Write { path: inside, source }),
        }
        let base = etcetera::choose_base_strategy()
            .map_err(|_| DataError::NoHome { corpus: corpus.to_path_buf() })?;
        let root = base.cache_dir().join("tandem").join(corpus_name(corpus)?);
        match writable(&root) {
            Ok(()) => Ok(CacheLocation { root, kind: LocationKind::UserCache }),
            Err(source) => Err(DataError::Write { path: root, source }),
        }
    }

    /// The directory for one set of settings. Those of other settings stay, so that going back to
    /// them costs nothing.
    pub fn for_settings(&self, settings: Fingerprint) -> PathBuf {
        self.root.join(settings.to_string())
    }
}

/// A name that is unique per corpus path: the folder's name and a hash of the whole path.
fn corpus_name(corpus: &Path) -> Result<String, DataError> {
    let whole = fs::canonicalize(corpus)
        .map_err(|source| DataError::Read { path: corpus.to_path_buf(), source })?;
    let hash = Fingerprint::of(whole.as_os_str().as_encoded_bytes()).to_string();
    let folder = whole.file_name().unwrap_or_default().to_string_lossy();
    Ok(format!("{folder}-{}", &hash[..12]))
}

/// Creates the directory and tests that a file can be written there.
fn writable(root: &Path) -> io::Result<()> {
    tandem_disk::create_dir_all(root)?;
    let probe =
        root.join(format!(".probe-{}-{:?}", std::process::id(), std::thread::current().id()));
    tandem_disk::write(&probe, b"")?;
    tandem_disk::remove_file(&probe)
}

fn is_read_only(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_inside_the_corpus_unless_the_user_names_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let corpus = dir.path().join("voices");
        fs::create_dir(&corpus).unwrap();
        let inside = CacheLocation::find(&corpus, None).unwrap();
        assert_eq!((inside.root, inside.kind), (corpus.join(DIRECTORY), LocationKind::InCorpus));
        let named = CacheLocation::find(&corpus, Some(&dir.path().join("fast-disk"))).unwrap();
        assert_eq!(named.kind, LocationKind::Named);
        assert!(named.root.starts_with(dir.path().join("fast-disk")));
    }

    #[test]
    fn a_named_directory_that_cannot_be_used_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, b"").unwrap();
        assert!(matches!(
            CacheLocation::find(dir.path(), Some(&file)),
            Err(DataError::Write { .. })
        ));
    }
}
