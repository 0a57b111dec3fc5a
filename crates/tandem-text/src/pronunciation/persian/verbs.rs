//! Forms of verbs: prefixes and endings around the stems of the list.
//!
//! In: a word as it is written. Out: its phonemes, if it is a form of a listed stem: «می‌کنم», «نکند», «بیاورد», «رفته»,
//! «برنمی‌گردند», «می‌بینمتان», «کننده», «رفتن».

use super::super::super::symbols::ZWNJ;
use super::list::{Class, Entry, past, present};

const PERSONS: [(&str, &str); 6] =
    [("یم", "im"), ("ید", "id"), ("ند", "and"), ("م", "am"), ("ی", "i"), ("د", "ad")];

/// Objects on a verb: «دیدمش», «می‌بینمتان».
const OBJECTS: [(&str, &str); 5] =
    [("شان", "eʃɑn"), ("تان", "etɑn"), ("مان", "emɑn"), ("ش", "aʃ"), ("ت", "at")];

const PREVERBS: [(&str, &str); 7] = [
    ("باز", "bɑz"),
    ("بر", "bar"),
    ("در", "dar"),
    ("فرا", "farɑ"),
    ("فرو", "foru"),
    ("وا", "vɑ"),
    ("پیش", "piʃ"),
];

/// Stems that occur with «باز», «بر», «در», «فرا» as one word.
const WITH_PREVERB: [&str; 22] = [
    "گرد",
    "دار",
    "آ",
    "آور",
    "خیز",
    "گزین",
    "انگیز",
    "خور",
    "گیر",
    "یاب",
    "گردان",
    "گشت",
    "داشت",
    "آمد",
    "آورد",
    "خاست",
    "گرفت",
    "یافت",
    "گزید",
    "گرداند",
    "گذر",
    "خورد",
];

/// A form of a verb, or a noun that is made of its stem.
pub fn find(word: &str) -> Option<Entry> {
    let said = finite(word).or_else(|| with_preverb(word)).or_else(|| with_object(word));
    said.map(|said| Entry::new(said, Class::Verb)).or_else(|| derived(word))
}

/// A form with its person, or a participle.
fn finite(word: &str) -> Option<String> {
    for (prefix, sound) in [("نمی", "nemi"), ("می", "mi")] {
        if let Some(rest) = word.strip_prefix(prefix) {
            let rest = rest.strip_prefix(ZWNJ).unwrap_or(rest);
            let said = present_form(rest).or_else(|| past_form(rest));
            if let Some(said) = said {
                return Some(format!("{sound}{said}"));
            }
        }
    }
    if let Some(said) = plain(word) {
        return Some(said);
    }
    if let Some(rest) = word.strip_prefix('ن') {
        let form =
            |rest: &str| past_form(rest).or_else(|| participle(rest)).or_else(|| subjunctive(rest));
        if let Some(said) = prefixed(rest, "na", "na", form) {
            return Some(said);
        }
    }
    prefixed(word.strip_prefix('ب')?, "be", "bi", subjunctive)
}

/// Without a prefix. «خورد», «برد» are past, «کند» is present.
fn plain(word: &str) -> Option<String> {
    past_form(word).or_else(|| participle(word)).or_else(|| present_form(word))
}

/// A form after «ب» or «ن». Before a vowel /j/ or a glottal stop is inserted: «بیاورد», «نیفتاد», «بایستد».
fn prefixed(
    rest: &str,
    sound: &str,
    before_vowel: &str,
    form: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    if let Some(after) = rest.strip_prefix('ی') {
        let with_a = after.strip_prefix('ا').map(|after| format!("آ{after}"));
        let form = with_a.and_then(|rest| form(&rest)).or_else(|| form(&format!("ا{after}")));
        return form.map(|said| format!("{before_vowel}j{said}"));
    }
    let glottal = match rest.chars().next()? {
        'آ' => return None,
        'ا' if !rest.starts_with("ای") => return None,
        'ا' => "ʔ",
        _ => "",
    };
    form(rest).map(|said| format!("{sound}{glottal}{said}"))
}

/// «کنم», or the stem alone: «بکن», «برو».
fn subjunctive(rest: &str) -> Option<String> {
    present_form(rest).or_else(|| {
        let stem = present(rest)?;
        Some(stem.strip_suffix("av").map_or_else(|| stem.to_owned(), |stem| format!("{stem}o")))
    })
}

/// A present stem with the ending of a person: «کنم», «گویند».
fn present_form(rest: &str) -> Option<String> {
    PERSONS.iter().find_map(|(ending, sound)| {
        let stem = rest.strip_suffix(ending)?;
        let joined = || {
            let said = stem.strip_suffix('ی').and_then(present)?;
            said.ends_with(['ɑ', 'u']).then(|| format!("{said}j{sound}"))
        };
        let bare = present(stem).filter(|said| !said.ends_with(['ɑ', 'u']));
        bare.map(|said| format!("{said}{sound}")).or_else(joined)
    })
}

/// A past stem, alone or with the ending of a person: «رفت», «رفتم».
fn past_form(rest: &str) -> Option<String> {
    if let Some(said) = past(rest) {
        return Some(said.to_owned());
    }
    PERSONS.iter().filter(|(ending, _)| *ending != "د").find_map(|(ending, sound)| {
        past(rest.strip_suffix(ending)?).map(|said| format!("{said}{sound}"))
    })
}

/// «رفته».
fn participle(rest: &str) -> Option<String> {
    past(rest.strip_suffix('ه')?).map(|said| format!("{said}e"))
}

/// «برمی‌گردد», «بازگشته», «دربیاورد».
fn with_preverb(word: &str) -> Option<String> {
    PREVERBS.iter().find_map(|(letters, sound)| {
        let rest = word.strip_prefix(letters)?;
        let rest = rest.strip_prefix(ZWNJ).unwrap_or(rest);
        let said = match rest.starts_with("می") || rest.starts_with("نمی") {
            true => finite(rest)?,
            // Only what is a verb with such a preverb: «درست» is not «در» with a form.
            false => WITH_PREVERB.iter().find_map(|stem| {
                let bare = rest.strip_prefix(['ن', 'ب']);
                let starts = |rest: &str| rest.starts_with(stem);
                (starts(rest) || bare.is_some_and(starts)).then(|| finite(rest))?
            })?,
        };
        Some(format!("{sound}{said}"))
    })
}

/// With an object after the person: «می‌بینمش».
fn with_object(word: &str) -> Option<String> {
    OBJECTS.iter().find_map(|(letters, sound)| {
        let rest = word.strip_suffix(letters).filter(|rest| rest.chars().count() >= 4)?;
        let person = rest.ends_with(['م', 'د']) && !(*letters == "ت" && rest.ends_with('د'));
        person.then(|| finite(rest))?.map(|said| format!("{said}{sound}"))
    })
}

/// Nouns of a stem: «رفتن», «کننده», «کنندگان», «خوردنی».
fn derived(word: &str) -> Option<Entry> {
    let infinitive = |word: &str| past(word.strip_suffix('ن')?).map(|said| format!("{said}an"));
    let negative = || infinitive(word.strip_prefix('ن')?).map(|said| format!("na{said}"));
    if let Some(said) = infinitive(word).or_else(negative) {
        return Some(Entry::new(said, Class::Noun));
    }
    if let Some(said) = word.strip_suffix('ی').and_then(infinitive) {
        return Some(Entry::new(format!("{said}i"), Class::Closed));
    }
    const AGENTS: [(&str, &str); 3] = [("نده", "ande"), ("ندگان", "andeɡɑn"), ("ندگی", "andeɡi")];
    AGENTS.iter().find_map(|(ending, sound)| {
        let stem = word.strip_suffix(ending)?;
        let joined = || {
            let said = stem.strip_suffix('ی').and_then(present)?;
            said.ends_with(['ɑ', 'u']).then(|| format!("{said}j{sound}"))
        };
        let bare = present(stem).filter(|said| !said.ends_with(['ɑ', 'u']));
        let said = bare.map(|said| format!("{said}{sound}")).or_else(joined)?;
        Some(Entry::new(said, Class::Noun))
    })
}
