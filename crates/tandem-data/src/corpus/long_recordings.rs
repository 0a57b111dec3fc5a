//! Long recordings, each with its text beside it.
//!
//! In: a recording, or a directory of some. Out: [`LongRecordings`]: each recording, and the text of the same name if there
//! is one. Opens none of them, follows no link out of the directory. Next: [`crate::long_text`].

use super::layout::walk::{Folder, Walk};
use super::recordings::KINDS;
use crate::DataError;
use crate::long_text;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongRecordings {
    /// With symbolic links resolved; all paths are relative to it.
    pub root: PathBuf,
    pub recordings: Vec<LongRecording>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongRecording {
    /// Its path without the extension.
    pub id: String,
    pub audio: PathBuf,
    pub text: Option<PathBuf>,
}

/// Whether a path is that of a recording.
pub fn is_recording(path: &Path) -> bool {
    let kind = path.extension().and_then(|kind| kind.to_str()).unwrap_or_default();
    KINDS.iter().any(|known| kind.eq_ignore_ascii_case(known)) && path.is_file()
}

impl LongRecordings {
    /// A recording with the text beside it, or all recordings below a directory, in the order of their names.
    pub fn find(path: &Path) -> Result<LongRecordings, DataError> {
        let whole = path
            .canonicalize()
            .map_err(|_| DataError::CorpusMissing { path: path.into(), near: Vec::new() })?;
        let single = whole.is_file().then(|| whole.file_name()).flatten();
        let single = single.map(|name| name.to_string_lossy().into_owned());
        let root = match single {
            Some(_) => whole.parent().unwrap_or(&whole).to_path_buf(),
            None => whole,
        };
        let mut recordings = Vec::new();
        let mut walk = Walk::below(&root, "");
        while let Some(folder) = walk.next_folder()? {
            let wanted =
                folder.files.iter().filter(|name| single.as_ref().is_none_or(|one| one == *name));
            recordings.extend(wanted.filter_map(|name| recording(&root, &folder, name)));
            if single.is_some() {
                break;
            }
        }
        recordings.dedup_by(|next, first| next.id == first.id);
        if recordings.is_empty() {
            let looked_for = KINDS.iter().map(|kind| format!("*.{kind}")).collect();
            return Err(DataError::RecordingsMissing {
                root,
                looked_for,
                near: Vec::new(),
                broken_links: Vec::new(),
            });
        }
        Ok(LongRecordings { root, recordings })
    }
}

fn recording(root: &Path, folder: &Folder, name: &str) -> Option<LongRecording> {
    let (stem, _) = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty())?;
    let inside = |name: &str| {
        let path = PathBuf::from(folder.join(name));
        let target = root.join(&path).canonicalize().ok()?;
        target.starts_with(root).then_some(path)
    };
    let audio = inside(name).filter(|path| is_recording(&root.join(path)))?;
    let text = long_text::KINDS.iter().find_map(|kind| {
        let text = format!("{stem}.{kind}");
        folder.files.binary_search(&text).ok().and_then(|_| inside(&text))
    });
    Some(LongRecording { id: folder.join(stem), audio, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_recording_has_the_text_of_its_name_and_a_link_leads_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        tandem_disk::create_dir_all(&at("book")).unwrap();
        for name in [
            "book/one.mp3",
            "book/one.txt",
            "book/one.srt",
            "book/two.WAV",
            "README.txt",
            "three.flac",
        ] {
            tandem_disk::write(&at(name), b"x").unwrap();
        }
        tandem_disk::write(&outside.path().join("secret"), b"x").unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret"), at("three.txt")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret"), at("four.wav")).unwrap();
        let found = LongRecordings::find(folder.path()).unwrap().recordings;
        let shown: Vec<(&str, Option<&str>)> = found
            .iter()
            .map(|one| (&one.id[..], one.text.as_deref().and_then(Path::to_str)))
            .collect();
        assert_eq!(
            shown,
            [("three", None), ("book/one", Some("book/one.srt")), ("book/two", None)]
        );
        let single = LongRecordings::find(&at("book/one.mp3")).unwrap();
        assert_eq!((single.recordings.len(), &single.recordings[0].id[..]), (1, "one"));
        assert!(LongRecordings::find(&at("README.txt")).is_err());
        assert!(LongRecordings::find(&at("nowhere")).is_err());
    }
}
