//! `tandem bench learn`: whether training learns the text, on the demo corpus.
//!
//! Trains and evaluates with the commands of a user, each in its own process: once with the corpus as
//! it is, once with the texts of other recordings (the control), and with `--only lag` for several ages
//! of the aligner's weights. Distortion after warping is below that of the mean frame even with a wrong
//! text, so the control decides.

mod overfit; // overfits one batch
mod shuffled; // the control's corpus
mod voices; // whether the reference speaker is followed

use super::target::{self, Limit, Target};
use crate::demo_files;
use crate::exit::ExitStatus;
use crate::failure::{Context, Failure, Result};
use crate::printer::Printer;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Steps of each training run
    #[arg(long, value_name = "N", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    steps: u64,
    /// Utterances of a batch
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    batch_size: u32,
    /// Measure only these
    #[arg(long, value_name = "PART", value_delimiter = ',', value_enum)]
    only: Vec<Part>,
    /// Save the runs in this new directory [default: they are removed]
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Overfit one batch
    Overfit,
    /// Held-out distortion against the mean frame and against shuffled texts; timing; voices
    Text,
    /// The same run with aligner snapshots every 1, 10 and 50 steps
    Lag,
}

const EXAMPLES: &str = "\
Examples:
  tandem bench learn                     overfit and text: about 10 minutes on two cores
  tandem bench learn --only overfit
  tandem bench learn --only lag --json   cost of older aligner weights

Exit code 1: a target was missed.";

/// Distortion with older aligner weights, relative to the newest.
const LAG_MAY_COST: f64 = 1.05;

/// The fields of `tandem evaluate --json` that are needed.
#[derive(Deserialize)]
struct Judged {
    all: Means,
    timing: Option<Timing>,
}

#[derive(Deserialize)]
struct Means {
    distortion: f64,
    gain: f64,
    duration_error: f64,
}

#[derive(Deserialize)]
struct Timing {
    median_frames: f64,
    p90_frames: f64,
    words: usize,
}

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    let wanted = |part| {
        if args.only.is_empty() { part != Part::Lag } else { args.only.contains(&part) }
    };
    let folder = tempfile::tempdir().context("cannot make a directory for the runs")?;
    let place = match &args.keep {
        Some(keep) => {
            std::fs::create_dir(keep)
                .with_context(|| format!("cannot make `{}`", keep.display()))?;
            keep.clone()
        }
        None => folder.path().to_path_buf(),
    };
    let corpus = demo_files::corpus(Path::new("demo"))?;
    let bench = Bench { args: &args, place, corpus };
    let mut targets = Vec::new();
    if wanted(Part::Overfit) {
        targets.extend(overfit::measure(&bench.corpus, args.batch_size as usize, out)?);
    }
    if wanted(Part::Text) {
        targets.extend(bench.text(out)?);
    }
    if wanted(Part::Lag) {
        targets.extend(bench.lag(out)?);
    }
    if args.json {
        out.json(&targets)?;
    } else {
        target::print(&targets, out)?;
    }
    Ok(target::status(&targets))
}

struct Bench<'a> {
    args: &'a Args,
    place: PathBuf,
    corpus: PathBuf,
}

impl Bench<'_> {
    /// The corpus as it is, and the control.
    fn text(&self, out: &mut Printer) -> Result<Vec<Target>> {
        let shuffled = self.place.join("shuffled-corpus");
        shuffled::write(&self.corpus, &shuffled).context("cannot write the control's corpus")?;
        let run = self.train(&self.corpus, "texts", &[], out)?;
        let control = self.train(&shuffled, "shuffled", &[], out)?;
        let (real, wrong) = (self.judge(&run)?, self.judge(&control)?);
        let steps = self.args.steps;
        let below = 100.0 * (1.0 - real.all.distortion / wrong.all.distortion);
        let mut targets = vec![
            Target::new(
                "held out, below the mean frame",
                100.0 * real.all.gain,
                "%",
                Limit::AtLeast(25.0),
                format!("{:.2} dB after {steps} steps", real.all.distortion),
            ),
            Target::new(
                "held out, below shuffled texts",
                below,
                "%",
                Limit::AtLeast(12.0),
                format!("{:.2} dB against {:.2} dB", real.all.distortion, wrong.all.distortion),
            ),
            Target::note(
                "held out, length off",
                100.0 * real.all.duration_error,
                "%",
                "mean without sign".into(),
            ),
        ];
        targets.extend(real.timing.map(|timing| {
            let how = format!("{} words, 9 of 10 within {:.1}", timing.words, timing.p90_frames);
            Target::note("word starts off, median", timing.median_frames, "frames", how)
        }));
        targets.extend(voices::measure(&run, &self.corpus)?);
        Ok(targets)
    }

    /// Cost of older aligner weights, next to the effect of another seed.
    fn lag(&self, out: &mut Printer) -> Result<Vec<Target>> {
        let mut targets: Vec<Target> = Vec::new();
        for (every, seed) in [("1", "0"), ("1", "1"), ("10", "0"), ("50", "0")] {
            let flags = ["--align-every", every, "--align-lag", every, "--seed", seed];
            let run =
                self.train(&self.corpus, &format!("every-{every}-seed-{seed}"), &flags, out)?;
            let judged = self.judge(&run)?;
            let timing = judged.timing.map_or(String::new(), |timing| {
                format!("; word starts {:.1} frames off", timing.median_frames)
            });
            let mut name = format!("held out, aligned by weights {every} steps apart");
            if seed != "0" {
                name += ", another seed";
            }
            let how = format!("{:.0} % below the mean frame{timing}", 100.0 * judged.all.gain);
            let distortion = judged.all.distortion;
            targets.push(match targets.first() {
                Some(freshest) if every != "1" => {
                    let most = Limit::AtMost(LAG_MAY_COST * freshest.measured);
                    Target::new(&name, distortion, "dB", most, how)
                }
                _ => Target::note(&name, distortion, "dB", how),
            });
        }
        Ok(targets)
    }

    fn train(
        &self,
        corpus: &Path,
        name: &str,
        flags: &[&str],
        out: &mut Printer,
    ) -> Result<PathBuf> {
        let run = self.place.join(name);
        let (steps, batch) = (self.args.steps.to_string(), self.args.batch_size.to_string());
        out.note(&format!("training `{name}`: {steps} steps"));
        let mut command = tandem()?;
        command
            .args(["train", "--cache-dataset", "--batch-size", &batch, "--max-steps", &steps])
            .args(["--checkpoint-every", &steps, "--sample-every", &steps])
            .args(flags)
            .arg("--train-data")
            .arg(corpus)
            .arg("--checkpoint-dir")
            .arg(&run)
            .stdout(Stdio::null());
        match command.status().context("cannot start a training run")? {
            status if status.success() => Ok(run),
            status => Err(Failure::bare(format!("the training run `{name}` failed: {status}"))),
        }
    }

    fn judge(&self, run: &Path) -> Result<Judged> {
        let mut command = tandem()?;
        command.args(["evaluate", "--json", "--checkpoint"]).arg(run);
        command.arg("--corpus").arg(&self.corpus).stderr(Stdio::inherit());
        let answer = command.output().context("cannot start an evaluation")?;
        serde_json::from_slice(&answer.stdout)
            .map_err(Failure::foreign)
            .with_context(|| format!("`tandem evaluate` ended with {}", answer.status))
    }
}

/// A command that starts this program.
fn tandem() -> Result<Command> {
    Ok(Command::new(std::env::current_exe().context("cannot find this program")?))
}
