//! An error of the command line as a user sees it: what is wrong with which flag, and what to type.
//!
//! In: clap's error and the words that were typed. Out: `error:`, the usage line, and always one `hint:`.
//! Help and version are answers, not errors; clap prints them by itself.

use crate::config::nearest::nearest;
use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use owo_colors::OwoColorize;
use tandem_insight::myxtts::flags::instead_of_flag;

/// The error of a command line that cannot be parsed.
pub fn explain_usage(error: &clap::Error, program: &Command, typed: &[String]) -> String {
    let command = CommandOfLine::find(program, typed);
    let text = error.render().to_string();
    // The end names `--help` in words of clap, and a `hint:` of our own parsers is part of the text.
    let text = text.split("For more information, try").next().unwrap_or_default().trim_end();
    let (text, own_hint) = match text.split_once("\nhint: ") {
        Some((text, hint)) => (text, Some(hint.to_string())),
        None => (text, None),
    };
    let (fact, rest) = text.split_once("\n\n").unwrap_or((text, ""));
    let (mut fact, mut hint) = (plain_numbers(fact.trim_start_matches("error: ")), own_hint);
    if let Some((flag, here)) = flag_of_myxtts(error) {
        (fact, hint) = (format!("`{flag}` is a flag of MyXTTS"), Some(here));
    } else if let Some(refused) = Refused::find(error, &command, typed) {
        (fact, hint) = (refused.fact(), Some(refused.hint(&command, typed)));
    }
    let hint = hint.or_else(|| suggestion(error, &command)).unwrap_or_else(|| command.help());
    let usage = rest.lines().find(|line| line.starts_with("Usage:"));
    let usage = usage.map(|usage| format!("\n\n{usage}\n")).unwrap_or_default();
    format!("{} {fact}{usage}\n{} {hint}", "error:".red().bold(), "hint:".cyan().bold())
}

/// A flag that users bring with them, and what is typed here.
fn flag_of_myxtts(error: &clap::Error) -> Option<(&str, String)> {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let here = instead_of_flag(flag).filter(|_| error.kind() == ErrorKind::UnknownArgument)?;
    Some((flag, format!("{here}; docs/from-myxtts.md lists all flags")))
}

/// What Rust says of a number, in words that name what is expected.
fn plain_numbers(fact: &str) -> String {
    let expected = [
        (": invalid digit found in string", ": expected a whole number, 0 or more"),
        (": invalid float literal", ": expected a number"),
        (": number too large to fit in target type", ": the number is too large"),
        (": cannot parse integer from empty string", ": expected a number, found nothing"),
        (": cannot parse float from empty string", ": expected a number, found nothing"),
    ];
    expected.iter().fold(fact.to_string(), |fact, (rust, ours)| fact.replace(rust, ours))
}

/// The command that was typed, with its full name.
struct CommandOfLine<'a> {
    name: String,
    command: &'a Command,
}

impl CommandOfLine<'_> {
    fn find<'a>(program: &'a Command, typed: &[String]) -> CommandOfLine<'a> {
        let mut found = CommandOfLine { name: "tandem".into(), command: program };
        for word in typed.iter().skip(1) {
            let Some(next) = found.command.find_subcommand(word) else { break };
            found = CommandOfLine { name: format!("{} {word}", found.name), command: next };
        }
        found
    }

    fn help(&self) -> String {
        let listed = if self.command.has_subcommands() { "commands" } else { "flags" };
        format!("`{} --help` lists the {listed} with an example", self.name)
    }

    /// Whether the word is a flag that must have a value.
    fn takes_value(&self, word: &str) -> bool {
        let mut flags = self.command.get_arguments();
        let long = word.strip_prefix("--");
        flags.any(|flag| {
            let named = long.is_some() && flag.get_long() == long
                || flag.get_short().is_some_and(|short| word == format!("-{short}"));
            let may_be_empty = flag.get_num_args().is_some_and(|count| count.min_values() == 0);
            named && flag.get_action().takes_values() && !may_be_empty
        })
    }

    /// The first flag that must be typed and was not.
    fn missing_flag(&self, typed: &[String]) -> Option<&str> {
        let is_typed = |long: &str, short: Option<char>| {
            let long = format!("--{long}");
            let short = short.map(|short| format!("-{short}"));
            typed.iter().any(|word| {
                word.split('=').next() == Some(long.as_str())
                    || short.as_deref() == Some(word.as_str())
            })
        };
        let mut flags = self.command.get_arguments().filter(|flag| flag.is_required_set());
        flags.find_map(|flag| flag.get_long().filter(|long| !is_typed(long, flag.get_short())))
    }
}

/// A word that no flag and no place of the command takes.
enum Refused {
    /// A value that begins with a dash, after a flag that takes a value.
    Value { flag: String, value: String },
    /// A text that begins with a dash.
    Dashed(String),
    /// A word without a dash.
    Word(String),
}

impl Refused {
    fn find(error: &clap::Error, command: &CommandOfLine, typed: &[String]) -> Option<Refused> {
        if error.kind() != ErrorKind::UnknownArgument {
            return None;
        }
        let Some(ContextValue::String(named)) = error.get(ContextKind::InvalidArg) else {
            return None;
        };
        if !named.starts_with('-') {
            return Some(Refused::Word(named.clone()));
        }
        // Of `-5 degrees`, clap names `-5` alone.
        let at = typed.iter().position(|word| word.starts_with(named.as_str()))?;
        let value = typed[at].clone();
        if let Some(flag) = typed[..at].last().filter(|word| command.takes_value(word)) {
            return Some(Refused::Value { flag: flag.clone(), value });
        }
        let no_flag = value.chars().nth(1).is_some_and(char::is_numeric) || value.contains(' ');
        no_flag.then_some(Refused::Dashed(value))
    }

    fn fact(&self) -> String {
        match self {
            Refused::Value { flag, value } if is_number(value) => {
                format!("`{flag}` cannot be negative: `{value}`")
            }
            Refused::Value { flag, value } => {
                format!("`{flag}` has no value: `{value}` begins with a dash")
            }
            Refused::Dashed(value) => format!("`{value}` begins with a dash, as a flag does"),
            Refused::Word(value) => format!("`{value}` is one word too many"),
        }
    }

    fn hint(&self, command: &CommandOfLine, typed: &[String]) -> String {
        let name = &command.name;
        match self {
            Refused::Value { flag, value } if is_number(value) => {
                format!("type a number of 0 or more; `{name} --help` shows what {flag} takes")
            }
            Refused::Value { flag, value } => format!(
                "type a value after {flag}; where it begins with a dash, write {flag}='{value}'"
            ),
            Refused::Dashed(value) => format!("put `--` before it: {name} -- '{value}'"),
            Refused::Word(value) => match command.missing_flag(typed) {
                Some(flag) => format!("put the flag before it: {name} --{flag} '{value}'"),
                None => format!("put a text or path with spaces in quotes; {}", command.help()),
            },
        }
    }
}

fn is_number(value: &str) -> bool {
    value.parse::<f64>().is_ok()
}

/// What clap thinks was meant.
fn suggestion(error: &clap::Error, command: &CommandOfLine) -> Option<String> {
    let kinds =
        [ContextKind::SuggestedArg, ContextKind::SuggestedValue, ContextKind::SuggestedSubcommand];
    let found = kinds.iter().find_map(|kind| match error.get(*kind) {
        Some(ContextValue::String(one)) => Some(one.clone()),
        // The nearest to what was typed; clap's own order is another one.
        Some(ContextValue::Strings(several)) => {
            let typed = [ContextKind::InvalidSubcommand, ContextKind::InvalidArg].into_iter();
            let typed = typed.filter_map(|kind| match error.get(kind) {
                Some(ContextValue::String(word)) => Some(word.as_str()),
                _ => None,
            });
            let names = several.iter().map(String::as_str);
            let near = typed.take(1).find_map(|typed| nearest(typed, names.clone()));
            near.map(String::from).or_else(|| several.first().cloned())
        }
        _ => None,
    });
    let unknown = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word)) if error.kind() == ErrorKind::UnknownArgument => {
            word.strip_prefix("--").map(String::from)
        }
        _ => None,
    };
    let of_ours = || {
        let names = command.command.get_arguments().filter_map(|flag| flag.get_long());
        nearest(unknown.as_deref()?, names).map(|name| format!("--{name}"))
    };
    let meant = found.or_else(of_ours)?;
    Some(format!("did you mean `{meant}`? `{} --help` lists the flags", command.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[track_caller]
    fn check(typed: &[&str], words: &[&str]) {
        let typed: Vec<String> =
            [&["tandem"][..], typed].concat().iter().map(ToString::to_string).collect();
        let program = crate::Cli::command();
        let error = program.clone().try_get_matches_from(&typed).expect_err("refused");
        let text =
            anstream::adapter::strip_str(&explain_usage(&error, &program, &typed)).to_string();
        assert_eq!(text.matches("hint:").count(), 1, "{text}");
        for word in words {
            assert!(text.contains(word), "`{word}` is not in:\n{text}");
        }
    }

    #[test]
    fn negative_values_are_named_with_their_flag() {
        check(
            &["train", "--batch-size", "-1"],
            &["`--batch-size` cannot be negative: `-1`", "0 or more"],
        );
        check(&["train", "--seed", "-1"], &["`--seed` cannot be negative"]);
        check(&["text", "-5 degrees"], &["begins with a dash", "tandem text -- '-5 degrees'"]);
        check(&["train", "--train-data", "--json"], &["a value"]);
    }

    #[test]
    fn a_word_without_a_flag_is_named_in_any_script() {
        check(&["serve", "run"], &["`run` is one word too many", "serve --checkpoint 'run'"]);
        check(&["serve", "سلام"], &["`سلام` is one word too many", "--checkpoint 'سلام'"]);
        check(&["serve", "m13"], &["--checkpoint 'm13'"]);
        check(&["serve", ""], &["`` is one word too many"]);
        let two_words = ["synth", "--checkpoint=run", "-o", "a.wav", "--text", "two", "words"];
        check(&two_words, &["`words` is one word too many", "in quotes"]);
        check(&["train", "-ش"], &["-ش"]);
    }

    #[test]
    fn a_flag_of_myxtts_is_named_as_such() {
        let fact = "`--optimization-level` is a flag of MyXTTS";
        check(&["train", "--optimization-level", "enhanced"], &[fact, "`--warmup-steps`"]);
        // A flag that may stand alone does not take the next one for its value.
        let after_switch = ["train", "--enable-static-shapes", "--optimization-level", "enhanced"];
        check(&after_switch, &[fact]);
        check(&["synth", "--checkpoint=run", "--clone-voice"], &["use `--reference FILE`"]);
        check(&["train", "--enable-static-shapes", "--what"], &["'--what'"]);
    }

    #[test]
    fn every_error_of_the_command_line_has_a_way_out() {
        check(&["trian"], &["did you mean `train`?"]);
        check(&["train", "--batchsize", "3"], &["did you mean `--batch-size`?"]);
        check(
            &["train", "--max-steps", "x"],
            &["expected a whole number", "`tandem train --help`"],
        );
        check(&["train", "--epochs", ""], &["--epochs", "`tandem train --help`"]);
        check(&["synth"], &["--checkpoint <DIR>", "`tandem synth --help`"]);
        check(&["bench", "nothing"], &["`tandem bench --help` lists the commands"]);
        check(&["text", "x", "--lang", "klingon"], &["use one of en"]);
    }
}
