//! Every flag of a command that reads a corpus or trains changes its resolved settings, or is refused.
//!
//! The settings are resolved by the functions that the commands call. Flags that are no settings (what is printed, and
//! what is done) are fields of the command's own file: the compiler names one that nothing reads.

use crate::Cli;
use crate::commands::{Command, train_vocoder};
use crate::corpus_args::BatchArgs;
use crate::failure::Result;
use crate::printer::Printer;
use clap::{Arg, ArgAction, CommandFactory, Parser};
use std::fmt::Debug;

/// Commands, the words that they need, and their flags that are no settings. `train --from` needs a voice on the disk;
/// tests/fine_tune_command.rs has one.
const COMMANDS: [(&str, &str, &str); 6] = [
    ("train", "--train-data=corpora/x", "json html lang dashboard rank-timeout allow-changes from"),
    ("train-vocoder", "--train-data=corpora/x", "json html lang dashboard size"),
    ("profile", "--train-data=corpora/x", "json html lang apply record"),
    ("prepare", "corpora/x", "json verify rank-timeout"),
    (
        "analyze",
        "corpora/x",
        "json html lang record step-time sample batches model-start-delay adapt alignments held-out limit top",
    ),
    ("batches", "corpora/x", "json epoch from eval"),
];

fn resolved(words: &[String]) -> Result<String> {
    let out = &mut Printer::new();
    let shown = |settings: &dyn Debug| format!("{settings:?}");
    let line = ["tandem".to_string()].into_iter().chain(words.iter().cloned());
    let cli = Cli::try_parse_from(line).map_err(|error| {
        crate::failure::Advised::new(error.to_string(), "a usage error has its own hint")
    })?;
    Ok(match cli.command {
        Command::Train(args) => shown(&args.train.resolve(out)?),
        Command::TrainVocoder(args) => shown(&train_vocoder::resolve(&args, out)?),
        Command::Profile(args) => shown(&args.profiling.plan(out)?),
        Command::Prepare(args) => shown(&args.settings.resolve(&args.corpus, out)?),
        Command::Analyze(args) => {
            let corpus = args.settings.resolve("corpora/x".as_ref(), out)?;
            shown(&(args.batch.resolve(&corpus)?, corpus))
        }
        Command::Batches(args) => {
            let corpus = args.settings.resolve(&args.corpus, out)?;
            let batch = BatchArgs { settings: args.batch, ..BatchArgs::default() };
            shown(&(batch.resolve(&corpus)?.batch, corpus))
        }
        _ => unreachable!("not in the list"),
    })
}

/// The flag with a value that is not its default.
fn typed(flag: &Arg, config: &str) -> Vec<String> {
    let long = flag.get_long().unwrap_or_default();
    if !matches!(flag.get_action(), ArgAction::Set | ArgAction::Append) {
        return vec![format!("--{long}")];
    }
    let values = flag.get_possible_values();
    let value = match long {
        "config" => config,
        "train-data" | "val-data" => "corpora/y",
        "languages" => "de",
        "backend" => "cpu",
        "mel-on" => "host",
        "max-mel-frames" | "frame-budget" => "1600",
        "trim-silence" | "loudness" => "-30",
        "separator" => ";",
        "keep-diacritics" | "cache-dataset" | "enable-memory-isolation" | "no-graphs" => "true",
        "enable-static-shapes" | "adapt" => "false",
        "pronunciation" => "characters",
        _ if !values.is_empty() => values.last().map_or("", |value| value.get_name()),
        // Another number than any default.
        _ if flag.get_value_names().is_some_and(|names| names[0] == "SHARE") => "0.5",
        _ => "7",
    };
    vec![format!("--{long}={value}")]
}

#[test]
fn every_flag_changes_the_settings_of_its_command_or_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("a.toml");
    std::fs::write(&config, "[batch]\nbatch_size = 3\n[text]\nlanguages = [\"de\"]\n").unwrap();
    let config = config.to_string_lossy().into_owned();
    let (mut changed, mut refused) = (0, Vec::new());
    for (name, needed, own) in COMMANDS {
        let line = |more: &[String]| -> Vec<String> {
            // A flag may not be given twice.
            let named = |word: &str| word.split('=').next().unwrap_or_default().to_string();
            let is_given = more.iter().any(|new| named(new) == named(needed));
            let needed = (!is_given).then(|| needed.to_string());
            [name.to_string()].into_iter().chain(needed).chain(more.iter().cloned()).collect()
        };
        let usual = resolved(&line(&[])).expect(name);
        let program = Cli::command();
        let command = program.find_subcommand(name).expect(name);
        let flags = command.get_arguments().filter(|flag| {
            let is_own = |long: &str| own.split(' ').any(|own| own == long);
            flag.get_long().is_some_and(|long| !is_own(long)) && !flag.is_hide_set()
        });
        for flag in flags {
            let words = typed(flag, &config);
            match resolved(&line(&words)) {
                Ok(settings) => {
                    assert_ne!(
                        settings,
                        usual,
                        "`tandem {name} {}` has no effect",
                        words.join(" ")
                    );
                    changed += 1;
                }
                Err(_) => refused.push(format!("{name} {}", words.join(" "))),
            }
        }
    }
    assert!(changed > 150, "only {changed} flags have an effect; refused: {refused:#?}");
    // Refused alone, since they need another flag: a budget without isolation.
    let expected = [
        "train --data-gpu-memory=7",
        "train --model-gpu-memory=7",
        "profile --data-gpu-memory=7",
        "profile --model-gpu-memory=7",
    ];
    assert_eq!(refused, expected);
}
