//! `tandem prepare`: reads, checks and caches a corpus, and prints a summary.

use crate::corpus_args::{CorpusArgs, CorpusSettings};
use crate::data_report::{MANY, prepare_corpus, rejected_rows, rows};
use crate::exit::ExitStatus;
use crate::failure::{Context, Result};
use crate::interrupt::cancel_on_signals;
use crate::printer::Printer;
use owo_colors::OwoColorize;
use serde::Serialize;
use std::path::PathBuf;
use tandem_data::corpus::RejectedRow;
use tandem_train::prepare::row::ChangeCheck;
use tandem_train::{Prepared, Summary};
use tandem_units::Seconds;

const EXAMPLES: &str = "\
Examples:
  tandem prepare corpora/ljspeech
  tandem prepare corpora/ljspeech --cache-dataset        cache mel frames too
  tandem prepare corpora/persian --languages fa --lexicon words.tsv
  tandem prepare demo --json

The next start reads the cache; only changed rows are computed again. Changed settings use a cache
of their own. Ctrl-C loses nothing: the next start continues where this one stopped.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Corpus directory, a manifest in one, or `demo`
    corpus: PathBuf,
    #[command(flatten)]
    settings: CorpusArgs,
    /// Compare the contents of every file instead of its size and modification time
    #[arg(long)]
    verify: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    let mut settings = args.settings.resolve(&args.corpus)?;
    if args.verify {
        settings.prepare.change_check = ChangeCheck::Contents;
    }
    let cancel = cancel_on_signals()?;
    let CorpusSettings { corpus, data, prepare, .. } = &settings;
    let prepared = prepare_corpus(corpus, data, prepare, &cancel, out)
        .with_context(|| format!("cannot prepare `{}`", corpus.display()))?;
    if args.json {
        out.json(&AsJson { summary: &prepared.summary, rejected_rows: &prepared.rejected })?;
    } else {
        print_summary(&prepared, out)?;
    }
    Ok(ExitStatus::Done)
}

#[derive(Serialize)]
struct AsJson<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    rejected_rows: &'a [RejectedRow],
}

/// The summary as text: one line per fact, then the rejected rows.
fn print_summary(prepared: &Prepared, out: &mut Printer) -> Result<()> {
    let s = &prepared.summary;
    let mut lines = vec![
        ("corpus", s.corpus.display().to_string()),
        ("rows", format!("{}: {}", s.rows, rows(s))),
        ("languages", counts(s.languages.iter())),
    ];
    if !s.speakers.is_empty() {
        lines.push(("speakers", counts(s.speakers.iter())));
    }
    let mel = &prepared.settings.mel;
    let longest = mel.rate.seconds(tandem_units::Samples((s.longest_frames - 1) * mel.hop.0));
    lines.push(("audio", format!("{} in total, longest {longest}", s.sound)));
    let kind = if s.features { "text and mel frames" } else { "text and lengths" };
    lines.push(("cache", format!("{} ({kind})", s.cache.display())));
    if let Some(damage) = &s.damage {
        lines.push(("repaired", damage.clone()));
    }
    lines.push(("rebuilt", rebuilt(s)));
    for (name, value) in lines {
        out.line(&format!("{:<10} {value}", name.bold()))?;
    }
    if let Some(rejected) = rejected_rows(prepared, MANY) {
        out.line("")?;
        out.line(&rejected)?;
    }
    Ok(())
}

fn rebuilt(s: &Summary) -> String {
    let mut text = format!("{} of {} rows", s.rebuilt, s.rows);
    if s.recovered > 0 {
        text.push_str(&format!(", {} recovered from an interrupted run", s.recovered));
    }
    if s.touched > 0 {
        text.push_str(&format!(", {} touched but unchanged", s.touched));
    }
    let Seconds(took) = s.took;
    text.push_str(&format!(", in {}", s.took));
    if s.rebuilt > 0 {
        text.push_str(&format!(" ({:.0} rows/s)", s.rebuilt as f64 / took));
    }
    if let Some(peak) = s.peak_memory {
        text.push_str(&format!(", peak memory {peak}"));
    }
    text
}

fn counts<'a>(of: impl Iterator<Item = (&'a String, &'a usize)>) -> String {
    let parts: Vec<_> = of.map(|(name, count)| format!("{name} {count}")).collect();
    if parts.is_empty() { "none".into() } else { parts.join(", ") }
}
