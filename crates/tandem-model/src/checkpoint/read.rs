//! Reads a checkpoint: the manifest first, then each file, after its size and checksum are verified.
//!
//! In: a checkpoint's directory, or a run directory with several. Out: [`Loaded`], with the newer
//! checkpoints that were skipped and the reason. Needs no lock: a checkpoint never changes after it
//! is committed, it is only removed as a whole.

use super::best::{self, Best};
use super::contents::Contents;
use super::error::{Broken, CheckpointError, Fault};
use super::manifest::{self, FileEntry, FileKind, Manifest};
use super::store::local::{self, LocalStore};
use super::store::{CheckpointId, CheckpointStore, StoredFile};
use super::tensor_file;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use tandem_units::Bytes;

/// The largest manifest or mark: a few lines for each file.
const SMALL: Bytes = Bytes::mib(1);
/// The largest document.
const DOCUMENT: Bytes = Bytes::mib(256);
/// The largest tensor file: a hundred times the largest voice.
const TENSORS: Bytes = Bytes::mib(128 << 10);
/// How often a listing is repeated while the run that writes there changes it.
const ATTEMPTS: usize = 200;
/// Between two attempts: long enough for the writer's next change to be visible.
const PAUSE: Duration = Duration::from_millis(5);

/// Which parts of a checkpoint are read. Documents are always read: they are small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts<'a> {
    /// All tensor sets.
    All,
    /// These tensor sets; a missing one is not an error.
    Only(&'a [&'a str]),
}

/// A checkpoint that was read and verified.
#[derive(Debug)]
pub struct Loaded {
    pub contents: Contents,
    pub path: PathBuf,
    /// The version of the program that wrote it.
    pub program: String,
    /// Damaged checkpoints that were skipped in favour of this one. They deserve a warning.
    pub passed_over: Vec<Broken>,
}

/// Opens a file of one checkpoint by its name.
type OpenFile<'a> = &'a dyn Fn(&str) -> Result<StoredFile, Fault>;

/// Reads the checkpoint in exactly this directory, whatever its name.
pub fn load(path: &Path, parts: Parts<'_>) -> Result<Loaded, CheckpointError> {
    if !path.is_dir() {
        return Err(CheckpointError::NotThere { path: path.to_path_buf() });
    }
    read_checkpoint(path, &|name| local::open_file(path, name), parts)
        .map_err(|fault| CheckpointError::Broken { path: path.to_path_buf(), fault })
}

/// The newest usable checkpoint of a run directory, or `None` if it has no checkpoint. An error if
/// it has checkpoints and none is usable.
pub fn load_newest(directory: &Path, parts: Parts<'_>) -> Result<Option<Loaded>, CheckpointError> {
    newest(&LocalStore::read_only(directory), parts)
}

/// The best checkpoint of a run directory; the newest if none is marked or the best is damaged.
/// `None` if there is no checkpoint.
pub fn load_best(directory: &Path, parts: Parts<'_>) -> Result<Option<Loaded>, CheckpointError> {
    let store = LocalStore::read_only(directory);
    let damaged = match marked_best(&store, parts)? {
        MarkedBest::None => return newest(&store, parts),
        MarkedBest::Usable(loaded) => return Ok(Some(*loaded)),
        MarkedBest::Damaged(damaged) => damaged,
    };
    let newest = newest(&store, parts)?;
    Ok(newest.map(|mut loaded| {
        loaded.passed_over.insert(0, damaged);
        loaded
    }))
}

/// Reads the path that a user gave: a checkpoint, or a run directory, whose best one is read. A damaged one is an error
/// that names the one to type instead: what is copied or trained further must be what the user asked for.
pub fn find(path: &Path, parts: Parts<'_>) -> Result<Loaded, CheckpointError> {
    let loaded = find_usable(path, parts)?;
    if loaded.passed_over.is_empty() {
        return Ok(loaded);
    }
    let Loaded { passed_over: damaged, path: whole, .. } = loaded;
    Err(CheckpointError::Damaged { directory: path.to_path_buf(), damaged, whole })
}

/// The same, with the newest usable one instead of a damaged one. `passed_over` deserves a warning.
pub fn find_usable(path: &Path, parts: Parts<'_>) -> Result<Loaded, CheckpointError> {
    if path.join(manifest::FILE_NAME).exists() {
        return load(path, parts);
    }
    let not_there = || CheckpointError::NotThere { path: path.to_path_buf() };
    if !path.is_dir() {
        return Err(not_there());
    }
    load_best(path, parts)?.ok_or_else(not_there)
}

/// The newest usable checkpoint of a store.
///
/// A run may be writing there. Listing a directory is not atomic: a name that appears while another
/// disappears can make both invisible. So "no checkpoint" and "no usable checkpoint" are only
/// returned after two equal listings.
pub fn newest(
    store: &dyn CheckpointStore,
    parts: Parts<'_>,
) -> Result<Option<Loaded>, CheckpointError> {
    newest_of_listings(store, parts, || store.list())
}

/// [`newest`], with the listings as an argument.
pub(super) fn newest_of_listings(
    store: &dyn CheckpointStore,
    parts: Parts<'_>,
    mut list: impl FnMut() -> Result<Vec<CheckpointId>, CheckpointError>,
) -> Result<Option<Loaded>, CheckpointError> {
    let mut previous = None;
    for _ in 0..ATTEMPTS {
        let ids = list()?;
        let mut broken = Vec::new();
        for &id in ids.iter().rev() {
            match read_listed(store, id, parts) {
                Ok(loaded) => return Ok(Some(Loaded { passed_over: broken, ..loaded })),
                // Removed by the run that writes here, after it was listed.
                Err(_) if !store.contains(id) => {}
                Err(fault) => broken.push(Broken { path: id.path(store.root()), fault }),
            }
        }
        let unchanged = broken.len() == ids.len() && previous.as_ref() == Some(&ids);
        match (unchanged, broken.is_empty()) {
            (true, true) => return Ok(None),
            (true, false) => {
                let directory = store.root().to_path_buf();
                return Err(CheckpointError::NoneWhole { directory, broken });
            }
            (false, _) => previous = Some(ids),
        }
        thread::sleep(PAUSE);
    }
    Err(CheckpointError::Restless { directory: store.root().to_path_buf() })
}

/// The checkpoint that is marked as the best.
enum MarkedBest {
    None,
    Usable(Box<Loaded>),
    Damaged(Broken),
}

fn marked_best(
    store: &dyn CheckpointStore,
    parts: Parts<'_>,
) -> Result<MarkedBest, CheckpointError> {
    let mut tried: Option<(Best, Fault)> = None;
    for _ in 0..ATTEMPTS {
        let (id, best) = match best::best(store) {
            Ok(None) => return Ok(MarkedBest::None),
            Ok(Some(best)) => best,
            Err(CheckpointError::BestUnreadable { path, fault }) => {
                return Ok(MarkedBest::Damaged(Broken { path, fault }));
            }
            Err(error) => return Err(error),
        };
        match tried {
            // The mark is the same before and after the read: the run did not replace the best
            // one in between, so it is damaged.
            Some((before, fault)) if before == best => {
                return Ok(MarkedBest::Damaged(Broken { path: best.path, fault }));
            }
            _ => match read_checkpoint(&best.path, &|name| store.open_file(id, name), parts) {
                Ok(loaded) => return Ok(MarkedBest::Usable(Box::new(loaded))),
                Err(fault) => tried = Some((best, fault)),
            },
        }
    }
    Err(CheckpointError::Restless { directory: store.root().to_path_buf() })
}

fn read_listed(
    store: &dyn CheckpointStore,
    id: CheckpointId,
    parts: Parts<'_>,
) -> Result<Loaded, Fault> {
    let path = id.path(store.root());
    let loaded = read_checkpoint(&path, &|name| store.open_file(id, name), parts)?;
    match loaded.contents.step {
        step if step == id.step => Ok(loaded),
        manifest => Err(Fault::Renamed { name: id.step, manifest }),
    }
}

fn read_checkpoint(path: &Path, open: OpenFile<'_>, parts: Parts<'_>) -> Result<Loaded, Fault> {
    let text = small_file(open(manifest::FILE_NAME)?, manifest::FILE_NAME)?;
    let manifest = Manifest::parse(&text)?;
    let mut contents = Contents::new(manifest.step);
    for entry in &manifest.files {
        read_part(open, entry, parts, &mut contents)?;
    }
    Ok(Loaded {
        contents,
        path: path.to_path_buf(),
        program: manifest.program,
        passed_over: Vec::new(),
    })
}

fn read_part(
    open: OpenFile<'_>,
    entry: &FileEntry,
    parts: Parts<'_>,
    contents: &mut Contents,
) -> Result<(), Fault> {
    let invalid = |why| Fault::Invalid { file: entry.name.clone(), why };
    match entry.kind() {
        Some(FileKind::Tensors(stem)) if parts.include(stem) => {
            let bytes = listed_file(open, entry, TENSORS)?;
            let set = tensor_file::read(&bytes).map_err(invalid)?;
            contents.tensors.insert(stem.into(), set);
        }
        Some(FileKind::Document(stem)) => {
            let bytes = listed_file(open, entry, DOCUMENT)?;
            let document =
                serde_json::from_slice(&bytes).map_err(|error| invalid(error.to_string()))?;
            contents.documents.insert(stem.into(), document);
        }
        Some(FileKind::Tensors(_)) | None => {}
    }
    Ok(())
}

/// The bytes of a file that the manifest lists, if size and checksum match.
fn listed_file(open: OpenFile<'_>, entry: &FileEntry, limit: Bytes) -> Result<Vec<u8>, Fault> {
    let name = &entry.name;
    let StoredFile { reader, bytes: found } = open(name)?;
    if found != entry.bytes {
        return Err(Fault::Size { file: name.clone(), expected: entry.bytes, found });
    }
    if found > limit.0 {
        return Err(Fault::TooLarge { file: name.clone(), limit });
    }
    let unreadable = |source| Fault::Unreadable { file: name.clone(), source };
    let mut bytes = Vec::new();
    // Too little memory for a valid file must be an error message, not an abort.
    bytes.try_reserve_exact(found as usize).map_err(|error| unreadable(error.into()))?;
    reader.take(found).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 != found {
        let found = bytes.len() as u64;
        return Err(Fault::Size { file: name.clone(), expected: entry.bytes, found });
    }
    if blake3::hash(&bytes).to_hex().as_str() != entry.blake3 {
        return Err(Fault::Changed { file: name.clone() });
    }
    Ok(bytes)
}

/// The bytes of a manifest or mark, which contain their own checksum.
pub fn small_file(file: StoredFile, name: &str) -> Result<Vec<u8>, Fault> {
    if file.bytes > SMALL.0 {
        return Err(Fault::TooLarge { file: name.into(), limit: SMALL });
    }
    let mut bytes = Vec::new();
    let read = file.reader.take(SMALL.0).read_to_end(&mut bytes);
    read.map_err(|source| Fault::Unreadable { file: name.into(), source })?;
    Ok(bytes)
}

impl Parts<'_> {
    fn include(self, stem: &str) -> bool {
        match self {
            Parts::All => true,
            Parts::Only(stems) => stems.contains(&stem),
        }
    }
}
