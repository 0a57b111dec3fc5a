//! The cache on a failing disk: a power cut between any two changes, and an error at each change.
//! [`tandem_disk::power_loss`] describes what a power cut may leave; a killed process leaves the states in
//! which all changes are complete.

mod cache_kit;

use cache_kit::{Clip, check_readable_rows, clips, meta, open, record, settings_dir};
use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tandem_data::DataError;
use tandem_data::cache::{Cache, CachedText, Draft, EntryBuffer, NewRow, Record};
use tandem_disk::directory_lock::{Attempt, DirectoryLock};
use tandem_disk::power_loss::{DiskAfterCut, Recorder};

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// Clips of which a few fill the buffer of a segment.
fn long_clips(count: usize) -> Vec<Clip> {
    let mut clips = clips(count);
    for (number, clip) in clips.iter_mut().enumerate() {
        clip.mel.resize(26_000 + 4 * number, number as f32);
    }
    clips
}

/// Updates the cache to these clips like `prepare`: complete rows stay, entries of an unfinished build
/// are reused, the rest is computed.
fn bring_up_to(dir: &Path, clips: &[Clip]) -> Result<Cache, DataError> {
    tandem_disk::create_dir_all(dir).unwrap();
    let Attempt::Held(lock) = DirectoryLock::try_take(dir).unwrap() else {
        panic!("lock is taken")
    };
    let old = open(dir);
    let mut draft = Draft::begin(&settings_dir(dir), cache_kit::SETTINGS, lock, old.as_ref())?;
    match push_all(&mut draft, old.as_ref(), clips) {
        Ok(()) => draft.commit(meta()),
        Err(error) => {
            // Like `prepare`, which reports the first error.
            let _ = draft.suspend();
            Err(error)
        }
    }
}

fn push_all(draft: &mut Draft, old: Option<&Cache>, clips: &[Clip]) -> Result<(), DataError> {
    let left = draft.leftovers(old)?;
    for clip in clips {
        let mut record = record(clip);
        let kept = old.and_then(|old| whole_row(old, &record));
        if let Some(kept) = kept {
            record = kept;
        } else {
            let key = record.key();
            let text = CachedText::new(record.frames, "en", &clip.symbols, &clip.text, "");
            let place = match left.text.get(&key) {
                Some(found) => found.place,
                None => draft.add_text(key, &text)?,
            };
            (record.text_segment, record.text_offset) = (place.segment, place.offset);
            let place = match left.mel.get(&key) {
                Some(place) => *place,
                None => draft.add_mel(key, &clip.mel)?,
            };
            (record.mel_segment, record.mel_offset) = (place.segment, place.offset);
        }
        draft.push(NewRow { record, id: &clip.id, audio: "", note: "" }, old)?;
    }
    Ok(())
}

fn whole_row(old: &Cache, wanted: &Record) -> Option<Record> {
    let found = (0..old.len()).filter_map(|row| Some(*old.row(row)?.record));
    let mut same = found.filter(|record| record.key() == wanted.key());
    let mut buffer = EntryBuffer::default();
    same.find(|record| old.text(record, &mut buffer).is_some() && old.mel(record).is_some())
}

/// Three versions of a corpus: rows are added, most are removed, others are added.
fn times() -> [Vec<Clip>; 3] {
    let all = long_clips(14);
    [all[..11].to_vec(), all[8..12].to_vec(), all[10..].to_vec()]
}

/// The version that a cache contains completely; `None` for any other state.
fn time_of(cache: &Cache, times: &[Vec<Clip>]) -> Option<usize> {
    let fits = |clips: &Vec<Clip>| {
        let ids = clips.iter().map(|clip| Some(clip.id.as_str()));
        cache.len() == clips.len()
            && ids.eq((0..cache.len()).map(|row| cache.row(row).map(|row| row.id)))
            && check_readable_rows(cache, clips) == clips.len()
    };
    times.iter().position(fits)
}

#[test]
fn a_power_cut_leaves_the_old_cache_or_the_new_one_whole() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("recorded");
    fs::create_dir(&root).unwrap();
    let recorder = Recorder::start(&root).unwrap();
    let times = times();
    let mut finished = Vec::new();
    for clips in &times {
        bring_up_to(&root.join("corpus/cache"), clips).unwrap();
        finished.push(recorder.count());
    }
    let changes = recorder.finish();
    let copy = place.path().join("after");
    let mut distinct = HashSet::new();
    for state in changes.states(2) {
        distinct.insert(state.fingerprint());
        state.put(&copy).unwrap();
        let done = finished.iter().filter(|count| **count <= state.after).count();
        check(&copy.join("corpus/cache"), &state, &times, done);
    }
    assert!(distinct.len() >= 300, "only {} states were tested", distinct.len());
}

#[track_caller]
fn check(dir: &Path, state: &DiskAfterCut, times: &[Vec<Clip>], done: usize) {
    let said = format!("after {} changes, {}", state.after, state.how);
    match open(dir) {
        Some(cache) => {
            let time = time_of(&cache, times);
            let allowed = done.saturating_sub(1)..=done;
            assert!(time.is_some_and(|time| allowed.contains(&time)), "{said}: of time {time:?}");
        }
        None => assert_eq!(done, 0, "{said}: a finished cache is gone"),
    }
    let last = &times[times.len() - 1];
    let again = bring_up_to(dir, last).unwrap_or_else(|error| panic!("{said}: {error}"));
    assert_eq!(time_of(&again, times), Some(times.len() - 1), "{said}");
}

#[test]
fn a_full_disk_at_any_change_is_an_error_and_loses_no_finished_row() {
    refused_at_any_change(ENOSPC);
}

#[test]
fn a_broken_disk_at_any_change_is_an_error_and_loses_no_finished_row() {
    refused_at_any_change(EIO);
}

#[track_caller]
fn refused_at_any_change(code: i32) {
    let times = times();
    for number in 0.. {
        let place = tempfile::tempdir().unwrap();
        bring_up_to(place.path(), &times[0]).unwrap();
        bring_up_to(place.path(), &times[1]).unwrap();
        let count = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&count);
        let watch = tandem_disk::watch(
            place.path(),
            Arc::new(move |_| match counter.fetch_add(1, Ordering::Relaxed) == number {
                true => Err(io::Error::from_raw_os_error(code)),
                false => Ok(()),
            }),
        );
        let refused = bring_up_to(place.path(), &times[2]);
        drop(watch);
        if count.load(Ordering::Relaxed) <= number {
            assert!(number > 15, "only {number} changes were refused");
            refused.unwrap();
            return;
        }
        let error = refused.expect_err("the disk refused it").to_string();
        assert!(error.contains(&place.path().display().to_string()), "{number}: {error}");
        let time = time_of(&open(place.path()).expect("a cache is there"), &times);
        assert!(time.is_some_and(|time| time >= 1), "{number}: {time:?}");
        let again = bring_up_to(place.path(), &times[2]).unwrap();
        assert_eq!(time_of(&again, &times), Some(2), "{number}");
    }
}
