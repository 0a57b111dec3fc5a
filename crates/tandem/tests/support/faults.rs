//! Faults for the fault campaign: what can happen to files and processes while a run trains.

use super::{TestDir, signal};
use rustix::process::Signal;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// One fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    DeleteRecordings,
    TruncateRecording,
    ReplaceRecording,
    RecordingIsFifo,
    RecordingIsDirectory,
    RecordingUnreadable,
    RenameRecordings,
    RenameCorpusAudio,
    DeleteCacheSegment,
    TruncateCacheSegment,
    OverwriteCacheSegment,
    DeleteCacheIndex,
    TruncateCacheIndex,
    RenameRunDirectory,
    StopAndContinue,
    Terminate,
    Kill,
}

const ALL: [Fault; 17] = [
    Fault::DeleteRecordings,
    Fault::TruncateRecording,
    Fault::ReplaceRecording,
    Fault::RecordingIsFifo,
    Fault::RecordingIsDirectory,
    Fault::RecordingUnreadable,
    Fault::RenameRecordings,
    Fault::RenameCorpusAudio,
    Fault::DeleteCacheSegment,
    Fault::TruncateCacheSegment,
    Fault::OverwriteCacheSegment,
    Fault::DeleteCacheIndex,
    Fault::TruncateCacheIndex,
    Fault::RenameRunDirectory,
    Fault::StopAndContinue,
    Fault::Terminate,
    Fault::Kill,
];

impl Fault {
    /// Best effort: a file that another fault removed cannot be truncated.
    pub fn inject(self, child: &Child, data: &Recordings, run: &Path, random: &mut Random) {
        let some = |random: &mut Random| data.some(random);
        let _ = match self {
            Fault::DeleteRecordings => (0..4).try_for_each(|_| fs::remove_file(some(random))),
            Fault::TruncateRecording => truncate(&some(random), random),
            Fault::ReplaceRecording => fs::copy(data.pristine(random), some(random)).map(drop),
            Fault::RecordingIsFifo => {
                let path = some(random);
                let _ = fs::remove_file(&path);
                Command::new("mkfifo").arg(&path).status().map(drop)
            }
            Fault::RecordingIsDirectory => {
                let path = some(random);
                let _ = fs::remove_file(&path);
                fs::create_dir(path)
            }
            Fault::RecordingUnreadable => {
                fs::set_permissions(some(random), fs::Permissions::from_mode(0o000))
            }
            Fault::RenameRecordings => (0..4).try_for_each(|_| {
                let path = some(random);
                fs::rename(&path, path.with_extension("gone"))
            }),
            Fault::RenameCorpusAudio => {
                let wavs = data.corpus.join("wavs");
                fs::rename(&wavs, data.corpus.join("wavs.gone"))
            }
            Fault::DeleteCacheSegment => {
                data.cache_file(random, "seg", |path, _| fs::remove_file(path))
            }
            Fault::TruncateCacheSegment => data.cache_file(random, "seg", truncate),
            Fault::OverwriteCacheSegment => data.cache_file(random, "seg", overwrite),
            Fault::DeleteCacheIndex => {
                data.cache_file(random, "index", |path, _| fs::remove_file(path))
            }
            Fault::TruncateCacheIndex => data.cache_file(random, "index", truncate),
            Fault::RenameRunDirectory => {
                let away = run.with_extension("away");
                let renamed = fs::rename(run, &away);
                std::thread::sleep(Duration::from_millis(random.between(50, 500)));
                renamed.and_then(|()| fs::rename(&away, run))
            }
            Fault::StopAndContinue => {
                // Sometimes longer than the stall timeout of the run.
                let longest = if random.between(0, 3) == 0 { 6000 } else { 600 };
                signal(child, Signal::STOP);
                std::thread::sleep(Duration::from_millis(random.between(50, longest)));
                signal(child, Signal::CONT);
                Ok(())
            }
            Fault::Terminate => {
                signal(child, Signal::TERM);
                Ok(())
            }
            Fault::Kill => {
                signal(child, Signal::KILL);
                Ok(())
            }
        };
    }
}

fn truncate(path: &Path, random: &mut Random) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    let length = file.metadata()?.len();
    file.set_len(random.between(0, length.max(1)))
}

/// Other bytes in the same file, which others may have mapped.
fn overwrite(path: &Path, random: &mut Random) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    let length = file.metadata()?.len();
    let at = random.between(0, length.max(1));
    file.write_all_at(&vec![0xA5; (length - at).min(40_000) as usize], at)
}

/// A small corpus whose files can be damaged and restored.
pub struct Recordings {
    corpus: PathBuf,
    pristine: PathBuf,
    names: Vec<String>,
    cache: PathBuf,
}

impl Recordings {
    /// Some rows of the demo corpus, in both languages.
    pub fn copy_of_demo(dir: &TestDir, rows: usize) -> Recordings {
        let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo-corpus");
        let (corpus, pristine) = (dir.path("corpus"), dir.path("pristine"));
        let manifest = fs::read_to_string(demo.join("metadata.csv")).expect("a manifest");
        let (header, lines) = manifest.split_once('\n').expect("a header");
        let lines: Vec<&str> = lines.lines().collect();
        let chosen: Vec<&str> = lines.iter().step_by(lines.len() / rows).copied().collect();
        let mut names = Vec::new();
        for line in &chosen {
            let name = format!("{}.flac", line.split('|').next().expect("an id"));
            for to in [corpus.join("wavs").join(&name), pristine.join(&name)] {
                fs::create_dir_all(to.parent().expect("a directory")).expect("created");
                fs::copy(demo.join("wavs").join(&name), to).expect("copied");
            }
            names.push(name);
        }
        fs::write(corpus.join("metadata.csv"), format!("{header}\n{}\n", chosen.join("\n")))
            .expect("written");
        Recordings { cache: dir.path("cache"), corpus, pristine, names }
    }

    pub fn corpus(&self) -> &Path {
        &self.corpus
    }

    fn some(&self, random: &mut Random) -> PathBuf {
        self.corpus.join("wavs").join(self.name(random))
    }

    fn pristine(&self, random: &mut Random) -> PathBuf {
        self.pristine.join(self.name(random))
    }

    fn name(&self, random: &mut Random) -> &str {
        &self.names[random.between(0, self.names.len() as u64 - 1) as usize]
    }

    /// Damages one file of the cache whose name contains this.
    fn cache_file(
        &self,
        random: &mut Random,
        name: &str,
        damage: impl Fn(&Path, &mut Random) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut found = Vec::new();
        files_below(&self.cache, &mut found);
        found.retain(|path| {
            path.file_name().is_some_and(|file| file.to_string_lossy().contains(name))
        });
        match found.len() as u64 {
            0 => Ok(()),
            count => damage(&found[random.between(0, count - 1) as usize].clone(), random),
        }
    }

    /// Every recording as it was.
    pub fn restore(&self) {
        let wavs = self.corpus.join("wavs");
        let _ = fs::rename(self.corpus.join("wavs.gone"), &wavs);
        for name in &self.names {
            let (path, pristine) = (wavs.join(name), self.pristine.join(name));
            let _ = fs::remove_file(path.with_extension("gone"));
            let same = fs::read(&pristine).ok();
            let is_file = fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_file());
            if is_file && fs::read(&path).ok() == same {
                continue;
            }
            let _ = fs::remove_dir(&path);
            let _ = fs::remove_file(&path);
            fs::copy(&pristine, &path).expect("restored");
        }
    }
}

fn files_below(directory: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        match path.is_dir() {
            true => files_below(&path, found),
            false => found.push(path),
        }
    }
}

/// Random numbers from a seed that failure messages show.
#[derive(Debug)]
pub struct Random {
    seed: u64,
    state: u64,
}

impl Random {
    pub fn new(seed: Option<u64>) -> Random {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        let seed = seed.unwrap_or(now.as_nanos() as u64 | 1);
        Random { seed, state: seed }
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Both ends included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        least + (self.state >> 11) % (most - least + 1)
    }

    pub fn fault(&mut self) -> Fault {
        ALL[self.between(0, ALL.len() as u64 - 1) as usize]
    }

    /// A fault of the disk from inside, for one run in three: a full or broken disk, errors and delays of reads.
    pub fn disk_failure(&mut self, last_try: bool) -> Option<String> {
        if last_try || self.between(0, 2) > 0 {
            return None;
        }
        // Preparing the corpus and measuring it reads every recording some times first.
        let (change, read) = (self.between(40, 200), self.between(300, 500));
        let more = self.between(0, 6);
        Some(match self.between(0, 4) {
            0 => format!("full:write *#{change}-{}", change + more),
            1 => format!("broken:write *#{change}-{}", change + more),
            2 => format!("read-error:open *#{read}-{}", read + more),
            3 => format!("read-stale:read *#{read}-{}", read + more),
            _ => format!("read-delay-700:open *#{read}-{}", read + more),
        })
    }
}
