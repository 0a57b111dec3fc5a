use super::super::super::words::sentences;
use super::super::{Uncertain, read as read_text};
use crate::{FrontEnd, Language, Pronunciation, TextConfig};
use proptest::prelude::*;

#[track_caller]
fn check(text: &str, ipa: &str) {
    let found = read_text(Language::Persian, &sentences(text), &mut Uncertain::default());
    assert_eq!(found, ipa, "{text}");
}

#[test]
fn nouns_and_verbs_have_their_forms() {
    check("کتاب‌ها", "ketɑbhɑ");
    check("مادرم می‌آید", "mɑdaram miɑjad");
    check("بچه‌ها نمی‌روند", "batʃtʃehɑ nemiravand");
    check("بخوانید", "bexɑnid");
    check("نیامدی", "najɑmadi");
    check("گذاشته‌ام", "ɡozɑʃteʔam");
    check("هوای شهر", "havɑje ʃahr");
    check("نه, ممنون", "na, mamnun");
}

#[test]
fn verbs_have_all_persons_and_tenses() {
    check("می‌گویم نمی‌گویند میگوییم", "miɡujam nemiɡujand miɡujim");
    check("بیاورد نیفتاد بیندازند بایستد", "bijɑvarad najoftɑd bijandɑzand beʔistad");
    check("برو نرو بشو", "boro naro beʃo");
    check("خواهم رفت نخواهند آمد", "xɑham raft naxɑhand ɑmad");
    check("رفته است رفته‌اند نرفته بودم", "rafte ast rafteʔand narafte budam");
    check("می‌بینمتان دیدمش", "mibinametɑn didamaʃ");
    check("برمی‌گردد بازگشتند درنمی‌آید", "barmiɡardad bɑzɡaʃtand darnemiɑjad");
    check("رفتن. نکردن. کننده. گویندگان", "raftan. nakardan. konande. ɡujandeɡɑn");
    check("خورد می‌خورد کند", "xord mixorad konad");
}

#[test]
fn nouns_and_adjectives_have_their_endings() {
    check("خانه‌ام. کتابمان. دوستانش", "xɑneʔam. ketɑbemɑn. dustɑnaʃ");
    check("درختان. پرندگان. کلمات", "deraxtɑn. parandeɡɑn. kalamɑt");
    check("بزرگتر بزرگ‌ترین خوبند زیباست", "bozorɡtar bozorɡtarin xuband zibɑst");
    check("خوبم. زیبایی. خستگی", "xubam. zibɑʔi. xasteɡi");
    check("بیستمین صدم هفدهم", "bistomin sadom hefdahom");
    check("نادرست, بی‌خبر, همکلاس. غیردولتی", "nɑdorost, bixabar, hamkelɑs. qejredolati");
    check("درمانگر, دردناک, قانونگذاری", "darmɑnɡar, dardnɑk, qɑnunɡozɑri");
    check("مهمان‌نوازی", "mehmɑnnavɑzi");
}

#[test]
fn neighbours_decide_two_readings() {
    check("ساعت نه", "sɑʔate noh");
    check("سیصد گرم", "sisad ɡeram");
    check("کشتی", "keʃti");
    check("آب گرم است", "ɑb ɡarm ast");
}

#[test]
fn ezafe_is_added_and_left_out() {
    check("کتاب من", "ketɑbe man");
    check("خانه ما", "xɑneje mɑ");
    check("گربه سیاه در باغ", "ɡorbeje sijɑh dar bɑq");
    check("هوا سرد است", "havɑ sard ast");
    check("زیر درخت", "zire deraxt");
    check("کتاب\u{650} بزرگ", "ketɑbe bozorɡ");
    check("در شهر بزرگ, باران آمد", "dar ʃahre bozorɡ, bɑrɑn ɑmad");
    check("قرن بیستم", "qarne bistom");
    check("دوازدهم مرداد سال هزار", "davɑzdahome mordɑde sɑle hezɑr");
    check("شهر تهران بزرگ است", "ʃahre tehrɑn bozorɡ ast");
    check("پیش از ظهر", "piʃ az zohr");
    check("به عنوان معلم از این سمت رفت", "be onvɑne moʔallem az in samt raft");
    check("مردم مجبور به رفتن شدند", "mardom madʒbur be raftan ʃodand");
    check("کتاب خوب من", "ketɑbe xube man");
}

#[test]
fn a_written_ezafe_is_spoken_and_is_no_symbol() {
    let (languages, pronunciation) = (vec![Language::Persian], Pronunciation::BuiltIn);
    let config = TextConfig { languages, pronunciation, ..TextConfig::default() };
    let reading = FrontEnd::new(&config).unwrap().read("نان\u{650} تازهٔ خوب", None).unwrap();
    assert_eq!(reading.normalized, "نان تازه‌ی خوب");
    assert_eq!(reading.phonemes.as_deref(), Some("nɑne tɑzeje xub"));
    assert!(reading.uncertain.as_characters.is_empty());
}

#[test]
fn unknown_words_are_guessed_and_named_and_so_is_the_ezafe() {
    let mut uncertain = Uncertain::default();
    let text = "مرد بزرگ آمد, قسطنطنیه, hello";
    let found = read_text(Language::Persian, &sentences(text), &mut uncertain);
    assert!(found.starts_with("marde bozorɡ ɑmad, q") && found.ends_with(", həlˈoʊ"), "{found}");
    assert_eq!(uncertain.guessed, ["قسطنطنیه"]);
    assert_eq!(uncertain.ezafe, ["مرد"]);
    assert!(uncertain.as_characters.is_empty());
}

#[test]
fn endings_of_unknown_words_are_not_guessed() {
    let [plural, verb] = ["قسطنطنیه\u{200C}های", "می\u{200C}قسطنطند"]
        .map(|word| read_text(Language::Persian, &sentences(word), &mut Uncertain::default()));
    assert!(plural.ends_with("hɑje"), "{plural}");
    assert!(verb.starts_with("mi"), "{verb}");
}

#[test]
fn and_is_o_between_numbers_and_in_pairs_and_a_written_fathe_changes_it() {
    check("هزار و نه", "hezɑr o noh");
    check("رفت و آمد", "raft o ɑmad");
    check("من و تو", "man va to");
    check("هزار و\u{64E} نه", "hezɑr va noh");
    let languages = vec![Language::Persian];
    let front_end = FrontEnd::new(&TextConfig { languages, ..TextConfig::default() }).unwrap();
    let reading = front_end.read("سی وَ یک", None).unwrap();
    assert_eq!(reading.phonemes.as_deref(), Some("si va jek"));
}

#[test]
fn phonemes_of_the_user_stay_as_they_are() {
    let languages = vec![Language::Persian];
    let config = TextConfig { languages, ..TextConfig::default() };
    let front_end = FrontEnd::with_lexicon(&config, "مرد\t/mærd/\n").unwrap();
    let reading = front_end.read("مرد بزرگ آمد", None).unwrap();
    assert_eq!(reading.phonemes.as_deref(), Some("mærd bozorɡ ɑmad"));
    assert!(reading.uncertain.ezafe.is_empty());
}

proptest! {
    #[test]
    fn any_text_is_read(words in prop::collection::vec("\\PC{0,8}|[ابپتدرسشکگلمنوهی\u{200C}]{1,9}", 0..30)) {
        let text = words.join(" ");
        let mut uncertain = Uncertain::default();
        let found = read_text(Language::Persian, &sentences(&text), &mut uncertain);
        prop_assert_eq!(read_text(Language::Persian, &sentences(&text), &mut Uncertain::default()), found);
    }
}
