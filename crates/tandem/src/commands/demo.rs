//! `tandem demo`: prepares the built-in corpus, trains on it, adds the built-in vocoder, evaluates and synthesizes.

use crate::commands::{attach_vocoder, evaluate, prepare, synth, train};
use crate::demo_files::{DEMO, DEMO_HUMAN};
use crate::exit::ExitStatus;
use crate::failure::Result;
use crate::printer::Printer;
use clap::Parser;
use owo_colors::OwoColorize;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Run directory, which also gets the synthesized sentences
    #[arg(long, value_name = "DIR", default_value = "tandem-demo")]
    out: PathBuf,
    /// Training steps
    #[arg(long, value_name = "N", default_value_t = 5000)]
    steps: u64,
    /// Seconds without any progress after which a command ends with an error; 0: never [default: 60]
    #[arg(long, value_name = "SECONDS")]
    stall_timeout: Option<u64>,
}

const EXAMPLES: &str = "\
Example:
  tandem demo

Prepares the built-in corpus `demo-human` (English of a human speaker, synthetic Persian), trains the tiny voice on it for \
some minutes on the CPU, reports the bottleneck, and synthesizes one English and one Persian sentence. The vocoder was \
trained before, on the same recordings. Ctrl-C is safe: run the same command again to continue.";

/// Sentences that are not in the corpus.
const SENTENCES: [(&str, &str, &str); 2] = [
    ("en", "The evening train was late, but nobody minded.", "english.wav"),
    ("fa", "امروز هوا خوب است و ما به باغ می‌رویم.", "persian.wav"),
];

#[derive(Parser)]
struct PrepareDemo {
    #[command(flatten)]
    args: prepare::Args,
}

#[derive(Parser)]
struct TrainDemo {
    #[command(flatten)]
    args: train::Args,
}

#[derive(Parser)]
struct AttachDemo {
    #[command(flatten)]
    args: attach_vocoder::Args,
}

#[derive(Parser)]
struct EvaluateDemo {
    #[command(flatten)]
    args: evaluate::Args,
}

#[derive(Parser)]
struct SynthDemo {
    #[command(flatten)]
    args: synth::Args,
}

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    let directory = args.out.display().to_string();
    let limit = args.stall_timeout.map(|seconds| seconds.to_string());
    let more: Vec<&str> = limit.iter().flat_map(|limit| ["--stall-timeout", limit]).collect();
    let line = [&["prepare", DEMO_HUMAN, "--cache-dataset"][..], &more].concat();
    let prepared: PrepareDemo = typed(&line, out)?;
    let mut status = prepare::run(prepared.args, out)?;
    if status == ExitStatus::Done {
        status = train_demo(&args.out, args.steps, &more, out)?;
    }
    if status != ExitStatus::Done {
        return Ok(status);
    }
    let attached: AttachDemo =
        typed(&["attach-vocoder", "--checkpoint", &directory, "--vocoder", DEMO], out)?;
    attach_vocoder::run(attached.args, out)?;
    let evaluated: EvaluateDemo =
        typed(&["evaluate", "--checkpoint", &directory, "--corpus", DEMO_HUMAN], out)?;
    evaluate::run(evaluated.args, out)?;
    for (language, text, file) in SENTENCES {
        let file = args.out.join(file).display().to_string();
        let line = [
            "synth",
            "--checkpoint",
            &directory,
            "--language",
            language,
            "--text",
            text,
            "-o",
            &file,
        ];
        let spoken: SynthDemo = typed(&line, out)?;
        synth::run(spoken.args, out)?;
    }
    out.line("")?;
    out.line("The demo is finished. Listen to:")?;
    for (language, text, file) in SENTENCES {
        out.line(&format!("  {}   ({language}) {text}", args.out.join(file).display()))?;
    }
    out.line("Next:")?;
    out.line(&format!(
        "  tandem serve --checkpoint {directory}            type and listen in a browser"
    ))?;
    out.line(&format!("  tandem watch {directory}                         losses, samples and alignments of the run"))?;
    out.line("  tandem train --train-data YOUR_CORPUS --checkpoint-dir runs/first    a voice of your recordings")?;
    Ok(ExitStatus::Done)
}

fn train_demo(
    directory: &Path,
    steps: u64,
    more: &[&str],
    out: &mut Printer,
) -> Result<ExitStatus> {
    let (place, steps) = (directory.display().to_string(), steps.to_string());
    let mut line = vec![
        "train",
        "--train-data",
        DEMO_HUMAN,
        "--cache-dataset",
        "--batch-size",
        "8",
        "--max-steps",
        &steps,
        "--checkpoint-dir",
        &place,
        "--validate-every",
        "200",
        "--sample-every",
        "1000",
        "--checkpoint-every",
        "200",
    ];
    line.extend(more);
    let begun = tandem_model::checkpoint::load_newest(
        directory,
        tandem_model::checkpoint::Parts::Only(&[]),
    );
    if begun.is_ok_and(|found| found.is_some()) {
        line.push("--resume");
    }
    let parsed: TrainDemo = typed(&line, out)?;
    train::run(parsed.args, out)
}

/// Prints the command line and parses it.
fn typed<P: Parser>(line: &[&str], out: &mut Printer) -> Result<P> {
    let quoted: Vec<String> = line
        .iter()
        .map(|word| if word.contains(' ') { format!("\"{word}\"") } else { (*word).to_string() })
        .collect();
    out.line("")?;
    out.line(&format!("$ tandem {}", quoted.join(" ")).dimmed().to_string())?;
    Ok(P::parse_from(line))
}
