//! Flags and runs of commands that profile the trainer.
//!
//! In: [`ProfilingArgs`], a subset of the flags of `tandem train`. Out: [`Session`], with open devices
//! and a prepared corpus, which runs the trainer and evaluates the measurements.

use crate::commands::train::idle_gpus;
use crate::corpus_args::{BatchArgs, CorpusArgs};
use crate::data_report::prepare_corpus;
use crate::failure::{Context, Result, is_cancelled};
use crate::length_report::too_long;
use crate::memory_check::fit_to_corpus;
use crate::printer::{Printer, Progress};
use crate::setting_flags::{OfDevices, OfEveryRun, SettingFlags, typed};
use crate::train_args::TrainArgs;
use crate::train_plan::TrainPlan;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tandem_data::batch::BatchConfig;
use tandem_device::inventory::Inventory;
use tandem_device::placement::{Mode, OpenDevices, Placement};
use tandem_insight::batch_advice::BatchAdvice;
use tandem_insight::measured::Measured;
use tandem_insight::predict::Setting;
use tandem_insight::profile::{
    BatchShapes, Change, Overhead, ProfileAnswer, ProfileRules, ProfileRuns, RunKind, Sharing,
    Subject,
};
use tandem_pipeline::{CancelToken, Slowdown, Slowdowns};
use tandem_train::feed::train_route::ALIGNED;
use tandem_train::measure::profile_runs::{
    ProfileRunner, Scenario, ShapeCounts, Turn, send_cost, shapes_by_batch,
};
use tandem_train::prepare::row::Features;
use tandem_train::{FeedSettings, PrepareOptions, Prepared};

#[derive(Clone, Debug, Default, clap::Args)]
pub struct ProfilingArgs {
    /// Corpus to train on: a directory, a manifest in one, or `demo` [default: demo]
    #[arg(long, value_name = "CORPUS", env = "TANDEM_TRAIN_DATA")]
    pub train_data: Option<PathBuf>,
    #[command(flatten)]
    pub settings: SettingFlags<OfEveryRun>,
    /// Measured steps of each run
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(3..=1_000_000))]
    pub num_steps: u64,
    /// Steps before the measured ones
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub skip_steps: u64,
    /// Slow a stage by so many milliseconds per batch, to test whether it is found
    #[arg(long, value_name = "STAGE=MS", hide = true, value_parser = slow_stage)]
    pub slow_stage: Vec<(String, Duration)>,
    #[command(flatten, next_help_heading = "Corpus")]
    pub corpus: CorpusArgs,
    #[command(flatten, next_help_heading = "Batches")]
    pub batch: BatchArgs,
    #[command(flatten)]
    pub devices: SettingFlags<OfDevices>,
}

/// Stages that can be slowed.
pub const STAGES: [&str; 5] = ["load", "preprocess", "align", "transfer", "train"];

fn slow_stage(text: &str) -> Result<(String, Duration), String> {
    let (stage, length) = text.split_once('=').ok_or("expected STAGE=MS")?;
    if !STAGES.contains(&stage) {
        return Err(format!("`{stage}` is not a stage; stages are {}", STAGES.join(", ")));
    }
    match length.parse::<f64>() {
        Ok(ms) if (0.0..=60_000.0).contains(&ms) => {
            Ok((stage.to_string(), Duration::from_secs_f64(ms / 1e3)))
        }
        _ => Err("expected milliseconds from 0 to 60000".into()),
    }
}

impl ProfilingArgs {
    pub fn plan(&self, out: &mut Printer) -> Result<TrainPlan> {
        let steps = (self.num_steps + self.skip_steps).to_string();
        let unnamed = self.train_data.is_none() && self.corpus.config.is_none();
        let train_data = self.train_data.clone().or_else(|| unnamed.then(|| "demo".into()));
        TrainArgs {
            data: train_data.map(|path| typed("train_data", path)).unwrap_or_default().into(),
            settings: self.settings.typed.clone().and(typed("train.max_steps", steps)).into(),
            no_adapt: true,
            corpus: self.corpus.clone(),
            batch: self.batch.clone(),
            devices: self.devices.clone(),
            ..TrainArgs::default()
        }
        .resolve(out)
    }
}

/// Open devices and a prepared corpus.
pub struct Session {
    plan: TrainPlan,
    placement: Placement,
    devices: OpenDevices,
    prepared: Arc<Prepared>,
    /// Settings of the data pipeline: workers, depth, slowed stages.
    pub feed: FeedSettings,
    /// Whether a profile includes a run with cached features.
    pub try_cached: bool,
    /// Whether a profile includes short runs of other batch sizes.
    pub try_batches: bool,
    num_steps: u64,
    skip: u64,
    scratch: tempfile::TempDir,
    cancel: CancelToken,
    runs: std::cell::Cell<u32>,
}

/// Steps of a short run, if the other runs have as many.
const LEAST_STEPS: u64 = 10;
/// Batch sizes whose shapes a profile saves, in addition to its own.
const SIZES: [usize; 9] = [1, 2, 4, 8, 12, 16, 20, 24, 32];

impl Session {
    /// Opens the devices and prepares the corpus.
    pub fn open(args: &ProfilingArgs, cancel: &CancelToken, out: &mut Printer) -> Result<Session> {
        let mut plan = args.plan(out)?;
        let found = Inventory::detect();
        let placement = Placement::decide(&plan.devices, &found)
            .context("the requested devices cannot be used")?;
        let devices = placement.open().context("cannot open the devices")?;
        plan.train.precision.check(&devices.model)?;
        out.note(&placement.to_string());
        out.note(&plan.buffers.to_string());
        for text in idle_gpus(&placement, &found) {
            out.note(&format!("warning: {text}"));
        }
        let scratch =
            tempfile::tempdir().context("cannot create a temporary directory for records")?;
        let prepared = prepare_shown(&plan, &plan.prepare, cancel, out)?;
        for text in too_long(&prepared.summary, plan.batch_facts()) {
            out.note(&format!("warning: {text}"));
        }
        fit_to_corpus(&mut plan, &prepared, &placement, out)?;
        let slowed = args.slow_stage.iter().map(|(stage, by)| Slowdown::always(stage, *by));
        let feed = FeedSettings { slow: Slowdowns::of(slowed), ..plan.train_feed() };
        let feed = plan.with_mel_place(feed, &prepared, &devices, out)?;
        // Batches that are ready before the first step would be measured as if they cost nothing.
        let num_steps = args.num_steps;
        let skip = args.skip_steps.max(buffered(&feed) + 1);
        let cancel = cancel.clone();
        let (runs, try_cached, try_batches) = (std::cell::Cell::new(0), true, true);
        Ok(Session {
            plan,
            placement,
            devices,
            prepared,
            feed,
            try_cached,
            try_batches,
            num_steps,
            skip,
            scratch,
            cancel,
            runs,
        })
    }

    /// Runs all scenarios and evaluates them. Records go to `directory`, or are removed.
    pub fn profile(
        &self,
        directory: Option<&Path>,
        rules: &ProfileRules,
        out: &mut Printer,
    ) -> Result<ProfileAnswer> {
        let began = Instant::now();
        let directory = directory.unwrap_or(self.scratch.path());
        let run = |kind: RunKind, prepared: &Arc<Prepared>, out: &mut Printer| {
            let (scenario, name) = match kind {
                RunKind::AsIs => (Scenario::Whole, "as-is"),
                RunKind::Cached => (Scenario::Whole, "cached"),
                RunKind::ModelAlone => (Scenario::ModelAlone, "model-alone"),
                RunKind::DataAlone => (Scenario::DataAlone, "data-alone"),
            };
            let path = self.record_path(directory, name);
            self.run(kind.name(), scenario, &self.feed, prepared, &path, out)
        };
        let (as_is, parameters) = run(RunKind::AsIs, &self.prepared, out)?;
        let cached = match self.try_cached && !self.is_cached() {
            false => None,
            true => {
                let prepared = self.cached(out)?;
                Some(run(RunKind::Cached, &prepared, out)?.0)
            }
        };
        let (model_alone, _) = run(RunKind::ModelAlone, &self.prepared, out)?;
        let (data_alone, _) = run(RunKind::DataAlone, &self.prepared, out)?;
        let runs = ProfileRuns { as_is, cached, model_alone, data_alone };
        let mut answer =
            ProfileAnswer::judge(self.subject(parameters), runs, self.shapes()?, rules);
        if self.try_batches {
            answer.batch = self.batch_sizes(&answer, directory, out)?;
        }
        answer.overhead = Some(overhead(&answer.measured.as_is, began)?);
        Ok(answer)
    }

    /// Short runs with half and twice the batch size, as far as memory and corpus allow.
    fn batch_sizes(
        &self,
        answer: &ProfileAnswer,
        directory: &Path,
        out: &mut Printer,
    ) -> Result<BatchAdvice> {
        let (subject, as_is) = (&answer.subject, &answer.measured.as_is);
        let (mut tried, mut notes) = (Vec::new(), Vec::new());
        let here = subject.batch_size;
        let rows = self.prepared.summary.train;
        // Smallest first: memory that was taken for a large batch is not given back.
        for size in [here / 2, 2 * here] {
            if size == 0 || size == here || size > rows {
                continue;
            }
            if let Some(why) = BatchAdvice::too_large(subject, as_is, size).filter(|_| size > here)
            {
                notes.push(why);
                continue;
            }
            let batch = BatchConfig { batch_size: size, ..self.feed.batch.clone() };
            let feed = FeedSettings { batch, ..self.feed.clone() };
            let path = self.record_path(directory, &format!("batch-{size}"));
            let what = format!("batch {size}");
            let steps = (self.num_steps / 4).max(LEAST_STEPS).min(self.num_steps);
            match self.run_steps(steps, &what, Scenario::Whole, &feed, &self.prepared, &path, out) {
                Ok((run, _)) => tried.push((size, run)),
                Err(error) if is_cancelled(&error) => return Err(error),
                // Too large for the device: the profile itself is complete.
                Err(error) => notes.push(format!("batch {size}: {}", error.facts().join(": "))),
            }
        }
        Ok(BatchAdvice { notes, ..BatchAdvice::of(subject, as_is, &tried) })
    }

    /// Tries every recommendation and adds its measured gain.
    pub fn apply(&self, answer: &mut ProfileAnswer, out: &mut Printer) -> Result<()> {
        let base = answer.measured.as_is.usual_step();
        for place in 0..answer.recommendations.len() {
            let feed = match answer.recommendations[place].change {
                Change::Workers(workers) => {
                    let most_workers = self.feed.most_workers.max(workers);
                    let host = Some(self.plan.buffers.with_workers(workers).host);
                    FeedSettings { workers, most_workers, host, ..self.feed.clone() }
                }
                Change::Depth(depth) => FeedSettings { depth, ..self.feed.clone() },
                Change::CacheFeatures | Change::SecondGpu => self.feed.clone(),
            };
            let one = &mut answer.recommendations[place];
            let tried = match one.change {
                Change::CacheFeatures => answer.measured.cached.clone(),
                // The user must choose the pair.
                Change::SecondGpu => None,
                _ => Some(self.measure(&one.flag, &feed, out)?),
            };
            one.measured_gain = tried.map(|run| 1.0 - run.usual_step() / base);
        }
        Ok(())
    }

    /// One run of the whole trainer with these pipeline settings.
    pub fn measure(&self, what: &str, feed: &FeedSettings, out: &mut Printer) -> Result<Measured> {
        let path = self.record_path(self.scratch.path(), "tried");
        Ok(self.run(what, Scenario::Whole, feed, &self.prepared, &path, out)?.0)
    }

    /// A step with the pipeline and without it, in turns: see [`ProfileRunner::take_turns`].
    pub fn take_turns(&self, turns: usize, batches: usize, out: &mut Printer) -> Result<Vec<Turn>> {
        let mut shown = out.progress("turns with the pipeline and without", turns as u64);
        let runner = self.runner(&self.feed, (turns * batches) as u64, Arc::new(|_| {}));
        let found =
            runner.take_turns(&self.prepared, turns, batches, &mut |at| shown.at(at as u64));
        shown.done();
        found.context("cannot run the trainer")
    }

    fn record_path(&self, directory: &Path, name: &str) -> PathBuf {
        self.runs.set(self.runs.get() + 1);
        match directory == self.scratch.path() {
            true => directory.join(format!("{name}-{}.jsonl", self.runs.get())),
            false => directory.join(format!("{name}.jsonl")),
        }
    }

    fn run(
        &self,
        what: &str,
        scenario: Scenario,
        feed: &FeedSettings,
        prepared: &Arc<Prepared>,
        record: &Path,
        out: &mut Printer,
    ) -> Result<(Measured, u64)> {
        self.run_steps(self.num_steps, what, scenario, feed, prepared, record, out)
    }

    #[expect(clippy::too_many_arguments, reason = "the steps, and what `run` takes")]
    fn run_steps(
        &self,
        num_steps: u64,
        what: &str,
        scenario: Scenario,
        feed: &FeedSettings,
        prepared: &Arc<Prepared>,
        record: &Path,
        out: &mut Printer,
    ) -> Result<(Measured, u64)> {
        let skip = self.skip.max(buffered(feed) + 1);
        let steps = num_steps + skip;
        let shown: Arc<Mutex<Progress>> = Arc::new(Mutex::new(out.progress(what, steps)));
        let hears = Arc::clone(&shown);
        let on_step = Arc::new(move |step| {
            hears.lock().unwrap_or_else(PoisonError::into_inner).at(step);
        });
        let runner = self.runner(feed, steps, on_step);
        let parameters = runner.run(scenario, prepared, record);
        drop(runner);
        if let Ok(shown) = Arc::try_unwrap(shown) {
            shown.into_inner().unwrap_or_else(PoisonError::into_inner).done();
        }
        let parameters = parameters.with_context(|| format!("cannot run the trainer {what}"))?;
        Ok((Measured::read(record, skip)?, parameters as u64))
    }

    fn runner(
        &self,
        feed: &FeedSettings,
        steps: u64,
        on_step: Arc<dyn Fn(u64) + Send + Sync>,
    ) -> ProfileRunner {
        ProfileRunner {
            feed: feed.clone(),
            settings: self.plan.train.clone(),
            devices: self.devices.clone(),
            watched: tandem_device::sampler::placed_gpus(&self.placement),
            limits: self.placement.limits,
            start_delay: Duration::from_secs_f64(self.plan.start_delay.0),
            steps,
            scratch: self.scratch.path().to_path_buf(),
            on_step,
            cancel: self.cancel.clone(),
        }
    }

    fn is_cached(&self) -> bool {
        self.plan.prepare.features == Features::Cached || self.prepared.summary.features
    }

    /// The corpus with cached mel frames, in a temporary cache: the user's cache is not changed.
    fn cached(&self, out: &mut Printer) -> Result<Arc<Prepared>> {
        let cache_dir = Some(self.scratch.path().join("cache"));
        let options =
            PrepareOptions { features: Features::Cached, cache_dir, ..self.plan.prepare.clone() };
        prepare_shown(&self.plan, &options, &self.cancel, out)
    }

    fn subject(&self, parameters: u64) -> Subject {
        let slowed = self.feed.slow.list();
        Subject {
            corpus: self.plan.train_data.display().to_string(),
            model_size: self.plan.train.model_size.name().into(),
            parameters,
            batch_size: self.feed.batch.batch_size,
            grad_accum: self.plan.train.grad_accum,
            setting: Setting { workers: self.feed.workers, depth: self.feed.depth },
            cached: self.is_cached(),
            sharing: match self.placement.mode {
                Mode::Cpu => Sharing::Cpu,
                Mode::SingleGpu => Sharing::OneGpu,
                Mode::MultiGpu => Sharing::TwoGpus,
            },
            data_device: self.placement.data.id.to_string(),
            model_device: self.placement.model.id.to_string(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            warmup: self.skip,
            slowed: slowed
                .map(|slow| format!("{}={}", slow.stage, slow.added.as_millis()))
                .collect(),
        }
    }

    fn shapes(&self) -> Result<Vec<BatchShapes>> {
        let mut sizes = SIZES.to_vec();
        sizes.push(self.feed.batch.batch_size);
        sizes.sort_unstable();
        sizes.dedup();
        let found = shapes_by_batch(&self.prepared, &self.feed, &sizes)?;
        let table = |(batch_size, shapes): (usize, ShapeCounts)| BatchShapes {
            batch_size,
            shapes: shapes.into_iter().collect(),
        };
        Ok(found.into_iter().map(table).collect())
    }
}

/// Batches that may be ready or in progress when the model starts.
pub fn buffered(feed: &FeedSettings) -> u64 {
    (feed.depth + ALIGNED + feed.host_batches()) as u64
}

fn prepare_shown(
    plan: &TrainPlan,
    options: &PrepareOptions,
    cancel: &CancelToken,
    out: &mut Printer,
) -> Result<Arc<Prepared>> {
    let prepared = prepare_corpus(&plan.corpus, &plan.data, options, cancel, out);
    let named = || format!("cannot prepare `{}`", plan.train_data.display());
    Ok(Arc::new(prepared.with_context(named)?))
}

fn overhead(run: &Measured, began: Instant) -> Result<Overhead> {
    let per_event = send_cost()?;
    let share = per_event * run.events as f64 / run.lasted.max(1e-9);
    let took = began.elapsed().as_secs_f64();
    Ok(Overhead { events: run.events, per_event, share, took })
}
