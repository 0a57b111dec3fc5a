//! Guarantees of the loader: the batches are those of the feed, and a state continues with exactly the
//! remaining ones, for any number of workers.

mod kit;

use kit::TestCorpus;
use std::fs;
use std::sync::Arc;
use std::time::Duration;
use tandem_data::batch::BatchConfig;
use tandem_telemetry::event::{RunHeader, RunOutcome};
use tandem_telemetry::{Recorder, Recording, Report, Rules};
use tandem_train::loader::{Loader, LoaderState, Next};
use tandem_train::{FeedSettings, Prepared, TrainError};
use tandem_units::{Epoch, Hint, Seed};

/// Ids and mel frames of a batch.
type Seen = (Vec<String>, Vec<f32>);

fn loader(prepared: &Arc<Prepared>, workers: usize) -> Loader {
    let batch = BatchConfig { batch_size: 4, seed: Seed(7), max_buckets: 3, ..Default::default() };
    let most_workers = workers.max(2);
    let settings = FeedSettings { workers, most_workers, ..FeedSettings::new(batch) };
    Loader::new(prepared.clone(), settings, 0.2, Recorder::off()).expect("a loader")
}

fn next(loader: &mut Loader) -> Result<Option<Seen>, TrainError> {
    loop {
        match loader.poll(Duration::from_millis(20))? {
            Next::NotYet => {}
            Next::EndOfEpoch => return Ok(None),
            Next::Batch(ready) => {
                let ids = loader.ids(&ready).into_iter().map(String::from).collect();
                return Ok(Some((ids, ready.batch.mel().to_vec())));
            }
        }
    }
}

/// The batches from here to the end of the epoch.
fn rest(loader: &mut Loader) -> Vec<Seen> {
    std::iter::from_fn(|| next(loader).expect("no error")).collect()
}

fn epoch(loader: &mut Loader) -> Vec<Seen> {
    loader.begin().expect("started");
    rest(loader)
}

#[test]
fn an_epoch_has_every_row_once_and_the_next_one_another_order() {
    let corpus = TestCorpus::with_rows(40);
    let prepared = corpus.prepare_shared();
    let mut loader = loader(&prepared, 2);
    let first = epoch(&mut loader);
    assert_eq!(first.len(), loader.len());
    let mut ids: Vec<&String> = first.iter().flat_map(|(ids, _)| ids).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), loader.utterances());
    assert_eq!(loader.epoch(), Epoch(1));
    let second = epoch(&mut loader);
    assert_ne!(first, second);
    loader.set_epoch(Epoch(0));
    assert_eq!(epoch(&mut loader), first);
}

#[test]
fn a_state_continues_with_the_remaining_batches_for_any_number_of_workers() {
    let corpus = TestCorpus::with_rows(40);
    let prepared = corpus.prepare_shared();
    let mut saved = loader(&prepared, 2);
    epoch(&mut saved);
    saved.begin().expect("started");
    let taken = 3;
    for _ in 0..taken {
        next(&mut saved).expect("no error").expect("a batch");
    }
    let state = saved.state();
    assert_eq!((state.epoch, state.batch), (1, taken));
    let text = serde_json::to_string(&state).expect("JSON");
    let remaining = rest(&mut saved);
    assert_eq!(remaining.len() as u64, saved.len() as u64 - taken);
    for workers in [1, 2, 8] {
        let mut other = loader(&prepared, workers);
        let state: LoaderState = serde_json::from_str(&text).expect("a state");
        other.restore(&state).expect("restored");
        // As a training loop does at the start of each epoch.
        other.set_epoch(Epoch(1));
        assert_eq!(epoch(&mut other), remaining, "{workers} workers");
        assert_eq!(epoch(&mut other).len(), other.len(), "the next epoch is whole");
    }
}

#[test]
fn an_epoch_that_is_left_begins_again() {
    let corpus = TestCorpus::with_rows(24);
    let prepared = corpus.prepare_shared();
    let mut loader = loader(&prepared, 1);
    let whole = epoch(&mut loader);
    loader.set_epoch(Epoch(0));
    loader.begin().expect("started");
    next(&mut loader).expect("no error");
    assert_eq!(epoch(&mut loader), whole);
}

#[test]
fn a_state_of_other_batches_is_refused() {
    let corpus = TestCorpus::with_rows(24);
    let prepared = corpus.prepare_shared();
    let mut loader = loader(&prepared, 1);
    let state = loader.state();
    let wrong = [
        (LoaderState { version: 9, ..state.clone() }, "it has version 9, not 1"),
        (LoaderState { seed: Seed(1), ..state.clone() }, "its seed is 1, not 7"),
        (LoaderState { order: "x".into(), ..state.clone() }, "it was saved with another corpus"),
        (LoaderState { batch: 999, ..state.clone() }, "there is no batch 999 in epoch 0"),
    ];
    for (state, why) in wrong {
        let error = loader.restore(&state).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        assert!(error.hint().is_some());
    }
    assert_eq!(loader.restore(&state).map_err(|error| error.to_string()), Ok(()));
}

#[test]
fn recordings_that_vanish_end_the_epoch_with_an_error_and_the_loader_can_begin_again() {
    let corpus = TestCorpus::with_rows(24);
    let prepared = corpus.prepare_shared();
    fs::rename(corpus.root().join("wavs"), corpus.root().join("away")).expect("renamed");
    let mut loader = loader(&prepared, 2);
    loader.begin().expect("started");
    let error = loop {
        match next(&mut loader) {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the epoch ended without an error"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, TrainError::TooManyFailed { .. }), "{error}");
}

#[test]
fn the_record_has_a_step_for_each_batch_that_the_consumer_finished() {
    let corpus = TestCorpus::with_rows(24);
    let prepared = corpus.prepare_shared();
    let header = RunHeader::now("loader", "0", serde_json::Value::Null);
    let (recording, _) = Recording::in_memory(header).expect("a record");
    let batch = BatchConfig { batch_size: 4, ..Default::default() };
    let mut loader =
        Loader::new(prepared, FeedSettings::new(batch), 0.2, recording.recorder()).expect("one");
    let batches = epoch(&mut loader).len() as u64;
    loader.begin().expect("started");
    next(&mut loader).expect("no error").expect("a batch");
    assert!(recording.recorder().sync(Duration::from_secs(10)));
    let summary = recording.recorder().summary();
    let report = Report::from_summary(&summary, None, &Rules::default());
    assert_eq!(report.steps.expect("steps").all.count, batches, "the last batch is not finished");
    loader.close(RunOutcome::Done);
    let closed = recording.finish().summary;
    assert_eq!(closed.ending.expect("an ending").steps, batches);
}
