//! A directory with every file that the documents name, in which their commands run.
//!
//! In: a command as a page shows it. Out: its exit code and output. Commands run in a shell, with fewer
//! training steps: the test checks that they run, not what they compute.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A temporary directory with the files that pages name.
pub struct Sandbox {
    folder: tempfile::TempDir,
}

/// A configuration file of MyXTTS.
const MYXTTS: &str = "\
data:
  dataset_path: my_voice
  batch_size: 4
  num_workers: 2
  trim_silence: true
training:
  learning_rate: 1e-4
model:
  languages: [en, fa]
";

impl Sandbox {
    /// Creates the files; recordings come from the repository at `root`.
    pub fn new(root: &Path) -> Sandbox {
        let sandbox = Sandbox { folder: tempfile::tempdir().expect("a temporary directory") };
        let here = sandbox.path();
        fs::create_dir(&here).expect("a folder");
        // Pages name files relative to the root of the repository.
        symlink(root.join("docs"), here.join("docs")).expect("a link");
        let demo = root.join("crates/tandem/demo-corpus");
        small_corpus(&demo, 0, &here.join("my_voice"));
        small_corpus(&demo, 1, &here.join("my_voice_test"));
        small_corpus(&demo, 0, &here.join("../dataset/dataset_train"));
        let flac = root.join("crates/tandem-audio/tests/audio/tone_22k_16.flac");
        fs::copy(flac, here.join("voice.flac")).expect("copied");
        write_reference(&here.join("me.wav"));
        let written = [
            ("book.txt", "The first sentence. The second one.\n"),
            ("run.toml", "[batch]\nbatch_size = 4\n"),
            ("run.yaml", "batch:\n  batch_size: 4\n"),
            ("configs/config.yaml", MYXTTS),
        ];
        for (name, text) in written {
            let path = here.join(name);
            fs::create_dir_all(path.parent().expect("inside")).expect("a folder");
            fs::write(path, text).expect("written");
        }
        sandbox
    }

    /// The working directory of the commands.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("sandbox")
    }

    /// Adds the runs that pages name.
    pub fn with_a_run(self) -> Sandbox {
        let trained = self.run("tandem train --train-data my_voice --checkpoint-dir runs/first");
        let said = String::from_utf8_lossy(&trained.stderr);
        assert_eq!(trained.status.code(), Some(0), "{said}");
        for name in ["before", "after"] {
            let path = self.path().join("runs").join(name);
            fs::create_dir_all(&path).expect("a folder");
            // `tandem compare` needs more than the two steps of a shortened run.
            let record = self.path().join("docs/example-run.jsonl");
            fs::copy(record, path.join("run.jsonl")).expect("copied");
        }
        self
    }

    /// Runs a command, shortened.
    pub fn run(&self, command: &str) -> Output {
        let resumes = command.contains("--resume");
        if command.contains("tandem train") && !resumes {
            // Without `--resume` the run directory must not exist yet.
            let _ = fs::remove_dir_all(self.path().join(checkpoint_dir(command)));
        }
        let steps = if resumes { "3" } else { "2" };
        let program = Path::new(env!("CARGO_BIN_EXE_tandem"));
        let mut places = vec![program.parent().expect("a folder").to_path_buf()];
        places.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
        Command::new("sh")
            .args(["-c", &shortened(command, steps)])
            .current_dir(self.path())
            .env("PATH", env::join_paths(places).expect("a path"))
            .env("TANDEM_DATA_DIR", self.folder.path().join("data"))
            .env("TANDEM_MAX_STEPS", steps)
            .env("TANDEM_BATCH_SIZE", "2")
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .output()
            .expect("a shell")
    }
}

/// The run directory of a training command.
fn checkpoint_dir(command: &str) -> &str {
    let named = command.split("--checkpoint-dir ").nth(1);
    named.and_then(|rest| rest.split(' ').next()).unwrap_or("run")
}

/// The same command with few steps and items, and the dashboard at a free port.
fn shortened(command: &str, steps: &str) -> String {
    let few = [
        ("--max-steps", steps),
        ("--batch-size", "2"),
        ("--items", "6"),
        ("--limit", "2"),
        ("--batches", "4"),
    ];
    let mut words: Vec<&str> = Vec::new();
    for word in command.split(' ') {
        let before = words.last().copied().unwrap_or_default();
        let short = few.iter().find(|(flag, _)| *flag == before).map(|(_, few)| *few);
        words.push(short.unwrap_or(word));
    }
    let mut text = words.join(" ").replace("--dashboard", "--dashboard 0");
    let more = [("tandem bench pipeline", "--items"), ("tandem evaluate", "--limit")];
    for (start, flag) in more {
        if text.starts_with(start) && !text.contains(flag) {
            let few = few.iter().find(|(known, _)| *known == flag).map_or("2", |(_, few)| few);
            text = text.replacen(start, &format!("{start} {flag} {few}"), 1);
        }
    }
    text
}

/// A corpus of ten training rows and two held-out rows; another `start` selects other rows.
fn small_corpus(demo: &Path, start: usize, to: &Path) {
    for (manifest, rows) in [("metadata_train.csv", 10), ("metadata_eval.csv", 2)] {
        let text = fs::read_to_string(demo.join(manifest)).expect("a manifest");
        // Rows at equal distances, to have both languages.
        let all: Vec<&str> = text.lines().skip(1).collect();
        let kept = all.iter().skip(start).step_by(all.len() / rows).take(rows).copied();
        let kept: Vec<&str> = text.lines().take(1).chain(kept).collect();
        for row in kept.iter().skip(1) {
            let name = format!("wavs/{}.flac", row.split('|').next().expect("an id"));
            let (from, to) = (demo.join(&name), to.join(&name));
            fs::create_dir_all(to.parent().expect("inside")).expect("a folder");
            fs::copy(from, to).expect("copied");
        }
        fs::write(to.join(manifest), kept.join("\n")).expect("written");
    }
}

/// Two seconds of a tone, as a reference recording.
fn write_reference(path: &Path) {
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: 22050,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut file = hound::WavWriter::create(path, spec).expect("a file");
    for sample in 0..44100 {
        let wave = (f64::from(sample) * 0.05).sin() * 8000.0;
        file.write_sample(wave as i16).expect("written");
    }
    file.finalize().expect("written");
}

#[test]
fn commands_are_shortened_and_otherwise_unchanged() {
    let check = |long: &str, short: &str| assert_eq!(shortened(long, "2"), short);
    check("tandem train --max-steps 500 --dashboard", "tandem train --max-steps 2 --dashboard 0");
    check("tandem bench pipeline --stage a=1", "tandem bench pipeline --items 6 --stage a=1");
    check("tandem evaluate --limit 6 --json", "tandem evaluate --limit 2 --json");
    check("tandem text 'a  b'", "tandem text 'a  b'");
    assert_eq!(checkpoint_dir("tandem train --checkpoint-dir runs/a --resume"), "runs/a");
    assert_eq!(checkpoint_dir("tandem train"), "run");
}
