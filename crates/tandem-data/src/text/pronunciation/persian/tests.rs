use super::super::super::words::sentences;
use super::super::{Uncertain, read as read_text};
use crate::text::{FrontEnd, Language, Pronunciation, TextConfig};

#[track_caller]
fn check(text: &str, ipa: &str) {
    let found = read_text(Language::Persian, &sentences(text), &mut Uncertain::default());
    assert_eq!(found, ipa, "{text}");
}

#[test]
fn nouns_and_verbs_have_their_forms() {
    check("کتاب‌ها", "ketɑbhɑ");
    check("مادرم می‌آید", "mɑdaram miɑjad");
    check("بچه‌ها نمی‌روند", "battʃehɑ nemiravand");
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
    check("برو نرو بشو", "borow narow beʃow");
    check("خواهم رفت نخواهند آمد", "xɑham raft naxɑhand ɑmad");
    check("رفته است رفته‌اند نرفته بودم", "rafte ast rafteʔand narafte budam");
    check("می‌بینمتان دیدمش", "mibinametɑn didamaʃ");
    check("برمی‌گردد بازگشتند درنمی‌آید", "barmiɡardad bɑzɡaʃtand darnemiɑjad");
    check("رفتن نکردن کننده گویندگان", "raftan nakardan konande ɡujandeɡɑn");
    check("خورد می‌خورد کند", "xord mixorad konad");
}

#[test]
fn nouns_and_adjectives_have_their_endings() {
    check("خانه‌ام کتابمان دوستانش", "xɑneʔam ketɑbemɑn dustɑnaʃ");
    check("درختان پرندگان کلمات", "deraxtɑn parandeɡɑn kalamɑt");
    check("بزرگتر بزرگ‌ترین خوبند زیباست", "bozorɡtar bozorɡtarin xuband zibɑst");
    check("خوبم زیبایی خستگی", "xubam zibɑji xasteɡi");
    check("بیستمین صدم هفدهم", "bistomin sadom hefdahom");
    check("نادرست, بی‌خبر, همکلاس, غیردولتی", "nɑdorost, bixabar, hamkelɑs, qejredowlati");
    check("درمانگر, دردناک, قانونگذاری", "darmɑnɡar, dardnɑk, qɑnunɡozɑri");
    check("مهمان‌نوازی", "mehmɑnnavɑzi");
}

#[test]
fn neighbours_decide_two_readings() {
    check("ساعت نه", "sɑʔate noh");
    check("سیصد گرم", "sisad ɡeram");
    check("کشتی", "کشتی");
    check("آب گرم است", "ɑb ɡarm ast");
}

#[test]
fn ezafe_is_added_where_it_is_certain() {
    check("کتاب من", "ketɑbe man");
    check("خانه ما", "xɑneje mɑ");
    check("گربه سیاه در باغ", "ɡorbeje sijɑh dar bɑq");
    check("هوا سرد است", "havɑ sard ast");
    check("کوهستان پاک و خنک است", "kuhestɑn pɑk va xonak ast");
    check("در ایستگاه منتظر قطار بودند", "dar istɡɑh montazer qatɑr budand");
    check("باد پنجره را باز کرد", "bɑd pandʒere rɑ bɑz kard");
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
fn unknown_words_stay_in_characters_and_are_named() {
    let mut uncertain = Uncertain::default();
    let found = read_text(Language::Persian, &sentences("سلام قسطنطنیه, hello"), &mut uncertain);
    assert_eq!(found, "salɑm قسطنطنیه, həlˈoʊ");
    assert_eq!(uncertain.as_characters, ["قسطنطنیه"]);
}
