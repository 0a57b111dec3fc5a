//! `tandem text` as a user meets it: the real program, its whole output.

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
    insta::assert_snapshot!(text(&["Dr. Ng paid $5"]), @"");
}

#[test]
fn a_persian_text_is_shown_step_by_step() {
    insta::assert_snapshot!(text(&["كتاب ها ۵٪"]), @"");
}

#[test]
fn texts_that_cannot_be_used_say_why_and_what_to_do() {
    insta::assert_snapshot!(text(&["ok", "a ★", "Привет", "..."]), @"");
}

#[test]
fn a_language_may_be_given_by_name() {
    insta::assert_snapshot!(text(&["Hallo", "--lang", "German"]), @"");
    insta::assert_snapshot!(text(&["Ich habe 3", "--lang", "de"]), @"");
    insta::assert_snapshot!(text(&["x", "--lang", "klingon"]), @"");
    insta::assert_snapshot!(text(&["--", "-5 °C"]), @"");
}

#[test]
fn phonemes_come_from_espeak() {
    insta::assert_snapshot!(text(&["Hello, world!", "--phonemes"]), @"");
}

#[test]
fn a_lexicon_is_applied_and_its_faults_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("words.tsv");
    std::fs::write(&path, "nginx\tengine x\n").unwrap();
    let path = path.to_str().unwrap();
    insta::assert_snapshot!(text(&["nginx", "--lexicon", path]), @"");
    std::fs::write(path, "nginx\n").unwrap();
    let shown = text(&["nginx", "--lexicon", path]).replace(path, "[LEXICON]");
    insta::assert_snapshot!(shown, @"");
}

#[test]
fn lines_of_standard_input_are_read_as_json() {
    insta::assert_snapshot!(tandem(&["text", "-", "--json"], "Hi\n\n"), @"");
}

#[test]
fn vowel_signs_stay_when_asked() {
    insta::assert_snapshot!(text(&["کِتاب", "--diacritics", "keep"]), @"");
}

#[test]
fn languages_are_listed() {
    insta::assert_snapshot!(text(&["--list"]), @"");
}

#[test]
fn a_text_is_required() {
    let shown = text(&[]);
    assert!(shown.starts_with("exit 2"), "{shown}");
}
