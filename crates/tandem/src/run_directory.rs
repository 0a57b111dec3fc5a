//! The directory of a training run.
//!
//! In: the directory that the user typed, or the name of a run (corpus, model size, batch size). Out:
//! [`RunDirectory`]. Without a typed directory each run gets a new one, `runs/NAME-N`: it is created by
//! one system call that fails if the directory exists, so that two runs never share one. `--resume`
//! without a directory takes the newest run. An empty directory is removed when its run fails early.

use crate::failure::{Advised, Context, Result};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tandem_telemetry::RunRecord;

/// Where runs are created if no directory is typed.
pub const RUNS: &str = "runs";
/// The default of earlier versions.
const FORMER: &str = "run";
/// Longer names are cut.
const LONGEST_NAME: usize = 40;

/// The directory of a run.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    origin: Origin,
}

/// How the directory was chosen.
#[derive(Debug, PartialEq, Eq)]
enum Origin {
    Typed,
    /// Created for this run.
    New,
    /// The newest of so many runs that can be resumed.
    Newest(usize),
}

/// What a run trains, for its name.
#[derive(Clone, Debug)]
pub struct RunName(String);

impl RunName {
    /// `ljspeech-small-b16`
    pub fn of(corpus: &Path, model_size: &str, batch_size: usize) -> RunName {
        RunName(format!("{}-{model_size}-b{batch_size}", corpus_name(corpus)))
    }
}

impl RunDirectory {
    pub fn typed(path: &Path) -> RunDirectory {
        RunDirectory { path: path.to_path_buf(), origin: Origin::Typed }
    }

    /// Creates a new directory below `root`.
    pub fn create(root: &Path, name: &RunName) -> Result<RunDirectory> {
        let unusable = || format!("cannot create a run directory in `{}`", root.display());
        fs::create_dir_all(root).with_context(unusable)?;
        let taken = runs_in(root).filter_map(|path| number_of(&path, name)).max();
        let mut number = taken.unwrap_or(0) + 1;
        loop {
            let path = root.join(format!("{}-{number}", name.0));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(RunDirectory { path, origin: Origin::New }),
                // Another run was faster.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error).with_context(unusable),
            }
        }
    }

    /// The newest run below `root` that has a checkpoint: of this name, otherwise of any.
    pub fn newest(root: &Path, name: &RunName) -> Result<RunDirectory> {
        let all: Vec<_> = runs_in(root).filter_map(|path| Some((written(&path)?, path))).collect();
        let same = all.iter().filter(|(_, path)| number_of(path, name).is_some());
        let found = same.max().or_else(|| all.iter().max());
        if let Some((_, path)) = found {
            return Ok(RunDirectory { path: path.clone(), origin: Origin::Newest(all.len()) });
        }
        let fact = format!("no run in `{}` has a checkpoint to resume", root.display());
        let advice = match written(Path::new(FORMER)) {
            Some(_) => {
                "add `--checkpoint-dir run` for the run in `run`, where earlier versions wrote"
            }
            None => "leave out `--resume` to start a new run, or name one with `--checkpoint-dir`",
        };
        Err(Advised::new(fact, advice).into())
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The flags that continue this run, after those that started it.
    pub fn resume_flags(&self) -> String {
        match self.origin {
            Origin::Typed => "--resume".into(),
            _ => format!("--resume --checkpoint-dir {}", self.path.display()),
        }
    }

    /// For the user: which directory it is; `None` where it was typed.
    pub fn note(&self) -> Option<String> {
        let path = self.path.display();
        match self.origin {
            Origin::Typed => None,
            Origin::New => Some(format!("run directory: {path}")),
            Origin::Newest(1) => Some(format!("run directory: {path}, the only run to resume")),
            Origin::Newest(runs) => {
                Some(format!("run directory: {path}, the newest of {runs} runs to resume"))
            }
        }
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        if self.origin == Origin::New {
            // Fails for a directory that is not empty, which is what is wanted.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

/// The run below `root` whose record was written last.
pub fn newest_record(root: &Path) -> Option<PathBuf> {
    let recorded = |path: PathBuf| {
        let facts = fs::metadata(path.join(RunRecord::FILE_NAME)).ok()?;
        Some((facts.modified().ok()?, path))
    };
    runs_in(root).filter_map(recorded).max().map(|(_, path)| path)
}

/// The directories below `root`; none where it cannot be read.
fn runs_in(root: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir())
}

/// When the newest checkpoint of a run was written; `None` without one.
fn written(run: &Path) -> Option<SystemTime> {
    let entries = fs::read_dir(run).ok()?.flatten();
    let checkpoints =
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("step-"));
    checkpoints.filter_map(|entry| entry.metadata().ok()?.modified().ok()).max()
}

/// The N of `NAME-N`.
fn number_of(path: &Path, name: &RunName) -> Option<u64> {
    let file = path.file_name()?.to_str()?;
    file.strip_prefix(name.0.as_str())?.strip_prefix('-')?.parse().ok()
}

/// The name of a corpus directory, of the directory of a manifest, or `demo`.
fn corpus_name(corpus: &Path) -> String {
    let directory = if corpus.is_file() { corpus.parent().unwrap_or(corpus) } else { corpus };
    // `..`, and the directory of a manifest in the current one, have no name of their own.
    let here = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let whole = directory.file_name().map_or_else(|| fs::canonicalize(here).ok(), |_| None);
    let named = whole.as_deref().unwrap_or(directory);
    let name = named.file_name().unwrap_or_default().to_string_lossy();
    let plain = |character: char| match character {
        '_' | '-' => character,
        other if other.is_alphanumeric() => other,
        _ => '-',
    };
    let name: String = name.chars().take(LONGEST_NAME).map(plain).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "corpus".into() } else { name.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::Barrier;

    fn name(corpus: &str) -> RunName {
        RunName::of(Path::new(corpus), "tiny", 16)
    }

    fn keep(run: &RunDirectory) {
        fs::create_dir(run.path().join("step-00000001")).unwrap();
    }

    #[test]
    fn names_come_from_corpus_size_and_batch() {
        assert_eq!(name("demo").0, "demo-tiny-b16");
        assert_eq!(name("corpora/LJ Speech 1.1/").0, "LJ-Speech-1-1-tiny-b16");
        assert_eq!(name("صدا").0, "صدا-tiny-b16");
        assert_eq!(name("/").0, "corpus-tiny-b16");
        assert!(name(&"x".repeat(200)).0.len() < 60);
        let folder = tempfile::tempdir().unwrap();
        let manifest = folder.path().join("voice/metadata.csv");
        fs::create_dir(folder.path().join("voice")).unwrap();
        fs::write(&manifest, "").unwrap();
        assert_eq!(RunName::of(&manifest, "small", 8).0, "voice-small-b8");
    }

    #[test]
    fn each_run_gets_a_new_directory_and_an_empty_one_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("runs");
        let first = RunDirectory::create(&root, &name("demo")).unwrap();
        assert_eq!(first.path(), root.join("demo-tiny-b16-1"));
        keep(&first);
        let second = RunDirectory::create(&root, &name("demo")).unwrap();
        assert_eq!(second.path(), root.join("demo-tiny-b16-2"));
        let (kept, empty) = (first.path().to_path_buf(), second.path().to_path_buf());
        drop((first, second));
        assert!(kept.is_dir() && !empty.exists());
        fs::create_dir(root.join("demo-tiny-b16-9")).unwrap();
        let next = RunDirectory::create(&root, &name("demo")).unwrap();
        assert_eq!(next.path(), root.join("demo-tiny-b16-10"), "old numbers are not used again");
    }

    #[test]
    fn runs_that_start_at_once_get_a_directory_each() {
        let folder = tempfile::tempdir().unwrap();
        let (root, gate) = (folder.path().join("runs"), Barrier::new(8));
        let made: Vec<RunDirectory> = std::thread::scope(|scope| {
            let start = || {
                gate.wait();
                RunDirectory::create(&root, &name("demo")).unwrap()
            };
            let runs: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect()
        });
        let paths: HashSet<&Path> = made.iter().map(RunDirectory::path).collect();
        assert_eq!(paths.len(), 8);
    }

    #[test]
    fn the_newest_run_of_the_same_name_is_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let refused = RunDirectory::newest(root, &name("demo")).unwrap_err();
        assert!(refused.facts()[0].starts_with("no run in"), "{:?}", refused.facts());
        let at = |path: &str, seconds: u64| {
            let step = root.join(path).join("step-00000001");
            fs::create_dir_all(&step).unwrap();
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
            fs::File::open(&step).unwrap().set_modified(time).unwrap();
        };
        at("demo-tiny-b16-2", 30);
        at("demo-tiny-b16-10", 20);
        at("other-tiny-b16-1", 40);
        fs::create_dir(root.join("demo-tiny-b16-11")).unwrap();
        let found = RunDirectory::newest(root, &name("demo")).unwrap();
        assert_eq!(found.path(), root.join("demo-tiny-b16-2"), "written last, with a checkpoint");
        assert!(found.note().unwrap().ends_with("the newest of 3 runs to resume"));
        let any = RunDirectory::newest(root, &name("new")).unwrap();
        assert_eq!(any.path(), root.join("other-tiny-b16-1"), "none of that name");
    }
}
