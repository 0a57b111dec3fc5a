//! The documents hold true: their commands run, and their links lead somewhere.
//!
//! A block marked `console` is run line by line, each line that begins with `$ tandem `. Blocks
//! marked otherwise are for reading only: they need a corpus of their own, or take long. What a
//! command prints is not compared, since it holds times and paths; that it can be run is.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Where the repository begins.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.join("../..").canonicalize().expect("the crate lies in the workspace")
}

/// Every page for people: those in the root and those in `docs`.
fn documents() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in [root(), root().join("docs")] {
        for entry in fs::read_dir(folder).expect("a folder of the repository") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|ending| ending == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn read(page: &Path) -> String {
    fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()))
}

/// A line of a page and the kind of block it stands in; none outside of blocks.
struct Line<'a> {
    number: usize,
    block: Option<&'a str>,
    text: &'a str,
}

/// The lines of a page, fences left out.
fn lines(page: &str) -> Vec<Line<'_>> {
    let mut block = None;
    let mut found = Vec::new();
    for (place, text) in page.lines().enumerate() {
        match (text.strip_prefix("```"), block) {
            (Some(kind), None) => block = Some(kind.trim()),
            (Some(_), Some(_)) => block = None,
            (None, _) => found.push(Line { number: place + 1, block, text }),
        }
    }
    found
}

#[test]
fn commands_in_the_documents_can_be_run() {
    let folder = tempfile::tempdir().expect("a place for the commands");
    // Pages name files of the repository as a reader in its root would.
    std::os::unix::fs::symlink(root().join("docs"), folder.path().join("docs")).expect("a link");
    let mut count = 0;
    for page in documents() {
        for line in lines(&read(&page)).iter().filter(|line| line.block == Some("console")) {
            let Some(command) = line.text.strip_prefix("$ ") else { continue };
            count += 1;
            let place = format!("{}:{}: {command}", page.display(), line.number);
            assert!(command.starts_with("tandem "), "{place}: only `tandem` is run");
            let output = run(command, folder.path());
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(is_fine(command, output.status.code()), "{place}: {:?}\n{said}", output.status);
        }
    }
    assert!(count >= 10, "only {count} commands were found: is the marker still `console`?");
}

/// Through a shell, since that is where a reader types it: quotes mean what they mean there.
fn run(command: &str, folder: &Path) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_tandem"));
    let mut places = vec![program.parent().expect("a folder").to_path_buf()];
    places.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
    Command::new("sh")
        .args(["-c", command])
        .current_dir(folder)
        .env("PATH", env::join_paths(places).expect("a path"))
        .env("TANDEM_DATA_DIR", folder.join("data"))
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .expect("a shell")
}

/// `analyze` may find something to change on a busy machine: that is an answer, not a failure.
fn is_fine(command: &str, code: Option<i32>) -> bool {
    code == Some(0) || (command.starts_with("tandem analyze") && code == Some(1))
}

#[test]
fn links_between_the_documents_lead_somewhere() {
    let mut count = 0;
    for page in documents() {
        let text = read(&page);
        for line in lines(&text).iter().filter(|line| line.block.is_none()) {
            for target in targets(line.text) {
                if target.contains("://") {
                    continue;
                }
                count += 1;
                let place = format!("{}:{}: {target}", page.display(), line.number);
                let (file, heading) = target.split_once('#').unwrap_or((target, ""));
                let folder = page.parent().expect("a folder");
                let there = if file.is_empty() { page.clone() } else { folder.join(file) };
                assert!(there.exists(), "{place}: no such file");
                assert!(heading.is_empty() || has_heading(&there, heading), "{place}: no heading");
            }
        }
    }
    assert!(count >= 10, "only {count} links were found");
}

/// What stands between `](` and `)`.
fn targets(line: &str) -> Vec<&str> {
    let after = line.split("](").skip(1);
    after.filter_map(|rest| rest.split_once(')').map(|(target, _)| target)).collect()
}

/// Whether a page has a heading of that name, written as GitHub writes it in links.
fn has_heading(page: &Path, name: &str) -> bool {
    let text = read(page);
    let page = lines(&text);
    let headings = page.iter().filter(|line| line.block.is_none() && line.text.starts_with('#'));
    headings.map(|line| in_links(line.text.trim_start_matches('#').trim())).any(|h| h == name)
}

fn in_links(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn the_settings_in_the_documents_are_accepted() {
    let folder = tempfile::tempdir().expect("a place for the settings");
    let page = read(&root().join("docs/data.md"));
    let settings: String = lines(&page)
        .iter()
        .filter(|line| line.block == Some("toml"))
        .map(|line| format!("{}\n", line.text))
        .collect();
    assert!(settings.contains("[batch]"), "the page shows no settings any more");
    fs::write(folder.path().join("settings.toml"), settings).expect("written");
    let output = run("tandem prepare demo --config settings.toml", folder.path());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
}
