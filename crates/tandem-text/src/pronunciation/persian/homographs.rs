//! Persian words with several readings, decided by their sentence: «مرد», «گل», «کرم‌ها», «نه».
//!
//! In: the parts of a sentence, and which of them have an ezafe. Out: the phonemes of a listed word, also with an ending.
//! `persian_homographs.tsv` has the readings and words that speak for each; a near word counts more than a far one, and one
//! that must be beside it counts most. Weights of neighbours, classes and the ezafe are added; they are in `persian.model`,
//! trained on sentences by `xtask/generators/train_persian_reading.py`. Without any sign it is the first reading.

use super::super::super::symbols::ZWNJ;
use super::endings;
use super::list::{self, Class, Entry, class_of};
use super::model::{self, Feature, Value};
use super::parts::Piece;
use super::verbs;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

static FILE: &str = include_str!("../../../pronunciation/persian_homographs.tsv");

/// Parts on each side that are looked at: the time stays linear.
const WINDOW: usize = 10;
const BESIDE: usize = 5;
/// What a cue is worth in the units of the trained weights.
const CUE: i32 = 256;
/// What the first reading has before anything is seen: the sentences that trained the weights have each reading about as often.
const USUAL: i32 = 192;
/// A weight for a class of readings has this number and that of the class; a smaller one is for a reading.
const CLASSES: u8 = 16;

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

/// The first reading that can have the endings of a noun.
pub fn usual_nominal(word: &str) -> Option<Entry> {
    let first = READINGS.get(word)?.iter().find(|reading| can_have_ending(reading))?;
    Some(Entry::new(first.phonemes, first.class))
}

fn can_have_ending(reading: &Reading) -> bool {
    matches!(reading.class, Class::Noun | Class::Adjective | Class::Name)
}

/// The phonemes of a word with several readings. `tags` tells which parts have an ezafe.
pub fn read(pieces: &[Piece], tags: &[bool], place: usize) -> Option<Cow<'static, str>> {
    if pieces[place].text == "نه" {
        return Some(if is_nine(pieces, place) { "noh" } else { "na" }.into());
    }
    let homograph = Homograph::find(&pieces[place].text)?;
    let weights = &model::get().homographs;
    let mut scores = homograph.cues(pieces, place);
    scores.iter_mut().for_each(|score| *score *= CUE);
    scores[0] += USUAL;
    let (own, shared) = homograph.features(pieces, tags, place);
    for (number, weight) in own.iter().chain(&shared).flat_map(|feature| weights.of(*feature)) {
        for (at, reading) in homograph.readings.iter().enumerate() {
            let counts = match number.checked_sub(CLASSES) {
                Some(class) => usize::from(class) == reading.class as usize,
                None => usize::from(number) == at,
            };
            scores[at] += if counts { weight } else { 0 };
        }
    }
    // Of equal scores the first wins.
    let usable =
        |at: &usize| homograph.ending.is_none() || can_have_ending(&homograph.readings[*at]);
    let best = (0..scores.len()).filter(usable).rev().max_by_key(|at| scores[*at])?;
    let said = homograph.readings[best].phonemes;
    match homograph.ending {
        Some(ending) => endings::with_ending(said, ending).map(Cow::from),
        None => Some(said.into()),
    }
}

/// A listed word, with or without an ending.
struct Homograph<'a> {
    word: &'a str,
    /// With the ZWNJ before it, if there is one.
    ending: Option<&'a str>,
    readings: &'static [Reading],
}

impl<'a> Homograph<'a> {
    fn find(text: &'a str) -> Option<Self> {
        if let Some(readings) = READINGS.get(text) {
            return Some(Self { word: text, ending: None, readings });
        }
        let with_ending = |at: usize| {
            let (word, ending) = text.split_at(at);
            let readings = READINGS.get(word)?;
            let fits = readings.iter().any(can_have_ending);
            fits.then_some(Self { word, ending: Some(ending), readings })
        };
        if let Some((at, _)) = text.char_indices().find(|(_, letter)| *letter == ZWNJ) {
            return with_ending(at).filter(|_| endings::is_ending(&text[at + ZWNJ.len_utf8()..]));
        }
        // Three letters at least: «بزم» is not «بز» with an ending.
        let starts = text.char_indices().skip(2).map(|(at, _)| at);
        let long = |at: &usize| text[..*at].chars().count() >= 3 || text[*at..].starts_with("ها");
        let mut found = starts.filter(long).filter_map(|at| {
            endings::is_plain_ending(&text[at..]).then(|| with_ending(at)).flatten()
        });
        // Words that look so are looked up only where there is a homograph in them.
        let listed = || {
            list::word(text).is_some()
                || verbs::find(text).is_some()
                || model::get().word(text).is_some()
        };
        found.next().filter(|_| !listed())
    }

    /// How much the listed cues speak for each reading.
    fn cues(&self, pieces: &[Piece], place: usize) -> Vec<i32> {
        let of = |reading: &Reading| {
            reading.cues.iter().map(|cue| weight(cue, pieces, place)).sum::<usize>()
        };
        self.readings.iter().map(|reading| of(reading) as i32).collect()
    }

    /// The features of this word, and those that all words share.
    fn features(
        &self,
        pieces: &[Piece],
        tags: &[bool],
        place: usize,
    ) -> (Vec<Feature>, Vec<Feature>) {
        let at = |offset: isize| place.checked_add_signed(offset).and_then(|at| pieces.get(at));
        let text = |offset: isize| Value::of(at(offset).map_or("#", |piece| piece.text.as_ref()));
        let class = |offset: isize| {
            let letter = |piece: &Piece| piece.class().map_or("?", Class::letter);
            Value::of(at(offset).map_or("#", letter))
        };
        let before = place.checked_sub(1).is_some_and(|before| tags[before]);
        let ezafe = Value::of(match (before, tags[place]) {
            (false, false) => "0",
            (false, true) => "1",
            (true, false) => "2",
            (true, true) => "3",
        });
        let after = Value::of(pieces[place].after);
        let new = |template: u8| Feature::new(template).with(Value::of(self.word));
        let mut own = vec![
            new(b'a'),
            new(b'b').with(text(-1)),
            new(b'c').with(text(1)),
            new(b'd').with(text(-2)),
            new(b'e').with(text(2)),
            new(b'g').with(class(-1)),
            new(b'h').with(class(1)),
            new(b'i').with(class(-1)).with(class(1)),
            new(b'j').with(ezafe),
            new(b'k').with(after),
            new(b'l').with(Value::of(self.ending.unwrap_or(""))),
        ];
        let (start, end) = (place.saturating_sub(WINDOW), pieces.len().min(place + WINDOW + 1));
        for piece in (start..end).filter(|near| *near != place).map(|near| &pieces[near]) {
            own.push(new(b'f').with(Value::of(&piece.text)));
            own.push(new(b'm').with(Value::of(beginning(&piece.text))));
        }
        let shared = |template: u8| Feature::new(template);
        let shared = vec![
            shared(b'A').with(class(-1)),
            shared(b'B').with(class(1)),
            shared(b'C').with(ezafe),
            shared(b'D').with(after),
            shared(b'E').with(text(-1)),
            shared(b'F').with(text(1)),
        ];
        (own, shared)
    }
}

/// The first four letters, without «می»: a word in most of its forms.
fn beginning(text: &str) -> &str {
    let stem = match text.split_once(ZWNJ) {
        Some(("می" | "نمی", verb)) => verb,
        Some((stem, _)) => stem,
        None => text,
    };
    &stem[..stem.char_indices().nth(4).map_or(stem.len(), |(at, _)| at)]
}

/// What the trained weights see of a word with several readings. For the script that trains them.
#[derive(Debug, serde::Serialize)]
pub struct HomographSight {
    /// Place of the part in the text.
    pub place: usize,
    pub word: String,
    pub readings: Vec<(&'static str, u8)>,
    pub cues: Vec<i32>,
    pub features: Vec<u32>,
    pub shared: Vec<u32>,
}

/// All words of a sentence with several readings.
pub fn sights(pieces: &[Piece], tags: &[bool]) -> Vec<HomographSight> {
    let sight = |place: usize| {
        let homograph = Homograph::find(&pieces[place].text)?;
        let (features, shared) = homograph.features(pieces, tags, place);
        let number = |reading: &Reading| (reading.phonemes, CLASSES + reading.class as u8);
        Some(HomographSight {
            place,
            word: homograph.word.to_owned(),
            readings: homograph.readings.iter().map(number).collect(),
            cues: homograph.cues(pieces, place),
            features: features.iter().map(|feature| feature.hash()).collect(),
            shared: shared.iter().map(|feature| feature.hash()).collect(),
        })
    };
    (0..pieces.len()).filter_map(sight).collect()
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
                let others = &readings[..place];
                assert!(others.iter().all(|other| other.phonemes != reading.phonemes), "{word}");
            }
        }
        assert_eq!(FILE.lines().filter(|line| !line.starts_with('#')).count(), rows().count());
    }
}
