//! `tandem profile`: profiles a few training steps in several ways, and names the bottleneck.

use crate::exit::ExitStatus;
use crate::failure::{Context, Failure, Result};
use crate::interrupt::cancel_on_signals;
use crate::page_args::PageArgs;
use crate::printer::Printer;
use crate::profile_text;
use crate::profiling::{ProfilingArgs, Session};
use std::path::{Path, PathBuf};
use tandem_disk::replace_file::replace_file;
use tandem_insight::profile::{ProfileAnswer, ProfileRules};
use tandem_page::profile_page::profile_page;

const EXAMPLES: &str = "\
Examples:
  tandem profile                                        the built-in demo corpus
  tandem profile --train-data my-corpus --batch-size 16 --num-steps 100
  tandem profile --train-data my-corpus --data-gpu 0 --model-gpu 1 --apply
  tandem profile --record profiles/first && tandem plan profiles/first
  tandem profile --html profile.html --lang fa

The trainer runs with these settings, with cached features, with batches from memory (model only) and \
without a model (data only); checkpoints are not saved. Exit code 1: the data pipeline is the \
bottleneck.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pub(crate) profiling: ProfilingArgs,
    // The flags after it are in the same part of the help.
    #[command(flatten, next_help_heading = "Output")]
    page: PageArgs,
    /// Try every recommendation, and print its measured gain next to the predicted one
    #[arg(long)]
    apply: bool,
    /// Save the records of all runs, and the result as `profile.json`, in this directory
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// File name of the result in a directory of records.
pub const ANSWER: &str = "profile.json";

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    args.page.check()?;
    if let Some(directory) = &args.record {
        refuse_to_overwrite(directory)?;
    }
    let cancel = cancel_on_signals()?;
    let session = Session::open(&args.profiling, &cancel, out)?;
    let mut answer = session.profile(args.record.as_deref(), &ProfileRules::default(), out)?;
    if args.apply {
        session.apply(&mut answer, out)?;
    }
    if let Some(directory) = &args.record {
        save(&answer, directory, out)?;
    }
    args.page.write(out, |lang| Ok(profile_page(&answer, lang)))?;
    match args.json {
        true => out.json(&answer)?,
        false => profile_text::print(&answer, out)?,
    }
    Ok(match answer.verdict.is_held_back() {
        true => ExitStatus::Negative,
        false => ExitStatus::Done,
    })
}

/// Checked before the first run, not after the last.
fn refuse_to_overwrite(directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory)
        .with_context(|| format!("cannot create `{}`", directory.display()))?;
    if directory.join(ANSWER).exists() {
        let fact = format!("`{}` already contains a profile", directory.display());
        return Err(crate::failure::Advised::new(fact, "name another directory").into());
    }
    Ok(())
}

fn save(answer: &ProfileAnswer, directory: &Path, out: &mut Printer) -> Result<()> {
    let path = directory.join(ANSWER);
    let text = serde_json::to_string_pretty(answer).map_err(Failure::foreign)?;
    replace_file(&path, text.as_bytes())
        .with_context(|| format!("cannot write `{}`", path.display()))?;
    out.note(&format!(
        "saved: {}; `tandem plan {}` predicts from it",
        path.display(),
        directory.display()
    ));
    Ok(())
}
