//! A checkpoint being read: manifest first, then every file, none believed before size and checksum
//! fit.
//!
//! In: a checkpoint's directory, or a run directory with several. Out: [`Loaded`], and which newer
//! ones were passed over and why. Needs no lock: a checkpoint never changes once it is there, it
//! only goes as a whole.

use super::contents::Contents;
use super::directory::{self, Best, Place};
use super::error::{Broken, CheckpointError, Fault};
use super::manifest::{self, FileEntry, FileKind, Manifest};
use super::tensor_file;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use tandem_units::Bytes;

/// The largest manifest or mark: a few lines for each file.
const SMALL: Bytes = Bytes::mib(1);
/// The largest document.
const DOCUMENT: Bytes = Bytes::mib(256);
/// The largest file of tensors: a hundred times the biggest voice.
const TENSORS: Bytes = Bytes::mib(128 << 10);
/// How often a directory is looked through while the run that writes there changes it underfoot.
const LOOKS: usize = 200;
/// Between two looks: long enough for the writer's next act to be seen.
const PAUSE: Duration = Duration::from_millis(5);

/// Which parts of a checkpoint are read. Documents always are: they are small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts<'a> {
    /// All sets of tensors.
    All,
    /// These sets of tensors; it is no error if one is not there.
    Only(&'a [&'a str]),
}

/// A checkpoint, read and checked.
#[derive(Debug)]
pub struct Loaded {
    /// What it holds.
    pub contents: Contents,
    /// Its directory.
    pub path: PathBuf,
    /// The version of the program that wrote it.
    pub program: String,
    /// Those that would have been taken before it, were they whole: worth a warning.
    pub passed_over: Vec<Broken>,
}

/// Reads the checkpoint in this very directory, whatever its name.
pub fn load(path: &Path, parts: Parts<'_>) -> Result<Loaded, CheckpointError> {
    if !path.is_dir() {
        return Err(CheckpointError::NotThere { path: path.to_path_buf() });
    }
    let read = read_checkpoint(path, parts);
    read.map_err(|fault| CheckpointError::Broken { path: path.to_path_buf(), fault })
}

/// The newest whole checkpoint of a run directory; none where there is no checkpoint. An error where
/// there are some and not one is whole.
///
/// A run may be writing here. Listing a directory is not one act: a name that comes while another goes
/// may both be missed. So neither "none" nor "none is whole" is said before two looks saw the same.
pub fn load_newest(directory: &Path, parts: Parts<'_>) -> Result<Option<Loaded>, CheckpointError> {
    newest_seen(directory, parts, || directory::list(directory))
}

/// [`load_newest`], with the looks as they come.
pub(super) fn newest_seen(
    directory: &Path,
    parts: Parts<'_>,
    mut look: impl FnMut() -> Result<Vec<Place>, CheckpointError>,
) -> Result<Option<Loaded>, CheckpointError> {
    let mut seen = None;
    for _ in 0..LOOKS {
        let places = look()?;
        let mut broken = Vec::new();
        for &place in places.iter().rev() {
            let path = place.path(directory);
            match read_named(&path, place, parts) {
                Ok(loaded) => return Ok(Some(Loaded { passed_over: broken, ..loaded })),
                // Removed by the run that writes here, after we saw its name.
                Err(_) if !path.exists() => {}
                Err(fault) => broken.push(Broken { path, fault }),
            }
        }
        let still = broken.len() == places.len() && seen.as_ref() == Some(&places);
        match (still, broken.is_empty()) {
            (true, true) => return Ok(None),
            (true, false) => {
                let directory = directory.to_path_buf();
                return Err(CheckpointError::NoneWhole { directory, broken });
            }
            (false, _) => seen = Some(places),
        }
        thread::sleep(PAUSE);
    }
    Err(CheckpointError::Restless { directory: directory.to_path_buf() })
}

/// The best checkpoint of a run directory; the newest, where none was marked or the best is broken.
/// None where there is no checkpoint.
pub fn load_best(directory: &Path, parts: Parts<'_>) -> Result<Option<Loaded>, CheckpointError> {
    let passed_over = match marked_best(directory, parts)? {
        MarkedBest::None => return load_newest(directory, parts),
        MarkedBest::Whole(loaded) => return Ok(Some(*loaded)),
        MarkedBest::Broken(broken) => broken,
    };
    let newest = load_newest(directory, parts)?;
    Ok(newest.map(|mut loaded| {
        loaded.passed_over.insert(0, passed_over);
        loaded
    }))
}

/// What became of the checkpoint that is marked as the best.
enum MarkedBest {
    None,
    Whole(Box<Loaded>),
    Broken(Broken),
}

fn marked_best(directory: &Path, parts: Parts<'_>) -> Result<MarkedBest, CheckpointError> {
    let mut tried: Option<(Best, Fault)> = None;
    for _ in 0..LOOKS {
        let best = match directory::best(directory) {
            Ok(None) => return Ok(MarkedBest::None),
            Ok(Some(best)) => best,
            Err(CheckpointError::BestUnreadable { path, fault }) => {
                return Ok(MarkedBest::Broken(Broken { path, fault }));
            }
            Err(error) => return Err(error),
        };
        match tried {
            // Marked before and after it was found broken: it was not a better one that took its place.
            Some((before, fault)) if before == best => {
                return Ok(MarkedBest::Broken(Broken { path: best.path, fault }));
            }
            _ => match read_checkpoint(&best.path, parts) {
                Ok(loaded) => return Ok(MarkedBest::Whole(Box::new(loaded))),
                Err(fault) => tried = Some((best, fault)),
            },
        }
    }
    Err(CheckpointError::Restless { directory: directory.to_path_buf() })
}

/// What a user named: a checkpoint, or a run directory, of which the best is meant.
pub fn find(path: &Path, parts: Parts<'_>) -> Result<Loaded, CheckpointError> {
    if path.join(manifest::FILE_NAME).exists() {
        return load(path, parts);
    }
    let not_there = || CheckpointError::NotThere { path: path.to_path_buf() };
    if !path.is_dir() {
        return Err(not_there());
    }
    load_best(path, parts)?.ok_or_else(not_there)
}

fn read_named(path: &Path, place: Place, parts: Parts<'_>) -> Result<Loaded, Fault> {
    let loaded = read_checkpoint(path, parts)?;
    match loaded.contents.step {
        step if step == place.step => Ok(loaded),
        manifest => Err(Fault::Renamed { name: place.step, manifest }),
    }
}

fn read_checkpoint(path: &Path, parts: Parts<'_>) -> Result<Loaded, Fault> {
    let text = small_file(&path.join(manifest::FILE_NAME), manifest::FILE_NAME)?;
    let manifest = Manifest::parse(&text)?;
    let mut contents = Contents::new(manifest.step);
    for entry in &manifest.files {
        read_part(path, entry, parts, &mut contents)?;
    }
    Ok(Loaded {
        contents,
        path: path.to_path_buf(),
        program: manifest.program,
        passed_over: Vec::new(),
    })
}

fn read_part(
    path: &Path,
    entry: &FileEntry,
    parts: Parts<'_>,
    contents: &mut Contents,
) -> Result<(), Fault> {
    let nonsense = |why| Fault::Nonsense { file: entry.name.clone(), why };
    match entry.kind() {
        Some(FileKind::Tensors(stem)) if parts.include(stem) => {
            let bytes = listed_file(path, entry, TENSORS)?;
            let set = tensor_file::read(&bytes).map_err(nonsense)?;
            contents.tensors.insert(stem.into(), set);
        }
        Some(FileKind::Document(stem)) => {
            let bytes = listed_file(path, entry, DOCUMENT)?;
            let document =
                serde_json::from_slice(&bytes).map_err(|error| nonsense(error.to_string()))?;
            contents.documents.insert(stem.into(), document);
        }
        Some(FileKind::Tensors(_)) | None => {}
    }
    Ok(())
}

/// The bytes of a file that the manifest lists, if they are those that were written.
fn listed_file(path: &Path, entry: &FileEntry, limit: Bytes) -> Result<Vec<u8>, Fault> {
    let name = &entry.name;
    let (mut file, found) = open(&path.join(name), name)?;
    if found != entry.bytes {
        return Err(Fault::Size { file: name.clone(), expected: entry.bytes, found });
    }
    if found > limit.0 {
        return Err(Fault::TooLarge { file: name.clone(), limit });
    }
    let unreadable = |source| Fault::Unreadable { file: name.clone(), source };
    let mut bytes = Vec::new();
    // Too little memory for an honest file must be a message, not the end of the process.
    bytes.try_reserve_exact(found as usize).map_err(|error| unreadable(error.into()))?;
    file.by_ref().take(found).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 != found {
        let found = bytes.len() as u64;
        return Err(Fault::Size { file: name.clone(), expected: entry.bytes, found });
    }
    if blake3::hash(&bytes).to_hex().as_str() != entry.blake3 {
        return Err(Fault::Changed { file: name.clone() });
    }
    Ok(bytes)
}

/// The bytes of a manifest or mark, which have their checksum inside.
pub fn small_file(path: &Path, name: &str) -> Result<Vec<u8>, Fault> {
    let (file, length) = open(path, name)?;
    if length > SMALL.0 {
        return Err(Fault::TooLarge { file: name.into(), limit: SMALL });
    }
    let mut bytes = Vec::new();
    let read = file.take(SMALL.0).read_to_end(&mut bytes);
    read.map_err(|source| Fault::Unreadable { file: name.into(), source })?;
    Ok(bytes)
}

/// Opens a plain file: a pipe of that name would keep the reader waiting for ever.
fn open(path: &Path, name: &str) -> Result<(File, u64), Fault> {
    let unreadable = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => Fault::Missing { file: name.into() },
        _ => Fault::Unreadable { file: name.into(), source },
    };
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(Fault::Nonsense { file: name.into(), why: "it is not a file".into() });
    }
    let file = File::open(path).map_err(unreadable)?;
    let length = file.metadata().map_err(unreadable)?.len();
    Ok((file, length))
}

impl Parts<'_> {
    fn include(self, stem: &str) -> bool {
        match self {
            Parts::All => true,
            Parts::Only(stems) => stems.contains(&stem),
        }
    }
}
