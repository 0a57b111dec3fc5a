//! A checkpoint contains the lexicon of its training: synthesis does not need the file.

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
