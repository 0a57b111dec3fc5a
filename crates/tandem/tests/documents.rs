//! The documents are correct: their commands run, their flags exist, their links have targets, and
//! the Persian pages show the same commands as the English ones.
//!
//! Every command in blocks marked `console`, `sh` or `text` runs in a directory with the files that
//! pages name, with fewer steps where it would train for long, and once for each set of training flags.
//! The output is not compared, because it contains times and paths. A command that cannot run here is
//! marked: at the end of its line, `# needs a GPU`; or before its block, `<!-- not run: REASON -->`, or
//! `<!-- not run (tandem watch, jq): REASON -->` for some of its lines. The flags of every command, also
//! in sentences, must be in `--help`.

mod documents_support;

use documents_support::sandbox::Sandbox;
use documents_support::{Program, commands};
use std::collections::HashSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The root of the repository.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.join("../..").canonicalize().expect("the crate lies in the workspace")
}

/// Every Markdown page in the root, in `docs` and in its directories.
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

/// A line of a page and the language of its code block, `None` outside of blocks.
struct Line<'a> {
    number: usize,
    block: Option<&'a str>,
    text: &'a str,
    /// The `not run` mark before its block.
    mark: Option<&'a str>,
}

/// The lines of a page, fences left out.
fn lines(page: &str) -> Vec<Line<'_>> {
    let mut block = None;
    let mut mark = None;
    let mut found = Vec::new();
    for (place, text) in page.lines().enumerate() {
        // Blocks in lists are indented.
        match (text.trim_start().strip_prefix("```"), block) {
            (Some(kind), None) => block = Some(kind.trim()),
            (Some(_), Some(_)) => (block, mark) = (None, None),
            (None, _) => {
                let said = text.trim().strip_prefix("<!-- not run").filter(|_| block.is_none());
                mark = said.and_then(|rest| rest.strip_suffix(" -->")).or(mark);
                found.push(Line { number: place + 1, block, text, mark });
            }
        }
    }
    found
}

impl Line<'_> {
    /// Why the line is not run, if it is marked.
    fn reason(&self) -> Option<&str> {
        if self.text.ends_with("# needs a GPU") {
            return Some("needs a GPU");
        }
        let (some, reason) = self.mark?.split_once(": ")?;
        let starts = some.trim().trim_start_matches('(').trim_end_matches(')');
        let typed = typed_in(self).unwrap_or_default();
        let is_meant =
            starts.is_empty() || starts.split(", ").any(|start| typed.starts_with(start));
        (is_meant && !reason.is_empty()).then_some(reason)
    }
}

#[test]
fn commands_in_the_documents_run() {
    let sandbox = Sandbox::new(&root()).with_a_run();
    let (mut count, mut faults) = (0, Vec::new());
    // Pages share commands, and some of these never overwrite a file.
    let mut run_by_pages: HashSet<String> = HashSet::new();
    // Translated pages have the same commands; another test checks that.
    for page in documents().into_iter().filter(|page| original_of(page).is_none()) {
        let text = read(&page);
        let mut run_here = Vec::new();
        for line in lines(&text) {
            let Some(command) = typed_in(&line).filter(|command| !command.is_empty()) else {
                continue;
            };
            let known = run_by_pages.contains(command) || already_ran(command, &run_by_pages);
            if line.reason().is_some() || known {
                continue;
            }
            count += 1;
            run_here.push(command.to_string());
            let output = sandbox.run(command);
            if !is_fine(command, output.status.code()) {
                let said = String::from_utf8_lossy(&output.stderr);
                let place = format!("{}:{}: {command}", page.display(), line.number);
                faults.push(format!("{place}: {:?}\n{said}", output.status));
            }
        }
        run_by_pages.extend(run_here);
    }
    assert!(faults.is_empty(), "fix these, or mark them as not run:\n{}", faults.join("\n"));
    assert!(count >= 50, "only {count} commands were run");
}

/// An outdated mark would hide the next command that is added to its block.
#[test]
fn every_not_run_mark_applies_to_a_command() {
    for page in documents().into_iter().filter(|page| original_of(page).is_none()) {
        let text = read(&page);
        let page_lines = lines(&text);
        for line in page_lines.iter().filter(|line| line.block.is_none() && line.mark.is_some()) {
            let Some(mark) = line.text.trim().strip_prefix("<!-- not run") else { continue };
            let place = format!("{}:{}: {}", page.display(), line.number, line.text);
            assert!(mark.contains(": "), "{place}: give a reason");
            let after = page_lines.iter().skip_while(|other| other.number <= line.number);
            let block = after.skip_while(|other| other.block.is_none());
            let block: Vec<_> = block.take_while(|other| other.block.is_some()).collect();
            let first = block.first().map_or(0, |first| first.number);
            assert_eq!(first, line.number + 2, "{place}: put it right above its block");
            assert!(
                block.iter().any(|line| line.reason().is_some()),
                "{place}: applies to no line"
            );
        }
    }
}

/// Whether training already ran with all of these flags together. Other directories and numbers would
/// test nothing new, and each run takes seconds.
fn already_ran(command: &str, run: &HashSet<String>) -> bool {
    let flags = |command: &str| -> HashSet<String> {
        command.split(' ').filter(|word| word.starts_with("--")).map(String::from).collect()
    };
    let is_training = |command: &str| command.starts_with("tandem train ");
    let resumes = |command: &str| command.contains("--resume");
    let mut alike = run.iter().filter(|other| is_training(other));
    is_training(command)
        && alike.any(|other| {
            resumes(other) == resumes(command) && flags(command).is_subset(&flags(other))
        })
}

/// Exit code 1 of `analyze`, `evaluate`, `compare` and `validate` is an answer, not a failure.
fn is_fine(command: &str, code: Option<i32>) -> bool {
    let answers = ["analyze", "evaluate", "compare", "validate"];
    let may_say_no = answers.iter().any(|name| command.starts_with(&format!("tandem {name}")));
    code == Some(0) || (may_say_no && code == Some(1))
}

#[test]
fn flags_in_the_documents_exist() {
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

/// Flags of other programs that pages name alone: of cargo, mpirun, Piper, and of scripts of this repository.
const OTHER_FLAGS: [&str; 13] = [
    "--",
    "--bind-to",
    "--features",
    "--mca",
    "--length-scale",
    "--no-normalize",
    "--noise-scale",
    "--noise-w-scale",
    "--inject-failure",
    "--matrix",
    "--shape",
    "--part",
    "--stale",
];

/// A flag that a sentence names without its command exists in some command.
#[test]
fn flags_that_sentences_name_alone_exist() {
    let known = Program::default().all_flags();
    let (mut count, mut faults) = (0, Vec::new());
    // The pages about moving from MyXTTS list the flags of that program, the changelog those that are gone.
    let ours =
        |page: &PathBuf| !page.ends_with("from-myxtts.md") && !page.ends_with("CHANGELOG.md");
    for page in documents().into_iter().filter(ours) {
        for line in lines(&read(&page)).iter().filter(|line| line.block.is_none()) {
            let named = code_in(line.text).into_iter().filter(|code| code.starts_with("--"));
            for flag in named.filter_map(|code| code.split([' ', '=', '[', ',']).next()) {
                count += 1;
                if !known.contains(flag) && !OTHER_FLAGS.contains(&flag) {
                    let (page, number) = (page.display(), line.number);
                    faults.push(format!("{page}:{number}: no command has `{flag}`"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count >= 150, "only {count} flags were found");
}

/// What pages show of `tandem text` is what it prints; a line that ends in `...` shows the beginning.
#[test]
fn the_texts_in_the_documents_are_read_as_shown() {
    let (mut count, mut faults) = (0, Vec::new());
    for page in documents() {
        let source = read(&page);
        let found = lines(&source);
        for (place, line) in found.iter().enumerate().filter(|(_, line)| line.block.is_some()) {
            let Some(command) = line.text.strip_prefix("$ ") else { continue };
            let shown: Vec<&str> = found[place + 1..]
                .iter()
                .take_while(|next| next.block == line.block && !next.text.starts_with("$ "))
                .map(|next| next.text)
                .take_while(|text| !text.is_empty() && *text != "...")
                .collect();
            let typed = commands(command);
            let [words] = &typed[..] else { continue };
            if words.get(1).is_none_or(|name| name != "text") || shown.is_empty() {
                continue;
            }
            count += 1;
            let program = std::process::Command::new(env!("CARGO_BIN_EXE_tandem"));
            let printed = output_of(program, &words[1..]);
            let is_shown = |(shown, printed): (&&str, &str)| match shown.strip_suffix("...") {
                Some(beginning) => printed.starts_with(beginning),
                None => *shown == printed,
            };
            let as_shown = shown.iter().zip(printed.lines()).all(is_shown);
            if !as_shown || shown.len() > printed.lines().count() {
                let (page, number) = (page.display(), line.number);
                faults.push(format!("{page}:{number}: `{command}` prints\n{printed}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count >= 4, "only {count} outputs were compared");
}

fn output_of(mut program: std::process::Command, words: &[String]) -> String {
    let output = program.args(words).env("NO_COLOR", "1").output().expect("the program runs");
    String::from_utf8(output.stdout).expect("output is UTF-8")
}

/// The commands of a line: in shell blocks, and as code in a sentence.
fn shown<'a>(line: &Line<'a>) -> Vec<&'a str> {
    match line.block {
        Some("sh") => vec![line.text],
        Some("console" | "text") => line.text.strip_prefix("$ ").into_iter().collect(),
        Some(_) => Vec::new(),
        None => code_in(line.text),
    }
}

/// The text between backquotes, or in `<code dir="ltr">`, which Persian pages use.
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
        return Some("write the command in one line: continuation lines are not checked".into());
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

/// The English page of a Persian one: `README.md`, or the page of the same name in `docs`.
fn original_of(page: &Path) -> Option<PathBuf> {
    let name = page.file_name()?.to_str()?;
    let folder = page.parent()?;
    if name == "README.fa.md" {
        return Some(folder.join("README.md"));
    }
    let there = folder.parent()?.join(name);
    (folder.ends_with("docs/fa") && there.exists()).then_some(there)
}

/// The commands of a page, in order, without comments.
fn typed(page: &str) -> Vec<&str> {
    let typed = lines(page).into_iter().filter(|line| line.block != Some("text"));
    let typed = typed.filter_map(|line| typed_in(&line));
    typed.filter(|command| !command.is_empty()).collect()
}

fn typed_in<'a>(line: &Line<'a>) -> Option<&'a str> {
    match line.block {
        Some("sh") => Some(without_comment(line.text)),
        Some("console" | "text") => line.text.strip_prefix("$ ").map(without_comment),
        _ => None,
    }
}

fn without_comment(line: &str) -> &str {
    if line.starts_with('#') {
        return "";
    }
    line.split_once(" #").map_or(line, |(command, _)| command).trim()
}

/// In a right-to-left paragraph a command would be shown with its dashes on the wrong side.
#[test]
fn persian_text_is_right_to_left_and_code_is_not() {
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
fn links_between_the_documents_have_targets() {
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

/// Link targets: the text between `](` and `)`.
fn targets(line: &str) -> Vec<&str> {
    let after = line.split("](").skip(1);
    after.filter_map(|rest| rest.split_once(')').map(|(target, _)| target)).collect()
}

/// Whether a page has a heading with this anchor, in the form that GitHub generates.
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
fn every_file_that_the_architecture_page_names_exists() {
    let files = source_files();
    let page = read(&root().join("ARCHITECTURE.md"));
    let is_path = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let words = page.split(|c| !is_path(c)).map(|word| word.trim_end_matches('.'));
    let named: HashSet<&str> = words.filter(|word| is_source(Path::new(word))).collect();
    assert!(named.len() >= 100, "only {} paths were found", named.len());
    let missing: Vec<_> = named.iter().filter(|name| !exists(name, &files)).collect();
    assert!(missing.is_empty(), "no such file: {missing:?}");
}

/// The page leaves out `crates/tandem-` and `src/`, and the folder where the line before names it.
fn exists(name: &str, files: &[PathBuf]) -> bool {
    let unfolded = name.split_once('/').map(|(part, rest)| {
        let crate_name = if part == "tandem" { part.into() } else { format!("tandem-{part}") };
        format!("{crate_name}/src/{rest}")
    });
    let ends = |end: &str| files.iter().any(|file| file.ends_with(end));
    root().join(name).exists() || ends(name) || unfolded.is_some_and(|path| ends(&path))
}

fn is_source(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ending| ["rs", "py", "sh", "tsv", "md"].iter().any(|known| ending == *known))
}

/// Every source file below `crates`, `scripts` and `xtask`.
fn source_files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("crates"), root().join("scripts"), root().join("xtask")];
    while let Some(folder) = folders.pop() {
        let (inner, files): (Vec<_>, Vec<_>) =
            entries(&folder).into_iter().partition(|path| path.is_dir());
        folders.extend(inner);
        found.extend(files.into_iter().filter(|path| is_source(path)));
    }
    found
}

#[test]
fn the_settings_in_the_documents_are_accepted() {
    let sandbox = Sandbox::new(&root());
    let page = read(&root().join("docs/data.md"));
    let settings: String = lines(&page)
        .iter()
        .filter(|line| line.block == Some("toml"))
        .map(|line| format!("{}\n", line.text))
        .collect();
    assert!(settings.contains("[batch]"), "the page shows no settings any more");
    fs::write(sandbox.path().join("settings.toml"), settings).expect("written");
    let output = sandbox.run("tandem prepare demo --config settings.toml");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
}
