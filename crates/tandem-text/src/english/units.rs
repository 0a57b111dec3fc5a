//! English names of units, currencies and magnitudes.

use super::super::scan::letters;

/// A unit after a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    pub one: String,
    pub many: String,
    /// Length of the text it was written with.
    pub len: usize,
    /// Whether a dot after it may belong to it: `6 ft. tall`.
    pub dotted: bool,
}

/// The unit that `text` begins with. Case matters only where it distinguishes units: `Mb` is a
/// megabit, `MB` a megabyte; `KM` and `HZ` are units too.
pub fn unit(text: &str) -> Option<Unit> {
    let (base, len) = base(text, is_whole).or_else(|| base(text, has_digit_power))?;
    let rest = &text[len..];
    let length = matches!(
        base.1,
        "meter" | "kilometer" | "centimeter" | "millimeter" | "foot" | "inch" | "yard" | "mile"
    );
    let digit_power = length && !rest.chars().nth(1).is_some_and(char::is_alphanumeric);
    let (prefix, power) = match rest.chars().next() {
        Some('2') if digit_power => ("square ", 1),
        Some('3') if digit_power => ("cubic ", 1),
        Some('²') => ("square ", 2),
        Some('³') => ("cubic ", 2),
        _ => ("", 0),
    };
    let mut found = Unit {
        one: format!("{prefix}{}", base.1),
        many: format!("{prefix}{}", base.2),
        len: len + power,
        dotted: base.3 == Dots::Allowed,
    };
    if let Some(below) = text[found.len..].strip_prefix('/') {
        let (per, width) = divisor(below)?;
        found.one = format!("{} per {per}", found.one);
        found.many = format!("{} per {per}", found.many);
        found.len += 1 + width;
        found.dotted = false;
    }
    let whole = !text[found.len..]
        .starts_with(|c: char| c.is_alphanumeric() || matches!(c, '²' | '³' | '/' | '\''));
    whole.then_some(found)
}

const PERIODS: &[&str] = &["day", "week", "month", "year", "hour", "minute", "second", "person"];

/// The unit after `per`, in the singular.
pub fn divisor(text: &str) -> Option<(String, usize)> {
    let short = [("s", "second"), ("h", "hour"), ("d", "day")];
    let single = short.iter().find(|(name, _)| letters(text).eq_ignore_ascii_case(name));
    let (name, len) = match single {
        Some((spelling, name)) => (*name, spelling.len()),
        None if PERIODS.contains(&letters(text)) => (letters(text), letters(text).len()),
        None => base(text, is_whole).map(|(base, len)| (base.1, len))?,
    };
    match (text[len..].chars().next(), name) {
        (Some('²'), "second") => Some(("second squared".into(), len + 2)),
        (Some('2'), "second") if !text[len + 1..].starts_with(char::is_alphanumeric) => {
            Some(("second squared".into(), len + 1))
        }
        (Some('²'), _) => Some((format!("square {name}"), len + 2)),
        (Some('³'), _) => Some((format!("cubic {name}"), len + 2)),
        _ => Some((name.into(), len)),
    }
}

/// The unit without powers and without a divisor.
fn base(text: &str, fits: fn(&str, &str) -> bool) -> Option<(&'static Base, usize)> {
    let exact = UNITS.iter().find(|unit| text.starts_with(unit.0) && fits(text, unit.0));
    // One letter in another case is rather a name: `5 M`, `5 G`.
    let any_case = || {
        UNITS.iter().find(|(spelling, ..)| {
            let head = text.get(..spelling.len()).unwrap_or_default();
            let letters = spelling.len() > 1 && spelling.is_ascii();
            let capitals = !head.bytes().any(|b| b.is_ascii_lowercase());
            letters && capitals && head.eq_ignore_ascii_case(spelling) && fits(text, spelling)
        })
    };
    exact.or_else(any_case).map(|unit| (unit, unit.0.len()))
}

fn is_whole(text: &str, spelling: &str) -> bool {
    let rest = &text[spelling.len()..];
    let needs_dot = matches!(spelling, "in" | "IN");
    let more = |c: char| (c.is_alphanumeric() && !matches!(c, '²' | '³')) || c == '\'';
    !rest.starts_with(more) && (!needs_dot || rest.starts_with('.'))
}

/// `m2`, `km2`, `ft3`.
fn has_digit_power(text: &str, spelling: &str) -> bool {
    let rest = &text[spelling.len()..];
    matches!(spelling, "m" | "km" | "cm" | "mm" | "ft" | "yd" | "mi" | "in")
        && rest.starts_with(['2', '3'])
        && !rest[1..].starts_with(|c: char| c.is_alphanumeric())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dots {
    Never,
    Allowed,
}
use Dots::{Allowed, Never};

type Base = (&'static str, &'static str, &'static str, Dots);

/// Longer spellings first: `kHz` before `k`, `sq ft` before `s`.
#[rustfmt::skip]
const UNITS: &[Base] = &[
    ("sq. ft", "square foot", "square feet", Allowed),
    ("sq. mi", "square mile", "square miles", Allowed),
    ("sq. km", "square kilometer", "square kilometers", Never),
    ("sq. in", "square inch", "square inches", Allowed),
    ("sq. m", "square meter", "square meters", Never),
    ("cu. ft", "cubic foot", "cubic feet", Allowed),
    ("fl. oz", "fluid ounce", "fluid ounces", Allowed),
    ("sq ft", "square foot", "square feet", Allowed),
    ("cu ft", "cubic foot", "cubic feet", Allowed),
    ("fl oz", "fluid ounce", "fluid ounces", Allowed),
    ("sq mi", "square mile", "square miles", Allowed),
    ("sq km", "square kilometer", "square kilometers", Never),
    ("sq m", "square meter", "square meters", Never),
    ("° C", "degree celsius", "degrees celsius", Never),
    ("° F", "degree fahrenheit", "degrees fahrenheit", Never),
    ("°C", "degree celsius", "degrees celsius", Never),
    ("°F", "degree fahrenheit", "degrees fahrenheit", Never),
    ("ºC", "degree celsius", "degrees celsius", Never),
    ("ºF", "degree fahrenheit", "degrees fahrenheit", Never),
    ("°", "degree", "degrees", Never),
    ("º", "degree", "degrees", Never),
    ("kcal", "kilocalorie", "kilocalories", Never),
    ("Mbps", "megabit per second", "megabits per second", Never),
    ("Gbps", "gigabit per second", "gigabits per second", Never),
    ("kbps", "kilobit per second", "kilobits per second", Never),
    ("mbps", "megabit per second", "megabits per second", Never),
    ("gbps", "gigabit per second", "gigabits per second", Never),
    ("bps", "bit per second", "bits per second", Never),
    ("tbsp", "tablespoon", "tablespoons", Allowed),
    ("mmHg", "millimeter of mercury", "millimeters of mercury", Never),
    ("kWh", "kilowatt hour", "kilowatt hours", Never),
    ("MWh", "megawatt hour", "megawatt hours", Never),
    ("GWh", "gigawatt hour", "gigawatt hours", Never),
    ("mAh", "milliamp hour", "milliamp hours", Never),
    ("kHz", "kilohertz", "kilohertz", Never),
    ("MHz", "megahertz", "megahertz", Never),
    ("GHz", "gigahertz", "gigahertz", Never),
    ("mph", "mile per hour", "miles per hour", Never),
    ("mpg", "mile per gallon", "miles per gallon", Never),
    ("kph", "kilometer per hour", "kilometers per hour", Never),
    ("kmh", "kilometer per hour", "kilometers per hour", Never),
    ("rpm", "revolution per minute", "revolutions per minute", Never),
    ("bpm", "beat per minute", "beats per minute", Never),
    ("fps", "frame per second", "frames per second", Never),
    ("dpi", "dot per inch", "dots per inch", Never),
    ("psi", "pound per square inch", "pounds per square inch", Never),
    ("ppm", "part per million", "parts per million", Never),
    ("ppb", "part per billion", "parts per billion", Never),
    ("hPa", "hectopascal", "hectopascals", Never),
    ("kPa", "kilopascal", "kilopascals", Never),
    ("mcg", "microgram", "micrograms", Never),
    ("lbs", "pound", "pounds", Allowed),
    ("gal", "gallon", "gallons", Allowed),
    ("tsp", "teaspoon", "teaspoons", Allowed),
    ("sec", "second", "seconds", Allowed),
    ("min", "minute", "minutes", Allowed),
    ("mins", "minute", "minutes", Allowed),
    ("secs", "second", "seconds", Allowed),
    ("pct", "percent", "percent", Allowed),
    ("atm", "atmosphere", "atmospheres", Never),
    ("cal", "calorie", "calories", Never),
    ("hrs", "hour", "hours", Allowed),
    ("yrs", "year", "years", Allowed),
    ("Hz", "hertz", "hertz", Never),
    ("km", "kilometer", "kilometers", Never),
    ("cm", "centimeter", "centimeters", Never),
    ("mm", "millimeter", "millimeters", Never),
    ("µm", "micrometer", "micrometers", Never),
    ("μm", "micrometer", "micrometers", Never),
    ("nm", "nanometer", "nanometers", Never),
    ("kg", "kilogram", "kilograms", Never),
    ("mg", "milligram", "milligrams", Never),
    ("µg", "microgram", "micrograms", Never),
    ("μg", "microgram", "micrograms", Never),
    ("ml", "milliliter", "milliliters", Never),
    ("mL", "milliliter", "milliliters", Never),
    ("cl", "centiliter", "centiliters", Never),
    ("dl", "deciliter", "deciliters", Never),
    ("dL", "deciliter", "deciliters", Never),
    ("µL", "microliter", "microliters", Never),
    ("μL", "microliter", "microliters", Never),
    ("ug", "microgram", "micrograms", Never),
    ("kb", "kilobyte", "kilobytes", Never),
    ("mb", "megabyte", "megabytes", Never),
    ("gb", "gigabyte", "gigabytes", Never),
    ("tb", "terabyte", "terabytes", Never),
    ("PB", "petabyte", "petabytes", Never),
    ("Gbit", "gigabit", "gigabits", Never),
    ("Mbit", "megabit", "megabits", Never),
    ("MPa", "megapascal", "megapascals", Never),
    ("Ah", "amp hour", "amp hours", Never),
    ("kt", "knot", "knots", Never),
    ("cc", "c c", "c c", Never),
    ("ha", "hectare", "hectares", Never),
    ("kW", "kilowatt", "kilowatts", Never),
    ("MW", "megawatt", "megawatts", Never),
    ("GW", "gigawatt", "gigawatts", Never),
    ("kV", "kilovolt", "kilovolts", Never),
    ("mV", "millivolt", "millivolts", Never),
    ("mA", "milliamp", "milliamps", Never),
    ("kJ", "kilojoule", "kilojoules", Never),
    ("kN", "kilonewton", "kilonewtons", Never),
    ("Nm", "newton meter", "newton meters", Never),
    ("dB", "decibel", "decibels", Never),
    ("KB", "kilobyte", "kilobytes", Never),
    ("kB", "kilobyte", "kilobytes", Never),
    ("MB", "megabyte", "megabytes", Never),
    ("GB", "gigabyte", "gigabytes", Never),
    ("TB", "terabyte", "terabytes", Never),
    ("Mb", "megabit", "megabits", Never),
    ("Gb", "gigabit", "gigabits", Never),
    ("ms", "millisecond", "milliseconds", Never),
    ("hr", "hour", "hours", Allowed),
    ("yr", "year", "years", Allowed),
    ("ft", "foot", "feet", Allowed),
    ("in", "inch", "inches", Allowed),
    ("yd", "yard", "yards", Allowed),
    ("mi", "mile", "miles", Allowed),
    ("lb", "pound", "pounds", Allowed),
    ("oz", "ounce", "ounces", Allowed),
    ("qt", "quart", "quarts", Allowed),
    ("Pa", "pascal", "pascals", Never),
    ("m", "meter", "meters", Never),
    ("g", "gram", "grams", Never),
    ("l", "liter", "liters", Never),
    ("L", "liter", "liters", Never),
    ("h", "hour", "hours", Never),
    ("V", "volt", "volts", Never),
    ("W", "watt", "watts", Never),
    ("J", "joule", "joules", Never),
    ("Ω", "ohm", "ohms", Never),
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

const fn cents(one: &'static str, many: &'static str) -> Currency {
    Currency { one, many, small_one: "cent", small_many: "cents" }
}

const fn whole(one: &'static str, many: &'static str) -> Currency {
    Currency { one, many, small_one: "", small_many: "" }
}

const POUND: Currency =
    Currency { one: "pound", many: "pounds", small_one: "penny", small_many: "pence" };

/// The currency of a sign.
pub fn currency(sign: char) -> Option<Currency> {
    Some(match sign {
        '$' => cents("dollar", "dollars"),
        '£' => POUND,
        '€' => cents("euro", "euros"),
        '¥' => whole("yen", "yen"),
        '₹' => Currency { small_one: "paisa", small_many: "paise", ..whole("rupee", "rupees") },
        '₽' => {
            Currency { small_one: "kopeck", small_many: "kopecks", ..whole("ruble", "rubles") }
        }
        '₺' => Currency { small_one: "kurush", small_many: "kurush", ..whole("lira", "lira") },
        '₩' => whole("won", "won"),
        '﷼' => whole("rial", "rials"),
        '¢' => whole("cent", "cents"),
        _ => return None,
    })
}

/// The currency of an ISO code beside a number.
pub fn code(code: &str) -> Option<Currency> {
    Some(match code {
        "USD" => cents("u s dollar", "u s dollars"),
        "EUR" => cents("euro", "euros"),
        "GBP" => POUND,
        "JPY" => whole("yen", "yen"),
        "CHF" => whole("swiss franc", "swiss francs"),
        "CAD" => cents("canadian dollar", "canadian dollars"),
        "AUD" => cents("australian dollar", "australian dollars"),
        "CNY" => whole("yuan", "yuan"),
        "INR" => whole("rupee", "rupees"),
        "IRR" => whole("rial", "rials"),
        "BRL" => whole("brazilian real", "brazilian reais"),
        "MXN" => whole("mexican peso", "mexican pesos"),
        "KRW" => whole("won", "won"),
        "RUB" => whole("ruble", "rubles"),
        "TRY" => whole("lira", "lira"),
        "SEK" => whole("swedish krona", "swedish kronor"),
        "NOK" => whole("norwegian krone", "norwegian kroner"),
        "DKK" => whole("danish krone", "danish kroner"),
        "PLN" => whole("zloty", "zlotys"),
        "NZD" => cents("new zealand dollar", "new zealand dollars"),
        "SGD" => cents("singapore dollar", "singapore dollars"),
        "HKD" => cents("hong kong dollar", "hong kong dollars"),
        _ => return None,
    })
}

/// The dollar of `A$`, `C$`, `HK$`; that of `US$` is the plain one.
pub fn foreign_dollar(prefix: &str) -> Option<Currency> {
    Some(match prefix {
        "US" => cents("dollar", "dollars"),
        "A" | "AU" => cents("australian dollar", "australian dollars"),
        "C" | "CA" => cents("canadian dollar", "canadian dollars"),
        "HK" => cents("hong kong dollar", "hong kong dollars"),
        "NZ" => cents("new zealand dollar", "new zealand dollars"),
        "S" => cents("singapore dollar", "singapore dollars"),
        "R" => Currency {
            small_one: "centavo",
            small_many: "centavos",
            ..whole("brazilian real", "brazilian reais")
        },
        "MX" => Currency {
            small_one: "centavo",
            small_many: "centavos",
            ..whole("mexican peso", "mexican pesos")
        },
        _ => return None,
    })
}

/// `million` in `$3 million`, `$3m`, `$3bn`: the word and how much text it takes.
pub fn magnitude(text: &str) -> Option<(&'static str, usize)> {
    let trimmed = text.trim_start_matches(' ');
    let word = letters(trimmed);
    let name = match word {
        "k" | "K" => "thousand",
        "m" | "M" | "mn" => "million",
        "b" | "B" | "bn" => "billion",
        "tn" | "T" => "trillion",
        _ => *["thousand", "million", "billion", "trillion"]
            .iter()
            .find(|name| word.eq_ignore_ascii_case(name))?,
    };
    // After a currency, a letter alone is a magnitude, too: `¥30 b`, but not the class of `$5 B movies`.
    let gap = text.len() - trimmed.len();
    let alone = word.starts_with(|c: char| c.is_ascii_lowercase())
        || !trimmed[word.len()..].starts_with(' ');
    (gap == 0 || gap == 1 && (word.len() > 1 || alone)).then_some((name, gap + word.len()))
}

/// Whether the plural of what is counted follows: `60k fans`, but not `5k run` or `4K TV`.
fn is_count(rest: &str) -> bool {
    let next = letters(rest.strip_prefix(' ').unwrap_or_default());
    let plural = next.len() > 3
        && next.ends_with('s')
        && !next.ends_with("ss")
        && next.starts_with(|c: char| c.is_ascii_lowercase());
    plural || matches!(next, "people" | "men" | "women" | "children" | "of")
}

/// Whether what is counted cannot be meters: `1.5m people`.
pub fn are_people(rest: &str) -> bool {
    matches!(
        letters(rest.strip_prefix(' ').unwrap_or_default()),
        "people"
            | "users"
            | "men"
            | "women"
            | "children"
            | "followers"
            | "subscribers"
            | "views"
            | "viewers"
            | "downloads"
            | "visitors"
            | "customers"
            | "copies"
            | "jobs"
            | "votes"
            | "dollars"
            | "euros"
            | "pounds"
    )
}

/// `million` in `5M users` and `1.5bn people`, without a currency: `m` would be meters.
pub fn bare_magnitude(text: &str) -> Option<(&'static str, usize)> {
    match letters(text) {
        "k" | "K" if is_count(&text[1..]) => Some(("thousand", 1)),
        "m" if are_people(&text[1..]) => Some(("million", 1)),
        "M" | "mn" => Some(("million", letters(text).len())),
        "bn" => Some(("billion", 2)),
        "tn" => Some(("trillion", 2)),
        _ => None,
    }
}
