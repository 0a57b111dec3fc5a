//! `tandem prepare`: reads, checks and caches a corpus, and prints a summary.

use crate::corpus_args::{CorpusArgs, CorpusSettings};
use crate::data_report::{MANY, prepare_corpus, rejected_rows, rows, symbols};
use crate::exit::ExitStatus;
use crate::failure::{Context, Result};
use crate::interrupt::cancel_on_signals;
use crate::length_report::{BatchFacts, too_long};
use crate::printer::Printer;
use crate::ranks::{self, RankArgs};
use owo_colors::OwoColorize;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tandem_cluster::Cluster;
use tandem_data::batch::BatchConfig;
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
  mpirun -np 4 tandem prepare corpora/ljspeech           four ranks, one cache; a build with MPI

The next start reads the cache; only changed rows are computed again. Changed settings use a cache \
of their own. Ctrl-C loses nothing: the next start continues where this one stopped.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Corpus directory, a manifest in one, or `demo`
    pub(crate) corpus: PathBuf,
    /// Compare the contents of every file instead of its size and modification time
    #[arg(long)]
    verify: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten, next_help_heading = "Corpus")]
    pub(crate) settings: CorpusArgs,
    #[command(flatten)]
    ranks: RankArgs,
}

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    let cluster = ranks::join(&args.ranks, out)?;
    let done = run_rank(args, cluster.as_ref(), out);
    ranks::leave(cluster.as_ref(), done)
}

/// The whole command, on this rank.
fn run_rank(args: Args, cluster: Option<&Cluster>, out: &mut Printer) -> Result<ExitStatus> {
    let mut settings = args.settings.resolve(&args.corpus, out)?;
    if let Some(cluster) = cluster {
        settings.prepare.workers = ranks::workers(settings.prepare.workers, cluster);
        settings.prepare.cluster = Some(cluster.clone());
    }
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
        print_summary(&prepared, &settings, out)?;
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
fn print_summary(prepared: &Prepared, settings: &CorpusSettings, out: &mut Printer) -> Result<()> {
    let s = &prepared.summary;
    let mut lines = vec![
        ("corpus", s.corpus.display().to_string()),
        ("layout", s.recognised.clone()),
        ("rows", format!("{}: {}", s.rows, rows(s))),
        ("languages", counts(s.languages.iter())),
        ("symbols", symbols(prepared)),
    ];
    if !s.speakers.is_empty() {
        lines.push(("speakers", speakers(&s.speakers)));
    }
    let mel = &prepared.settings.mel;
    let longest = mel.rate.seconds(tandem_units::Samples((s.longest_frames - 1) * mel.hop.0));
    lines.push(("audio", format!("{} in total, longest {longest}", s.sound)));
    // Batch and model size are decided by `train`; here they are those of the file, or the defaults.
    let batch = BatchConfig {
        max_mel_frames: settings.data.max_mel_frames,
        max_text_length: settings.data.text.max_symbols,
        ..settings.file.batch.clone()
    };
    let model_size = settings.file.train.model_size;
    let facts = BatchFacts { batch: &batch, model_size, bands: mel.bands };
    lines.extend(too_long(s, facts).into_iter().map(|text| ("too long", text)));
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

/// The speakers with the most rows. Common Voice has thousands, each with a name of 128 letters.
fn speakers(all: &BTreeMap<String, usize>) -> String {
    const SHOWN: usize = 12;
    const LONGEST: usize = 20;
    let mut most: Vec<(&String, &usize)> = all.iter().collect();
    if most.len() > SHOWN {
        most.sort_by_key(|(name, count)| (Reverse(**count), *name));
    }
    let short = |name: &str| match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    };
    let named: Vec<(String, usize)> =
        most.iter().take(SHOWN).map(|(name, count)| (short(name), **count)).collect();
    let shown = counts(named.iter().map(|(name, count)| (name, count)));
    match all.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{}, most rows: {shown}, and {more} more", all.len()),
    }
}

fn counts<'a>(of: impl Iterator<Item = (&'a String, &'a usize)>) -> String {
    let parts: Vec<_> = of.map(|(name, count)| format!("{name} {count}")).collect();
    if parts.is_empty() { "none".into() } else { parts.join(", ") }
}
