//! `tandem text`: snapshots of the whole output of the real program.

use std::io::Write;
use std::process::{Command, Stdio};

/// Exit code, stdout and stderr in one text.
fn tandem(args: &[&str], input: &str) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tandem"))
        .args(args)
        .env("NO_COLOR", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    let code = output.status.code().expect("it ends by itself");
    let (stdout, stderr) = (shown(&output.stdout), shown(&output.stderr));
    match stderr.is_empty() {
        true => format!("exit {code}\n{stdout}"),
        false => format!("exit {code}\n{stdout}\n--- stderr\n{stderr}"),
    }
}

fn text(args: &[&str]) -> String {
    let mut all = vec!["text"];
    all.extend(args);
    tandem(&all, "")
}

#[test]
fn an_english_text_is_shown_step_by_step() {
    insta::assert_snapshot!(text(&["Dr. Ng paid $5"]), @r"
    exit 0
    text        Dr. Ng paid $5
    language    en (English, detected by script)
    normalised  doctor ng paid five dollars
    phonemes    dˈɑktɚ ˈɛŋ pˈeɪd fˈaɪv dˈɑlɚz
    symbols     31: <begin>=288 d=20 ˈ=184 ɑ=188 k=27 t=36 ɚ=201 _=1 ˈ=184 ɛ=202 ŋ=228 _=1 p=32 ˈ=184 e=21 ɪ=218 d=20 _=1 f=22 ˈ=184 a=17 ɪ=218 v=38 _=1 d=20 ˈ=184 ɑ=188 l=28 ɚ=201 z=42 <end>=289
    ");
}

#[test]
fn a_persian_text_is_shown_step_by_step() {
    insta::assert_snapshot!(text(&["كتاب ها ۵٪"]), @r"
    exit 0
    text        كتاب ها ۵٪
    language    fa (Persian, detected by script)
    normalised  کتاب‌ها پنج درصد
    phonemes    ketɑbhɑ pandʒ darsad
    symbols     22: <begin>=288 k=27 e=21 t=36 ɑ=188 b=18 h=24 ɑ=188 _=1 p=32 a=17 n=30 d=20 ʒ=259 _=1 d=20 a=17 r=34 s=35 a=17 d=20 <end>=289
    ");
}

#[test]
fn refused_texts_have_a_reason_and_a_hint() {
    insta::assert_snapshot!(text(&["ok", "a ★", "Привет", "..."]), @r"
    exit 1
    text        ok
    language    en (English, detected by script)
    normalised  ok
    phonemes    ˈoʊkˈeɪ
    symbols     9: <begin>=288 ˈ=184 o=31 ʊ=248 k=27 ˈ=184 e=21 ɪ=218 <end>=289

    text        a ★
    refused     `★` (U+2605) at character 3 is not a symbol the voice knows
    hint        write it as it is spoken, or remove it; `tandem text` shows what a text becomes

    text        Привет
    refused     the text is in Cyrillic script, the configured languages are en, fa
    hint        add its language, for example `--languages en,fa,ru`

    text        ...
    refused     the text has nothing to say: `...`
    hint        write what is spoken in this recording, or remove the row
    ");
}

#[test]
fn a_language_may_be_given_by_name() {
    insta::assert_snapshot!(text(&["Hallo", "--lang", "German"]), @r"
    exit 0
    text        Hallo
    language    de (German, as given)
    normalised  hallo
    symbols     7: <begin>=288 h=24 a=17 l=28 l=28 o=31 <end>=289
    ");
    insta::assert_snapshot!(text(&["Ich habe 3 Katzen", "--lang", "de"]), @r"
    exit 0
    text        Ich habe 3 Katzen
    language    de (German, as given)
    normalised  ich habe drei katzen
    symbols     22: <begin>=288 i=25 c=19 h=24 _=1 h=24 a=17 b=18 e=21 _=1 d=20 r=34 e=21 i=25 _=1 k=27 a=17 t=36 z=42 e=21 n=30 <end>=289
    ");
    insta::assert_snapshot!(text(&["x", "--lang", "klingon"]), @r"
    exit 2

    --- stderr
    error: invalid value 'klingon' for '--lang <LANG>': `klingon` is not a language Tandem knows
    hint: use one of en, fa, ar, de, fr, es, it, pt, nl, tr, ru, uk, pl, cs, sv; `tandem text --list` names them
    ");
    insta::assert_snapshot!(text(&["--", "-5 °C"]), @r"
    exit 0
    text        -5 °C
    language    en (English, detected by script)
    normalised  minus five degrees celsius
    phonemes    mˈaɪnəs fˈaɪv dɪɡɹˈiz sˈɛlsiəs
    symbols     32: <begin>=288 m=29 ˈ=184 a=17 ɪ=218 n=30 ə=199 s=35 _=1 f=22 ˈ=184 a=17 ɪ=218 v=38 _=1 d=20 ɪ=218 ɡ=208 ɹ=237 ˈ=184 i=25 z=42 _=1 s=35 ˈ=184 ɛ=202 l=28 s=35 i=25 ə=199 s=35 <end>=289
    ");
}

#[test]
fn phonemes_come_from_espeak() {
    insta::assert_snapshot!(text(&["Hello, world!", "--pronunciation", "espeak"]), @r"
    exit 0
    text        Hello, world!
    language    en (English, detected by script)
    normalised  hello, world!
    phonemes    həlˈoʊ, wˈɜːld!
    symbols     17: <begin>=288 h=24 ə=199 l=28 ˈ=184 o=31 ʊ=248 ,=3 _=1 w=39 ˈ=184 ɜ=203 ː=186 l=28 d=20 !=4 <end>=289
    ");
}

#[test]
fn a_lexicon_is_applied_and_its_errors_name_the_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("words.tsv");
    std::fs::write(&path, "nginx\tengine x\n").unwrap();
    let path = path.to_str().unwrap();
    insta::assert_snapshot!(text(&["nginx", "--lexicon", path]), @r"
    exit 0
    text        nginx
    language    en (English, detected by script)
    normalised  engine x
    phonemes    ˈɛndʒən ˈɛks
    symbols     14: <begin>=288 ˈ=184 ɛ=202 n=30 d=20 ʒ=259 ə=199 n=30 _=1 ˈ=184 ɛ=202 k=27 s=35 <end>=289
    ");
    std::fs::write(path, "nginx\n").unwrap();
    let shown = text(&["nginx", "--lexicon", path]).replace(path, "[LEXICON]");
    insta::assert_snapshot!(shown, @r"
    exit 2

    --- stderr
    error: line 1 of lexicon `[LEXICON]`: has 1 columns, expected 2 or 3 separated by tabs
    hint: a line is `word<TAB>spelling` or `word<TAB>/phonemes/`, with the language as an optional third column
    ");
}

#[test]
fn lines_of_standard_input_are_read_as_json() {
    insta::assert_snapshot!(tandem(&["text", "-", "--json"], "Hi\n\n"), @r#"
    exit 1
    [
      {
        "text": "Hi",
        "language": "en",
        "detected": "script",
        "normalized": "hi",
        "phonemes": "hˈaɪ",
        "guessed": [],
        "as_characters": [],
        "symbols": [
          {
            "symbol": "<begin>",
            "id": 288
          },
          {
            "symbol": "h",
            "id": 24
          },
          {
            "symbol": "ˈ",
            "id": 184
          },
          {
            "symbol": "a",
            "id": 17
          },
          {
            "symbol": "ɪ",
            "id": 218
          },
          {
            "symbol": "<end>",
            "id": 289
          }
        ]
      },
      {
        "text": "",
        "error": "the text is empty",
        "hint": "write what is spoken in this recording, or remove the row"
      }
    ]
    "#);
}

#[test]
fn diacritics_can_be_kept() {
    insta::assert_snapshot!(text(&["کِتاب", "--diacritics", "keep", "--pronunciation", "characters"]), @r"
    exit 0
    text        کِتاب
    language    fa (Persian, detected by script)
    normalised  کِتاب
    symbols     7: <begin>=288 ک=69 ◌ِ=92 ت=48 ا=45 ب=46 <end>=289
    ");
}

#[test]
fn languages_are_listed() {
    insta::assert_snapshot!(text(&["--list"]), @r"
    exit 0
     tag  language    script    symbols            level    what is read
     en   English     Latin     built-in phonemes  full     words, numbers, times, money, units, abbreviations
     fa   Persian     Arabic    built-in phonemes  full     words, numbers, times, money, units, abbreviations
     ar   Arabic      Arabic    characters         numbers  words, numbers, percentages, dates, times, money
     de   German      Latin     characters         numbers  words, numbers, percentages, dates, times, money
     fr   French      Latin     characters         numbers  words, numbers, percentages, dates, times, money
     es   Spanish     Latin     characters         numbers  words, numbers, percentages, dates, times, money
     it   Italian     Latin     characters         numbers  words, numbers, percentages, dates, times, money
     pt   Portuguese  Latin     characters         numbers  words, numbers, percentages, dates, times, money
     nl   Dutch       Latin     characters         numbers  words, numbers, percentages, dates, times, money
     tr   Turkish     Latin     characters         numbers  words, numbers, percentages, dates, times, money
     ru   Russian     Cyrillic  characters         numbers  words, numbers, percentages, dates, times, money
     uk   Ukrainian   Cyrillic  characters         numbers  words, numbers, percentages, dates, times, money
     pl   Polish      Latin     characters         numbers  words, numbers, percentages, dates, times, money
     cs   Czech       Latin     characters         numbers  words, numbers, percentages, dates, times, money
     sv   Swedish     Latin     characters         numbers  words, numbers, percentages, dates, times, money
    ");
}

#[test]
fn a_text_is_required() {
    let shown = text(&[]);
    assert!(shown.starts_with("exit 2"), "{shown}");
}
