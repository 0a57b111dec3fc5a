//! Where the ezafe follows a word: «کتابِ من», «در شهرِ بزرگ», «قرنِ بیستم».
//!
//! In: a sentence and the word. Out: whether the words around it show an ezafe. Two nouns in a row do not: they may be
//! subject and object, or a part of the verb.

use super::super::super::persian::is_month;
use super::super::super::words::Word;
use super::class_at;
use super::list::{Class, Entry};

/// Whether a spoken ezafe follows the word.
pub fn follows(words: &[Word], place: usize, found: &Entry) -> bool {
    // Before a comma or at the end there is none.
    if words[place].tail != " " || words.len() == place + 1 {
        return false;
    }
    let next = class_at(words, place + 1);
    let text = |at: usize| words.get(at).map_or("", |word| word.text.as_str());
    let before = place.checked_sub(1).map_or("", text);
    // «پیش از», «خارج شد», «این سمت».
    let governs = next != Some(Class::Verb)
        && !matches!(
            text(place + 1),
            "از" | "به" | "با" | "در" | "بر" | "را" | "و" | "که" | "تا" | "هم"
        )
        && !matches!(before, "این" | "آن" | "همین" | "همان" | "هر" | "چند" | "یک" | "هیچ");
    match (found.class, next) {
        (Class::Preposition, _) => governs,
        (Class::Noun, _) if PHRASES.contains(&(before, text(place))) => governs,
        // «باد ما را برد»: the pronoun is an object.
        (Class::Noun | Class::Name, Some(Class::Pronoun)) => text(place + 2) != "را",
        // «کتاب خوب من».
        (Class::Adjective, Some(Class::Pronoun)) => {
            text(place + 2) != "را"
                && place.checked_sub(1).and_then(|at| class_at(words, at)) == Some(Class::Noun)
        }
        (Class::Noun, Some(Class::Adjective)) => before_adjective(words, place),
        // «قرن بیستم», «سال هزار و سیصد», «ساعت نه».
        (Class::Noun, Some(Class::Number)) => {
            is_ordinal(text(place + 1))
                || is_month(text(place))
                || matches!(text(place), "سال" | "ساعت" | "شماره" | "صفحه")
        }
        (Class::Noun, Some(Class::Other)) if text(place + 1) == "نه" => text(place) == "ساعت",
        // «دوازدهم مرداد».
        (Class::Number, Some(Class::Noun)) => is_ordinal(text(place)) && is_month(text(place + 1)),
        (Class::Noun, Some(Class::Noun | Class::Name)) => {
            is_title(text(place), text(place + 1), next)
        }
        _ => false,
    }
}

/// «هوا سرد است», «کوهستان پاک و خنک است»: the adjective may belong to the verb. What stands after it, or a
/// preposition before the noun, shows that it does not.
fn before_adjective(words: &[Word], place: usize) -> bool {
    let after = words.get(place + 2).map_or("", |word| word.text.as_str());
    let adjective = words[place + 1].text.as_str();
    if words[place + 1].tail == " " && class_at(words, place + 2) == Some(Class::Pronoun) {
        return words.get(place + 3).is_none_or(|word| word.text != "را");
    }
    if ADVERBS.contains(&adjective) || WITH_COMPLEMENT.contains(&adjective) {
        return false;
    }
    let continues = words[place + 1].tail == " " && place + 2 < words.len();
    let class = class_at(words, place + 2).filter(|_| continues && after != "و");
    let open = matches!(class, Some(Class::Other | Class::Preposition | Class::Closed));
    let before = place.checked_sub(1).map_or("", |at| words[at].text.as_str());
    if matches!(before, "در" | "از" | "به" | "با" | "بر" | "برای") {
        let noun = matches!(class, Some(Class::Noun | Class::Name));
        return !continues || open || (noun && !is_part_of_verb(words, place + 2));
    }
    open
}

/// «در خانه تنها زندگی می‌کند» may be an adverb: a noun before the verb is a part of it.
fn is_part_of_verb(words: &[Word], place: usize) -> bool {
    class_at(words, place) == Some(Class::Noun)
        && class_at(words, place + 1) == Some(Class::Verb)
        && words[place].tail == " "
}

/// Nouns that have an ezafe before a name: «شهر تهران», «روز شنبه», «ماه مهر».
fn is_title(word: &str, next: &str, class: Option<Class>) -> bool {
    match word {
        "شهر" | "کشور" | "استان" | "شهرستان" | "دانشگاه" | "خیابان" | "میدان" | "بیمارستان"
        | "فرودگاه" | "جزیره" | "خلیج" | "بندر" | "شاهنامه" | "رود" | "مردم" | "پایتخت"
        | "تاریخ" => class == Some(Class::Name),
        "روز" => WEEKDAYS.contains(&next),
        "ماه" => is_month(next),
        _ => next == "سال" && is_month(word),
    }
}

/// «بیستم», «دوازدهم», «اول» is an adjective.
fn is_ordinal(word: &str) -> bool {
    word.ends_with('م') && !matches!(word, "نیم")
}

/// Nouns that are prepositions with the word before them: «به عنوانِ».
const PHRASES: [(&str, &str); 22] = [
    ("به", "عنوان"),
    ("به", "دلیل"),
    ("به", "خاطر"),
    ("به", "منظور"),
    ("به", "وسیله"),
    ("به", "صورت"),
    ("به", "طور"),
    ("به", "دنبال"),
    ("به", "علت"),
    ("به", "همراه"),
    ("به", "نام"),
    ("از", "طریق"),
    ("از", "طرف"),
    ("از", "نظر"),
    ("از", "جمله"),
    ("از", "لحاظ"),
    ("در", "طول"),
    ("در", "حال"),
    ("در", "زمان"),
    ("در", "اثر"),
    ("بر", "اساس"),
    ("بر", "اثر"),
];

/// Adjectives that are adverbs as often.
const ADVERBS: [&str; 14] = [
    "تنها",
    "بیشتر",
    "کمتر",
    "دیگر",
    "بهتر",
    "زود",
    "خوب",
    "بسیار",
    "کاملا",
    "آرام",
    "آهسته",
    "دوباره",
    "سریع",
    "زیاد",
];

/// Adjectives that are said of a noun together with what follows: «مردم مجبور به رفتن شدند».
const WITH_COMPLEMENT: [&str; 30] = [
    "مجبور",
    "نیازمند",
    "قادر",
    "موفق",
    "مربوط",
    "متعلق",
    "مایل",
    "معتقد",
    "مشغول",
    "منتظر",
    "علاقه‌مند",
    "موظف",
    "ملزم",
    "مبتلا",
    "متهم",
    "محکوم",
    "وابسته",
    "مسلط",
    "آگاه",
    "عاری",
    "حاکی",
    "شامل",
    "پیدا",
    "باز",
    "نزدیک",
    "دور",
    "پر",
    "راضی",
    "حاضر",
    "آماده",
];

const WEEKDAYS: [&str; 9] =
    ["شنبه", "یکشنبه", "یک‌شنبه", "دوشنبه", "سه‌شنبه", "چهارشنبه", "پنجشنبه", "پنج‌شنبه", "جمعه"];
