//! `tandem attach-vocoder`: gives a voice the neural vocoder of a `tandem train-vocoder` run.

use crate::demo_files;
use crate::exit::ExitStatus;
use crate::failure::{Context, Result};
use crate::printer::Printer;
use serde::Serialize;
use std::path::PathBuf;
use tandem_model::vocoder::neural::trained::attach;

const EXAMPLES: &str = "\
Examples:
  tandem attach-vocoder --checkpoint run --vocoder vocoder
  tandem attach-vocoder --checkpoint run --vocoder vocoder/step-00003000 --json
  tandem attach-vocoder --checkpoint run --vocoder demo     for the speakers of the built-in corpora

The vocoder is copied into the voice's run directory. From then on `synth`, `evaluate` and the samples of a training \
run use it. Another vocoder replaces it; `--vocoder griffin-lim` does without it.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The voice: a run directory of `tandem train`, or a checkpoint in one
    #[arg(long, value_name = "DIR")]
    checkpoint: PathBuf,
    /// The vocoder: a run directory of `tandem train-vocoder` (its best checkpoint is used), a checkpoint, or `demo`
    #[arg(long, value_name = "DIR")]
    vocoder: PathBuf,
    /// Print a summary as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Summary {
    /// The copy.
    path: PathBuf,
    /// The checkpoint that was copied.
    from: PathBuf,
    size: &'static str,
    bytes: u64,
}

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    let vocoder = demo_files::vocoder(&args.vocoder)?;
    let attached = attach(&args.checkpoint, &vocoder).with_context(|| {
        let (voice, vocoder) = (args.checkpoint.display(), args.vocoder.display());
        format!("cannot attach the vocoder `{vocoder}` to the voice `{voice}`")
    })?;
    let summary = Summary {
        path: attached.saved.path,
        from: attached.from,
        size: attached.document.size.name(),
        bytes: attached.saved.bytes.0,
    };
    if args.json {
        out.json(&summary)?;
    } else {
        out.line(&format!(
            "{}: the {} vocoder of {} ({})",
            summary.path.display(),
            summary.size,
            summary.from.display(),
            attached.saved.bytes
        ))?;
    }
    for error in attached.saved.tidied.failed {
        out.note(&format!("an old vocoder could not be removed: {error}"));
    }
    Ok(ExitStatus::Done)
}
