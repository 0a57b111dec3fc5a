//! Forms of known words: plurals, possessives, contractions, `-ed`, `-ing`, prefixes, compounds.
//!
//! In: a word that the lexicon does not have. Out: phones from those of its parts, or nothing.

use super::arpabet::{Phone, phones};
use super::packed_lexicon;

/// The phones of a word from a shorter one in the lexicon.
pub fn derive(word: &str) -> Option<Vec<Phone>> {
    contraction(word)
        .or_else(|| plural(word))
        .or_else(|| past(word))
        .or_else(|| participle(word))
        .or_else(|| suffixed(word))
        .or_else(|| prefixed(word))
        .or_else(|| compound(word))
}

fn lookup(word: &str) -> Option<Vec<Phone>> {
    packed_lexicon::find(word).map(Iterator::collect)
}

/// A word of the lexicon, or a form of one.
fn lookup_form(word: &str) -> Option<Vec<Phone>> {
    lookup(word).or_else(|| plural(word)).or_else(|| past(word)).or_else(|| participle(word))
}

/// `dog's`, `dogs'`, `who'll`, `there'd`, `mightn't`.
fn contraction(word: &str) -> Option<Vec<Phone>> {
    let (stem, tail) = word.split_at(word.rfind('\'')?);
    if tail == "'" {
        return lookup_form(stem).or_else(|| derive(stem));
    }
    if let Some(stem) = stem.strip_suffix('n').filter(|_| tail == "'t") {
        return lookup(stem).map(|base| ended(base, "AH0 N T"));
    }
    let base = lookup_form(stem).or_else(|| derive(stem))?;
    match tail {
        "'s" => Some(with_s(base)),
        "'ll" => Some(ended(base, "AH0 L")),
        "'d" => Some(with_d(base)),
        "'ve" => Some(ended(base, "AH0 V")),
        "'re" => Some(ended(base, "ER0")),
        "'m" => Some(ended(base, "AH0 M")),
        _ => None,
    }
}

fn plural(word: &str) -> Option<Vec<Phone>> {
    let stem = word.strip_suffix('s').filter(|stem| stem.len() > 1 && !stem.ends_with('s'))?;
    if let Some(stem) = stem.strip_suffix("ie")
        && let Some(base) = lookup(&format!("{stem}y"))
    {
        return Some(with_s(base));
    }
    let base = lookup(stem).or_else(|| {
        let short = stem.strip_suffix('e')?;
        short.ends_with(['s', 'x', 'z', 'h', 'o']).then(|| lookup(short)).flatten()
    });
    base.map(with_s)
}

fn past(word: &str) -> Option<Vec<Phone>> {
    let stem = word.strip_suffix("ed").filter(|stem| stem.len() > 1)?;
    if let Some(stem) = stem.strip_suffix('i') {
        return lookup(&format!("{stem}y")).map(with_d);
    }
    base_of(stem).map(with_d)
}

fn participle(word: &str) -> Option<Vec<Phone>> {
    let stem = word.strip_suffix("ing").filter(|stem| stem.len() > 1)?;
    base_of(stem).map(|base| ended(base, "IH0 NG"))
}

/// The verb before `-ed` or `-ing`: `bak` is `bake`, `stopp` is `stop`.
fn base_of(stem: &str) -> Option<Vec<Phone>> {
    let mut ends = stem.bytes().rev();
    let doubled = ends.next() == ends.next();
    let short = stem[..stem.len() - 1].to_owned();
    let single = || if doubled { lookup(&short) } else { None };
    lookup(&format!("{stem}e")).or_else(|| lookup(stem)).or_else(single)
}

/// Endings that leave the word before them as it is.
const SUFFIXES: [(&str, &str); 11] = [
    ("ness", "N AH0 S"),
    ("less", "L AH0 S"),
    ("ly", "L IY0"),
    ("ful", "F AH0 L"),
    ("ment", "M AH0 N T"),
    ("ship", "SH IH2 P"),
    ("hood", "HH UH2 D"),
    ("like", "L AY2 K"),
    ("ish", "IH0 SH"),
    ("er", "ER0"),
    ("able", "AH0 B AH0 L"),
];

fn suffixed(word: &str) -> Option<Vec<Phone>> {
    SUFFIXES.iter().find_map(|(letters, sounds)| {
        let stem = word.strip_suffix(letters).filter(|stem| stem.len() > 2)?;
        let base = match *letters {
            // `happily`, `happiness`: the `y` of the word is an `i`.
            "ly" | "ness" if stem.ends_with('i') => {
                lookup(&format!("{}y", &stem[..stem.len() - 1]))?
            }
            "er" | "able" | "ish" => base_of(stem)?,
            _ => lookup_form(stem)?,
        };
        Some(ended(base, sounds))
    })
}

/// Beginnings before which the word keeps its stress; their own is secondary.
const PREFIXES: [(&str, &str); 18] = [
    ("un", "AH2 N"),
    ("non", "N AA2 N"),
    ("re", "R IY2"),
    ("pre", "P R IY2"),
    ("over", "OW2 V ER0"),
    ("under", "AH2 N D ER0"),
    ("mis", "M IH2 S"),
    ("dis", "D IH2 S"),
    ("out", "AW2 T"),
    ("super", "S UW2 P ER0"),
    ("inter", "IH2 N T ER0"),
    ("multi", "M AH2 L T IY0"),
    ("micro", "M AY2 K R OW0"),
    ("anti", "AE2 N T IY0"),
    ("semi", "S EH2 M IY0"),
    ("mega", "M EH2 G AH0"),
    ("sub", "S AH2 B"),
    ("co", "K OW2"),
];

fn prefixed(word: &str) -> Option<Vec<Phone>> {
    PREFIXES.iter().find_map(|(letters, sounds)| {
        let rest = word.strip_prefix(letters).filter(|rest| rest.len() > 3)?;
        let mut all = phones(sounds);
        all.extend(lookup_form(rest)?);
        Some(all)
    })
}

/// Two words, such as `web` and `cams`. The second has secondary stress.
fn compound(word: &str) -> Option<Vec<Phone>> {
    if !word.is_ascii() {
        return None;
    }
    let cuts = (SHORTEST.0..=word.len().checked_sub(SHORTEST.1)?).rev();
    cuts.filter(|&at| word.is_char_boundary(at)).find_map(|at| {
        let (first, second) = word.split_at(at);
        let (mut all, second) = (lookup(first)?, lookup_form(second)?);
        all.extend(second.into_iter().map(|phone| match phone.stress() {
            1 => phone.with_stress(2),
            _ => phone,
        }));
        Some(all)
    })
}

/// Fewest letters of the parts of a compound. Many endings are words of three letters.
const SHORTEST: (usize, usize) = (3, 4);

fn ended(mut base: Vec<Phone>, sounds: &str) -> Vec<Phone> {
    base.extend(phones(sounds));
    base
}

/// The plural, the possessive and the third person: /s/, /z/ or /ɪz/ after the last sound.
pub fn with_s(base: Vec<Phone>) -> Vec<Phone> {
    let sounds = match base.last().map(|phone| phone.name()) {
        Some("S" | "Z" | "SH" | "ZH" | "CH" | "JH") => "IH0 Z",
        Some("P" | "T" | "K" | "F" | "TH") => "S",
        _ => "Z",
    };
    ended(base, sounds)
}

/// The past: /t/, /d/ or /ɪd/ after the last sound.
fn with_d(base: Vec<Phone>) -> Vec<Phone> {
    let sounds = match base.last().map(|phone| phone.name()) {
        Some("T" | "D") => "IH0 D",
        Some("P" | "K" | "F" | "TH" | "S" | "SH" | "CH") => "T",
        _ => "D",
    };
    ended(base, sounds)
}

#[cfg(test)]
mod tests {
    use super::super::arpabet::write_ipa;
    use super::*;

    #[track_caller]
    fn check(word: &str, ipa: &str) {
        assert!(lookup(word).is_none(), "`{word}` is in the lexicon: it tests nothing");
        let mut found = String::new();
        write_ipa(&derive(word).unwrap_or_default(), &mut found);
        assert_eq!(found, ipa, "{word}");
    }

    #[test]
    fn forms_follow_the_last_sound_of_the_word() {
        check("podcasts", "pˈɔdkˌæsts");
        check("podcast's", "pˈɔdkˌæsts");
        check("hashtags", "hˈæʃtˌæɡz");
        check("blogged", "blˈɔɡd");
        check("retweeted", "ɹˌitwˈitɪd");
        check("livestream", "lˈaɪvstɹˌim");
        check("webcams", "wˈɛbkˌæmz");
    }

    #[test]
    fn unknown_stems_give_nothing() {
        assert_eq!(derive("flibbed"), None);
        assert_eq!(derive("zorb's"), None);
        assert_eq!(derive("'"), None);
        assert_eq!(derive(""), None);
    }
}
