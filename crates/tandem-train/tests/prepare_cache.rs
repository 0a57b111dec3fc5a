//! Repeated preparation: which rows are processed again, reused or rejected.

mod kit;

use kit::{Content, NoProgress, TestCorpus, contents, id, line, tone};
use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use tandem_data::corpus::{RejectReason, TextColumn};
use tandem_pipeline::CancelToken;
use tandem_text::FrontEnd;
use tandem_train::{DataSettings, Prepared, Watcher, prepare};

/// Numbers of processed, recovered and touched rows.
fn did(prepared: &Prepared) -> [usize; 3] {
    let s = &prepared.summary;
    [s.rebuilt, s.recovered, s.touched]
}

/// The contents after preparation into an empty cache.
fn clean(corpus: &TestCorpus) -> Vec<Content> {
    let folder = tempfile::tempdir().unwrap();
    let mut options = corpus.options.clone();
    options.cache_dir = Some(folder.path().to_path_buf());
    let cancel = CancelToken::new();
    contents(&prepare(corpus.root(), &corpus.settings, &options, &mut NoProgress, &cancel).unwrap())
}

#[track_caller]
fn check(corpus: &TestCorpus, expected: [usize; 3]) {
    let prepared = corpus.prepare();
    assert_eq!(did(&prepared), expected, "rebuilt, recovered, touched");
    assert_eq!(contents(&prepared), clean(corpus));
}

#[test]
fn only_changed_rows_are_processed_again() {
    let mut corpus = TestCorpus::with_rows(12);
    check(&corpus, [12, 0, 0]);
    check(&corpus, [0, 0, 0]);
    corpus.lines[4] = format!("{}|Something else.|", id(4));
    corpus.write_manifest();
    check(&corpus, [1, 0, 0]);
    corpus.write_clip(&id(7), 50);
    check(&corpus, [1, 0, 0]);
    corpus.settings.max_mel_frames = 700;
    check(&corpus, [12, 0, 0]);
    check(&corpus, [0, 0, 0]);
    corpus.settings.max_mel_frames = 800;
    check(&corpus, [0, 0, 0]);
}

#[test]
fn each_setting_that_changes_the_result_has_its_own_cache() {
    let mut corpus = TestCorpus::with_rows(3).with_long_recordings();
    corpus.prepare();
    let defaults = corpus.settings.clone();
    let changes: [fn(&mut DataSettings); 10] = [
        |settings| settings.audio.trim_silence = Some(-40.0),
        |settings| settings.audio.trim_margin = 20.0,
        |settings| settings.audio.loudness = Some(-23.0),
        |settings| settings.max_mel_frames = 799,
        |settings| settings.mel.bands = 40,
        |settings| settings.mel.high = 7_000.0,
        |settings| settings.text.max_symbols = 150,
        |settings| settings.corpus.eval_share = 0.3,
        |settings| settings.corpus.text_column = TextColumn::Text,
        |settings| settings.audio.min_peak = 1e-4,
    ];
    for change in changes {
        corpus.settings = defaults.clone();
        change(&mut corpus.settings);
        check(&corpus, [3, 0, 0]);
        check(&corpus, [0, 0, 0]);
    }
    corpus.settings = defaults;
    check(&corpus, [0, 0, 0]);
}

/// Every number, switch and name of the settings, at its place in JSON. A new setting is in it by itself.
#[test]
fn no_setting_of_the_data_is_missing_in_the_key_of_the_cache() {
    let mut settings = DataSettings::default();
    // Unset values are not written as JSON.
    settings.audio.trim_silence = Some(-40.0);
    settings.audio.loudness = Some(-23.0);
    let front_end = FrontEnd::new(&settings.text).unwrap();
    let key = |settings: &DataSettings| {
        // Texts have a key of their own, which reads its settings from the front end.
        let front_end = FrontEnd::new(&settings.text).unwrap();
        settings.fingerprint(&front_end).unwrap()
    };
    assert_eq!(key(&settings), settings.fingerprint(&front_end).unwrap());
    let json = serde_json::to_value(&settings).unwrap();
    let mut changed = Vec::new();
    for place in leaves(&json, String::new()) {
        let others = others(json.pointer(&place).unwrap());
        let accepted = others.into_iter().find_map(|other| {
            let mut json = json.clone();
            *json.pointer_mut(&place).unwrap() = other;
            let other = serde_json::from_value::<DataSettings>(json).ok()?;
            (other != settings && FrontEnd::new(&other.text).is_ok()).then_some(other)
        });
        let Some(other) = accepted else { continue };
        assert_ne!(other, settings, "{place}");
        assert_ne!(key(&other), key(&settings), "{place}");
        changed.push(place);
    }
    for place in ["/audio/trim_silence", "/audio/trim_margin", "/audio/loudness", "/max_mel_frames"]
    {
        assert!(changed.iter().any(|other| other == place), "{place} in {changed:?}");
    }
    assert!(changed.len() > 15, "{changed:?}");
}

fn leaves(json: &Value, place: String) -> Vec<String> {
    match json {
        Value::Object(parts) => {
            parts.iter().flat_map(|(key, part)| leaves(part, format!("{place}/{key}"))).collect()
        }
        _ => vec![place],
    }
}

/// Values that differ from this one, of which a setting may accept some.
fn others(value: &Value) -> Vec<Value> {
    match value {
        Value::Number(number) => {
            let number_now = number.as_f64().unwrap();
            let whole = number.as_i64().map_or(Value::Null, |whole| Value::from(whole + 1));
            vec![whole, Value::from(number_now * 1.25), Value::from(number_now + 0.5)]
        }
        Value::Bool(is_on) => vec![Value::from(!is_on)],
        Value::Null => vec![Value::from(0.5), Value::from(1), Value::from("en")],
        Value::String(_) | Value::Array(_) | Value::Object(_) => Vec::new(),
    }
}

#[test]
fn workers_and_the_rejection_limit_do_not_make_a_cache_stale() {
    let mut corpus = TestCorpus::with_rows(5);
    corpus.prepare();
    corpus.options.workers = 7;
    corpus.options.max_rejected = 0.9;
    check(&corpus, [0, 0, 0]);
}

#[test]
fn a_touched_recording_is_read_and_found_unchanged() {
    let corpus = TestCorpus::with_rows(6);
    corpus.prepare();
    let bytes = fs::read(corpus.clip(2)).unwrap();
    fs::remove_file(corpus.clip(2)).unwrap();
    fs::write(corpus.clip(2), bytes).unwrap();
    check(&corpus, [0, 0, 1]);
    check(&corpus, [0, 0, 0]);
}

#[test]
fn rows_may_be_added_removed_and_reordered() {
    let mut corpus = TestCorpus::with_rows(9);
    corpus.prepare();
    corpus.write_clip(&id(9), 9);
    corpus.lines.push(line(9));
    corpus.write_manifest();
    check(&corpus, [1, 0, 0]);
    corpus.lines.remove(2);
    corpus.write_manifest();
    check(&corpus, [0, 0, 0]);
    corpus.lines.reverse();
    corpus.write_manifest();
    check(&corpus, [0, 0, 0]);
    // The rows are in the order of the manifest.
    let prepared = corpus.prepare();
    let first = prepared.cache.row(0).unwrap();
    assert_eq!((first.id, first.record.line), (id(9).as_str(), 1));
}

#[test]
fn a_row_whose_id_is_written_again_is_reused() {
    let mut corpus = TestCorpus::with_rows(9);
    corpus.options.max_rejected = 0.5;
    corpus.lines.extend([line(3), line(3), line(8)]);
    corpus.write_manifest();
    let prepared = corpus.prepare();
    assert_eq!((prepared.summary.usable, prepared.summary.rejected), (9, 3));
    let reasons = prepared.rejected.iter().map(|row| row.reason);
    assert!(reasons.eq([RejectReason::DuplicateId; 3]));
    corpus.lines[5] = format!("{}|Something else.|", id(5));
    corpus.write_manifest();
    check(&corpus, [1, 0, 0]);
}

#[test]
fn a_missing_recording_is_listed_and_used_once_it_exists() {
    let mut corpus = TestCorpus::with_rows(8);
    fs::remove_file(corpus.clip(3)).unwrap();
    let prepared = corpus.prepare();
    assert_eq!((prepared.summary.usable, prepared.summary.rejected), (7, 1));
    assert_eq!(prepared.rejected[0].reason, RejectReason::MissingAudio);
    let list = prepared.summary.rejected_list.clone().expect("a list");
    assert!(fs::read_to_string(&list).unwrap().contains(&id(3)));

    corpus.write_clip(&id(3), 3);
    check(&corpus, [1, 0, 0]);
    assert!(!list.exists(), "an empty list must be removed");

    fs::remove_file(corpus.clip(5)).unwrap();
    assert_eq!(corpus.prepare().rejected[0].id, id(5));
    corpus.lines.remove(5);
    corpus.write_manifest();
    check(&corpus, [0, 0, 0]);
}

#[test]
fn a_bad_manifest_line_does_not_prevent_a_warm_start() {
    let mut corpus = TestCorpus::with_rows(9);
    corpus.lines.push("only one column".into());
    corpus.write_manifest();
    let first = corpus.prepare();
    assert_eq!(first.summary.rejected, 1);
    let index = first.cache.directory().join("index");
    let written = fs::metadata(&index).unwrap().modified().unwrap();
    drop(first);
    let second = corpus.prepare();
    assert_eq!((did(&second), second.rejected.len()), ([0, 0, 0], 1));
    assert_eq!(fs::metadata(&index).unwrap().modified().unwrap(), written);
}

#[test]
fn a_warm_start_lists_rejected_rows_in_the_order_of_the_manifest() {
    let mut corpus = TestCorpus::with_rows(64);
    corpus.options.max_rejected = 0.9;
    corpus.options.workers = 6;
    for row in (0..64).step_by(2) {
        corpus.lines[row] = format!("{}||", id(row));
    }
    corpus.write_manifest();
    let lines = |prepared: &Prepared| -> Vec<u32> {
        prepared.rejected.iter().map(|row| row.line).collect()
    };
    let first = lines(&corpus.prepare());
    assert!(first.len() == 32 && first.is_sorted(), "{first:?}");
    for _ in 0..20 {
        let again = corpus.prepare();
        assert_eq!((did(&again), lines(&again)), ([0, 0, 0], first.clone()));
    }
}

#[test]
fn only_verify_finds_a_change_with_equal_size_and_time() {
    let corpus = TestCorpus::with_rows(6).cache_features();
    corpus.prepare();
    let before = fs::metadata(corpus.clip(1)).unwrap();
    let samples = (before.len() as usize - 44) / 2;
    fs::write(corpus.clip(1), tone(60, samples)).unwrap();
    let file = File::options().write(true).open(corpus.clip(1)).unwrap();
    file.set_modified(before.modified().unwrap()).unwrap();
    drop(file);
    assert_eq!(did(&corpus.prepare()), [0, 0, 0]);
    let verified = corpus.verify();
    assert_eq!(did(&verified), [1, 0, 0]);
    assert_eq!(contents(&verified), clean(&corpus));
}

#[test]
fn features_can_be_added_to_a_cache_later() {
    let corpus = TestCorpus::with_rows(7);
    corpus.prepare();
    let corpus = corpus.cache_features();
    assert_eq!(corpus.prepare().summary.damage, None, "missing features are not damage");
    check(&corpus, [0, 0, 0]);
    assert!(contents(&corpus.prepare()).iter().all(|row| row.mel.is_some()));
}

#[test]
fn lost_features_are_detected_at_the_start() {
    let corpus = TestCorpus::with_rows(5).cache_features();
    let directory = corpus.prepare().cache.directory().to_path_buf();
    for damage in [fs::remove_file as fn(PathBuf) -> _, cut_to_nothing, cut_to_half] {
        let segment = files(&directory).into_iter().find(|path| name(path).starts_with("mel-"));
        damage(segment.expect("features are cached")).unwrap();
        let prepared = corpus.prepare();
        assert!(prepared.summary.rebuilt > 0);
        let damage = prepared.summary.damage.clone().expect("the damage is reported");
        assert!(damage.contains("rows of the cache were damaged"), "{damage}");
        assert_eq!(contents(&prepared), clean(&corpus));
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
fn a_stopped_preparation_is_continued_by_the_next() {
    let corpus = TestCorpus::with_rows(160).cache_features();
    let cancel = CancelToken::new();
    let mut watcher = CancelsAtFirstProgress(cancel.clone());
    let stopped = prepare(corpus.root(), &corpus.settings, &corpus.options, &mut watcher, &cancel);
    assert!(stopped.err().expect("stopped").is_cancelled());
    let prepared = corpus.prepare();
    let [rebuilt, recovered, _] = did(&prepared);
    assert_eq!(rebuilt + recovered, 160);
    assert!(recovered >= 32, "{recovered} rows were recovered");
    assert_eq!(contents(&prepared), clean(&corpus));
    check(&corpus, [0, 0, 0]);
}

struct CancelsAtFirstProgress(CancelToken);

impl Watcher for CancelsAtFirstProgress {
    fn waiting_for(&mut self, _owner: &str) {}
    fn progress(&mut self, _done: usize, _rows: usize) {
        self.0.cancel();
    }
}

#[test]
fn foreign_files_in_the_cache_are_kept_or_ignored() {
    let corpus = TestCorpus::with_rows(4);
    let directory = corpus.prepare().cache.directory().to_path_buf();
    fs::write(directory.join("notes.txt"), "mine").unwrap();
    fs::write(directory.join("text-7.seg"), "not ours").unwrap();
    fs::write(directory.join("text-000900.seg"), "not ours either").unwrap();
    fs::write(directory.join(".index.draft-1"), "of a build that was killed").unwrap();
    corpus.write_clip(&id(2), 77);
    check(&corpus, [1, 0, 0]);
    assert_eq!(fs::read_to_string(directory.join("notes.txt")).unwrap(), "mine");
    assert!(directory.join("text-7.seg").exists());
    assert!(!directory.join(".index.draft-1").exists());
}

#[test]
fn a_cache_of_another_version_or_program_is_rebuilt() {
    let corpus = TestCorpus::with_rows(4);
    let index = corpus.prepare().cache.directory().join("index");
    for bytes in [&b""[..], b"PK\x03\x04", &[0; 9000], b"TANDIDX2"] {
        fs::write(&index, bytes).unwrap();
        let prepared = corpus.prepare();
        let [rebuilt, recovered, _] = did(&prepared);
        // The texts are still there, undamaged and under the right key.
        assert_eq!((rebuilt, recovered), (0, 4));
        assert!(prepared.summary.damage.is_some());
        assert_eq!(contents(&prepared), clean(&corpus));
    }
}

/// Damages each file of the cache at many offsets. The next start gives the contents of a clean build,
/// and no wrong content is ever returned.
#[test]
fn a_cache_truncated_or_flipped_anywhere_gives_the_contents_of_a_clean_build() {
    let corpus = TestCorpus::with_rows(5).cache_features();
    let directory = corpus.prepare().cache.directory().to_path_buf();
    let expected = clean(&corpus);
    let pristine: Vec<_> =
        files(&directory).into_iter().map(|path| (fs::read(&path).unwrap(), path)).collect();
    assert_eq!(pristine.len(), 3, "index, text, mel");
    for (bytes, path) in &pristine {
        for offset in offsets(bytes.len()) {
            for damage in [Damage::Truncate, Damage::Flip] {
                restore(&directory, &pristine);
                fs::write(path, damage.of(bytes, offset)).unwrap();
                let prepared = corpus.prepare();
                for (found, right) in contents(&prepared).into_iter().zip(&expected) {
                    let mel = found.mel.clone().or(right.mel.clone());
                    assert_eq!(&Content { mel, ..found }, right, "{damage:?} {path:?} at {offset}");
                }
                drop(prepared);
                let verified = contents(&corpus.verify());
                assert_eq!(verified, expected, "{damage:?} {path:?} at {offset}");
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Damage {
    Truncate,
    Flip,
}

impl Damage {
    fn of(self, bytes: &[u8], offset: usize) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        match self {
            Damage::Truncate => bytes.truncate(offset),
            Damage::Flip => bytes[offset] ^= 1 << (offset % 8),
        }
        bytes
    }
}

/// Offsets near every header, and some spread over the rest.
fn offsets(length: usize) -> impl Iterator<Item = usize> {
    let near = [0, 9, 30, 63, 64, 70, 100, 130, 4095, 4096, 4100, length - 9, length - 1];
    let spread = (1..12).map(move |part| length * part / 12);
    let mut offsets: Vec<_> =
        near.into_iter().chain(spread).filter(|offset| *offset < length).collect();
    offsets.sort();
    offsets.dedup();
    offsets.into_iter()
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
