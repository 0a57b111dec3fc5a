//! English names of units, currencies and magnitudes.

use super::super::scan::letters;

/// Singular and plural of the unit that `text` begins with, and its length. Case matters
/// if it distinguishes units: `MB` is a unit here, `Mb` is not.
pub fn unit(text: &str) -> Option<(&'static str, &'static str, usize)> {
    // Longer spellings first: `km/h` before `km`, `m²` before `m`.
    let (spelling, one, many) =
        *UNITS.iter().find(|(spelling, ..)| is_whole_unit(text, spelling))?;
    Some((one, many, spelling.len()))
}

fn is_whole_unit(text: &str, spelling: &str) -> bool {
    text.strip_prefix(spelling).is_some_and(|rest| {
        !rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '²' | '³' | '/' | '\''))
    })
}

type Unit = (&'static str, &'static str, &'static str);

#[rustfmt::skip]
const UNITS: &[Unit] = &[
    ("km/h", "kilometer per hour", "kilometers per hour"),
    ("km²", "square kilometer", "square kilometers"),
    ("cm²", "square centimeter", "square centimeters"),
    ("cm³", "cubic centimeter", "cubic centimeters"),
    ("m/s", "meter per second", "meters per second"),
    ("m²", "square meter", "square meters"),
    ("m³", "cubic meter", "cubic meters"),
    ("°C", "degree celsius", "degrees celsius"),
    ("° C", "degree celsius", "degrees celsius"),
    ("°F", "degree fahrenheit", "degrees fahrenheit"),
    ("° F", "degree fahrenheit", "degrees fahrenheit"),
    ("°", "degree", "degrees"),
    ("kWh", "kilowatt hour", "kilowatt hours"),
    ("kHz", "kilohertz", "kilohertz"),
    ("MHz", "megahertz", "megahertz"),
    ("GHz", "gigahertz", "gigahertz"),
    ("Hz", "hertz", "hertz"),
    ("mph", "mile per hour", "miles per hour"),
    ("kph", "kilometer per hour", "kilometers per hour"),
    ("kmh", "kilometer per hour", "kilometers per hour"),
    ("km", "kilometer", "kilometers"),
    ("cm", "centimeter", "centimeters"),
    ("mm", "millimeter", "millimeters"),
    ("kg", "kilogram", "kilograms"),
    ("mg", "milligram", "milligrams"),
    ("ml", "milliliter", "milliliters"),
    ("mL", "milliliter", "milliliters"),
    ("cl", "centiliter", "centiliters"),
    ("kW", "kilowatt", "kilowatts"),
    ("MW", "megawatt", "megawatts"),
    ("dB", "decibel", "decibels"),
    ("KB", "kilobyte", "kilobytes"),
    ("kB", "kilobyte", "kilobytes"),
    ("MB", "megabyte", "megabytes"),
    ("GB", "gigabyte", "gigabytes"),
    ("TB", "terabyte", "terabytes"),
    ("ms", "millisecond", "milliseconds"),
    ("sec", "second", "seconds"),
    ("min", "minute", "minutes"),
    ("hrs", "hour", "hours"),
    ("hr", "hour", "hours"),
    ("ft", "foot", "feet"),
    ("yd", "yard", "yards"),
    ("mi", "mile", "miles"),
    ("lbs", "pound", "pounds"),
    ("lb", "pound", "pounds"),
    ("oz", "ounce", "ounces"),
    ("m", "meter", "meters"),
    ("g", "gram", "grams"),
    ("l", "liter", "liters"),
    ("L", "liter", "liters"),
    ("V", "volt", "volts"),
    ("W", "watt", "watts"),
];

/// A kind of money.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Currency {
    /// `dollar`
    pub one: &'static str,
    /// `dollars`
    pub many: &'static str,
    /// `cent`, or empty without a smaller unit.
    pub small_one: &'static str,
    /// `cents`
    pub small_many: &'static str,
}

/// The currency of a sign.
pub fn currency(sign: char) -> Option<Currency> {
    let (one, many, small_one, small_many) = match sign {
        '$' => ("dollar", "dollars", "cent", "cents"),
        '£' => ("pound", "pounds", "penny", "pence"),
        '€' => ("euro", "euros", "cent", "cents"),
        '¥' => ("yen", "yen", "", ""),
        '₹' => ("rupee", "rupees", "paisa", "paise"),
        '₽' => ("ruble", "rubles", "kopeck", "kopecks"),
        '₺' => ("lira", "lira", "kurush", "kurush"),
        '﷼' => ("rial", "rials", "", ""),
        '¢' => ("cent", "cents", "", ""),
        _ => return None,
    };
    Some(Currency { one, many, small_one, small_many })
}

/// `million` in `$3 million`, `$3m`, `$3bn`: the word and how much text it takes.
pub fn magnitude(text: &str) -> Option<(&'static str, usize)> {
    let trimmed = text.trim_start_matches(' ');
    let word = letters(trimmed);
    let name = match word {
        "k" | "K" => "thousand",
        "m" | "M" | "mn" => "million",
        "b" | "B" | "bn" => "billion",
        "tn" => "trillion",
        _ => *["thousand", "million", "billion", "trillion"]
            .iter()
            .find(|name| word.eq_ignore_ascii_case(name))?,
    };
    // A single letter is a magnitude only directly after the digits: `$5 B` is ambiguous.
    let gap = text.len() - trimmed.len();
    (gap == 0 || word.len() > 2 && gap == 1).then_some((name, gap + word.len()))
}
