//! Addresses: `123 N. Main St.`, `5th Ave.`, `Apt. 4B`, `St. Paul`, `Boston, MA 02134`.
//!
//! In: a scan before a number or an abbreviation. Out: words. `St.` and `Dr.` are a street and a drive
//! after a name, a saint and a doctor before one.

use super::super::numeral::digits;
use super::super::scan::{Scan, letters};
use super::super::spoken::Spoken;
use super::abbreviations::Dot;
use super::cities;
use super::numbers::{cardinal, one_by_one};

/// How far back the words of an address are looked for, in bytes.
const LONGEST_HEAD: usize = 80;
/// Most words between a house number and the word for a street.
const LONGEST_NAME: usize = 4;

/// The house number of `123 Main St.`, with the direction after it.
pub fn try_house_number(scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let number = digits(scan.rest());
    let boxed = scan.name_before().eq_ignore_ascii_case("box");
    let mut after = *scan;
    after.skip(number.len());
    let letter = letters(after.rest());
    let lettered = letter.len() == 1 && letter.starts_with(|c: char| c.is_ascii_uppercase());
    if lettered {
        after.skip(1);
    }
    if !(1..=5).contains(&number.len()) || number.starts_with('0') {
        return false;
    }
    let at_street = after.rest().strip_prefix(' ').is_some_and(is_street);
    if !at_street && (!boxed || after.peek().is_some_and(|c| c.is_alphanumeric())) {
        return false;
    }
    *scan = after;
    out.number(&house_number(number));
    if lettered {
        out.apart();
        letter.chars().for_each(|letter| out.letter(letter.to_ascii_lowercase()));
        out.end_number();
    }
    if at_street {
        take_direction(scan, out);
    }
    true
}

/// `123` -> `one twenty-three`, `1600` -> `sixteen hundred`, `205` -> `two oh five`.
fn house_number(digits: &str) -> String {
    let split = match digits.len() {
        3 | 4 => digits.len() - 2,
        5 => return one_by_one(digits),
        _ => return cardinal(digits),
    };
    let (head, tail) = digits.split_at(split);
    match tail {
        "00" if head.ends_with('0') => cardinal(digits),
        "00" => format!("{} hundred", cardinal(head)),
        _ if tail.starts_with('0') => format!("{} oh {}", cardinal(head), cardinal(tail)),
        _ => format!("{} {}", cardinal(head), cardinal(tail)),
    }
}

/// Whether `text` begins with the name of a street: capitals or an ordinal, then `St`, `Avenue`, ...
pub fn is_street(text: &str) -> bool {
    let words = text.split(' ').take(LONGEST_NAME + 1);
    for (index, word) in words.enumerate() {
        let bare = word.trim_end_matches(['.', ',', ';', '!', '?', ')', '"']);
        if index > 0 && (road(bare).is_some() || is_road_word(bare) || small_road(bare).is_some()) {
            return true;
        }
        let name = bare.starts_with(|c: char| c.is_ascii_uppercase()) || is_ordinal(bare);
        // Only a direction may have a dot inside the name.
        if !name || bare.len() < word.len() && direction(bare).is_none() && bare != "St" {
            return false;
        }
    }
    false
}

fn is_ordinal(word: &str) -> bool {
    let number = digits(word);
    !number.is_empty() && matches!(&word[number.len()..], "st" | "nd" | "rd" | "th")
}

fn is_road_word(word: &str) -> bool {
    matches!(
        word,
        "Street"
            | "Avenue"
            | "Road"
            | "Drive"
            | "Lane"
            | "Boulevard"
            | "Court"
            | "Place"
            | "Square"
            | "Way"
            | "Parkway"
            | "Highway"
            | "Terrace"
    )
}

/// The direction of `123 N. Main St.`, after the number.
fn take_direction(scan: &mut Scan<'_>, out: &mut Spoken) {
    let text = scan.rest().trim_start_matches(' ');
    let word = letters(text);
    if let Some(words) = direction(word) {
        let rest = text[word.len()..].trim_start_matches('.');
        scan.skip(scan.rest().len() - rest.len());
        out.number(words);
    }
}

/// `N`, `SW` and so on.
pub fn direction(word: &str) -> Option<&'static str> {
    Some(match word {
        "N" => "north",
        "S" => "south",
        "E" => "east",
        "W" => "west",
        "NE" => "northeast",
        "NW" => "northwest",
        "SE" => "southeast",
        "SW" => "southwest",
        _ => return None,
    })
}

/// The road that a short word after a name means.
pub fn road(word: &str) -> Option<&'static str> {
    Some(match word {
        "St" => "street",
        "Dr" => "drive",
        "Ave" | "Av" => "avenue",
        "Blvd" => "boulevard",
        "Rd" => "road",
        "Ln" => "lane",
        "Ct" => "court",
        "Pl" => "place",
        "Sq" => "square",
        "Hwy" => "highway",
        "Pkwy" => "parkway",
        "Ter" => "terrace",
        "Cir" => "circle",
        "Expy" => "expressway",
        "Fwy" => "freeway",
        "Plz" => "plaza",
        "Trl" => "trail",
        _ => return None,
    })
}

/// The same in lower case, as addresses are typed.
fn small_road(word: &str) -> Option<&'static str> {
    const SMALL: &[(&str, &str)] = &[
        ("st", "St"),
        ("ave", "Ave"),
        ("blvd", "Blvd"),
        ("rd", "Rd"),
        ("ln", "Ln"),
        ("hwy", "Hwy"),
        ("pkwy", "Pkwy"),
        ("dr", "Dr"),
        ("ct", "Ct"),
    ];
    SMALL.iter().find(|(small, _)| *small == word).and_then(|(_, known)| road(known))
}

/// `hwy` of `2 San Tomas hwy`: after a name with a house number or a direction before it.
pub fn road_in_address(word: &str, scan: &Scan<'_>) -> Option<&'static str> {
    let road = small_road(word)?;
    (follows_name(scan) && numbered_name_before(scan)).then_some(road)
}

/// Whether one to three names are before `scan`, and a number or a direction before them.
fn numbered_name_before(scan: &Scan<'_>) -> bool {
    let head = scan.before_text(LONGEST_HEAD);
    let words = head.split_whitespace().rev().take(LONGEST_NAME).enumerate();
    for (names, word) in words {
        let bare = word.trim_end_matches('.');
        if is_ordinal(bare) && names == 0 {
            return true;
        }
        if direction(bare).is_some() || bare.len() <= 5 && !digits(bare).is_empty() {
            return names > 0;
        }
        if !bare.starts_with(|c: char| c.is_ascii_uppercase())
            || word.ends_with([',', '!', '?', ';'])
        {
            return false;
        }
    }
    false
}

/// Words that begin a sentence rather than continue a name.
fn begins_sentence(word: &str) -> bool {
    const WORDS: &[&str] = &[
        "It", "The", "He", "She", "They", "We", "You", "I", "In", "On", "At", "A", "An", "This",
        "That", "These", "Those", "There", "But", "And", "Then", "When", "My", "His", "Her", "Our",
        "Your", "Their", "If", "As", "For", "After", "Before", "Please", "Its", "Is", "Was", "Do",
        "Did", "What", "Where", "Who", "Why", "How", "Not", "No", "Yes", "So", "Now", "Turn", "Go",
        "Call",
    ];
    WORDS.contains(&word)
}

/// What `word` means at `scan`, with or without its dot: a road after a name, a person or a place
/// before one. `after` is the scan after the word and its dot.
pub fn road_or_person(
    word: &str,
    scan: &Scan<'_>,
    after: &Scan<'_>,
) -> Option<(&'static str, Dot)> {
    let after_name = follows_name(scan);
    // `1428 Elm St. It was`: the road ends a sentence; `12 St. Paul` has a name after it.
    let ends = after_name && begins_sentence(after.word_after()) && after.before() == Some('.');
    let named = after.word_after().starts_with(char::is_uppercase) && !ends;
    // These two are read in any case, as people write them.
    let capital = match word {
        _ if word.eq_ignore_ascii_case("st") => "St",
        _ if word.eq_ignore_ascii_case("dr") => "Dr",
        _ => word,
    };
    let person = match capital {
        "St" => Some("saint"),
        "Dr" => Some("doctor"),
        "Ft" if named && !after_name => return Some(("fort", Dot::Never)),
        _ => None,
    };
    let quadrant = direction(after.word_after()).is_some();
    match (person, road(capital)) {
        (_, Some(road)) if ends => Some((road, Dot::BeforeCapital)),
        (Some(_), Some(road)) if after_name && (!named || quadrant) => Some((road, Dot::AtEnd)),
        (Some(person), _) => Some((person, Dot::Never)),
        (None, Some(road)) if after_name => Some((road, Dot::AtEnd)),
        _ => None,
    }
}

/// Whether the word before is a name or an ordinal: `Main St.`, `John's St.`, `42nd St.`
fn follows_name(scan: &Scan<'_>) -> bool {
    let word = scan.token_before();
    word.starts_with(char::is_uppercase) || is_ordinal(word)
}

/// `NW` after `Ave.`
pub fn take_quadrant(scan: &mut Scan<'_>, out: &mut Spoken) {
    let word = scan.word_after();
    if let Some(words) = direction(word) {
        let rest = scan.rest();
        scan.skip(rest.len() - rest.trim_start().len() + word.len());
        out.phrase(words);
    }
}

/// The state of `Boston, MA 02134`, and the zip code after it.
pub fn try_state(word: &str, scan: &mut Scan<'_>, out: &mut Spoken) -> bool {
    let Some((_, name)) = STATES.iter().find(|(short, _)| *short == word) else { return false };
    let after_comma = scan.place_before();
    let mut after = *scan;
    after.skip(word.len());
    // `FL 95051`, `FL, 95051`
    let behind = after.rest().strip_prefix(',').unwrap_or(after.rest()).trim_start_matches(' ');
    let zip = digits(behind);
    let coded = zip.len() == 5 && !behind[5..].starts_with(|c: char| c.is_alphanumeric());
    let city = after_comma
        && scan
            .before_text(LONGEST_HEAD)
            .trim_end()
            .strip_suffix(',')
            .is_some_and(cities::ends_with_city);
    let alone =
        !after.rest().starts_with(|c: char| c.is_alphanumeric() || matches!(c, '\'' | '-' | '&'));
    // `New York, NY 10001` and `Tulsa, OK in 1990`; `Well, OK.` and `Yes, MA, I will` are no places.
    let place = after_comma || scan.name_before().starts_with(|c: char| c.is_ascii_uppercase());
    if !alone || !(city || coded && place || after_comma && is_after_street(scan)) {
        return false;
    }
    *scan = after;
    out.phrase(name);
    if coded {
        if scan.rest().starts_with(',') {
            out.close(',');
        }
        scan.skip(scan.rest().len() - behind.len() + 5);
        out.number(&one_by_one(zip));
    }
    true
}

/// `123 Elm St, Springfield, ` is before the position.
fn is_after_street(scan: &Scan<'_>) -> bool {
    let head = scan.before_text(LONGEST_HEAD);
    let mut places = head.trim_end().trim_end_matches(',').rsplit(',').skip(1);
    places.next().is_some_and(|street| {
        let street = street.trim();
        let last = street.rsplit(' ').next().unwrap_or_default().trim_end_matches('.');
        let numbered = street.split(' ').any(|word| !digits(word).is_empty());
        numbered && (road(last).is_some() || is_road_word(last))
    })
}

#[rustfmt::skip]
const STATES: &[(&str, &str)] = &[
    ("AL", "alabama"), ("AK", "alaska"), ("AZ", "arizona"), ("AR", "arkansas"), ("CA", "california"),
    ("CO", "colorado"), ("CT", "connecticut"), ("DC", "d c"), ("DE", "delaware"), ("FL", "florida"),
    ("GA", "georgia"), ("HI", "hawaii"), ("ID", "idaho"), ("IL", "illinois"), ("IN", "indiana"),
    ("IA", "iowa"), ("KS", "kansas"), ("KY", "kentucky"), ("LA", "louisiana"), ("ME", "maine"),
    ("MD", "maryland"), ("MA", "massachusetts"), ("MI", "michigan"), ("MN", "minnesota"),
    ("MS", "mississippi"), ("MO", "missouri"), ("MT", "montana"), ("NE", "nebraska"), ("NV", "nevada"),
    ("NH", "new hampshire"), ("NJ", "new jersey"), ("NM", "new mexico"), ("NY", "new york"),
    ("NC", "north carolina"), ("ND", "north dakota"), ("OH", "ohio"), ("OK", "oklahoma"),
    ("OR", "oregon"), ("PA", "pennsylvania"), ("RI", "rhode island"), ("SC", "south carolina"),
    ("SD", "south dakota"), ("TN", "tennessee"), ("TX", "texas"), ("UT", "utah"), ("VT", "vermont"),
    ("VA", "virginia"), ("WA", "washington"), ("WV", "west virginia"), ("WI", "wisconsin"),
    ("WY", "wyoming"),
];
