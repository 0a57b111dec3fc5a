//! Persian words with several readings, decided by their neighbours: «مرد», «گل», «کرم», «نه».
//!
//! In: the parts of a sentence. Out: the phonemes of a listed word. `persian_homographs.tsv` has the readings and the words
//! that speak for each; a near word counts more than a far one, and a word that must be beside it counts most. Without any
//! sign it is the first reading.

use super::super::super::symbols::ZWNJ;
use super::list::{Class, Entry, class_of};
use super::parts::Piece;
use std::collections::HashMap;
use std::sync::LazyLock;

static FILE: &str = include_str!("../../../pronunciation/persian_homographs.tsv");

/// Parts on each side that are looked at: the time stays linear.
const WINDOW: usize = 10;
const BESIDE: usize = 5;

struct Reading {
    phonemes: &'static str,
    class: Class,
    cues: Vec<&'static str>,
}

static READINGS: LazyLock<HashMap<&'static str, Vec<Reading>>> = LazyLock::new(|| {
    let mut readings: HashMap<_, Vec<Reading>> = HashMap::new();
    for (word, phonemes, class, cues) in rows() {
        let cues = cues.split(' ').filter(|cue| !cue.is_empty()).collect();
        readings.entry(word).or_default().push(Reading { phonemes, class: class_of(class), cues });
    }
    readings
});

/// Identifies the contents: part of the cache key.
pub fn fingerprint() -> u64 {
    xxhash_rust::xxh3::xxh3_64(FILE.as_bytes())
}

fn rows() -> impl Iterator<Item = (&'static str, &'static str, &'static str, &'static str)> {
    FILE.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let mut columns = line.split('\t');
        Some((columns.next()?, columns.next()?, columns.next()?, columns.next()?))
    })
}

/// The first reading of a word: what the classes of its neighbours can rely on.
pub fn usual(word: &str) -> Option<Entry> {
    let first = READINGS.get(word)?.first()?;
    Some(Entry::new(first.phonemes, first.class))
}

/// The phonemes of a word with several readings.
pub fn read(pieces: &[Piece], place: usize) -> Option<&'static str> {
    let text = pieces[place].text.as_ref();
    if text == "نه" {
        return Some(if is_nine(pieces, place) { "noh" } else { "na" });
    }
    let readings = READINGS.get(text)?;
    let mut best = (0, readings.first()?);
    for reading in readings {
        let score: usize = reading.cues.iter().map(|cue| weight(cue, pieces, place)).sum();
        if score > best.0 {
            best = (score, reading);
        }
    }
    Some(best.1.phonemes)
}

/// How much a cue speaks for its reading here.
fn weight(cue: &str, pieces: &[Piece], place: usize) -> usize {
    if cue == ">x" {
        return if matches!(pieces[place].after, "x" | "b") { BESIDE } else { 0 };
    }
    if let Some(cue) = cue.strip_prefix('<') {
        let before = place.checked_sub(1).map(|at| &pieces[at]);
        return before.filter(|piece| agrees(cue, piece)).map_or(0, |_| BESIDE);
    }
    if let Some(cue) = cue.strip_prefix('>') {
        return pieces.get(place + 1).filter(|piece| agrees(cue, piece)).map_or(0, |_| BESIDE);
    }
    let from = place.saturating_sub(WINDOW);
    let window = &pieces[from..pieces.len().min(place + WINDOW + 1)];
    let found = window.iter().enumerate().map(|(at, piece)| match (from + at).abs_diff(place) {
        0 => 0,
        _ if !agrees(cue, piece) => 0,
        1 => 3,
        2 | 3 => 2,
        _ => 1,
    });
    found.max().unwrap_or(0)
}

/// A class, a word with any ending, or the beginning of a longer word.
fn agrees(cue: &str, piece: &Piece) -> bool {
    if cue.starts_with(|c: char| c.is_ascii_uppercase()) {
        return piece.class().is_some_and(|class| class.letter() == cue);
    }
    let Some(rest) = piece.text.strip_prefix(cue) else { return false };
    rest.is_empty() || rest.starts_with(ZWNJ) || cue.chars().nth(2).is_some()
}

/// «نه» is nine beside numbers and before what is counted, and «no» otherwise.
fn is_nine(pieces: &[Piece], place: usize) -> bool {
    let before = place.checked_sub(1).map(|at| &pieces[at]);
    let next = pieces.get(place + 1).filter(|_| pieces[place].after == "s");
    let is = |piece: &Piece, classes: &[Class]| {
        piece.class().is_some_and(|class| classes.contains(&class))
    };
    before.is_some_and(|before| {
        let after_word = matches!(before.text.as_ref(), "ساعت" | "عدد" | "شماره" | "ممیز");
        let number = |piece: &Piece| is(piece, &[Class::Number]);
        let sum = before.text == "و" && place >= 2 && number(&pieces[place - 2]);
        after_word || number(before) || sum
    }) || next.is_some_and(|next| is(next, &[Class::Number, Class::Noun]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_has_two_readings_of_known_classes_and_they_differ() {
        assert!(READINGS.len() >= 90, "{}", READINGS.len());
        for (word, readings) in READINGS.iter() {
            assert!(readings.len() >= 2, "{word}");
            for (place, reading) in readings.iter().enumerate() {
                let sounds = "ɑaeoiubptszhxdrʒfqkɡlmnvjʃʔ";
                assert!(reading.phonemes.chars().all(|c| sounds.contains(c)), "{word}");
                assert!(
                    place == 0 || !reading.cues.is_empty(),
                    "{word} has a reading without cues"
                );
                let others = &readings[..place];
                assert!(others.iter().all(|other| other.phonemes != reading.phonemes), "{word}");
            }
        }
        assert_eq!(FILE.lines().filter(|line| !line.starts_with('#')).count(), rows().count());
    }
}
