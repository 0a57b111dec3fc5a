//! Persian names of units, currencies, months and signs, and the meaning of abbreviations.

/// The unit `text` begins with, and its length.
pub fn unit(text: &str) -> Option<(&'static str, usize)> {
    // Longer spellings first: `km/h` before `km`.
    let (spelling, name) = UNITS.iter().find(|(spelling, _)| {
        text.strip_prefix(spelling)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '/'))
    })?;
    Some((name, spelling.len()))
}

#[rustfmt::skip]
const UNITS: &[(&str, &str)] = &[
    ("km/h", "کیلومتر بر ساعت"),
    ("m/s", "متر بر ثانیه"),
    ("km²", "کیلومتر مربع"),
    ("m²", "متر مربع"),
    ("m³", "متر مکعب"),
    ("°C", "درجه سانتی‌گراد"),
    ("°F", "درجه فارنهایت"),
    ("°", "درجه"),
    ("kHz", "کیلوهرتز"),
    ("MHz", "مگاهرتز"),
    ("GHz", "گیگاهرتز"),
    ("Hz", "هرتز"),
    ("km", "کیلومتر"),
    ("cm", "سانتی‌متر"),
    ("mm", "میلی‌متر"),
    ("kg", "کیلوگرم"),
    ("mg", "میلی‌گرم"),
    ("ml", "میلی‌لیتر"),
    ("kW", "کیلووات"),
    ("MW", "مگاوات"),
    ("dB", "دسی‌بل"),
    ("KB", "کیلوبایت"),
    ("kB", "کیلوبایت"),
    ("MB", "مگابایت"),
    ("GB", "گیگابایت"),
    ("TB", "ترابایت"),
    ("m", "متر"),
    ("g", "گرم"),
    ("l", "لیتر"),
    ("L", "لیتر"),
];

/// Words after which `۳/۵` is a decimal: three fifths of a percent is not used.
pub fn is_measured(word: &str) -> bool {
    matches!(
        word,
        "درصد"
            | "هزار"
            | "میلیون"
            | "میلیارد"
            | "متر"
            | "کیلومتر"
            | "سانتی‌متر"
            | "میلی‌متر"
            | "کیلو"
            | "کیلوگرم"
            | "گرم"
            | "تن"
            | "لیتر"
            | "تومان"
            | "ریال"
            | "دلار"
            | "یورو"
            | "برابر"
            | "ریشتر"
            | "درجه"
            | "ساعت"
            | "ثانیه"
            | "هکتار"
    )
}

/// Name of a currency, and of its smaller unit if it has one.
pub fn currency(sign: char) -> Option<(&'static str, &'static str)> {
    Some(match sign {
        '$' => ("دلار", "سنت"),
        '€' => ("یورو", "سنت"),
        '£' => ("پوند", "پنس"),
        '¥' => ("ین", ""),
        '₹' => ("روپیه", ""),
        '₽' => ("روبل", ""),
        '₺' => ("لیر", ""),
        '﷼' => ("ریال", ""),
        _ => return None,
    })
}

/// Solar Hijri for years like 1403, Gregorian for years like 2024. Months count from 1.
pub fn month(year: u32, month: u32) -> Option<&'static str> {
    const SOLAR: [&str; 12] = [
        "فروردین",
        "اردیبهشت",
        "خرداد",
        "تیر",
        "مرداد",
        "شهریور",
        "مهر",
        "آبان",
        "آذر",
        "دی",
        "بهمن",
        "اسفند",
    ];
    const GREGORIAN: [&str; 12] = [
        "ژانویه",
        "فوریه",
        "مارس",
        "آوریل",
        "مه",
        "ژوئن",
        "ژوئیه",
        "اوت",
        "سپتامبر",
        "اکتبر",
        "نوامبر",
        "دسامبر",
    ];
    let names = match year {
        1200..1500 => &SOLAR,
        1700..2200 => &GREGORIAN,
        _ => return None,
    };
    names.get((month as usize).checked_sub(1)?).copied()
}

/// Two letters with a dot between them.
pub fn initials(first: char, second: char) -> Option<&'static str> {
    Some(match (first, second) {
        ('ق', 'م') => "قبل از میلاد",
        ('ه', 'ش') => "هجری شمسی",
        ('ه', 'ق') => "هجری قمری",
        ('ر', 'ک') => "رجوع کنید به",
        _ => return None,
    })
}

/// Letters in brackets after the name of a holy person.
pub fn honorific(letters: &str) -> Option<&'static str> {
    Some(match letters {
        "ص" => "صلی‌الله علیه و آله",
        "ع" => "علیه‌السلام",
        "س" => "سلام‌الله علیها",
        "ره" => "رحمت‌الله علیه",
        "عج" => "عجل‌الله تعالی فرجه",
        _ => return None,
    })
}

/// Short for something named by the number after it: «ص ۱۲».
pub fn before_number(word: &str) -> Option<&'static str> {
    match word {
        "ص" => Some("صفحه"),
        "ج" => Some("جلد"),
        _ => None,
    }
}

/// How a sign is said.
pub fn sign(sign: char) -> Option<&'static str> {
    Some(match sign {
        '&' => "و",
        '@' => "ات",
        '#' => "هشتگ",
        '+' => "به‌علاوه",
        '=' => "مساوی",
        '%' => "درصد",
        '/' => "ممیز",
        '×' => "ضربدر",
        '÷' => "تقسیم بر",
        '±' => "به‌علاوه منهای",
        '°' => "درجه",
        '~' | '≈' => "حدود",
        '−' => "منفی",
        _ => return currency(sign).map(|(name, _)| name),
    })
}
