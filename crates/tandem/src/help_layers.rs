//! `-h` is one screen: the flags that people use, and examples. `--help` has every flag.
//!
//! In: the program and the words of the command line. Out: the program, in which other flags are hidden if `-h` is among
//! the words. A hidden flag is still parsed. Commands with few flags have one layer.

use clap::{Arg, Command};
use std::ffi::OsString;

/// The flags of the first layer, for commands whose whole help is longer than a screen.
const FIRST_LAYER: [(&str, &str); 8] = [
    (
        "train",
        "train-data config checkpoint-dir resume from model-size \
         batch-size max-steps epochs mixed-precision cache-dataset dashboard",
    ),
    (
        "train-vocoder",
        "train-data config checkpoint-dir resume size batch-size \
         max-steps lr num-workers cache-dataset dashboard json",
    ),
    (
        "profile",
        "train-data config model-size batch-size num-workers num-steps \
         mixed-precision cache-dataset apply record html json",
    ),
    (
        "prepare",
        "config languages pronunciation layout max-mel-frames trim-silence \
         loudness num-workers cache-dataset cache-dir verify json",
    ),
    (
        "analyze",
        "config alignments batch-size num-workers step-time batches \
         cache-dataset adapt record html lang json",
    ),
    (
        "batches",
        "config languages layout max-text-length max-mel-frames batch-size \
         frame-budget seed epoch from eval json",
    ),
    (
        "synth",
        "checkpoint text text-file output speaker reference \
         language speed vocoder seed gpu json",
    ),
    (
        "serve",
        "checkpoint host port token-file allow-host voice \
         workers speed vocoder gpu lang strict",
    ),
];

/// The program for this command line.
pub fn layered(program: Command, mut words: impl Iterator<Item = OsString>) -> Command {
    if words.any(|word| word == "-h") { first_layer(program) } else { program }
}

fn first_layer(program: Command) -> Command {
    FIRST_LAYER.iter().fold(program, |program, (name, flags)| {
        program.mut_subcommand(name, |command| {
            let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            // What follows the examples is for those who read all of it.
            let examples = examples.split("\n\n").next().unwrap_or_default().to_string();
            command
                .mut_args(|flag| brief(flag, flags))
                .after_help(format!("`tandem {name} --help` has every flag.\n\n{examples}"))
        })
    })
}

fn brief(flag: Arg, flags: &str) -> Arg {
    let is_first = flag.get_long().is_none_or(|long| flags.split(' ').any(|first| first == long));
    let is_hidden = flag.is_hide_set() || !(is_first || flag.is_required_set());
    flag.hide(is_hidden).hide_env(true).help_heading(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn help(command: &str, flag: &str) -> String {
        let words = ["tandem", command, flag].map(OsString::from);
        let program = layered(crate::Cli::command().term_width(100), words.iter().cloned());
        program.try_get_matches_from(words).expect_err("help").render().to_string()
    }

    #[test]
    fn the_first_layer_is_a_screen_with_twelve_flags_and_examples() {
        for (name, flags) in FIRST_LAYER {
            let text = help(name, "-h");
            assert!(text.lines().count() <= 45, "{name}: {} lines\n{text}", text.lines().count());
            assert_eq!(flags.split(' ').count(), 12, "{name}");
            for flag in flags.split(' ') {
                let is_of_flag = |line: &str| {
                    let line = line.trim_start().trim_start_matches("-o, ");
                    line.split([' ', '[']).next() == Some(&format!("--{flag}"))
                };
                assert!(text.lines().any(is_of_flag), "{name} --{flag}\n{text}");
            }
            assert!(text.contains("Examples:") && !text.contains("[env:"), "{name}\n{text}");
        }
    }

    #[test]
    fn a_command_whose_help_is_longer_than_a_screen_has_two_layers() {
        for command in crate::Cli::command().get_subcommands() {
            let name = command.get_name();
            let has_two = FIRST_LAYER.iter().any(|(layered, _)| *layered == name);
            let lines = help(name, "--help").lines().count();
            assert!(
                has_two || lines <= 60,
                "{name} --help has {lines} lines: add it to FIRST_LAYER"
            );
        }
    }

    #[test]
    fn results_are_one_part_of_the_help_and_each_part_has_what_belongs_to_it() {
        let text = help("train", "--help");
        let part = |name: &str| {
            let start = text.find(&format!("\n{name}:\n")).expect(name);
            text[start + 2..].split("\n\n").next().unwrap_or_default()
        };
        for flag in ["--json", "--html", "--lang", "--dashboard"] {
            assert!(part("Output").contains(flag), "{flag}\n{text}");
        }
        assert!(part("Training").contains("--allow-changes"), "{text}");
        assert!(part("Optimizer").contains("--warmup-steps"), "{text}");
        assert!(!part("Devices").contains("--allow-changes"), "{text}");
        assert!(!part("Ranks (mpirun, srun)").contains("--json"), "{text}");
    }

    #[test]
    fn every_command_lists_its_results_where_people_look_for_them() {
        for command in crate::Cli::command().get_subcommands() {
            let of = |flag: &&Arg| {
                matches!(flag.get_long(), Some("json" | "html" | "lang" | "dashboard"))
            };
            for flag in command.get_arguments().filter(of) {
                let part = flag.get_help_heading().unwrap_or("Options");
                assert!(
                    ["Options", "Output"].contains(&part),
                    "{} {flag}: {part}",
                    command.get_name()
                );
            }
        }
    }

    /// A paragraph is one line of the source, which is wrapped once, or lines that fit.
    #[test]
    fn no_text_after_the_flags_is_wrapped_twice() {
        for command in crate::Cli::command().get_subcommands() {
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let lines: Vec<&str> = after.lines().collect();
            for pair in lines.windows(2).filter(|pair| !pair[1].is_empty()) {
                let length = pair[0].chars().count();
                assert!(length <= 100, "{}: {length} characters: {}", command.get_name(), pair[0]);
            }
        }
    }
}
