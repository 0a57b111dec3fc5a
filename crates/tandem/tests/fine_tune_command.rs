//! `tandem train --from`: a few steps of a tiny voice, then of a voice that starts from it on another corpus.

mod support;

use serde_json::Value;
use std::fs;
use std::path::Path;
use support::{CommandOutput, TestDir};
use tandem_model::checkpoint::{Parts, TensorSet, load};
use tandem_model::trained_voice::{EMA, VOICE, VoiceDocument, WEIGHTS, host_values};

/// German, which the demo corpus does not have, with a letter and a speaker that it does not have.
const GERMAN: &str = "id|text|normalised|speaker|language
a|grüße aus köln|grüße aus köln|anna|de
b|guten morgen|guten morgen|anna|de
c|wie geht es dir|wie geht es dir|anna|de
d|danke schön|danke schön|anna|de
";

/// A voice of two steps on the demo corpus in `voice`, and a German corpus in `corpus`.
fn dir_with_voice() -> TestDir {
    let dir = TestDir::with_clips(4, GERMAN);
    let done = train(&dir, "demo", "voice", &["--model-size", "micro", "--max-steps", "2"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    dir
}

fn train(dir: &TestDir, corpus: &str, run: &str, more: &[&str]) -> CommandOutput {
    let args = ["train", "--train-data", corpus, "--checkpoint-dir", run, "--batch-size", "2"];
    dir.run(&[&args[..], more].concat())
}

fn tune(dir: &TestDir, run: &str, more: &[&str]) -> CommandOutput {
    let args = ["--from", "voice", "--languages", "de,en"];
    let steps = if more.contains(&"--max-steps") { vec![] } else { vec!["--max-steps", "1"] };
    train(dir, "corpus", run, &[&args[..], &steps, more].concat())
}

fn read(checkpoint: &Path, part: &str) -> (VoiceDocument, TensorSet) {
    let mut contents = load(checkpoint, Parts::All).expect("a checkpoint").contents;
    let document = contents.document(VOICE).expect("a voice");
    (document, contents.take_tensors(part).expect("a tensor set"))
}

fn rows(set: &TensorSet, name: &str) -> Vec<Vec<f32>> {
    let (shape, values) = host_values(set, name).expect("a tensor");
    values.chunks_exact(shape[1]).map(<[f32]>::to_vec).collect()
}

#[track_caller]
fn assert_near(found: &[f32], expected: &[f32]) {
    let far = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(found.len() == expected.len() && far < 1e-4, "{far}");
}

#[test]
fn weights_are_taken_over_by_name_and_the_rest_is_said_to_be_new() {
    let dir = dir_with_voice();
    // At this rate a step changes nothing that could be seen.
    let done = tune(&dir, "tuned", &["--lr", "1e-9"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    for words in [
        "voice: micro",
        "fine-tuning: all weights of step 2 in voice/step-00000002",
        "languages  de new; en, fa kept, not in the corpus",
        "new: ",
        "ü",
        "speakers   1 of the corpus, 6 of the voice kept",
        "`--align-flat-start 100`",
    ] {
        assert!(done.err.contains(words), "`{words}` is not in:\n{}", done.err);
    }
    let (old, ema) = read(&dir.path("voice/step-00000002"), EMA);
    let (new, weights) = read(&dir.path("tuned/step-00000001"), WEIGHTS);
    assert_eq!(new.languages, ["de", "en", "fa"]);
    assert_eq!((new.scale, new.size), (old.scale, old.size));
    let names: Vec<&str> = new.speakers.iter().map(|speaker| speaker.name.as_str()).collect();
    assert_eq!((names.len(), names[0]), (7, "anna"));
    // Mina's recordings are 5.6 dB louder than Jack's: each speaker has a level, and keeps it.
    let level = |document: &VoiceDocument, name: &str| {
        let found = document.speakers.iter().find(|speaker| speaker.name == name);
        f64::from(found.expect("a speaker").level.expect("a level"))
    };
    let louder = level(&old, "mina") - level(&old, "jack");
    assert!((4.5..6.5).contains(&louder), "{louder} dB");
    assert_eq!(level(&new, "mina"), level(&old, "mina"));
    assert!(level(&new, "anna").is_finite());
    let language = |tag: &str| {
        let at = old.languages.iter().position(|known| known == tag).expect("a language");
        rows(&ema, "encoder.languages.table")[at].clone()
    };
    let languages = rows(&weights, "encoder.languages.table");
    assert_near(&languages[1], &language("en"));
    assert_near(&languages[2], &language("fa"));
    for name in ["encoder.text.embedding.table", "encoder.text.prior.weight"] {
        assert_near(&rows(&weights, name).concat(), &rows(&ema, name).concat());
    }
    // Recorded in the configuration and in the record.
    let config = fs::read_to_string(dir.path("tuned/config.toml")).expect("written");
    assert!(
        config.contains("from_voice = \"voice\"") && config.contains("flat_start = 0"),
        "{config}"
    );
    let record = fs::read_to_string(dir.path("tuned/run.jsonl")).expect("a record");
    let header: Value = serde_json::from_str(record.lines().next().expect("a line")).expect("JSON");
    assert_eq!(header["settings"]["taken_over"]["step"], 2, "{header}");
    // The voice speaks the new language, and those it knew, with the speakers it knew.
    let says = |text: &str, more: &[&str]| {
        let args = ["synth", "--checkpoint", "tuned", "-o", "a.wav", "--text", text];
        let said = dir.run(&[&args[..], more].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
    };
    says("guten morgen", &["--language", "de"]);
    says("Good morning", &["--language", "en", "--speaker", "emma"]);
}

#[test]
fn a_new_voice_has_the_learning_rate_of_its_size_unless_one_is_set() {
    let dir = TestDir::with_clips(4, GERMAN);
    let rate = |run: &str, more: &[&str]| {
        let plain = ["--languages", "de,en", "--max-steps", "1"];
        let done = train(&dir, "corpus", run, &[&plain[..], more].concat());
        assert_eq!(done.code, Some(0), "{done:?}");
        let text = fs::read_to_string(dir.path(run).join("config.toml")).expect("written");
        let tree: toml::Value = toml::from_str(&text).expect("TOML");
        tree["train"]["optimizer"]["lr"].as_float().expect("a number")
    };
    assert_eq!(rate("tiny", &[]), 2e-3);
    assert_eq!(rate("micro", &["--model-size", "micro"]), 1e-3);
    assert_eq!(rate("set", &["--lr", "0.001"]), 1e-3);
}

#[test]
fn defaults_are_those_of_fine_tuning_unless_they_are_set() {
    let dir = dir_with_voice();
    let settings = |run: &str| {
        let text = fs::read_to_string(dir.path(run).join("config.toml")).expect("written");
        let tree: toml::Value = toml::from_str(&text).expect("TOML");
        let (rates, alignment) = (&tree["train"]["optimizer"], &tree["train"]["alignment"]);
        let steps = |value: &toml::Value| value.as_integer().expect("a number");
        let lr = rates["lr"].as_float().expect("a number");
        (lr, steps(&rates["warmup_steps"]), steps(&alignment["flat_start"]))
    };
    assert_eq!(tune(&dir, "plain", &[]).code, Some(0));
    assert_eq!(settings("plain"), (3e-4, 50, 0));
    // A value in a file is not a default, even if it is equal to one.
    let file = "[train.optimizer]\nlr = 0.001\n[train.alignment]\nflat_start = 300\n";
    fs::write(dir.path("own.toml"), file).expect("written");
    assert_eq!(tune(&dir, "file", &["--config", "own.toml"]).code, Some(0));
    assert_eq!(settings("file"), (0.001, 50, 300));
    assert_eq!(tune(&dir, "flags", &["--lr", "0.002", "--align-flat-start", "7"]).code, Some(0));
    assert_eq!(settings("flags"), (0.002, 50, 7));
    // A file may name the voice, too.
    let file = "[train]\nfrom_voice = \"voice\"\nmodel_size = \"micro\"\n";
    fs::write(dir.path("voice.toml"), file).expect("written");
    let named = ["--config", "voice.toml", "--languages", "de,en", "--max-steps", "1"];
    assert_eq!(train(&dir, "corpus", "named", &named).code, Some(0));
    assert_eq!(settings("named"), (3e-4, 50, 0));
    // The configuration of a run gives the same run again.
    let again = ["--config", "file/config.toml", "--checkpoint-dir", "again"];
    let again = dir.run(&[&["train"][..], &again].concat());
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(settings("again"), settings("file"));
}

#[test]
fn a_fine_tuned_run_is_resumed_with_the_voice_it_started_from() {
    let dir = dir_with_voice();
    assert_eq!(tune(&dir, "tuned", &[]).code, Some(0));
    tune(&dir, "tuned", &[]).assert_failed(&["holds a run already", "--resume"]);
    let german = ["--languages", "de,en", "--max-steps", "2", "--resume"];
    let plain = train(&dir, "corpus", "tuned", &[&german[..], &["--model-size", "micro"]].concat());
    plain.assert_failed(&["was fine-tuned from `voice`", "type `--from voice`"]);
    // The voice itself is not needed any more where the settings are in a file.
    fs::rename(dir.path("voice"), dir.path("moved")).expect("renamed");
    let config = ["train", "--config", "tuned/config.toml", "--max-steps", "2", "--resume"];
    let resumed = dir.run(&config);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(resumed.err.contains("resumed at step 1"), "{resumed:?}");
    fs::rename(dir.path("moved"), dir.path("voice")).expect("renamed");
    let more = tune(&dir, "tuned", &["--max-steps", "3", "--resume"]);
    assert_eq!(more.code, Some(0), "{more:?}");
    // A run that started with new weights does not become a fine-tuned one.
    let own = ["--from", "tuned", "--max-steps", "3", "--resume"];
    train(&dir, "demo", "voice", &own)
        .assert_failed(&["was not fine-tuned from `tuned`", "leave out `--from`"]);
}

#[test]
fn settings_that_differ_from_the_voice_are_refused_with_what_to_type() {
    let dir = dir_with_voice();
    let size = tune(&dir, "a", &["--model-size", "tiny"]);
    size.assert_failed(&["it is of size micro", "type `--model-size micro`"]);
    fs::write(dir.path("mel.toml"), "[mel]\nhop = 512\n").expect("written");
    let mel = tune(&dir, "b", &["--config", "mel.toml"]);
    mel.assert_failed(&["mel frames with other settings", "voice/config.toml"]);
    let nothing = train(&dir, "corpus", "c", &["--from", "nowhere", "--max-steps", "1"]);
    nothing.assert_failed(&["cannot fine-tune `nowhere`"]);
    let vocoder = ["train-vocoder", "--train-data", "demo", "--size", "micro", "--max-steps", "1"];
    let vocoder = [&vocoder[..], &["--batch-size", "2", "--checkpoint-dir", "vocoder"]].concat();
    assert_eq!(dir.run(&vocoder).code, Some(0));
    let wrong = train(&dir, "corpus", "d", &["--from", "vocoder", "--max-steps", "1"]);
    wrong.assert_failed(&["has no voice", "`tandem train`"]);
    // A voice with a neural vocoder passes it on.
    let attached = dir.run(&["attach-vocoder", "--checkpoint", "voice", "--vocoder", "vocoder"]);
    assert_eq!(attached.code, Some(0), "{attached:?}");
    let tuned = tune(&dir, "tuned", &[]);
    assert!(tuned.err.contains("vocoder    that of the voice"), "{tuned:?}");
    let args = ["synth", "--checkpoint", "tuned", "--text", "Hi there", "-o", "a.wav", "--json"];
    assert_eq!(dir.run(&args).json()["vocoder_name"], "neural vocoder");
}
