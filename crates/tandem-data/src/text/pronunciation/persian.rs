//! The phonemes of common Persian words in their sentence.
//!
//! In: the words of a normalised sentence, and which one is meant. Out: its IPA with short vowels and,
//! where it is certain, the ezafe. The words are a list of our own (`persian.tsv`); forms of nouns
//! and verbs follow from it. A word whose vowels are unknown gives nothing: it stays in characters.

use super::super::symbols::ZWNJ;
use super::super::words::Word;
use super::{Outcome, english};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

static FILE: &str = include_str!("../../../pronunciation/persian.tsv");

/// Identifies the contents: part of the cache key.
pub fn fingerprint() -> u64 {
    xxhash_rust::xxh3::xxh3_64(FILE.as_bytes())
}

/// Appends the phonemes of a word.
pub fn read(words: &[Word], place: usize, out: &mut String) -> Outcome {
    let text = words[place].text.as_str();
    if text.starts_with(|c: char| c.is_ascii_lowercase()) {
        return english::read(words, place, out);
    }
    let (bare, marked) = without_marks(text);
    if bare == "نه" && is_nine(words, place) {
        out.push_str("noh");
        return Outcome::Known;
    }
    let Some(found) = find(&bare) else { return Outcome::Unknown };
    out.push_str(&found.phonemes);
    if marked || has_ezafe(words, place, found.class) {
        out.push_str(if found.phonemes.ends_with(['e', 'ɑ', 'u']) { "je" } else { "e" });
    }
    Outcome::Known
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Noun,
    Adjective,
    /// A noun can have it: «کتابِ من».
    Pronoun,
    /// Always with ezafe: «زیرِ».
    Preposition,
    Verb,
    Number,
    Other,
    /// With its ezafe or ending: nothing can follow.
    Closed,
}

#[derive(Clone, Debug)]
struct Entry {
    phonemes: Cow<'static, str>,
    class: Class,
}

static LIST: LazyLock<HashMap<Cow<'static, str>, Entry>> = LazyLock::new(|| {
    let mut list = HashMap::new();
    let lines = FILE.lines().filter(|line| !line.starts_with('#'));
    let rows = lines.filter_map(|line| {
        let mut columns = line.split('\t');
        Some((columns.next()?, columns.next()?, columns.next()?))
    });
    for (word, phonemes, class) in rows.clone() {
        let class = match class {
            "noun" => Class::Noun,
            "adjective" => Class::Adjective,
            "pronoun" => Class::Pronoun,
            "preposition" if phonemes.ends_with("je") => Class::Closed,
            "preposition" => Class::Preposition,
            "verb" => Class::Verb,
            "number" => Class::Number,
            "present" | "past" => continue,
            _ => Class::Other,
        };
        list.insert(Cow::Borrowed(word), Entry { phonemes: Cow::Borrowed(phonemes), class });
    }
    for (stem, phonemes, class) in rows {
        match class {
            "present" => present(stem, phonemes, &mut list),
            "past" => past(stem, phonemes, &mut list),
            _ => {}
        }
    }
    list
});

const PERSONS: [(&str, &str); 6] =
    [("م", "am"), ("ی", "i"), ("د", "ad"), ("یم", "im"), ("ید", "id"), ("ند", "and")];

/// The forms of a present stem: «می‌کنم», «نکند», «بکن», «دارم».
fn present(stem: &str, sounds: &str, list: &mut HashMap<Cow<'static, str>, Entry>) {
    let vowel = sounds.ends_with(['ɑ', 'u']);
    let (letters, base) = match vowel {
        true => (format!("{stem}ی"), format!("{sounds}j")),
        false => (stem.to_owned(), sounds.to_owned()),
    };
    for (ending, sound) in PERSONS {
        let (form, said) = (format!("{letters}{ending}"), format!("{base}{sound}"));
        continuous(&form, &said, list);
        prefixed("ب", "be", "bi", &form, &said, list);
        prefixed("ن", "na", "na", &form, &said, list);
        add(form, said, list);
    }
    prefixed("ب", "be", "bi", stem, sounds, list);
    prefixed("ن", "na", "na", stem, sounds, list);
    add(stem.to_owned(), sounds.to_owned(), list);
}

/// The forms of a past stem: «رفتم», «نرفت», «می‌رفتند», «رفته», «رفته‌اند».
fn past(stem: &str, sounds: &str, list: &mut HashMap<Cow<'static, str>, Entry>) {
    let persons = PERSONS.into_iter().filter(|(ending, _)| *ending != "د").chain([("", "")]);
    for (ending, sound) in persons {
        let (form, said) = (format!("{stem}{ending}"), format!("{sounds}{sound}"));
        continuous(&form, &said, list);
        prefixed("ن", "na", "na", &form, &said, list);
        add(form, said, list);
    }
    let (form, said) = (format!("{stem}ه"), format!("{sounds}e"));
    prefixed("ن", "na", "na", &form, &said, list);
    add(form, said, list);
}

fn continuous(form: &str, said: &str, list: &mut HashMap<Cow<'static, str>, Entry>) {
    for (prefix, sound) in [("می", "mi"), ("نمی", "nemi")] {
        add(format!("{prefix}{ZWNJ}{form}"), format!("{sound}{said}"), list);
        add(format!("{prefix}{form}"), format!("{sound}{said}"), list);
    }
}

/// «بخواند», «نخواند»; before «آ» a /j/ is inserted: «بیاورد», «نیامد».
fn prefixed(
    letter: &str,
    sound: &str,
    before_vowel: &str,
    form: &str,
    said: &str,
    list: &mut HashMap<Cow<'static, str>, Entry>,
) {
    match form.strip_prefix('آ') {
        Some(rest) => add(format!("{letter}یا{rest}"), format!("{before_vowel}j{said}"), list),
        None => add(format!("{letter}{form}"), format!("{sound}{said}"), list),
    }
}

fn add(form: String, said: String, list: &mut HashMap<Cow<'static, str>, Entry>) {
    // A noun of the same spelling is commoner than a form of a verb.
    list.entry(Cow::Owned(form))
        .or_insert(Entry { phonemes: Cow::Owned(said), class: Class::Verb });
}

/// A word of the list, or one with endings, or a compound of such.
fn find(word: &str) -> Option<Entry> {
    if let Some(entry) = LIST.get(word) {
        return Some(entry.clone());
    }
    if let Some((stem, ending)) = word.rsplit_once(ZWNJ) {
        let stem = find(stem)?;
        let vowel = stem.phonemes.ends_with(['ɑ', 'e', 'i', 'o', 'u']);
        if let Some((_, sound, class)) = JOINED.iter().find(|(letters, ..)| *letters == ending) {
            let glottal = if vowel && sound.starts_with(['a', 'i']) { "ʔ" } else { "" };
            let class = class.unwrap_or(stem.class);
            return Some(Entry {
                phonemes: format!("{}{glottal}{sound}", stem.phonemes).into(),
                class,
            });
        }
        let second = find(ending)?;
        let phonemes = format!("{}{}", stem.phonemes, second.phonemes).into();
        return Some(Entry { phonemes, class: Class::Noun });
    }
    let ended = |&(letters, sound): &(&str, &str)| {
        let stem =
            LIST.get(word.strip_suffix(letters)?).filter(|stem| stem.class == Class::Noun)?;
        let vowel = stem.phonemes.ends_with(['ɑ', 'e', 'i', 'o', 'u']);
        let after_vowel = sound.starts_with('j') || sound.starts_with('h');
        (vowel == after_vowel || sound.starts_with('h')).then(|| Entry {
            phonemes: format!("{}{sound}", stem.phonemes).into(),
            class: Class::Closed,
        })
    };
    ENDINGS.iter().find_map(ended)
}

/// Endings after a ZWNJ, and the class of the word with them.
const JOINED: [(&str, &str, Option<Class>); 19] = [
    ("ها", "hɑ", Some(Class::Closed)),
    ("های", "hɑje", Some(Class::Closed)),
    ("هایی", "hɑji", Some(Class::Closed)),
    ("هایم", "hɑjam", Some(Class::Closed)),
    ("هایت", "hɑjat", Some(Class::Closed)),
    ("هایش", "hɑjaʃ", Some(Class::Closed)),
    ("هایمان", "hɑjemɑn", Some(Class::Closed)),
    ("هایتان", "hɑjetɑn", Some(Class::Closed)),
    ("هایشان", "hɑjeʃɑn", Some(Class::Closed)),
    ("تر", "tar", None),
    ("ترین", "tarin", Some(Class::Closed)),
    ("ام", "am", Some(Class::Closed)),
    ("ات", "at", Some(Class::Closed)),
    ("اش", "aʃ", Some(Class::Closed)),
    ("ای", "i", Some(Class::Closed)),
    ("اند", "and", Some(Class::Closed)),
    ("ایم", "im", Some(Class::Closed)),
    ("اید", "id", Some(Class::Closed)),
    ("ی", "je", Some(Class::Closed)),
];

/// Endings that are written as part of a noun. Those with /j/ are for nouns that end in a vowel.
const ENDINGS: [(&str, &str); 16] = [
    ("هایی", "hɑji"),
    ("های", "hɑje"),
    ("ها", "hɑ"),
    ("یمان", "jemɑn"),
    ("یتان", "jetɑn"),
    ("یشان", "jeʃɑn"),
    ("مان", "emɑn"),
    ("تان", "etɑn"),
    ("شان", "eʃɑn"),
    ("یم", "jam"),
    ("یش", "jaʃ"),
    ("م", "am"),
    ("ش", "aʃ"),
    ("ت", "at"),
    ("ی", "i"),
    ("ی", "je"),
];

/// Without vowel signs, and whether a kasre at its end marks the ezafe.
fn without_marks(text: &str) -> (Cow<'_, str>, bool) {
    let is_mark = |c: char| matches!(c, '\u{64C}'..='\u{652}' | '\u{670}');
    if !text.contains(is_mark) {
        return (Cow::Borrowed(text), false);
    }
    let bare: String = text.chars().filter(|c| !is_mark(*c)).collect();
    (Cow::Owned(bare), text.ends_with('\u{650}'))
}

/// «نه» is nine beside numbers and before what is counted, and «no» otherwise.
fn is_nine(words: &[Word], place: usize) -> bool {
    let before = place.checked_sub(1).map_or("", |at| words[at].text.as_str());
    let class = |word: &str| find(word).map(|entry| entry.class);
    let next = words.get(place + 1).filter(|_| words[place].tail == " ");
    matches!(before, "ساعت" | "و" | "عدد" | "شماره" | "ممیز")
        || class(before) == Some(Class::Number)
        || next.is_some_and(|next| matches!(class(&next.text), Some(Class::Number | Class::Noun)))
}

/// Whether the next words show an ezafe. Two nouns in a row do not: they may be subject and object.
fn has_ezafe(words: &[Word], place: usize, class: Class) -> bool {
    let joined = |at: usize| words.get(at).is_some_and(|word| word.tail == " ");
    let class_of = |at: usize| Some(find(&without_marks(&words.get(at)?.text).0)?.class);
    if !joined(place) {
        return false;
    }
    match (class, class_of(place + 1)) {
        (Class::Preposition, _) => words.len() > place + 1,
        // «باد ما را برد»: the pronoun is an object.
        (Class::Noun, Some(Class::Pronoun)) => {
            words.get(place + 2).is_none_or(|word| word.text != "را")
        }
        // «هوا سرد است», «کوهستان پاک و خنک است»: the adjective may belong to the verb. A preposition
        // or «را» after it shows that it does not.
        (Class::Noun, Some(Class::Adjective)) => {
            joined(place + 1)
                && words.get(place + 2).is_some_and(|word| word.text != "و")
                && matches!(
                    class_of(place + 2),
                    Some(Class::Other | Class::Preposition | Class::Closed)
                )
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::SymbolTable;
    use super::super::super::words::sentences;
    use super::super::{Uncertain, read as read_text};
    use super::*;
    use crate::text::Language;

    #[track_caller]
    fn check(text: &str, ipa: &str) {
        let found = read_text(Language::Persian, &sentences(text), &mut Uncertain::default());
        assert_eq!(found, ipa, "{text}");
    }

    #[test]
    fn every_entry_has_known_symbols_and_one_line() {
        let table = SymbolTable::standard();
        let mut seen = std::collections::HashSet::new();
        for line in FILE.lines().filter(|line| !line.starts_with('#')) {
            let columns: Vec<_> = line.split('\t').collect();
            assert_eq!(columns.len(), 3, "{line}");
            assert!(columns[1].chars().all(|c| table.id(c).is_some()), "{line}");
            assert!(matches!(columns[2], "present" | "past") || seen.insert(columns[0]), "{line}");
        }
        assert!(LIST.len() > 2_000, "{}", LIST.len());
    }

    #[test]
    fn nouns_and_verbs_have_their_forms() {
        check("کتاب‌ها", "ketɑbhɑ");
        check("مادرم می‌آید", "mɑdaram miɑjad");
        check("بچه‌ها نمی‌روند", "battʃehɑ nemiravand");
        check("بخوانید", "bexɑnid");
        check("نیامدی", "najɑmadi");
        check("گذاشته‌ام", "ɡozɑʃteʔam");
        check("هوای شهر", "havɑje ʃahr");
        check("ساعت نه", "sɑʔat noh");
        check("نه, ممنون", "na, mamnun");
    }

    #[test]
    fn ezafe_is_added_where_it_is_certain() {
        check("کتاب من", "ketɑbe man");
        check("خانه ما", "xɑneje mɑ");
        check("گربه سیاه در باغ", "ɡorbeje sijɑh dar bɑq");
        check("هوا سرد است", "havɑ sard ast");
        check("کوهستان پاک و خنک است", "kuhestɑn pɑk va xonak ast");
        check("در ایستگاه منتظر قطار بودند", "dar istɡɑh montazer qatɑr budand");
        check("باد پنجره را باز کرد", "bɑd pandʒere rɑ bɑz kard");
        check("زیر درخت", "zire deraxt");
        check("کتاب\u{650} بزرگ", "ketɑbe bozorɡ");
    }

    #[test]
    fn unknown_words_stay_in_characters_and_are_named() {
        let mut uncertain = Uncertain::default();
        let found = read_text(Language::Persian, &sentences("سلام قسطنطنیه, hello"), &mut uncertain);
        assert_eq!(found, "salɑm قسطنطنیه, həlˈoʊ");
        assert_eq!(uncertain.as_characters, ["قسطنطنیه"]);
    }
}
