//! `tandem batches`: the batches of an epoch, in training order.

use crate::corpus_args::{BatchArgs, CorpusArgs, CorpusSettings};
use crate::data_report::prepare_corpus;
use crate::exit::ExitStatus;
use crate::failure::{Context, Result};
use crate::interrupt::cancel_on_signals;
use crate::memory_check::fit_batches;
use crate::printer::Printer;
use crate::setting_flags::{OfBatches, SettingFlags};
use serde::Serialize;
use std::path::PathBuf;
use tandem_data::batch::{BatchShape, Batches, EpochPlan};
use tandem_data::corpus::Split;
use tandem_train::feed::Rows;
use tandem_train::{FeedSettings, Prepared};
use tandem_units::Epoch;

const EXAMPLES: &str = "\
Examples:
  tandem batches demo
  tandem batches corpora/ljspeech --epoch 3 --batch-size 24
  tandem batches corpora/ljspeech --from 120 --json      the batches of a resumed run

The order depends only on seed, epoch and lengths, not on the number of workers.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Corpus directory, a manifest in one, or `demo`
    pub(crate) corpus: PathBuf,
    /// Epoch to show, counted from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    epoch: u32,
    /// First batch to show
    #[arg(long, value_name = "BATCH", default_value_t = 0)]
    from: usize,
    /// Show the held-out rows
    #[arg(long)]
    eval: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten, next_help_heading = "Corpus")]
    pub(crate) settings: CorpusArgs,
    #[command(flatten)]
    pub(crate) batch: SettingFlags<OfBatches>,
}

#[derive(Serialize)]
struct Plan<'a> {
    epoch: u32,
    seed: u64,
    batches: Vec<Batch<'a>>,
    utterances: usize,
    shapes: usize,
    padding_share: f64,
}

#[derive(Serialize)]
struct Batch<'a> {
    batch: usize,
    shape: BatchShape,
    ids: Vec<&'a str>,
}

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    let settings = args.settings.resolve(&args.corpus, out)?;
    let batch = BatchArgs { settings: args.batch, ..BatchArgs::default() }.resolve(&settings)?;
    let cancel = cancel_on_signals()?;
    let CorpusSettings { corpus, data, prepare, .. } = &settings;
    let prepared = prepare_corpus(corpus, data, prepare, &cancel, out)
        .with_context(|| format!("cannot prepare `{}`", corpus.display()))?;
    let split = if args.eval { Split::Eval } else { Split::Train };
    let feed = FeedSettings { split: Some(split), ..FeedSettings::new(batch.batch.clone()) };
    let batch = fit_batches(batch, &prepared, feed, out)?.batch;
    let rows = Rows::of(&prepared, split);
    let batches = Batches::new(rows.lengths(), &batch).context("cannot make batches")?;
    let plan = batches.epoch(Epoch(args.epoch));
    let named = name_rows(&prepared, &rows, &plan, args.from);
    let plan = Plan {
        epoch: args.epoch,
        seed: batch.seed.0,
        utterances: named.iter().map(|batch| batch.ids.len()).sum(),
        batches: named,
        shapes: batches.shapes().count(),
        padding_share: plan.padding().waste(),
    };
    if args.json {
        out.json(&plan)?;
    } else {
        print(&plan, out)?;
    }
    Ok(ExitStatus::Done)
}

fn name_rows<'a>(
    prepared: &'a Prepared,
    rows: &Rows,
    plan: &EpochPlan,
    from: usize,
) -> Vec<Batch<'a>> {
    let id = |row: &u32| {
        let number = rows.cache_row[*row as usize] as usize;
        prepared.cache.row(number).map_or("?", |row| row.id)
    };
    let batches = plan.batches_from(from).enumerate();
    batches
        .map(|(place, planned)| Batch {
            batch: from + place,
            shape: planned.shape,
            ids: planned.rows.iter().map(id).collect(),
        })
        .collect()
}

fn print(plan: &Plan<'_>, out: &mut Printer) -> Result<()> {
    for batch in &plan.batches {
        let BatchShape { rows, frames, symbols } = batch.shape;
        out.line(&format!(
            "{:>5}  {:>2} of {rows} rows x {frames} frames x {symbols} symbols  {}",
            batch.batch,
            batch.ids.len(),
            batch.ids.join(" ")
        ))?;
    }
    out.note(&format!(
        "epoch {}, seed {}: {} utterances in {} batches of {} shapes, {:.1} % padding",
        plan.epoch,
        plan.seed,
        plan.utterances,
        plan.batches.len(),
        plan.shapes,
        100.0 * plan.padding_share
    ));
    Ok(())
}
