//! Finds the recording of a clip, inside the corpus only.
//!
//! In: an id as a manifest writes it. Out: a path relative to the corpus directory. Lists each
//! folder once; only a symbolic link costs a system call of its own.
//!
//! The user's own links are followed once: the corpus directory itself, and a folder of recordings
//! in it (`wavs -> /data/wavs`). Nothing else leads out of those directories: `..`, absolute paths
//! and links below them that leave are refused.

use super::rejected::{Fault, RejectReason, short};
use hashbrown::HashMap;
use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use tandem_disk::read::look_up;
use tandem_disk::{AccessKind, retry};
use unicode_normalization::UnicodeNormalization;
use xxhash_rust::xxh3::xxh3_64;

/// Folders that are searched, in this order; the last is the corpus directory itself.
pub(super) const FOLDERS: [&str; 5] = ["wavs", "wav", "audio", "clips", ""];
/// File extensions of recordings, in the order of preference.
pub(super) const KINDS: [&str; 4] = ["wav", "flac", "mp3", "ogg"];

/// The recordings of one corpus. A folder is listed when it is first needed.
pub(super) struct Recordings {
    root: PathBuf,
    /// The corpus directory, and the targets of those of [`FOLDERS`] that are links. All recordings are
    /// inside these directories. Their own paths contain no symbolic link.
    allowed: Vec<PathBuf>,
    folders: Vec<&'static str>,
    broken_links: Vec<String>,
    listings: Vec<Listing>,
    by_folder: HashMap<String, usize>,
    /// The last listing used in each folder, because clips of one folder mostly follow each other.
    last: [Option<(String, usize)>; FOLDERS.len()],
}

impl Recordings {
    /// Symbolic links in `root` must be resolved.
    pub(super) fn new(root: &Path) -> Self {
        let mut allowed = vec![root.to_path_buf()];
        let mut broken_links = Vec::new();
        let folders = FOLDERS.into_iter().filter(|name| {
            let path = root.join(name);
            // A folder of recordings may be the user's own link to another disk. It is followed
            // once, here. Its target is the limit for all links and ids below it.
            match retry(|| path.canonicalize()) {
                Ok(target) if target.is_dir() => {
                    if !target.starts_with(root) {
                        allowed.push(target);
                    }
                    true
                }
                Err(_) if path.is_symlink() => {
                    broken_links.push((*name).to_owned());
                    false
                }
                // Listing the folder reports the error, such as a failing disk.
                Err(error) => error.kind() != io::ErrorKind::NotFound,
                Ok(_) => false,
            }
        });
        let folders = folders.collect();
        Self {
            root: root.into(),
            allowed,
            folders,
            broken_links,
            listings: Vec::new(),
            by_folder: HashMap::new(),
            last: Default::default(),
        }
    }

    /// There is a folder of recordings in the corpus directory.
    pub(super) fn has_folder(&self) -> bool {
        self.folders.len() > 1
    }

    /// Those of [`FOLDERS`] that are links to nothing.
    pub(super) fn broken_links(&self) -> &[String] {
        &self.broken_links
    }

    /// The recording of the clip `id`, which must come from [`clean`].
    pub(super) fn find(&mut self, id: &str) -> Result<PathBuf, Fault> {
        self.find_in(id, 0..self.folders.len())
    }

    /// The same for a path: the corpus directory itself is searched first.
    pub(super) fn find_path(&mut self, path: &str) -> Result<PathBuf, Fault> {
        let root = self.folders.len().saturating_sub(1);
        self.find_in(path, (root..self.folders.len()).chain(0..root))
    }

    fn find_in(&mut self, id: &str, order: impl Iterator<Item = usize>) -> Result<PathBuf, Fault> {
        let (folder, name) = id.rsplit_once('/').unwrap_or(("", id));
        // Something that has the right name but is no recording; reported if no folder has one.
        let mut unusable = None;
        for at in order {
            let Some(listing) = self.listing(at, folder)? else { continue };
            let Some((path, entry)) = self.listings[listing].pick(name) else { continue };
            let why = match entry {
                Entry::Link => self.follow(&path)?,
                Entry::Special => Some(Fault::not_regular(&path)),
                _ => None,
            };
            match why {
                None => return Ok(PathBuf::from(path)),
                Some(why) => unusable = unusable.or(Some(why)),
            }
        }
        Err(unusable.unwrap_or_else(|| self.not_found(id)))
    }

    /// The listing of a sub-folder of one of [`FOLDERS`], if it exists.
    fn listing(&mut self, at: usize, folder: &str) -> Result<Option<usize>, Fault> {
        if let Some((last, listing)) = &self.last[at]
            && last == folder
        {
            return Ok(Some(*listing));
        }
        let found = self.list(&join(self.folders[at], folder))?;
        if let Some(listing) = found {
            self.last[at] = Some((folder.to_owned(), listing));
        }
        Ok(found)
    }

    /// Lists a folder unless it is listed already; `None` if it does not exist.
    ///
    /// Starts at the root and enters only folders that were listed: a manifest of invented paths
    /// costs no system calls.
    fn list(&mut self, folder: &str) -> Result<Option<usize>, Fault> {
        if let Some(known) = self.by_folder.get(folder) {
            return Ok(Some(*known));
        }
        let mut above = self.list_one("")?;
        let ends = folder.match_indices('/').map(|(at, _)| at).chain([folder.len()]);
        for here in ends.map(|end| &folder[..end]).filter(|here| !here.is_empty()) {
            let name = here.rsplit('/').next().unwrap_or(here);
            match self.listings[above].folders.get(name) {
                None => return Ok(None),
                Some(Entry::Link) if !self.by_folder.contains_key(here) => {
                    let target = self.resolve(here);
                    let target = target.map_err(|error| Fault::broken_link(here, &error))?;
                    self.check_inside(here, &target)?;
                }
                Some(_) => {}
            }
            above = self.list_one(here)?;
        }
        Ok(Some(above))
    }

    fn list_one(&mut self, folder: &str) -> Result<usize, Fault> {
        if let Some(known) = self.by_folder.get(folder) {
            return Ok(*known);
        }
        let listing = retry(|| Listing::read(&self.root, folder)).map_err(|fault| {
            let fix = match retry::gave_up(&fault) {
                true => retry::HINT,
                false => "give yourself read permission for the folder",
            };
            let message = format!("the folder `{}` cannot be listed: {fault}", short(folder));
            Fault::new(RejectReason::MissingAudio, message, fix)
        })?;
        self.listings.push(listing);
        self.by_folder.insert(folder.to_owned(), self.listings.len() - 1);
        Ok(self.listings.len() - 1)
    }

    /// Follows a link in place of a recording. `None` if it leads to a file, otherwise the reason why
    /// it is unusable. A link that leaves the corpus is an error: no other folder is tried.
    fn follow(&self, link: &str) -> Result<Option<Fault>, Fault> {
        let target = match self.resolve(link) {
            Ok(target) => target,
            Err(error) => return Ok(Some(Fault::broken_link(link, &error))),
        };
        self.check_inside(link, &target)?;
        Ok((!target.is_file()).then(|| Fault::not_regular(link)))
    }

    /// The target of a path, through all links on the way.
    fn resolve(&self, path: &str) -> io::Result<PathBuf> {
        let path = self.root.join(path);
        retry(|| look_up(AccessKind::Stat, &path, || path.canonicalize()))
    }

    fn check_inside(&self, link: &str, target: &Path) -> Result<(), Fault> {
        match self.allowed.iter().any(|root| target.starts_with(root)) {
            true => Ok(()),
            false => Err(Fault::link_leaves_corpus(link, target)),
        }
    }

    fn not_found(&self, id: &str) -> Fault {
        let searched: Vec<String> = self
            .folders
            .iter()
            .map(|name| if name.is_empty() { "./".into() } else { format!("{name}/") })
            .collect();
        let mut message = format!(
            "no recording `{}` (.{}) in {}",
            short(id),
            KINDS.join(", ."),
            searched.join(", ")
        );
        if !self.broken_links.is_empty() {
            message += &format!("; the link `{}` is broken", self.broken_links.join("`, `"));
        }
        // Quotes are part of the id here, and CSV files of other programs have them.
        let fix = match id.contains('"') {
            true => "remove the quotes around the id: quotes have no meaning in this format",
            false => "add the recording, correct the id, or delete the row",
        };
        Fault::new(RejectReason::MissingAudio, message, fix)
    }
}

/// The id in its canonical form: `/` between folders, no `.` and no empty parts. A path that could
/// lead out of the corpus is a fault.
pub(super) fn clean(written: &str) -> Result<Cow<'_, str>, Fault> {
    let written = written.trim();
    if !written.contains(['/', '\\']) && !matches!(written, "" | "." | "..") {
        return Ok(Cow::Borrowed(written));
    }
    let has_drive = matches!(written.as_bytes(), [_, b':', b'/' | b'\\', ..]);
    if written.starts_with(['/', '\\']) || has_drive {
        return Err(Fault::leaves_corpus(written));
    }
    let mut parts = Vec::new();
    for part in written.split(['/', '\\']) {
        match part {
            ".." => return Err(Fault::leaves_corpus(written)),
            "" | "." => {}
            part => parts.push(part),
        }
    }
    if parts.is_empty() {
        let fix = "write the name of the recording into the id column, or delete the row";
        return Err(Fault::new(RejectReason::EmptyId, "the id is empty".into(), fix));
    }
    Ok(Cow::Owned(parts.join("/")))
}

/// A clean id without the extension of an audio file.
pub(super) fn without_kind(id: &str) -> &str {
    split_kind(id).0
}

fn split_kind(name: &str) -> (&str, Option<usize>) {
    if let Some((stem, end)) = name.rsplit_once('.')
        && !stem.is_empty()
        && let Some(kind) = KINDS.iter().position(|kind| end.eq_ignore_ascii_case(kind))
    {
        return (stem, Some(kind));
    }
    (name, None)
}

fn join<'a>(folder: &'a str, name: &'a str) -> Cow<'a, str> {
    match (folder, name) {
        (folder, "") => Cow::Borrowed(folder),
        ("", name) => Cow::Borrowed(name),
        (folder, name) => Cow::Owned(format!("{folder}/{name}")),
    }
}

/// Composed characters, because file systems and editors differ in the encoding of `é`.
fn composed(name: &str) -> Cow<'_, str> {
    if name.is_ascii() { Cow::Borrowed(name) } else { Cow::Owned(name.nfc().collect()) }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    File,
    Folder,
    Link,
    /// A FIFO, a socket or a device.
    Special,
}

impl Entry {
    /// What may have the name of a recording.
    const FILES: [Entry; 3] = [Entry::File, Entry::Link, Entry::Special];
}

/// The contents of one folder: recordings by name without extension, and sub-folders.
struct Listing {
    folder: String,
    /// A [`code`] for each recording, sorted: eight bytes, where a million names would need a hundred
    /// megabytes. Two names with the same hash are one in four million for a million files. A recording
    /// that is then taken to exist cannot be read, and its row is rejected.
    recordings: Vec<u64>,
    /// File names that are not simply `stem.kind`: `clip.WAV`, or decomposed characters.
    odd_names: HashMap<(Box<str>, usize), (Box<str>, Entry)>,
    folders: HashMap<Box<str>, Entry>,
}

impl Listing {
    fn read(root: &Path, folder: &str) -> std::io::Result<Listing> {
        let mut listing = Listing {
            folder: folder.to_owned(),
            recordings: Vec::new(),
            odd_names: HashMap::new(),
            folders: HashMap::new(),
        };
        let path = root.join(folder);
        for entry in look_up(AccessKind::List, &path, || std::fs::read_dir(&path))? {
            let entry = entry?;
            // A name that is not UTF-8 cannot be in a manifest.
            let Ok(name) = entry.file_name().into_string() else { continue };
            let kind = entry.file_type()?;
            if kind.is_dir() {
                listing.folders.insert(name.into(), Entry::Folder);
            } else if kind.is_symlink() {
                listing.add(&name, Entry::Link);
                listing.folders.insert(name.into(), Entry::Link);
            } else if kind.is_file() {
                listing.add(&name, Entry::File);
            } else {
                listing.add(&name, Entry::Special);
            }
        }
        listing.recordings.sort_unstable();
        listing.recordings.shrink_to_fit();
        Ok(listing)
    }

    fn add(&mut self, name: &str, entry: Entry) {
        let (stem, Some(kind)) = split_kind(name) else { return };
        let key = composed(stem);
        if key == stem && name.ends_with(KINDS[kind]) {
            self.recordings.push(code(&key, kind, entry));
        } else {
            let odd = self.odd_names.entry((key.as_ref().into(), kind));
            odd.or_insert_with(|| (name.into(), entry));
        }
    }

    /// The recordings of a composed stem by kind. The plain spelling has priority.
    fn known(&self, stem: &str) -> [Option<(Option<&str>, Entry)>; KINDS.len()] {
        let first = code(stem, 0, Entry::File);
        let from = self.recordings.partition_point(|code| *code < first);
        let same = self.recordings[from..].iter().take_while(|code| **code >> 4 == first >> 4);
        let mut known = [None; KINDS.len()];
        for code in same {
            known[(code >> 2 & 3) as usize] = Some((None, Entry::FILES[(code & 3) as usize]));
        }
        if !self.odd_names.is_empty() {
            for (kind, known) in known.iter_mut().enumerate().filter(|(_, known)| known.is_none()) {
                let odd = self.odd_names.get(&(stem.into(), kind));
                *known = odd.map(|(name, entry)| (Some(&**name), *entry));
            }
        }
        known
    }

    /// The path of the file for a name with or without extension. The written extension has
    /// priority; another one is accepted, because corpora are converted and manifests are not.
    fn pick(&self, name: &str) -> Option<(String, Entry)> {
        let (stem, kind) = split_kind(name);
        self.pick_stem(stem, kind).or_else(|| kind.and_then(|_| self.pick_stem(name, None)))
    }

    fn pick_stem(&self, stem: &str, first: Option<usize>) -> Option<(String, Entry)> {
        let stem = composed(stem);
        let known = self.known(&stem);
        let kinds = || first.into_iter().chain(0..KINDS.len());
        let usable = |&kind: &usize| known[kind].is_some_and(|(_, entry)| entry != Entry::Special);
        let kind = kinds().find(usable).or_else(|| kinds().find(|&kind| known[kind].is_some()))?;
        let (odd, entry) = known[kind]?;
        let mut path =
            String::with_capacity(self.folder.len() + stem.len() + KINDS[kind].len() + 2);
        if !self.folder.is_empty() {
            path.extend([self.folder.as_str(), "/"]);
        }
        match odd {
            Some(odd) => path.push_str(odd),
            None => path.extend([&*stem, ".", KINDS[kind]]),
        }
        Some((path, entry))
    }
}

/// 60 bits of a stem's hash, two of its kind, two of the entry: codes of one stem are neighbours.
fn code(stem: &str, kind: usize, entry: Entry) -> u64 {
    let entry = Entry::FILES.iter().position(|known| *known == entry).unwrap_or_default();
    xxh3_64(stem.as_bytes()) & !15 | (kind as u64) << 2 | entry as u64
}

#[cfg(test)]
mod tests;
