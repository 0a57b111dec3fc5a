//! A start does not read texts again that an earlier one verified, and misses no change of their file.

mod cache_kit;

use cache_kit::{Clip, build, check_readable_rows, clips, open, settings_dir};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};
use tandem_data::cache::Cache;
use tandem_disk::{Access, AccessKind};
use xxhash_rust::xxh3::xxh3_64;

fn segment(dir: &Path) -> PathBuf {
    settings_dir(dir).join("text-000001.seg")
}

fn checked(dir: &Path) -> PathBuf {
    settings_dir(dir).join("checked")
}

fn is_fresh(cache: &Cache, dir: &Path) -> bool {
    cache.all_fresh(&File::open(dir).unwrap(), 0..cache.len(), |_| true).unwrap()
}

/// A start: opens the cache, compares it, remembers. Returns whether it is fresh, and how often a text segment was read after
/// its header.
fn start(dir: &Path) -> (bool, u32) {
    let cache = open(dir).unwrap();
    let reads = Arc::new(AtomicU32::new(0));
    let counted = reads.clone();
    let count = move |access: &Access<'_>| {
        let is_text = access.path.extension().is_some_and(|kind| kind == "seg");
        if access.kind == AccessKind::Read && is_text {
            counted.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    let watch = tandem_disk::watch_reads(dir, Arc::new(count));
    let fresh = is_fresh(&cache, dir);
    drop(watch);
    if fresh {
        cache.remember_texts().unwrap();
    }
    (fresh, reads.load(Ordering::Relaxed))
}

/// Waits until a change of the text segment would show in its times.
fn settle(dir: &Path) {
    let limit = Instant::now() + Duration::from_secs(30);
    let age =
        || SystemTime::now().duration_since(segment(dir).metadata().unwrap().modified().unwrap());
    while age().unwrap_or_default() < Duration::from_millis(3500) {
        assert!(Instant::now() < limit, "the clock stands still");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn flip_a_text(dir: &Path, offset: u64) {
    let file = File::options().read(true).write(true).open(segment(dir)).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[byte[0] ^ 1], offset).unwrap();
}

fn prepared(rows: usize) -> (tempfile::TempDir, Vec<Clip>) {
    let dir = tempfile::tempdir().unwrap();
    let clips = clips(rows);
    drop(build(dir.path(), &clips));
    (dir, clips)
}

#[test]
fn texts_are_read_by_the_first_start_and_after_each_change() {
    let (dir, clips) = prepared(50);
    let dir = dir.path();
    assert!(
        start(dir).1 > 0 && !checked(dir).exists(),
        "a file that was just written may change unnoticed"
    );
    settle(dir);
    assert!(start(dir).1 > 0 && checked(dir).exists());
    for _ in 0..2 {
        assert_eq!(start(dir), (true, 0), "the texts are known");
    }
    // A rewritten segment has another inode, a copy of its times changes nothing about that.
    let copy = segment(dir).with_extension("copy");
    fs::copy(segment(dir), &copy).unwrap();
    let times = segment(dir).metadata().unwrap().modified().unwrap();
    File::options().write(true).open(&copy).unwrap().set_modified(times).unwrap();
    fs::rename(&copy, segment(dir)).unwrap();
    let (fresh, reads) = start(dir);
    assert!(fresh && reads > 0, "another file");
    // The time of the last change of attributes cannot be set back.
    settle(dir);
    std::thread::sleep(Duration::from_millis(3500));
    assert!(start(dir).1 > 0);
    assert_eq!(start(dir), (true, 0));
    let times = segment(dir).metadata().unwrap().modified().unwrap();
    flip_a_text(dir, 200);
    File::options().write(true).open(segment(dir)).unwrap().set_modified(times).unwrap();
    assert!(!start(dir).0, "a damaged text with the old time of change");
    assert_eq!(check_readable_rows(&open(dir).unwrap(), &clips), 49);
}

#[test]
fn damage_that_no_stamp_shows_is_found_when_the_text_is_used_and_by_the_next_start() {
    let (dir, clips) = prepared(50);
    let dir = dir.path();
    flip_a_text(dir, 200);
    settle(dir);
    // As if the disk had changed the bit after the texts were verified.
    open(dir).unwrap().remember_texts().unwrap();
    assert_eq!(start(dir), (true, 0));
    let cache = open(dir).unwrap();
    assert_eq!(check_readable_rows(&cache, &clips), 49, "the damaged text is never returned");
    assert!(!checked(dir).exists());
    assert!(!start(dir).0, "the row is made again");
}

#[test]
fn a_broken_or_foreign_list_of_verified_segments_is_not_trusted() {
    let (dir, _) = prepared(20);
    let dir = dir.path();
    settle(dir);
    assert!(start(dir).1 > 0);
    assert_eq!(start(dir), (true, 0));
    let whole = fs::read_to_string(checked(dir)).unwrap();
    let body = whole.split_once('\n').unwrap().1;
    let sealed = |body: &str| format!("{:016x}\n{body}", xxh3_64(body.as_bytes())).into_bytes();
    assert_eq!(sealed(body), whole.as_bytes());
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let digit = body.find("\"inode\":").unwrap() + 8;
    let mut other_file = body.to_string();
    other_file.insert(digit, '1');
    let contents = [
        Vec::new(),
        b"of another program".to_vec(),
        whole.as_bytes()[..whole.len() - 1].to_vec(),
        whole.replacen("\"size\":", "\"size\":1", 1).into_bytes(),
        sealed(&body.replace(boot.trim(), "another start of the system")),
        sealed(&body.replacen("\"index\":", "\"index\":1", 1)),
        sealed(&other_file),
        vec![b'0'; 1 << 20],
    ];
    for contents in contents {
        fs::write(checked(dir), &contents).unwrap();
        let (fresh, reads) = start(dir);
        let shown = String::from_utf8_lossy(&contents[..contents.len().min(300)]);
        assert!(fresh && reads > 0, "{shown}");
        assert_eq!(start(dir), (true, 0), "written again");
    }
}

#[test]
fn a_new_index_makes_the_next_start_verify_the_texts_it_uses() {
    let (dir, clips) = prepared(20);
    let dir = dir.path();
    settle(dir);
    assert!(start(dir).1 > 0);
    assert_eq!(start(dir), (true, 0));
    let old = open(dir).unwrap();
    let mut draft = cache_kit::begin(dir, Some(&old));
    let mut buffer = tandem_data::cache::RowBuffer::default();
    for row in 0..clips.len() - 1 {
        let found = old.read_row(row, &mut buffer).unwrap();
        let row = tandem_data::cache::NewRow {
            record: found.record,
            id: found.id,
            audio: found.audio,
            note: found.note,
        };
        draft.push(row, Some(&old)).unwrap();
    }
    draft.commit(cache_kit::meta()).unwrap();
    let (fresh, reads) = start(dir);
    assert!(fresh && reads > 0);
}
