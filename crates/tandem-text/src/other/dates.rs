//! Dates: `5. März`, `05.03.2024`, «5 марта 2024 г.», and years beside words that show them.
//!
//! In: text at a digit, and the word before it. Out: words. Dates of numbers have the day first, unless the year comes first.

use super::super::language::Language;
use super::super::numeral::digits;
use super::super::scan::letters;
use super::arabic;
use super::cardinals::{Gender, cardinal};
use super::numbers::{oblique, year_or_count};
use super::ordinals::{german, swedish};
use super::slavic::{Form, ordinal};

/// The months as they are said after a day.
fn months(language: Language) -> &'static str {
    match language {
        Language::German => {
            "januar februar märz april mai juni juli august september oktober november dezember"
        }
        Language::Dutch => {
            "januari februari maart april mei juni juli augustus september oktober november december"
        }
        Language::Swedish => {
            "januari februari mars april maj juni juli augusti september oktober november december"
        }
        Language::French => {
            "janvier février mars avril mai juin juillet août septembre octobre novembre décembre"
        }
        Language::Spanish => {
            "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"
        }
        Language::Italian => {
            "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre"
        }
        Language::Portuguese => {
            "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro"
        }
        Language::Turkish => {
            "ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık"
        }
        Language::Russian => {
            "января февраля марта апреля мая июня июля августа сентября октября ноября декабря"
        }
        Language::Ukrainian => {
            "січня лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня"
        }
        Language::Polish => {
            "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia"
        }
        Language::Czech => {
            "ledna února března dubna května června července srpna září října listopadu prosince"
        }
        _ => "يناير فبراير مارس أبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر",
    }
}

/// The date that `text` begins with, and its length.
pub fn read(text: &str, language: Language, before: &str) -> Option<(String, usize)> {
    let first = digits(text).len();
    if first > 4 || first == 3 {
        return None;
    }
    let marks = text[first..].chars().next()?;
    match marks {
        '.' | '/' | '-' => in_numbers(text, marks, language, before),
        _ => None,
    }
    .or_else(|| before_month(text, first, language, before))
}

/// `05.03.2024`, `5/3/24`, `2024-03-05`.
fn in_numbers(text: &str, mark: char, language: Language, before: &str) -> Option<(String, usize)> {
    let (parts, len) = three_parts(text, mark)?;
    let [first, second, third] = parts.map(|part| part.parse::<u64>().unwrap_or_default());
    let (day, month, year) = match parts.map(str::len) {
        [1 | 2, 1 | 2, 4] => (first, second, third),
        [1 | 2, 1 | 2, 2] if mark == '.' => {
            (first, second, if third < 50 { 2000 + third } else { 1900 + third })
        }
        [4, 1 | 2, 1 | 2] => (third, second, first),
        _ => return None,
    };
    let (day, month) = if month > 12 { (month, day) } else { (day, month) };
    if !(1..=31).contains(&day) || !(1..=12).contains(&month) || year == 0 {
        return None;
    }
    let name = months(language).split(' ').nth(month as usize - 1)?;
    let rest = &text[len..];
    let day = spoken_day(language, day, before, rest);
    let (year, taken) = year_in_date(language, year, rest);
    let of = match language {
        Language::Spanish | Language::Portuguese => " de",
        _ => "",
    };
    Some((format!("{day}{of} {name}{of} {year}"), len + taken))
}

/// Three groups of digits with a mark between them, and their length: `28.10.1918`, `28. 10. 1918`.
fn three_parts(text: &str, mark: char) -> Option<([&str; 3], usize)> {
    let next = |text: &'_ str| {
        let rest = text.strip_prefix(mark)?;
        Some(text.len() - rest.strip_prefix(' ').filter(|_| mark == '.').unwrap_or(rest).len())
    };
    let first = digits(text);
    let second_at = first.len() + next(&text[first.len()..])?;
    let second = digits(&text[second_at..]);
    let end = second_at + second.len();
    let third_at = end + next(&text[end..])?;
    let third = digits(&text[third_at..]);
    let len = third_at + third.len();
    let more = text[len..].strip_prefix(mark).is_some_and(|rest| !digits(rest).is_empty());
    (!second.is_empty() && !more).then_some(([first, second, third], len))
}

/// `5. März`, `1er janvier`, `5 de marzo`: the day. The month is read as a word, unless it is short (`5. Jan.`).
fn before_month(
    text: &str,
    first: usize,
    language: Language,
    before: &str,
) -> Option<(String, usize)> {
    let day: u64 = text[..first].parse().ok().filter(|day| (1..=31).contains(day))?;
    let mut rest = &text[first..];
    rest =
        [".", "er", "º", "°"].iter().find_map(|suffix| rest.strip_prefix(suffix)).unwrap_or(rest);
    let word = rest.strip_prefix(' ')?;
    let of = match language {
        Language::Spanish | Language::Portuguese if word.starts_with("de ") => "de ",
        _ => "",
    };
    let name = letters(&word[of.len()..]);
    let dot = word[of.len() + name.len()..].starts_with('.');
    let month = month_named(language, name, dot)?;
    let after = &word[of.len() + name.len()..];
    let day = spoken_day(language, day, before, after);
    if month == name {
        return Some((day, text.len() - rest.len()));
    }
    // The dot ends a sentence too, where nothing follows.
    let dot = usize::from(dot && after.len() > 1);
    Some((format!("{day} {of}{month}"), text.len() - after.len() + dot))
}

/// The month with this name, or the only one that begins with it before a dot.
fn month_named(language: Language, name: &str, dot: bool) -> Option<&'static str> {
    let mut found = months(language).split(' ').filter(|month| {
        *month == name || dot && name.chars().count() >= 3 && month.starts_with(name)
    });
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// Whether a word is a month as it is said after a day.
fn is_month(language: Language, word: &str) -> bool {
    !word.is_empty() && months(language).split(' ').any(|month| month == word)
}

/// A day before its month. `after` is the text after the month.
fn spoken_day(language: Language, day: u64, before: &str, after: &str) -> String {
    let in_sentence = || {
        let mut words = after.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
        words.next().is_some_and(|word| !is_year_word(word)) || words.next().is_some()
    };
    match (language, day) {
        (Language::German, _) => german(
            day,
            match before {
                "am" | "im" | "vom" | "zum" | "dem" | "den" | "ab" | "bis" | "seit" | "des"
                | "beim" => "en",
                "der" | "die" | "das" => "e",
                _ => "er",
            },
        ),
        (Language::Swedish, _) => swedish(day),
        (Language::French, 1) => "premier".into(),
        (Language::Italian, 1) => "primo".into(),
        (Language::Portuguese, 1) => "primeiro".into(),
        (Language::Czech, _) => ordinal(language, day, Form::Genitive),
        (Language::Arabic, _) => format!("{} من", arabic::ordinal(day)),
        (Language::Russian | Language::Ukrainian | Language::Polish, _) => {
            let form = match before {
                "сегодня" | "завтра" | "вчера" | "на" | "по" | "это" | "сьогодні" | "вчора"
                | "це" | "na" | "po" | "jest" | "dziś" | "dzisiaj" | "jutro" | "wczoraj" | "to" => {
                    nominative(language)
                }
                "к" | "ко" => Form::Dative,
                "" if !in_sentence() => nominative(language),
                _ => Form::Genitive,
            };
            ordinal(language, day, form)
        }
        _ => cardinal(language, day, Gender::Counting),
    }
}

/// «пятое» is a number, `piąty` a day.
fn nominative(language: Language) -> Form {
    if language == Language::Polish { Form::Masculine } else { Form::Neuter }
}

/// The word for a year, in any case, or its first letter.
fn is_year_word(word: &str) -> bool {
    matches!(
        word,
        "год"
            | "года"
            | "году"
            | "годом"
            | "г"
            | "рік"
            | "року"
            | "році"
            | "роком"
            | "р"
            | "rok"
            | "roku"
            | "rokiem"
            | "r"
    )
}

/// A year after a month of numbers, and how much of `rest` says that it is one.
fn year_in_date(language: Language, value: u64, rest: &str) -> (String, usize) {
    match year(language, value, months(language).split(' ').next().unwrap_or_default(), rest) {
        Some(found) => found,
        None => (year_or_count(language, value, Gender::Counting), 0),
    }
}

/// A year as an ordinal, where the words beside it show one: «в 1984 году», «5 марта 1984», «عام 1984». Also how much of
/// `rest`, the text after the number, is read with it.
pub fn year(language: Language, value: u64, before: &str, rest: &str) -> Option<(String, usize)> {
    let dated = is_month(language, before);
    if language == Language::Arabic {
        let words = || oblique(language, cardinal(language, value, Gender::Counting));
        return match before {
            "عام" | "سنة" | "العام" | "السنة" | "لعام" | "لسنة" => {
                Some((words(), 0))
            }
            _ if dated => Some((format!("عام {}", words()), 0)),
            _ => None,
        };
    }
    if !(1000..3000).contains(&value) {
        return None;
    }
    let trimmed = rest.trim_start_matches(' ');
    let word = letters(trimmed);
    let inside = matches!(before, "в" | "у" | "о" | "об" | "w" | "во");
    let of_year = match language {
        Language::Russian => "года",
        Language::Ukrainian => "року",
        Language::Polish => "roku",
        _ => return None,
    };
    let short = matches!(
        (language, word),
        (Language::Russian, "г") | (Language::Ukrainian, "р") | (Language::Polish, "r")
    );
    let form = match word {
        _ if short && inside => Form::Locative,
        _ if short => Form::Genitive,
        "год" | "рік" | "rok" => Form::Masculine,
        "roku" if inside => Form::Locative,
        "года" | "року" | "roku" => Form::Genitive,
        "году" | "році" => Form::Locative,
        "годом" | "роком" | "rokiem" => Form::Instrumental,
        _ if dated => {
            return Some((format!("{} {of_year}", ordinal(language, value, Form::Genitive)), 0));
        }
        _ => return None,
    };
    let words = ordinal(language, value, form);
    if !short {
        return Some((words, 0));
    }
    let name = match (language, inside) {
        (Language::Russian, true) => "году",
        (Language::Ukrainian, true) => "році",
        _ => of_year,
    };
    let after = &trimmed[word.len()..];
    // The dot ends a sentence too, where nothing follows.
    let dot = usize::from(after.starts_with('.') && after.len() > 1);
    Some((format!("{words} {name}"), rest.len() - after.len() + dot))
}
