//! `tandem train`: trains a voice, from the corpus to checkpoints that speak.
//!
//! Devices are settled first, then the corpus is prepared, then the run begins or goes on. Words
//! for people go to stderr; the report at the end goes to stdout.

use crate::commands::prepare::Shown;
use crate::demo_corpus;
use crate::exit::ExitStatus;
use crate::failure::Advised;
use crate::interrupt::cancel_on_signals;
use crate::printer::Printer;
use crate::progress::{Plan, TrainProgress};
use crate::train_advice::{LinkFact, MachineFacts, advice};
use crate::train_args::TrainArgs;
use crate::train_plan::{TrainPlan, effective_config};
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tandem_data::cache::replace_file::replace_file;
use tandem_model::Module;
use tandem_model::checkpoint::{Checkpoints, Keep};
use tandem_model::inventory::Inventory;
use tandem_model::memory::HeldBefore;
use tandem_model::placement::{OpenDevices, Placement, Shapes};
use tandem_pipeline::CancelToken;
use tandem_telemetry::event::RunHeader;
use tandem_telemetry::record::{Closed, RecordOptions, Recording};
use tandem_telemetry::report::Report;
use tandem_telemetry::sampler::{Sampler, standard_sources};
use tandem_telemetry::{Recorder, Rules};
use tandem_train::beginning::{Changes, begin, resume};
use tandem_train::run_log::{RunLog, RunLogSettings};
use tandem_train::trainer::{Beginning, Ending, Job, Outcome, total_steps, train};
use tandem_train::validation_corpus::check_validation;
use tandem_train::{FeedSettings, Prepared, prepare};

/// What was typed.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    train: TrainArgs,
    /// With `--resume`: go on although corpus or batches changed, from the next epoch on
    #[arg(long)]
    allow_changes: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  tandem train --train-data demo --max-steps 400 --batch-size 8
  tandem train --train-data my-corpus --model-size small --checkpoint-dir runs/first
  tandem train --train-data my-corpus --checkpoint-dir runs/first --resume
  tandem train --train-data my-corpus --data-gpu 0 --model-gpu 1 --enable-memory-isolation

Ctrl-C finishes the step under way, writes a checkpoint and exits with 3.";

/// Frames of a reference that come with each row: a second and a half.
const REFERENCE_FRAMES: usize = 128;

/// Trains.
pub fn run(args: Args, out: &mut Printer) -> anyhow::Result<ExitStatus> {
    let plan = args.train.resolve()?;
    let found = Inventory::look();
    let placement =
        Placement::decide(&plan.devices, &found).context("no run is possible with these devices")?;
    let devices = placement.open().context("cannot open the devices")?;
    out.note(&placement.to_string());
    let facts = machine_facts(&placement, &found);
    for sentence in plan.said.iter().cloned().chain(advice(&plan, &facts)) {
        out.note(&sentence);
    }
    refuse_what_is_not_there(&plan)?;
    plan.train.precision.check(&devices.model)?;
    let cancel = cancel_on_signals()?;
    let mut shown = Shown::on(out);
    let prepared = prepare(&plan.corpus, &plan.data, &plan.prepare, &mut shown, &cancel);
    shown.done();
    let prepared = prepared
        .with_context(|| format!("cannot prepare `{}`", plan.train_data.display()))?;
    let validation = prepare_validation(&plan, &prepared, out, &cancel)?;
    let changes = if args.allow_changes { Changes::Allowed } else { Changes::Refused };
    let prepared = Arc::new(prepared);
    let run = TrainingRun { plan, placement, devices, prepared, validation, changes };
    run.carry_out(args.json, &cancel, out)
}

/// The second corpus, read and heard as the first one is, and compared with it.
fn prepare_validation(
    plan: &TrainPlan,
    training: &Prepared,
    out: &mut Printer,
    cancel: &CancelToken,
) -> anyhow::Result<Option<Arc<Prepared>>> {
    let Some(named) = &plan.val_data else { return Ok(None) };
    let unusable = || format!("cannot validate on `{}`", named.display());
    let corpus = demo_corpus::resolve(named).with_context(unusable)?;
    let mut shown = Shown::on(out);
    let prepared = prepare(&corpus, &plan.data, &plan.prepare, &mut shown, cancel);
    shown.done();
    let prepared = prepared.with_context(unusable)?;
    let facts = check_validation(training, &prepared).with_context(unusable)?;
    let voices = match facts.new_speakers.as_slice() {
        [] => String::new(),
        new => format!("; {} are not trained on and will be imitated", new.join(", ")),
    };
    out.note(&format!("validating on all {} rows of {}{voices}", facts.rows, named.display()));
    Ok(Some(Arc::new(prepared)))
}

/// What was asked for and cannot be done is said, not passed over.
fn refuse_what_is_not_there(plan: &TrainPlan) -> Result<(), Advised> {
    if plan.devices.shapes == Shapes::PerBatch {
        let way_out = "leave out `--enable-static-shapes=false`";
        return Err(Advised::new("batches are always padded to a few fixed shapes", way_out));
    }
    Ok(())
}

/// Everything settled, nothing started.
struct TrainingRun {
    plan: TrainPlan,
    placement: Placement,
    devices: OpenDevices,
    prepared: Arc<Prepared>,
    validation: Option<Arc<Prepared>>,
    changes: Changes,
}

impl TrainingRun {
    fn carry_out(
        self,
        json: bool,
        cancel: &CancelToken,
        out: &mut Printer,
    ) -> anyhow::Result<ExitStatus> {
        let directory = self.plan.train.checkpoint_dir.clone();
        let shelf = Checkpoints::open(&directory, Keep { last: self.plan.train.keep })
            .with_context(|| format!("cannot write checkpoints to `{}`", directory.display()))?;
        let feed = self.feed();
        let held = HeldBefore::look(&self.devices);
        let beginning = self.begin(&feed, &shelf, cancel, out)?;
        let text = effective_config(&self.plan)?;
        let config = directory.join("config.toml");
        replace_file(&config, text.as_bytes())
            .with_context(|| format!("cannot write `{}`", config.display()))?;
        out.note(&self.describe(&beginning));

        let record = record_path(&directory, beginning.learner.step);
        let total = total_steps(&self.prepared, &feed, &self.plan.train)?;
        let progress = TrainProgress::new(
            Plan {
                done: beginning.learner.step,
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
        let outcome = self.train(feed, beginning, held, shelf, recording.recorder(), cancel);
        let closed = recording.finish();
        progress.done();
        let outcome = outcome?;
        self.tell(outcome, &closed, &record, json, out)
    }

    fn feed(&self) -> FeedSettings {
        let feed = self.plan.feed_settings();
        // The buffer is counted in samples, the slots in batches; two are the least that overlap.
        let slots = self.placement.buffer_size.div_ceil(feed.batch.batch_size).max(2);
        let depth = feed.depth.min(slots);
        FeedSettings { reference_frames: REFERENCE_FRAMES, depth, ..feed }
    }

    fn begin(
        &self,
        feed: &FeedSettings,
        shelf: &Checkpoints,
        cancel: &CancelToken,
        out: &mut Printer,
    ) -> anyhow::Result<Beginning> {
        let (prepared, settings) = (&self.prepared, &self.plan.train);
        if !self.plan.resume {
            return Ok(begin(prepared, feed, settings, &self.devices, shelf, cancel)?);
        }
        let taken = resume(prepared, feed, settings, &self.devices, shelf, self.changes)?;
        for broken in &taken.passed_over {
            out.note(&format!("passed over a broken checkpoint: {broken}"));
        }
        if let Some(what) = &taken.changes {
            out.note(&format!("not the same run any more: {what}"));
        }
        Ok(taken.beginning)
    }

    fn describe(&self, beginning: &Beginning) -> String {
        let size = self.plan.train.model_size.name();
        let parameters = beginning.learner.voice.num_params() as f64 / 1e6;
        let from = match beginning.learner.step {
            0 => "a new run".to_string(),
            step => format!("goes on after step {step}"),
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
        beginning: Beginning,
        held: HeldBefore,
        shelf: Checkpoints,
        recorder: Recorder,
        cancel: &CancelToken,
    ) -> anyhow::Result<Outcome> {
        let directory = &self.plan.train.checkpoint_dir;
        let first_step = beginning.learner.step + 1;
        let settings =
            RunLogSettings { first_step, ..RunLogSettings::new(self.plan.data.mel.clone()) };
        let log = RunLog::start(directory, settings, recorder.clone())
            .context("cannot start the run's log")?;
        let sources = standard_sources(&crate::watched::gpus(&self.placement));
        let sampler = Sampler::start(sources, recorder.clone(), Duration::from_secs(1))
            .context("cannot watch the devices")?;
        let job = Job {
            prepared: self.prepared.clone(),
            validation: self.validation.clone(),
            feed,
            settings: self.plan.train.clone(),
            config: self.settings(),
            devices: self.devices.clone(),
            limits: self.placement.limits,
            held,
            shelf,
            start_delay: Duration::from_secs_f64(self.plan.start_delay.0),
            log: log.sender(),
            recorder,
            cancel: cancel.clone(),
        };
        let outcome = train(job, beginning);
        drop(sampler);
        log.finish();
        Ok(outcome?)
    }

    fn tell(
        &self,
        outcome: Outcome,
        closed: &Closed,
        record: &Path,
        json: bool,
        out: &mut Printer,
    ) -> anyhow::Result<ExitStatus> {
        let report = Report::from_summary(&closed.summary, None, &Rules::default());
        if json {
            out.json(&report)?;
        } else {
            out.line(report.to_string().trim_end())?;
            out.line(&format!("shapes    {}", outcome.shapes))?;
            if let Some(worst) = &outcome.worst {
                out.line(&format!("memory    {worst}"))?;
            }
        }
        let directory = self.plan.train.checkpoint_dir.display();
        out.note(&format!("record: {}", record.display()));
        if let Some(saved) = &outcome.kept.last {
            out.note(&format!("newest checkpoint: {} ({})", saved.path.display(), saved.bytes));
        }
        match (&outcome.ending, outcome.kept.failure) {
            (Ending::Failed(_), Some(error)) => {
                out.note(&format!("the newest checkpoint could not be written: {error}"));
            }
            (_, Some(error)) => {
                let fact = "its last checkpoint could not be written; older ones are intact";
                return Err(error).context(format!("the run came to step {}, but {fact}", outcome.step));
            }
            (_, None) => {}
        }
        match outcome.ending {
            Ending::Done => {
                out.note(&format!("speak: tandem synth --checkpoint {directory} --text \"...\" -o out.wav"));
                Ok(ExitStatus::Done)
            }
            Ending::NoProgress => {
                out.note("stopped early: validation did not get better any more (`--patience`)");
                Ok(ExitStatus::Done)
            }
            Ending::Interrupted => {
                out.note(&format!(
                    "stopped at step {}; the same command with `--resume` goes on", outcome.step
                ));
                Ok(ExitStatus::Interrupted)
            }
            Ending::Failed(error) => {
                out.note(&format!("stopped at step {}; `--resume` goes on from there", outcome.step));
                Err(error).context("the run could not go on")
            }
        }
    }
}

/// The first part of a run is `run.jsonl`; each later one says where it begins. A part that was
/// killed before its first checkpoint keeps its record: the next one begins at the same step.
fn record_path(directory: &Path, step: u64) -> PathBuf {
    let name = match step {
        0 => "run".to_string(),
        step => format!("run-from-{step:08}"),
    };
    let turns = (2..).map(|turn| format!("{name}-{turn}"));
    let names = std::iter::once(name.clone()).chain(turns);
    let mut paths = names.map(|name| directory.join(format!("{name}.jsonl")));
    paths.find(|path| !path.exists()).expect("names without end")
}

fn machine_facts(placement: &Placement, found: &Inventory) -> MachineFacts {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let model_memory = placement.limits.map(|limits| limits.model).or(placement.model.memory);
    let link = found.link(placement.data.id, placement.model.id);
    let link = link.map(|link| LinkFact { name: link.kind.name().into(), slow: link.kind.is_bad() });
    MachineFacts { cores, model_memory, link }
}
