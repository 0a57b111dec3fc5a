//! Times of day: `15:30`, `15.30 Uhr`, `15h30`.
//!
//! In: text at a digit, and the word before it. Out: words, by the 24 hours that are written.

use super::super::language::Language;
use super::super::numeral::{Clock, digits};
use super::arabic;
use super::cardinals::{Gender, cardinal};
use super::slavic::{Form, ordinal, plural};

/// The time that `text` begins with, and its length.
pub fn read(text: &str, language: Language, before: &str) -> Option<(String, usize)> {
    let (clock, sure) = written(text, language)?;
    let rest = &text[clock.len..];
    let word = rest.trim_start_matches(' ');
    let named = said_after(language).iter().find(|name| {
        word.strip_prefix(**name).is_some_and(|after| !after.starts_with(char::is_alphabetic))
    });
    let called = matches!(before, "klockan" | "kl" | "um" | "om");
    if !sure && named.is_none() && !called {
        return None;
    }
    let taken = named.map_or(0, |name| rest.len() - word.len() + name.len());
    let mut words = spoken(language, &clock, before, named.is_some());
    if let Some(second) = clock.second {
        let second = cardinal(language, u64::from(second), Gender::Counting);
        words = match language {
            Language::Arabic => format!("{words} و{second}"),
            _ => format!("{words} {second}"),
        };
    }
    Some((words, clock.len + taken))
}

/// The words after a time that are said with it.
fn said_after(language: Language) -> &'static [&'static str] {
    match language {
        Language::German => &["uhr"],
        Language::Dutch => &["uur"],
        Language::French => &["heures", "heure", "h"],
        Language::Spanish | Language::Portuguese => &["horas", "hora", "hs", "h"],
        Language::Czech => &["hodin", "hodiny", "hod", "h"],
        _ => &[],
    }
}

/// A time, and whether it can be nothing else.
fn written(text: &str, language: Language) -> Option<(Clock, bool)> {
    if let Some(clock) = Clock::parse(text) {
        return Some((clock, true));
    }
    let hours = digits(text);
    if hours.len() > 2 {
        return None;
    }
    let marks: &[char] = match language {
        Language::French | Language::Portuguese => &['h'],
        Language::German | Language::Dutch | Language::Swedish | Language::Polish => &['.'],
        _ => return None,
    };
    let hour: u8 = hours.parse().ok().filter(|hour| *hour <= 24)?;
    let after = &text[hours.len()..];
    let rest = after.strip_prefix(' ').filter(|_| marks == ['h']).unwrap_or(after);
    let mark = rest.chars().next().filter(|mark| marks.contains(mark))?;
    let tail = &rest[1..];
    // `15 h 30`
    let after = tail.strip_prefix(' ').filter(|_| rest != after).unwrap_or(tail);
    let minutes = digits(after);
    let (minute, len) = match minutes.len() {
        2 => {
            let minute = minutes.parse().ok().filter(|minute| *minute < 60)?;
            (minute, text.len() - after.len() + 2)
        }
        // `15 h`, `8h`: only where no letter follows.
        0 if mark == 'h' && !tail.starts_with(char::is_alphabetic) => (0, text.len() - tail.len()),
        _ => return None,
    };
    Some((Clock { hour, minute, second: None, len }, mark == 'h'))
}

fn spoken(language: Language, clock: &Clock, before: &str, named: bool) -> String {
    let (hour, minute) = (u64::from(clock.hour), u64::from(clock.minute));
    let say = |value, gender| cardinal(language, value, gender);
    let minutes = || say(minute, Gender::Counting);
    // `fünf`, but «ноль пять» where minutes follow hours without a word between.
    let two_digits = |zero: &str| match minute {
        0 => String::new(),
        1..10 => format!(" {zero} {}", minutes()),
        _ => format!(" {}", minutes()),
    };
    let after = |joint: &str, end: &str| match minute {
        0 => String::new(),
        _ => format!(" {joint}{}{end}", minutes()),
    };
    let feminine = say(hour, Gender::Feminine);
    match language {
        Language::German => format!("{} uhr{}", say(hour, Gender::Masculine), after("", "")),
        Language::Dutch => format!("{} uur{}", say(hour, Gender::Counting), after("", "")),
        Language::French => {
            let name = if hour < 2 { "heure" } else { "heures" };
            format!("{feminine} {name}{}", after("", ""))
        }
        Language::Spanish if named => {
            let name = if hour == 1 { "hora" } else { "horas" };
            format!("{feminine} {name}{}", after("y ", ""))
        }
        Language::Spanish => format!("{feminine}{}", after("y ", "")),
        Language::Italian => format!("{feminine}{}", after("e ", "")),
        Language::Portuguese => {
            let name = if hour < 2 { "hora" } else { "horas" };
            format!(
                "{feminine} {name}{}",
                after("e ", if minute == 1 { " minuto" } else { " minutos" })
            )
        }
        Language::Russian if minute == 0 => {
            let name = ["час", "часа", "часов"][plural(language, hour)];
            format!("{} {name}", say(hour, Gender::Masculine))
        }
        Language::Russian => format!("{}{}", say(hour, Gender::Masculine), two_digits("ноль")),
        Language::Czech if minute == 0 => {
            let name = ["hodina", "hodiny", "hodin"][plural(language, hour)];
            format!("{feminine} {name}")
        }
        Language::Czech => format!("{}{}", say(hour, Gender::Feminine), two_digits("nula")),
        Language::Ukrainian | Language::Polish => {
            let placed = matches!(
                before,
                "о" | "об" | "o" | "po" | "od" | "do" | "przed" | "godzinie" | "годині"
            );
            let form = if placed { Form::FeminineLocative } else { Form::Feminine };
            let hours = match hour {
                0 => say(0, Gender::Counting),
                _ => ordinal(language, hour, form),
            };
            format!(
                "{hours}{}",
                two_digits(if language == Language::Polish { "zero" } else { "нуль" })
            )
        }
        Language::Arabic => match minute {
            0 => arabic::hour(hour),
            15 => format!("{} والربع", arabic::hour(hour)),
            30 => format!("{} والنصف", arabic::hour(hour)),
            _ => format!("{} و{}", arabic::hour(hour), arabic::minutes(minute)),
        },
        Language::Swedish => format!("{}{}", say(hour, Gender::Counting), two_digits("noll")),
        _ => format!("{}{}", say(hour, Gender::Counting), two_digits("sıfır")),
    }
}
