//! Files and names as they are, as they are safe, and the changes in between.

use super::{Change, Tree};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What becomes of a change that was not safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is there.
    Done,
    /// It is not.
    Undone,
    /// A write whose first half is there.
    Torn,
    /// A write of which only the length is there, and zeros.
    Zeros,
}

/// A disk; node 0 is the root.
pub struct Disk {
    nodes: Vec<Node>,
    /// Changes that are not safe, in the order they were made.
    open: Vec<Open>,
}

enum Node {
    File { safe: Vec<u8> },
    Directory { safe: Names, now: Names },
}

type Names = BTreeMap<String, usize>;

struct Open {
    node: usize,
    what: What,
}

enum What {
    Empty,
    Write { at: usize, bytes: Vec<u8> },
    Put { name: String, node: usize },
    Drop { name: String },
    Move { from: String, to: String, node: usize },
}

impl Disk {
    /// A disk on which all of this is safe.
    pub fn of(tree: &Tree) -> Disk {
        let root = Node::Directory { safe: Names::new(), now: Names::new() };
        let mut disk = Disk { nodes: vec![root], open: Vec::new() };
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

    /// What may become of each change that is not safe.
    pub fn open_fates(&self) -> Vec<&'static [Fate]> {
        let fates = |open: &Open| -> &'static [Fate] {
            match open.what {
                What::Write { .. } => &[Fate::Done, Fate::Undone, Fate::Torn, Fate::Zeros],
                _ => &[Fate::Done, Fate::Undone],
            }
        };
        self.open.iter().map(fates).collect()
    }

    /// Makes a change.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Make(path) => {
                self.put(path, Node::Directory { safe: Names::new(), now: Names::new() });
            }
            Change::Create(path) => match self.find(path) {
                Some(node) => self.open.push(Open { node, what: What::Empty }),
                None => self.put(path, Node::File { safe: Vec::new() }),
            },
            Change::Write(path, at, bytes) => {
                let node = self.find(path).expect("what is written to was made");
                let what = What::Write { at: *at as usize, bytes: bytes.clone() };
                self.open.push(Open { node, what });
            }
            Change::Sync(path) | Change::SyncNames(path) => {
                let node = self.find(path).expect("what is synced is there");
                self.settle(node);
            }
            Change::Rename(from, to) => {
                let ((parent, from), (other, to)) = (self.place(from), self.place(to));
                assert_eq!(parent, other, "a rename within one directory");
                let node = self.names(parent).remove(&from).expect("what is renamed is there");
                self.names(parent).insert(to.clone(), node);
                self.open.push(Open { node: parent, what: What::Move { from, to, node } });
            }
            Change::Remove(path) => {
                let (parent, name) = self.place(path);
                self.names(parent).remove(&name);
                self.open.push(Open { node: parent, what: What::Drop { name } });
            }
        }
    }

    /// What is there after a cut, with a fate for each change that was not safe.
    pub fn after_cut(&self, fates: &[Fate]) -> Tree {
        let mut tree = Tree::new();
        self.collect(0, PathBuf::new(), fates, &mut tree);
        tree
    }

    fn collect(&self, node: usize, path: PathBuf, fates: &[Fate], tree: &mut Tree) {
        let changes = self.open.iter().zip(fates).filter(|(open, _)| open.node == node);
        match &self.nodes[node] {
            Node::File { safe } => {
                let mut bytes = safe.clone();
                changes.for_each(|(open, fate)| open.what.to_bytes(&mut bytes, *fate));
                tree.insert(path, Some(bytes));
            }
            Node::Directory { safe, .. } => {
                let mut names = safe.clone();
                changes.for_each(|(open, fate)| open.what.to_names(&mut names, *fate));
                if node != 0 {
                    tree.insert(path.clone(), None);
                }
                for (name, inner) in names {
                    self.collect(inner, path.join(name), fates, tree);
                }
            }
        }
    }

    /// Everything done to a node is safe from now on.
    fn settle(&mut self, node: usize) {
        let (done, open): (Vec<Open>, Vec<Open>) =
            std::mem::take(&mut self.open).into_iter().partition(|open| open.node == node);
        self.open = open;
        for Open { what, .. } in done {
            match &mut self.nodes[node] {
                Node::File { safe } => what.to_bytes(safe, Fate::Done),
                Node::Directory { safe, .. } => what.to_names(safe, Fate::Done),
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
        self.open.push(Open { node: parent, what: What::Put { name, node } });
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
        (parent.expect("a directory that is there"), name.expect("a name"))
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
            What::Empty if fate != Fate::Undone => file.clear(),
            What::Write { at, bytes } if fate != Fate::Undone => {
                let there = match fate {
                    Fate::Torn => &bytes[..bytes.len() / 2],
                    _ => bytes,
                };
                let end = at + there.len();
                file.resize(file.len().max(end), 0);
                match fate {
                    Fate::Zeros => file[*at..end].fill(0),
                    _ => file[*at..end].copy_from_slice(there),
                }
            }
            _ => {}
        }
    }

    fn to_names(&self, names: &mut Names, fate: Fate) {
        if fate == Fate::Undone {
            return;
        }
        match self {
            What::Put { name, node } => _ = names.insert(name.clone(), *node),
            What::Drop { name } => _ = names.remove(name),
            What::Move { from, to, node } => {
                // Under its old name it may be something else by now, if an earlier change is lost.
                if names.get(from) == Some(node) {
                    names.remove(from);
                }
                names.insert(to.clone(), *node);
            }
            What::Empty | What::Write { .. } => {}
        }
    }
}
