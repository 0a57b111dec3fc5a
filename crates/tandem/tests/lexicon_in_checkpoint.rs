//! A checkpoint contains the lexicon of its training: synthesis does not need the file. It keeps its way of reading, too.

mod support;

use std::fs;
use support::TestDir;

#[test]
fn a_checkpoint_contains_its_lexicon() {
    let dir = TestDir::new();
    fs::write(dir.path("words.tsv"), "tandem\ttandem tandem\n").expect("written");
    let train = |directory: &str, more: &[&str]| {
        let train = [
            "train",
            "--train-data",
            "demo",
            "--batch-size",
            "2",
            "--frame-budget",
            "800",
            "--max-steps",
            "1",
            "--align-flat-start",
            "0",
            "--checkpoint-dir",
            directory,
        ];
        let output = dir.run(&[&train[..], more].concat());
        assert_eq!(output.code, Some(0), "{output:?}");
    };
    train("plain", &[]);
    train("own", &["--lexicon", "words.tsv"]);
    fs::remove_file(dir.path("words.tsv")).expect("gone");
    let symbols = |directory: &str| {
        let output = dir.run(&[
            "synth",
            "--checkpoint",
            directory,
            "--text",
            "A tandem.",
            "--vocoder-rounds",
            "1",
            "--steps",
            "1",
            "-o",
            "a.wav",
            "--json",
        ]);
        output.json()["sentences"][0]["symbols"].as_u64().expect("a count")
    };
    // The second word is a space and the seven symbols of tˈændəm.
    assert_eq!(symbols("own"), symbols("plain") + 8);
}

#[test]
fn a_run_is_not_resumed_with_another_way_of_reading() {
    let dir = TestDir::new();
    let train = |more: &[&str]| {
        let train = ["train", "--train-data", "demo", "--model-size", "micro", "--batch-size", "2"];
        dir.run(&[&train[..], &["--checkpoint-dir", "run"], more].concat())
    };
    let english = ["--pronunciation", "built-in-english", "--max-steps", "1"];
    let done = train(&english);
    assert_eq!(done.code, Some(0), "{done:?}");
    let shown = format!("{}{}", done.out, done.err);
    assert!(shown.contains("en built-in phonemes, fa characters"), "{shown}");
    let resume = ["--max-steps", "2", "--resume"];
    train(&resume).assert_failed(&[
        "its voice reads fa with `--pronunciation built-in-english`, `auto` is set now",
        "type `--pronunciation built-in-english`",
    ]);
    let done = train(&[&english[..2], &resume].concat());
    assert_eq!(done.code, Some(0), "{done:?}");
}
