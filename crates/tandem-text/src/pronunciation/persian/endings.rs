//! Forms of nouns and adjectives: endings, prefixes and compounds around the words of the list.
//!
//! In: a word as it is written. Out: its phonemes and class, if all of its parts are known: «کتاب‌هایشان», «خانه‌ام»,
//! «بزرگ‌ترین», «پرندگان», «خوبند», «نادرست», «آهنگری», «دانش‌آموز». Parts without a ZWNJ between them need a listed stem of
//! at least three letters, because a short one is often chance.

use super::super::super::symbols::ZWNJ;
use super::list::{self, Class, Entry, VOWELS, present};
use super::{homographs, letters_to_sound, model, verbs};
use std::borrow::Cow;

/// A word of the list, a form of it, or a compound.
pub fn find(word: &str) -> Option<Entry> {
    // A ship or wrestling; seldom "you killed".
    if word == "کشتی" {
        return homographs::usual(word);
    }
    list::word(word).or_else(|| verbs::find(word)).or_else(|| match word.rsplit_once(ZWNJ) {
        Some((stem, ending)) => joined(stem, ending),
        None => unjoined(word),
    })
}

/// The phonemes of a word that is not known as a whole, and whether a part of them is a guess.
pub fn guess(word: &str) -> (Cow<'static, str>, bool) {
    if let Some((stem, ending)) = word.rsplit_once(ZWNJ).filter(|(stem, _)| !stem.is_empty()) {
        let (mut first, guessed) = known_or_guessed(stem);
        if let Some((_, sound)) = [("می", "mi"), ("نمی", "nemi")].iter().find(|(l, _)| *l == stem)
        {
            first = (*sound).into();
        } else if let Some((_, sound, _)) = PREFIXES.iter().find(|(letters, ..)| *letters == stem) {
            first = (*sound).into();
        }
        if let Some(sound) = joined_sound(ending, first.ends_with(VOWELS)) {
            return (with_gap(&first, sound).into(), guessed);
        }
        let (second, second_guessed) = known_or_guessed(ending);
        let both = guessed && !is_prefix(stem) || second_guessed;
        return (format!("{first}{second}").into(), both);
    }
    let plural = ENDINGS.iter().filter(|(letters, _)| letters.starts_with("ها"));
    for (letters, sound) in plural {
        if let Some(stem) = word.strip_suffix(letters).filter(|stem| stem.chars().count() >= 2) {
            let (said, guessed) = known_or_guessed(stem);
            return (format!("{said}{sound}").into(), guessed);
        }
    }
    (letters_to_sound::guess(word).into(), true)
}

fn known_or_guessed(word: &str) -> (Cow<'static, str>, bool) {
    if let Some(said) = model::get().word(word) {
        return (said.into(), false);
    }
    match find(word) {
        Some(entry) => (entry.phonemes, false),
        None => guess(word),
    }
}

/// Whether a part after a ZWNJ belongs to the word before it.
pub fn is_ending(part: &str) -> bool {
    JOINED.iter().any(|(letters, ..)| *letters == part)
}

/// Whether letters at the end of a word can be an ending without a ZWNJ.
pub fn is_plain_ending(letters: &str) -> bool {
    ENDINGS.iter().any(|(ending, _)| *ending == letters)
}

/// A word with an ending; a ZWNJ before it belongs to the ending.
pub fn with_ending(said: &str, ending: &str) -> Option<String> {
    if let Some(ending) = ending.strip_prefix(ZWNJ) {
        return Some(with_gap(said, joined_sound(ending, said.ends_with(VOWELS))?));
    }
    let fitting = ENDINGS.iter().find(|(letters, sound)| *letters == ending && fits(said, sound));
    fitting.map(|(_, sound)| format!("{said}{sound}"))
}

/// Whether an ending without a ZWNJ can follow: those with /j/ are for long vowels, and after /e/ all are separate («خانه‌ام»).
fn fits(said: &str, ending: &str) -> bool {
    let long = said.ends_with(['ɑ', 'u']);
    ending.starts_with('h') || long == ending.starts_with('j') && !said.ends_with(['e', 'i', 'o'])
}

/// Whether a part before a ZWNJ belongs to the word after it.
pub fn is_prefix(part: &str) -> bool {
    matches!(part, "می" | "نمی") || PREFIXES.iter().any(|(letters, ..)| *letters == part)
}

/// Parts with a ZWNJ between them.
fn joined(stem: &str, ending: &str) -> Option<Entry> {
    if let Some((_, sound, class)) = PREFIXES.iter().find(|(letters, ..)| *letters == stem) {
        let rest = find(ending)?;
        return Some(Entry::new(with_gap(sound, &rest.phonemes), *class));
    }
    let stem = find(stem).or_else(|| homographs::usual_nominal(stem))?;
    if let Some((_, _, class)) = JOINED.iter().find(|(letters, ..)| *letters == ending) {
        let sound = joined_sound(ending, stem.ends_in_vowel())?;
        return Some(Entry::new(with_gap(&stem.phonemes, sound), class.unwrap_or(stem.class)));
    }
    let second =
        find(ending).or_else(|| present(ending).map(|said| Entry::new(said, Class::Noun)))?;
    let class = match second.class {
        Class::Adjective | Class::Closed => second.class,
        _ => Class::Noun,
    };
    Some(Entry::new(format!("{}{}", stem.phonemes, second.phonemes), class))
}

/// The sound of an ending after a ZWNJ.
fn joined_sound(ending: &str, after_vowel: bool) -> Option<&'static str> {
    let (_, sound, _) = JOINED.iter().find(|(letters, ..)| *letters == ending)?;
    Some(match (ending, after_vowel) {
        ("ی", false) => "i",
        ("مان", false) => "emɑn",
        ("تان", false) => "etɑn",
        ("شان", false) => "eʃɑn",
        _ => sound,
    })
}

/// Two parts with a glottal stop between vowels: «خانه‌ام».
fn with_gap(first: &str, second: &str) -> String {
    let gap = first.ends_with(VOWELS) && second.starts_with(VOWELS);
    format!("{first}{}{second}", if gap { "ʔ" } else { "" })
}

/// Parts that are written as one.
fn unjoined(word: &str) -> Option<Entry> {
    ordinal(word)
        .or_else(|| possessed(word))
        .or_else(|| compared(word))
        .or_else(|| suffixed(word))
        .or_else(|| prefixed(word))
}

/// «بیستم», «بیستمین».
fn ordinal(word: &str) -> Option<Entry> {
    let number = |stem: &str| list::word(stem).filter(|found| found.class == Class::Number);
    if let Some(found) = word.strip_suffix('م').and_then(number) {
        return Some(Entry::new(format!("{}om", found.phonemes), Class::Number));
    }
    let found = word.strip_suffix("ین").and_then(find)?;
    (found.class == Class::Number && found.phonemes.ends_with("om"))
        .then(|| Entry::new(format!("{}in", found.phonemes), Class::Other))
}

/// What possessives and the indefinite «ی» can follow: a noun, an infinitive, or a plural of a noun.
fn nominal(word: &str) -> Option<Entry> {
    let noun = list::word(word).or_else(|| verbs::find(word)).filter(|found| found.class.is_noun());
    let noun = noun.or_else(|| homographs::usual_nominal(word));
    noun.or_else(|| plural(word))
        .or_else(|| suffixed(word).filter(|found| found.class == Class::Noun))
}

/// «درختان», «پرندگان», «کلمات», «آقایان».
fn plural(word: &str) -> Option<Entry> {
    let listed = |stem: &str| {
        let known = |found: &Entry| matches!(found.class, Class::Noun | Class::Adjective);
        list::word(stem).filter(known)
    };
    let long = |stem: &&str| stem.chars().count() >= 3;
    let silent_he = |stem: &str| {
        let stem = listed(&format!("{stem}ه"))?;
        Some(stem.phonemes.strip_suffix('e')?.to_owned())
    };
    let found = word.strip_suffix("گان").and_then(silent_he).map(|stem| format!("{stem}eɡɑn"));
    let found = found.or_else(|| {
        let stem = word.strip_suffix("ات").filter(long)?;
        let consonant = || listed(stem).filter(|stem| !stem.ends_in_vowel());
        let stem =
            consonant().map(|stem| stem.phonemes.into_owned()).or_else(|| silent_he(stem))?;
        Some(format!("{stem}ɑt"))
    });
    let found = found.or_else(|| {
        let stem = word.strip_suffix("ان").filter(long)?;
        let with_j = stem.strip_suffix('ی').and_then(listed);
        let with_j = with_j.filter(|stem| stem.phonemes.ends_with(['ɑ', 'u']));
        let stem = match with_j {
            Some(stem) => format!("{}j", stem.phonemes),
            None => match listed(stem)? {
                stem if stem.phonemes.ends_with('i') => format!("{}j", stem.phonemes),
                stem if stem.ends_in_vowel() => return None,
                stem => stem.phonemes.into_owned(),
            },
        };
        Some(format!("{stem}ɑn"))
    });
    found.map(|said| Entry::new(said, Class::Noun))
}

/// Nouns with endings: «کتابم», «هوای», «دوستانش».
fn possessed(word: &str) -> Option<Entry> {
    if let Some(plural) = plural(word) {
        return Some(plural);
    }
    ENDINGS.iter().find_map(|(letters, sound)| {
        let written = word.strip_suffix(letters)?;
        // «بزم» is not «بز» with an ending.
        let chance = matches!(*letters, "م" | "ش") && written.chars().count() < 3;
        let stem = nominal(written).filter(|_| !chance || written == "دل")?;
        fits(&stem.phonemes, sound)
            .then(|| Entry::new(format!("{}{sound}", stem.phonemes), Class::Closed))
    })
}

/// Adjectives and nouns with endings: «بزرگتر», «خوبند», «زیباست», «زیبایی», «خستگی», «نسبتاً».
fn compared(word: &str) -> Option<Entry> {
    let described = |stem: &str| {
        let known = |found: &Entry| {
            matches!(found.class, Class::Adjective | Class::Noun | Class::Name | Class::Pronoun)
        };
        list::word(stem).filter(known)
    };
    let adjective = |stem: &str| list::word(stem).filter(|found| found.class == Class::Adjective);
    for (letters, sound, class) in COMPARED {
        let Some(stem) = word.strip_suffix(letters) else { continue };
        if let Some(found) =
            adjective(stem).filter(|stem| !stem.ends_in_vowel() || sound.starts_with('t'))
        {
            return Some(Entry::new(format!("{}{sound}", found.phonemes), class));
        }
    }
    if let Some(found) = word.strip_suffix("یی").and_then(described) {
        let long = found.phonemes.ends_with(['ɑ', 'u']);
        return long.then(|| Entry::new(format!("{}ʔi", found.phonemes), Class::Closed));
    }
    if let Some(found) = word.strip_suffix("ست").and_then(described) {
        let long = found.phonemes.ends_with(['ɑ', 'u']);
        return long.then(|| Entry::new(format!("{}st", found.phonemes), Class::Verb));
    }
    if let Some(stem) = word.strip_suffix("گی") {
        let found = described(&format!("{stem}ه")).or_else(|| verbs::find(&format!("{stem}ه")))?;
        let said = found.phonemes.strip_suffix('e')?;
        return Some(Entry::new(format!("{said}eɡi"), Class::Noun));
    }
    let found = word.strip_suffix("اً").and_then(described).filter(|stem| !stem.ends_in_vowel())?;
    Some(Entry::new(format!("{}an", found.phonemes), Class::Other))
}

const COMPARED: [(&str, &str, Class); 8] = [
    ("ترین", "tarin", Class::Closed),
    ("تری", "tari", Class::Closed),
    ("تر", "tar", Class::Adjective),
    ("ند", "and", Class::Verb),
    ("یم", "im", Class::Verb),
    ("ید", "id", Class::Verb),
    ("م", "am", Class::Verb),
    ("ی", "i", Class::Closed),
];

/// Words that are made of a noun or an adjective: «آهنگر», «خطرناک», «بازسازی».
fn suffixed(word: &str) -> Option<Entry> {
    SUFFIXES.iter().find_map(|(letters, sound, class)| {
        let stem = word.strip_suffix(letters).filter(|stem| stem.chars().count() >= 3)?;
        let stem = list::word(stem)?;
        let known = matches!(stem.class, Class::Noun | Class::Adjective);
        let fits = !(stem.ends_in_vowel() && sound.starts_with(VOWELS));
        (known && fits).then(|| Entry::new(format!("{}{sound}", stem.phonemes), *class))
    })
}

/// «نادرست», «همکلاسی», «بی‌خبر», «غیرقانونی».
fn prefixed(word: &str) -> Option<Entry> {
    PREFIXES.iter().filter(|(letters, ..)| UNJOINED.contains(letters)).find_map(
        |(letters, sound, class)| {
            let rest = word.strip_prefix(letters).filter(|rest| rest.chars().count() >= 3)?;
            let noun = |rest: &str| {
                list::word(rest).filter(|rest| matches!(rest.class, Class::Noun | Class::Adjective))
            };
            let (rest, ending) = match noun(rest) {
                Some(rest) => (rest, ""),
                None => (noun(rest.strip_suffix('ی')?).filter(|rest| !rest.ends_in_vowel())?, "i"),
            };
            Some(Entry::new(with_gap(sound, &format!("{}{ending}", rest.phonemes)), *class))
        },
    )
}

/// Prefixes, and the class of the word with them.
const PREFIXES: [(&str, &str, Class); 12] = [
    ("نا", "nɑ", Class::Adjective),
    ("بی", "bi", Class::Adjective),
    ("با", "bɑ", Class::Adjective),
    ("هم", "ham", Class::Noun),
    ("پیش", "piʃ", Class::Noun),
    ("غیر", "qejre", Class::Adjective),
    ("ضد", "zedde", Class::Adjective),
    ("پر", "por", Class::Adjective),
    ("کم", "kam", Class::Adjective),
    ("خوش", "xoʃ", Class::Adjective),
    ("ابر", "abar", Class::Noun),
    ("فرا", "farɑ", Class::Adjective),
];

/// Prefixes that may be written without a ZWNJ.
const UNJOINED: [&str; 6] = ["نا", "بی", "هم", "غیر", "پر", "خوش"];

const SUFFIXES: [(&str, &str, Class); 43] = [
    ("گری", "ɡari", Class::Noun),
    ("گر", "ɡar", Class::Noun),
    ("گران", "ɡarɑn", Class::Noun),
    ("چی", "tʃi", Class::Noun),
    ("ستان", "estɑn", Class::Noun),
    ("گاه", "ɡɑh", Class::Noun),
    ("گاهی", "ɡɑhi", Class::Closed),
    ("مندی", "mandi", Class::Noun),
    ("مند", "mand", Class::Adjective),
    ("مندان", "mandɑn", Class::Noun),
    ("ناک", "nɑk", Class::Adjective),
    ("داری", "dɑri", Class::Noun),
    ("دار", "dɑr", Class::Adjective),
    ("داران", "dɑrɑn", Class::Noun),
    ("کاری", "kɑri", Class::Noun),
    ("کار", "kɑr", Class::Noun),
    ("کاران", "kɑrɑn", Class::Noun),
    ("سازی", "sɑzi", Class::Noun),
    ("ساز", "sɑz", Class::Adjective),
    ("سازان", "sɑzɑn", Class::Noun),
    ("گذاری", "ɡozɑri", Class::Noun),
    ("گذار", "ɡozɑr", Class::Noun),
    ("گزاری", "ɡozɑri", Class::Noun),
    ("شناسی", "ʃenɑsi", Class::Noun),
    ("شناس", "ʃenɑs", Class::Noun),
    ("شناسان", "ʃenɑsɑn", Class::Noun),
    ("پذیری", "paziri", Class::Noun),
    ("پذیر", "pazir", Class::Adjective),
    ("ناپذیر", "nɑpazir", Class::Adjective),
    ("آمیز", "ɑmiz", Class::Adjective),
    ("آور", "ɑvar", Class::Adjective),
    ("انگیز", "anɡiz", Class::Adjective),
    ("نامه", "nɑme", Class::Noun),
    ("خانه", "xɑne", Class::Noun),
    ("کده", "kade", Class::Noun),
    ("بندی", "bandi", Class::Noun),
    ("ریزی", "rizi", Class::Noun),
    ("انه", "ɑne", Class::Adjective),
    ("کننده", "konande", Class::Noun),
    ("کنندگان", "konandeɡɑn", Class::Noun),
    ("بخش", "baxʃ", Class::Adjective),
    ("ورزی", "varzi", Class::Noun),
    ("نویسی", "nevisi", Class::Noun),
];

/// Endings after a ZWNJ, and the class of the word with them.
const JOINED: [(&str, &str, Option<Class>); 28] = [
    ("ها", "hɑ", Some(Class::Closed)),
    ("های", "hɑje", Some(Class::Closed)),
    ("هایی", "hɑʔi", Some(Class::Closed)),
    ("هایم", "hɑjam", Some(Class::Closed)),
    ("هایت", "hɑjat", Some(Class::Closed)),
    ("هایش", "hɑjaʃ", Some(Class::Closed)),
    ("هایمان", "hɑjemɑn", Some(Class::Closed)),
    ("هایتان", "hɑjetɑn", Some(Class::Closed)),
    ("هایشان", "hɑjeʃɑn", Some(Class::Closed)),
    ("هاست", "hɑst", Some(Class::Verb)),
    ("تر", "tar", None),
    ("تری", "tari", Some(Class::Closed)),
    ("ترین", "tarin", Some(Class::Closed)),
    ("ترها", "tarhɑ", Some(Class::Closed)),
    ("ترین‌ها", "tarinhɑ", Some(Class::Closed)),
    ("ام", "am", Some(Class::Closed)),
    ("ات", "at", Some(Class::Closed)),
    ("اش", "aʃ", Some(Class::Closed)),
    ("ای", "i", Some(Class::Closed)),
    ("اند", "and", Some(Class::Verb)),
    ("ایم", "im", Some(Class::Closed)),
    ("اید", "id", Some(Class::Closed)),
    ("است", "ast", Some(Class::Verb)),
    ("مان", "mɑn", Some(Class::Closed)),
    ("تان", "tɑn", Some(Class::Closed)),
    ("شان", "ʃɑn", Some(Class::Closed)),
    ("ی", "je", Some(Class::Closed)),
    ("گونه", "ɡune", Some(Class::Adjective)),
];

/// Endings that are written as part of a noun. Those with /j/ are for nouns that end in /ɑ/ or /u/. «ت» is not one of them:
/// many Arabic words look like a noun with it («غربت», «حکمت»).
const ENDINGS: [(&str, &str); 23] = [
    ("هایشان", "hɑjeʃɑn"),
    ("هایتان", "hɑjetɑn"),
    ("هایمان", "hɑjemɑn"),
    ("هایم", "hɑjam"),
    ("هایت", "hɑjat"),
    ("هایش", "hɑjaʃ"),
    ("هایی", "hɑʔi"),
    ("های", "hɑje"),
    ("هاست", "hɑst"),
    ("ها", "hɑ"),
    ("یمان", "jemɑn"),
    ("یتان", "jetɑn"),
    ("یشان", "jeʃɑn"),
    ("مان", "emɑn"),
    ("تان", "etɑn"),
    ("شان", "eʃɑn"),
    ("یم", "jam"),
    ("یت", "jat"),
    ("یش", "jaʃ"),
    ("م", "am"),
    ("ش", "aʃ"),
    ("ی", "i"),
    ("ی", "je"),
];
