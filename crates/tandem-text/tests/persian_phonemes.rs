//! Persian sentences and how they are said: how many of `readings/fa_phonemes.tsv` come out right, by class.
//!
//! `docs/languages.md` states the result. This test counts again: better or worse changes the document.

use std::collections::BTreeMap;
use tandem_text::{FrontEnd, Language, TextConfig};

const DOCUMENT: &str = include_str!("../../../docs/languages.md");
const CASES: &str = include_str!("readings/fa_phonemes.tsv");

#[test]
fn persian_sentences_are_said_as_the_document_states() {
    let languages = vec![Language::Persian];
    let front_end = FrontEnd::new(&TextConfig { languages, ..TextConfig::default() }).unwrap();
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut wrong = Vec::new();
    for line in CASES.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [class, written, said] = columns[..] else { panic!("not three columns: {line}") };
        let reading = front_end.read(written, Some(Language::Persian)).unwrap();
        let found = reading.phonemes.unwrap_or_default();
        let (right, all) = counts.entry(class).or_default();
        *all += 1;
        if found == said {
            *right += 1;
        } else {
            wrong.push(format!("{written}\t{said}\t{found}"));
        }
    }
    let all: usize = counts.values().map(|(_, all)| all).sum();
    assert!(all >= 60, "{all} cases");
    for (class, (right, all)) in &counts {
        let row = format!("| {class} | {right} | {all} |");
        assert!(DOCUMENT.contains(&row), "now {row}\nnot right:\n{}", wrong.join("\n"));
    }
}
