//! The built-in corpus: every command that takes a CORPUS also takes the word `demo`.
//!
//! In: the CORPUS argument. Out: a directory that can be read like any other corpus. The
//! files are unpacked once into the user's data directory, compared with the built-in bytes
//! at every use, and repaired where they differ; other files there (a cache) are left alone.

use crate::failure::{Advised, Result};
use etcetera::BaseStrategy;
use include_dir::{Dir, DirEntry, File, include_dir};
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3;

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/demo-corpus");

/// Overrides the user's data directory.
const DATA_DIR: &str = "TANDEM_DATA_DIR";

/// The directory a CORPUS argument stands for: `demo` is the built-in corpus, anything else is
/// a path. A directory of that name is `./demo`.
pub fn resolve(corpus: &Path) -> Result<PathBuf> {
    if corpus == Path::new("demo") { unpack(&data_dir()?) } else { Ok(corpus.to_path_buf()) }
}

/// Unpacks the corpus into a directory of its own inside `to`, or repairs the one there.
///
/// The name holds a hash of the contents: another version of the program has another
/// directory, and neither changes the files of the other.
pub fn unpack(to: &Path) -> Result<PathBuf> {
    let place = to.join(format!("demo-corpus-{:016x}", contents_hash()));
    let done = if place.is_dir() { repair(&place) } else { write_new(&place) };
    done.map_err(|cause| {
        Advised::new(
            format!("cannot unpack the demo corpus into `{}`: {cause}", place.display()),
            format!("name a directory you may write to in the environment variable {DATA_DIR}"),
        )
    })?;
    Ok(place)
}

/// Where this program keeps data of the user: the demo corpus, and what `bench reduce` measured.
pub fn data_dir() -> Result<PathBuf> {
    if let Some(named) = env::var_os(DATA_DIR).filter(|named| !named.is_empty()) {
        return Ok(PathBuf::from(named));
    }
    let base = etcetera::choose_base_strategy().map_err(|_| {
        let advice = format!("name a directory in the environment variable {DATA_DIR}");
        Advised::new("this user has no home directory to unpack the demo corpus into", advice)
    })?;
    Ok(base.data_dir().join("tandem"))
}

/// Writes to a draft directory first, so that the directory is complete when it appears.
fn write_new(place: &Path) -> io::Result<()> {
    let draft = draft_of(place);
    let written = files().try_for_each(|file| {
        let path = draft.join(file.path());
        fs::create_dir_all(path.parent().unwrap_or(&draft))?;
        fs::write(path, file.contents())
    });
    let placed = written.and_then(|()| fs::rename(&draft, place));
    if placed.is_err() {
        // An error of the clean-up must not hide the first error.
        let _ = fs::remove_dir_all(&draft);
        // Another process may have written it first.
        if place.is_dir() {
            return repair(place);
        }
    }
    placed
}

/// Rewrites files that are missing or differ from the built-in ones, each atomically.
fn repair(place: &Path) -> io::Result<()> {
    for file in files() {
        let path = place.join(file.path());
        if fs::read(&path).is_ok_and(|there| there == file.contents()) {
            continue;
        }
        fs::create_dir_all(path.parent().unwrap_or(place))?;
        let draft = draft_of(&path);
        fs::write(&draft, file.contents())?;
        fs::rename(&draft, &path)?;
    }
    Ok(())
}

/// In the same directory as the target, since a rename works within one file system only; named by
/// process and thread, since two may write at the same time.
fn draft_of(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let thread = format!("{:?}", std::thread::current().id());
    let thread: String = thread.chars().filter(char::is_ascii_digit).collect();
    target.with_file_name(format!(".{name}.draft-{}-{thread}", std::process::id()))
}

fn contents_hash() -> u64 {
    let mut hash = Xxh3::new();
    for file in files() {
        hash.update(file.path().as_os_str().as_encoded_bytes());
        hash.update(&(file.contents().len() as u64).to_le_bytes());
        hash.update(file.contents());
    }
    hash.digest()
}

/// Every file of the corpus, in a fixed order. Hidden files are not part of it, such as a cache that
/// was in the source directory when the program was built.
fn files() -> impl Iterator<Item = &'static File<'static>> {
    let mut found = Vec::new();
    let mut open = vec![&FILES];
    while let Some(folder) = open.pop() {
        for entry in folder.entries() {
            let name = entry.path().file_name().unwrap_or_default().to_string_lossy();
            match entry {
                _ if name.starts_with('.') => {}
                DirEntry::Dir(folder) => open.push(folder),
                DirEntry::File(file) => found.push(file),
            }
        }
    }
    found.sort_by_key(|file| file.path());
    found.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_data::corpus::{Corpus, CorpusConfig};

    fn unpacked() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let place = unpack(folder.path()).unwrap();
        (folder, place)
    }

    #[test]
    fn the_built_in_files_are_those_of_the_source() {
        // A file that was added without a rebuild, or forgotten, would be missed here.
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo-corpus");
        for file in files() {
            assert!(fs::read(source.join(file.path())).unwrap() == file.contents());
        }
        let clips = |language: &str| fs::read_dir(source.join("wavs").join(language)).unwrap();
        assert_eq!(files().count(), clips("en").count() + clips("fa").count() + 6);
    }

    #[test]
    fn the_unpacked_corpus_is_read_without_a_rejected_row() {
        let (_folder, place) = unpacked();
        let corpus = Corpus::read(&place, &CorpusConfig::default()).unwrap();
        assert_eq!((corpus.utterances.len(), corpus.rejected), (150, Vec::new()));
    }

    #[test]
    fn a_second_use_changes_nothing_and_leaves_no_drafts() {
        let (folder, place) = unpacked();
        let clip = place.join("metadata.csv");
        let before = fs::metadata(&clip).unwrap().modified().unwrap();
        assert_eq!(unpack(folder.path()).unwrap(), place);
        assert_eq!(fs::metadata(&clip).unwrap().modified().unwrap(), before);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_damaged_copy_is_repaired_and_foreign_files_stay() {
        let (folder, place) = unpacked();
        let whole = fs::read(place.join("metadata.csv")).unwrap();
        let mut flipped = whole.clone();
        flipped[100] ^= 1;
        fs::write(place.join("metadata.csv"), flipped).unwrap();
        fs::write(place.join("phonemes.tsv"), "cut").unwrap();
        fs::remove_dir_all(place.join("wavs/fa")).unwrap();
        fs::create_dir(place.join(".tandem-cache")).unwrap();
        unpack(folder.path()).unwrap();
        assert!(fs::read(place.join("metadata.csv")).unwrap() == whole);
        assert!(files().all(|f| fs::read(place.join(f.path())).unwrap() == f.contents()));
        assert!(place.join(".tandem-cache").is_dir());
        assert_eq!(fs::read_dir(&place).unwrap().count(), 8);
    }

    #[test]
    fn two_at_once_both_get_the_whole_corpus() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            let workers: Vec<_> =
                (0..4).map(|_| scope.spawn(|| unpack(folder.path()).unwrap())).collect();
            for worker in workers {
                let place = worker.join().unwrap();
                assert!(files().all(|f| fs::read(place.join(f.path())).unwrap() == f.contents()));
            }
        });
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_an_error_with_a_hint() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let shown = crate::failure::explain(&unpack(&file).unwrap_err());
        let shown = anstream::adapter::strip_str(&shown).to_string();
        assert!(shown.contains("cannot unpack the demo corpus"), "{shown}");
        assert!(shown.contains("hint: ") && shown.contains("TANDEM_DATA_DIR"), "{shown}");
    }

    #[test]
    fn only_the_plain_word_demo_means_the_built_in_corpus() {
        assert_eq!(resolve(Path::new("./demo/x")).unwrap(), Path::new("./demo/x"));
        assert_eq!(resolve(Path::new("corpora/demo")).unwrap(), Path::new("corpora/demo"));
    }
}
