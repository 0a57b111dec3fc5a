//! English sentences: homographs, weak forms, letters, unknown words.

use super::super::words::sentences;
use super::*;

fn read_english(text: &str) -> (String, Uncertain) {
    let mut uncertain = Uncertain::default();
    let read = read(Language::English, &sentences(text), &mut uncertain);
    (read, uncertain)
}

#[track_caller]
fn check(text: &str, ipa: &str) {
    assert_eq!(read_english(text).0, ipa, "{text}");
}

#[test]
fn a_sentence_keeps_its_marks() {
    check("hello, world!", "həlˈoʊ, wˈɝld!");
    check("\"yes,\" he said (twice). well-known.", "\"jˈɛs,\" hi sˈɛd (twˈaɪs). wˈɛlnˈoʊn.");
}
