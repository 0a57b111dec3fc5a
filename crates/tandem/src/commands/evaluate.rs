//! `tandem evaluate`: compares synthesized speech with the recordings of a corpus.

use crate::config;
use crate::demo_files;
use crate::exit::ExitStatus;
use crate::failure::{Context, Result};
use crate::interrupt::cancel_on_signals;
use crate::printer::Printer;
use crate::speaking_args::{SamplingArgs, VoiceArgs, warn_of_substitute};
use owo_colors::OwoColorize;
use std::path::{Path, PathBuf};
use tandem_data::corpus::{Corpus, Split};
use tandem_eval::evaluate::in_words::{HeldOut, in_words};
use tandem_eval::evaluate::{EvaluateOptions, Evaluation, evaluate};
use tandem_model::metrics::Tally;
use tandem_page::RunView;
use tandem_telemetry::run_parts::main_part;

const EXAMPLES: &str = "\
Examples:
  tandem evaluate --checkpoint run --corpus demo
  tandem evaluate --checkpoint run --corpus corpora/ljspeech --limit 50
  tandem evaluate --checkpoint run --corpus corpora/ljspeech --json > scores.json

Columns: distortion is the mel-cepstral distortion in dB after dynamic time warping, lower is better; \
baseline is that of the mean frame; below is how much lower than the baseline the voice is; length is the \
error of the speech length, and its direction; coverage is the share of symbols with a plausible number of \
frames, 100 % is best; entropy is the uncertainty of the symbol of a frame, 0 is best; voice is the \
distance between the speaker embeddings of speech and recording, 0 is best; pitch is the pitch error in \
semitones; detail is the change from frame to frame and from band to band, as shares of that of the \
recordings: less than 100 % is blurred; level is the level of the speech above or below the recordings'.

The verdict at the end says in words which of these are far off; docs/training.md has its thresholds. \
Exit code 1: the voice is not better than the baseline.

The bounds of a healthy alignment, and the threshold from which a row's text is suspicious, were set on the demo corpus: \
six synthetic speakers in two languages. For other corpora they are a hint.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    voice: VoiceArgs,
    /// Corpus directory, a manifest in one, or `demo`
    #[arg(long, value_name = "CORPUS")]
    corpus: PathBuf,
    /// Configuration file in TOML or YAML, for how the corpus is read
    #[arg(long, value_name = "FILE", env = "TANDEM_CONFIG")]
    config: Option<PathBuf>,
    /// Evaluate training rows instead of held-out rows
    #[arg(long)]
    train: bool,
    /// Evaluate at most so many rows, spread over the corpus
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    #[command(flatten)]
    sampling: SamplingArgs,
    /// Print the results of every utterance as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    let file = config::read(args.config.as_deref(), out)?;
    let root = demo_files::corpus(&args.corpus)?;
    let corpus = Corpus::read(&root, &file.corpus)
        .with_context(|| format!("cannot evaluate on `{}`", root.display()))?;
    let mut synthesizer = args.voice.open(&args.sampling)?;
    warn_of_substitute(synthesizer.trained(), out);
    let options = EvaluateOptions {
        split: if args.train { Split::Train } else { Split::Eval },
        limit: args.limit.map(|limit| limit as usize),
        sampling: args.sampling.sampling(),
    };
    let cancel = cancel_on_signals()?;
    let mut progress = None;
    let mut watch = |done: usize, all: usize| {
        let shown = progress.get_or_insert_with(|| out.progress("judging", all as u64));
        shown.at(done as u64);
    };
    let evaluation = evaluate(&mut synthesizer, &corpus, &options, &mut watch, &cancel);
    if let Some(shown) = progress {
        shown.done();
    }
    let evaluation = evaluation
        .with_context(|| format!("cannot evaluate `{}`", args.voice.checkpoint.display()))?;
    if args.json {
        out.json(&evaluation)?;
    } else {
        print(&evaluation, out)?;
        let words = in_words(&evaluation.all, &held_out(&evaluation.checkpoint));
        out.line(&format!("{:<8} {words}", "verdict".bold()))?;
    }
    Ok(if evaluation.all.gain > 0.0 { ExitStatus::Done } else { ExitStatus::Negative })
}

/// Held-out losses of the run that the checkpoint belongs to; empty where its record is not beside it.
fn held_out(checkpoint: &Path) -> HeldOut {
    let run = checkpoint.parent().filter(|run| main_part(run).is_ok());
    let view = run.and_then(|run| RunView::read(run).ok());
    let series = view.as_ref().and_then(|view| {
        view.held_out.iter().find(|(name, _)| name == "total").map(|(_, series)| series)
    });
    HeldOut(series.map_or_else(Vec::new, |series| {
        series.points().into_iter().map(|(step, loss)| (step as u64, loss)).collect()
    }))
}

fn print(found: &Evaluation, out: &mut Printer) -> Result<()> {
    let mut table = Printer::table(&COLUMNS);
    for (language, tally) in &found.languages {
        table.add_row(row(&format!("language {language}"), tally));
    }
    for (speaker, tally) in &found.speakers {
        table.add_row(row(&format!("speaker {speaker}"), tally));
    }
    table.add_row(row("all", &found.all));
    out.line(&table.trim_fmt())?;
    if let Some(timing) = &found.timing {
        out.line(&format!(
            "word starts are {:.1} frames off in the alignments of the recordings (median of {}; 9 of 10 within {:.1})",
            timing.median_frames, timing.words, timing.p90_frames
        ))?;
    }
    for finding in &found.findings {
        out.line(&format!("{:<8} {}", "change".yellow().bold(), finding.fact))?;
        out.line(&format!("{:<8} {}", "", finding.advice))?;
    }
    for row in &found.skipped {
        out.note(&format!("{} `{}`: {}", "not evaluated".yellow(), row.id, row.why));
    }
    let rows = match found.split {
        Split::Train => "training rows",
        Split::Eval => "held-out rows",
    };
    out.note(&format!(
        "{} {rows}, {} of speech in {}; step {} of `{}`",
        found.all.utterances,
        found.spoken,
        found.took,
        found.step,
        found.checkpoint.display()
    ));
    Ok(())
}

const COLUMNS: [&str; 12] = [
    "",
    "rows",
    "distortion",
    "baseline",
    "below",
    "length",
    "coverage",
    "entropy",
    "voice",
    "pitch",
    "detail",
    "level",
];

fn row(name: &str, tally: &Tally) -> [String; 12] {
    let share = |value: f64| format!("{:.0} %", 100.0 * value);
    let known = |value: Option<f64>, show: &dyn Fn(f64) -> String| value.map_or("-".into(), show);
    [
        name.to_owned(),
        tally.utterances.to_string(),
        format!("{:.2} dB", tally.distortion),
        format!("{:.2} dB", tally.baseline),
        share(tally.gain),
        format!(
            "{:.0} % off ({:+.0} %)",
            100.0 * tally.duration_error,
            100.0 * tally.duration_bias
        ),
        known(tally.coverage, &share),
        known(tally.entropy, &|entropy| format!("{entropy:.2}")),
        known(tally.speaker, &|distance| format!("{distance:.3}")),
        known(tally.pitch_error, &|pitch| format!("{pitch:.1} st")),
        format!("{}, {}", share(tally.change_over_time), share(tally.change_over_bands)),
        format!("{:+.1} dB", tally.level),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_a_dash() {
        let tally = Tally {
            utterances: 3,
            distortion: 6.5,
            baseline: 12.25,
            gain: 0.469,
            duration_error: 0.12,
            duration_bias: -0.06,
            coverage: Some(0.975),
            pitch_error: Some(1.25),
            change_over_time: 0.73,
            change_over_bands: 0.61,
            level: -3.25,
            ..Tally::default()
        };
        let found = row("all", &tally);
        assert_eq!(
            found,
            [
                "all",
                "3",
                "6.50 dB",
                "12.25 dB",
                "47 %",
                "12 % off (-6 %)",
                "98 %",
                "-",
                "-",
                "1.2 st",
                "73 %, 61 %",
                "-3.2 dB"
            ]
        );
        assert_eq!(COLUMNS.len(), found.len());
    }
}
