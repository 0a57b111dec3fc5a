//! The phonemes of English words in their sentence.
//!
//! In: the words of a normalised sentence, and which one is meant. Out: its IPA. The order is: letters,
//! weak forms (`the`, `of`), homographs, the lexicon, forms of known words, letters one by one
//! where there is no vowel, and the letter-to-sound model.

use super::super::words::Word;
use super::arpabet::{Phone, phones, write_ipa};
use super::{ListedAs, Outcome, homographs, inflection, letter_to_sound, packed_lexicon};

/// Appends the phonemes of a word.
pub fn read(words: &[Word], place: usize, out: &mut String) -> Outcome {
    let text = words[place].text.as_str();
    // A lexicon of the user may spell a word as several.
    if text.contains(' ') {
        return spelled_apart(text, out);
    }
    let is_word = |text: &str| {
        text.bytes().all(|b| b.is_ascii_lowercase() || b == b'\'') && text.contains(|c| c != '\'')
    };
    if !is_word(text) {
        return Outcome::Unknown;
    }
    if let Some(letter) = letter(words, place) {
        write_ipa(&phones(letter), out);
        return Outcome::Known;
    }
    if let Some(weak) = weak_form(words, place) {
        out.push_str(weak);
        return Outcome::Known;
    }
    if let Some(found) = homographs::read(words, place) {
        write_ipa(&found, out);
        return Outcome::Known;
    }
    if let Some(found) = packed_lexicon::find(text) {
        let weak_at_the_end = place > 0 && is_object_pronoun(text);
        let unstressed = is_function_word(text) && (weak_at_the_end || !ends_phrase(words, place));
        let kept = |phone: Phone| if unstressed { phone.with_stress(0) } else { phone };
        found.for_each(|phone| write_ipa(&[kept(phone)], out));
        return Outcome::Known;
    }
    if let Some(found) = inflection::derive(text) {
        write_ipa(&found, out);
        return Outcome::Known;
    }
    guess(text, out)
}

/// How the dictionary, with the forms of its words, has `word`.
pub fn listed(word: &str) -> Option<ListedAs> {
    let Some(found) = packed_lexicon::find(word) else {
        let is_long = word.len() > 3;
        return (is_long && inflection::derive(word).is_some()).then_some(ListedAs::Word);
    };
    let names = word.bytes().filter_map(letter_name).flat_map(phones);
    let spelled =
        found.map(|phone| phone.with_stress(0)).eq(names.map(|phone| phone.with_stress(0)));
    Some(if spelled { ListedAs::Letters } else { ListedAs::Word })
}

fn spelled_apart(text: &str, out: &mut String) -> Outcome {
    let word = |text: &str| Word { text: text.to_owned(), tail: " ".into(), ..Word::default() };
    let words: Vec<Word> = text.split(' ').filter(|part| !part.is_empty()).map(word).collect();
    let before = out.len();
    let mut outcome = Outcome::Known;
    for place in 0..words.len() {
        if place > 0 {
            out.push(' ');
        }
        match read(&words, place, out) {
            Outcome::Known => {}
            Outcome::Guessed => outcome = Outcome::Guessed,
            Outcome::Unknown => {
                out.truncate(before);
                return Outcome::Unknown;
            }
        }
    }
    outcome
}

fn guess(text: &str, out: &mut String) -> Outcome {
    let (stem, possessive) = match text.strip_suffix("'s") {
        Some(stem) => (stem, true),
        None => (text, false),
    };
    let mut found: Vec<Phone> = Vec::new();
    if stem.contains(['a', 'e', 'i', 'o', 'u', 'y']) {
        found = letter_to_sound::guess(stem);
    } else {
        stem.bytes().filter_map(letter_name).for_each(|name| found.extend(phones(name)));
    }
    if found.is_empty() {
        return Outcome::Unknown;
    }
    if possessive {
        found = inflection::with_s(found);
    }
    write_ipa(&found, out);
    Outcome::Guessed
}

/// The name of a letter that stands alone, as in `b b c`, with or without `'s`.
fn letter(words: &[Word], place: usize) -> Option<&'static str> {
    let text = words[place].text.as_str();
    let stem = text.strip_suffix("'s").unwrap_or(text);
    let &[letter] = stem.as_bytes() else { return None };
    if stem.len() < text.len() {
        return letter_plural(letter);
    }
    if words[place].spelled {
        return letter_name(letter);
    }
    // Without a mark, `a` and `i` are letters among other letters without a mark only: `a` before `t v` with marks is an article.
    let spelled = |word: Option<&Word>| {
        let letter = |word: &Word| word.text.len() == 1 && !matches!(word.text.as_str(), "a" | "i");
        word.is_some_and(|word| !word.spelled && letter(word))
    };
    let before = place.checked_sub(1).and_then(|before| words.get(before));
    let after = words.get(place + 1).filter(|_| words[place].tail == " ");
    let among = spelled(before.filter(|word| word.tail == " ")) || spelled(after);
    if matches!(letter, b'a' | b'i') && !among && !ends_phrase(words, place) {
        return None;
    }
    letter_name(letter)
}

/// The names of the letters.
fn letter_name(letter: u8) -> Option<&'static str> {
    const NAMES: [&str; 26] = [
        "EY1",
        "B IY1",
        "S IY1",
        "D IY1",
        "IY1",
        "EH1 F",
        "JH IY1",
        "EY1 CH",
        "AY1",
        "JH EY1",
        "K EY1",
        "EH1 L",
        "EH1 M",
        "EH1 N",
        "OW1",
        "P IY1",
        "K Y UW1",
        "AA1 R",
        "EH1 S",
        "T IY1",
        "Y UW1",
        "V IY1",
        "D AH1 B AH0 L Y UW0",
        "EH1 K S",
        "W AY1",
        "Z IY1",
    ];
    NAMES.get(usize::from(letter.checked_sub(b'a')?)).copied()
}

/// The names of the letters in `dvd's` and `p's and q's`.
fn letter_plural(letter: u8) -> Option<&'static str> {
    const NAMES: [&str; 26] = [
        "EY1 Z",
        "B IY1 Z",
        "S IY1 Z",
        "D IY1 Z",
        "IY1 Z",
        "EH1 F S",
        "JH IY1 Z",
        "EY1 CH IH0 Z",
        "AY1 Z",
        "JH EY1 Z",
        "K EY1 Z",
        "EH1 L Z",
        "EH1 M Z",
        "EH1 N Z",
        "OW1 Z",
        "P IY1 Z",
        "K Y UW1 Z",
        "AA1 R Z",
        "EH1 S IH0 Z",
        "T IY1 Z",
        "Y UW1 Z",
        "V IY1 Z",
        "D AH1 B AH0 L Y UW0 Z",
        "EH1 K S IH0 Z",
        "W AY1 Z",
        "Z IY1 Z",
    ];
    NAMES.get(usize::from(letter.checked_sub(b'a')?)).copied()
}

/// Words with another vowel inside of a phrase; that of `the` and `to` depends on the next word.
fn weak_form(words: &[Word], place: usize) -> Option<&'static str> {
    let (weak, before_vowel) = match words[place].text.as_str() {
        "a" => ("ə", "ə"),
        "an" => ("ən", "ən"),
        "i" => ("aɪ", "aɪ"),
        "the" => ("ðə", "ði"),
        "to" => ("tə", "tu"),
        "was" => ("wəz", "wəz"),
        "from" => ("fɹəm", "fɹəm"),
        _ => return None,
    };
    if ends_phrase(words, place) {
        return None;
    }
    let vowel_next = words.get(place + 1).is_some_and(|next| begins_with_vowel(&next.text));
    Some(if vowel_next { before_vowel } else { weak })
}

/// Whether the first sound is a vowel: not in `use`, `one`; in `hour`.
fn begins_with_vowel(word: &str) -> bool {
    if let &[letter] = word.as_bytes() {
        return matches!(
            letter,
            b'a' | b'e' | b'f' | b'h' | b'i' | b'l'..=b'o' | b'r' | b's' | b'x'
        );
    }
    let first = packed_lexicon::find(word).and_then(|mut found| found.next());
    match first {
        Some(phone) => phone.is_vowel(),
        None => word.starts_with(['a', 'e', 'i', 'o', 'u']),
    }
}

/// The last word before a mark or the end: there, weak words are strong.
fn ends_phrase(words: &[Word], place: usize) -> bool {
    place + 1 == words.len() || !matches!(words[place].tail.as_str(), " " | "-")
}

/// Words that are weak at the end of a phrase, too: `take it`.
fn is_object_pronoun(text: &str) -> bool {
    matches!(text, "it" | "him" | "her" | "them" | "us" | "me" | "you")
}

/// Words without stress inside of a phrase.
fn is_function_word(text: &str) -> bool {
    matches!(
        text,
        "and"
            | "or"
            | "but"
            | "nor"
            | "of"
            | "for"
            | "from"
            | "in"
            | "on"
            | "at"
            | "by"
            | "with"
            | "as"
            | "than"
            | "is"
            | "am"
            | "are"
            | "was"
            | "were"
            | "be"
            | "been"
            | "has"
            | "have"
            | "had"
            | "can"
            | "could"
            | "would"
            | "should"
            | "will"
            | "shall"
            | "must"
            | "may"
            | "might"
            | "you"
            | "he"
            | "she"
            | "it"
            | "we"
            | "they"
            | "me"
            | "him"
            | "her"
            | "us"
            | "them"
            | "my"
            | "your"
            | "his"
            | "its"
            | "our"
            | "their"
            | "if"
            | "that"
            | "it's"
            | "he's"
            | "she's"
            | "i'm"
            | "you're"
            | "we're"
            | "they're"
            | "i'll"
            | "i've"
            | "i'd"
            | "into"
    )
}
