//! English abbreviations, as whole words only: `zinc.` is not `incorporated`.

use super::acronyms;

/// The meaning of the dot after an abbreviation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dot {
    /// Belongs to the abbreviation: `Dr. Smith`.
    Never,
    /// Also ends the sentence at the end of the text: `Apple Inc.`
    AtEnd,
    /// Also ends the sentence before a capital: `cats, dogs, etc. The rest`
    BeforeCapital,
}

/// The words for `word` (any case) when a dot follows it. Some need a
/// capital: `Gen.` is a general, `gen.` is not an abbreviation.
pub fn dotted(word: &str) -> Option<(&'static str, Dot)> {
    let capital = word.starts_with(|c: char| c.is_ascii_uppercase());
    let mut buffer = [0_u8; 8];
    let lower = lower(word, &mut buffer)?;
    let found = match lower {
        "mr" => ("mister", Dot::Never),
        "mrs" => ("missus", Dot::Never),
        "ms" => ("miz", Dot::Never),
        "prof" => ("professor", Dot::Never),
        "messrs" => ("messers", Dot::Never),
        "etc" => ("et cetera", Dot::BeforeCapital),
        "vs" => ("versus", Dot::Never),
        "inc" => ("incorporated", Dot::AtEnd),
        "co" => ("company", Dot::AtEnd),
        "corp" => ("corporation", Dot::AtEnd),
        "ltd" => ("limited", Dot::AtEnd),
        "bros" => ("brothers", Dot::AtEnd),
        "jr" => ("junior", Dot::AtEnd),
        "sr" => ("senior", Dot::AtEnd),
        "dept" => ("department", Dot::AtEnd),
        "approx" => ("approximately", Dot::Never),
        "univ" => ("university", Dot::AtEnd),
        "assn" => ("association", Dot::AtEnd),
        "govt" => ("government", Dot::AtEnd),
        "intl" => ("international", Dot::AtEnd),
        "natl" => ("national", Dot::AtEnd),
        "asst" => ("assistant", Dot::Never),
        "esq" => ("esquire", Dot::AtEnd),
        "mfg" => ("manufacturing", Dot::AtEnd),
        _ if capital => return title(lower),
        _ => return None,
    };
    Some(found)
}

fn title(lower: &str) -> Option<(&'static str, Dot)> {
    Some(match lower {
        "rev" => ("reverend", Dot::Never),
        "hon" => ("honorable", Dot::Never),
        "gen" => ("general", Dot::Never),
        "col" => ("colonel", Dot::Never),
        "capt" => ("captain", Dot::Never),
        "lt" => ("lieutenant", Dot::Never),
        "sgt" => ("sergeant", Dot::Never),
        "maj" => ("major", Dot::Never),
        "gov" => ("governor", Dot::Never),
        "sen" => ("senator", Dot::Never),
        "rep" => ("representative", Dot::Never),
        "pres" => ("president", Dot::Never),
        "adm" => ("admiral", Dot::Never),
        "cpl" => ("corporal", Dot::Never),
        "pvt" => ("private", Dot::Never),
        "supt" => ("superintendent", Dot::Never),
        "mt" => ("mount", Dot::Never),
        "ave" => ("avenue", Dot::AtEnd),
        "blvd" => ("boulevard", Dot::AtEnd),
        "rd" => ("road", Dot::AtEnd),
        "jan" => ("january", Dot::AtEnd),
        "feb" => ("february", Dot::AtEnd),
        "apr" => ("april", Dot::AtEnd),
        "aug" => ("august", Dot::AtEnd),
        "sept" => ("september", Dot::AtEnd),
        "oct" => ("october", Dot::AtEnd),
        "nov" => ("november", Dot::AtEnd),
        "dec" => ("december", Dot::AtEnd),
        _ => return None,
    })
}

/// British style, without a dot, before a name: `Dr Smith`, `Mr Brown`.
pub fn undotted(word: &str) -> Option<&'static str> {
    Some(match word {
        "Mr" => "mister",
        "Mrs" => "missus",
        "Ms" => "miz",
        "Dr" => "doctor",
        "St" => "saint",
        "Prof" => "professor",
        _ => return None,
    })
}

/// Short for something that is counted or named by the number after it: `No. 5`, `Jan. 3`.
pub fn before_number(word: &str) -> Option<&'static str> {
    let mut buffer = [0_u8; 8];
    Some(match lower(word, &mut buffer)? {
        "no" => "number",
        "nos" => "numbers",
        "p" => "page",
        "pp" => "pages",
        "vol" => "volume",
        "ch" | "chap" => "chapter",
        "fig" => "figure",
        "sec" => "section",
        "art" => "article",
        "est" => "established",
        "max" => "maximum",
        "min" => "minimum",
        "avg" => "average",
        "rt" => "route",
        "ca" => "circa",
        "tel" => "telephone",
        "ext" => "extension",
        "apt" => "apartment",
        "ste" => "suite",
        "rm" => "room",
        "bldg" => "building",
        "hwy" => "highway",
        "rte" => "route",
        "jan" => "january",
        "feb" => "february",
        "mar" => "march",
        "apr" => "april",
        "jun" => "june",
        "jul" => "july",
        "aug" => "august",
        "sep" | "sept" => "september",
        "oct" => "october",
        "nov" => "november",
        "dec" => "december",
        _ => return None,
    })
}

/// Letters with dots between them, dots left out: `eg`, `ie`. Others are spelled.
pub fn initials(letters: &str) -> Option<&'static str> {
    match letters {
        "eg" => Some("for example"),
        "ie" => Some("that is"),
        _ => None,
    }
}

/// Acronyms that are spelled although they have vowels.
const SPELLED: &[&str] = &[
    "AI", "API", "ATM", "CEO", "CIA", "EU", "FAQ", "FBI", "GPU", "CPU", "IBM", "ID", "IQ", "MIT",
    "NBA", "PIN", "TV", "UK", "UN", "UNHCR", "USA", "US", "USSR", "URL", "USB", "UFO", "IRA",
    "UAE", "EST", "EDT", "UTC", "CET", "EET", "OK", "GDP", "LED", "SEO", "SAP", "COO", "ROI",
    "SEC", "IEEE", "DEA", "UPS", "AKA", "FYI", "EIN", "ETA",
];

/// Whole words with signs or mixed case: the text they take and how they are said.
pub fn mixed(text: &str) -> Option<(&'static str, usize)> {
    const WORDS: &[(&str, &str)] = &[
        ("Ph.D.", "p h d"),
        ("Ph.D", "p h d"),
        ("PhD", "p h d"),
        ("w/o", "without"),
        ("w/", "with"),
        ("C#", "c sharp"),
        ("F#", "f sharp"),
        ("WWII", "world war two"),
        ("WWI", "world war one"),
        ("iOS", "i o s"),
        ("aka", "a k a"),
        ("C++", "c plus plus"),
    ];
    let (spelling, words) = WORDS.iter().find(|(spelling, _)| text.starts_with(spelling))?;
    let rest = &text[spelling.len()..];
    let letters_end = spelling.ends_with(|c: char| c.is_alphabetic());
    let whole = !(letters_end && rest.starts_with(char::is_alphanumeric));
    whole.then_some((words, spelling.len()))
}

/// `AD`, `CE` and `BCE` beside a year.
pub fn is_era(word: &str) -> bool {
    matches!(word, "AD" | "CE" | "BCE" | "BC")
}

/// True for `BBC`, `USA` and `UCLA`: all capitals, and without a vowel, in the list, or no word.
pub fn is_spelled(word: &str) -> bool {
    let capitals = word.len() >= 2 && word.bytes().all(|b| b.is_ascii_uppercase());
    if !capitals {
        return false;
    }
    let vowel = word.bytes().any(|b| matches!(b, b'A' | b'E' | b'I' | b'O' | b'U' | b'Y'));
    // Some listed ones contain Y or a vowel and look like words.
    let sound = acronyms::is_interjection(word);
    (!vowel && word.len() <= 5 && !sound) || SPELLED.contains(&word) || acronyms::is_spelled(word)
}

fn lower<'a>(word: &str, buffer: &'a mut [u8; 8]) -> Option<&'a str> {
    let lower = buffer.get_mut(..word.len())?;
    lower.copy_from_slice(word.as_bytes());
    lower.make_ascii_lowercase();
    std::str::from_utf8(lower).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capitals_without_vowels_are_spelled() {
        for word in ["BBC", "USA", "TV"] {
            assert!(is_spelled(word), "{word}");
        }
        for word in ["NASA", "I", "HELLO", "Bbc"] {
            assert!(!is_spelled(word), "{word}");
        }
    }
}
