//! Runs the real program in a temporary directory, with its own home, data and cache directories.

#![allow(dead_code, reason = "each test file uses other parts of this module")]

pub mod disk_points; // disk operations by name
pub mod faults; // faults injected into a run
pub mod http; // requests to a server of the program
#[cfg(feature = "mpi")]
pub mod mpi_job; // several ranks under mpirun
pub mod random; // choices that a seed repeats
pub mod runs; // records and checkpoints of a run
pub mod voice; // a checkpoint without training

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{Cursor, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A temporary directory, removed when dropped.
pub struct TestDir {
    folder: tempfile::TempDir,
}

/// Exit code, stdout and stderr of a command.
#[derive(Debug)]
pub struct CommandOutput {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl TestDir {
    pub fn new() -> TestDir {
        let folder = tempfile::tempdir().expect("a temporary directory");
        // A test may run the program as another user, who must be able to read the directory.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("our own");
        TestDir { folder }
    }

    /// A corpus with these files.
    pub fn with(files: &[(&str, &[u8])]) -> TestDir {
        let dir = TestDir::new();
        for (file, bytes) in files {
            dir.write(file, bytes);
        }
        dir
    }

    /// Good clips `a`, `b`, ... and a manifest.
    pub fn with_clips(clips: usize, manifest: &str) -> TestDir {
        let dir = TestDir::new();
        for name in ('a'..='z').chain('A'..='Z').take(clips) {
            dir.write(&format!("wavs/{name}.wav"), &tone_wav());
        }
        dir.write("metadata.csv", manifest.as_bytes());
        dir
    }

    /// The corpus directory.
    pub fn corpus(&self) -> PathBuf {
        self.folder.path().join("corpus")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, file: &str, bytes: &[u8]) {
        let path = self.corpus().join(file);
        fs::create_dir_all(path.parent().expect("inside")).expect("created");
        fs::write(path, bytes).expect("written");
    }

    /// The program, not started yet.
    pub fn tandem(&self, args: &[&str]) -> Command {
        self.with_test_env(Command::new(env!("CARGO_BIN_EXE_tandem")), args)
    }

    pub fn with_test_env(&self, mut command: Command, args: &[&str]) -> Command {
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TANDEM_")) {
            command.env_remove(name);
        }
        command
            .args(args)
            .current_dir(self.folder.path())
            .env("NO_COLOR", "1")
            .env("HOME", self.path("home"))
            .env("XDG_CACHE_HOME", self.path("user-cache"))
            .env("TANDEM_DATA_DIR", self.path("data"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn run(&self, args: &[&str]) -> CommandOutput {
        CommandOutput::of(self.tandem(args).output().expect("the program runs"))
    }

    /// Runs `tandem prepare corpus --json ...`, which must succeed.
    #[track_caller]
    pub fn prepare(&self, more: &[&str]) -> Value {
        let args = [&["prepare", "corpus", "--json"], more].concat();
        self.run(&args).json()
    }
}

impl CommandOutput {
    pub fn of(output: Output) -> CommandOutput {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
        let code = output.status.code();
        CommandOutput { code, out: text(output.stdout), err: text(output.stderr) }
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{self:?}");
        serde_json::from_str(&self.out).expect("stdout is JSON and nothing else")
    }

    /// Exit code 2, with one error and one hint that contain all of these words.
    #[track_caller]
    pub fn assert_failed(&self, words: &[&str]) {
        assert_eq!(self.code, Some(2), "{self:?}");
        assert_eq!(self.err.matches("error:").count(), 1, "{}", self.err);
        assert_eq!(self.err.matches("hint:").count(), 1, "{}", self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
        for word in words {
            assert!(self.err.contains(word), "`{word}` is not in:\n{}", self.err);
        }
    }
}

/// Sends a signal to a program that was started with [`TestDir::tandem`] and not waited for yet.
#[track_caller]
pub fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("the program was not waited for yet");
}

/// Says that a test could check nothing, and why; `scripts/check.sh` and CI count these lines and show them at their end.
pub fn not_tested(what: &str) {
    let line = format!("NOT TESTED: {what}");
    #[allow(clippy::print_stderr, reason = "a test that checks nothing must say so")]
    {
        eprintln!("{line}");
    }
    let Some(list) = std::env::var_os("TANDEM_NOT_TESTED") else { return };
    let file = fs::OpenOptions::new().create(true).append(true).open(list);
    file.and_then(|mut file| writeln!(file, "{line}")).expect("the list of what was not tested");
}

/// Half a second of a tone, 16 bit, mono, 22,050 Hz.
pub fn tone_wav() -> Vec<u8> {
    wav(Kind::Int(16), 22_050, 1, 0.5)
}

#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Int(u16),
    Float,
}

/// A tone as a WAV file.
pub fn wav(kind: Kind, rate: u32, channels: u16, seconds: f64) -> Vec<u8> {
    let level =
        |at: usize| (at as f64 * 330.0 * std::f64::consts::TAU / f64::from(rate)).sin() * 0.4;
    wav_of(kind, rate, channels, (0..(f64::from(rate) * seconds) as usize).map(level))
}

pub fn wav_of(
    kind: Kind,
    sample_rate: u32,
    channels: u16,
    samples: impl Iterator<Item = f64>,
) -> Vec<u8> {
    let (bits_per_sample, sample_format) = match kind {
        Kind::Int(bits) => (bits, hound::SampleFormat::Int),
        Kind::Float => (32, hound::SampleFormat::Float),
    };
    let spec = hound::WavSpec { channels, sample_rate, bits_per_sample, sample_format };
    let mut bytes = Cursor::new(Vec::new());
    let mut file = hound::WavWriter::new(&mut bytes, spec).expect("in memory");
    for sample in samples {
        for _ in 0..channels {
            match kind {
                Kind::Int(bits) => {
                    let scale = f64::from(1u32 << (bits - 1)) - 1.0;
                    file.write_sample((sample * scale) as i32).expect("in memory");
                }
                Kind::Float => file.write_sample(sample as f32).expect("in memory"),
            }
        }
    }
    file.finalize().expect("in memory");
    bytes.into_inner()
}

/// The directory of the only settings in a cache.
pub fn settings_dir(cache: &Path) -> PathBuf {
    let mut found = fs::read_dir(cache).expect("a cache").map(|entry| entry.expect("read").path());
    found.find(|path| path.is_dir()).expect("a directory of settings")
}
