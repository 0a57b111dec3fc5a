//! A voice that was trained with a lexicon speaks without the file.

mod kit;

use kit::Place;
use std::fs;

#[test]
fn a_voice_keeps_its_lexicon() {
    let place = Place::new();
    fs::write(place.inside("words.tsv"), "tandem\ttan demmmmm\n").expect("written");
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
        let said = place.run(&[&train[..], more].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
    };
    train("plain", &[]);
    train("own", &["--lexicon", "words.tsv"]);
    fs::remove_file(place.inside("words.tsv")).expect("gone");
    let symbols = |directory: &str| {
        let said = place.run(&[
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
        said.json()["sentences"][0]["symbols"].as_u64().expect("a count")
    };
    // One space and four letters more.
    assert_eq!(symbols("own"), symbols("plain") + 5);
}
