//! `tandem analyze`: what loading costs on this corpus and this machine, and what to change.

use crate::commands::prepare::Shown;
use crate::corpus_args::{BatchArgs, CorpusArgs, CorpusSettings};
use crate::exit::ExitStatus;
use crate::interrupt::cancel_on_signals;
use crate::printer::Printer;
use anyhow::Context;
use owo_colors::OwoColorize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tandem_data::corpus::Corpus;
use tandem_pipeline::CancelToken;
use tandem_telemetry::stats::Figures;
use tandem_train::analyze::{Analysis, AnalyzeOptions, LATE, UNEVEN, analyze};
use tandem_train::{FeedSettings, Prepared, prepare};
use tandem_units::Seconds;

const EXAMPLES: &str = "\
Examples:
  tandem analyze                                  the built-in demo corpus
  tandem analyze corpora/ljspeech --step-time 120
  tandem analyze corpora/ljspeech --cache-dataset --num-workers 4 --json

The consumer waits --step-time on each batch, as a model of that speed would; everything else is
measured with the code that training uses. Exit code 1: something should be changed.";

/// What was typed.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Corpus directory, a manifest in one, or `demo`
    #[arg(default_value = "demo")]
    corpus: PathBuf,
    #[command(flatten)]
    settings: CorpusArgs,
    #[command(flatten)]
    batch: BatchArgs,
    /// How long your model works on a batch, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 50.0)]
    step_time: f64,
    /// Rows to time one by one, spread over the corpus
    #[arg(long, value_name = "N", default_value_t = 200)]
    sample: usize,
    /// Batches to take
    #[arg(long, value_name = "N", default_value_t = 60)]
    batches: usize,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Measures and reports.
pub fn run(args: Args, out: &mut Printer) -> anyhow::Result<ExitStatus> {
    let settings = args.settings.resolve(&args.corpus)?;
    let batch = args.batch.resolve(&settings);
    let cancel = cancel_on_signals()?;
    let (prepared, warm) = prepare_twice(&settings, out, &cancel)
        .with_context(|| format!("cannot prepare `{}`", settings.corpus.display()))?;
    let mut feed = FeedSettings::new(batch.batch);
    feed.workers = settings.prepare.workers;
    feed.most_workers = feed.most_workers.max(feed.workers);
    feed.depth = batch.depth;
    let options = AnalyzeOptions {
        sample: args.sample.max(1),
        batches: args.batches.max(1),
        step: Duration::from_secs_f64(args.step_time.clamp(0.0, 60_000.0) / 1e3),
    };
    let corpus = Corpus::read(&settings.corpus, &settings.data.corpus)?;
    out.note(&format!(
        "measuring {} rows and {} batches",
        options.sample.min(corpus.utterances.len()),
        options.batches
    ));
    let analysis = analyze(&Arc::new(prepared), &corpus, warm, &feed, &options, &cancel)?;
    if args.json {
        out.json(&analysis)?;
    } else {
        print(&analysis, out)?;
    }
    Ok(if analysis.findings.is_empty() { ExitStatus::Done } else { ExitStatus::Negative })
}

/// The second time is the warm start.
fn prepare_twice(
    settings: &CorpusSettings,
    out: &mut Printer,
    cancel: &CancelToken,
) -> anyhow::Result<(Prepared, Seconds)> {
    let mut shown = Shown::on(out);
    let CorpusSettings { corpus, data, prepare: options, .. } = settings;
    let first = prepare(corpus, data, options, &mut shown, cancel);
    shown.done();
    drop(first?);
    let again = prepare(corpus, data, options, &mut Shown::on(out), cancel)?;
    let warm = again.summary.took;
    Ok((again, warm))
}

/// The analysis for people.
pub fn print(analysis: &Analysis, out: &mut Printer) -> anyhow::Result<()> {
    let Analysis { text, audio, cache, batches, .. } = analysis;
    let mut table = Printer::table(&["what", "mean", "std", "p95", "max", "variation"]);
    let mut row = |what: &str, f: &Figures| {
        let time = |value: f64| Seconds(value).to_string();
        let variation = format!("{:.0} %", 100.0 * f.variation);
        table.add_row([what, &time(f.mean), &time(f.std), &time(f.p95), &time(f.max), &variation]);
    };
    row("read a recording", &audio.read);
    row("decode it", &audio.decode);
    row("its mel frames", &audio.mel);
    row("wait for a batch", &batches.wait);
    out.line(&table.trim_fmt())?;
    out.line("")?;
    let even = format!(
        "{:.0} % variation per second of sound (uneven above {:.0} %), {:.0} times real time on one thread",
        100.0 * audio.variation, 100.0 * UNEVEN, audio.times_real_time
    );
    let cold = format!(
        "cold {} (from {} sampled rows), warm {} (measured): {:.0} times",
        cache.cold, analysis.sampled, cache.warm, cache.gain
    );
    let waits = format!(
        "{} of {} later than {} ms; consumer idle {:.1} % at {} a step; {:.0} batches/s when nobody waits",
        batches.late, batches.count, LATE.as_millis(), 100.0 * batches.idle, batches.step, batches.deliverable
    );
    let per_row = format!("{} a row, {} for all {} rows", text.per_row, text.all_rows, analysis.rows);
    for (name, value) in
        [("text", per_row), ("loading", even), ("cache", cold), ("batches", waits)]
    {
        out.line(&format!("{:<8} {value}", name.bold()))?;
    }
    for finding in &analysis.findings {
        out.line(&format!("{:<8} {}", "change".yellow().bold(), finding.fact))?;
        out.line(&format!("{:<8} {}", "", finding.advice))?;
    }
    out.line(&format!("{:<8} {}", "verdict".bold(), analysis.verdict))?;
    Ok(())
}
