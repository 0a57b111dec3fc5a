//! `tandem prepare`: reads, checks and caches a corpus, and says what it found.

use crate::corpus_args::CorpusArgs;
use crate::exit::ExitStatus;
use crate::failure::{Context, Result};
use crate::interrupt::cancel_on_signals;
use crate::printer::{Printer, Progress};
use owo_colors::OwoColorize;
use serde::Serialize;
use std::path::PathBuf;
use tandem_data::corpus::RejectedRow;
use tandem_train::prepare::row::Trust;
use tandem_train::{Prepared, Summary, Watcher, prepare};
use tandem_units::Seconds;

const EXAMPLES: &str = "\
Examples:
  tandem prepare corpora/ljspeech
  tandem prepare corpora/ljspeech --cache-dataset        keep mel frames too
  tandem prepare corpora/persian --languages fa --lexicon words.tsv
  tandem prepare demo --json

A second start reads the cache; a changed row is made again alone, a changed setting makes a
cache of its own. Ctrl-C loses nothing: the next start goes on where this one stopped.";

/// Rejected rows shown in the table; the file lists all.
const SHOWN: usize = 20;

/// What was typed.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Corpus directory, a manifest in one, or `demo`
    corpus: PathBuf,
    #[command(flatten)]
    settings: CorpusArgs,
    /// Read and compare every byte instead of believing size and time of a file
    #[arg(long)]
    verify: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

/// Prepares the corpus.
pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    let mut settings = args.settings.resolve(&args.corpus)?;
    if args.verify {
        settings.prepare.trust = Trust::Bytes;
    }
    let cancel = cancel_on_signals()?;
    let mut shown = Shown { out, progress: None };
    let prepared =
        prepare(&settings.corpus, &settings.data, &settings.prepare, &mut shown, &cancel);
    shown.done();
    if let Err(error) = &prepared {
        show_rejected(error.rejected(), out);
    }
    let prepared =
        prepared.with_context(|| format!("cannot prepare `{}`", settings.corpus.display()))?;
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

/// Shows how far preparing is.
pub struct Shown<'a> {
    out: &'a mut Printer,
    progress: Option<Progress>,
}

impl<'a> Shown<'a> {
    /// Shows it there.
    pub fn on(out: &'a mut Printer) -> Shown<'a> {
        Shown { out, progress: None }
    }

    /// Takes the bar away.
    pub fn done(self) {
        if let Some(progress) = self.progress {
            progress.done();
        }
    }
}

impl Watcher for Shown<'_> {
    fn waiting_for(&mut self, owner: &str) {
        self.out.note(&format!("another `tandem` prepares this corpus ({owner}); waiting for it"));
    }

    fn progress(&mut self, done: usize, rows: usize) {
        let out = &self.out;
        let bar = self.progress.get_or_insert_with(|| out.progress("preparing", rows as u64));
        bar.at(done as u64);
    }
}

/// The summary for people: one line per fact, then the rejected rows.
pub fn print_summary(prepared: &Prepared, out: &mut Printer) -> Result<()> {
    let s = &prepared.summary;
    let mut lines = vec![
        ("corpus", s.corpus.display().to_string()),
        (
            "rows",
            format!(
                "{}: {} usable ({} to learn from, {} held out), {} rejected",
                s.rows, s.usable, s.train, s.eval, s.rejected
            ),
        ),
        ("languages", counts(s.languages.iter())),
    ];
    if !s.speakers.is_empty() {
        lines.push(("speakers", counts(s.speakers.iter())));
    }
    let mel = &prepared.settings.mel;
    let longest = mel.rate.seconds(tandem_units::Samples((s.longest_frames - 1) * mel.hop.0));
    lines.push(("sound", format!("{} in all, {longest} the longest", s.sound)));
    let kind = if s.features { "text and mel frames" } else { "text and lengths" };
    lines.push(("cache", format!("{} ({kind})", s.cache.display())));
    if let Some(damage) = &s.damage {
        lines.push(("repaired", damage.clone()));
    }
    lines.push(("rebuilt", rebuilt(s)));
    for (name, value) in lines {
        out.line(&format!("{:<10} {value}", name.bold()))?;
    }
    print_rejected(prepared, out)
}

fn rebuilt(s: &Summary) -> String {
    let mut text = format!("{} of {} rows", s.rebuilt, s.rows);
    if s.recovered > 0 {
        text.push_str(&format!(", {} taken over from earlier work", s.recovered));
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

/// The rows that made preparing fail, above the error.
fn show_rejected(rejected: &[RejectedRow], out: &mut Printer) {
    if !rejected.is_empty() {
        out.note(&format!("{}\n", table_of(rejected)));
    }
}

fn table_of(rejected: &[RejectedRow]) -> String {
    let mut table = Printer::table(&["place", "id", "reason", "fix"]);
    for row in rejected.iter().take(SHOWN) {
        let place = format!("{}:{}", row.manifest, row.line);
        table.add_row([&place, &row.id, &row.message, &row.fix]);
    }
    table.trim_fmt()
}

fn print_rejected(prepared: &Prepared, out: &mut Printer) -> Result<()> {
    let rejected = &prepared.rejected;
    if rejected.is_empty() {
        return Ok(());
    }
    out.line("")?;
    out.line(&table_of(rejected))?;
    if let Some(list) = &prepared.summary.rejected_list {
        let more = match rejected.len().checked_sub(SHOWN) {
            Some(more) if more > 0 => format!("{more} more; "),
            _ => String::new(),
        };
        out.line(&format!("{more}all rejected rows are listed in {}", list.display()))?;
    }
    Ok(())
}
