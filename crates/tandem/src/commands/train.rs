//! `tandem train`: trains a voice and writes checkpoints.
//!
//! In: flags and configuration. Out: checkpoints, the run record, messages on stderr, and the report
//! on stdout. Devices are opened first, then the corpus is prepared, then the run starts or is
//! resumed. Next: `tandem_train::run::trainer`.

use crate::data_report::{data_event, note_data, prepare_corpus};
use crate::demo_corpus;
use crate::exit::ExitStatus;
use crate::failure::{Context, Result};
use crate::interrupt::cancel_on_signals;
use crate::page_args::PageArgs;
use crate::printer::Printer;
use crate::progress::{Plan, TrainProgress};
use crate::train_advice::{LinkFact, MachineFacts, advice};
use crate::train_args::TrainArgs;
use crate::train_plan::{TrainPlan, effective_config};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tandem_device::inventory::Inventory;
use tandem_device::memory::MemoryBaseline;
use tandem_device::placement::{OpenDevices, Placement};
use tandem_device::sampler::{LatestSamples, Sampler, placed_gpus, standard_sources};
use tandem_disk::replace_file::replace_file;
use tandem_model::Module;
use tandem_model::checkpoint::{Checkpoints, Keep};
use tandem_page::follow::Follower;
use tandem_page::{Dashboard, DashboardOptions, Doorway, run_page};
use tandem_pipeline::watchdog::OnFrozen;
use tandem_pipeline::{CancelToken, PipelineError, Slowdowns};
use tandem_telemetry::event::{DeviceSample, RunHeader, Warning};
use tandem_telemetry::record::{Closed, RecordOptions, Recording};
use tandem_telemetry::report::Report;
use tandem_telemetry::run_parts::new_part;
use tandem_telemetry::{Recorder, Rules};
use tandem_train::feed::Rows;
use tandem_train::feed::mel_placement::check_mel_place;
use tandem_train::feed::row_failures::RowFailures;
use tandem_train::feed::skip_list::SkipList;
use tandem_train::log::{RunLog, RunLogSettings};
use tandem_train::run::job::{Ending, Job, Outcome, RunStart};
use tandem_train::run::resume::{Changes, resume};
use tandem_train::run::start::begin;
use tandem_train::run::trainer::train;
use tandem_train::run::validation_corpus::check_validation;
use tandem_train::run::warm_up::WarmUp;
use tandem_train::total_steps;
use tandem_train::{FeedSettings, Prepared};

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    train: TrainArgs,
    /// With `--resume`: accept a changed corpus or changed batch settings; training continues at the
    /// next epoch
    #[arg(long)]
    allow_changes: bool,
    /// Batch at which the model device is lost, for tests
    #[arg(long, value_name = "N", hide = true)]
    lose_device_at: Option<u64>,
    /// File with rows to skip, for tests: batch, row id and role, separated by tabs
    #[arg(long, value_name = "FILE", hide = true)]
    skip_list: Option<PathBuf>,
    /// Stage and milliseconds added to each of its items, for tests
    #[arg(long, value_name = "STAGE=MS", value_parser = parse_slow, hide = true)]
    slow: Option<(String, Duration)>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    page: PageArgs,
    /// Serve a live page of the run on this machine
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "7878")]
    dashboard: Option<u16>,
}

const EXAMPLES: &str = "\
Examples:
  tandem train --train-data demo --max-steps 400 --batch-size 8
  tandem train --train-data my-corpus --model-size small --checkpoint-dir runs/first
  tandem train --train-data my-corpus --checkpoint-dir runs/first --resume
  tandem train --train-data my-corpus --data-gpu 0 --model-gpu 1 --enable-memory-isolation

Ctrl-C finishes the current step, writes a checkpoint and exits with code 3.";

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    args.page.check()?;
    let plan = args.train.resolve()?;
    let door =
        args.dashboard.map(Doorway::take).transpose().context("cannot open the live page")?;
    let found = Inventory::detect();
    let placement =
        Placement::decide(&plan.devices, &found).context("the requested devices cannot be used")?;
    let devices = placement.open().context("cannot open the devices")?;
    out.note(&placement.to_string());
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
    let validation = prepare_validation(&plan, &prepared, out, &cancel)?;
    let changes = if args.allow_changes { Changes::Allowed } else { Changes::Refused };
    let (prepared, lose_device_at) = (Arc::new(prepared), args.lose_device_at);
    let skip_list = args.skip_list.as_deref().map(SkipList::read).transpose()?.unwrap_or_default();
    let run = TrainingRun {
        plan,
        placement,
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
    let corpus = demo_corpus::resolve(named).with_context(unusable)?;
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
struct OutputOptions {
    json: bool,
    page: PageArgs,
    door: Option<Doorway>,
}

impl OutputOptions {
    /// Follows the record on disk, as `tandem watch` does, so that it cannot disturb the run.
    fn open_dashboard(&mut self, directory: &Path, out: &mut Printer) -> Result<Option<Dashboard>> {
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
    plan: TrainPlan,
    placement: Placement,
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
        let directory = self.plan.train.checkpoint_dir.clone();
        let checkpoints = Checkpoints::open(&directory, Keep { last: self.plan.train.keep })
            .with_context(|| format!("cannot write checkpoints to `{}`", directory.display()))?;
        let feed = self.feed(out)?;
        let held = MemoryBaseline::measure(&self.devices);
        let (start, notes) = self.begin(&feed, &checkpoints, cancel)?;
        let text = effective_config(&self.plan)?;
        let config = directory.join("config.toml");
        replace_file(&config, text.as_bytes())
            .with_context(|| format!("cannot write `{}`", config.display()))?;
        out.note(&self.describe(&start));

        let record = new_part(&directory, start.train_state.step);
        let total = total_steps(&self.prepared, &feed, &self.plan.train)?;
        let progress = TrainProgress::new(
            Plan {
                done: start.train_state.step,
                last_step: Some(total),
                epochs: self.plan.train.epochs,
            },
            out,
        );
        let options =
            RecordOptions { listener: Some(progress.listener()), ..RecordOptions::default() };
        let header = RunHeader::now("tandem", env!("CARGO_PKG_VERSION"), self.settings());
        let recording = Recording::create(&record, header, options)
            .with_context(|| format!("cannot start the run record `{}`", record.display()))?;
        recording.recorder().send(data_event(&self.prepared, self.plan.prepare.workers));
        for text in notes {
            recording.recorder().send(Warning { code: "resume_changed".into(), text });
        }
        let dashboard = output.open_dashboard(&directory, out)?;
        if WarmUp::default().is_due(&self.devices) {
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

    fn feed(&self, out: &mut Printer) -> Result<FeedSettings> {
        let feed = self.plan.feed_on(&self.placement);
        let rows = Rows::of(&self.prepared, feed.split).cache_row.len();
        let feed = FeedSettings {
            lose_device_at: self.lose_device_at,
            row_failures: RowFailures::new(self.plan.prepare.max_rejected, rows),
            skip_list: self.skip_list.clone(),
            slow: self.slow.clone(),
            ..feed
        };
        self.plan.with_mel_place(feed, &self.prepared, &self.devices, out)
    }

    fn begin(
        &self,
        feed: &FeedSettings,
        checkpoints: &Checkpoints,
        cancel: &CancelToken,
    ) -> Result<(RunStart, Vec<String>)> {
        let (prepared, settings) = (&self.prepared, &self.plan.train);
        if !self.plan.resume {
            let start = begin(prepared, feed, settings, &self.devices, checkpoints, cancel)?;
            return Ok((start, Vec::new()));
        }
        let taken = resume(prepared, feed, settings, &self.devices, checkpoints, self.changes)?;
        let damaged = taken.damaged.iter();
        let damaged =
            damaged.map(|fact| format!("a newer checkpoint is damaged and is not used: {fact}"));
        let changed = taken.notes.iter().map(|fact| format!("resumed with a change: {fact}"));
        Ok((taken.start, damaged.chain(changed).collect()))
    }

    fn describe(&self, start: &RunStart) -> String {
        let size = self.plan.train.model_size.name();
        let parameters = start.train_state.voice.num_params() as f64 / 1e6;
        let from = match start.train_state.step {
            0 => "new run".to_string(),
            step => format!("resumed at step {step}"),
        };
        let directory = self.plan.train.checkpoint_dir.display();
        format!("voice: {size}, {parameters:.1} million parameters; {from} in {directory}")
    }

    fn settings(&self) -> serde_json::Value {
        serde_json::json!({
            "command": "train",
            "placement": self.placement,
            "config": self.plan.to_file(),
        })
    }

    fn train(
        &self,
        feed: FeedSettings,
        start: RunStart,
        held: MemoryBaseline,
        checkpoints: Checkpoints,
        recorder: Recorder,
        cancel: &CancelToken,
    ) -> Result<Outcome> {
        let directory = &self.plan.train.checkpoint_dir;
        let first_step = start.train_state.step + 1;
        let settings =
            RunLogSettings { first_step, ..RunLogSettings::new(self.plan.data.mel.clone()) };
        let log = RunLog::start(directory, settings, recorder.clone())
            .context("cannot start the run's log")?;
        let sources = standard_sources(&placed_gpus(&self.placement));
        let sampler = Sampler::start(sources, recorder.clone(), Duration::from_secs(1))
            .context("cannot start the device sampler")?;
        let job = Job {
            prepared: self.prepared.clone(),
            validation: self.validation.clone(),
            feed,
            settings: self.plan.train.clone(),
            config: self.settings(),
            devices: self.devices.clone(),
            limits: self.placement.limits,
            warm_up: WarmUp::default(),
            held,
            checkpoints,
            start_delay: Duration::from_secs_f64(self.plan.start_delay.0),
            log: log.sender(),
            recorder,
            cancel: cancel.clone(),
            on_frozen: Some(end_frozen_run(sampler.latest())),
        };
        let outcome = train(job, start);
        drop(sampler);
        log.finish();
        Ok(outcome?)
    }

    fn report(
        &self,
        outcome: Outcome,
        closed: &Closed,
        record: &Path,
        json: bool,
        out: &mut Printer,
    ) -> Result<ExitStatus> {
        let report = Report::from_summary(&closed.summary, None, &Rules::default());
        if json {
            out.json(&report)?;
        } else {
            out.line(report.to_string().trim_end())?;
            out.line(&format!("shapes    {}", outcome.shapes))?;
            out.line(&format!("warm-up   {}", outcome.warm_up))?;
            out.line(&format!("in use    {}", outcome.memory))?;
            if let Some(worst) = &outcome.worst {
                out.line(&format!("memory    {worst}"))?;
            }
        }
        let directory = self.plan.train.checkpoint_dir.display();
        out.note(&format!("record: {}", record.display()));
        if let Some(saved) = &outcome.written.last {
            out.note(&format!("latest checkpoint: {} ({})", saved.path.display(), saved.bytes));
        }
        match (&outcome.ending, outcome.written.failure) {
            (Ending::Failed(_), Some(error)) => {
                out.note(&format!("the last checkpoint could not be written: {error}"));
            }
            (_, Some(error)) => {
                let fact = "its last checkpoint is not on disk";
                return Err(error)
                    .context(format!("the run reached step {}, but {fact}", outcome.step));
            }
            (_, None) => {}
        }
        match outcome.ending {
            Ending::Done => {
                out.note(&format!(
                    "synthesize: tandem synth --checkpoint {directory} --text \"...\" -o out.wav"
                ));
                Ok(ExitStatus::Done)
            }
            Ending::NoProgress => {
                out.note("stopped early: validation did not improve any more (`--patience`)");
                Ok(ExitStatus::Done)
            }
            Ending::Interrupted => {
                out.note(&format!(
                    "stopped at step {}; run the same command with `--resume` to continue",
                    outcome.step
                ));
                Ok(ExitStatus::Interrupted)
            }
            Ending::Failed(error) => {
                out.note(&format!(
                    "stopped at step {}; run the same command with `--resume` to continue",
                    outcome.step
                ));
                Err(error).context("training stopped")
            }
        }
    }
}

pub fn machine_facts(placement: &Placement, found: &Inventory) -> MachineFacts {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let model_memory = placement.limits.map(|limits| limits.model).or(placement.model.memory);
    let link = found.link(placement.data.id, placement.model.id);
    let link =
        link.map(|link| LinkFact { name: link.kind.name().into(), slow: link.kind.is_bad() });
    MachineFacts { cores, model_memory, link }
}

/// A training step that does not return from its device cannot be stopped from outside: the program
/// ends, and the newest checkpoint on disk is what can be resumed. A frozen stage ends its run by itself.
fn end_frozen_run(latest: LatestSamples) -> OnFrozen {
    Arc::new(move |frozen| {
        if frozen.stage != "train" {
            return;
        }
        let failed: Result<()> = Err(PipelineError::Frozen(frozen.clone())).context(
            "the training step does not end; `--resume` continues from the newest checkpoint",
        );
        let Err(error) = failed else { return };
        // The printer may belong to the frozen thread.
        let mut stderr = std::io::stderr();
        let _ = writeln!(stderr, "{}", crate::failure::explain(&error));
        for sample in latest.all() {
            let _ = writeln!(stderr, "{}", describe_sample(&sample));
        }
        std::process::exit(ExitStatus::Failed as i32);
    })
}

fn describe_sample(sample: &DeviceSample) -> String {
    let busy = sample.utilisation.map(|share| format!("{:.0} % busy", 100.0 * share));
    let memory = sample.memory_used.map(|bytes| format!("{bytes} in use"));
    let heat = sample.temperature.map(|degrees| format!("{degrees:.0} degrees"));
    let facts: Vec<String> = [busy, memory, heat].into_iter().flatten().collect();
    format!("device {}: {}", sample.device, facts.join(", "))
}

fn parse_slow(text: &str) -> std::result::Result<(String, Duration), String> {
    let (stage, time) = text.split_once('=').ok_or("expected STAGE=MILLISECONDS")?;
    let time = time.parse().map_err(|_| "expected STAGE=MILLISECONDS".to_string())?;
    Ok((stage.to_string(), Duration::from_millis(time)))
}
