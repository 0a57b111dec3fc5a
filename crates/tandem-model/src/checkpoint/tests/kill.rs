//! Kills a process before each disk operation of a save, lets each of them fail as on a full and on a
//! broken disk, and checks what is left.

use super::*;
use std::env;
use std::io;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const DIRECTORY: &str = "TANDEM_TEST_CHECKPOINT_DIRECTORY";
const MOMENT: &str = "TANDEM_TEST_CHECKPOINT_MOMENT";
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// Two checkpoints, the first one marked as the best.
fn prepared() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut checkpoints = open(dir.path(), 2);
    checkpoints.save(&contents(100), Mark::Best { score: 0.5 }).unwrap();
    save(&mut checkpoints, 200);
    dir
}

/// The interrupted save: it writes, marks the best, and removes both old checkpoints.
fn interrupted_save(
    directory: &Path,
    at: impl Fn(usize, &str) -> io::Result<()> + Send + Sync + 'static,
) -> Result<Saved, CheckpointError> {
    let mut checkpoints = open(directory, 1);
    let count = AtomicUsize::new(0);
    let _watch = tandem_disk::watch(
        directory,
        Arc::new(move |change| at(count.fetch_add(1, Ordering::Relaxed), &change.name())),
    );
    checkpoints.save(&contents(300), Mark::Best { score: 0.25 })
}

/// The names of all disk operations of that save.
fn moments() -> Vec<String> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let list = seen.clone();
    let hook = move |_: usize, moment: &str| {
        list.lock().unwrap().push(moment.to_string());
        Ok(())
    };
    interrupted_save(prepared().path(), hook).unwrap();
    Arc::try_unwrap(seen).unwrap().into_inner().unwrap()
}

/// There is a usable checkpoint, the mark names a usable one, and the run can continue.
#[track_caller]
fn assert_sound(directory: &Path, moment: &str) {
    let mut checkpoints = open(directory, 2);
    let drafts = names(directory).into_iter().filter(|name| name.starts_with('.')).count();
    assert_eq!(drafts, 0, "drafts left at `{moment}`");
    let newest = checkpoints.load_newest().unwrap().expect("there is one");
    assert!(newest.passed_over.is_empty(), "`{moment}` left half a checkpoint: {newest:?}");
    assert!([200, 300].contains(&newest.contents.step), "{moment}");
    assert_same(&newest.contents, &contents(newest.contents.step));
    let best = checkpoints.best().unwrap().expect("one is marked");
    assert!([(100, 0.5), (300, 0.25)].contains(&(best.step, best.score)), "{moment}");
    assert_same(&load(&best.path, Parts::All).unwrap().contents, &contents(best.step));
    let saved = save(&mut checkpoints, 400);
    assert!(saved.tidied.failed.is_empty());
    assert_eq!(checkpoints.load_newest().unwrap().unwrap().contents.step, 400);
}

fn run_child(directory: &Path, moment: &str, through: &[&str]) -> ExitStatus {
    let here = module_path!().split_once("::").unwrap().1;
    let program = env::current_exe().unwrap();
    let program = program.to_str().unwrap();
    let child = format!("{here}::child");
    let line = [through, &[program, "--exact", child.as_str(), "--ignored", "--quiet"]].concat();
    let ended = Command::new(line[0])
        .args(&line[1..])
        .env(DIRECTORY, directory)
        .env(MOMENT, moment)
        .output()
        .unwrap();
    ended.status
}

#[test]
#[ignore = "a child process of the tests below"]
fn child() {
    let Some(directory) = env::var_os(DIRECTORY) else { return };
    let fatal: usize = env::var(MOMENT).unwrap().parse().unwrap();
    let result = interrupted_save(Path::new(&directory), move |moment, _| {
        if moment == fatal {
            std::process::abort();
        }
        Ok(())
    });
    result.unwrap();
}

#[test]
fn a_kill_at_any_moment_leaves_a_complete_checkpoint() {
    let moments = moments();
    for wanted in [
        "write .step-00000300.draft/weights.safetensors",
        "sync .step-00000300.draft/manifest.json",
        "rename ",
        "remove-tree ",
    ] {
        assert!(moments.iter().any(|moment| moment.starts_with(wanted)), "{moments:?}");
    }
    for (number, moment) in moments.iter().enumerate() {
        let dir = prepared();
        let ended = run_child(dir.path(), &number.to_string(), &[]);
        assert!(ended.code().is_none(), "not killed at `{moment}`: {ended}");
        assert_sound(dir.path(), moment);
    }
    let dir = prepared();
    assert!(run_child(dir.path(), &moments.len().to_string(), &[]).success());
}

#[test]
fn a_full_disk_at_any_moment_only_fails_the_save() {
    refused_at_any_moment(ENOSPC, "disk space");
}

#[test]
fn a_broken_disk_at_any_moment_only_fails_the_save() {
    refused_at_any_moment(EIO, "");
}

#[track_caller]
fn refused_at_any_moment(code: i32, hint: &str) {
    for (number, moment) in moments().iter().enumerate() {
        let dir = prepared();
        let result = interrupted_save(dir.path(), move |at, _| {
            if at == number { Err(io::Error::from_raw_os_error(code)) } else { Ok(()) }
        });
        match result {
            // Only retention may fail without failing the save, and it is reported.
            Ok(saved) => assert_eq!(saved.tidied.failed.len(), 1, "{moment}"),
            Err(error) => {
                assert!(matches!(error, CheckpointError::Write { .. }), "{error}");
                assert!(error.to_string().contains(&dir.path().display().to_string()), "{error}");
                assert!(error.hint().unwrap_or_default().contains(hint), "{error}");
                let left = names(dir.path());
                assert!(!left.iter().any(|name| name.starts_with('.')), "{moment}: {left:?}");
                for old in ["step-00000100", "step-00000200"] {
                    assert!(left.contains(old), "{moment}: {left:?}");
                }
            }
        }
        assert_sound(dir.path(), moment);
    }
}

#[test]
fn a_failing_write_leaves_the_old_checkpoints() {
    // A file size limit acts like a full disk: a write fails in the middle of a file.
    let dir = prepared();
    let limited = ["sh", "-c", r#"trap "" XFSZ; ulimit -f 1; exec "$@""#, "sh"];
    let ended = run_child(dir.path(), "1000", &limited);
    assert_eq!(ended.code(), Some(101), "the child's save should have failed");
    let stay = ["best.json", "lock", "step-00000100", "step-00000200"];
    assert_names(dir.path(), &stay);
    assert_sound(dir.path(), "file size limit");
}
