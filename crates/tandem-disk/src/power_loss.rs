//! What a power cut may leave of a list of changes.
//!
//! In: the changes of a directory, heard by a [`Recorder`] while a program made them. Out: every
//! [`State`] worth looking at, to be put on a real disk and read by the program under test.
//!
//! The disk of this model promises less than any file system in use:
//!
//! - What was there before the recording stays, until it is changed.
//! - Bytes are safe when their file was synced after they were written. Until then each write by
//!   itself is there, lost, torn (the first half of it), or there in length only (zeros); a later one
//!   may be there without an earlier one. Emptying a file counts as a write.
//! - A name (made, changed, removed) is safe when its directory was synced afterwards. Until then each
//!   change by itself is there or lost, in any combination: syncing a file saves its bytes, not its
//!   name. Only this is promised: a rename happens as a whole or not at all.
//! - Removing a tree is one removal for each file, in an order that is not ours to choose.
//!
//! The power is cut between any two changes. There all undone, all done, each one alone done, each one
//! alone undone, torn or emptied, and some combinations by chance are tried; equal states count once.

mod disk; // files and names, with what is safe and what is not

use crate::operation::Operation;
use crate::watch::{Watch, watch};
use disk::{Disk, Fate};
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Files with their bytes, and directories without any, by path below the root.
pub type Tree = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// A change that was made; paths are below the root.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    Make(PathBuf),
    Create(PathBuf),
    Write(PathBuf, u64, Vec<u8>),
    Sync(PathBuf),
    SyncNames(PathBuf),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

/// Hears what happens below a directory.
#[derive(Debug)]
pub struct Recorder {
    before: Tree,
    list: Arc<Mutex<Vec<Change>>>,
    _watch: Watch,
}

/// What happened there.
#[derive(Debug)]
pub struct Changes {
    before: Tree,
    list: Vec<Change>,
}

/// What a power cut may leave.
#[derive(Debug)]
pub struct State {
    /// Changes that were made before the cut, of those that [`Recorder::count`] counts.
    pub after: usize,
    /// What became of those that were not safe, for messages.
    pub how: String,
    tree: Tree,
}

impl Recorder {
    /// Listens below `root`, which exists.
    pub fn start(root: &Path) -> io::Result<Recorder> {
        let before = read_tree(root)?;
        let list = Arc::new(Mutex::new(Vec::new()));
        let (heard, base) = (Arc::clone(&list), root.to_path_buf());
        let hook = move |operation: &Operation<'_>| {
            let changes = Change::of(operation, &base)?;
            heard.lock().unwrap_or_else(PoisonError::into_inner).extend(changes);
            Ok(())
        };
        Ok(Recorder { before, list, _watch: watch(root, Arc::new(hook)) })
    }

    /// How many changes there were so far.
    pub fn count(&self) -> usize {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Listens no more.
    pub fn finish(self) -> Changes {
        let list = self.list.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Changes { before: self.before, list }
    }
}

impl Changes {
    /// Every state worth looking at, none twice; `chances` combinations by chance at every cut.
    pub fn states(&self, chances: u64) -> Vec<State> {
        let mut disk = Disk::of(&self.before);
        let mut seen = HashSet::new();
        let mut states = Vec::new();
        for after in 0..=self.list.len() {
            if after > 0 {
                disk.apply(&self.list[after - 1]);
            }
            for (how, fates) in fates(&disk.open_fates(), chances, after as u64) {
                let tree = disk.after_cut(&fates);
                let mut hash = DefaultHasher::new();
                (&tree, after).hash(&mut hash);
                if seen.insert(hash.finish()) {
                    states.push(State { after, how, tree });
                }
            }
        }
        states
    }
}

impl State {
    /// Puts it on the disk, in place of whatever is at `root`.
    pub fn put(&self, root: &Path) -> io::Result<()> {
        if root.exists() {
            fs::remove_dir_all(root)?;
        }
        fs::create_dir_all(root)?;
        for (path, bytes) in &self.tree {
            match bytes {
                None => fs::create_dir(root.join(path))?,
                Some(bytes) => fs::write(root.join(path), bytes)?,
            }
        }
        Ok(())
    }

    /// A number that only equal trees share, to count those that differ.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = DefaultHasher::new();
        self.tree.hash(&mut hash);
        hash.finish()
    }
}

impl Change {
    fn of(operation: &Operation<'_>, root: &Path) -> io::Result<Vec<Change>> {
        let below = |path: &Path| path.strip_prefix(root).unwrap_or(path).to_path_buf();
        Ok(match operation {
            Operation::MakeDirectory { path } if path.exists() => Vec::new(),
            Operation::MakeDirectory { path } => vec![Change::Make(below(path))],
            Operation::Create { path } => vec![Change::Create(below(path))],
            Operation::Write { path, at, bytes } => {
                vec![Change::Write(below(path), *at, bytes.to_vec())]
            }
            Operation::Sync { path } => vec![Change::Sync(below(path))],
            Operation::SyncDirectory { path } => vec![Change::SyncNames(below(path))],
            Operation::Rename { from, to } => vec![Change::Rename(below(from), below(to))],
            Operation::RemoveFile { path } => vec![Change::Remove(below(path))],
            Operation::RemoveTree { path } => {
                let inside = read_tree(path)?;
                let deepest_first = inside.into_keys().rev().map(|inner| path.join(inner));
                let all = deepest_first.chain([path.to_path_buf()]);
                all.map(|path| Change::Remove(below(&path))).collect()
            }
        })
    }
}

/// The combinations that are tried for changes that are not safe and may each have such fates.
fn fates(possible: &[&[Fate]], chances: u64, seed: u64) -> Vec<(String, Vec<Fate>)> {
    let count = possible.len();
    let mut tried = vec![
        ("all done".into(), vec![Fate::Done; count]),
        ("all undone".into(), vec![Fate::Undone; count]),
    ];
    let but = |others: Fate, one: usize, fate: Fate| {
        let mut fates = vec![others; count];
        fates[one] = fate;
        (format!("all {others:?}, but number {one} {fate:?}"), fates)
    };
    for (one, possible) in possible.iter().enumerate() {
        tried.push(but(Fate::Undone, one, Fate::Done));
        let other = possible.iter().filter(|fate| **fate != Fate::Done);
        tried.extend(other.map(|fate| but(Fate::Done, one, *fate)));
    }
    // A generator of no quality is enough to mix them.
    let mut chance = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    for number in 0..chances {
        let mut pick = |possible: &&[Fate]| {
            chance ^= chance << 13;
            chance ^= chance >> 7;
            chance ^= chance << 17;
            possible[(chance % possible.len() as u64) as usize]
        };
        tried.push((format!("by chance, {number}"), possible.iter().map(&mut pick).collect()));
    }
    tried
}

fn read_tree(root: &Path) -> io::Result<Tree> {
    let mut tree = Tree::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(root.join(&directory))? {
            let entry = entry?;
            let path = directory.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                tree.insert(path.clone(), None);
                waiting.push(path);
            } else {
                tree.insert(path, Some(fs::read(entry.path())?));
            }
        }
    }
    Ok(tree)
}

#[cfg(test)]
mod tests;
