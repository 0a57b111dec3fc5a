//! A checkpoint being read: manifest first, then every file, none believed before size and checksum
//! fit.
//!
//! In: a checkpoint's directory, or a run directory with several. Out: [`Loaded`], and which newer
//! ones were passed over and why. Needs no lock: a checkpoint never changes once it is there, it
//! only goes as a whole.

use super::contents::Contents;
use super::error::{Broken, CheckpointError, Fault};
use super::manifest::{self, FileEntry, FileKind, Manifest};
use super::shelf::{self, Place};
use super::tensor_file;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use tandem_units::Bytes;

/// The largest manifest or mark: a few lines for each file.
const SMALL: Bytes = Bytes::mib(1);
/// The largest document.
const DOCUMENT: Bytes = Bytes::mib(256);
/// The largest file of tensors: a hundred times the biggest voice.
const TENSORS: Bytes = Bytes::mib(128 << 10);
/// How often a directory is looked through again when a run removed what was about to be read.
const LOOKS: usize = 3;

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
pub fn load_newest(directory: &Path, parts: Parts<'_>) -> Result<Option<Loaded>, CheckpointError> {
    let mut broken = Vec::new();
    for _ in 0..LOOKS {
        broken.clear();
        let mut vanished = false;
        for place in shelf::list(directory)?.into_iter().rev() {
            let path = place.path(directory);
            match read_named(&path, place, parts) {
                Ok(loaded) => return Ok(Some(Loaded { passed_over: broken, ..loaded })),
                // Removed by the run that writes here, after we saw its name.
                Err(_) if !path.exists() => vanished = true,
                Err(fault) => broken.push(Broken { path, fault }),
            }
        }
        if !vanished {
            break;
        }
    }
    match broken.is_empty() {
        true => Ok(None),
        false => Err(CheckpointError::NoneWhole { directory: directory.to_path_buf(), broken }),
    }
}

/// The best checkpoint of a run directory; the newest, where none was marked or the best is broken.
/// None where there is no checkpoint.
pub fn load_best(directory: &Path, parts: Parts<'_>) -> Result<Option<Loaded>, CheckpointError> {
    let mark = || directory.join(shelf::BEST);
    let passed_over = match shelf::best(directory) {
        Ok(None) => return load_newest(directory, parts),
        Ok(Some(best)) => match read_checkpoint(&best.path, parts) {
            Ok(loaded) => return Ok(Some(loaded)),
            Err(fault) => Broken { path: best.path, fault },
        },
        Err(CheckpointError::BestUnreadable { fault, .. }) => Broken { path: mark(), fault },
        Err(error) => return Err(error),
    };
    let newest = load_newest(directory, parts)?;
    Ok(newest.map(|mut loaded| {
        loaded.passed_over.insert(0, passed_over);
        loaded
    }))
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
