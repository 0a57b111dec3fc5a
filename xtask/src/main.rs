//! `cargo xtask`: lists what developers run, and runs it.
//!
//! In: the name of a task and its arguments. Out: its exit code. A task is a script in one of the folders of [`GROUPS`],
//! its description the first sentence of the script's own header: nothing is written down twice. Never part of the
//! program that users install. `claims` is the one task in Rust: [`claims`].

mod claims;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Folders of tasks below the root of the repository, in the order of the list.
const GROUPS: [(&str, &str); 6] = [
    ("scripts", "before anything else: what a user or CI runs first"),
    ("xtask/tests", "test groups that the workspace's own tests leave out"),
    ("xtask/campaigns", "long campaigns: kills, faults, cut links, leaks"),
    ("xtask/generators", "files of the repository that a program writes"),
    ("xtask/measurements", "figures of the documents"),
    ("xtask/release", "what users install"),
];

struct Task {
    name: String,
    path: PathBuf,
    about: String,
}

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let Some(name) = words.next().filter(|word| word != "--help" && word != "-h") else {
        return ended(list(root, &mut io::stdout().lock()));
    };
    let name = name.to_string_lossy().replace('_', "-");
    if name == "claims" {
        let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
        return match claims::run(root, &words, &mut io::stdout().lock()) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::from(1),
            Err(error) => ended(Err(error)),
        };
    }
    match tasks(root).and_then(|groups| {
        let found = groups.into_iter().flat_map(|(_, tasks)| tasks).find(|task| task.name == name);
        found.ok_or_else(|| io::Error::other(format!("there is no task `{name}`")))
    }) {
        Ok(task) => run(root, &task, words),
        Err(error) => ended(Err(error)),
    }
}

fn ended(result: io::Result<()>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    let _ = writeln!(io::stderr(), "error: {error}\nhint: `cargo xtask` lists the tasks");
    ExitCode::from(2)
}

fn run(root: &Path, task: &Task, words: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let program =
        if task.path.extension().is_some_and(|end| end == "py") { "python3" } else { "bash" };
    match Command::new(program).arg(&task.path).args(words).current_dir(root).status() {
        // A script that a signal ended has no code.
        Ok(status) => ExitCode::from(status.code().map_or(1, |code| code as u8)),
        Err(error) => ended(Err(io::Error::other(format!("cannot start `{program}`: {error}")))),
    }
}

fn list(root: &Path, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "figures of the README\n  {:<26} {}", "claims", claims::ABOUT)?;
    for (about, tasks) in tasks(root)? {
        writeln!(out, "{about}")?;
        for task in tasks {
            writeln!(out, "  {:<26} {}", task.name, task.about)?;
        }
    }
    Ok(())
}

/// The tasks of each group, by name.
fn tasks(root: &Path) -> io::Result<Vec<(&'static str, Vec<Task>)>> {
    let mut groups = Vec::new();
    for (folder, about) in GROUPS {
        let Ok(files) = fs::read_dir(root.join(folder)) else { continue };
        let mut found = Vec::new();
        for file in files {
            let path = file?.path();
            if path.extension().is_some_and(|end| end == "sh" || end == "py") {
                found.extend(task(&path)?);
            }
        }
        found.sort_by(|a: &Task, b| a.name.cmp(&b.name));
        groups.push((about, found));
    }
    Ok(groups)
}

/// Nothing for a script that others source or import: it has no first line for an interpreter.
fn task(path: &Path) -> io::Result<Option<Task>> {
    let text = fs::read_to_string(path)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().replace('_', "-");
    let about = text.starts_with("#!").then(|| first_sentence(&text));
    Ok(about.map(|about| Task { name, path: path.to_path_buf(), about }))
}

/// The first sentence of the header: `# Text.` of a shell script, `"""Text.` of Python.
fn first_sentence(text: &str) -> String {
    let header = text.lines().skip(1).skip_while(|line| line.trim().is_empty());
    let header: Vec<&str> = header
        .map(|line| line.trim_start_matches(['#', '"']).trim())
        .take_while(|line| !line.is_empty())
        .collect();
    let header = header.join(" ");
    let end = header.match_indices(". ").map(|(at, _)| at + 1).next();
    header[..end.unwrap_or(header.len())].to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sentence_of_a_header_may_have_several_lines() {
        let shell = "#!/bin/sh\n# Kills training at\n# random times. Then more.\n\nset -e\n";
        assert_eq!(first_sentence(shell), "Kills training at random times.");
        let python = "#!/usr/bin/env python3\n\"\"\"Draws mel frames.\n\nUsage\n\"\"\"\n";
        assert_eq!(first_sentence(python), "Draws mel frames.");
    }

    #[test]
    fn every_task_has_a_name_of_its_own_and_says_what_it_does() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut names = Vec::new();
        for task in tasks(root).unwrap().into_iter().flat_map(|(_, tasks)| tasks) {
            let first = task.about.chars().next();
            assert!(first.is_some_and(char::is_uppercase), "{}: `{}`", task.name, task.about);
            assert!(task.about.ends_with('.'), "{}: `{}`", task.name, task.about);
            names.push(task.name);
        }
        assert!(names.len() > 10 && names.iter().any(|name| name == "check"), "{names:?}");
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all, "two tasks have one name: {names:?}");
    }
}
