//! Persian names of units, currencies, months and signs, and the meaning of abbreviations.

/// The unit `text` begins with, and its length.
pub fn unit(text: &str) -> Option<(&'static str, usize)> {
    // Longer spellings first: `km/h` before `km`.
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '/');
    let exact = UNITS.iter().find(|(spelling, _)| text.strip_prefix(spelling).is_some_and(ends));
    // `KM` and `HZ`; one letter in another case is rather a name.
    let capitals = || {
        UNITS.iter().find(|(spelling, _)| {
            let head = text.get(..spelling.len()).unwrap_or_default();
            let upper = !head.bytes().any(|b| b.is_ascii_lowercase());
            upper
                && spelling.len() > 1
                && spelling.is_ascii()
                && head.eq_ignore_ascii_case(spelling)
                && ends(&text[spelling.len()..])
        })
    };
    exact.or_else(capitals).map(|(spelling, name)| (*name, spelling.len()))
}

/// The currency whose ISO code `text` begins with, and its length.
pub fn code(text: &str) -> Option<(&'static str, usize)> {
    let name = match text.get(..3)? {
        "USD" => "دلار",
        "EUR" => "یورو",
        "GBP" => "پوند",
        "IRR" => "ریال",
        "CHF" => "فرانک",
        _ => return None,
    };
    (!text[3..].starts_with(char::is_alphanumeric)).then_some((name, 3))
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
    ("Mbps", "مگابیت بر ثانیه"),
    ("kbps", "کیلوبیت بر ثانیه"),
    ("kWh", "کیلووات ساعت"),
    ("rpm", "دور در دقیقه"),
    ("fps", "فریم بر ثانیه"),
    ("min", "دقیقه"),
    ("sec", "ثانیه"),
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
    ("ms", "میلی‌ثانیه"),
    ("cc", "سی‌سی"),
    ("ha", "هکتار"),
    ("V", "ولت"),
    ("W", "وات"),
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
        // Without its century: «۵۷/۱۱/۲۲».
        32..100 | 1200..1500 => &SOLAR,
        1700..2200 => &GREGORIAN,
        _ => return None,
    };
    names.get((month as usize).checked_sub(1)?).copied()
}

/// A month of the solar, lunar or Gregorian calendar after its day. «صفر» and «می» are other words
/// more often.
pub fn is_month(word: &str) -> bool {
    const NAMES: &[&str] = &[
        "فروردین",
        "اردیبهشت",
        "خرداد",
        "تیر",
        "مرداد",
        "امرداد",
        "شهریور",
        "مهر",
        "آبان",
        "آذر",
        "دی",
        "بهمن",
        "اسفند",
        "ژانویه",
        "فوریه",
        "مارس",
        "آوریل",
        "مه",
        "ژوئن",
        "ژوئیه",
        "جولای",
        "اوت",
        "آگوست",
        "سپتامبر",
        "اکتبر",
        "نوامبر",
        "دسامبر",
        "محرم",
        "رجب",
        "شعبان",
        "رمضان",
        "شوال",
        "ربیع‌الاول",
        "ربیع‌الثانی",
        "جمادی‌الاول",
        "جمادی‌الثانی",
        "ذی‌القعده",
        "ذی‌الحجه",
        "ذیقعده",
        "ذیحجه",
    ];
    NAMES.contains(&word)
}

/// Two letters with a dot between them.
pub fn initials(first: char, second: char) -> Option<&'static str> {
    Some(match (first, second) {
        ('ق', 'م') => "قبل از میلاد",
        ('ه', 'ش') => "هجری شمسی",
        ('ه', 'ق') => "هجری قمری",
        ('ر', 'ک') => "رجوع کنید به",
        ('ق', 'ظ') => "قبل از ظهر",
        ('ب', 'ظ') => "بعد از ظهر",
        ('پ', 'ن') => "پی‌نوشت",
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
        "صص" => Some("صفحات"),
        "ج" => Some("جلد"),
        "ش" => Some("شماره"),
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
        '<' => "کوچک‌تر از",
        '>' => "بزرگ‌تر از",
        '−' => "منفی",
        _ => return currency(sign).map(|(name, _)| name),
    })
}
