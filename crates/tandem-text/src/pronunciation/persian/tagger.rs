//! Where the ezafe follows a word: a linear model over the sentence.
//!
//! In: the parts of a sentence with their classes. Out: for each, whether an ezafe follows it. The weights are trained by
//! `xtask/generators/train_persian_reading.py`; the best sequence of all decisions is found, not the best decision of each.

use super::model::{self, Feature, Value, Weights};
use std::sync::LazyLock;

/// What the model knows of a part of a sentence.
#[derive(Clone, Debug)]
pub struct Part {
    /// Without vowel signs.
    pub text: String,
    /// A letter for its class; of an unknown word `?` and its last letter.
    pub class: String,
    /// The last two sounds, where they are known without a guess.
    pub sounds: String,
    /// What follows: `s` a space, `j` a ZWNJ, `b` a mark, `x` the end.
    pub after: &'static str,
}

const OUTSIDE: &str = "#";
const NEVER: i32 = 1 << 24;

/// Whether an ezafe follows each part. The time is linear.
pub fn tag(parts: &[Part]) -> Vec<bool> {
    let values: Vec<_> = parts.iter().map(Values::of).collect();
    let weights = &model::get().ezafe;
    // The best way to each decision: its score, and the decision before it.
    let mut best = [0i32, i32::MIN / 2];
    let mut back: Vec<[bool; 2]> = Vec::with_capacity(parts.len());
    for (place, part) in parts.iter().enumerate() {
        // Nothing follows the last part.
        let scores = match part.after {
            "x" => [-NEVER; 2],
            _ => scores(weights, &values, place),
        };
        let mut next = [0; 2];
        let mut from = [false; 2];
        for now in [0, 1] {
            let score = |before: usize| best[before] + if now == 1 { scores[before] } else { 0 };
            from[now] = score(1) > score(0);
            next[now] = score(usize::from(from[now]));
        }
        best = next;
        back.push(from);
    }
    let mut now = best[1] > best[0];
    let mut tags = vec![false; parts.len()];
    for (tag, from) in tags.iter_mut().zip(&back).rev() {
        *tag = now;
        now = from[usize::from(now)];
    }
    tags
}

/// The hashes of what features use of a part.
struct Values {
    text: Value,
    last: [Value; 3],
    first: Value,
    class: Value,
    sounds: Value,
    sound: Value,
    after: Value,
    length: Value,
}

impl Values {
    fn of(part: &Part) -> Self {
        let text = part.text.as_str();
        let length = text.chars().take(6).count() as u8;
        Self {
            text: Value::of(text),
            last: [1, 2, 3].map(|letters| Value::of(tail(text, letters))),
            first: Value::of(head(text, 2)),
            class: Value::of(&part.class),
            sounds: Value::of(&part.sounds),
            sound: Value::of(tail(&part.sounds, 1)),
            after: Value::of(part.after),
            length: Value::of(char::from(b'0' + length).encode_utf8(&mut [0; 4])),
        }
    }

    /// Before the first and after the last part.
    fn outside() -> Self {
        Self::of(&Part {
            text: OUTSIDE.into(),
            class: OUTSIDE.into(),
            sounds: String::new(),
            after: OUTSIDE,
        })
    }
}

static EDGE: LazyLock<Values> = LazyLock::new(Values::outside);

/// The score of an ezafe at `place` without and with one before it.
fn scores(weights: &Weights, parts: &[Values], place: usize) -> [i32; 2] {
    let sum = |features: &[Feature]| -> i32 {
        features.iter().flat_map(|feature| weights.of(*feature)).map(|(_, weight)| weight).sum()
    };
    let local = sum(&features(parts, place));
    let now = &parts[place];
    let next = parts.get(place + 1).unwrap_or(&EDGE).class;
    ["0", "1"].map(|before| {
        let before = Value::of(before);
        let new = |template: u8| Feature::new(template).with(before);
        local
            + sum(&[
                new(b'T'),
                new(b'U').with(now.class),
                new(b'V').with(now.class).with(next),
                new(b'W').with(now.text),
            ])
    })
}

/// The templates of `ezafe_features` in the script.
fn features(parts: &[Values], place: usize) -> [Feature; 34] {
    let at = |offset: isize| {
        place.checked_add_signed(offset).and_then(|place| parts.get(place)).unwrap_or(&EDGE)
    };
    let (now, next, second, before) = (&parts[place], at(1), at(2), at(-1));
    let (c, cn, cs, cp) = (now.class, next.class, second.class, before.class);
    let [_, last_two, last_three] = now.last;
    let [next_one, next_two, next_three] = next.last;
    let f = Feature::new;
    [
        f(b'a'),
        f(b'b').with(now.text),
        f(b'c').with(next.text),
        f(b'd').with(before.text),
        f(b'e').with(now.text).with(next.text),
        f(b'f').with(now.last[0]),
        f(b'g').with(last_two),
        f(b'h').with(last_three),
        f(b'i').with(next_one),
        f(b'j').with(next_two),
        f(b'k').with(next_three),
        f(b'l').with(next.first),
        f(b'm').with(now.after),
        f(b'n').with(c),
        f(b'o').with(cn),
        f(b'p').with(c).with(cn),
        f(b'q').with(cp).with(c),
        f(b'r').with(c).with(cn).with(cs),
        f(b's').with(second.text),
        f(b't').with(now.sound),
        f(b'u').with(now.sounds),
        f(b'v').with(last_two).with(next_two),
        f(b'w').with(now.text).with(cn),
        f(b'x').with(c).with(next.text),
        f(b'y').with(now.length),
        f(b'z').with(cp).with(c).with(cn),
        f(b'A').with(before.text).with(now.text),
        f(b'B').with(now.after).with(c).with(cn),
        f(b'C').with(last_two).with(cn),
        f(b'D').with(c).with(next_two),
        f(b'E').with(cn).with(cs).with(at(3).class),
        f(b'F').with(cn).with(next.after),
        f(b'G').with(c).with(cn).with(second.text),
        f(b'H').with(at(-2).class).with(cp).with(c),
    ]
}

/// The last letters.
fn tail(text: &str, letters: usize) -> &str {
    let start = text.char_indices().rev().nth(letters - 1).map_or(0, |(at, _)| at);
    &text[start..]
}

/// The first letters.
fn head(text: &str, letters: usize) -> &str {
    let end = text.char_indices().nth(letters).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_ends_of_a_word_are_letters() {
        assert_eq!((tail("کتاب", 1), tail("کتاب", 3), tail("ما", 3)), ("ب", "تاب", "ما"));
        assert_eq!((head("کتاب", 2), head("", 2), tail("", 1)), ("کت", "", ""));
    }

    proptest! {
        #[test]
        fn any_parts_have_as_many_tags(texts in prop::collection::vec("\\PC{0,12}", 0..40)) {
            let part = |text: &String| Part {
                text: text.clone(), class: "?".into(), sounds: String::new(), after: "s",
            };
            let parts: Vec<_> = texts.iter().map(part).collect();
            let tags = tag(&parts);
            prop_assert_eq!(tags.len(), parts.len());
            prop_assert_eq!(tag(&parts), tags);
        }
    }
}
