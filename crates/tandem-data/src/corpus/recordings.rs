//! Finds the recording of a clip, and nothing outside of the corpus.
//!
//! In: an id as a manifest writes it. Out: a path relative to the corpus directory. Lists
//! each folder once and asks the system about a single file only where it is a symbolic
//! link. `..`, absolute paths and links that leave the corpus are refused.

use super::rejected::{Fault, RejectReason, short};
use hashbrown::HashMap;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use unicode_normalization::UnicodeNormalization;

/// Where recordings are looked for, in this order; the last is the corpus directory itself.
pub(super) const FOLDERS: [&str; 5] = ["wavs", "wav", "audio", "clips", ""];
/// What a recording's name may end in, in the order of preference.
pub(super) const KINDS: [&str; 4] = ["wav", "flac", "mp3", "ogg"];

/// The recordings of one corpus, listed folder by folder as they are asked for.
pub(super) struct Recordings {
    root: PathBuf,
    folders: Vec<&'static str>,
    listings: Vec<Listing>,
    by_place: HashMap<String, usize>,
    /// Clips of one folder mostly follow each other: the place asked for last, by folder.
    last: [Option<(String, usize)>; FOLDERS.len()],
}

impl Recordings {
    /// `root` must be free of symbolic links.
    pub(super) fn new(root: &Path) -> Self {
        let there = |name: &&str| name.is_empty() || root.join(name).is_dir();
        Self {
            root: root.into(),
            folders: FOLDERS.into_iter().filter(there).collect(),
            listings: Vec::new(),
            by_place: HashMap::new(),
            last: Default::default(),
        }
    }

    /// There is a folder of recordings besides the corpus directory itself.
    pub(super) fn has_folder(&self) -> bool {
        self.folders.len() > 1
    }

    /// The recording of the clip `id`, which must come from [`clean`].
    pub(super) fn find(&mut self, id: &str) -> Result<PathBuf, Fault> {
        let (folder, name) = id.rsplit_once('/').unwrap_or(("", id));
        for at in 0..self.folders.len() {
            let Some(listing) = self.listing(at, folder)? else { continue };
            if let Some((path, entry)) = self.listings[listing].pick(name)
                && (entry == Entry::File || self.link_leads_to_file(&path)?)
            {
                return Ok(PathBuf::from(path));
            }
        }
        Err(self.not_found(id))
    }

    /// The listing of a sub-folder of one of our folders, if it exists.
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

    /// Lists a folder unless it is known already; nothing where it does not exist.
    ///
    /// Goes down from the top, and only into folders that were listed: a manifest of made-up
    /// paths costs no system calls.
    fn list(&mut self, place: &str) -> Result<Option<usize>, Fault> {
        if let Some(known) = self.by_place.get(place) {
            return Ok(Some(*known));
        }
        let mut above = self.list_one("")?;
        let ends = place.match_indices('/').map(|(at, _)| at).chain([place.len()]);
        for here in ends.map(|end| &place[..end]).filter(|here| !here.is_empty()) {
            let name = here.rsplit('/').next().unwrap_or(here);
            match self.listings[above].folders.get(name) {
                None => return Ok(None),
                Some(Entry::Link) if !self.by_place.contains_key(here) => {
                    self.refuse_outside(here)?;
                }
                Some(_) => {}
            }
            above = self.list_one(here)?;
        }
        Ok(Some(above))
    }

    fn list_one(&mut self, place: &str) -> Result<usize, Fault> {
        if let Some(known) = self.by_place.get(place) {
            return Ok(*known);
        }
        let listing = Listing::read(&self.root, place).map_err(|fault| {
            Fault::new(
                RejectReason::MissingAudio,
                format!("the folder `{}` cannot be listed: {fault}", short(place)),
                "give yourself read permission for the folder",
            )
        })?;
        self.listings.push(listing);
        self.by_place.insert(place.to_owned(), self.listings.len() - 1);
        Ok(self.listings.len() - 1)
    }

    fn refuse_outside(&self, place: &str) -> Result<(), Fault> {
        match self.root.join(place).canonicalize() {
            Ok(target) if !target.starts_with(&self.root) => Err(Fault::leaves_corpus(place)),
            _ => Ok(()),
        }
    }

    /// False where the link is broken or leads to something that is no file.
    fn link_leads_to_file(&self, path: &str) -> Result<bool, Fault> {
        match self.root.join(path).canonicalize() {
            Ok(target) if !target.starts_with(&self.root) => Err(Fault::leaves_corpus(path)),
            Ok(target) => Ok(target.is_file()),
            Err(_) => Ok(false),
        }
    }

    fn not_found(&self, id: &str) -> Fault {
        let places: Vec<String> = self
            .folders
            .iter()
            .map(|name| if name.is_empty() { "./".into() } else { format!("{name}/") })
            .collect();
        Fault::new(
            RejectReason::MissingAudio,
            format!(
                "no recording `{}` (.{}) in {}",
                short(id),
                KINDS.join(", ."),
                places.join(", ")
            ),
            "add the recording, correct the id, or delete the row",
        )
    }
}

/// The id as the rest of the program knows it: `/` between folders, no `.` and no empty
/// parts. A path that could lead out of the corpus is a fault.
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

/// A clean id without the ending of an audio file.
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

/// Composed characters, since file systems and editors differ in how they write `é`.
fn composed(name: &str) -> Cow<'_, str> {
    if name.is_ascii() { Cow::Borrowed(name) } else { Cow::Owned(name.nfc().collect()) }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    File,
    Folder,
    Link,
}

/// What one folder holds: recordings by the name without ending, and sub-folders.
struct Listing {
    place: String,
    recordings: HashMap<Box<str>, [Option<Entry>; KINDS.len()]>,
    /// File names that are not simply `stem.kind`: `clip.WAV`, or decomposed characters.
    odd_names: HashMap<(Box<str>, usize), Box<str>>,
    folders: HashMap<Box<str>, Entry>,
}

impl Listing {
    fn read(root: &Path, place: &str) -> std::io::Result<Listing> {
        let mut listing = Listing {
            place: place.to_owned(),
            recordings: HashMap::new(),
            odd_names: HashMap::new(),
            folders: HashMap::new(),
        };
        for entry in std::fs::read_dir(root.join(place))? {
            let entry = entry?;
            // A name that is no UTF-8 cannot stand in a manifest.
            let Ok(name) = entry.file_name().into_string() else { continue };
            let kind = entry.file_type()?;
            if kind.is_dir() {
                listing.folders.insert(name.into(), Entry::Folder);
            } else if kind.is_symlink() {
                listing.add(&name, Entry::Link);
                listing.folders.insert(name.into(), Entry::Link);
            } else if kind.is_file() {
                listing.add(&name, Entry::File);
            }
        }
        Ok(listing)
    }

    fn add(&mut self, name: &str, entry: Entry) {
        let (stem, Some(kind)) = split_kind(name) else { return };
        let key = composed(stem);
        let is_plain = key == stem && name.ends_with(KINDS[kind]);
        let known = self.recordings.entry(key.as_ref().into()).or_default();
        if !is_plain && known[kind].is_some() {
            return; // the plain spelling goes first
        }
        known[kind] = Some(entry);
        if !is_plain {
            self.odd_names.insert((key.as_ref().into(), kind), name.into());
        } else if !self.odd_names.is_empty() {
            self.odd_names.remove(&(key.as_ref().into(), kind));
        }
    }

    /// The path of the file for a name with or without ending. The ending that is written
    /// goes first; another one will do, since corpora are converted and manifests are not.
    fn pick(&self, name: &str) -> Option<(String, Entry)> {
        let (stem, kind) = split_kind(name);
        self.pick_stem(stem, kind).or_else(|| kind.and_then(|_| self.pick_stem(name, None)))
    }

    fn pick_stem(&self, stem: &str, first: Option<usize>) -> Option<(String, Entry)> {
        let stem = composed(stem);
        let known = self.recordings.get(stem.as_ref())?;
        let kind = first.into_iter().chain(0..KINDS.len()).find(|&kind| known[kind].is_some())?;
        let odd = match self.odd_names.is_empty() {
            true => None,
            false => self.odd_names.get(&(stem.as_ref().into(), kind)),
        };
        let mut path = String::with_capacity(self.place.len() + stem.len() + KINDS[kind].len() + 2);
        if !self.place.is_empty() {
            path.extend([self.place.as_str(), "/"]);
        }
        match odd {
            Some(odd) => path.push_str(odd),
            None => path.extend([&*stem, ".", KINDS[kind]]),
        }
        Some((path, known[kind]?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn corpus(files: &[&str]) -> (tempfile::TempDir, Recordings) {
        let folder = tempfile::tempdir().expect("a place for the test");
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().expect("inside")).expect("created");
            fs::write(path, "").expect("written");
        }
        let root = folder.path().canonicalize().expect("it exists");
        (folder, Recordings::new(&root))
    }

    fn find(recordings: &mut Recordings, id: &str) -> Result<String, RejectReason> {
        let found = clean(id).and_then(|id| recordings.find(&id));
        found.map(|path| path.display().to_string()).map_err(|fault| fault.reason)
    }

    #[track_caller]
    fn check(files: &[&str], id: &str, expected: &str) {
        let (_folder, mut recordings) = corpus(files);
        assert_eq!(find(&mut recordings, id), Ok(expected.to_owned()), "for `{id}`");
    }

    #[test]
    fn an_id_may_have_an_ending_a_folder_or_neither() {
        check(&["wavs/a.wav"], "a", "wavs/a.wav");
        check(&["wavs/a.wav"], "a.wav", "wavs/a.wav");
        check(&["wavs/a.wav"], "wavs/a.wav", "wavs/a.wav");
        check(&["wavs/a.wav"], "./wavs//a", "wavs/a.wav");
        check(&["wavs/v1/d/a.flac"], "v1/d/a", "wavs/v1/d/a.flac");
        check(&["wavs/v1/a.ogg"], "v1\\a.ogg", "wavs/v1/a.ogg");
        check(&["wavs/a.1.wav"], "a.1", "wavs/a.1.wav");
        check(&["wavs/a.mp3.wav"], "a.mp3", "wavs/a.mp3.wav");
    }

    #[test]
    fn folders_and_endings_have_an_order() {
        check(&["a.wav", "clips/a.wav", "wavs/a.mp3"], "a", "wavs/a.mp3");
        check(&["a.wav", "clips/a.wav"], "a", "clips/a.wav");
        check(&["a.wav", "wavs/b.wav"], "a", "a.wav");
        check(&["wavs/a.ogg", "wavs/a.flac"], "a", "wavs/a.flac");
        check(&["wavs/a.ogg", "wavs/a.flac"], "a.ogg", "wavs/a.ogg");
        check(&["wavs/a.flac"], "a.wav", "wavs/a.flac");
    }

    #[test]
    fn endings_in_capitals_and_decomposed_names_are_found() {
        check(&["wavs/a.WAV"], "a", "wavs/a.WAV");
        check(&["wavs/a.WAV", "wavs/a.wav"], "a.WAV", "wavs/a.wav");
        check(&["wavs/cafe\u{301}.wav"], "café", "wavs/cafe\u{301}.wav");
        check(&["wavs/café.wav"], "cafe\u{301}", "wavs/café.wav");
        check(&["wavs/می\u{200c}روم.wav"], "می\u{200c}روم", "wavs/می\u{200c}روم.wav");
    }

    #[test]
    fn a_path_that_leaves_the_corpus_is_refused() {
        let (_folder, mut recordings) = corpus(&["wavs/a.wav"]);
        for id in ["../a", "v/../../a", "..\\a", "/etc/a.wav", "C:\\a.wav", "\\\\host\\a", ".."] {
            assert_eq!(find(&mut recordings, id), Err(RejectReason::LeavesCorpus), "for `{id}`");
        }
        assert_eq!(find(&mut recordings, "a..b"), Err(RejectReason::MissingAudio));
        assert_eq!(find(&mut recordings, " ./ "), Err(RejectReason::EmptyId));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_inside_the_corpus_only() {
        use std::os::unix::fs::symlink;
        let (folder, mut recordings) = corpus(&["wavs/a.wav", "deep/b.wav"]);
        let outside = corpus(&["wavs/secret.wav"]).0;
        let wavs = folder.path().join("wavs");
        symlink("a.wav", wavs.join("inner.wav")).expect("linked");
        symlink("../deep", wavs.join("inner_folder")).expect("linked");
        symlink(outside.path().join("wavs/secret.wav"), wavs.join("out.wav")).expect("linked");
        symlink(outside.path().join("wavs"), wavs.join("out_folder")).expect("linked");
        symlink("nowhere.wav", wavs.join("broken.wav")).expect("linked");
        symlink("loop.wav", wavs.join("loop.wav")).expect("linked");
        assert_eq!(find(&mut recordings, "inner"), Ok("wavs/inner.wav".into()));
        assert_eq!(find(&mut recordings, "inner_folder/b"), Ok("wavs/inner_folder/b.wav".into()));
        assert_eq!(find(&mut recordings, "out"), Err(RejectReason::LeavesCorpus));
        assert_eq!(find(&mut recordings, "out_folder/secret"), Err(RejectReason::LeavesCorpus));
        assert_eq!(find(&mut recordings, "broken"), Err(RejectReason::MissingAudio));
        assert_eq!(find(&mut recordings, "loop"), Err(RejectReason::MissingAudio));
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_of_recordings_that_is_a_link_out_of_the_corpus_is_refused() {
        let outside = corpus(&["wavs/a.wav"]).0;
        let (folder, _) = corpus(&["metadata.csv"]);
        std::os::unix::fs::symlink(outside.path().join("wavs"), folder.path().join("wavs"))
            .expect("linked");
        let mut recordings = Recordings::new(&folder.path().canonicalize().expect("it exists"));
        assert_eq!(find(&mut recordings, "a"), Err(RejectReason::LeavesCorpus));
    }

    #[test]
    fn made_up_paths_are_missing_and_nothing_worse() {
        let (_folder, mut recordings) = corpus(&["wavs/a.wav"]);
        let deep = "x/".repeat(100_000) + "a";
        for id in [deep.as_str(), "a/b", "a.wav/b", "\0", "\0/a", "wavs", &"n".repeat(5000)] {
            assert_eq!(find(&mut recordings, id), Err(RejectReason::MissingAudio));
        }
    }
}
