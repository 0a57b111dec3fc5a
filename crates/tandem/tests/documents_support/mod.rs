//! Commands in the documents, checked against `--help`.
//!
//! In: lines of a shell block. Out: the commands in them, and unknown subcommands or flags of each one.
//! Runs nothing but `--help`, once for each subcommand.

pub mod sandbox; // where commands are run

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

/// The `tandem` commands in a line, split into words.
///
/// Splits like a shell, as far as documents need it: quoted text is one word, `|`, `&`, `;`, `<` and `>`
/// end a command, `#` starts a comment.
pub fn commands(line: &str) -> Vec<Vec<String>> {
    let mut found = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(letter),
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, '|' | '&' | ';' | '<' | '>') => {
                end_word(&mut word, &mut found);
                found.push(Vec::new());
            }
            (None, _) if letter.is_whitespace() => end_word(&mut word, &mut found),
            (None, _) => word.get_or_insert_default().push(letter),
        }
    }
    end_word(&mut word, &mut found);
    found.retain(|words| words.first().is_some_and(|first| first == "tandem"));
    found
}

fn end_word(word: &mut Option<String>, found: &mut [Vec<String>]) {
    if let (Some(word), Some(command)) = (word.take(), found.last_mut()) {
        command.push(word);
    }
}

/// `--help` of every subcommand, cached.
#[derive(Default)]
pub struct Program {
    cached: BTreeMap<Vec<String>, Help>,
}

impl Program {
    /// The first unknown subcommand or flag of a command.
    pub fn fault(&mut self, words: &[String]) -> Option<String> {
        let mut path: Vec<String> = Vec::new();
        let mut rest = words.get(1..).unwrap_or_default();
        while let [next, after @ ..] = rest {
            if !self.help(&path).commands.contains(next) {
                break;
            }
            path.push(next.clone());
            rest = after;
        }
        let help = self.help(&path);
        if let Some(word) = rest.first().filter(|word| !word.starts_with('-'))
            && !help.commands.is_empty()
            && !is_placeholder(word)
        {
            return Some(format!("there is no command `{word}` here"));
        }
        // Words after `--` belong to another program.
        let flags = rest.iter().take_while(|word| *word != "--").filter(|word| is_flag(word));
        let unknown = flags.map(|word| name_of(word)).find(|name| !help.flags.contains(*name))?;
        Some(format!("`tandem {}` has no `{unknown}`", path.join(" ")))
    }

    /// The flags of every command.
    pub fn all_flags(&mut self) -> BTreeSet<String> {
        let (mut found, mut open) = (BTreeSet::new(), vec![Vec::new()]);
        while let Some(path) = open.pop() {
            let help = self.help(&path);
            found.extend(help.flags.iter().cloned());
            let commands = help.commands.iter().filter(|name| *name != "help");
            open.extend(commands.map(|name| [&path[..], std::slice::from_ref(name)].concat()));
        }
        found
    }

    fn help(&mut self, path: &[String]) -> &Help {
        self.cached.entry(path.to_vec()).or_insert_with(|| Help::of(&run_help(path)))
    }
}

fn run_help(path: &[String]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tandem"))
        .args(path)
        .arg("--help")
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .expect("the program runs");
    assert!(output.status.success(), "`tandem {} --help`: {:?}", path.join(" "), output.status);
    String::from_utf8(output.stdout).expect("help is UTF-8")
}

/// `COMMAND` stands for any command.
fn is_placeholder(word: &str) -> bool {
    word.chars().all(|letter| letter.is_ascii_uppercase())
}

/// `-` is a file, `-5` is a number.
fn is_flag(word: &str) -> bool {
    let Some(name) = word.strip_prefix('-') else { return false };
    name.chars().next().is_some_and(|letter| !letter.is_ascii_digit())
}

/// The flag of `--flag=value`, and of `--flag[=VALUE]` in a sentence.
fn name_of(word: &str) -> &str {
    word.split(['=', '[']).next().unwrap_or(word)
}

/// Subcommands and flags of one `--help`.
#[derive(Debug, Default)]
struct Help {
    commands: BTreeSet<String>,
    flags: BTreeSet<String>,
}

impl Help {
    fn of(text: &str) -> Help {
        let mut help = Help::default();
        let mut section = "";
        for line in text.lines() {
            let words = line.trim_start();
            // Descriptions are indented further than the flags they belong to.
            match line.len() - words.len() {
                0 => section = words,
                2 if section == "Commands:" => {
                    help.commands.extend(words.split(' ').next().map(String::from));
                }
                1..=6 if words.starts_with('-') => help.flags.extend(flags(words)),
                _ => {}
            }
        }
        help.flags.extend(aliases(text));
        help
    }
}

/// The flags of a line such as `-o, --output <FILE>  Where to write`.
fn flags(line: &str) -> Vec<String> {
    let names = line.split("  ").next().unwrap_or_default();
    let words = names.split([' ', ',', '[', '=', '<']);
    words.filter(|word| word.starts_with('-')).map(String::from).collect()
}

/// The flags in `[alias: --name]`, which may be wrapped.
fn aliases(text: &str) -> Vec<String> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let lists = text.split("[alias").skip(1).filter_map(|rest| rest.split(']').next());
    let words = lists.flat_map(|list| list.split([' ', ',', ':']));
    words.filter(|word| word.starts_with("--")).map(String::from).collect()
}

#[test]
fn lines_are_split_like_a_shell_does() {
    let check = |line: &str, words: &[&[&str]]| assert_eq!(commands(line), words, "{line}");
    check(
        "tandem text \"two words\" --json  # a remark",
        &[&["tandem", "text", "two words", "--json"]],
    );
    check("tandem a > file && tandem b", &[&["tandem", "a"], &["tandem", "b"]]);
    check("echo tandem | tandem c ''", &[&["tandem", "c", ""]]);
    check("cargo build", &[]);
}

#[test]
fn help_has_commands_flags_and_aliases() {
    let help = Help::of(
        "Usage: x\n\nCommands:\n  one  First\n\nOptions:\n  -o, --out <FILE>  Where --not-this\n      \
         --shapes[=<BOOL>]  Even [env: X=] [alias:\n                         --forms]\n",
    );
    let set = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<BTreeSet<_>>();
    assert_eq!(help.commands, set(&["one"]));
    assert_eq!(help.flags, set(&["-o", "--out", "--shapes", "--forms"]));
}

#[test]
fn unknown_commands_and_flags_are_found() {
    let mut program = Program::default();
    let mut fault = |line: &str| program.fault(&commands(line)[0]);
    assert_eq!(fault("tandem train --train-data demo --pipeline-depth 3 -- --any"), None);
    assert_eq!(fault("tandem COMMAND --help"), None);
    assert_eq!(fault("tandem trian"), Some("there is no command `trian` here".into()));
    assert_eq!(
        fault("tandem bench step --traim"),
        Some("`tandem bench step` has no `--traim`".into())
    );
}
