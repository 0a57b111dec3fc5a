//! Guarantees of the feed, on a real corpus with real threads: the order is that of the plan for any
//! number of workers, and a batch is the same whether it was cached or computed.

mod kit;

use kit::{SPLITS, TestCorpus, id, tone};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;
use tandem_data::batch::{BatchConfig, Position};
use tandem_data::corpus::Split;
use tandem_pipeline::{CancelToken, Ending};
use tandem_telemetry::event::{RunHeader, Skipped};
use tandem_telemetry::{Recorder, Recording};
use tandem_train::feed::Rows;
use tandem_train::{FeedSettings, Prepared, feed};
use tandem_units::{Epoch, Seed};

/// A batch as its consumer receives it.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    position: Position,
    rows: Vec<u32>,
    mel: Vec<u32>,
    symbols: Vec<i32>,
    frame_counts: Vec<i32>,
    symbol_counts: Vec<i32>,
}

fn settings(batch_size: usize, seed: u64, workers: usize) -> FeedSettings {
    let batch = BatchConfig { batch_size, seed: Seed(seed), max_buckets: 3, ..Default::default() };
    let most_workers = workers.max(2);
    FeedSettings { workers, most_workers, epochs: Some(1), ..FeedSettings::new(batch) }
}

fn drain(prepared: &Arc<Prepared>, settings: &FeedSettings, recorder: &Recorder) -> Vec<Seen> {
    drain_with(prepared, settings, recorder, |_| {})
}

/// [`drain`], which calls `after` with the number of batches after each one.
fn drain_with(
    prepared: &Arc<Prepared>,
    settings: &FeedSettings,
    recorder: &Recorder,
    mut after: impl FnMut(usize),
) -> Vec<Seen> {
    let mut batches = feed(prepared, settings, recorder, &CancelToken::new()).expect("started");
    let mut seen = Vec::new();
    while let Some(ready) = batches.next().expect("no error") {
        seen.push(Seen {
            position: ready.position,
            rows: ready.batch.row_ids().to_vec(),
            // Bits, so that the smallest difference counts.
            mel: ready.batch.mel().iter().map(|value| value.to_bits()).collect(),
            symbols: ready.batch.symbols().to_vec(),
            frame_counts: ready.batch.frame_counts().to_vec(),
            symbol_counts: ready.batch.symbol_counts().to_vec(),
        });
        after(seen.len());
    }
    seen
}

fn seen(prepared: &Arc<Prepared>, settings: &FeedSettings) -> Vec<Seen> {
    drain(prepared, settings, &Recorder::off())
}

/// The batches, and the rows that were skipped.
fn seen_and_skipped(
    prepared: &Arc<Prepared>,
    settings: &FeedSettings,
) -> (Vec<Seen>, Vec<Skipped>) {
    let header = RunHeader::now("feed_order", "0", serde_json::Value::Null);
    let (recording, _file) = Recording::in_memory(header).expect("a record");
    let seen = drain(prepared, settings, &recording.recorder());
    let skips = recording.finish().summary.skips;
    assert_eq!(skips.count as usize, skips.first.len());
    (seen, skips.first)
}

fn ids(prepared: &Prepared, split: Split, seen: &[Seen]) -> Vec<String> {
    let rows = Rows::of(prepared, split);
    let id = |row: &u32| prepared.cache.row(rows.cache_row[*row as usize] as usize).unwrap().id;
    seen.iter().flat_map(|batch| &batch.rows).map(|row| id(row).to_string()).collect()
}

#[test]
fn batches_are_the_same_with_1_2_4_and_8_workers() {
    let corpus = TestCorpus::with_rows(40);
    let prepared = corpus.prepare_shared();
    for (batch_size, seed) in [(1, 3), (4, 0), (7, 9)] {
        let one =
            seen(&prepared, &FeedSettings { epochs: Some(2), ..settings(batch_size, seed, 1) });
        for workers in [2, 4, 8] {
            let settings = settings(batch_size, seed, workers);
            let many = seen(&prepared, &FeedSettings { epochs: Some(2), ..settings });
            assert!(one == many, "{workers} workers, batches of {batch_size}");
        }
    }
}

#[test]
fn a_run_resumed_at_any_batch_gets_the_same_batches() {
    let corpus = TestCorpus::with_rows(30);
    let prepared = corpus.prepare_shared();
    let whole = seen(&prepared, &FeedSettings { epochs: Some(2), ..settings(4, 5, 2) });
    assert!(whole.len() > 10, "{} batches", whole.len());
    for (at, first) in whole.iter().enumerate() {
        let start = first.position;
        let rest =
            seen(&prepared, &FeedSettings { start, epochs: Some(2), ..settings(4, 5, 1 + at % 3) });
        assert!(rest == whole[at..], "resumed at {start:?}");
    }
}

#[test]
fn cached_features_equal_computed_ones() {
    let corpus = TestCorpus::with_rows(20);
    let computed = seen(&corpus.prepare_shared(), &settings(4, 1, 2));
    let corpus = corpus.cache_features();
    let prepared = corpus.prepare_shared();
    assert!(prepared.summary.features && prepared.summary.rebuilt == 20);
    // Without recordings the feed can only use cached frames.
    fs::remove_dir_all(corpus.root().join("wavs")).unwrap();
    let (cached, skipped) = seen_and_skipped(&prepared, &settings(4, 1, 2));
    assert_eq!(skipped, []);
    assert!(cached == computed);
}

#[test]
fn damaged_frames_are_computed_from_the_recording_with_a_warning() {
    let corpus = TestCorpus::with_rows(12).cache_features();
    let whole = seen(&corpus.prepare_shared(), &settings(4, 1, 1));
    let prepared = corpus.prepare_shared();
    // Byte 200 is in the frames of the first entry, after 64 bytes of file header and 64 of entry header.
    let segment = prepared.cache.directory().join("mel-000001.seg");
    let mut bytes = fs::read(&segment).unwrap();
    bytes[200] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let header = RunHeader::now("feed_order", "0", serde_json::Value::Null);
    let (recording, _file) = Recording::in_memory(header).expect("a record");
    // Prepare again: pages of the old mapping may be older than the damage.
    let damaged = drain(&corpus.prepare_shared(), &settings(4, 1, 1), &recording.recorder());
    let summary = recording.finish().summary;
    assert!(damaged == whole);
    assert_eq!(summary.warning_count, 1, "{:?}", summary.warnings);
    assert_eq!(summary.warnings[0].code, "cache_damage");
}

#[test]
fn features_truncated_or_overwritten_during_the_run_are_computed_from_the_recordings() {
    let corpus = TestCorpus::with_rows(60).cache_features();
    let prepared = corpus.prepare_shared();
    let settings = FeedSettings { epochs: Some(2), ..settings(4, 1, 2) };
    let whole = seen(&prepared, &settings);
    let segment = prepared.cache.directory().join("mel-000001.seg");
    let bytes = fs::read(&segment).unwrap();
    let truncated = &bytes[..bytes.len() / 3];
    let zeros = [&bytes[..bytes.len() / 3], &vec![0; bytes.len() - bytes.len() / 3]].concat();
    for damaged in [truncated, &zeros] {
        // Writes to the same inode, which the feed has open.
        fs::write(&segment, &bytes).unwrap();
        let header = RunHeader::now("feed_order", "0", serde_json::Value::Null);
        let (recording, _file) = Recording::in_memory(header).expect("a record");
        let mut middle = Some(|| fs::write(&segment, damaged).unwrap());
        let after = |batches: usize| {
            if batches == whole.len() / 2 {
                middle.take().expect("once")();
            }
        };
        let seen = drain_with(&prepared, &settings, &recording.recorder(), after);
        assert!(seen == whole);
        let summary = recording.finish().summary;
        assert!(summary.warning_count > 0, "no damaged row was noticed");
        assert!(summary.warnings.iter().all(|warning| warning.code == "cache_damage"));
        assert_eq!(summary.skips.count, 0);
    }
}

#[test]
fn a_row_whose_features_and_recording_are_both_lost_is_skipped_alone() {
    /// The mel frames of each row, with padding.
    fn by_row(seen: &[Seen]) -> BTreeMap<u32, &[u32]> {
        let rows = seen.iter().flat_map(|batch| {
            let length = batch.mel.len() / batch.frame_counts.len();
            batch.rows.iter().copied().zip(batch.mel.chunks(length))
        });
        rows.collect()
    }
    let corpus = TestCorpus::with_rows(24).cache_features();
    let prepared = corpus.prepare_shared();
    let whole = seen(&prepared, &settings(4, 2, 2));
    let lost = whole[1].rows[0];
    let id = ids(&prepared, Split::Train, &whole[1..2]).swap_remove(0);
    fs::write(prepared.cache.directory().join("mel-000001.seg"), b"").unwrap();
    fs::remove_file(corpus.root().join("wavs").join(format!("{id}.wav"))).unwrap();
    let (seen, skipped) = seen_and_skipped(&prepared, &settings(4, 2, 2));
    assert_eq!(skipped.iter().map(|skip| skip.id.as_deref()).collect::<Vec<_>>(), [Some(&*id)]);
    let mut expected = by_row(&whole);
    assert!(expected.remove(&lost).is_some());
    assert!(by_row(&seen) == expected);
}

#[test]
fn a_missing_or_changed_recording_is_skipped_and_the_feed_continues() {
    let corpus = TestCorpus::with_rows(24);
    corpus.prepare();
    // A warm start.
    let prepared = corpus.prepare_shared();
    let rows = Rows::of(&prepared, Split::Train);
    let name =
        |row: usize| prepared.cache.row(rows.cache_row[row] as usize).unwrap().id.to_string();
    let path = |row: usize| corpus.root().join("wavs").join(format!("{}.wav", name(row)));
    fs::remove_file(path(0)).unwrap();
    fs::write(path(3), tone(70, 9_000)).unwrap();
    let length = (fs::metadata(path(5)).unwrap().len() as usize - 44) / 2;
    fs::write(path(5), tone(71, length)).unwrap();
    fs::write(path(7), b"RIFF").unwrap();
    // The same bytes with a new stamp count as unchanged.
    let bytes = fs::read(path(9)).unwrap();
    fs::remove_file(path(9)).unwrap();
    fs::write(path(9), bytes).unwrap();

    let (seen, mut skipped) = seen_and_skipped(&prepared, &settings(4, 2, 2));
    skipped.sort_by(|a, b| a.id.cmp(&b.id));
    let found: Vec<_> = skipped.iter().map(|skip| skip.id.clone().unwrap_or_default()).collect();
    assert_eq!(found, [0, 3, 5, 7].map(name));
    assert!(skipped[0].why.contains("No such file"), "{}", skipped[0].why);
    for skip in &skipped[1..] {
        assert!(skip.why.contains("changed since it was prepared"), "{}", skip.why);
    }
    let fed: BTreeSet<_> = ids(&prepared, Split::Train, &seen).into_iter().collect();
    let gone: BTreeSet<_> = found.into_iter().collect();
    assert!(fed.is_disjoint(&gone));
    assert_eq!(fed.len() + gone.len(), rows.cache_row.len());
}

#[test]
fn a_batch_without_loadable_rows_is_skipped() {
    let corpus = TestCorpus::with_rows(12);
    let prepared = corpus.prepare_shared();
    fs::remove_dir_all(corpus.root().join("wavs")).unwrap();
    let (seen, skipped) = seen_and_skipped(&prepared, &settings(3, 0, 2));
    assert_eq!(seen, []);
    let rows = skipped.iter().filter(|skip| skip.id.is_some()).count();
    assert_eq!(rows, prepared.summary.train);
}

#[test]
fn a_feed_closed_early_leaves_no_worker_running() {
    let corpus = TestCorpus::with_rows(30);
    let prepared = corpus.prepare_shared();
    for taken in [0, 1, 3] {
        let settings = FeedSettings { epochs: None, ..settings(2, 0, 4) };
        let cancel = CancelToken::new();
        let mut batches = feed(&prepared, &settings, &Recorder::off(), &cancel).unwrap();
        for _ in 0..taken {
            assert!(batches.next().unwrap().is_some());
        }
        let ended = batches.close();
        assert!(matches!(ended.how, Ending::ConsumerLeft));
        assert_eq!(ended.left_behind, Vec::<String>::new());
        // Every worker had a reference to the corpus; only that of this test is left.
        assert_eq!(Arc::strong_count(&prepared), 1);
    }
}

#[test]
fn a_cancelled_feed_returns_an_error() {
    let corpus = TestCorpus::with_rows(6);
    let prepared = corpus.prepare_shared();
    let cancel = CancelToken::new();
    let settings = FeedSettings { epochs: None, ..settings(2, 0, 2) };
    let mut batches = feed(&prepared, &settings, &Recorder::off(), &cancel).unwrap();
    batches.next().unwrap();
    cancel.cancel();
    // Batches that were ready may still arrive before the error.
    let cause = (0..100).find_map(|_| batches.next().err());
    assert!(cause.is_some_and(|cause| cause.to_string().contains("cancelled")));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn every_utterance_comes_exactly_once_in_every_epoch(
        batch_size in 1usize..9,
        seed: u64,
        workers in 1usize..5,
        epoch in 0u32..1000,
    ) {
        let corpus = TestCorpus::with_rows(23);
        let prepared = corpus.prepare_shared();
        let mut all = Vec::new();
        for split in SPLITS {
            let settings = settings(batch_size, seed, workers);
            let start = Position { epoch: Epoch(epoch), ..Position::start(Seed(seed)) };
            let epochs = Some(epoch + 1);
            let seen = seen(&prepared, &FeedSettings { start, epochs, split: Some(split), ..settings });
            prop_assert!(seen.iter().all(|batch| batch.rows.len() <= batch_size));
            all.extend(ids(&prepared, split, &seen));
        }
        all.sort();
        prop_assert_eq!(all, (0..23).map(id).collect::<Vec<_>>());
    }
}
