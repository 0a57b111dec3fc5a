//! Written text and how a person reads it, by class: how many of the cases of `readings/*.tsv` come out right.
//!
//! `docs/languages.md` states the result as a table of classes. This test counts again and compares: a class that gets
//! better or worse changes the document. In the class [`AS_PHONEMES`] phonemes are compared: its words are spelled alike.

use std::collections::BTreeMap;
use tandem_text::{DiacriticsPolicy, FrontEnd, Language, TextConfig, normalize};

const DOCUMENT: &str = include_str!("../../../docs/languages.md");
const ENGLISH: &str = include_str!("readings/en.tsv");
const PERSIAN: &str = include_str!("readings/fa.tsv");
/// The other languages; each is a class.
const OTHER: &str = include_str!("readings/other.tsv");

/// `Plan A` and `a plan`.
const AS_PHONEMES: &str = "letters and articles";

/// Right and all cases of a class.
type Counts = BTreeMap<String, (usize, usize)>;

#[derive(Default)]
struct Outcome {
    classes: Counts,
    /// Class, written, expected and found, of the cases that are not right.
    wrong: Vec<[String; 4]>,
}

/// `language` of all cases, or none if each names its own.
fn read(cases: &str, language: Option<Language>) -> Outcome {
    let mut outcome = Outcome::default();
    let languages = language.map_or(Language::ALL.to_vec(), |language| vec![language]);
    let front_end = FrontEnd::new(&TextConfig { languages, ..TextConfig::default() }).unwrap();
    for line in cases.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [class, written, spoken] = columns[..] else { panic!("not three columns: {line}") };
        let own = || class.parse().unwrap_or_else(|_| panic!("no language: {line}"));
        let language = language.unwrap_or_else(own);
        let class = if cases == OTHER { language.name() } else { class };
        let found = match class == AS_PHONEMES {
            true => front_end.read(written, None).unwrap().phonemes.unwrap_or_default(),
            false => normalize(written, language, DiacriticsPolicy::default()),
        };
        let (right, all) = outcome.classes.entry(class.to_string()).or_default();
        *all += 1;
        match found == spoken {
            true => *right += 1,
            false => outcome.wrong.push([class, written, spoken, &found].map(str::to_string)),
        }
    }
    outcome
}

/// The rows of the table below this heading of the document: class, right, cases.
fn documented(heading: &str) -> Counts {
    let (_, section) = DOCUMENT.split_once(heading).unwrap_or_else(|| panic!("no `{heading}`"));
    let section =
        section.split("\n### ").next().unwrap_or(section).split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, class, right, all, ..] = cells[..] else { return None };
        Some((class.to_string(), (right.parse().ok()?, all.parse().ok()?)))
    });
    rows.collect()
}

#[track_caller]
fn check(cases: &str, language: Option<Language>, heading: &str, least: usize) {
    let found = read(cases, language);
    let all: usize = found.classes.values().map(|(_, all)| all).sum();
    assert!(all >= least, "{all} cases");
    let shown = found.wrong.iter().map(|wrong| wrong.join("\t")).collect::<Vec<_>>().join("\n");
    let table = found
        .classes
        .iter()
        .map(|(class, (right, all))| format!("| {class} | {right} | {all} |\n"));
    let mut documented = documented(heading);
    let total = documented.remove("all");
    let right: usize = found.classes.values().map(|(right, _)| right).sum();
    assert_eq!(
        documented,
        found.classes,
        "the document states other counts; they are now\n{}| all | {right} | {all} |\nnot right:\n{shown}",
        table.collect::<String>()
    );
    assert_eq!(total, Some((right, all)), "the row `all`");
}

#[test]
fn english_reads_as_the_document_states() {
    check(ENGLISH, Some(Language::English), "### English cases", 1000);
}

#[test]
fn persian_reads_as_the_document_states() {
    check(PERSIAN, Some(Language::Persian), "### Persian cases", 400);
}

#[test]
fn other_languages_read_as_the_document_states() {
    check(OTHER, None, "### Cases in other languages", 380);
}
