//! `tandem demo`: the whole path on the built-in corpus, for a first look.

use crate::commands::{analyze, prepare};
use crate::exit::ExitStatus;
use crate::printer::Printer;
use clap::Parser;
use owo_colors::OwoColorize;

/// What was typed.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  tandem demo\n\nPrepares the corpus, then measures what loading it costs.")]
pub struct Args {}

#[derive(Parser)]
struct PrepareDemo {
    #[command(flatten)]
    args: prepare::Args,
}

#[derive(Parser)]
struct AnalyzeDemo {
    #[command(flatten)]
    args: analyze::Args,
}

/// Prepares and analyses the built-in corpus with the commands a user would type.
pub fn run(_args: Args, out: &mut Printer) -> anyhow::Result<ExitStatus> {
    out.line(&"$ tandem prepare demo".dimmed().to_string())?;
    let status = prepare::run(PrepareDemo::parse_from(["prepare", "demo"]).args, out)?;
    if status != ExitStatus::Done {
        return Ok(status);
    }
    out.line("")?;
    out.line(&"$ tandem analyze demo".dimmed().to_string())?;
    analyze::run(AnalyzeDemo::parse_from(["analyze", "demo"]).args, out)?;
    out.line("")?;
    out.line("next: `tandem prepare YOUR_CORPUS`, `tandem text \"...\"`, `tandem --help`")?;
    Ok(ExitStatus::Done)
}
