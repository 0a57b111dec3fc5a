//! Preparing twice: what is made again, what is kept, and what is never believed.

mod kit;

use kit::{Content, Made, Unwatched, contents, id, line, tone};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use tandem_data::corpus::{RejectReason, TextColumn};
use tandem_pipeline::CancelToken;
use tandem_train::{DataSettings, Prepared, Watcher, prepare};

/// Rows made anew, taken over from an unfinished run, and touched.
fn did(prepared: &Prepared) -> [usize; 3] {
    let s = &prepared.summary;
    [s.rebuilt, s.recovered, s.touched]
}

/// What a corpus is without any history.
fn clean(made: &Made) -> Vec<Content> {
    let folder = tempfile::tempdir().unwrap();
    let mut options = made.options.clone();
    options.cache_dir = Some(folder.path().to_path_buf());
    let cancel = CancelToken::new();
    contents(&prepare(made.root(), &made.settings, &options, &mut Unwatched, &cancel).unwrap())
}

#[track_caller]
fn check(made: &Made, expected: [usize; 3]) {
    let prepared = made.prepare();
    assert_eq!(did(&prepared), expected, "rebuilt, recovered, touched");
    assert_eq!(contents(&prepared), clean(made));
}

#[test]
fn only_what_changed_is_made_again() {
    let mut made = Made::with_rows(12);
    check(&made, [12, 0, 0]);
    check(&made, [0, 0, 0]);
    made.lines[4] = format!("{}|Something else.|", id(4));
    made.write_manifest();
    check(&made, [1, 0, 0]);
    made.write_clip(&id(7), 50);
    check(&made, [1, 0, 0]);
    made.settings.max_mel_frames = 700;
    check(&made, [12, 0, 0]);
    check(&made, [0, 0, 0]);
    made.settings.max_mel_frames = 800;
    check(&made, [0, 0, 0]);
}

#[test]
fn each_setting_that_changes_the_result_makes_a_cache_of_its_own() {
    let mut made = Made::with_rows(3);
    made.prepare();
    let usual = made.settings.clone();
    let changes: [fn(&mut DataSettings); 6] = [
        |settings| settings.mel.bands = 40,
        |settings| settings.mel.high = 7_000.0,
        |settings| settings.text.max_symbols = 150,
        |settings| settings.corpus.eval_share = 0.3,
        |settings| settings.corpus.text_column = TextColumn::Text,
        |settings| settings.audio.min_peak = 1e-4,
    ];
    for change in changes {
        made.settings = usual.clone();
        change(&mut made.settings);
        check(&made, [3, 0, 0]);
        check(&made, [0, 0, 0]);
    }
    made.settings = usual;
    check(&made, [0, 0, 0]);
}

#[test]
fn workers_and_limits_of_patience_do_not_make_a_cache_stale() {
    let mut made = Made::with_rows(5);
    made.prepare();
    made.options.workers = 7;
    made.options.max_rejected = 0.9;
    check(&made, [0, 0, 0]);
}

#[test]
fn a_touched_recording_is_read_and_found_the_same() {
    let made = Made::with_rows(6);
    made.prepare();
    let bytes = fs::read(made.clip(2)).unwrap();
    fs::remove_file(made.clip(2)).unwrap();
    fs::write(made.clip(2), bytes).unwrap();
    check(&made, [0, 0, 1]);
    check(&made, [0, 0, 0]);
}

#[test]
fn rows_may_come_go_and_change_places() {
    let mut made = Made::with_rows(9);
    made.prepare();
    made.write_clip(&id(9), 9);
    made.lines.push(line(9));
    made.write_manifest();
    check(&made, [1, 0, 0]);
    made.lines.remove(2);
    made.write_manifest();
    check(&made, [0, 0, 0]);
    made.lines.reverse();
    made.write_manifest();
    check(&made, [0, 0, 0]);
    // The order of the rows is the manifest's, not the cache's.
    let prepared = made.prepare();
    let first = prepared.cache.row(0).unwrap();
    assert_eq!((first.id, first.record.line), (id(9).as_str(), 1));
}

#[test]
fn a_missing_recording_is_listed_and_picked_up_when_it_appears() {
    let mut made = Made::with_rows(8);
    fs::remove_file(made.clip(3)).unwrap();
    let prepared = made.prepare();
    assert_eq!((prepared.summary.usable, prepared.summary.rejected), (7, 1));
    assert_eq!(prepared.rejected[0].reason, RejectReason::MissingAudio);
    let list = prepared.summary.rejected_list.clone().expect("a list");
    assert!(fs::read_to_string(&list).unwrap().contains(&id(3)));

    made.write_clip(&id(3), 3);
    check(&made, [1, 0, 0]);
    assert!(!list.exists(), "a list of no rows must not stay behind");

    fs::remove_file(made.clip(5)).unwrap();
    assert_eq!(made.prepare().rejected[0].id, id(5));
    made.lines.remove(5);
    made.write_manifest();
    check(&made, [0, 0, 0]);
}

#[test]
fn a_row_that_is_bad_in_the_manifest_alone_does_not_cost_the_warm_start() {
    let mut made = Made::with_rows(9);
    made.lines.push("only one column".into());
    made.write_manifest();
    let first = made.prepare();
    assert_eq!(first.summary.rejected, 1);
    let index = first.cache.directory().join("index");
    let written = fs::metadata(&index).unwrap().modified().unwrap();
    drop(first);
    let second = made.prepare();
    assert_eq!((did(&second), second.rejected.len()), ([0, 0, 0], 1));
    assert_eq!(fs::metadata(&index).unwrap().modified().unwrap(), written);
}

#[test]
fn only_verifying_finds_a_change_behind_equal_size_and_time() {
    let made = Made::with_rows(6).keep_features();
    made.prepare();
    let before = fs::metadata(made.clip(1)).unwrap();
    let samples = (before.len() as usize - 44) / 2;
    fs::write(made.clip(1), tone(60, samples)).unwrap();
    let file = File::options().write(true).open(made.clip(1)).unwrap();
    file.set_modified(before.modified().unwrap()).unwrap();
    drop(file);
    assert_eq!(did(&made.prepare()), [0, 0, 0]);
    let verified = made.verify();
    assert_eq!(did(&verified), [1, 0, 0]);
    assert_eq!(contents(&verified), clean(&made));
}

#[test]
fn features_asked_for_later_are_made_then_and_kept() {
    let made = Made::with_rows(7);
    made.prepare();
    let made = made.keep_features();
    assert_eq!(made.prepare().summary.damage, None, "they were never there");
    check(&made, [0, 0, 0]);
    assert!(contents(&made.prepare()).iter().all(|row| row.mel.is_some()));
}

#[test]
fn lost_features_are_noticed_at_the_start() {
    let made = Made::with_rows(5).keep_features();
    let directory = made.prepare().cache.directory().to_path_buf();
    for damage in [fs::remove_file as fn(PathBuf) -> _, cut_to_nothing, cut_to_half] {
        let segment = files(&directory).into_iter().find(|path| name(path).starts_with("mel-"));
        damage(segment.expect("features are kept")).unwrap();
        let prepared = made.prepare();
        assert!(prepared.summary.rebuilt > 0);
        let damage = prepared.summary.damage.clone().expect("the user is told");
        assert!(damage.contains("rows of the cache were damaged"), "{damage}");
        assert_eq!(contents(&prepared), clean(&made));
    }
}

fn cut_to_nothing(path: PathBuf) -> std::io::Result<()> {
    fs::write(path, b"")
}

fn cut_to_half(path: PathBuf) -> std::io::Result<()> {
    let bytes = fs::read(&path)?;
    fs::write(path, &bytes[..bytes.len() / 2])
}

#[test]
fn a_stopped_run_is_continued_by_the_next() {
    let made = Made::with_rows(160).keep_features();
    let cancel = CancelToken::new();
    let mut watcher = StopsAtOnce(cancel.clone());
    let stopped = prepare(made.root(), &made.settings, &made.options, &mut watcher, &cancel);
    assert!(stopped.err().expect("stopped").is_cancelled());
    let prepared = made.prepare();
    let [rebuilt, recovered, _] = did(&prepared);
    assert_eq!(rebuilt + recovered, 160);
    assert!(recovered >= 32, "{recovered} rows were taken over");
    assert_eq!(contents(&prepared), clean(&made));
    check(&made, [0, 0, 0]);
}

struct StopsAtOnce(CancelToken);

impl Watcher for StopsAtOnce {
    fn waiting_for(&mut self, _owner: &str) {}
    fn progress(&mut self, _done: usize, _rows: usize) {
        self.0.cancel();
    }
}

#[test]
fn foreign_files_in_the_cache_are_left_alone_or_not_believed() {
    let made = Made::with_rows(4);
    let directory = made.prepare().cache.directory().to_path_buf();
    fs::write(directory.join("notes.txt"), "mine").unwrap();
    fs::write(directory.join("text-7.seg"), "not ours").unwrap();
    fs::write(directory.join("text-000900.seg"), "not ours either").unwrap();
    fs::write(directory.join(".index.draft-1"), "of a build that was killed").unwrap();
    made.write_clip(&id(2), 77);
    check(&made, [1, 0, 0]);
    assert_eq!(fs::read_to_string(directory.join("notes.txt")).unwrap(), "mine");
    assert!(directory.join("text-7.seg").exists());
    assert!(!directory.join(".index.draft-1").exists());
}

#[test]
fn a_cache_of_another_version_or_program_is_made_anew() {
    let made = Made::with_rows(4);
    let index = made.prepare().cache.directory().join("index");
    for bytes in [&b""[..], b"PK\x03\x04", &[0; 9000], b"TANDIDX2"] {
        fs::write(&index, bytes).unwrap();
        let prepared = made.prepare();
        let [rebuilt, recovered, _] = did(&prepared);
        // The texts are still there, whole and under the right key.
        assert_eq!((rebuilt, recovered), (0, 4));
        assert!(prepared.summary.damage.is_some());
        assert_eq!(contents(&prepared), clean(&made));
    }
}

/// Each file of the cache, damaged at many places: the next start ends with what a clean build
/// gives, and nothing wrong is ever handed out.
#[test]
fn a_cache_cut_or_flipped_anywhere_ends_as_a_clean_build() {
    let made = Made::with_rows(5).keep_features();
    let directory = made.prepare().cache.directory().to_path_buf();
    let expected = clean(&made);
    let pristine: Vec<_> =
        files(&directory).into_iter().map(|path| (fs::read(&path).unwrap(), path)).collect();
    assert_eq!(pristine.len(), 3, "index, text, mel");
    for (bytes, path) in &pristine {
        for place in places(bytes.len()) {
            for damage in [Damage::Cut, Damage::Flip] {
                restore(&directory, &pristine);
                fs::write(path, damage.of(bytes, place)).unwrap();
                let prepared = made.prepare();
                for (found, right) in contents(&prepared).into_iter().zip(&expected) {
                    let mel = found.mel.clone().or(right.mel.clone());
                    assert_eq!(&Content { mel, ..found }, right, "{damage:?} {path:?} at {place}");
                }
                drop(prepared);
                let verified = contents(&made.verify());
                assert_eq!(verified, expected, "{damage:?} {path:?} at {place}");
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Damage {
    Cut,
    Flip,
}

impl Damage {
    fn of(self, bytes: &[u8], place: usize) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        match self {
            Damage::Cut => bytes.truncate(place),
            Damage::Flip => bytes[place] ^= 1 << (place % 8),
        }
        bytes
    }
}

/// Every header's neighbourhood and a spread over the rest.
fn places(length: usize) -> impl Iterator<Item = usize> {
    let near = [0, 9, 30, 63, 64, 70, 100, 130, 4095, 4096, 4100, length - 9, length - 1];
    let spread = (1..12).map(move |part| length * part / 12);
    let mut places: Vec<_> =
        near.into_iter().chain(spread).filter(|place| *place < length).collect();
    places.sort();
    places.dedup();
    places.into_iter()
}

fn restore(directory: &Path, pristine: &[(Vec<u8>, PathBuf)]) {
    for path in files(directory) {
        fs::remove_file(path).unwrap();
    }
    for (bytes, path) in pristine {
        fs::write(path, bytes).unwrap();
    }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
