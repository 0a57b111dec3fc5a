//! The built-in English phonemes of a few hundred words and sentences.
//!
//! `goldens/english_pronunciation.tsv` has one text and its phonemes per line. It was written by the
//! program and read by a person; a change of the lexicon, the rules or the letter-to-sound model
//! shows here. To see the new phonemes, run this test: it prints every line that differs.

use proptest::prelude::*;
use tandem_text::{FrontEnd, Language, Pronunciation, SymbolSource, TextConfig};

const GOLDENS: &str = include_str!("goldens/english_pronunciation.tsv");

fn front_end() -> FrontEnd {
    let config = TextConfig { languages: vec![Language::English], ..TextConfig::default() };
    FrontEnd::new(&config).unwrap()
}

#[test]
fn words_and_sentences_have_their_phonemes() {
    let front_end = front_end();
    let lines: Vec<_> = GOLDENS.lines().filter_map(|line| line.split_once('\t')).collect();
    assert!(lines.len() > 450, "{}", lines.len());
    let mut wrong = Vec::new();
    for (text, expected) in lines {
        let found = front_end.read(text, None).unwrap().phonemes.unwrap();
        if found != expected {
            wrong.push(format!("{text}\t{found}\t(was {expected})"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn guessed_words_are_named() {
    let reading = front_end().read("The frimble met a snorg's wug.", None).unwrap();
    assert_eq!(reading.uncertain.guessed, ["frimble", "snorg's", "wug"]);
    assert!(reading.uncertain.as_characters.is_empty());
}

#[test]
fn letters_of_other_scripts_stay_characters() {
    let reading = front_end().read("the word мир means peace", None).unwrap();
    assert_eq!(reading.phonemes.as_deref(), Some("ðə wˈɝd мир mˈinz pˈis"));
    assert_eq!(reading.uncertain.as_characters, ["мир"]);
}

#[test]
fn characters_can_be_asked_for_and_built_in_needs_a_language_that_has_it() {
    let sources = |pronunciation, languages: &[Language]| {
        let languages = languages.to_vec();
        let config = TextConfig { pronunciation, languages, ..TextConfig::default() };
        let found = FrontEnd::new(&config)?;
        Ok::<_, tandem_text::TextError>(found.sources().map(|(_, source)| source).collect())
    };
    let both = [Language::English, Language::German];
    let auto: Vec<_> = sources(Pronunciation::Auto, &both).unwrap();
    assert_eq!(auto, [SymbolSource::BuiltIn, SymbolSource::Characters]);
    let with_persian = [Language::English, Language::Persian];
    let auto: Vec<_> = sources(Pronunciation::Auto, &with_persian).unwrap();
    assert_eq!(auto, [SymbolSource::BuiltIn; 2]);
    let english: Vec<_> = sources(Pronunciation::BuiltInEnglish, &with_persian).unwrap();
    assert_eq!(english, [SymbolSource::BuiltIn, SymbolSource::Characters]);
    let characters: Vec<_> = sources(Pronunciation::Characters, &both).unwrap();
    assert_eq!(characters, [SymbolSource::Characters; 2]);
    let refused = sources(Pronunciation::BuiltIn, &both).unwrap_err();
    assert_eq!(refused.to_string(), "there are no built-in phonemes for `de`");
}

#[test]
fn settings_of_earlier_versions_are_read() {
    let read = |json: &str| serde_json::from_str::<TextConfig>(json).unwrap().pronunciation;
    assert_eq!(read(r#"{"symbols":"characters"}"#), Pronunciation::Characters);
    assert_eq!(read(r#"{"symbols":"phonemes"}"#), Pronunciation::Espeak);
    assert_eq!(read("{}"), Pronunciation::Auto);
    let saved = serde_json::to_string(&TextConfig::default()).unwrap();
    assert!(saved.contains(r#""pronunciation":"auto""#), "{saved}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_english_text_has_phonemes_of_the_table(text in "[a-zA-Z' ,.;:!?()\"-]{1,80}") {
        let front_end = front_end();
        if let Ok(reading) = front_end.read(&text, None) {
            let phonemes = reading.phonemes.unwrap();
            prop_assert!(phonemes.chars().all(|symbol| front_end.table().id(symbol).is_some()));
            prop_assert_eq!(reading.transcript.display(front_end.table()).to_string(), phonemes);
        }
    }
}
