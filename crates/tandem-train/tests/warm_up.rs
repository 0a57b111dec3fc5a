//! The warm-up runs every shape before the first step and changes nothing else: weights and batches
//! are the same as without it.

mod kit;

use kit::TestCorpus;
use std::sync::Arc;
use std::time::Duration;
use tandem_data::batch::{BatchConfig, Batches};
use tandem_device::memory::{MemoryBaseline, PhaseWatch};
use tandem_device::placement::OpenDevices;
use tandem_model::Device;
use tandem_model::checkpoint::{Checkpoints, Contents, Keep};
use tandem_pipeline::CancelToken;
use tandem_telemetry::event::{Event, RunHeader};
use tandem_telemetry::reader::RunRecord;
use tandem_telemetry::record::{RecordOptions, Recording, Spans};
use tandem_train::feed::Rows;
use tandem_train::log::LogSender;
use tandem_train::run::job::{Ending, Job, Outcome};
use tandem_train::run::start::begin;
use tandem_train::run::trainer::train;
use tandem_train::run::warm_up::{STAGE, WarmUp, WarmedUp};
use tandem_train::train_settings::TrainSettings;
use tandem_train::{FeedSettings, Prepared};
use tandem_units::Seed;

const STEPS: u64 = 6;

struct Run {
    outcome: Outcome,
    record: RunRecord,
    contents: Contents,
}

fn cpu() -> OpenDevices {
    OpenDevices { data: Device::flex(), model: Device::flex() }
}

fn feed_settings() -> FeedSettings {
    let batch =
        BatchConfig { batch_size: 4, seed: Seed(3), max_buckets: 3, ..BatchConfig::default() };
    FeedSettings { reference_frames: 16, ..FeedSettings::new(batch) }
}

fn run(prepared: &Arc<Prepared>, warm_up: WarmUp) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let (feed, cancel, devices) = (feed_settings(), CancelToken::new(), cpu());
    let settings = TrainSettings {
        max_steps: Some(STEPS),
        validate_every: 0,
        sample_every: 0,
        checkpoint_every: 0,
        ..TrainSettings::default()
    };
    let runs = folder.path().join("run");
    let checkpoints = || Checkpoints::open(&runs, Keep { last: 1 }).unwrap();
    let held = MemoryBaseline::measure(&devices);
    let first = checkpoints();
    let start = begin(prepared, &feed, &settings, &devices, &first, &cancel).unwrap();
    let path = folder.path().join("run.jsonl");
    let header = RunHeader::now("warm_up", "0", serde_json::Value::Null);
    let options = RecordOptions { spans: Spans::Recorded, ..RecordOptions::default() };
    let recording = Recording::create(&path, header, options).unwrap();
    let job = Job {
        prepared: prepared.clone(),
        validation: None,
        feed,
        settings: settings.clone(),
        config: serde_json::Value::Null,
        devices,
        limits: None,
        warm_up,
        held,
        phases: PhaseWatch::default(),
        checkpoints: Some(first),
        cluster: None,
        start_delay: Duration::from_secs(2),
        log: LogSender::off(),
        recorder: recording.recorder(),
        cancel,
        on_frozen: None,
    };
    let outcome = train(job, start).unwrap();
    recording.finish();
    let record = RunRecord::read(&path).unwrap();
    let contents = checkpoints().load_newest().unwrap().expect("a checkpoint at the end").contents;
    Run { outcome, record, contents }
}

/// Tickets and shapes, step by step.
fn order(record: &RunRecord) -> Vec<(u64, Option<[u32; 3]>)> {
    let step = |event: &Event| match event {
        Event::Step(step) => Some((step.ticket.seq, step.shape)),
        _ => None,
    };
    record.events.iter().filter_map(|stamped| step(&stamped.event)).collect()
}

fn is_warm_up(event: &Event) -> bool {
    matches!(event, Event::Span(span) if span.stage == STAGE)
}

#[test]
fn every_shape_is_warmed_up_before_the_first_step_and_weights_are_the_same() {
    let corpus = TestCorpus::with_rows(40);
    let prepared = corpus.prepare_shared();
    let (plain, warm) = (run(&prepared, WarmUp::default()), run(&prepared, WarmUp::Always));
    assert!(matches!(plain.outcome.ending, Ending::Done), "{:?}", plain.outcome.ending);

    let rows = Rows::of(&prepared, feed_settings().split);
    let shapes = Batches::new(rows.lengths(), &feed_settings().batch).unwrap().shapes().count();
    assert!(shapes > 1, "the test needs several shapes");
    let WarmedUp::Done { shapes: warmed_up, took } = warm.outcome.warm_up else {
        panic!("{:?}", warm.outcome.warm_up)
    };
    assert_eq!(warmed_up, shapes);
    assert!(took.0 > 0.0);
    let events = &warm.record.events;
    let first_step = events.iter().position(|s| matches!(s.event, Event::Step(_))).unwrap();
    let before = events[..first_step].iter().filter(|s| is_warm_up(&s.event)).count();
    assert_eq!(before, shapes, "all of them before step 1");
    assert!(!events[first_step..].iter().any(|stamped| is_warm_up(&stamped.event)));
    let progress = events[..first_step].iter().filter_map(|stamped| match &stamped.event {
        Event::WarmUp(warm_up) => Some((warm_up.number as usize, warm_up.total as usize)),
        _ => None,
    });
    let all: Vec<_> = (1..=shapes).map(|number| (number, shapes)).collect();
    assert_eq!(progress.collect::<Vec<_>>(), all);

    // Some batches of these short clips cannot be aligned; both runs skip them.
    assert!(order(&plain.record).len() > 1);
    assert_eq!(order(&plain.record), order(&warm.record));
    // Weights, moving average, moments and aligner snapshots, bit for bit.
    assert!(plain.contents.tensors.len() > 1);
    assert!(plain.contents.tensors == warm.contents.tensors, "the warm-up changed a tensor");
    assert_eq!(plain.contents.step, warm.contents.step);
}

#[test]
fn the_cpu_needs_no_warm_up() {
    assert!(!WarmUp::default().is_due(&cpu()));
    assert_eq!(WarmedUp::NotNeeded.to_string(), "none: the CPU compiles no kernels");
}
