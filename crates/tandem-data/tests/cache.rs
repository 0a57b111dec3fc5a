//! The public interface of the cache: after any damage to its files, everything it returns is correct.

mod cache_kit;

use cache_kit::{
    BANDS, Clip, add, begin, build, check_readable_rows, clips, files, meta, open, record,
    settings_dir,
};
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tandem_data::cache::{Cache, Found, NewRow, Record, RowBuffer};
use tandem_disk::Fingerprint;
use tandem_disk::{Access, AccessKind};

#[test]
fn a_committed_cache_is_read_back_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let clips = clips(3000);
    drop(build(dir.path(), &clips));
    let cache = open(dir.path()).unwrap();
    assert_eq!(cache.len(), 3000);
    assert_eq!(check_readable_rows(&cache, &clips), 3000);
    assert_eq!(check_readable_rows(&cache, &clips), 3000);
}

#[test]
fn a_cache_that_is_truncated_while_it_is_open_loses_rows_and_returns_no_wrong_one() {
    let dir = tempfile::tempdir().unwrap();
    let clips = clips(3000);
    let cache = build(dir.path(), &clips);
    assert_eq!(check_readable_rows(&cache, &clips), 3000);
    for (file, percent, left) in [
        // The index is in memory; the rows depend on the segments only.
        ("index", 50, 3000..=3000),
        ("index", 0, 3000..=3000),
        ("mel-000001.seg", 50, 1300..=1700),
        ("text-000001.seg", 25, 600..=900),
        ("mel-000001.seg", 0, 0..=0),
        ("text-000001.seg", 0, 0..=0),
    ] {
        let file = settings_dir(dir.path()).join(file);
        let file = fs::OpenOptions::new().write(true).open(file).unwrap();
        let length = file.metadata().unwrap().len();
        file.set_len(length * percent / 100).unwrap();
        let whole = check_readable_rows(&cache, &clips);
        assert!(left.contains(&whole), "{whole} of {left:?} rows left");
    }
}

#[test]
fn bytes_that_are_overwritten_while_the_cache_is_open_are_never_returned() {
    let dir = tempfile::tempdir().unwrap();
    let clips = clips(3000);
    let cache = build(dir.path(), &clips);
    assert_eq!(check_readable_rows(&cache, &clips), 3000);
    for (file, left) in [("index", 3000..=3000), ("mel-000001.seg", 2..=2999)] {
        let path = settings_dir(dir.path()).join(file);
        let middle = path.metadata().unwrap().len() / 2;
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[0xff; 10_000], middle).unwrap();
        let whole = check_readable_rows(&cache, &clips);
        assert!(left.contains(&whole), "{whole} of {left:?} rows left");
    }
}

/// Rows that can be read block by block; all of them must be right.
fn check_read_rows(cache: &Cache, clips: &[Clip]) -> usize {
    let mut buffer = RowBuffer::default();
    let mut read = |row: usize, clip: &Clip| {
        let Some(found) = cache.read_row(row, &mut buffer) else { return false };
        assert_eq!((found.id, found.record.source), (clip.id.as_str(), record(clip).source));
        true
    };
    clips.iter().enumerate().filter(|(row, clip)| read(*row, clip)).count()
}

#[test]
fn rows_that_are_read_block_by_block_are_verified_when_they_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let clips = clips(3000);
    // Nothing asks this cache for a row in any order, so its index is never read to memory.
    let cache = build(dir.path(), &clips);
    assert_eq!(check_read_rows(&cache, &clips), 3000);
    let backwards: Vec<_> = clips.iter().rev().cloned().collect();
    let mut buffer = RowBuffer::default();
    for (clip, row) in backwards.iter().zip((0..3000).rev()) {
        assert_eq!(cache.read_row(row, &mut buffer).unwrap().id, clip.id);
    }
    let path = settings_dir(dir.path()).join("index");
    let index = fs::OpenOptions::new().write(true).open(&path).unwrap();
    // One block of records: 512 rows of 128 bytes.
    std::os::unix::fs::FileExt::write_all_at(&index, &[0xff; 100], 2 * 65536 + 500).unwrap();
    assert_eq!(check_read_rows(&cache, &clips), 3000 - 512);
    index.set_len(3 * 65536).unwrap();
    assert_eq!(check_read_rows(&cache, &clips), 0, "the names were at the end");
}

#[test]
fn a_buffer_that_is_used_for_two_caches_does_not_mix_them() {
    let [first, second] = [0, 1].map(|_| tempfile::tempdir().unwrap());
    let (few, more) = (clips(3), clips(9));
    let caches = [build(first.path(), &few[..2]), build(second.path(), &more[5..])];
    let mut buffer = RowBuffer::default();
    for _ in 0..2 {
        assert_eq!(caches[0].read_row(0, &mut buffer).unwrap().id, few[0].id);
        assert_eq!(caches[1].read_row(0, &mut buffer).unwrap().id, more[5].id);
    }
}

#[test]
fn an_open_cache_stays_whole_when_its_files_are_replaced_by_others() {
    let dir = tempfile::tempdir().unwrap();
    let clips = clips(300);
    let cache = build(dir.path(), &clips);
    for path in files(dir.path()) {
        let other = path.with_extension("other");
        fs::write(&other, b"of another program").unwrap();
        fs::rename(&other, &path).unwrap();
    }
    assert_eq!(check_readable_rows(&cache, &clips), 300);
}

#[test]
fn a_read_that_fails_for_a_moment_costs_no_row_and_one_that_keeps_failing_costs_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let clips = clips(1);
    let cache = build(dir.path(), &clips);
    for (failures, left) in [(2, 1), (u32::MAX, 0)] {
        let count = AtomicU32::new(0);
        let fails = move |access: &Access<'_>| {
            let fails =
                access.kind == AccessKind::Read && count.fetch_add(1, Ordering::Relaxed) < failures;
            if fails { Err(std::io::Error::from_raw_os_error(5)) } else { Ok(()) }
        };
        let _watch = tandem_disk::watch_reads(dir.path(), Arc::new(fails));
        assert_eq!(check_readable_rows(&cache, &clips), left);
    }
}

#[test]
fn other_settings_do_not_see_the_cache() {
    let dir = tempfile::tempdir().unwrap();
    build(dir.path(), &clips(3));
    let found = Cache::open(&settings_dir(dir.path()), Fingerprint([4; 16]));
    assert!(matches!(found, Found::Unusable(why) if why.contains("other settings")));
}

#[test]
fn a_disk_that_fails_for_a_moment_does_not_cost_the_cache() {
    let dir = tempfile::tempdir().unwrap();
    let clips = clips(3);
    drop(build(dir.path(), &clips));
    let eio = || Err(std::io::Error::from_raw_os_error(5));
    for kind in [AccessKind::Stat, AccessKind::Open] {
        let count = AtomicU32::new(0);
        let fails_twice = move |access: &Access<'_>| {
            let fails = access.kind == kind && count.fetch_add(1, Ordering::Relaxed) < 2;
            if fails { eio() } else { Ok(()) }
        };
        let watch = tandem_disk::watch_reads(dir.path(), Arc::new(fails_twice));
        assert_eq!(check_readable_rows(&open(dir.path()).unwrap(), &clips), 3, "{kind:?}");
        drop(watch);
        let fails = move |access: &Access<'_>| if access.kind == kind { eio() } else { Ok(()) };
        let _watch = tandem_disk::watch_reads(dir.path(), Arc::new(fails));
        let found = Cache::open(&settings_dir(dir.path()), cache_kit::SETTINGS);
        assert!(matches!(found, Found::Unusable(why) if why.contains("tried 4 times")), "{kind:?}");
    }
}

#[test]
fn a_damaged_block_loses_only_its_own_rows() {
    let dir = tempfile::tempdir().unwrap();
    let clips = clips(3000);
    build(dir.path(), &clips);
    let index = settings_dir(dir.path()).join("index");
    let mut bytes = fs::read(&index).unwrap();
    bytes[200_000] ^= 1;
    fs::write(&index, bytes).unwrap();
    let cache = open(dir.path()).unwrap();
    assert_eq!(cache.damaged_blocks(), 1);
    let whole = check_readable_rows(&cache, &clips);
    // 64 KiB contain 512 records; one more may cross each edge.
    assert!((3000 - 514..3000).contains(&whole), "{whole} rows left");
}

#[test]
fn a_stopped_build_leaves_the_old_state_and_its_entries_are_reused() {
    let dir = tempfile::tempdir().unwrap();
    let clips = clips(50);
    build(dir.path(), &clips[..10]);
    let old = open(dir.path()).unwrap();
    let mut draft = begin(dir.path(), Some(&old));
    clips[10..].iter().for_each(|clip| add(&mut draft, clip));
    draft.suspend().unwrap();

    let old = open(dir.path()).unwrap();
    assert_eq!(old.len(), 10, "an unfinished build is not visible");
    let draft = begin(dir.path(), Some(&old));
    let left = draft.leftovers(Some(&old)).unwrap();
    assert_eq!(left.text.len(), 40);
    assert_eq!(left.mel.len(), 40);
    assert!(left.text.contains_key(&record(&clips[30]).key()));
}

#[test]
fn a_killed_build_leaves_texts_for_the_mel_frames_it_wrote() {
    let dir = tempfile::tempdir().unwrap();
    let long = |mut clip: Clip| {
        clip.mel.resize(30_000 * BANDS, 0.5);
        clip
    };
    let clips: Vec<_> = clips(12).into_iter().map(long).collect();
    let mut draft = begin(dir.path(), None);
    clips.iter().for_each(|clip| add(&mut draft, clip));
    // A copy of what a kill at this moment leaves on the disk; the original directory is locked.
    let after = tempfile::tempdir().unwrap();
    fs::create_dir(settings_dir(after.path())).unwrap();
    for file in files(dir.path()) {
        fs::copy(&file, settings_dir(after.path()).join(file.file_name().unwrap())).unwrap();
    }
    let left = begin(after.path(), None).leftovers(None).unwrap();
    assert!(left.mel.len() >= 8, "{} of 12 mel entries", left.mel.len());
    assert!(left.mel.keys().all(|key| left.text.contains_key(key)));
}

#[test]
fn mostly_unused_segments_are_compacted() {
    let dir = tempfile::tempdir().unwrap();
    let all = clips(20);
    build(dir.path(), &all);
    // The first rebuild leaves its segment sparse; the second sees that.
    for keep in [8, 6, 4] {
        let old = open(dir.path()).unwrap();
        let mut draft = begin(dir.path(), Some(&old));
        for row in 0..keep {
            let found = old.row(row).unwrap();
            let row = NewRow { record: *found.record, id: found.id, audio: "", note: "" };
            draft.push(row, Some(&old)).unwrap();
        }
        draft.commit(meta()).unwrap();
    }
    let cache = open(dir.path()).unwrap();
    assert_eq!(check_readable_rows(&cache, &all), 4);
    let first = settings_dir(dir.path()).join("text-000001.seg");
    assert!(!first.exists(), "the sparse segment is gone: {:?}", files(dir.path()));
}

#[test]
fn a_corpus_that_grows_row_by_row_does_not_get_a_segment_for_each() {
    let dir = tempfile::tempdir().unwrap();
    let all = clips(80);
    for (count, clip) in all.iter().enumerate() {
        let old = open(dir.path());
        let mut draft = begin(dir.path(), old.as_ref());
        for row in 0..count {
            let found = old.as_ref().unwrap().row(row).unwrap();
            let row = NewRow { record: *found.record, id: found.id, audio: "", note: "" };
            draft.push(row, old.as_ref()).unwrap();
        }
        add(&mut draft, clip);
        draft.commit(meta()).unwrap();
    }
    let cache = open(dir.path()).unwrap();
    assert_eq!(check_readable_rows(&cache, &all), 80);
    assert!(cache.meta().segments.len() <= 2 * 64, "{}", cache.meta().segments.len());
}

#[test]
fn a_rejected_row_keeps_its_reason() {
    let dir = tempfile::tempdir().unwrap();
    let mut draft = begin(dir.path(), None);
    let record = Record { state: 1, line: 12, ..Record::default() };
    let row = NewRow { record, id: "bad", audio: "wavs/bad.wav", note: "{\"code\":\"empty\"}" };
    draft.push(row, None).unwrap();
    draft.commit(meta()).unwrap();
    let cache = open(dir.path()).unwrap();
    let row = cache.row(0).unwrap();
    assert_eq!((row.id, row.audio, row.note), ("bad", "wavs/bad.wav", "{\"code\":\"empty\"}"));
}

fn damage_one_file(dir: &Path, file: prop::sample::Index, damage: impl Fn(&mut Vec<u8>)) {
    let files = files(dir);
    let path = &files[file.index(files.len())];
    let mut bytes = fs::read(path).unwrap();
    damage(&mut bytes);
    fs::write(path, bytes).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_bit_flipped_anywhere_is_never_trusted(
        file in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        bit in 0u8..8,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let clips = clips(40);
        build(dir.path(), &clips);
        damage_one_file(dir.path(), file, |bytes| {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
        });
        if let Some(cache) = open(dir.path()) {
            check_readable_rows(&cache, &clips);
        }
    }

    #[test]
    fn a_truncated_file_is_never_trusted(
        file in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let clips = clips(40);
        build(dir.path(), &clips);
        damage_one_file(dir.path(), file, |bytes| bytes.truncate(at.index(bytes.len())));
        if let Some(cache) = open(dir.path()) {
            check_readable_rows(&cache, &clips);
        }
    }
}
