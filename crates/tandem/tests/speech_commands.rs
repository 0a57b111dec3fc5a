//! `tandem synth` and `tandem evaluate` with a checkpoint of a small untrained voice.

mod support;

use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use support::voice::dir_with_voice;
use support::{Kind, wav};

const SYNTH: [&str; 5] = ["synth", "--checkpoint", "run", "-o", "a.wav"];

fn synth<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SYNTH[..], more].concat()
}

fn seconds_of(path: &Path) -> f64 {
    let reader = hound::WavReader::open(path).expect("a WAV file");
    let spec = reader.spec();
    assert_eq!((spec.sample_rate, spec.channels, spec.bits_per_sample), (22050, 1, 16));
    f64::from(reader.duration()) / 22050.0
}

#[test]
fn two_sentences_in_two_languages_become_one_file() {
    let dir = dir_with_voice();
    let text = "Good morning, Mr. Smith. سلام دنیا!";
    let args = synth(&["--text", text, "--mel", "a.npy", "--json"]);
    let found = dir.run(&args).json();
    let sentences = found["sentences"].as_array().expect("a list");
    let languages: Vec<_> = sentences.iter().map(|one| one["language"].as_str()).collect();
    assert_eq!(languages, [Some("en"), Some("fa")]);
    let seconds = seconds_of(&dir.path("a.wav"));
    assert!((found["seconds"].as_f64().unwrap() - seconds).abs() < 1e-6, "{found}");
    assert!(found["real_time_factor"].as_f64().unwrap() > 0.0);
    assert_eq!(found["step"], 40);
    let bytes = fs::read(dir.path("a.npy")).expect("mel frames");
    let shape = npyz::NpyFile::new(&bytes[..]).expect("NumPy's format").shape().to_vec();
    assert_eq!(shape, [(seconds * 22050.0 / 256.0).round() as u64, 80]);
    // A second run gives the same bytes.
    let first = fs::read(dir.path("a.wav")).expect("written");
    let again = dir.run(&synth(&["--text", text]));
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(again.out.starts_with("a.wav: ") && again.out.contains("2 sentences"), "{again:?}");
    assert!(again.out.contains("real-time factor"), "{again:?}");
    assert!(fs::read(dir.path("a.wav")).expect("written") == first);
}

#[test]
fn text_may_come_from_a_file_or_a_pipe_and_a_voice_from_a_recording() {
    let dir = dir_with_voice();
    fs::write(dir.path("book.txt"), "First line\n\n* * *\n\nSecond line").expect("written");
    fs::write(dir.path("me.wav"), wav(Kind::Int(16), 44_100, 2, 2.0)).expect("written");
    let args = ["--text-file", "book.txt", "--reference", "me.wav", "--speed", "1.5", "--json"];
    let found = dir.run(&synth(&args)).json();
    assert_eq!(found["sentences"].as_array().map(Vec::len), Some(2));
    assert_eq!(found["unsaid"], serde_json::json!(["* * *"]));
    // A voice of few speakers cannot copy another one.
    assert_eq!(found["training_speakers"], 1);
    let copied = dir.run(&synth(&["--text", "Hi", "--reference", "me.wav"]));
    assert!(copied.err.contains("warning: this voice was trained on 1 speaker;"), "{copied:?}");
    let known = dir.run(&synth(&["--text", "Hi", "--speaker", "emma"]));
    assert!(!known.err.contains("warning"), "{known:?}");
    let mut piped = dir.tandem(&synth(&["--text-file", "-"]));
    let mut child = piped.stdin(Stdio::piped()).spawn().expect("starts");
    child.stdin.take().expect("a pipe").write_all("سلام".as_bytes()).expect("written");
    assert_eq!(child.wait().expect("ends").code(), Some(0));
}

#[test]
fn unusable_input_is_an_error_with_a_hint_and_writes_nothing() {
    let dir = dir_with_voice();
    fs::write(dir.path("short.wav"), wav(Kind::Int(16), 22_050, 1, 0.3)).expect("written");
    let fails = |more: &[&str], words: &[&str]| {
        dir.run(&synth(more)).assert_failed(words);
        assert!(!dir.path("a.wav").exists());
    };
    fails(&["--text", "..."], &["no pronounceable word", "at least one word"]);
    fails(&["--text", "A ★ star", "--strict"], &["A ★ star", "U+2605"]);
    fails(&["--text", "Привет"], &["Cyrillic", "reads en, fa"]);
    fails(&["--text", "Hallo", "--language", "de"], &["`de`", "reads en, fa"]);
    fails(&["--text", "Hi", "--speaker", "bob"], &["`bob`", "it has emma"]);
    fails(&["--text", "Hi", "--reference", "short.wav"], &["short.wav", "clear speech"]);
    fails(&["--text", "Hi", "--speed", "0"], &["the speed is 0", "leave it out"]);
    fails(&["--text", "Hi", "--mel", "a.png"], &["a.png", ".npy"]);
    fails(&["--text-file", "none.txt"], &["none.txt"]);
    let nowhere = ["synth", "--checkpoint", "nowhere", "-o", "a.wav", "--text", "Hi"];
    dir.run(&nowhere).assert_failed(&["nowhere"]);
}

#[test]
fn a_damaged_checkpoint_is_an_error() {
    let dir = dir_with_voice();
    let weights = dir.path("run/step-00000040/ema.safetensors");
    let mut bytes = fs::read(&weights).expect("weights");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&weights, bytes).expect("written");
    dir.run(&synth(&["--text", "Hi"])).assert_failed(&["ema.safetensors"]);
    assert!(!dir.path("a.wav").exists());
}

#[test]
fn a_voice_is_evaluated_by_language_and_speaker() {
    let dir = dir_with_voice();
    let evaluate = ["evaluate", "--checkpoint", "run", "--corpus", "demo", "--limit", "2"];
    let quick = ["--steps", "1", "--vocoder-rounds", "1"];
    let output = dir.run(&[&evaluate[..], &quick, &["--json"]].concat());
    let found: Value = serde_json::from_str(&output.out).expect("JSON and nothing else");
    let gain = found["all"]["gain"].as_f64().expect("a share");
    assert_eq!(output.code, Some(if gain > 0.0 { 0 } else { 1 }), "{output:?}");
    assert_eq!(found["all"]["utterances"], 2);
    assert_eq!(found["utterances"].as_array().map(Vec::len), Some(2));
    for name in ["distortion", "baseline", "duration_error", "coverage", "entropy", "pitch_error"] {
        assert!(found["all"].get(name).is_some(), "{name}: {found}");
    }
    let table = dir.run(&[&evaluate[..], &quick].concat());
    assert!(table.out.contains("language en") && table.out.contains("speaker "), "{table:?}");
    assert!(table.out.contains("distortion"), "{table:?}");
}

const EXPORT: [&str; 5] = ["export", "--checkpoint", "run", "-o", "voices"];

fn export<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&EXPORT[..], more].concat()
}

#[test]
fn an_exported_voice_is_two_files_and_says_what_it_contains() {
    let dir = dir_with_voice();
    let made = dir.run(&export(&["--format", "piper", "--name", "anna", "--json"]));
    let found = made.json();
    assert_eq!(found["opset"], 17);
    assert_eq!(found["speakers"][0]["name"], "emma");
    assert_eq!(found["vocoder"], "Griffin-Lim, 32 iterations");
    assert!(made.err.contains("Griffin-Lim instead of a neural vocoder"), "{made:?}");
    let bytes = fs::read(dir.path("voices/anna.onnx")).expect("a model");
    assert_eq!(found["bytes"], bytes.len());
    let config = fs::read(dir.path("voices/anna.onnx.json")).expect("a configuration");
    let config: Value = serde_json::from_slice(&config).expect("JSON");
    assert_eq!(
        (&config["num_speakers"], &config["audio"]["sample_rate"]),
        (&1.into(), &22050.into())
    );

    let made = dir.run(&export(&["--format", "onnx", "--vocoder-rounds", "2", "--steps", "3"]));
    assert_eq!(made.code, Some(0), "{made:?}");
    assert!(made.out.contains("3 steps, Griffin-Lim, 2 iterations"), "{made:?}");
    let about = fs::read(dir.path("voices/voice.json")).expect("a description");
    let about: Value = serde_json::from_slice(&about).expect("JSON");
    assert_eq!(
        (&about["flow_steps"], &about["speakers"][0]["language"]),
        (&3.into(), &"en".into())
    );
}

#[test]
fn what_cannot_be_exported_is_an_error_with_a_hint() {
    let dir = dir_with_voice();
    dir.write("empty/nothing.txt", b"");
    let fails = |more: &[&str], words: &[&str]| {
        dir.run(&export(&[&["--format", "onnx"], more].concat())).assert_failed(words);
        assert!(!dir.path("voices").exists(), "{more:?} wrote files");
    };
    fails(&["--speaker", "nobody"], &["no speaker `nobody`", "`emma`"]);
    fails(&["--language", "de"], &["does not speak", "hint"]);
    fails(&["--steps", "0"], &["steps", "hint"]);
    fails(&["--name", "../a"], &["cannot be the name", "hint"]);
    fails(&["--vocoder", "empty"], &["empty", "hint"]);
    let none = dir.run(&["export", "--checkpoint", "empty", "--format", "onnx", "-o", "voices"]);
    none.assert_failed(&["cannot load the voice", "hint"]);
}

#[test]
fn a_check_without_its_programs_says_what_is_missing() {
    let dir = dir_with_voice();
    let check =
        |python: &str| dir.run(&export(&["--format", "onnx", "--check", "--python", python]));
    check("no-such-python").assert_failed(&["cannot start `no-such-python`", "--python"]);
    check("false").assert_failed(&["ONNX Runtime cannot run", "hint"]);
    let two = ["--format", "onnx", "--check", "--check-text", "One. Two.", "--python", "false"];
    dir.run(&export(&two)).assert_failed(&["2 sentences", "one sentence"]);
}
