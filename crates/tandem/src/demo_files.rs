//! The built-in corpora and vocoder: every command that takes a CORPUS also takes the words `demo` and `demo-human`, and
//! `--vocoder` takes `demo`.
//!
//! In: an argument. Out: a directory that can be read like any other. The files are unpacked once into the user's data
//! directory, compared with the built-in bytes at every use, and repaired where they differ; other files there (a cache)
//! are left alone.

use crate::failure::{Advised, Result};
use etcetera::BaseStrategy;
use include_dir::{Dir, DirEntry, File, include_dir};
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3;

static SYNTHETIC: Dir = include_dir!("$CARGO_MANIFEST_DIR/demo-corpus");
static HUMAN: Dir = include_dir!("$CARGO_MANIFEST_DIR/demo-human");
static NEURAL: Dir = include_dir!("$CARGO_MANIFEST_DIR/demo-vocoder");

/// 150 synthetic recordings, small enough for tests; its README.md says where they come from.
static CORPUS: DemoFiles = DemoFiles { name: "demo-corpus", files: &[(&SYNTHETIC, "")] };
/// English of a human speaker, with the Persian recordings of the other corpus: what `tandem demo` trains on.
static HUMAN_CORPUS: DemoFiles =
    DemoFiles { name: "demo-human", files: &[(&HUMAN, ""), (&SYNTHETIC, "wavs/fa")] };
/// A neural vocoder trained on both by `xtask/generators/train_demo_vocoder.sh`.
static VOCODER: DemoFiles = DemoFiles { name: "demo-vocoder", files: &[(&NEURAL, "")] };

/// Overrides the user's data directory.
const DATA_DIR: &str = "TANDEM_DATA_DIR";
/// The argument that names the small corpus and the vocoder. A directory of that name is `./demo`.
pub const DEMO: &str = "demo";
/// The argument that names the corpus with a human voice.
pub const DEMO_HUMAN: &str = "demo-human";

/// The directory a CORPUS argument stands for: a built-in corpus, or a path.
pub fn corpus(named: &Path) -> Result<PathBuf> {
    let built_in = [(DEMO, &CORPUS), (DEMO_HUMAN, &HUMAN_CORPUS)];
    match built_in.into_iter().find(|(name, _)| named == Path::new(name)) {
        Some((_, files)) => files.unpack(&data_dir()?),
        None => Ok(named.to_path_buf()),
    }
}

/// The directory a VOCODER argument stands for: the built-in vocoder, or a path.
pub fn vocoder(named: &Path) -> Result<PathBuf> {
    if named == Path::new(DEMO) { VOCODER.unpack(&data_dir()?) } else { Ok(named.to_path_buf()) }
}

struct DemoFiles {
    name: &'static str,
    /// Directories, and the part of each: a path of a directory inside it, or empty for all.
    files: &'static [(&'static Dir<'static>, &'static str)],
}

impl DemoFiles {
    /// Unpacks the files into a directory of their own inside `to`, or repairs the one there.
    ///
    /// The name holds a hash of the contents: another version of the program has another
    /// directory, and neither changes the files of the other.
    fn unpack(&self, to: &Path) -> Result<PathBuf> {
        let place = to.join(format!("{}-{:016x}", self.name, self.contents_hash()));
        let done = if place.is_dir() { self.repair(&place) } else { self.write_new(&place) };
        done.map_err(|cause| {
            let what = self.name.replace('-', " ");
            Advised::new(
                format!("cannot unpack the {what} into `{}`: {cause}", place.display()),
                format!("name a directory you may write to in the environment variable {DATA_DIR}"),
            )
        })?;
        Ok(place)
    }

    /// Writes to a draft directory first, so that the directory is complete when it appears.
    fn write_new(&self, place: &Path) -> io::Result<()> {
        let draft = draft_of(place);
        let written = self.all().try_for_each(|file| {
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
                return self.repair(place);
            }
        }
        placed
    }

    /// Rewrites files that are missing or differ from the built-in ones, each atomically.
    fn repair(&self, place: &Path) -> io::Result<()> {
        for file in self.all() {
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

    fn contents_hash(&self) -> u64 {
        let mut hash = Xxh3::new();
        for file in self.all() {
            hash.update(file.path().as_os_str().as_encoded_bytes());
            hash.update(&(file.contents().len() as u64).to_le_bytes());
            hash.update(file.contents());
        }
        hash.digest()
    }

    /// Every file, in a fixed order. Hidden files are not part of it, such as a cache that
    /// was in the source directory when the program was built.
    fn all(&self) -> impl Iterator<Item = &File<'static>> {
        let mut found = Vec::new();
        let part = |(all, part): &(&'static Dir<'static>, &str)| match *part {
            "" => Some(*all),
            part => all.get_dir(part),
        };
        let mut open: Vec<_> = self.files.iter().filter_map(part).collect();
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
}

/// Where this program keeps data of the user: the demo files, and what `bench reduce` measured.
pub fn data_dir() -> Result<PathBuf> {
    if let Some(named) = env::var_os(DATA_DIR).filter(|named| !named.is_empty()) {
        return Ok(PathBuf::from(named));
    }
    let base = etcetera::choose_base_strategy().map_err(|_| {
        let advice = format!("name a directory in the environment variable {DATA_DIR}");
        Advised::new("this user has no home directory to unpack the demo files into", advice)
    })?;
    Ok(base.data_dir().join("tandem"))
}

/// In the same directory as the target, since a rename works within one file system only; named by
/// process and thread, since two may write at the same time.
fn draft_of(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let thread = format!("{:?}", std::thread::current().id());
    let thread: String = thread.chars().filter(char::is_ascii_digit).collect();
    target.with_file_name(format!(".{name}.draft-{}-{thread}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_data::corpus::{Corpus, CorpusConfig, Split};

    fn unpacked() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let place = CORPUS.unpack(folder.path()).unwrap();
        (folder, place)
    }

    #[test]
    fn the_built_in_files_are_those_of_the_source() {
        // A file that was added without a rebuild, or forgotten, would be missed here.
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo-corpus");
        for file in CORPUS.all() {
            assert!(fs::read(source.join(file.path())).unwrap() == file.contents());
        }
        let clips = |language: &str| fs::read_dir(source.join("wavs").join(language)).unwrap();
        assert_eq!(CORPUS.all().count(), clips("en").count() + clips("fa").count() + 6);
    }

    #[test]
    fn the_built_in_vocoder_is_read_and_has_the_mel_settings_of_a_voice() {
        let folder = tempfile::tempdir().unwrap();
        let place = VOCODER.unpack(folder.path()).unwrap();
        let read = tandem_model::vocoder::neural::trained::TrainedVocoder::read(&place).unwrap();
        let expected = tandem_audio::mel::MelConfig::SPEECH_22K;
        assert_eq!(read.vocoder.document().mel, expected);
    }

    #[test]
    fn the_unpacked_corpus_is_read_without_a_rejected_row() {
        let (_folder, place) = unpacked();
        let corpus = Corpus::read(&place, &CorpusConfig::default()).unwrap();
        assert_eq!((corpus.utterances.len(), corpus.rejected), (150, Vec::new()));
    }

    /// It takes its Persian recordings and rows from the other corpus.
    #[test]
    fn the_corpus_with_a_human_voice_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let place = HUMAN_CORPUS.unpack(folder.path()).unwrap();
        let corpus = Corpus::read(&place, &CorpusConfig::default()).unwrap();
        let clips =
            |language: &str| fs::read_dir(place.join("wavs").join(language)).unwrap().count();
        assert_eq!(corpus.rejected, Vec::new());
        assert_eq!((clips("en") + clips("fa"), clips("fa")), (corpus.utterances.len(), 75));
        let rows = |dir: &Dir, file: &str| -> Vec<String> {
            let text = dir.get_file(file).unwrap().contents_utf8().unwrap();
            text.lines().filter(|row| row.ends_with("|fa")).map(String::from).collect()
        };
        for file in ["metadata.csv", "metadata_train.csv", "metadata_eval.csv"] {
            assert_eq!(rows(&HUMAN, file), rows(&SYNTHETIC, file), "{file}");
        }
        let kept = corpus.utterances.iter().filter(|one| one.split == Split::Eval).count();
        assert_eq!(kept, 48);
    }

    #[test]
    fn a_second_use_changes_nothing_and_leaves_no_drafts() {
        let (folder, place) = unpacked();
        let clip = place.join("metadata.csv");
        let before = fs::metadata(&clip).unwrap().modified().unwrap();
        assert_eq!(CORPUS.unpack(folder.path()).unwrap(), place);
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
        CORPUS.unpack(folder.path()).unwrap();
        assert!(fs::read(place.join("metadata.csv")).unwrap() == whole);
        assert!(CORPUS.all().all(|f| fs::read(place.join(f.path())).unwrap() == f.contents()));
        assert!(place.join(".tandem-cache").is_dir());
        assert_eq!(fs::read_dir(&place).unwrap().count(), 8);
    }

    #[test]
    fn two_at_once_both_get_the_whole_corpus() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            let workers: Vec<_> =
                (0..4).map(|_| scope.spawn(|| CORPUS.unpack(folder.path()).unwrap())).collect();
            for worker in workers {
                let place = worker.join().unwrap();
                assert!(
                    CORPUS.all().all(|f| fs::read(place.join(f.path())).unwrap() == f.contents())
                );
            }
        });
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_an_error_with_a_hint() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let shown = crate::failure::explain(&CORPUS.unpack(&file).unwrap_err());
        let shown = anstream::adapter::strip_str(&shown).to_string();
        assert!(shown.contains("cannot unpack the demo corpus"), "{shown}");
        assert!(shown.contains("hint: ") && shown.contains("TANDEM_DATA_DIR"), "{shown}");
    }

    #[test]
    fn only_the_plain_words_mean_the_built_in_corpora() {
        assert_eq!(corpus(Path::new("./demo/x")).unwrap(), Path::new("./demo/x"));
        assert_eq!(corpus(Path::new("corpora/demo")).unwrap(), Path::new("corpora/demo"));
        assert_eq!(corpus(Path::new("./demo-human/x")).unwrap(), Path::new("./demo-human/x"));
    }
}
