//! The real program in surroundings of its own: home, data and cache directories of the test.

#![allow(dead_code, reason = "each test file uses its own part of the kit")]

pub mod disk_points; // every change of the disk, by name
pub mod runs; // what a run left behind

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::Cursor;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A place where a test may do as it likes.
pub struct Place {
    folder: tempfile::TempDir,
}

/// How a command ended and what it said.
#[derive(Debug)]
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Place {
    pub fn new() -> Place {
        let folder = tempfile::tempdir().expect("a place for the test");
        // Another user must be able to look inside where a test runs as one.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("our own");
        Place { folder }
    }

    /// A corpus of these files.
    pub fn with(files: &[(&str, &[u8])]) -> Place {
        let place = Place::new();
        for (file, bytes) in files {
            place.write(file, bytes);
        }
        place
    }

    /// Good clips `a`, `b`, ... and a manifest.
    pub fn with_clips(clips: usize, manifest: &str) -> Place {
        let place = Place::new();
        for name in ('a'..='z').take(clips) {
            place.write(&format!("wavs/{name}.wav"), &good());
        }
        place.write("metadata.csv", manifest.as_bytes());
        place
    }

    /// The corpus directory.
    pub fn corpus(&self) -> PathBuf {
        self.folder.path().join("corpus")
    }

    pub fn inside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, file: &str, bytes: &[u8]) {
        let path = self.corpus().join(file);
        fs::create_dir_all(path.parent().expect("inside")).expect("created");
        fs::write(path, bytes).expect("written");
    }

    /// The program, not started yet.
    pub fn tandem(&self, args: &[&str]) -> Command {
        self.surround(Command::new(env!("CARGO_BIN_EXE_tandem")), args)
    }

    pub fn surround(&self, mut command: Command, args: &[&str]) -> Command {
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TANDEM_")) {
            command.env_remove(name);
        }
        command
            .args(args)
            .current_dir(self.folder.path())
            .env("NO_COLOR", "1")
            .env("HOME", self.inside("home"))
            .env("XDG_CACHE_HOME", self.inside("user-cache"))
            .env("TANDEM_DATA_DIR", self.inside("data"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn run(&self, args: &[&str]) -> Said {
        Said::of(self.tandem(args).output().expect("the program runs"))
    }

    /// `tandem prepare corpus --json ...`, which must end well.
    #[track_caller]
    pub fn prepare(&self, more: &[&str]) -> Value {
        let args = [&["prepare", "corpus", "--json"], more].concat();
        self.run(&args).json()
    }
}

impl Said {
    pub fn of(output: Output) -> Said {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
        let code = output.status.code();
        Said { code, out: text(output.stdout), err: text(output.stderr) }
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{self:?}");
        serde_json::from_str(&self.out).expect("stdout is JSON and nothing else")
    }

    /// It could not be done, in one error that holds all of these words.
    #[track_caller]
    pub fn failed(&self, words: &[&str]) {
        assert_eq!(self.code, Some(2), "{self:?}");
        assert_eq!(self.err.matches("error:").count(), 1, "{}", self.err);
        assert_eq!(self.err.matches("hint:").count(), 1, "{}", self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
        for word in words {
            assert!(self.err.contains(word), "`{word}` is not in:\n{}", self.err);
        }
    }
}

/// Sends a signal to a program that was started with [`Place::tandem`] and not waited for yet.
#[track_caller]
pub fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("the program was not waited for yet");
}

/// Half a second of a tone in the usual format.
pub fn good() -> Vec<u8> {
    wav(Kind::Int(16), 22_050, 1, 0.5)
}

/// How samples are stored.
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

/// The one directory of settings in a cache.
pub fn only_settings(cache: &Path) -> PathBuf {
    let mut found = fs::read_dir(cache).expect("a cache").map(|entry| entry.expect("read").path());
    found.find(|path| path.is_dir()).expect("a directory of settings")
}
