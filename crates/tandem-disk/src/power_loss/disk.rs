//! The modelled disk: the safe state, the current names, and the unsafe changes between them.
//!
//! In: changes in order. Out: the tree that a power cut leaves, given a fate for each unsafe change.

use super::{Change, Tree};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a power cut does to an unsafe change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Complete,
    Lost,
    /// Only the first half of a write is there.
    Torn,
    /// Only the length of a write is there, filled with zeros.
    Zeros,
}

/// A disk; node 0 is the root.
pub struct Disk {
    nodes: Vec<Node>,
    /// Changes that are not safe yet, in order.
    unsafe_changes: Vec<UnsafeChange>,
}

enum Node {
    File { safe: Vec<u8> },
    Directory { safe: Names, now: Names },
}

type Names = BTreeMap<String, usize>;

struct UnsafeChange {
    node: usize,
    what: What,
}

enum What {
    Truncate,
    Write { at: usize, bytes: Vec<u8> },
    Put { name: String, node: usize },
    Drop { name: String },
    Move { from: String, to: String, node: usize },
}

impl Disk {
    /// A disk on which all of `tree` is safe.
    pub fn of(tree: &Tree) -> Disk {
        let root = Node::Directory { safe: Names::new(), now: Names::new() };
        let mut disk = Disk { nodes: vec![root], unsafe_changes: Vec::new() };
        for (path, bytes) in tree {
            let node = disk.add(match bytes {
                Some(bytes) => Node::File { safe: bytes.clone() },
                None => Node::Directory { safe: Names::new(), now: Names::new() },
            });
            let (parent, name) = disk.place(path);
            if let Node::Directory { safe, now } = &mut disk.nodes[parent] {
                safe.insert(name.clone(), node);
                now.insert(name, node);
            }
        }
        disk
    }

    /// The possible fates of each unsafe change.
    pub fn possible_fates(&self) -> Vec<&'static [Fate]> {
        let fates = |change: &UnsafeChange| -> &'static [Fate] {
            match change.what {
                What::Write { .. } => &[Fate::Complete, Fate::Lost, Fate::Torn, Fate::Zeros],
                _ => &[Fate::Complete, Fate::Lost],
            }
        };
        self.unsafe_changes.iter().map(fates).collect()
    }

    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Make(path) => {
                self.put(path, Node::Directory { safe: Names::new(), now: Names::new() });
            }
            Change::Create(path) => match self.find(path) {
                Some(node) => self.unsafe_changes.push(UnsafeChange { node, what: What::Truncate }),
                None => self.put(path, Node::File { safe: Vec::new() }),
            },
            Change::Write(path, at, bytes) => {
                let node = self.find(path).expect("a written file was created");
                let what = What::Write { at: *at as usize, bytes: bytes.clone() };
                self.unsafe_changes.push(UnsafeChange { node, what });
            }
            Change::Sync(path) | Change::SyncNames(path) => {
                let node = self.find(path).expect("a synced path exists");
                self.sync(node);
            }
            Change::Rename(from, to) => {
                let ((parent, from), (other, to)) = (self.place(from), self.place(to));
                assert_eq!(parent, other, "a rename within one directory");
                let node = self.names(parent).remove(&from).expect("a renamed path exists");
                self.names(parent).insert(to.clone(), node);
                self.unsafe_changes
                    .push(UnsafeChange { node: parent, what: What::Move { from, to, node } });
            }
            Change::Remove(path) => {
                let (parent, name) = self.place(path);
                self.names(parent).remove(&name);
                self.unsafe_changes.push(UnsafeChange { node: parent, what: What::Drop { name } });
            }
        }
    }

    /// The tree after a cut, with a fate for each unsafe change.
    pub fn after_cut(&self, fates: &[Fate]) -> Tree {
        let mut tree = Tree::new();
        self.collect(0, PathBuf::new(), fates, &mut tree);
        tree
    }

    fn collect(&self, node: usize, path: PathBuf, fates: &[Fate], tree: &mut Tree) {
        let changes = self.unsafe_changes.iter().zip(fates);
        let changes = changes.filter(|(change, _)| change.node == node);
        match &self.nodes[node] {
            Node::File { safe } => {
                let mut bytes = safe.clone();
                changes.for_each(|(change, fate)| change.what.to_bytes(&mut bytes, *fate));
                tree.insert(path, Some(bytes));
            }
            Node::Directory { safe, .. } => {
                let mut names = safe.clone();
                changes.for_each(|(change, fate)| change.what.to_names(&mut names, *fate));
                if node != 0 {
                    tree.insert(path.clone(), None);
                }
                for (name, inner) in names {
                    self.collect(inner, path.join(name), fates, tree);
                }
            }
        }
    }

    /// Makes every change of a node safe.
    fn sync(&mut self, node: usize) {
        let (safe, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.unsafe_changes)
            .into_iter()
            .partition(|change| change.node == node);
        self.unsafe_changes = rest;
        for UnsafeChange { what, .. } in safe {
            match &mut self.nodes[node] {
                Node::File { safe } => what.to_bytes(safe, Fate::Complete),
                Node::Directory { safe, .. } => what.to_names(safe, Fate::Complete),
            }
        }
    }

    fn add(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn put(&mut self, path: &Path, node: Node) {
        let node = self.add(node);
        let (parent, name) = self.place(path);
        self.names(parent).insert(name.clone(), node);
        self.unsafe_changes.push(UnsafeChange { node: parent, what: What::Put { name, node } });
    }

    fn find(&self, path: &Path) -> Option<usize> {
        path.components().try_fold(0, |node, part| match &self.nodes[node] {
            Node::Directory { now, .. } => now.get(part.as_os_str().to_str()?).copied(),
            Node::File { .. } => None,
        })
    }

    fn place(&self, path: &Path) -> (usize, String) {
        let parent = path.parent().and_then(|parent| self.find(parent));
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        (parent.expect("an existing directory"), name.expect("a name"))
    }

    fn names(&mut self, node: usize) -> &mut Names {
        match &mut self.nodes[node] {
            Node::Directory { now, .. } => now,
            Node::File { .. } => panic!("a file has no names in it"),
        }
    }
}

impl What {
    fn to_bytes(&self, file: &mut Vec<u8>, fate: Fate) {
        match self {
            What::Truncate if fate != Fate::Lost => file.clear(),
            What::Write { at, bytes } if fate != Fate::Lost => {
                let present = match fate {
                    Fate::Torn => &bytes[..bytes.len() / 2],
                    _ => bytes,
                };
                let end = at + present.len();
                file.resize(file.len().max(end), 0);
                match fate {
                    Fate::Zeros => file[*at..end].fill(0),
                    _ => file[*at..end].copy_from_slice(present),
                }
            }
            _ => {}
        }
    }

    fn to_names(&self, names: &mut Names, fate: Fate) {
        if fate == Fate::Lost {
            return;
        }
        match self {
            What::Put { name, node } => _ = names.insert(name.clone(), *node),
            What::Drop { name } => _ = names.remove(name),
            What::Move { from, to, node } => {
                // If an earlier change is lost, the old name may belong to another node by now.
                if names.get(from) == Some(node) {
                    names.remove(from);
                }
                names.insert(to.clone(), *node);
            }
            What::Truncate | What::Write { .. } => {}
        }
    }
}
