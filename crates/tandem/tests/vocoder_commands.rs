//! `tandem train-vocoder`, `attach-vocoder` and `vocode`: a few steps of a tiny network, resumed, stopped and used.

mod support;

use rustix::process::Signal;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};
use support::{CommandOutput, Kind, TestDir, signal, wav};

const TRAIN: [&str; 9] = [
    "train-vocoder",
    "--train-data",
    "demo",
    "--size",
    "micro",
    "--batch-size",
    "2",
    "--frame-budget",
    "800",
];

fn train(dir: &TestDir, directory: &str, more: &[&str]) -> CommandOutput {
    dir.run(&[&TRAIN[..], &["--checkpoint-dir", directory], more].concat())
}

fn tensors(dir: &TestDir, checkpoint: &str) -> Vec<Vec<u8>> {
    let read = |name: &str| fs::read(dir.path(checkpoint).join(name)).expect("a tensor file");
    ["weights.safetensors", "ema.safetensors", "moments.safetensors"].map(read).to_vec()
}

#[test]
fn a_resumed_vocoder_has_the_same_weights_to_the_last_bit() {
    let dir = TestDir::new();
    let whole = train(&dir, "whole", &["--max-steps", "4"]);
    assert_eq!(whole.code, Some(0), "{whole:?}");
    assert!(whole.err.contains("micro, 15 thousand parameters; new run"), "{whole:?}");
    assert!(whole.err.contains("attach-vocoder"), "{whole:?}");
    // The warm-up of the learning rate is longer than these runs, so it does not depend on their length.
    assert_eq!(train(&dir, "parts", &["--max-steps", "2"]).code, Some(0));
    let again = train(&dir, "parts", &["--max-steps", "4"]);
    again.assert_failed(&["holds a run already", "--resume"]);
    let resumed = train(&dir, "parts", &["--max-steps", "4", "--resume"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(resumed.err.contains("resumed at step 2"), "{resumed:?}");
    assert!(tensors(&dir, "whole/step-00000004") == tensors(&dir, "parts/step-00000004"));
    let other = train(&dir, "parts", &["--max-steps", "5", "--resume", "--seed", "9"]);
    other.assert_failed(&["seed changed", "config.toml"]);
    // The record of a run is that of a voice: the report reads it.
    let report = dir.run(&["report", "whole", "--json"]);
    assert_eq!(report.code, Some(0), "{report:?}");
}

#[test]
fn ctrl_c_writes_a_checkpoint_and_exits_with_three() {
    let dir = TestDir::new();
    let args = [&TRAIN[..], &["--checkpoint-dir", "run", "--max-steps", "100000"]].concat();
    let mut command = dir.tandem(&[&args[..], &["--checkpoint-every", "1"]].concat());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
    let began = Instant::now();
    while support::runs::newest(&dir.path("run")).is_none() {
        assert!(began.elapsed() < Duration::from_secs(600), "no checkpoint");
        std::thread::sleep(Duration::from_millis(20));
    }
    signal(&child, Signal::INT);
    assert_eq!(child.wait().expect("ends").code(), Some(3));
    let step = support::runs::newest(&dir.path("run")).expect("a checkpoint");
    let more = (step + 1).to_string();
    let resumed = train(&dir, "run", &["--resume", "--max-steps", &more]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
}

#[test]
fn a_voice_uses_the_vocoder_that_is_attached_to_it() {
    let dir = TestDir::new();
    assert_eq!(train(&dir, "vocoder", &["--max-steps", "1"]).code, Some(0));
    let voice = ["train", "--train-data", "demo", "--model-size", "micro", "--batch-size", "2"];
    let voice = [&voice[..], &["--max-steps", "1", "--checkpoint-dir", "voice/run"]].concat();
    assert_eq!(dir.run(&voice).code, Some(0));
    let synth = |more: &[&str]| {
        let args = ["synth", "--checkpoint", "voice/run", "--text", "Hi there", "-o", "a.wav"];
        dir.run(&[&args[..], &["--json"], more].concat()).json()
    };
    assert_eq!(synth(&[])["vocoder_name"], "Griffin-Lim");
    assert_eq!(synth(&["--vocoder", "vocoder"])["vocoder_name"], "neural vocoder");
    let attach =
        |voice, vocoder| dir.run(&["attach-vocoder", "--checkpoint", voice, "--vocoder", vocoder]);
    attach("voice/run", "voice/run").assert_failed(&["has no vocoder", "train-vocoder"]);
    attach("vocoder", "vocoder").assert_failed(&["has no voice", "`tandem train`"]);
    attach("nowhere", "vocoder").assert_failed(&["nowhere"]);
    let attached = attach("voice/run", "vocoder");
    assert_eq!(attached.code, Some(0), "{attached:?}");
    assert!(attached.out.contains("micro vocoder"), "{attached:?}");
    assert_eq!(synth(&[])["vocoder_name"], "neural vocoder");
    assert_eq!(synth(&["--vocoder", "griffin-lim"])["vocoder_name"], "Griffin-Lim");
    // A second one replaces the first.
    assert_eq!(attach("voice/run/step-00000001", "vocoder/step-00000001").code, Some(0));
    assert_eq!(synth(&[])["vocoder_name"], "neural vocoder");
    // The state of the vocoder's training is not copied.
    let copied = fs::read_dir(dir.path("voice/run/vocoder")).expect("a directory");
    let steps = copied.filter(|entry| entry.as_ref().expect("read").path().is_dir());
    for step in steps {
        assert!(!step.expect("read").path().join("moments.safetensors").exists());
    }
    // A damaged vocoder is an error, not another vocoder in silence.
    let weights = walk(&dir.path("voice/run/vocoder"), "ema.safetensors");
    fs::write(weights, b"nothing").expect("written");
    let args = ["synth", "--checkpoint", "voice/run", "--text", "Hi", "-o", "b.wav"];
    dir.run(&args).assert_failed(&["ema.safetensors"]);
}

/// The file of this name in a subdirectory.
fn walk(folder: &std::path::Path, name: &str) -> std::path::PathBuf {
    let entries =
        fs::read_dir(folder).expect("a directory").map(|entry| entry.expect("read").path());
    entries.map(|path| path.join(name)).find(|path| path.exists()).expect("a file of this name")
}

#[test]
fn mel_frames_of_a_recording_become_a_recording_of_the_same_length() {
    let dir = TestDir::new();
    fs::write(dir.path("tone.wav"), wav(Kind::Int(16), 22_050, 1, 1.0)).expect("written");
    assert_eq!(dir.run(&["features", "tone.wav", "-o", "mel.npy"]).code, Some(0));
    assert_eq!(train(&dir, "vocoder", &["--max-steps", "1"]).code, Some(0));
    for (vocoder, name) in [("griffin-lim", "Griffin-Lim"), ("vocoder", "neural vocoder")] {
        let args = ["vocode", "mel.npy", "-o", "copy.wav", "--vocoder", vocoder, "--json"];
        let found = dir.run(&args).json();
        assert_eq!((&found["vocoder"], &found["frames"]), (&name.into(), &87.into()), "{found}");
        let reader = hound::WavReader::open(dir.path("copy.wav")).expect("a WAV file");
        assert_eq!((reader.spec().sample_rate, reader.duration()), (22_050, 87 * 256 - 128));
        fs::remove_file(dir.path("copy.wav")).expect("removed");
    }
    let plain = dir.run(&["vocode", "mel.npy", "-o", "copy.wav"]);
    assert!(plain.out.contains("real-time factor"), "{plain:?}");
}

#[test]
fn unusable_mel_frames_are_an_error_with_a_hint() {
    let dir = TestDir::new();
    let save = |name: &str, shape: &[u64], values: &[f32]| {
        use npyz::WriterBuilder;
        let mut bytes = Vec::new();
        let options = npyz::WriteOptions::new().default_dtype().shape(shape);
        let mut writer = options.writer(&mut bytes).begin_nd().expect("in memory");
        writer.extend(values).expect("in memory");
        writer.finish().expect("in memory");
        fs::write(dir.path(name), bytes).expect("written");
    };
    save("turned.npy", &[80, 2], &[0.0; 160]);
    save("loud.npy", &[2, 80], &[99.0; 160]);
    save("nan.npy", &[2, 80], &[f32::NAN; 160]);
    save("none.npy", &[0, 80], &[]);
    fs::write(dir.path("text.npy"), "no array").expect("written");
    let fails = |mel: &str, words: &[&str]| {
        dir.run(&["vocode", mel, "-o", "out.wav"]).assert_failed(words);
        assert!(!dir.path("out.wav").exists());
    };
    fails("turned.npy", &["[80, 2]", "expected [frames, 80]", "mel.T"]);
    fails("loud.npy", &["unusable value 99", "natural logarithms"]);
    fails("nan.npy", &["NaN", "natural logarithms"]);
    fails("none.npy", &["no mel frames", "at least one frame"]);
    fails("text.npy", &["not a NumPy file", "numpy.save"]);
    fails("missing.npy", &["missing.npy", "typing errors"]);
    dir.run(&["vocode", "loud.npy", "-o", "out.mp3"]).assert_failed(&["out.mp3", ".wav"]);
    dir.run(&["vocode", "loud.npy", "-o", "out.wav", "--vocoder", "nowhere"])
        .assert_failed(&["nowhere"]);
}
