//! `tandem analyze --alignments RUN`: finds transcripts that do not fit their recordings.
//!
//! In: a run directory or checkpoint, which names its corpus and settings. Out: rows, the most
//! suspicious first.

use super::review;
use crate::corpus_args::{CorpusArgs, CorpusSettings};
use crate::data_report::prepare_corpus;
use crate::exit::ExitStatus;
use crate::failure::{Advised, Context, Failure, Result};
use crate::interrupt::cancel_on_signals;
use crate::page_args::PageArgs;
use crate::printer::Printer;
use crate::speaking_args::warn_of_substitute;
use owo_colors::OwoColorize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tandem_data::corpus::Split;
use tandem_device::backend::{self, guarded};
use tandem_device::inventory::Inventory;
use tandem_device::placement::{DeviceSettings, Placement};
use tandem_eval::transcripts::{RankOptions, Ranked, Ranking, rank_transcripts};
use tandem_model::checkpoint::{Parts, find_usable};
use tandem_model::trained_voice::TrainedVoice;
use tandem_train::file_config::FileConfig;
use tandem_train::run::state::CONFIG;

/// Flags of `--alignments`.
#[derive(Clone, Debug, clap::Args)]
pub struct AlignmentArgs {
    /// Rank transcripts by how badly they fit their recordings, aligned by this run directory or
    /// checkpoint
    #[arg(
        long,
        value_name = "RUN",
        // Nothing is timed then.
        conflicts_with_all = ["step_time", "sample", "batches", "model_start_delay", "adapt", "record"]
    )]
    pub alignments: Option<PathBuf>,
    /// Rank held-out rows instead of training rows
    #[arg(long, requires = "alignments")]
    held_out: bool,
    /// Rank at most so many rows, spread over the corpus
    #[arg(
        long,
        value_name = "N",
        requires = "alignments",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    limit: Option<u32>,
    /// Rows to show, or to have on the page; --json has all
    #[arg(long, value_name = "N", default_value_t = 20, requires = "alignments")]
    top: usize,
}

pub struct Asked<'a> {
    /// The run or checkpoint.
    pub run: &'a Path,
    /// The corpus, if it is not that of the run.
    pub corpus: Option<&'a Path>,
    pub json: bool,
    pub page: &'a PageArgs,
}

/// Aligns and prints the ranking. Exit code 1: a row should be checked.
pub fn run(
    asked: Asked<'_>,
    args: &AlignmentArgs,
    corpus: &CorpusArgs,
    out: &mut Printer,
) -> Result<ExitStatus> {
    let settings = settings_of(&asked, corpus)?;
    let placed = Placement::decide(&DeviceSettings::default(), &Inventory::detect())?.model.id;
    let device = backend::open(placed)?;
    let trained = guarded("reading the voice", || TrainedVoice::read(asked.run, &device))?
        .with_context(|| format!("cannot align with `{}`", asked.run.display()))?;
    warn_of_substitute(&trained, out);
    let cancel = cancel_on_signals()?;
    let CorpusSettings { corpus, data, prepare, .. } = &settings;
    let prepared = prepare_corpus(corpus, data, prepare, &cancel, out)
        .with_context(|| format!("cannot prepare `{}`", corpus.display()))?;
    let options = RankOptions {
        split: if args.held_out { Split::Eval } else { Split::Train },
        limit: args.limit.map(|limit| limit as usize),
    };
    let mut progress = None;
    let mut watch = |done: usize, all: usize| {
        let shown = progress.get_or_insert_with(|| out.progress("listening", all as u64));
        shown.at(done as u64);
    };
    let prepared = Arc::new(prepared);
    let ranking = rank_transcripts(&trained, &device, &prepared, &options, &mut watch, &cancel);
    if let Some(shown) = progress {
        shown.done();
    }
    let ranking = ranking?;
    if asked.json {
        out.json(&ranking)?;
    } else {
        print(&ranking, args.top, out)?;
    }
    asked.page.write(out, |lang| Ok(review::page(&ranking, &prepared, args.top, lang)?))?;
    let fine = ranking.suspicious == 0 && ranking.findings.is_empty();
    Ok(if fine { ExitStatus::Done } else { ExitStatus::Negative })
}

/// Corpus and settings of the run. The text settings are always those of the run: with other symbols
/// the alignments would be meaningless.
fn settings_of(asked: &Asked<'_>, corpus: &CorpusArgs) -> Result<CorpusSettings> {
    let file = config_of_run(asked.run)?;
    let of_run = file.data_settings();
    let root = match (asked.corpus, &file.train_data) {
        (Some(named), _) => named.to_path_buf(),
        (None, Some(own)) => own.clone(),
        (None, None) => {
            let fact =
                format!("the run `{}` does not say what it was trained on", asked.run.display());
            let advice = "name its corpus: `tandem analyze CORPUS --alignments RUN`";
            return Err(Advised::new(fact, advice).into());
        }
    };
    let settings = corpus.resolve_over(file, &root)?;
    if (&settings.data.text, &settings.data.mel) != (&of_run.text, &of_run.mel) {
        let fact = "text would be read in another way than this voice learned it";
        let advice = "remove flags that change how text is read: the settings of the run are used";
        return Err(Advised::new(fact, advice).into());
    }
    Ok(settings)
}

/// The settings that a voice was trained with.
pub fn config_of_run(run: &Path) -> Result<FileConfig> {
    let unread = || format!("cannot read the run `{}`", run.display());
    // Every checkpoint of a run has the same settings.
    let loaded = find_usable(run, Parts::Only(&[])).with_context(unread)?;
    let document: serde_json::Value = loaded.contents.document(CONFIG).with_context(unread)?;
    serde_json::from_value(document["config"].clone())
        .map_err(Failure::foreign)
        .context("its settings are of another version")
        .with_context(unread)
}

fn print(found: &Ranking, top: usize, out: &mut Printer) -> Result<()> {
    let mut table = Printer::table(&COLUMNS);
    for (number, row) in found.rows.iter().take(top).enumerate() {
        table.add_row(cells(number + 1, row));
    }
    out.line(&table.trim_fmt())?;
    out.line("")?;
    for row in found.rows.iter().take(top.min(found.suspicious)) {
        out.line(&format!("{} {}: {}", row.id.bold(), place(row), row.reasons.join("; ")))?;
        out.line(&format!("  {}", row.text))?;
    }
    for finding in &found.findings {
        out.line(&format!("{:<8} {}", "change".yellow().bold(), finding.fact))?;
        out.line(&format!("{:<8} {}", "", finding.advice))?;
    }
    for row in &found.unranked {
        out.note(&format!("{} `{}`: {}", "not ranked".yellow(), row.id, row.why));
    }
    out.note(&format!(
        "{} of {} rows should be checked, in {}; step {} of `{}`",
        found.suspicious,
        found.rows.len(),
        found.took,
        found.step,
        found.checkpoint.display()
    ));
    Ok(())
}

const COLUMNS: [&str; 9] =
    ["", "row", "suspicion", "margin", "lead", "misfit", "coverage", "evenness", "entropy"];

fn cells(number: usize, row: &Ranked) -> [String; 9] {
    let share = |value: f64| format!("{:.0} %", 100.0 * value);
    [
        number.to_string(),
        row.id.clone(),
        format!("{:.2}", row.suspicion),
        row.margin.map_or("-".into(), share),
        row.lead.map_or("-".into(), share),
        format!("{:.2}", row.misfit),
        share(row.health.coverage),
        format!("{:.2}", row.health.diagonality),
        row.health.entropy.map_or("-".into(), |entropy| format!("{entropy:.2}")),
    ]
}

fn place(row: &Ranked) -> String {
    format!("({}, line {})", row.manifest, row.line)
}
