//! `tandem train-vocoder`: trains a neural vocoder on a corpus and writes checkpoints.
//!
//! In: flags and configuration. Out: checkpoints, the run record, messages on stderr, and the report on stdout. The corpus
//! is prepared as for `tandem train`. Next: `tandem_train::vocoder::trainer`.

use crate::commands::train::OutputOptions;
use crate::corpus_args::{BatchArgs, CorpusArgs};
use crate::data_report::{data_event, note_data, prepare_corpus, unread_rows};
use crate::exit::ExitStatus;
use crate::failure::{Context, Result};
use crate::frozen_run::end_frozen_run;
use crate::interrupt::cancel_on_signals;
use crate::page_args::PageArgs;
use crate::printer::Printer;
use crate::progress::{Plan, TrainProgress};
use crate::setting_flags::{OfHostBuffer, OfPlaces, SettingFlags, typed};
use crate::speaking_args::damaged_checkpoint;
use crate::train_args::TrainArgs;
use crate::train_plan::{TrainPlan, effective_config};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tandem_device::inventory::Inventory;
use tandem_device::placement::{DeviceSettings, MelOn, OpenDevices, Placement};
use tandem_device::sampler::{Sampler, placed_gpus, standard_sources};
use tandem_disk::replace_file::replace_file;
use tandem_model::Module;
use tandem_model::checkpoint::{Checkpoints, Keep};
use tandem_model::vocoder::neural::config::VocoderSize;
use tandem_page::PageListener;
use tandem_page::follow::Follower;
use tandem_page::run_page;
use tandem_pipeline::CancelToken;
use tandem_telemetry::event::{RunHeader, Warning};
use tandem_telemetry::record::{Closed, RecordOptions, Recording};
use tandem_telemetry::report::Report;
use tandem_telemetry::run_parts::new_part;
use tandem_telemetry::{Recorder, Rules};
use tandem_train::feed::Rows;
use tandem_train::feed::row_failures::RowFailures;
use tandem_train::log::{RunLog, RunLogSettings};
use tandem_train::run::job::Ending;
use tandem_train::train_settings::{OptimizerSettings, TrainSettings};
use tandem_train::vocoder::state::{VocoderInputs, VocoderStart};
use tandem_train::vocoder::trainer::{VocoderJob, VocoderOutcome, train_vocoder};
use tandem_train::{FeedSettings, Prepared, total_steps};

const EXAMPLES: &str = "\
Examples:
  tandem train-vocoder --train-data demo --max-steps 1000
  tandem train-vocoder --train-data my-corpus --size small --checkpoint-dir runs/vocoder
  tandem train-vocoder --train-data my-corpus --checkpoint-dir runs/vocoder --resume
  tandem attach-vocoder --checkpoint runs/voice --vocoder runs/vocoder

Each step uses a segment of 0.74 seconds of every recording in the batch. Text is not used. Ctrl-C finishes the current \
step, writes a checkpoint and exits with code 3. The `[train]` section of a configuration file belongs to `tandem train` \
and is not read.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES, next_help_heading = "Training")]
pub struct Args {
    /// Corpus to train on: a directory, a manifest in one, or `demo`
    #[arg(long, value_name = "CORPUS", env = "TANDEM_TRAIN_DATA")]
    train_data: Option<PathBuf>,
    /// Vocoder size: 1 or 4 million parameters
    #[arg(long, value_name = "SIZE", default_value = VocoderSize::default().name(), value_parser = size())]
    size: VocoderSize,
    /// Optimizer steps to train
    #[arg(long, value_name = "N", default_value_t = 3000)]
    max_steps: u64,
    /// Peak learning rate
    #[arg(long, value_name = "RATE", default_value_t = 0.002, allow_hyphen_values = true)]
    lr: f64,
    /// Steps between two validations
    #[arg(long, value_name = "N", default_value_t = 250)]
    validate_every: u64,
    /// Steps between two audio samples: held-out recordings, synthesized from their mel frames
    #[arg(long, value_name = "N", default_value_t = 1000)]
    sample_every: u64,
    /// Steps between two checkpoints
    #[arg(long, value_name = "N", default_value_t = 250)]
    checkpoint_every: u64,
    /// Checkpoints to keep, in addition to the best one
    #[arg(long, value_name = "N", default_value_t = 2)]
    keep: usize,
    /// Run directory for checkpoints, audio samples and the run record
    #[arg(long, value_name = "DIR", default_value = "vocoder")]
    checkpoint_dir: PathBuf,
    /// Resume from the latest checkpoint in the run directory
    #[arg(long)]
    resume: bool,
    #[command(flatten, next_help_heading = "Corpus")]
    corpus: CorpusArgs,
    #[command(flatten, next_help_heading = "Batches")]
    batch: BatchArgs,
    #[command(flatten)]
    buffer: SettingFlags<OfHostBuffer>,
    #[command(flatten)]
    places: SettingFlags<OfPlaces>,
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

fn size() -> impl TypedValueParser<Value = VocoderSize> {
    let shown = VocoderSize::ALL.map(|size| PossibleValue::new(size.name()));
    let hidden = PossibleValue::new(VocoderSize::Micro.name()).hide(true);
    PossibleValuesParser::new(shown.into_iter().chain([hidden])).map(|name| {
        let of_name = |size: &VocoderSize| size.name() == name;
        let mut sizes = VocoderSize::ALL.into_iter().chain([VocoderSize::Micro]);
        sizes.find(of_name).unwrap_or_default()
    })
}

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    args.page.check()?;
    let plan = resolve(&args, out)?;
    let door =
        args.dashboard.map(PageListener::take).transpose().context("cannot open the live page")?;
    let placement = Placement::decide(&plan.devices, &Inventory::detect())
        .context("the requested devices cannot be used")?;
    let devices = placement.open().context("cannot open the devices")?;
    out.note(&placement.to_string());
    let cancel = cancel_on_signals()?;
    let prepared = prepare_corpus(&plan.corpus, &plan.data, &plan.prepare, &cancel, out)
        .with_context(|| format!("cannot prepare `{}`", plan.train_data.display()))?;
    note_data("data", &prepared, plan.prepare.workers, out);
    let (prepared, directory) = (Arc::new(prepared), args.checkpoint_dir);
    let run = VocoderRun { plan, directory, placement, devices, prepared, size: args.size };
    run.carry_out(OutputOptions { json: args.json, page: args.page, door }, &cancel, out)
}

/// The settings of a training run, with those of the vocoder.
pub(crate) fn resolve(args: &Args, out: &mut Printer) -> Result<TrainPlan> {
    let shared = TrainArgs {
        data: args
            .train_data
            .clone()
            .map(|path| typed("train_data", path))
            .unwrap_or_default()
            .into(),
        corpus: args.corpus.clone(),
        batch: args.batch.clone(),
        devices: args.places.typed.clone().and(args.buffer.typed.clone()).into(),
        resume: args.resume,
        ..TrainArgs::default()
    };
    let mut plan = shared.resolve(out)?;
    for key in without_effect(&mut plan.devices) {
        out.note(&format!(
            "`devices.{key}` of the configuration belongs to `tandem train` and has no effect here"
        ));
    }
    let train = TrainSettings {
        max_steps: Some(args.max_steps),
        epochs: None,
        seed: plan.batch.seed,
        optimizer: OptimizerSettings { lr: args.lr, ..OptimizerSettings::default() },
        validate_every: args.validate_every,
        sample_every: args.sample_every,
        checkpoint_every: args.checkpoint_every,
        keep: args.keep,
        checkpoint_dir: Some(args.checkpoint_dir.clone()),
        ..TrainSettings::default()
    };
    train.validate()?;
    Ok(TrainPlan { train, ..plan })
}

/// Sets what vocoders do not have to its default; the keys that a configuration file had set.
fn without_effect(devices: &mut DeviceSettings) -> Vec<&'static str> {
    let usual = DeviceSettings::default();
    let mut keys = Vec::new();
    if devices.isolation != usual.isolation {
        keys.push("enable_memory_isolation");
    }
    if devices.mel_on == MelOn::Device {
        keys.push("mel_on");
    }
    (devices.isolation, devices.mel_on) = (usual.isolation, usual.mel_on);
    keys
}

/// A run with open devices and prepared data, before it starts.
struct VocoderRun {
    plan: TrainPlan,
    directory: PathBuf,
    placement: Placement,
    devices: OpenDevices,
    prepared: Arc<Prepared>,
    size: VocoderSize,
}

impl VocoderRun {
    fn carry_out(
        self,
        mut output: OutputOptions,
        cancel: &CancelToken,
        out: &mut Printer,
    ) -> Result<ExitStatus> {
        let directory = self.directory.clone();
        let checkpoints = Checkpoints::open(&directory, Keep { last: self.plan.train.keep })
            .with_context(|| format!("cannot write checkpoints to `{}`", directory.display()))?;
        let feed = self.feed();
        let inputs = VocoderInputs {
            prepared: &self.prepared,
            feed: &feed,
            settings: &self.plan.train,
            size: self.size,
            devices: &self.devices,
            checkpoints: &checkpoints,
            cancel,
        };
        let start = if self.plan.resume { inputs.resume()? } else { inputs.begin()? };
        let unread = unread_rows(&feed.row_failures);
        let config = directory.join("config.toml");
        replace_file(&config, effective_config(&self.plan)?.as_bytes())
            .with_context(|| format!("cannot write `{}`", config.display()))?;
        out.note(&self.describe(&start));

        let record = new_part(&directory, start.train_state.step);
        let last_step = Some(total_steps(&self.prepared, &feed, &self.plan.train)?);
        let plan = Plan { done: start.train_state.step, last_step, epochs: None };
        let progress = TrainProgress::new(plan, out);
        let options =
            RecordOptions { listener: Some(progress.listener()), ..RecordOptions::default() };
        let header = RunHeader::now("tandem", env!("CARGO_PKG_VERSION"), self.settings());
        let recording = Recording::create(&record, header, options)
            .with_context(|| format!("cannot start the run record `{}`", record.display()))?;
        recording.recorder().send(data_event(&self.prepared, self.plan.prepare.workers));
        if let Some(warning) = unread {
            recording.recorder().send(warning);
        }
        let damaged = start.damaged.iter().map(|fact| damaged_checkpoint(fact));
        for text in damaged {
            recording.recorder().send(Warning { code: "resume_changed".into(), text });
        }
        let dashboard = output.open_dashboard(&directory, out)?;
        let outcome = self.train(feed, start, checkpoints, recording.recorder(), cancel);
        let closed = recording.finish();
        progress.done();
        drop(dashboard);
        let outcome = outcome?;
        // An error of the page is printed and does not fail the run.
        let page = output.page.write(out, |lang| {
            let view = Follower::start(&directory)?.view();
            Ok(run_page(&view, &directory.to_string_lossy(), lang))
        });
        if let Err(error) = page {
            out.note(&crate::failure::explain(&error));
        }
        self.report(outcome, &closed, &record, output.json, out)
    }

    fn feed(&self) -> FeedSettings {
        let feed = self.plan.train_feed();
        let rows = Rows::of(&self.prepared, feed.split).cache_row.len();
        let row_failures = RowFailures::new(self.plan.prepare.max_rejected, rows);
        FeedSettings { reference_frames: 0, row_failures, ..feed }
    }

    fn describe(&self, start: &VocoderStart) -> String {
        let parameters = start.train_state.network.num_params();
        let from = match start.train_state.step {
            0 => "new run".to_string(),
            step => format!("resumed at step {step}"),
        };
        let directory = self.directory.display();
        let size = self.size.name();
        format!(
            "vocoder: {size}, {}; {from} in {directory}",
            crate::counted::parameters(parameters)
        )
    }

    fn settings(&self) -> serde_json::Value {
        serde_json::json!({
            "command": "train-vocoder",
            "size": self.size,
            "placement": self.placement,
            "config": self.plan.to_file(),
        })
    }

    fn train(
        &self,
        feed: FeedSettings,
        start: VocoderStart,
        checkpoints: Checkpoints,
        recorder: Recorder,
        cancel: &CancelToken,
    ) -> Result<VocoderOutcome> {
        let directory = &self.directory;
        let first_step = start.train_state.step + 1;
        let settings =
            RunLogSettings { first_step, ..RunLogSettings::new(self.plan.data.mel.clone()) };
        let log = RunLog::start(directory, settings, recorder.clone())
            .context("cannot start the run's log")?;
        let sources = standard_sources(&placed_gpus(&self.placement));
        let sampler = Sampler::start(sources, recorder.clone(), Duration::from_secs(1))
            .context("cannot start the device sampler")?;
        let job = VocoderJob {
            prepared: self.prepared.clone(),
            feed,
            settings: self.plan.train.clone(),
            config: self.settings(),
            devices: self.devices.clone(),
            checkpoints,
            start_delay: Duration::from_secs_f64(self.plan.start_delay.0),
            log: log.sender(),
            recorder,
            cancel: cancel.clone(),
            on_frozen: Some(end_frozen_run(sampler.latest())),
        };
        let outcome = train_vocoder(job, start);
        drop(sampler);
        log.finish();
        Ok(outcome?)
    }

    fn report(
        &self,
        outcome: VocoderOutcome,
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
        }
        let directory = self.directory.display();
        out.note(&format!("record: {}", record.display()));
        if let Some(best) = outcome.best {
            out.note(&format!("lowest distance to held-out recordings: {best:.4}"));
        }
        if let Some(saved) = &outcome.written.last {
            out.note(&format!("latest checkpoint: {} ({})", saved.path.display(), saved.bytes));
        }
        let resumable = format!(
            "stopped at step {}; run the same command with `--resume` to continue",
            outcome.step
        );
        match (outcome.ending, outcome.written.failure) {
            (Ending::Failed(error), _) => {
                out.note(&resumable);
                Err(error).context("training stopped")
            }
            (_, Some(error)) => {
                let fact = "its last checkpoint is not on disk";
                Err(error).context(format!("the run reached step {}, but {fact}", outcome.step))
            }
            (Ending::Interrupted, None) => {
                out.note(&resumable);
                Ok(ExitStatus::Interrupted)
            }
            (Ending::Done | Ending::NoProgress, None) => {
                out.note(&format!(
                    "use it: tandem attach-vocoder --checkpoint VOICE_RUN --vocoder {directory}"
                ));
                Ok(ExitStatus::Done)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_device::placement::Isolation;

    #[test]
    fn device_settings_of_a_voice_are_named_and_not_used() {
        let isolation = Isolation::On { data: None, model: None };
        let mut devices =
            DeviceSettings { isolation, mel_on: MelOn::Device, ..DeviceSettings::default() };
        assert_eq!(without_effect(&mut devices), ["enable_memory_isolation", "mel_on"]);
        assert_eq!(devices, DeviceSettings::default());
        assert!(without_effect(&mut devices).is_empty());
    }
}
