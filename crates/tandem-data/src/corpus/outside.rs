//! Absolute paths of manifests that have such: NeMo, lhotse, Kaldi.
//!
//! In: a path as it is written. Out: the same relative to the corpus, or the path itself if it is in the directory that
//! the user named with `--recordings-dir`. Every other path is refused before anything of it is looked at.

use super::rejected::{Fault, RejectReason, short};
use std::path::{Component, Path, PathBuf};
use tandem_disk::retry;

/// Where a recording is.
pub(super) enum Location {
    /// Relative to the corpus.
    Inside(String),
    /// An absolute path in the allowed directory.
    Allowed(PathBuf),
}

pub(super) struct Outside {
    root: PathBuf,
    /// As it was typed, and with links resolved.
    allowed: Option<(PathBuf, PathBuf)>,
}

impl Outside {
    pub(super) fn new(root: &Path, allowed: Option<&Path>) -> Outside {
        let allowed = allowed.and_then(|typed| {
            let typed = std::path::absolute(typed).ok()?;
            let resolved = typed.canonicalize().ok()?;
            Some((typed, resolved))
        });
        Outside { root: root.into(), allowed }
    }

    pub(super) fn locate(&self, written: &str) -> Result<Location, Fault> {
        let path = Path::new(written);
        if path.components().any(|part| part == Component::ParentDir) {
            return Err(Fault::outside(written));
        }
        if let Some(inside) = path.strip_prefix(&self.root).ok().and_then(Path::to_str) {
            return Ok(Location::Inside(inside.to_owned()));
        }
        let Some((typed, resolved)) = &self.allowed else { return Err(Fault::outside(written)) };
        if !path.starts_with(typed) && !path.starts_with(resolved) {
            return Err(Fault::outside(written));
        }
        let target = retry(|| path.canonicalize()).map_err(|error| {
            let message = format!("no recording `{}`: {error}", short(written));
            let fix = "add the recording, correct the path, or delete the row";
            Fault::new(RejectReason::MissingAudio, message, fix)
        })?;
        match target.starts_with(resolved) && target.is_file() {
            true => Ok(Location::Allowed(target)),
            false if target.starts_with(resolved) => Err(Fault::not_regular(written)),
            false => Err(Fault::link_leaves_corpus(written, &target)),
        }
    }

    /// The name of a row that has none: the path of its recording.
    pub(super) fn name_of(&self, audio: &Path) -> String {
        let allowed = self.allowed.as_ref().map(|(_, resolved)| resolved);
        let inside = allowed.and_then(|allowed| audio.strip_prefix(allowed).ok()).unwrap_or(audio);
        super::recordings::without_kind(&inside.to_string_lossy()).to_owned()
    }
}
