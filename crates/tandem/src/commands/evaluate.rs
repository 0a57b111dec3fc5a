//! `tandem evaluate`: compares synthesized speech with the recordings of a corpus.

use crate::config::FileConfig;
use crate::demo_files;
use crate::exit::ExitStatus;
use crate::failure::{Context, Result};
use crate::interrupt::cancel_on_signals;
use crate::printer::Printer;
use crate::speaking_args::{SamplingArgs, VoiceArgs, warn_of_substitute};
use owo_colors::OwoColorize;
use std::path::PathBuf;
use tandem_data::corpus::{Corpus, Split};
use tandem_eval::evaluate::{EvaluateOptions, Evaluation, evaluate};
use tandem_model::metrics::Tally;

const EXAMPLES: &str = "\
Examples:
  tandem evaluate --checkpoint run --corpus demo
  tandem evaluate --checkpoint run --corpus corpora/ljspeech --limit 50
  tandem evaluate --checkpoint run --corpus corpora/ljspeech --json > scores.json

Columns: distortion is the mel-cepstral distortion in dB after dynamic time warping, lower is better; \
baseline is that of the mean frame; below is how much lower than the baseline the voice is. Exit code 1: \
the voice is not better than the baseline.

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
    let file = FileConfig::read(args.config.as_deref(), out)?;
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
    }
    Ok(if evaluation.all.gain > 0.0 { ExitStatus::Done } else { ExitStatus::Negative })
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
