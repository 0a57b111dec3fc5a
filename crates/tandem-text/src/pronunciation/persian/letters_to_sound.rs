//! Guesses the phonemes of a Persian word from its letters.
//!
//! In: a word. Out: IPA for every letter that the model knows; other characters have no sound. A linear model decides
//! letter by letter, from the letters around it and the sounds before it; `xtask/generators/train_persian_reading.py` trains it.

use super::model::{self, Feature, Model, Value};

/// The phonemes of a word.
pub fn guess(word: &str) -> String {
    let model = model::get();
    let letters: Vec<char> = word.chars().filter(|c| !model.choices(*c).is_empty()).collect();
    let mut out = String::with_capacity(2 * word.len());
    let mut before = ["#", "#"];
    for place in 0..letters.len() {
        let sound = choose(model, &letters, place, before);
        out.push_str(sound);
        before = [if sound.is_empty() { "_" } else { sound }, before[0]];
    }
    out
}

/// The sound of the letter at `place`. `before` has the sounds before it, the last one first.
fn choose(model: &Model, letters: &[char], place: usize, before: [&str; 2]) -> &'static str {
    let choices = model.choices(letters[place]);
    let mut scores = [0i32; 256];
    for feature in features(letters, place, before) {
        for (choice, weight) in model.letters.of(feature) {
            scores[usize::from(choice)] += weight;
        }
    }
    // Of equal scores the first wins.
    let best = choices.iter().rev().max_by_key(|choice| scores[usize::from(**choice)]);
    best.map_or("", |choice| model.sounds[usize::from(*choice)])
}

/// The templates of `letter_features` in the script.
fn features(letters: &[char], place: usize, before: [&str; 2]) -> [Feature; 28] {
    let of_char = |letter: char| Value::of(letter.encode_utf8(&mut [0; 4]));
    // Letters from four before the place to four after it.
    let at: [Value; 9] = std::array::from_fn(|slot| {
        let letter = (place + slot).checked_sub(4).and_then(|at| letters.get(at));
        of_char(*letter.unwrap_or(&'#'))
    });
    let number = |count: usize| of_char(char::from(b'0' + count.min(9) as u8));
    let (start, end) = (number(place), number(letters.len() - place));
    let [last, second] = before.map(Value::of);
    let tip = of_char(before[0].chars().next_back().unwrap_or('#'));
    let here = |template: u8| Feature::new(template).with(at[4]);
    let l = |feature: Feature, offsets: &[usize]| {
        offsets.iter().fold(feature, |feature, offset| feature.with(at[*offset]))
    };
    [
        here(b'a'),
        l(here(b'b'), &[1]),
        l(here(b'c'), &[2]),
        l(here(b'd'), &[3]),
        l(here(b'e'), &[5]),
        l(here(b'f'), &[6]),
        l(here(b'g'), &[7]),
        l(here(b'h'), &[2, 3]),
        l(here(b'i'), &[3, 5]),
        l(here(b'j'), &[5, 6]),
        l(here(b'k'), &[1, 2, 3]),
        l(here(b'l'), &[2, 3, 5]),
        l(here(b'm'), &[3, 5, 6]),
        l(here(b'n'), &[5, 6, 7]),
        l(here(b'o'), &[2, 3, 5, 6]),
        l(here(b'p'), &[3, 5, 6, 7]),
        l(here(b'q'), &[5, 6, 7, 8]),
        l(here(b'r'), &[0, 1, 2, 3]),
        here(b's').with(last),
        l(here(b't').with(last), &[5]),
        l(here(b'u').with(last), &[5, 6]),
        here(b'v').with(last).with(second),
        l(here(b'w').with(last).with(second), &[5]),
        l(here(b'x').with(tip), &[5, 6, 7]),
        here(b'y').with(start),
        here(b'z').with(end),
        l(here(b'A').with(start).with(end), &[3, 5]),
        l(here(b'B').with(tip).with(end), &[5]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::list;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn unknown_words_are_read_by_their_letters() {
        for (word, said) in [("شبدیز", "ʃabdiz"), ("پیمانکارک", "pejmɑnkɑrk")] {
            assert_eq!(guess(word), said, "{word}");
        }
    }

    /// The model has seen these words; a file that does not belong to this decoder reads few of them.
    #[test]
    fn most_listed_words_are_read_as_they_are_listed() {
        let listed: Vec<_> = list::rows().filter(|row| row.2 == "noun").step_by(7).collect();
        let plain = |said: &str| said.replace('ʔ', "");
        let right = listed.iter().filter(|row| plain(&guess(row.0)) == plain(row.1)).count();
        assert!(right * 100 > listed.len() * 80, "{right} of {}", listed.len());
    }

    proptest! {
        #[test]
        fn any_text_is_read(word in "\\PC{0,60}", more in "[آابپتثجچحخدذرزژسشصضطظعغفقکگلمنوهی]{0,80}") {
            guess(&word);
            let said = guess(&more);
            prop_assert!(said.chars().all(|c| "ɑaeoiubptszhxdrʒfqkɡlmnvjʃʔw".contains(c)), "{}", said);
        }
    }
}
