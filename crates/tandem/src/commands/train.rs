//! `tandem train`: trains a voice and writes checkpoints.
//!
//! In: flags and configuration. Out: checkpoints, the run record, messages on stderr, and the report
//! on stdout. Devices are opened first, then the corpus is prepared, then the run starts or is
//! resumed. Next: `tandem_train::run::trainer`.

mod start; // new, resumed or fine-tuned
mod report; // the end of a run

use crate::data_report::{data_event, note_data, nothing_validated, prepare_corpus, unread_rows};
use crate::demo_files;
use crate::exit::ExitStatus;
use crate::failure::{Context, Result};
use crate::frozen_run::end_frozen_run;
use crate::interrupt::cancel_on_signals;
use crate::length_report::too_long;
use crate::memory_check::fit_to_corpus;
use crate::page_args::PageArgs;
use crate::printer::Printer;
use crate::progress::{Plan, TrainProgress};
use crate::ranks::{self, RankArgs, cores_of};
use crate::run_directory::RunDirectory;
use crate::train_advice::{LinkFact, MachineFacts, advice};
use crate::train_args::TrainArgs;
use crate::train_plan::{TrainPlan, effective_config};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tandem_cluster::Cluster;
use tandem_device::inventory::Inventory;
use tandem_device::memory::{MemoryBaseline, PhaseWatch};
use tandem_device::placement::{LocalRank, Mode, OpenDevices, Placement, Shapes};
use tandem_device::sampler::{Sampler, placed_gpus, standard_sources};
use tandem_disk::create_dir_all;
use tandem_disk::replace_file::replace_file;
use tandem_model::checkpoint::{Checkpoints, Keep};
use tandem_page::follow::Follower;
use tandem_page::{Dashboard, DashboardOptions, PageListener, run_page};
use tandem_pipeline::{CancelToken, Slowdown, Slowdowns};
use tandem_telemetry::Recorder;
use tandem_telemetry::event::{RunHeader, Warning};
use tandem_telemetry::record::{RecordOptions, Recording};
use tandem_telemetry::run_parts::new_part;
use tandem_train::feed::Rows;
use tandem_train::feed::mel_placement::check_mel_place;
use tandem_train::feed::row_failures::RowFailures;
use tandem_train::feed::schedule::Shard;
use tandem_train::feed::skip_list::SkipList;
use tandem_train::log::{LogSender, RunLog, RunLogSettings};
use tandem_train::run::job::{Job, Outcome, RunStart};
use tandem_train::run::ranks::synchronize;
use tandem_train::run::resume::Changes;
use tandem_train::run::trainer::train;
use tandem_train::run::validation_corpus::check_validation;
use tandem_train::run::warm_up::WarmUp;
use tandem_train::total_steps;
use tandem_train::{FeedSettings, Prepared};

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pub(crate) train: TrainArgs,
    /// With `--resume`: accept a changed corpus or changed batch settings; training continues at the
    /// next epoch
    #[arg(long, help_heading = "Training")]
    allow_changes: bool,
    /// Batch at which the model device is lost, for tests
    #[arg(long, value_name = "N", hide = true)]
    lose_device_at: Option<u64>,
    /// File with rows to skip, for tests: batch, row id and role, separated by tabs
    #[arg(long, value_name = "FILE", hide = true)]
    skip_list: Option<PathBuf>,
    /// Stage and milliseconds added to its items (`@PERIOD:SLOW`: to the last SLOW of every PERIOD),
    /// for tests
    #[arg(long, value_name = "STAGE=MS", hide = true)]
    slow: Vec<Slowdown>,
    /// Directory with the system's description of the machine, for tests
    #[arg(long, value_name = "DIR", hide = true)]
    sys: Option<PathBuf>,
    #[command(flatten)]
    ranks: RankArgs,
    // The flags after it are in the same part of the help.
    #[command(flatten, next_help_heading = "Output")]
    page: PageArgs,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Serve a live page of the run on this machine
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "7878")]
    dashboard: Option<u16>,
}

const EXAMPLES: &str = "\
Examples:
  tandem train --train-data demo --max-steps 400 --batch-size 8     in a new directory below runs
  tandem train --train-data my-corpus --model-size small --checkpoint-dir runs/first
  tandem train --train-data my-corpus --checkpoint-dir runs/first --resume
  tandem train --train-data new-speaker --from runs/first --max-steps 500      fine-tune that voice
  tandem train --train-data my-corpus --data-gpu 0 --model-gpu 1 --enable-memory-isolation
  mpirun -np 2 tandem train --train-data my-corpus      two ranks, one GPU each; a build with MPI

Ctrl-C finishes the current step, writes a checkpoint and exits with code 3.";

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    let cluster = ranks::join(&args.ranks, out)?;
    let stop = cluster.as_ref().and_then(|_| ranks::how_to_stop(|name| std::env::var(name).ok()));
    if let Some(text) = stop {
        out.note(&text);
    }
    let done = run_rank(args, cluster.as_ref(), out);
    ranks::leave(cluster.as_ref(), done)
}

/// The directory of the run. The first rank chooses it, and all others use the same.
fn shared_directory(plan: &TrainPlan, cluster: Option<&Cluster>) -> Result<RunDirectory> {
    let Some(cluster) = cluster else { return plan.run_directory() };
    let chosen = cluster.is_first().then(|| plan.run_directory()).transpose()?;
    let name = chosen.as_ref().map(|chosen| chosen.path().as_os_str().as_bytes().to_vec());
    let name = cluster.broadcast(0, name.unwrap_or_default())?;
    Ok(chosen.unwrap_or_else(|| RunDirectory::typed(Path::new(OsStr::from_bytes(&name)))))
}

/// The whole command, on this rank.
fn run_rank(args: Args, cluster: Option<&Cluster>, out: &mut Printer) -> Result<ExitStatus> {
    args.page.check()?;
    let mut plan = args.train.resolve(out)?;
    if let Some(cluster) = cluster {
        plan.prepare.workers = ranks::workers(plan.prepare.workers, cluster);
        plan.devices.local = LocalRank { rank: cluster.local_rank(), ranks: cluster.local_ranks() };
    }
    let directory = shared_directory(&plan, cluster)?;
    if let Some(note) = directory.note() {
        out.note(&note);
    }
    let is_first = cluster.is_none_or(Cluster::is_first);
    let dashboard = args.dashboard.filter(|_| is_first);
    let door =
        dashboard.map(PageListener::take).transpose().context("cannot open the live page")?;
    let found = args.sys.as_deref().map_or_else(Inventory::detect, Inventory::detect_in);
    let placement =
        Placement::decide(&plan.devices, &found).context("the requested devices cannot be used")?;
    let phases = PhaseWatch::start(&[placement.data.id, placement.model.id]);
    let devices = placement.open().context("cannot open the devices")?;
    out.note(&placement.to_string());
    out.note(&plan.buffers.to_string());
    let mut warnings = Vec::new();
    for text in idle_gpus(&placement, &found) {
        out.note(&format!("warning: {text}"));
        warnings.push(Warning { code: "idle_gpu".into(), text });
    }
    let facts = machine_facts(&placement, &found);
    for sentence in plan.notes.iter().cloned().chain(advice(&plan, &facts)) {
        out.note(&sentence);
    }
    plan.train.precision.check(&devices.model)?;
    check_mel_place(plan.devices.mel_on, &devices)?;
    let cancel = cancel_on_signals()?;
    let prepared = prepare_corpus(&plan.corpus, &plan.data, &plan.prepare, &cancel, out)
        .with_context(|| format!("cannot prepare `{}`", plan.train_data.display()))?;
    note_data("data", &prepared, plan.prepare.workers, out);
    for text in too_long(&prepared.summary, plan.batch_facts()) {
        out.note(&format!("warning: {text}"));
        warnings.push(Warning { code: "rows_too_long".into(), text });
    }
    let memory = fit_to_corpus(&mut plan, &prepared, &placement, out)?;
    out.note(&format!("memory: {memory}"));
    let validation = prepare_validation(&plan, &prepared, out, &cancel)?;
    if let Some(text) = nothing_validated(&prepared.summary, validation.as_deref()) {
        out.note(&format!("warning: {text}"));
        warnings.push(Warning { code: "nothing_validated".into(), text });
    }
    let changes = if args.allow_changes { Changes::Allowed } else { Changes::Refused };
    let (prepared, lose_device_at) = (Arc::new(prepared), args.lose_device_at);
    let skip_list = args.skip_list.as_deref().map(SkipList::read).transpose()?.unwrap_or_default();
    let run = TrainingRun {
        cluster: cluster.cloned(),
        plan,
        directory,
        warnings,
        placement,
        phases,
        devices,
        prepared,
        validation,
        changes,
        lose_device_at,
        skip_list,
        slow: Slowdowns::of(args.slow),
    };
    run.carry_out(OutputOptions { json: args.json, page: args.page, door }, &cancel, out)
}

/// Prepares the validation corpus with the settings of the training corpus, and compares the two.
fn prepare_validation(
    plan: &TrainPlan,
    training: &Prepared,
    out: &mut Printer,
    cancel: &CancelToken,
) -> Result<Option<Arc<Prepared>>> {
    let Some(named) = &plan.val_data else { return Ok(None) };
    let unusable = || format!("cannot validate on `{}`", named.display());
    let corpus = demo_files::corpus(named).with_context(unusable)?;
    let prepared =
        prepare_corpus(&corpus, &plan.data, &plan.prepare, cancel, out).with_context(unusable)?;
    note_data("validation data", &prepared, plan.prepare.workers, out);
    let facts = check_validation(training, &prepared).with_context(unusable)?;
    let voices = match facts.new_speakers.as_slice() {
        [] => String::new(),
        new => format!(
            "; {} are not in the training corpus and are synthesized from reference audio",
            new.join(", ")
        ),
    };
    out.note(&format!("validating on all {} rows of {}{voices}", facts.rows, named.display()));
    Ok(Some(Arc::new(prepared)))
}

/// Output options.
pub(crate) struct OutputOptions {
    pub(crate) json: bool,
    pub(crate) page: PageArgs,
    pub(crate) door: Option<PageListener>,
}

impl OutputOptions {
    /// Follows the record on disk, as `tandem watch` does, so that it cannot disturb the run.
    pub(crate) fn open_dashboard(
        &mut self,
        directory: &Path,
        out: &mut Printer,
    ) -> Result<Option<Dashboard>> {
        let Some(door) = self.door.take() else { return Ok(None) };
        let lang = self.page.language.lang;
        let options =
            DashboardOptions { lang, ..DashboardOptions::new(directory.to_string_lossy()) };
        let page =
            Dashboard::open(door, directory, options).context("cannot open the live page")?;
        out.note(&format!("live page: {}", page.url()));
        Ok(Some(page))
    }
}

/// A run with open devices and prepared data, before it starts.
struct TrainingRun {
    /// The other ranks; none where this process trains alone.
    cluster: Option<Cluster>,
    plan: TrainPlan,
    directory: RunDirectory,
    /// What the user was told before the run, for its record.
    warnings: Vec<Warning>,
    placement: Placement,
    /// Memory of the cards in each phase.
    phases: PhaseWatch,
    devices: OpenDevices,
    prepared: Arc<Prepared>,
    validation: Option<Arc<Prepared>>,
    changes: Changes,
    lose_device_at: Option<u64>,
    skip_list: SkipList,
    slow: Slowdowns,
}

impl TrainingRun {
    fn carry_out(
        self,
        mut output: OutputOptions,
        cancel: &CancelToken,
        out: &mut Printer,
    ) -> Result<ExitStatus> {
        let directory = self.directory.path().to_path_buf();
        let unwritable = || format!("cannot write checkpoints to `{}`", directory.display());
        let checkpoints = match self.is_first() {
            true => {
                let keep = Keep { last: self.plan.train.keep };
                Some(Checkpoints::open(&directory, keep).with_context(unwritable)?)
            }
            false => None,
        };
        let feed = self.feed(out)?;
        let held = MemoryBaseline::measure(&self.devices);
        let (mut start, notes) = self.begin(&feed, checkpoints.as_ref(), cancel)?;
        let unread = unread_rows(&feed.row_failures);
        if let Some(cluster) = &self.cluster {
            synchronize(cluster, &mut start, &self.plan.train)?;
        }
        if self.is_first() {
            let text = effective_config(&self.plan)?;
            let config = directory.join("config.toml");
            replace_file(&config, text.as_bytes())
                .with_context(|| format!("cannot write `{}`", config.display()))?;
        }
        out.note(&self.describe(&start));
        self.note_source(&start, out);
        self.take_vocoder(&start, out)?;

        let records = self.record_directory();
        create_dir_all(&records)
            .with_context(|| format!("cannot write the run record to `{}`", records.display()))?;
        let record = new_part(&records, start.train_state.step);
        let total = total_steps(&self.prepared, &feed, &self.plan.train)?;
        let progress = TrainProgress::new(
            Plan {
                done: start.train_state.step,
                last_step: Some(total),
                epochs: self.plan.train.epochs,
            },
            out,
        );
        let listener = self.is_first().then(|| progress.listener());
        let options = RecordOptions { listener, ..RecordOptions::default() };
        let header = RunHeader::now("tandem", env!("CARGO_PKG_VERSION"), self.settings(&start));
        let recording = Recording::create(&record, header, options)
            .with_context(|| format!("cannot start the run record `{}`", record.display()))?;
        recording.recorder().send(data_event(&self.prepared, self.plan.prepare.workers));
        for warning in self.warnings.iter().chain(&unread) {
            recording.recorder().send(warning.clone());
        }
        for text in notes {
            recording.recorder().send(Warning { code: "resume_changed".into(), text });
        }
        let dashboard = output.open_dashboard(&directory, out)?;
        if WarmUp::default().is_due(&self.devices) && feed.shapes == Shapes::Static {
            out.note("warm-up: one step for each batch shape, so that kernels are compiled before step 1");
        }
        let outcome = self.train(feed, start, held, checkpoints, recording.recorder(), cancel);
        let closed = recording.finish();
        progress.done();
        if dashboard.is_some() {
            out.note(&format!(
                "the live page is closed; `tandem watch {}` shows the run",
                directory.display()
            ));
        }
        drop(dashboard);
        let outcome = outcome?;
        if !self.is_first() {
            return self.report(outcome, &closed, &record, output.json, out);
        }
        // An error of the page is printed and does not fail the run.
        let page = output.page.write(out, |lang| {
            // All parts of a resumed run, so that the curves begin at step 1.
            let view = Follower::start(&directory)?.view();
            Ok(run_page(&view, &directory.to_string_lossy(), lang))
        });
        if let Err(error) = page {
            out.note(&crate::failure::explain(&error));
        }
        self.report(outcome, &closed, &record, output.json, out)
    }

    /// Whether this process writes what a run has one of.
    fn is_first(&self) -> bool {
        self.cluster.as_ref().is_none_or(Cluster::is_first)
    }

    /// Rank 0 writes its record into the run directory, every other rank into a directory of its own.
    fn record_directory(&self) -> PathBuf {
        let directory = self.directory.path();
        match self.cluster.as_ref().map_or(0, Cluster::rank) {
            0 => directory.to_path_buf(),
            rank => directory.join("ranks").join(rank.to_string()),
        }
    }

    fn feed(&self, out: &mut Printer) -> Result<FeedSettings> {
        let feed = self.plan.train_feed();
        let shard = self
            .cluster
            .as_ref()
            .map_or(Shard::ALL, |cluster| Shard { rank: cluster.rank(), ranks: cluster.ranks() });
        let most_workers = feed.most_workers.min(cores_of(self.cluster.as_ref()).max(2));
        let rows = Rows::of(&self.prepared, feed.split).cache_row.len();
        let feed = FeedSettings {
            shard,
            most_workers: most_workers.max(feed.workers),
            lose_device_at: self.lose_device_at,
            row_failures: RowFailures::new(self.plan.prepare.max_rejected, rows),
            skip_list: self.skip_list.clone(),
            slow: self.slow.clone(),
            ..feed
        };
        self.plan.with_mel_place(feed, &self.prepared, &self.devices, out)
    }

    fn train(
        &self,
        feed: FeedSettings,
        start: RunStart,
        held: MemoryBaseline,
        checkpoints: Option<Checkpoints>,
        recorder: Recorder,
        cancel: &CancelToken,
    ) -> Result<Outcome> {
        let directory = self.directory.path();
        let first_step = start.train_state.step + 1;
        let settings =
            RunLogSettings { first_step, ..RunLogSettings::new(self.plan.data.mel.clone()) };
        let log = match self.is_first() {
            true => Some(
                RunLog::start(directory, settings, recorder.clone())
                    .context("cannot start the run's log")?,
            ),
            false => None,
        };
        let sources = standard_sources(&placed_gpus(&self.placement));
        let sampler = Sampler::start(sources, recorder.clone(), Duration::from_secs(1))
            .context("cannot start the device sampler")?;
        let job = Job {
            prepared: self.prepared.clone(),
            validation: self.validation.clone(),
            feed,
            settings: self.plan.train.clone(),
            config: self.settings(&start),
            devices: self.devices.clone(),
            limits: self.placement.limits,
            warm_up: WarmUp::default(),
            held,
            phases: self.phases.clone(),
            checkpoints,
            cluster: self.cluster.clone(),
            start_delay: Duration::from_secs_f64(self.plan.start_delay.0),
            log: log.as_ref().map_or_else(LogSender::off, RunLog::sender),
            recorder,
            cancel: cancel.clone(),
            on_frozen: Some(end_frozen_run(sampler.latest())),
        };
        let outcome = train(job, start);
        drop(sampler);
        log.map(RunLog::finish);
        Ok(outcome?)
    }
}

/// Sentences about GPUs that a run on the CPU does not use.
pub fn idle_gpus(placement: &Placement, found: &Inventory) -> Vec<String> {
    if placement.mode == Mode::Cpu { found.idle_gpus() } else { Vec::new() }
}

pub fn machine_facts(placement: &Placement, found: &Inventory) -> MachineFacts {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let model_memory = placement.limits.map(|limits| limits.model).or(placement.model.memory);
    let link = found.link(placement.data.id, placement.model.id);
    let link =
        link.map(|link| LinkFact { name: link.kind.name().into(), slow: link.kind.is_bad() });
    MachineFacts { cores, model_memory, link }
}
