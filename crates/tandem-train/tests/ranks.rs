//! Data-parallel training: several ranks, here threads of one process, train what one rank would.

mod kit;

use kit::TestCorpus;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tandem_cluster::in_process::Hub;
use tandem_cluster::{Cluster, ClusterError, ClusterOptions};
use tandem_data::batch::BatchConfig;
use tandem_device::memory::{MemoryBaseline, PhaseWatch};
use tandem_device::placement::OpenDevices;
use tandem_model::checkpoint::{Checkpoints, Contents, Keep, Marked};
use tandem_model::network::size::ModelSize;
use tandem_model::weights::{weights_of, with_weights};
use tandem_model::{Device, Tensor};
use tandem_pipeline::CancelToken;
use tandem_telemetry::event::{Event, RunHeader};
use tandem_telemetry::reader::RunRecord;
use tandem_telemetry::record::{RecordOptions, Recording};
use tandem_train::feed::schedule::Shard;
use tandem_train::feed::skip_list::SkipList;
use tandem_train::log::LogSender;
use tandem_train::run::job::{Ending, Job, Outcome, RunStart};
use tandem_train::run::ranks::synchronize;
use tandem_train::run::resume::{Changes, resume, resume_without_lock};
use tandem_train::run::start::{begin, begin_without_checkpoints};
use tandem_train::run::trainer::train;
use tandem_train::run::warm_up::WarmUp;
use tandem_train::train_settings::{AlignmentSettings, TrainSettings};
use tandem_train::{FeedSettings, Prepared, TrainError};
use tandem_units::Seed;

/// A run of one or several ranks.
#[derive(Clone)]
struct Plan<'a> {
    prepared: &'a Arc<Prepared>,
    directory: &'a Path,
    ranks: usize,
    grad_accum: usize,
    max_steps: Option<u64>,
    epochs: Option<u32>,
    resume: bool,
    /// A rank, and the step of its own after which it is stopped.
    stop: Option<(usize, Stop)>,
    skip_list: SkipList,
    /// Steps between validations; 0: none.
    validate_every: u64,
    patience: Option<u32>,
}

#[derive(Clone, Copy)]
enum Stop {
    /// As by a signal, before the first step.
    Cancel,
    /// As by a cut cable, before the first step.
    CutOff,
    /// As by a device that computes wrong, before the first step.
    OtherWeights,
    /// The optimizer panics at the last weight, after it changed all others.
    BrokenOptimizer,
}

fn plan<'a>(prepared: &'a Arc<Prepared>, directory: &'a Path) -> Plan<'a> {
    Plan {
        prepared,
        directory,
        ranks: 1,
        grad_accum: 1,
        max_steps: Some(6),
        epochs: None,
        resume: false,
        stop: None,
        skip_list: SkipList::default(),
        validate_every: 0,
        patience: None,
    }
}

impl Plan<'_> {
    fn settings(&self) -> TrainSettings {
        TrainSettings {
            model_size: ModelSize::Micro,
            max_steps: self.max_steps,
            epochs: self.epochs,
            grad_accum: self.grad_accum,
            // Both kinds of alignment are used.
            alignment: AlignmentSettings { every: 2, lag: 1, flat_start: 2 },
            validate_every: self.validate_every,
            patience: self.patience,
            sample_every: 0,
            checkpoint_every: 1000,
            checkpoint_dir: Some(self.directory.to_path_buf()),
            ..TrainSettings::default()
        }
    }

    /// Trains, and returns what each rank has.
    fn run(&self) -> Vec<Result<Outcome, TrainError>> {
        let hub = Hub::new(self.ranks);
        std::thread::scope(|scope| {
            let rank = |rank| {
                let hub = hub.clone();
                // Ranks are processes: each has its own threads.
                scope.spawn(move || {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
                    pool.install(|| self.run_rank(rank, &hub))
                })
            };
            let ranks: Vec<_> = (0..self.ranks).map(rank).collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    }

    fn run_rank(&self, rank: usize, hub: &Hub) -> Result<Outcome, TrainError> {
        let cluster = (self.ranks > 1).then(|| {
            let limit = Duration::from_secs(3);
            let options = ClusterOptions { silence_limit: limit, ..ClusterOptions::default() };
            let transport = hub.transport(rank);
            Cluster::start(options, move || Ok(transport)).unwrap()
        });
        let outcome = self.train(rank, cluster.clone(), hub);
        if let Some(cluster) = cluster {
            match &outcome {
                Ok(Outcome { ending: Ending::Failed(error), .. }) | Err(error) => {
                    cluster.fail(&error.to_string());
                }
                Ok(_) => cluster.finish().unwrap(),
            }
        }
        outcome
    }

    fn train(
        &self,
        rank: usize,
        cluster: Option<Cluster>,
        hub: &Hub,
    ) -> Result<Outcome, TrainError> {
        let settings = self.settings();
        let batch =
            BatchConfig { batch_size: 4, seed: Seed(3), max_buckets: 3, ..BatchConfig::default() };
        let feed = FeedSettings {
            reference_frames: 16,
            shard: Shard { rank, ranks: self.ranks },
            skip_list: self.skip_list.clone(),
            ..FeedSettings::new(batch)
        };
        let devices = OpenDevices { data: Device::flex(), model: Device::flex() };
        let cancel = CancelToken::new();
        let checkpoints =
            (rank == 0).then(|| Checkpoints::open(self.directory, Keep { last: 1 })).transpose()?;
        let (prepared, held) = (self.prepared, MemoryBaseline::measure(&devices));
        let mut start: RunStart = match (&checkpoints, self.resume) {
            (Some(c), false) => begin(prepared, &feed, &settings, &devices, c, &cancel)?,
            (None, false) => {
                begin_without_checkpoints(prepared, &feed, &settings, &devices, &cancel)?
            }
            (Some(c), true) => {
                resume(prepared, &feed, &settings, &devices, c, Changes::Refused)?.start
            }
            (None, true) => {
                let (directory, changes) = (self.directory, Changes::Refused);
                resume_without_lock(prepared, &feed, &settings, &devices, directory, changes)?.start
            }
        };
        if let Some(cluster) = &cluster {
            synchronize(cluster, &mut start, &settings)?;
        }
        match self.stop {
            Some((stopped, Stop::Cancel)) if stopped == rank => cancel.cancel(),
            Some((stopped, Stop::CutOff)) if stopped == rank => hub.cut_off(rank),
            Some((drifted, Stop::OtherWeights)) if drifted == rank => {
                let voice = &start.train_state.voice;
                let moved = weights_of(voice).into_iter().map(|weight| weight.values + 1e-6);
                start.train_state.voice = with_weights(voice.clone(), moved.collect());
            }
            Some((broken, Stop::BrokenOptimizer)) if broken == rank => {
                let mut state = start.train_state.optimizer.state();
                let last = state.mean.last_mut().unwrap();
                last.values = Tensor::zeros([0], &last.values.device());
                start.train_state.optimizer.restore(state);
            }
            _ => {}
        }
        let header = RunHeader::now("ranks", "0", serde_json::Value::Null);
        let path = self.directory.join(format!("rank-{rank}.jsonl"));
        // A resumed run has a record of its own.
        let _ = std::fs::remove_file(&path);
        let recording = Recording::create(&path, header, RecordOptions::default()).unwrap();
        let job = Job {
            prepared: prepared.clone(),
            validation: None,
            feed,
            settings,
            config: serde_json::Value::Null,
            devices,
            limits: None,
            warm_up: WarmUp::default(),
            held,
            phases: PhaseWatch::default(),
            checkpoints,
            cluster,
            start_delay: Duration::ZERO,
            log: LogSender::off(),
            recorder: recording.recorder(),
            cancel,
            on_frozen: None,
        };
        let outcome = train(job, start);
        recording.finish();
        outcome
    }

    fn run_well(&self) -> Trained {
        for outcome in self.run() {
            let ending = outcome.unwrap().ending;
            assert!(matches!(ending, Ending::Done), "{ending:?}");
        }
        self.trained()
    }

    fn trained(&self) -> Trained {
        let checkpoints = Checkpoints::open(self.directory, Keep { last: 1 }).unwrap();
        let contents = checkpoints.load_newest().unwrap().expect("a checkpoint").contents;
        let losses = (0..self.ranks).map(|rank| losses(self.directory, rank)).collect();
        Trained { step: contents.step, contents, losses }
    }
}

struct Trained {
    step: u64,
    contents: Contents,
    /// Of each rank's record: step, items and losses.
    losses: Vec<Vec<StepLosses>>,
}

impl Trained {
    /// Every tensor of the checkpoint: weights, EMA, moments, aligner snapshots.
    #[track_caller]
    fn assert_same_tensors(&self, other: &Trained) {
        assert_eq!(self.step, other.step);
        for name in ["weights", "ema", "moments", "aligner_snapshots"] {
            assert!(self.contents.tensors[name] == other.contents.tensors[name], "{name}");
        }
    }
}

/// The validations in the record of a rank: step and values.
fn validations(directory: &Path, rank: usize) -> Vec<(u64, BTreeMap<String, f64>)> {
    let record = RunRecord::read(&directory.join(format!("rank-{rank}.jsonl"))).unwrap();
    let found = record.events.into_iter().filter_map(|stamped| match stamped.event {
        Event::Validation(found) => Some((found.step, found.values.into_iter().collect())),
        _ => None,
    });
    found.collect()
}

/// Step, utterances, and the losses by name.
type StepLosses = (u64, u32, BTreeMap<String, f32>);

fn losses(directory: &Path, rank: usize) -> Vec<StepLosses> {
    let record = RunRecord::read(&directory.join(format!("rank-{rank}.jsonl"))).unwrap();
    let steps = record.events.iter().filter_map(|stamped| match &stamped.event {
        Event::Step(step) => {
            let losses = step
                .losses
                .iter()
                // The age of an alignment is that of the last batch of this rank.
                .filter(|loss| loss.name != "alignment_age")
                .filter_map(|loss| Some((loss.name.to_string(), loss.value.value()?)));
            Some((step.step, step.items, losses.collect()))
        }
        _ => None,
    });
    steps.collect()
}

#[test]
fn two_ranks_give_the_weights_and_losses_of_one_rank_that_accumulates_two_batches() {
    let (corpus, prepared) = shared();
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let alone = Plan { grad_accum: 2, ..plan(&prepared, one.path()) }.run_well();
    let together = Plan { ranks: 2, ..plan(&prepared, two.path()) }.run_well();
    alone.assert_same_tensors(&together);
    // A step of this corpus may have no usable batch.
    assert!(alone.losses[0].len() >= 4, "{:?}", alone.losses[0]);
    assert_eq!(alone.losses[0], together.losses[0]);
    assert_eq!(alone.losses[0], together.losses[1], "every rank records the global losses");
    drop(corpus);
}

/// The corpus must outlive what was prepared from it: recordings are read during training.
fn shared() -> (TestCorpus, Arc<Prepared>) {
    let corpus = TestCorpus::with_rows(40);
    let prepared = corpus.prepare_shared();
    (corpus, prepared)
}

#[test]
fn skipped_batches_and_a_last_step_with_one_batch_are_the_same_on_two_ranks() {
    let (corpus, prepared) = shared();
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // Every row of batch 2 is skipped: rank 0 has nothing in step 2. Of step 3, nothing is left.
    let list = one.path().join("skip.tsv");
    let rows = (0..40)
        .flat_map(|row| [2, 4, 5].map(|batch| format!("{batch}\t{}\tutterance\n", kit::id(row))));
    std::fs::write(&list, rows.collect::<String>()).unwrap();
    let skip_list = SkipList::read(&list).unwrap();
    let alone = Plan {
        grad_accum: 2,
        max_steps: None,
        epochs: Some(1),
        skip_list: skip_list.clone(),
        ..plan(&prepared, one.path())
    };
    let together = Plan { ranks: 2, grad_accum: 1, directory: two.path(), ..alone.clone() };
    let (alone, together) = (alone.run_well(), together.run_well());
    alone.assert_same_tensors(&together);
    assert_eq!(alone.losses[0], together.losses[0]);
    let steps: Vec<u64> = alone.losses[0].iter().map(|step| step.0).collect();
    assert!(steps.contains(&2) && !steps.contains(&3), "{steps:?}");
    drop(corpus);
}

#[test]
fn ranks_share_a_validation_and_have_the_values_of_one_rank() {
    let mut corpus = TestCorpus::with_rows(60);
    corpus.settings.corpus.eval_share = 0.3;
    let prepared = corpus.prepare_shared();
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let alone = Plan { validate_every: 3, grad_accum: 2, ..plan(&prepared, folders[0].path()) };
    alone.run_well();
    let expected = validations(folders[0].path(), 0);
    let steps: Vec<u64> = expected.iter().map(|found| found.0).collect();
    assert_eq!(steps, [3, 6], "the last one is that of the last step");
    let two = Plan { ranks: 2, grad_accum: 1, directory: folders[1].path(), ..alone.clone() };
    two.run_well();
    assert_eq!(expected, validations(folders[1].path(), 0), "the same bits");
    assert!(validations(folders[1].path(), 1).is_empty(), "rank 0 records them");
    // More ranks than some of them have batches.
    let three = Plan { ranks: 3, directory: folders[2].path(), ..two.clone() };
    three.run_well();
    assert_eq!(validations(folders[2].path(), 0).len(), 2);
    drop(corpus);
}

/// Sums of four values depend on the order of addition: (a + b) + (c + d) against ((a + b) + c) + d. Measured:
/// 1.2e-7 after three steps.
const TOLERANCE: f32 = 1e-5;

#[test]
fn four_ranks_give_the_losses_of_four_accumulated_batches_within_a_tolerance() {
    let (corpus, prepared) = shared();
    let (one, four) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let alone = Plan { grad_accum: 4, max_steps: Some(3), ..plan(&prepared, one.path()) };
    let alone = alone.run_well();
    let together = Plan { ranks: 4, max_steps: Some(3), ..plan(&prepared, four.path()) }.run_well();
    for ((_, items, expected), (_, found_items, found)) in
        alone.losses[0].iter().zip(&together.losses[0])
    {
        assert_eq!(items, found_items);
        for name in ["total", "prior", "duration", "flow"] {
            let (a, b) = (expected[name], found[name]);
            assert!((a - b).abs() <= TOLERANCE * a.abs().max(1e-3), "{name}: {a} against {b}");
        }
    }
    drop(corpus);
}

#[test]
fn a_run_of_two_ranks_continues_on_one_and_then_on_two() {
    let (corpus, prepared) = shared();
    let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let expected = Plan { ranks: 2, ..plan(&prepared, whole.path()) }.run_well();
    let first = Plan { ranks: 2, max_steps: Some(2), ..plan(&prepared, parts.path()) };
    // The schedule of the learning rate follows the last step, so all parts know it.
    let at = |ranks, grad_accum, stop: Option<u64>| {
        let resumed = Plan { ranks, grad_accum, resume: true, max_steps: stop, ..first.clone() };
        resumed.run_well()
    };
    first.run_well();
    at(1, 2, Some(4));
    let last = at(2, 1, Some(6));
    assert_eq!(last.step, expected.step);
    let steps =
        |trained: &Trained| trained.losses[0].iter().map(|s| (s.0, s.1)).collect::<Vec<_>>();
    let mut after = steps(&expected);
    after.retain(|step| step.0 > 4);
    assert_eq!(steps(&last), after, "the same batches");
    drop(corpus);
}

#[test]
fn a_signal_to_one_rank_stops_all_of_them_at_the_same_step() {
    let (corpus, prepared) = shared();
    let folder = tempfile::tempdir().unwrap();
    let stopped = Plan {
        ranks: 2,
        stop: Some((1, Stop::Cancel)),
        max_steps: Some(1000),
        ..plan(&prepared, folder.path())
    };
    let steps: Vec<u64> = stopped
        .run()
        .into_iter()
        .map(|outcome| {
            let outcome = outcome.unwrap();
            assert!(matches!(outcome.ending, Ending::Interrupted), "{:?}", outcome.ending);
            outcome.step
        })
        .collect();
    assert_eq!(steps[0], steps[1]);
    drop(corpus);
}

#[test]
fn a_rank_that_is_cut_off_ends_the_run_with_its_name() {
    let (corpus, prepared) = shared();
    let folder = tempfile::tempdir().unwrap();
    let cut = Plan {
        ranks: 2,
        stop: Some((1, Stop::CutOff)),
        max_steps: Some(1000),
        ..plan(&prepared, folder.path())
    };
    let outcomes = cut.run();
    let Ok(Outcome { ending: Ending::Failed(TrainError::Cluster(error)), .. }) = &outcomes[0]
    else {
        panic!("{:?}", outcomes[0])
    };
    assert!(matches!(error, ClusterError::Lost { rank: 1, .. }), "{error}");
    drop(corpus);
}

#[test]
fn no_checkpoint_is_made_of_a_step_that_failed_halfway() {
    let (corpus, prepared) = shared();
    let folder = tempfile::tempdir().unwrap();
    // Step 3 has no rows that can be aligned, and step 4 has.
    let good = Plan { max_steps: Some(3), ..plan(&prepared, folder.path()) };
    let before = good.run_well();
    let stop = Some((0, Stop::BrokenOptimizer));
    let broken = Plan { stop, resume: true, max_steps: Some(6), ..good.clone() };
    let outcome = broken.run().remove(0).unwrap();
    let Ending::Failed(error) = &outcome.ending else { panic!("{:?}", outcome.ending) };
    assert!(error.to_string().contains("changing the weights"), "{error}");
    assert_eq!(outcome.step, 3, "the step did not happen");
    assert_eq!(outcome.written.count, 0);
    good.trained().assert_same_tensors(&before);
    let rest = Plan { resume: true, max_steps: Some(4), ..good.clone() };
    assert_eq!(rest.run_well().step, 4);
    drop(corpus);
}

#[test]
fn ranks_whose_patience_ends_at_the_last_step_are_done_together() {
    let (corpus, prepared) = shared();
    let folder = tempfile::tempdir().unwrap();
    let patience = Some(1);
    let start = Plan { ranks: 2, max_steps: Some(2), patience, ..plan(&prepared, folder.path()) };
    start.run_well();
    {
        // Nothing can be better than this, and one validation was not.
        let mut checkpoints = Checkpoints::open(folder.path(), Keep { last: 1 }).unwrap();
        assert_eq!(checkpoints.mark_best(2, -1e9).unwrap(), Marked::Yes);
        checkpoints.set_worse(BTreeSet::from([1])).unwrap();
    }
    // Rank 0 alone knows the validations: the others end after the last step without asking.
    let last = Plan { resume: true, max_steps: Some(3), ..start.clone() };
    assert_eq!(last.run_well().step, 3);
    let longer = Plan { max_steps: Some(9), ..last.clone() };
    for outcome in longer.run() {
        let outcome = outcome.unwrap();
        assert!(matches!(outcome.ending, Ending::NoProgress), "{:?}", outcome.ending);
        assert_eq!(outcome.step, 4);
    }
    drop(corpus);
}

#[test]
fn a_rank_whose_weights_differ_ends_the_run_with_its_name() {
    let (corpus, prepared) = shared();
    let folder = tempfile::tempdir().unwrap();
    let drifted = Plan {
        ranks: 4,
        stop: Some((2, Stop::OtherWeights)),
        max_steps: Some(1000),
        ..plan(&prepared, folder.path())
    };
    for outcome in drifted.run() {
        let ending = outcome.unwrap().ending;
        assert!(matches!(ending, Ending::Failed(TrainError::Drift { rank: 2, .. })), "{ending:?}");
    }
    drop(corpus);
}

#[test]
fn a_rank_with_another_corpus_is_refused_by_name() {
    let (corpus, prepared) = shared();
    let other = TestCorpus::with_rows(39);
    let other_prepared = other.prepare_shared();
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::new(2);
    let plans = [plan(&prepared, folder.path()), plan(&other_prepared, folder.path())];
    let found: Vec<TrainError> = std::thread::scope(|scope| {
        let ranks: Vec<_> = plans
            .iter()
            .enumerate()
            .map(|(rank, plan)| {
                let (hub, plan) = (hub.clone(), Plan { ranks: 2, ..plan.clone() });
                scope.spawn(move || plan.run_rank(rank, &hub).unwrap_err())
            })
            .collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    });
    for error in found {
        let text = error.to_string();
        assert!(text.starts_with("rank 1 on host "), "{text}");
        assert!(text.ends_with("has another corpus or other batches than rank 0"), "{text}");
    }
    drop((corpus, other));
}
