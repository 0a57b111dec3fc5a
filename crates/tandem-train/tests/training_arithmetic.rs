//! What a training run does to the weights, step by step: learning rate, moving average, validation of the average,
//! a resumed cosine decay, and the end after non-finite gradients.

mod kit;

use kit::TestCorpus;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tandem_data::batch::BatchConfig;
use tandem_device::memory::{MemoryBaseline, PhaseWatch};
use tandem_device::placement::OpenDevices;
use tandem_model::checkpoint::{Checkpoints, Contents, Keep, Parts, Values, load};
use tandem_model::network::size::ModelSize;
use tandem_model::optimizer::Optimizer;
use tandem_model::weights::{weights_of, with_named, with_weights};
use tandem_model::{Device, Tensor};
use tandem_pipeline::CancelToken;
use tandem_telemetry::event::{Event, RunHeader};
use tandem_telemetry::reader::RunRecord;
use tandem_telemetry::record::{RecordOptions, Recording};
use tandem_train::log::LogSender;
use tandem_train::run::job::{Ending, Job, Outcome, RunStart};
use tandem_train::run::resume::{Changes, resume};
use tandem_train::run::start::begin;
use tandem_train::run::trainer::train;
use tandem_train::run::warm_up::WarmUp;
use tandem_train::train_settings::{
    AlignmentSettings, OptimizerSettings, Precision, TrainSettings,
};
use tandem_train::{FeedSettings, Prepared, TrainError};
use tandem_units::Seed;

/// Values of all weights by name.
type Named = BTreeMap<String, Vec<f32>>;

struct Run {
    outcome: Outcome,
    record: RunRecord,
    /// The weights before the first step of this process.
    before: Named,
}

#[derive(Clone, Copy)]
enum Start {
    New,
    Resumed,
}

/// A few steps that save every checkpoint. Without betas a step of Adam moves each weight by the learning rate, so that
/// weights show which rate was used.
fn settings(max_steps: u64) -> TrainSettings {
    TrainSettings {
        model_size: ModelSize::Micro,
        max_steps: Some(max_steps),
        optimizer: OptimizerSettings {
            lr: 1e-3,
            final_lr: 0.1,
            warmup_steps: 2,
            weight_decay: 0.0,
            beta1: 0.0,
            beta2: 0.0,
            ..OptimizerSettings::default()
        },
        alignment: AlignmentSettings { every: 2, lag: 1, flat_start: 2 },
        validate_every: 1000,
        sample_every: 1000,
        checkpoint_every: 1,
        ..TrainSettings::default()
    }
}

fn run(
    prepared: &Arc<Prepared>,
    directory: &Path,
    settings: &TrainSettings,
    from: Start,
    change: impl FnOnce(&mut RunStart),
) -> Run {
    let batch =
        BatchConfig { batch_size: 4, seed: Seed(3), max_buckets: 3, ..BatchConfig::default() };
    let feed = FeedSettings { reference_frames: 16, ..FeedSettings::new(batch) };
    let devices = OpenDevices { data: Device::flex(), model: Device::flex() };
    let (held, cancel) = (MemoryBaseline::measure(&devices), CancelToken::new());
    let saved = Checkpoints::open(directory, Keep { last: 100 }).unwrap();
    let mut start = match from {
        Start::New => begin(prepared, &feed, settings, &devices, &saved, &cancel).unwrap(),
        Start::Resumed => {
            resume(prepared, &feed, settings, &devices, &saved, Changes::Refused).unwrap().start
        }
    };
    change(&mut start);
    let before = weights_of(&start.train_state.voice)
        .into_iter()
        .map(|weight| (weight.name, weight.values.try_into_vec_as().unwrap()))
        .collect();
    let path = directory.join("run.jsonl");
    let _ = std::fs::remove_file(&path);
    let header = RunHeader::now("arithmetic", "0", serde_json::Value::Null);
    let recording = Recording::create(&path, header, RecordOptions::default()).unwrap();
    let job = Job {
        prepared: prepared.clone(),
        validation: None,
        feed,
        settings: settings.clone(),
        config: serde_json::Value::Null,
        devices,
        limits: None,
        warm_up: WarmUp::default(),
        held,
        phases: PhaseWatch::default(),
        checkpoints: Some(saved),
        cluster: None,
        start_delay: Duration::ZERO,
        log: LogSender::off(),
        recorder: recording.recorder(),
        cancel,
        on_frozen: None,
    };
    let outcome = train(job, start).unwrap();
    recording.finish();
    Run { outcome, record: RunRecord::read(&path).unwrap(), before }
}

#[track_caller]
fn run_well(prepared: &Arc<Prepared>, directory: &Path, settings: &TrainSettings) -> Run {
    let run = run(prepared, directory, settings, Start::New, |_| {});
    assert!(matches!(run.outcome.ending, Ending::Done), "{:?}", run.outcome.ending);
    run
}

/// A run of six steps with the checkpoint of each. One may be left out while an earlier one is still written: the run is
/// then resumed from the checkpoint before it.
#[track_caller]
fn run_with_all_checkpoints(
    prepared: &Arc<Prepared>,
    directory: &Path,
    settings: &TrainSettings,
) -> Run {
    let first = run_well(prepared, directory, settings);
    for step in 1..=6 {
        if !step_directory(directory, step).exists() {
            remove_from(directory, step);
            let resumed = run(prepared, directory, settings, Start::Resumed, |_| {});
            assert!(matches!(resumed.outcome.ending, Ending::Done), "{:?}", resumed.outcome.ending);
        }
    }
    first
}

fn step_directory(directory: &Path, step: u64) -> std::path::PathBuf {
    directory.join(format!("step-{step:08}"))
}

/// Removes the checkpoints of this step and of later ones.
fn remove_from(directory: &Path, step: u64) {
    for step in (step..=6).map(|step| step_directory(directory, step)).filter(|path| path.exists())
    {
        std::fs::remove_dir_all(step).unwrap();
    }
}

fn checkpoint(directory: &Path, step: u64) -> Contents {
    load(&step_directory(directory, step), Parts::All).unwrap().contents
}

fn named(contents: &Contents, part: &str) -> Named {
    let values = |values: &Values| match values {
        Values::F32(values) => values.clone(),
        other => panic!("{other:?}"),
    };
    contents.tensors[part].iter().map(|(n, t)| (n.to_string(), values(t.values()))).collect()
}

/// The largest difference of two sets of weights.
fn largest_difference(a: &Named, b: &Named) -> f64 {
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    let pairs = a.values().flatten().zip(b.values().flatten());
    pairs.map(|(a, b)| f64::from((a - b).abs())).fold(0.0, f64::max)
}

fn recorded_rates(record: &RunRecord) -> Vec<f64> {
    let rates = record.events.iter().filter_map(|stamped| match &stamped.event {
        Event::Step(step) => step.losses.iter().find(|loss| loss.name == "rate")?.value.value(),
        _ => None,
    });
    rates.map(f64::from).collect()
}

fn corpus() -> (TestCorpus, Arc<Prepared>) {
    let mut corpus = TestCorpus::with_rows(40).with_long_recordings();
    corpus.settings.corpus.eval_share = 0.2;
    let prepared = corpus.prepare_shared();
    (corpus, prepared)
}

/// Peak 1e-3 after 2 steps, then half a cosine over 4 steps down to a tenth: 0.1 + 0.9 * (0.5 + 0.5 cos(k pi / 4)).
const RATES: [f64; 6] = [5e-4, 1e-3, 1e-3, 8.681_981e-4, 5.5e-4, 2.318_019e-4];

#[test]
fn each_step_moves_the_weights_by_the_learning_rate_of_the_schedule() {
    let (_corpus, prepared) = corpus();
    let folder = tempfile::tempdir().unwrap();
    let run = run_with_all_checkpoints(&prepared, folder.path(), &settings(6));
    let recorded = recorded_rates(&run.record);
    assert_eq!(recorded.len(), 6, "every step has a batch: {recorded:?}");
    let mut before = run.before;
    for (step, (expected, recorded)) in RATES.into_iter().zip(recorded).enumerate() {
        let after = named(&checkpoint(folder.path(), step as u64 + 1), "weights");
        let moved = largest_difference(&before, &after);
        assert!((moved / expected - 1.0).abs() < 2e-3, "step {}: {moved} {expected}", step + 1);
        assert!((recorded / expected - 1.0).abs() < 1e-5, "step {}: {recorded}", step + 1);
        before = after;
    }
}

#[test]
fn a_checkpoint_has_the_moving_average_of_the_weights_with_a_fast_start() {
    let (_corpus, prepared) = corpus();
    let folder = tempfile::tempdir().unwrap();
    let settings = TrainSettings { ema_decay: 0.3, ..settings(6) };
    let run = run_with_all_checkpoints(&prepared, folder.path(), &settings);
    let mut expected = run.before;
    // The decay of step k is k / (9 + k), and 0.3 from step 4 on.
    for (step, decay) in (1..).zip([0.1, 2.0 / 11.0, 0.25, 0.3, 0.3, 0.3]) {
        let saved = checkpoint(folder.path(), step);
        for (name, weights) in named(&saved, "weights") {
            let average = expected.get_mut(&name).unwrap();
            average.iter_mut().zip(weights).for_each(|(average, weight)| {
                *average = decay * *average + (1.0 - decay) * weight;
            });
        }
        let average = named(&saved, "ema");
        let off = largest_difference(&expected, &average);
        assert!(off < 1e-6, "step {step}: {off}");
        let raw = largest_difference(&named(&saved, "weights"), &average);
        assert!(raw > 2e-5, "step {step}: an average of equal weights shows nothing: {raw}");
    }
}

fn acoustic_losses(record: &RunRecord) -> Vec<f64> {
    let losses = record.events.iter().filter_map(|stamped| match &stamped.event {
        Event::Validation(found) => found.values.iter().find(|(name, _)| *name == "acoustic"),
        _ => None,
    });
    losses.map(|(_, loss)| *loss).collect()
}

/// A step with an extremely small rate validates the weights that it was given.
#[test]
fn a_validation_measures_the_moving_average_of_the_checkpoint() {
    let (_corpus, prepared) = corpus();
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let long_average = TrainSettings { ema_decay: 0.9, ..settings(6) };
    let run_of = run_well(&prepared, folders[0].path(), &long_average);
    let [measured] = acoustic_losses(&run_of.record)[..] else { panic!("one validation") };
    let saved = checkpoint(folders[0].path(), 6);
    let still = TrainSettings {
        optimizer: OptimizerSettings { lr: 1e-30, ..settings(1).optimizer },
        ema_decay: 0.0,
        ..settings(1)
    };
    let validated = |part: &str, folder: &Path| {
        let values = named(&saved, part);
        let run = run(&prepared, folder, &still, Start::New, |start| {
            let shape = |name: &str| saved.tensors[part].get(name).map(|t| t.shape().to_vec());
            let find = |name: &str| Some((shape(name)?, values[name].clone()));
            let voice = with_named(start.train_state.voice.clone(), find, &Device::flex()).unwrap();
            start.train_state.optimizer = Optimizer::new(&voice);
            start.train_state.voice = voice;
        });
        let [loss] = acoustic_losses(&run.record)[..] else { panic!("one validation") };
        loss
    };
    assert_eq!(measured, validated("ema", folders[1].path()), "the voice that is saved for use");
    assert_ne!(measured, validated("weights", folders[2].path()));
}

#[test]
fn a_run_resumed_in_the_cosine_decay_ends_with_the_weights_of_a_run_without_a_stop() {
    let (_corpus, prepared) = corpus();
    let folder = tempfile::tempdir().unwrap();
    let settings = TrainSettings {
        optimizer: OptimizerSettings {
            beta1: 0.9,
            beta2: 0.98,
            weight_decay: 0.01,
            ..settings(6).optimizer
        },
        ema_decay: 0.3,
        ..settings(6)
    };
    run_with_all_checkpoints(&prepared, folder.path(), &settings);
    let whole = checkpoint(folder.path(), 6);
    // Half of the decay is left.
    remove_from(folder.path(), 5);
    let resumed = run(&prepared, folder.path(), &settings, Start::Resumed, |_| {});
    assert!(matches!(resumed.outcome.ending, Ending::Done), "{:?}", resumed.outcome.ending);
    let rates = recorded_rates(&resumed.record);
    assert_eq!(rates.len(), 2);
    for (found, expected) in rates.iter().zip(&RATES[4..]) {
        assert!((found / expected - 1.0).abs() < 1e-5, "{found} {expected}");
    }
    let again = checkpoint(folder.path(), 6);
    for part in ["weights", "ema", "moments", "aligner_snapshots"] {
        assert!(whole.tensors[part] == again.tensors[part], "{part}");
    }
}

/// A voice that no step can change: all its gradients are NaN.
fn broken(start: &mut RunStart) {
    let voice = &start.train_state.voice;
    let weights: Vec<Tensor<1>> =
        weights_of(voice).into_iter().map(|weight| weight.values * f32::NAN).collect();
    start.train_state.voice = with_weights(voice.clone(), weights);
}

#[test]
fn a_run_ends_with_an_error_after_so_many_non_finite_gradients_in_a_row() {
    let (_corpus, prepared) = corpus();
    let folder = tempfile::tempdir().unwrap();
    let limited = TrainSettings { nan_limit: 3, checkpoint_every: 1000, ..settings(400) };
    let run = run(&prepared, folder.path(), &limited, Start::New, broken);
    let Ending::Failed(TrainError::NonFinite { steps, step }) = run.outcome.ending else {
        panic!("{:?}", run.outcome.ending)
    };
    // Gradients are read on another thread, so some steps may follow the third.
    assert!(steps >= 3 && (3..400).contains(&step), "{steps} {step}");
}

#[test]
fn a_run_continues_below_the_limit_of_non_finite_gradients() {
    let (_corpus, prepared) = corpus();
    let folder = tempfile::tempdir().unwrap();
    let limited = TrainSettings { nan_limit: 7, checkpoint_every: 1000, ..settings(6) };
    let run = run(&prepared, folder.path(), &limited, Start::New, broken);
    assert!(matches!(run.outcome.ending, Ending::Done), "{:?}", run.outcome.ending);
    assert_eq!(run.outcome.step, 6);
    let warned = run.record.events.iter().filter(|stamped| match &stamped.event {
        Event::Warning(warning) => warning.code == "non_finite_gradient",
        _ => false,
    });
    assert_eq!(warned.count(), 6, "each of them is in the record");
}

#[test]
fn a_run_in_half_floats_resumes_with_its_scale_of_the_losses() {
    let (_corpus, prepared) = corpus();
    let half = TrainSettings { precision: Precision::F16, checkpoint_every: 3, ..settings(12) };
    // So large that the first steps overflow: a resumed run with another scale would skip other steps.
    let overflowing = |start: &mut RunStart| {
        let mut state = start.train_state.optimizer.state();
        state.loss_scale = Some(Tensor::from_floats([16_777_216.0, 0.0], &Device::flex()));
        start.train_state.optimizer.restore(state);
    };
    let folder = tempfile::tempdir().unwrap();
    run(&prepared, folder.path(), &half, Start::New, overflowing);
    let whole = checkpoint(folder.path(), 12);
    let saved = named(&checkpoint(folder.path(), 3), "moments")["loss_scale"][0];
    assert!(saved < 16_777_216.0, "the first steps must overflow");
    for step in [6, 9, 12] {
        // Only the last one is written in any case.
        let _ = std::fs::remove_dir_all(folder.path().join(format!("step-{step:08}")));
    }
    let resumed = run(&prepared, folder.path(), &half, Start::Resumed, |_| {});
    assert!(matches!(resumed.outcome.ending, Ending::Done), "{:?}", resumed.outcome.ending);
    let again = checkpoint(folder.path(), 12);
    assert!(named(&again, "moments")["loss_scale"][0] < saved);
    for part in ["weights", "moments", "ema"] {
        assert!(named(&whole, part) == named(&again, part), "{part} differ");
    }
    let scale = resumed.record.events.iter().find_map(|stamped| match &stamped.event {
        Event::Step(step) => step.losses.iter().find(|loss| loss.name == "loss_scale"),
        _ => None,
    });
    assert_eq!(scale.and_then(|scale| scale.value.value()), Some(saved), "in the record");
}
