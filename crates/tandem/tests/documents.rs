//! The documents hold true: their commands run, their flags exist, their links lead somewhere, and
//! the Persian pages show what the English ones show.
//!
//! A block marked `console` is run line by line, each line that begins with `$ tandem `. What a
//! command prints is not compared, since it holds times and paths; that it can be run is. Commands
//! in blocks marked `sh`, after `$ ` in blocks marked `text`, and in sentences need a corpus of
//! their own, a GPU, or long: of these every flag is looked for in the program's `--help`.

mod documents_kit;

use documents_kit::{Program, commands};
use std::collections::HashSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Where the repository begins.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.join("../..").canonicalize().expect("the crate lies in the workspace")
}

/// Every page for people: those in the root, and those in `docs` and the folders in it.
fn documents() -> Vec<PathBuf> {
    let mut found = pages_in(&root());
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        found.extend(pages_in(&folder));
        folders.extend(entries(&folder).into_iter().filter(|path| path.is_dir()));
    }
    found.sort();
    found
}

fn pages_in(folder: &Path) -> Vec<PathBuf> {
    let is_page = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "md");
    entries(folder).into_iter().filter(is_page).collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(folder).expect("a folder of the repository");
    listed.map(|entry| entry.expect("an entry").path()).collect()
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
        // Blocks in lists are indented.
        match (text.trim_start().strip_prefix("```"), block) {
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
    // Pages and their translations share commands, and some of these never overwrite a file.
    let mut run_by_pages: HashSet<String> = HashSet::new();
    for page in documents() {
        let mut run_here = Vec::new();
        for line in lines(&read(&page)).iter().filter(|line| line.block == Some("console")) {
            let Some(command) = line.text.strip_prefix("$ ") else { continue };
            count += 1;
            run_here.push(command.to_string());
            if run_by_pages.contains(command) {
                continue;
            }
            let place = format!("{}:{}: {command}", page.display(), line.number);
            assert!(command.starts_with("tandem "), "{place}: only `tandem` is run");
            let output = run(command, folder.path());
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(is_fine(command, output.status.code()), "{place}: {:?}\n{said}", output.status);
        }
        run_by_pages.extend(run_here);
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
fn commands_in_the_documents_have_flags_that_exist() {
    let mut program = Program::default();
    let (mut count, mut faults) = (0, Vec::new());
    for page in documents() {
        for line in lines(&read(&page)) {
            for command in shown(&line).into_iter().flat_map(commands) {
                count += 1;
                if let Some(fault) = fault(&mut program, &line, &command) {
                    faults.push(format!("{}:{}: {fault}", page.display(), line.number));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count >= 150, "only {count} commands were found");
}

/// What a line has people type: in blocks for a shell, and as code in a sentence.
fn shown<'a>(line: &Line<'a>) -> Vec<&'a str> {
    match line.block {
        Some("sh") => vec![line.text],
        Some("console" | "text") => line.text.strip_prefix("$ ").into_iter().collect(),
        Some(_) => Vec::new(),
        None => code_in(line.text),
    }
}

/// What stands between backquotes, or in `<code dir="ltr">`, which Persian pages use.
fn code_in(sentence: &str) -> Vec<&str> {
    let quoted = sentence.split('`').skip(1).step_by(2);
    let tagged = sentence.split("<code").skip(1);
    let tagged = tagged.filter_map(|rest| rest.split_once('>')?.1.split("</code>").next());
    quoted.chain(tagged).collect()
}

fn fault(program: &mut Program, line: &Line<'_>, command: &[String]) -> Option<String> {
    if let Some(fault) = program.fault(command) {
        return Some(fault);
    }
    if line.block != Some("sh") {
        return None;
    }
    if line.text.trim_end().ends_with('\\') {
        return Some("write it in one line: what follows is not checked".into());
    }
    let needs_a_gpu = command.iter().any(|word| word == "--data-gpu" || word == "--model-gpu");
    let says_so = line.text.ends_with("# needs a GPU");
    (needs_a_gpu && !says_so).then(|| "add `# needs a GPU` to the line".into())
}

#[test]
fn a_translated_page_shows_the_commands_of_its_page() {
    let mut count = 0;
    for page in documents() {
        let Some(original) = original_of(&page) else { continue };
        count += 1;
        let (here, there) = (read(&page), read(&original));
        assert_eq!(typed(&here), typed(&there), "{} and {}", page.display(), original.display());
    }
    assert!(count >= 5, "only {count} translated pages were found");
}

/// The page that a Persian one says again: `README.md`, or that of the same name in `docs`.
fn original_of(page: &Path) -> Option<PathBuf> {
    let name = page.file_name()?.to_str()?;
    let folder = page.parent()?;
    if name == "README.fa.md" {
        return Some(folder.join("README.md"));
    }
    let there = folder.parent()?.join(name);
    (folder.ends_with("docs/fa") && there.exists()).then_some(there)
}

/// What a page has people type, in order, without remarks.
fn typed(page: &str) -> Vec<&str> {
    let typed = lines(page).into_iter().filter_map(typed_in);
    typed.filter(|command| !command.is_empty()).collect()
}

fn typed_in(line: Line<'_>) -> Option<&str> {
    match line.block {
        Some("sh") => Some(without_remark(line.text)),
        Some("console") => line.text.strip_prefix("$ "),
        _ => None,
    }
}

fn without_remark(line: &str) -> &str {
    if line.starts_with('#') {
        return "";
    }
    line.split_once(" #").map_or(line, |(command, _)| command).trim()
}

/// A command in a paragraph from right to left would be shown with its dashes on the wrong side.
#[test]
fn persian_pages_run_from_right_to_left_and_their_code_does_not() {
    for page in documents().into_iter().filter(|page| is_persian(page)) {
        let text = read(&page);
        let mut from_right = false;
        for line in lines(&text) {
            let place = format!("{}:{}: {}", page.display(), line.number, line.text);
            match (line.block, line.text.trim()) {
                (Some(_), _) => assert!(!from_right, "{place}: close the `div` before the block"),
                (None, "<div dir=\"rtl\">") => from_right = true,
                (None, "</div>") => from_right = false,
                (None, words) => {
                    let persian = words.contains(|letter| matches!(letter, '\u{622}'..='\u{6cc}'));
                    assert!(!persian || from_right, "{place}: open a `div` before it");
                }
            }
        }
        assert!(!from_right, "{}: the last `div` is not closed", page.display());
    }
}

fn is_persian(page: &Path) -> bool {
    page.ends_with("README.fa.md")
        || page.parent().is_some_and(|folder| folder.ends_with("docs/fa"))
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
