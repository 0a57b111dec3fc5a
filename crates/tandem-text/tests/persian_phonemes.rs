//! Persian sentences and how they are said: how many of `readings/fa_phonemes.tsv` come out right, by class.
//!
//! `docs/languages.md` states the result. These tests count again: better or worse changes the document.

use std::collections::BTreeMap;
use tandem_text::{FrontEnd, Language, TextConfig};

const DOCUMENT: &str = include_str!("../../../docs/languages.md");
const CASES: &str = include_str!("readings/fa_phonemes.tsv");
const HOMOGRAPHS: &str = include_str!("readings/fa_homographs.tsv");

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

#[test]
fn persian_words_with_several_readings_are_said_as_the_document_states() {
    let languages = vec![Language::Persian];
    let front_end = FrontEnd::new(&TextConfig { languages, ..TextConfig::default() }).unwrap();
    let rows = HOMOGRAPHS.lines().filter(|line| !line.starts_with('#')).flat_map(|line| {
        let columns: Vec<&str> = line.split('\t').collect();
        let [word, said, sentences] = columns[..] else { panic!("not three columns: {line}") };
        sentences.split('|').map(move |sentence| (word, said, sentence))
    });
    // Every second sentence is never trained on.
    let mut counts = [(0, 0); 2];
    let mut wrong = Vec::new();
    for (number, (word, said, sentence)) in rows.enumerate() {
        let reading = front_end.read(sentence, Some(Language::Persian)).unwrap();
        let phonemes = reading.phonemes.unwrap_or_default();
        let pairs = reading.normalized.split_whitespace().zip(phonemes.split_whitespace());
        let with_ending = |written: &str| written.starts_with(&format!("{word}\u{200C}"));
        let mut own =
            pairs.filter(|(written, _)| *written == word || with_ending(written)).peekable();
        assert!(own.peek().is_some(), "{word} is not in {sentence}");
        let right = own.all(|(written, found)| {
            let rest = found.strip_prefix(said);
            rest.is_some_and(|rest| with_ending(written) || matches!(rest, "" | "e" | "je"))
        });
        let (half, all) = &mut counts[number % 2];
        (*half, *all) = (*half + usize::from(right), *all + 1);
        // Those that are held back are not shown: a rule for one of them would be no longer tested by it.
        if !right && number % 2 == 0 {
            wrong.push(format!("{word} {said}: {sentence}: {phonemes}"));
        }
    }
    let [trained, held] = counts.map(|(right, all)| format!("{right} | {all} |"));
    let rows = format!("| trained on | {trained}\n| held back | {held}\n");
    assert!(DOCUMENT.contains(&rows), "now\n{rows}not right:\n{}", wrong.join("\n"));
}
