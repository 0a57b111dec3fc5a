//! The rules against espeak-ng itself, and against the built-in phonemes.

use super::*;
use crate::{FrontEnd, Pronunciation, TextConfig};

const BOTH: [Language; 2] = [Language::English, Language::Persian];
const WORDS_AND_SENTENCES: &str = include_str!("../../tests/goldens/english_pronunciation.tsv");
const ENGLISH_SENTENCES: &str = include_str!("../../../../xtask/generators/demo_corpus/en.txt");
const PERSIAN_SENTENCES: &str = include_str!("../../../../xtask/generators/demo_corpus/fa.txt");
const PERSIAN_WORDS: &str = include_str!("../../pronunciation/persian.tsv");

#[track_caller]
fn check(language: Language, espeak: &str, built_in: &str) {
    assert_eq!(rewrite(language, espeak), built_in, "{espeak}");
}

#[test]
fn english_words_have_the_symbols_of_the_built_in_phonemes() {
    let cases = [
        ("ˈɔːθɚɹ ʌvðə dˈeɪndʒɚ", "ˈɔθɚ əv ðə dˈeɪndʒɚ"),
        ("wˈɜːld, wɜː", "wˈɝld, wɚ"),
        ("bˈʌʔn̩", "bˈʌtən"),
        ("wiːʲ ˈɛvɚ fɚɡˈɛt ɪt.", "wi ˈɛvɚ fɚɡˈɛt ɪt."),
        ("fˈoːɹ", "fˈɔɹ"),
        ("wˈɔːɾɚ", "wˈɔtɚ"),
        ("ɐbˈʌv ænd bᵻlˈoʊ", "əbˈʌv ənd bɪlˈoʊ"),
        ("ðɪ ˈæpəl", "ði ˈæpəl"),
    ];
    cases.iter().for_each(|(espeak, built_in)| check(Language::English, espeak, built_in));
}

#[test]
fn persian_words_lose_stress_and_length() {
    check(Language::Persian, "dˈoːrɑn", "dowrɑn");
    check(Language::Persian, "eʃˈɑreː", "eʃɑre");
    check(Language::Persian, "bˌiːbˌiːsˈiː", "bibisi");
    check(Language::Persian, "fˈeɪsbʊk", "fejsbuk");
}

/// Alone, in the middle of a word, after a stress mark, twice.
#[test]
fn every_symbol_of_the_ipa_becomes_a_trained_one() {
    for language in BOTH {
        let trained = trained_symbols(language).unwrap();
        for symbol in ipa() {
            let texts =
                [format!("{symbol}"), format!("n{symbol}ɹ"), format!("ˈ{symbol}{symbol}ð ɪ")];
            for text in texts {
                let found = rewrite(language, &text);
                let stays = found.chars().find(|c| !trained.contains(*c));
                assert_eq!(stays, None, "{language:?}: {text} became {found}");
            }
        }
    }
}

/// A program may send built-in phonemes to the same graph.
#[test]
fn built_in_phonemes_stay_as_they_are() {
    let english = WORDS_AND_SENTENCES.lines().filter_map(|line| Some(line.split_once('\t')?.1));
    english.for_each(|phonemes| check(Language::English, phonemes, phonemes));
    let rows = PERSIAN_WORDS.lines().filter(|line| !line.starts_with('#'));
    let persian = rows.filter_map(|line| line.split('\t').nth(1));
    persian.for_each(|phonemes| check(Language::Persian, phonemes, phonemes));
}

#[test]
fn a_rule_writes_at_most_two_symbols_and_only_of_the_table() {
    let table = crate::SymbolTable::standard();
    for rule in BOTH.into_iter().flat_map(rules) {
        assert!(rule.into.chars().count() <= 2, "{rule:?}");
        assert!(table.id(rule.symbol).is_some(), "{rule:?}");
        assert!(rule.into.chars().all(|symbol| table.id(symbol).is_some()), "{rule:?}");
    }
}

fn sentences(file: &'static str) -> impl Iterator<Item = &'static str> {
    file.lines().filter_map(|line| line.split('|').next())
}

/// The phonemes of texts by espeak-ng, rewritten, and by the front end.
fn both_readings(language: Language, texts: &[&str]) -> Vec<(String, String)> {
    let read = |pronunciation| {
        let config = TextConfig { languages: vec![language], pronunciation, ..Default::default() };
        let rows: Vec<_> = texts.iter().map(|text| (*text, Some(language))).collect();
        let read = FrontEnd::new(&config).unwrap().read_many(&rows).unwrap();
        read.into_iter().map(|text| text.unwrap().phonemes.unwrap()).collect::<Vec<_>>()
    };
    let espeak = read(Pronunciation::Espeak).into_iter().map(|text| rewrite(language, &text));
    espeak.zip(read(Pronunciation::BuiltIn)).collect()
}

/// The share of symbols that differ; all symbols must be trained.
fn difference(language: Language, texts: &[&str]) -> f64 {
    let trained = trained_symbols(language).unwrap();
    let (mut wrong, mut all) = (0, 0);
    for (espeak, built_in) in both_readings(language, texts) {
        let unknown: Vec<char> = espeak.chars().filter(|c| !trained.contains(*c)).collect();
        assert!(unknown.is_empty(), "{language:?}: {espeak} has {unknown:?}");
        let [found, wanted] = [&espeak, &built_in].map(|text| text.chars().collect::<Vec<_>>());
        wrong += strsim::generic_levenshtein(&found, &wanted);
        all += wanted.len();
    }
    wrong as f64 / all as f64
}

#[test]
fn what_espeak_says_in_english_is_trained_and_close_to_the_built_in_phonemes() {
    let golden = WORDS_AND_SENTENCES.lines().filter_map(|line| Some(line.split_once('\t')?.0));
    let texts: Vec<&str> = golden.chain(sentences(ENGLISH_SENTENCES)).collect();
    let difference = difference(Language::English, &texts);
    assert!(difference < 0.07, "{difference}");
}

#[test]
fn what_espeak_says_in_persian_is_trained_and_close_to_the_built_in_phonemes() {
    let rows = PERSIAN_WORDS.lines().filter(|line| !line.starts_with('#'));
    let words = rows.filter(|row| !row.ends_with("present") && !row.ends_with("past"));
    let words = words.filter_map(|row| row.split('\t').next());
    let texts: Vec<&str> = sentences(PERSIAN_SENTENCES).chain(words.step_by(10)).collect();
    let difference = difference(Language::Persian, &texts);
    assert!(difference < 0.04, "{difference}");
}
