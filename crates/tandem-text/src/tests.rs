//! The front end as a whole: languages, limits, lexicon, hook, phonemes, arbitrary text.

use super::*;
use proptest::prelude::*;
use std::io::Write;
use tandem_units::Hint;

fn front_end() -> FrontEnd {
    FrontEnd::new(&TextConfig::default()).unwrap()
}

#[track_caller]
fn check_error(raw: &str, message: &str) {
    let error = front_end().read(raw, None).unwrap_err();
    assert_eq!(error.to_string(), message);
    assert!(error.hint().is_some(), "every error says what to do");
    assert!(!error.stops_the_run(), "a bad text is a bad row");
}

#[test]
fn unknown_signs_can_be_left_out_and_are_listed() {
    let front_end = FrontEnd::new(&TextConfig::default()).unwrap();
    for (raw, normalized, signs) in [
        ("Great 🎉 job", "great job", "🎉"),
        ("a * b _ c • d → e | f © g", "a b c d e f g", "*_•→|©"),
        ("سلام 😀 دنیا", "سلام دنیا", "😀"),
        ("ok 👩‍👩‍👧 ok ★★", "ok ok", "👩👧★"),
        ("漢字 is kanji", "is kanji", "漢字"),
    ] {
        let (read, skipped) = front_end.read_known(raw, None).unwrap();
        let mut skipped: Vec<char> = skipped;
        skipped.sort_unstable();
        let mut expected: Vec<char> = signs.chars().collect();
        expected.sort_unstable();
        assert_eq!((read.normalized.as_str(), skipped), (normalized, expected), "{raw}");
        assert!(front_end.read(raw, None).is_err(), "a corpus stays strict: {raw}");
    }
}

#[test]
fn a_text_gives_a_language_words_and_symbols() {
    let front_end = front_end();
    let reading = front_end.read("Dr. Smith paid $5.", None).unwrap();
    assert_eq!((reading.language, reading.detected), (Language::English, Detection::Script));
    assert_eq!(reading.normalized, "doctor smith paid five dollars.");
    assert_eq!(reading.phonemes.as_deref(), Some("dˈɑktɚ smˈɪθ pˈeɪd fˈaɪv dˈɑlɚz."));
    let shown = reading.transcript.display(front_end.table()).to_string();
    assert_eq!(Some(shown), reading.phonemes);
    let reading = front_end.read("۵ كتاب", Some(Language::Persian)).unwrap();
    assert_eq!((reading.language, reading.detected), (Language::Persian, Detection::Given));
    assert_eq!(reading.normalized, "پنج کتاب");
}

#[test]
fn unusable_texts_are_reported_with_a_position() {
    check_error("", "the text is empty");
    check_error(" \t\u{a0}", "the text is empty");
    check_error("?!...", "the text has nothing to say: `?!...`");
    check_error("«...»", "the text has nothing to say: `«...»`");
    check_error("ab ★", "`★` (U+2605) at character 4 is not a symbol the voice knows");
    check_error("سلام 😀", "`😀` (U+1F600) at character 6 is not a symbol the voice knows");
    check_error("a\0b", "`\\0` (U+0000) at character 2 is not a symbol the voice knows");
    check_error("Привет", "the text is in Cyrillic script, the configured languages are en, fa");
    check_error(&"day ".repeat(150), "the text has 749 symbols, the limit is 200");
}

#[test]
fn the_position_of_a_symbol_is_that_in_the_raw_text() {
    // The number becomes longer as words; the position must not change.
    check_error(
        "It cost 1,234,567 — or 5 ☃",
        "`☃` (U+2603) at character 26 is not a symbol the voice knows",
    );
}

#[test]
fn a_language_outside_the_settings_is_refused_with_the_flag_to_add() {
    let error = front_end().read("Hallo", Some(Language::German)).unwrap_err();
    assert!(error.to_string().contains("marked `de`"), "{error}");
    assert_eq!(error.hint().unwrap(), "add it: `--languages en,fa,de`");
}

#[test]
fn every_letter_of_every_language_is_in_the_table() {
    for (language, text) in [
        (Language::English, "The quick brown fox jumps over the lazy dog"),
        (
            Language::Persian,
            "ژاله چای گرم پخت؛ صبح ضمن ظهر عطر غذا ثابت حق مسئول رؤیا جزء تأثیر آب",
        ),
        (
            Language::Arabic,
            "ذهب أحمد إلى المدرسة؛ سأل عن مؤمن وشيء هائل في آن، ضوء ظل غضب ثمين خطر",
        ),
        (Language::German, "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich"),
        (Language::French, "Dès Noël où un zéphyr haï me vêt de glaçons würmiens, œuf, ça, île, Æ"),
        (Language::Spanish, "¿El pingüino Wenceslao hizo kilómetros? ¡Ñandú exhausto!"),
        (Language::Italian, "Quel fez sghembo copre davanti; perché, città, più, così, però"),
        (
            Language::Portuguese,
            "À noite, vovô Kowalsky vê o ímã cair no pé do pinguim queixoso, são, õ, ç",
        ),
        (Language::Dutch, "Pa's wĳze lynx bezag vroom het fikse aquaduct, zeeën, geïnd"),
        (Language::Turkish, "Pijamalı hasta yağız şoföre çabucak güvendi, İIıi, âîû"),
        (Language::Russian, "Съешь ещё этих мягких французских булок, да выпей же чаю"),
        (
            Language::Ukrainian,
            "Жебракують філософи при ґанку церкви в Гадячі, ще й шатро їхнє п'яне знаємо",
        ),
        (Language::Polish, "Pchnąć w tę łódź jeża lub ośm skrzyń fig, źdźbło, ćma"),
        (Language::Czech, "Příliš žluťoučký kůň úpěl ďábelské ódy, něm, Ťuk"),
        (Language::Swedish, "Flygande bäckasiner söka hwila på mjuka tuvor, idé"),
    ] {
        let config = TextConfig { languages: vec![language], ..TextConfig::default() };
        let read = FrontEnd::new(&config).unwrap().read(text, None);
        assert!(read.is_ok(), "{language}: {:?}", read.unwrap_err());
    }
}

#[test]
fn unknown_settings_are_refused() {
    let config: TextConfig = serde_json::from_str(r#"{"languages":["fa"]}"#).unwrap();
    assert_eq!(config.languages, [Language::Persian]);
    assert_eq!(config.max_symbols, 200);
    assert!(serde_json::from_str::<TextConfig>(r#"{"langauges":["fa"]}"#).is_err());
}

#[test]
fn the_lexicon_changes_words_and_the_fingerprint() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "nginx\tengine x").unwrap();
    let config = TextConfig { lexicon: Some(file.path().to_owned()), ..TextConfig::default() };
    let with = FrontEnd::new(&config).unwrap();
    assert_eq!(with.read("Use NGINX.", None).unwrap().normalized, "use engine x.");
    assert_ne!(with.fingerprint(), front_end().fingerprint());
}

#[test]
fn the_fingerprint_is_stable_and_sees_every_setting() {
    let print = |config: &TextConfig| FrontEnd::new(config).unwrap().fingerprint();
    let base = TextConfig::default();
    assert_eq!(print(&base), print(&base));
    for other in [
        TextConfig { languages: vec![Language::Persian], ..base.clone() },
        TextConfig { diacritics: DiacriticsPolicy::Keep, ..base.clone() },
        TextConfig { max_symbols: 100, ..base.clone() },
        TextConfig { pronunciation: Pronunciation::Espeak, ..base.clone() },
        TextConfig { pronunciation: Pronunciation::Characters, ..base.clone() },
        TextConfig { pronunciation: Pronunciation::BuiltInEnglish, ..base.clone() },
    ] {
        assert_ne!(print(&base), print(&other), "{other:?}");
    }
    // What is used counts: both languages have built-in phonemes.
    let same = TextConfig { pronunciation: Pronunciation::BuiltIn, ..base.clone() };
    assert_eq!(print(&base), print(&same));
}

#[test]
fn given_phonemes_are_used_as_they_are() {
    let front_end = front_end();
    let reading = front_end.read_given("Room 5", None, " [ɹˈum  fˈaɪv] ").unwrap();
    assert_eq!(reading.phonemes.as_deref(), Some("ɹˈum fˈaɪv"));
    assert_eq!(reading.transcript.display(front_end.table()).to_string(), "ɹˈum fˈaɪv");
    let error = front_end.read_given("hello", None, "həl☃").unwrap_err();
    let text = "`☃` (U+2603) at character 4 of the phonemes is not a symbol the voice knows";
    assert_eq!(error.to_string(), text);
    assert!(error.hint().is_some() && !error.stops_the_run());
    assert!(matches!(front_end.read_given("hello", None, "//"), Err(TextError::Empty)));
}

/// A simple hook: writes the ezafe between a noun and a following pronoun.
struct Ezafe;

impl Pronounce for Ezafe {
    fn name(&self) -> String {
        "ezafe 1".into()
    }

    fn pronounce(&self, language: Language, sentence: &mut Sentence) {
        if language != Language::Persian {
            return;
        }
        for index in 1..sentence.words.len() {
            if matches!(sentence.words[index].text.as_str(), "من" | "تو" | "او") {
                sentence.words[index - 1].text.push('\u{650}');
            }
        }
    }
}

#[test]
fn a_hook_can_write_the_ezafe() {
    let plain = front_end();
    let print = plain.fingerprint();
    let hooked = plain.with_pronounce(Box::new(Ezafe));
    let reading = hooked.read("كتاب من کجاست؟", None).unwrap();
    assert_eq!(reading.normalized, "کتاب\u{650} من کجاست?");
    assert_ne!(hooked.fingerprint(), print);
}

#[test]
fn the_front_end_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<FrontEnd>();
}

fn phonemic() -> FrontEnd {
    let config = TextConfig { pronunciation: Pronunciation::Espeak, ..TextConfig::default() };
    FrontEnd::new(&config).expect("this test needs espeak-ng: `apt install espeak-ng`")
}

#[test]
fn phonemes_keep_punctuation_and_order() {
    let texts = [("Hello, world!", None), ("", None), ("سلام دنیا.", None), ("It's 5.", None)];
    let read = phonemic().read_many(&texts).unwrap();
    let sounds = |index: usize| read[index].as_ref().unwrap().phonemes.clone().unwrap();
    assert_eq!(sounds(0), "həlˈoʊ, wˈɜːld!");
    assert!(matches!(read[1], Err(TextError::Empty)));
    assert_eq!(sounds(2), "salˈɑm dˈonjɑ.");
    assert_eq!(sounds(3), "ɪts fˈaɪv.");
}

#[test]
fn one_text_and_many_give_the_same_phonemes() {
    let front_end = phonemic();
    let texts = [("Mr. Fox met 3 hens.", None), ("کتاب‌ها کجاست؟", None)];
    for ((raw, language), many) in texts.iter().zip(front_end.read_many(&texts).unwrap()) {
        assert_eq!(front_end.read(raw, *language).unwrap(), many.unwrap());
    }
}

#[test]
fn phonemes_of_every_language_are_in_the_table() {
    let mut config = TextConfig { pronunciation: Pronunciation::Espeak, ..TextConfig::default() };
    config.languages = Language::ALL.to_vec();
    let front_end =
        FrontEnd::new(&config).expect("this test needs espeak-ng: `apt install espeak-ng`");
    let texts = [
        (
            "The quick brown fox jumps over the lazy dog; measure, church, thing, bottle, button",
            "en",
        ),
        ("ژاله چای گرم پخت، صبح ظهر عطر غذا ثابت حق مسئول", "fa"),
        ("ذهب أحمد إلى المدرسة، ضوء ظل غضب ثمين خطر طعام صباح حق عين", "ar"),
        ("Zwölf Boxkämpfer jagen Viktor quer über den großen Deich, ich, Buch, Pfund, Uhr", "de"),
        ("Dès Noël un zéphyr haï me vêt de glaçons, bon vin blanc, un, oui, huit, agneau", "fr"),
        ("El pingüino hizo kilómetros bajo la lluvia, perro, cielo, año, jugo, haya", "es"),
        ("Quel fez sghembo copre davanti, gnocchi, figlio, scena, zio", "it"),
        ("À noite vovô vê o ímã cair no pé do pinguim queixoso, são, põe, mãe, filho", "pt"),
        ("Pa's wijze lynx bezag vroom het fikse aquaduct, schuur, huis, neus, geen", "nl"),
        ("Pijamalı hasta yağız şoföre çabucak güvendi, ılık", "tr"),
        ("Съешь ещё этих мягких французских булок, да выпей чаю", "ru"),
        ("Жебракують філософи при ґанку церкви в Гадячі, ще й шатро їхнє", "uk"),
        ("Pchnąć w tę łódź jeża lub ośm skrzyń fig, dżem, dźwięk, chrząszcz", "pl"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy, vlk, prst, euro", "cs"),
        ("Flygande bäckasiner söka vila på mjuka tuvor, sju, barn, kjol, hus", "sv"),
    ];
    let asked: Vec<_> = texts.iter().map(|(raw, tag)| (*raw, Some(tag.parse().unwrap()))).collect();
    for (reading, (raw, tag)) in front_end.read_many(&asked).unwrap().into_iter().zip(texts) {
        assert!(reading.is_ok(), "{tag}: {raw}: {:?}", reading.unwrap_err());
    }
}

/// Arbitrary text: letters, digits, marks, controls, any character.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,60}",
        "[a-zA-Z0-9 .,:;!?'\"()/$%&@#+=°½²€£-]{0,60}",
        "[آابپتجچدرزسشمنوهیيكةأئۀ0-9۰-۹٠-٩ .،؟:/٪«»\u{200C}\u{64B}\u{650}\u{654}ـ-]{0,60}",
        "((Dr|St|No|Inc|e\\.g|U\\.S|p|J|می|ها|ه|ق|م|ام|سه|[0-9]{1,5}|۵|st|km|pm|am|s)[ .,:'-]{0,2}){0,12}",
        any::<String>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn reading_what_was_read_changes_nothing(raw in any_text()) {
        for language in [Language::English, Language::Persian, Language::Turkish, Language::Arabic] {
            for policy in [DiacriticsPolicy::Strip, DiacriticsPolicy::Keep] {
                let once = normalize(&raw, language, policy);
                prop_assert_eq!(&normalize(&once, language, policy), &once, "{} {:?}", language, raw);
            }
        }
    }

    #[test]
    fn any_text_is_processed_or_refused_with_a_valid_position(raw in any_text()) {
        let front_end = front_end();
        match front_end.read(&raw, None) {
            Ok(reading) => {
                let shown = reading.transcript.display(front_end.table()).to_string();
                prop_assert_eq!(shown, reading.phonemes.unwrap_or(reading.normalized));
                prop_assert!(reading.transcript.len() <= 200 + Transcript::EDGES);
            }
            Err(TextError::UnknownSymbol { position, .. }) => {
                prop_assert!((1..=raw.chars().count()).contains(&position));
            }
            Err(error) => prop_assert!(!error.stops_the_run()),
        }
    }
}
