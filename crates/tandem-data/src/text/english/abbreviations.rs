//! English abbreviations, as whole words only: `zinc.` is not `incorporated`.

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
        "mt" => ("mount", Dot::Never),
        "ave" => ("avenue", Dot::AtEnd),
        "blvd" => ("boulevard", Dot::AtEnd),
        "rd" => ("road", Dot::AtEnd),
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
    "UAE",
];

/// True for `BBC` and `USA`: all capitals, and without a vowel or in the list.
pub fn is_spelled(word: &str) -> bool {
    let capitals = word.len() >= 2 && word.bytes().all(|b| b.is_ascii_uppercase());
    if !capitals {
        return false;
    }
    let vowel = word.bytes().any(|b| matches!(b, b'A' | b'E' | b'I' | b'O' | b'U' | b'Y'));
    // Some listed ones contain Y or a vowel and look like words.
    (!vowel && word.len() <= 5) || SPELLED.contains(&word)
}

/// The value of a Roman numeral in capitals, below 40: more would catch too many words.
pub fn roman(word: &str) -> Option<u32> {
    if word.is_empty() || !word.bytes().all(|b| matches!(b, b'I' | b'V' | b'X')) {
        return None;
    }
    const UNITS: [&str; 10] = ["", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"];
    let rest = word.trim_start_matches('X');
    // The X of IX belongs to the units.
    let tens = word.len() - rest.len();
    let unit = UNITS.iter().position(|unit| *unit == rest)?;
    (tens <= 3).then_some((10 * tens + unit) as u32)
}

/// Words that are followed by a Roman numeral read as a plain number: `Chapter IV`.
pub fn counts_in_roman(word: &str) -> bool {
    const WORDS: &[&str] = &[
        "chapter", "part", "volume", "act", "scene", "book", "section", "article", "appendix",
        "war", "type", "phase", "stage", "level", "grade", "class", "super",
    ];
    WORDS.iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// Names of rulers and popes: `Henry VIII` is `henry the eighth`.
pub fn is_regnal(word: &str) -> bool {
    const NAMES: &[&str] = &[
        "Henry",
        "Louis",
        "George",
        "Edward",
        "Charles",
        "Richard",
        "James",
        "William",
        "Elizabeth",
        "Philip",
        "Frederick",
        "Francis",
        "Napoleon",
        "Alexander",
        "Nicholas",
        "Peter",
        "Catherine",
        "Paul",
        "John",
        "Pius",
        "Benedict",
        "Leo",
        "Gregory",
        "Clement",
        "Innocent",
        "Otto",
        "Leopold",
        "Albert",
        "Gustav",
        "Darius",
        "Xerxes",
        "Ramses",
        "King",
        "Queen",
        "Pope",
    ];
    NAMES.contains(&word)
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
    fn roman_numerals_are_read_and_words_are_not() {
        for (word, value) in [
            ("I", Some(1)),
            ("II", Some(2)),
            ("III", Some(3)),
            ("IV", Some(4)),
            ("V", Some(5)),
            ("VIII", Some(8)),
            ("IX", Some(9)),
            ("XIV", Some(14)),
            ("XXII", Some(22)),
            ("IIII", None),
            ("VV", None),
            ("IXI", None),
            ("IVI", None),
            ("MIX", None),
            ("", None),
            ("XIX", Some(19)),
        ] {
            assert_eq!(roman(word), value, "{word}");
        }
    }

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
