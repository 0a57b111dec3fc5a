//! `tandem analyze`: measures data loading of a corpus on this machine, and recommends settings.

pub mod alignments; // how well transcripts fit their recordings
mod page; // the same as HTML
mod review; // transcripts as a page to decide on
mod statistics; // what the corpus has

use crate::corpus_args::{BatchArgs, CorpusArgs, CorpusSettings};
use crate::data_report::prepare_corpus;
use crate::exit::ExitStatus;
use crate::failure::{Context, Result, ensure};
use crate::interrupt::cancel_on_signals;
use crate::memory_check::fit_batches;
use crate::page_args::PageArgs;
use crate::printer::Printer;
use alignments::AlignmentArgs;
use owo_colors::OwoColorize;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tandem_data::corpus::Corpus;
use tandem_eval::statistics::CorpusStatistics;
use tandem_page::RunView;
use tandem_pipeline::adapt::Limits;
use tandem_pipeline::{Adapt, CancelToken};
use tandem_telemetry::event::{RunHeader, StartReason};
use tandem_telemetry::rules::UNEVEN_LOADING;
use tandem_telemetry::stats::Figures;
use tandem_telemetry::{Ending, RecordOptions, Recorder, Recording, Report, Rules, Spans};
use tandem_train::measure::analyze::{Analysis, AnalyzeOptions, StartTimes, analyze};
use tandem_train::measure::feed_benchmark::{Consumer, LATE};
use tandem_train::{FeedSettings, PrepareOptions, Prepared};
use tandem_units::Seconds;

const EXAMPLES: &str = "\
Examples:
  tandem analyze                                  the built-in demo corpus
  tandem analyze corpora/ljspeech --step-time 120
  tandem analyze corpora/ljspeech --cache-dataset --num-workers 4 --json
  tandem analyze corpora/ljspeech --html analysis.html --lang fa
  tandem analyze --alignments run                 transcripts that do not fit their recordings
  tandem analyze --alignments run --held-out --top 50
  tandem analyze --alignments run --html rows.html   listen to the worst rows, and decide on each

The consumer waits --step-time for each batch, like a model of that speed; everything else is measured \
with the code of training. Exit code 1: a setting should be changed.

With --alignments nothing is timed: the best checkpoint of a training run aligns every text with its \
recording, and rows whose text does not explain what is heard come first.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Corpus directory, a manifest in one, or `demo` [default: demo, or the run's own with
    /// --alignments]
    corpus: Option<PathBuf>,
    /// Time of the model for one batch, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 50.0)]
    step_time: f64,
    /// Rows to measure one by one, spread over the corpus
    #[arg(long, value_name = "N", default_value_t = 200)]
    sample: usize,
    /// Batches to load
    #[arg(long, value_name = "N", default_value_t = 60)]
    batches: usize,
    /// Longest wait for the first batches before the consumer starts, in seconds
    #[arg(long, value_name = "S", default_value_t = 2.0)]
    model_start_delay: f64,
    /// Adapt workers and pipeline depth, and print the final values
    #[arg(long)]
    adapt: bool,
    #[command(flatten, next_help_heading = "Transcripts")]
    alignments: AlignmentArgs,
    #[command(flatten, next_help_heading = "Corpus")]
    pub(crate) settings: CorpusArgs,
    #[command(flatten, next_help_heading = "Batches")]
    pub(crate) batch: BatchArgs,
    // The flags after it are in the same part of the help.
    #[command(flatten, next_help_heading = "Output")]
    page: PageArgs,
    /// Write the run record to a new file, for `tandem report`
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    analysis: &'a Analysis,
    corpus: &'a CorpusStatistics,
}

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    args.page.check()?;
    if let Some(run) = &args.alignments.alignments {
        let (corpus, page) = (args.corpus.as_deref(), &args.page);
        let asked = alignments::Asked { run, corpus, json: args.json, page };
        return alignments::run(asked, &args.alignments, &args.settings, out);
    }
    let named = args.corpus.as_deref().unwrap_or(Path::new("demo"));
    let settings = args.settings.resolve(named, out)?;
    let batch = args.batch.resolve(&settings)?;
    let cancel = cancel_on_signals()?;
    let (prepared, start) = time_starts(&settings, out, &cancel)
        .with_context(|| format!("cannot prepare `{}`", settings.corpus.display()))?;
    let batch = fit_batches(batch.clone(), &prepared, FeedSettings::new(batch.batch), out)?;
    let mut feed = FeedSettings::new(batch.batch);
    feed.workers = settings.prepare.workers;
    feed.most_workers = feed.most_workers.max(feed.workers);
    feed.depth = batch.buffers.depth;
    feed.stall_timeout = settings.prepare.stall_timeout;
    if args.adapt {
        // Short intervals: an analysis lasts seconds, a training run hours.
        let interval = Duration::from_millis(500);
        feed.adapt = Adapt::On(Limits { interval, least_items: 5, ..Limits::default() });
    }
    let consumer = Consumer {
        batches: args.batches.max(1),
        step: Duration::from_secs_f64(args.step_time.clamp(0.0, 60_000.0) / 1e3),
        start_delay: Duration::from_secs_f64(args.model_start_delay.clamp(0.0, 3600.0)),
    };
    let options = AnalyzeOptions { sample: args.sample.max(1), consumer };
    // A page needs the run record, also if `--record` is not given.
    let passing = tempfile::tempdir().context("cannot make a temporary directory")?;
    let for_page = args.page.html.is_some().then(|| passing.path().join("run.jsonl"));
    let record_file = args.record.clone().or(for_page);
    let recording = record_file.as_deref().map(|path| record(path, &options)).transpose()?;
    let recorder = recording.as_ref().map_or_else(Recorder::off, Recording::recorder);
    let corpus = Corpus::read(&settings.corpus, &settings.data.corpus)?;
    out.note(&format!(
        "measuring {} rows and {} batches",
        options.sample.min(corpus.utterances.len()),
        options.consumer.batches
    ));
    let corpus_has = CorpusStatistics::of(&prepared);
    let analysis =
        analyze(&Arc::new(prepared), &corpus, start, &feed, &options, &recorder, &cancel)?;
    if let Some(recording) = recording {
        let report = close(recording)?;
        if args.record.is_some() {
            out.note(report.to_string().trim_end());
        }
    }
    if args.json {
        out.json(&Answer { analysis: &analysis, corpus: &corpus_has })?;
    } else {
        statistics::print(&corpus_has, out)?;
        print(&analysis, out)?;
    }
    if let Some(path) = &record_file {
        args.page.write(out, |lang| {
            let view = RunView::read(path)?;
            Ok(page::page(&analysis, &view, &named.to_string_lossy(), lang))
        })?;
    }
    Ok(if analysis.findings.is_empty() { ExitStatus::Done } else { ExitStatus::Negative })
}

fn reason(why: StartReason) -> &'static str {
    match why {
        StartReason::EnoughReady => "enough batches were ready",
        StartReason::DelayOver => "the start delay elapsed",
        StartReason::EndOfData => "the data ended",
        StartReason::Stopped => "the run was stopped",
    }
}

/// A warm start from the cache of the corpus, and a cold start into a temporary cache on the same disk.
fn time_starts(
    settings: &CorpusSettings,
    out: &mut Printer,
    cancel: &CancelToken,
) -> Result<(Prepared, StartTimes)> {
    let CorpusSettings { corpus, data, prepare: options, .. } = settings;
    let first = prepare_corpus(corpus, data, options, cancel, out)?.summary.cache;
    let place = first.parent().unwrap_or(&first);
    let passing = tempfile::Builder::new()
        .prefix("cold-start-")
        .tempdir_in(place)
        .with_context(|| format!("cannot make a temporary directory in `{}`", place.display()))?;
    out.note("measuring a cold start, with a temporary cache");
    let cold = PrepareOptions { cache_dir: Some(passing.path().to_path_buf()), ..options.clone() };
    let cold = prepare_corpus(corpus, data, &cold, cancel, out)?.summary.took;
    let prepared = prepare_corpus(corpus, data, options, cancel, out)?;
    let warm = prepared.summary.took;
    Ok((prepared, StartTimes { cold, warm }))
}

fn record(path: &Path, options: &AnalyzeOptions) -> Result<Recording> {
    let settings =
        serde_json::json!({ "command": "analyze", "step": options.consumer.step.as_secs_f64() });
    let header = RunHeader::now("tandem", env!("CARGO_PKG_VERSION"), settings);
    let options = RecordOptions { spans: Spans::Recorded, ..RecordOptions::default() };
    Recording::create(path, header, options).context("cannot start the run record")
}

fn close(recording: Recording) -> Result<Report> {
    let closed = recording.finish();
    ensure(closed.ending == Ending::Whole, "the run record is not complete on disk")?;
    Ok(Report::from_summary(&closed.summary, None, &Rules::default()))
}

/// The analysis as text.
pub fn print(analysis: &Analysis, out: &mut Printer) -> Result<()> {
    let Analysis { text, audio, cache, batches, .. } = analysis;
    let mut table = Printer::table(&["what", "mean", "std", "p95", "max"]);
    let mut row = |what: &str, f: &Figures| {
        let time = |value: f64| Seconds(value).to_string();
        table.add_row([what, &time(f.mean), &time(f.std), &time(f.p95), &time(f.max)]);
    };
    row("read a recording", &audio.read);
    row("decode it", &audio.decode);
    row("compute mel frames", &audio.mel);
    row("wait for a batch", &batches.wait);
    out.line(&table.trim_fmt())?;
    out.line("")?;
    let even = format!(
        "{:.0} % variation per second of audio, without the 5 % at each end (uneven above {:.0} %), {:.0} times real \
         time on one thread",
        100.0 * audio.variation,
        100.0 * UNEVEN_LOADING,
        audio.times_real_time
    );
    let cold = format!(
        "cold start {} ({} of it text, reading and decoding, from {} rows), warm {}: {:.0} times",
        cache.cold, cache.rows, analysis.sampled, cache.warm, cache.gain
    );
    let waits = format!(
        "{} of {} later than {} ms; consumer idle {:.1} % at {} per step; at most {:.0} batches/s",
        batches.late,
        batches.count,
        LATE.as_millis(),
        100.0 * batches.idle,
        batches.step,
        batches.deliverable
    );
    let start = format!(
        "after {}, {} ready ({})",
        batches.started.waited.seconds(),
        batches.started.ready,
        reason(batches.started.why)
    );
    let per_row =
        format!("{} a row, {} for all {} rows", text.per_row, text.all_rows, analysis.rows);
    for (name, value) in [
        ("text", per_row),
        ("loading", even),
        ("cache", cold),
        ("start", start),
        ("batches", waits),
    ] {
        out.line(&format!("{:<8} {value}", name.bold()))?;
    }
    if !batches.flags.is_empty() {
        out.line(&format!("{:<8} {}", "ended at".bold(), batches.flags.join(" ")))?;
    }
    for finding in &analysis.findings {
        out.line(&format!("{:<8} {}", "change".yellow().bold(), finding.fact))?;
        out.line(&format!("{:<8} {}", "", finding.advice))?;
    }
    out.line(&format!("{:<8} {}", "verdict".bold(), analysis.verdict))?;
    Ok(())
}
