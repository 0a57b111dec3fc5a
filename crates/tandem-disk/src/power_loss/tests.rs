//! The modelled disk against its guarantees.

use super::*;
use crate::File;
use std::io::Write;

/// The possible contents of the file `name` after a cut; `None`: it does not exist.
fn contents(changes: &Changes, name: &str, after: usize) -> HashSet<Option<Vec<u8>>> {
    let states = changes.states(4).into_iter().filter(|state| state.after == after);
    states.map(|state| state.tree.get(Path::new(name)).cloned().flatten()).collect()
}

fn replaced(sync_file: bool) -> (Changes, usize) {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a"), b"old!").unwrap();
    let recorder = Recorder::start(dir.path()).unwrap();
    let mut draft = File::create(&dir.path().join("draft")).unwrap();
    draft.write_all(b"new!").unwrap();
    if sync_file {
        draft.sync_all().unwrap();
    }
    crate::rename(&dir.path().join("draft"), &dir.path().join("a")).unwrap();
    crate::sync_directory(dir.path()).unwrap();
    let end = recorder.count();
    (recorder.finish(), end)
}

#[test]
fn a_file_replaced_atomically_is_old_or_new_and_new_in_the_end() {
    let (changes, end) = replaced(true);
    for after in 0..end {
        let found = contents(&changes, "a", after);
        let whole = [Some(b"old!".to_vec()), Some(b"new!".to_vec())];
        assert!(found.iter().all(|bytes| whole.contains(bytes)), "{after}: {found:?}");
    }
    assert_eq!(contents(&changes, "a", end), HashSet::from([Some(b"new!".to_vec())]));
}

#[test]
fn without_syncing_the_file_the_model_finds_the_damage() {
    let (changes, end) = replaced(false);
    let found = contents(&changes, "a", end);
    for damage in [&b"ne"[..], b"\0\0\0\0", b""] {
        assert!(found.contains(&Some(damage.to_vec())), "{found:?}");
    }
}

#[test]
fn a_file_whose_directory_was_not_synced_may_be_gone_although_it_was_synced_itself() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = Recorder::start(dir.path()).unwrap();
    let mut file = File::create_new(&dir.path().join("a")).unwrap();
    file.write_all(b"text").unwrap();
    file.sync_all().unwrap();
    let end = recorder.count();
    let changes = recorder.finish();
    assert_eq!(contents(&changes, "a", end), HashSet::from([None, Some(b"text".to_vec())]));
}

#[test]
fn a_tree_may_lose_files_before_its_name() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("old")).unwrap();
    fs::write(dir.path().join("old/one"), b"1").unwrap();
    fs::write(dir.path().join("old/two"), b"2").unwrap();
    let recorder = Recorder::start(dir.path()).unwrap();
    crate::rename(&dir.path().join("old"), &dir.path().join("gone")).unwrap();
    crate::remove_dir_all(&dir.path().join("gone")).unwrap();
    let changes = recorder.finish();
    let half = changes.states(4).into_iter().any(|state| {
        let is = |path: &str| state.tree.contains_key(Path::new(path));
        is("old") && is("old/one") != is("old/two")
    });
    assert!(half, "the removal may reach the disk before the rename");
}

#[test]
fn a_state_is_written_to_the_disk_unchanged() {
    let (changes, end) = replaced(true);
    let place = tempfile::tempdir().unwrap();
    let states = changes.states(0);
    for state in states.iter().filter(|state| state.after == end) {
        state.put(&place.path().join("root")).unwrap();
        assert_eq!(read_tree(&place.path().join("root")).unwrap(), state.tree);
    }
}
