//! The files of a run under `samples/`: audio and pictures.
//!
//! In: the directory. Out: the newest sample of each voice, and single files by name. A name is
//! searched in the listing of the directory, never joined to a path: files outside cannot be
//! reached, links are not followed, and only audio, pictures and text are served.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The samples of a run.
#[derive(Clone, Debug)]
pub struct Samples {
    directory: PathBuf,
}

/// Everything of one voice at one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spoken {
    /// Whose, such as `en`.
    pub name: String,
    pub step: u64,
    /// File name of the sound.
    pub sound: Option<String>,
    /// What is said.
    pub text: Option<String>,
    /// File name of the alignment's picture.
    pub alignment: Option<String>,
    /// File name of the picture of the mel frames.
    pub mel: Option<String>,
}

impl Samples {
    /// Those of the run in this directory.
    pub fn of_run(directory: &Path) -> Samples {
        Samples { directory: directory.join("samples") }
    }

    /// The newest of each voice, by name.
    pub fn newest(&self) -> Vec<Spoken> {
        let mut newest: BTreeMap<String, Spoken> = BTreeMap::new();
        for file in self.files() {
            let Some((step, rest)) = step_of(&file) else { continue };
            let Some((name, place)) = part_of(rest) else { continue };
            let spoken = newest.entry(name.to_string()).or_default();
            if spoken.name.is_empty() || step > spoken.step {
                *spoken = Spoken { name: name.to_string(), step, ..Spoken::default() };
            }
            if step == spoken.step {
                *place(spoken) = Some(file.clone());
            }
        }
        // The text itself is shown, not its address.
        for spoken in newest.values_mut() {
            let file = spoken.text.take();
            spoken.text = file.and_then(|file| fs::read_to_string(self.directory.join(file)).ok());
        }
        newest.into_values().collect()
    }

    /// The contents of a file and what they are, if there is such a file to give out.
    pub fn file(&self, name: &str) -> Option<(Vec<u8>, &'static str)> {
        let kind = match name.rsplit_once('.')?.1 {
            "wav" => "audio/wav",
            "png" => "image/png",
            "txt" => "text/plain; charset=utf-8",
            _ => return None,
        };
        let known = self.files().into_iter().find(|file| file == name)?;
        Some((fs::read(self.directory.join(known)).ok()?, kind))
    }

    /// Names of plain files in the directory, sorted. None where there is no directory yet.
    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let plain = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
        let mut names: Vec<String> =
            plain.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.retain(|name| !name.starts_with('.'));
        names.sort();
        names
    }
}

/// `step-000020-en.wav` -> 20, `en.wav`.
fn step_of(file: &str) -> Option<(u64, &str)> {
    let (number, rest) = file.strip_prefix("step-")?.split_once('-')?;
    Some((number.parse().ok()?, rest))
}

type Place = fn(&mut Spoken) -> &mut Option<String>;

fn part_of(rest: &str) -> Option<(&str, Place)> {
    let parts: [(&str, Place); 4] = [
        ("-alignment.png", |spoken| &mut spoken.alignment),
        ("-mel.png", |spoken| &mut spoken.mel),
        (".wav", |spoken| &mut spoken.sound),
        (".txt", |spoken| &mut spoken.text),
    ];
    parts.into_iter().find_map(|(ending, place)| Some((rest.strip_suffix(ending)?, place)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> (tempfile::TempDir, Samples) {
        let folder = tempfile::tempdir().unwrap();
        let samples = folder.path().join("samples");
        fs::create_dir(&samples).unwrap();
        for name in [
            "step-000020-en.wav",
            "step-000020-en-alignment.png",
            "step-000040-en.wav",
            "step-000040-en-mel.png",
            "step-000040-en.txt",
            "step-000020-سارا.wav",
            "notes.txt",
            "step-x-en.wav",
            ".hidden.wav",
        ] {
            fs::write(samples.join(name), name).unwrap();
        }
        fs::write(folder.path().join("secret.txt"), "secret").unwrap();
        std::os::unix::fs::symlink(folder.path().join("secret.txt"), samples.join("link.txt"))
            .unwrap();
        fs::create_dir(samples.join("folder.wav")).unwrap();
        let samples = Samples::of_run(folder.path());
        (folder, samples)
    }

    #[test]
    fn the_newest_of_each_voice_is_shown() {
        let (_folder, samples) = run();
        let newest = samples.newest();
        assert_eq!(newest.len(), 2);
        let en = &newest[0];
        assert_eq!((en.name.as_str(), en.step), ("en", 40));
        assert_eq!(en.sound.as_deref(), Some("step-000040-en.wav"));
        assert_eq!(en.text.as_deref(), Some("step-000040-en.txt"), "its contents");
        assert_eq!(
            (en.alignment.as_deref(), en.mel.as_deref()),
            (None, Some("step-000040-en-mel.png"))
        );
        assert_eq!(newest[1].name, "سارا");
    }

    #[test]
    fn nothing_but_plain_files_of_the_directory_is_given_out() {
        let (_folder, samples) = run();
        assert_eq!(samples.file("notes.txt").unwrap().1, "text/plain; charset=utf-8");
        assert_eq!(samples.file("step-000040-en.wav").unwrap().0, b"step-000040-en.wav");
        for name in [
            "../secret.txt",
            "link.txt",
            "folder.wav",
            ".hidden.wav",
            "none.wav",
            "",
            "/etc/passwd",
            "..",
            "samples/notes.txt",
            "notes.txt\0",
        ] {
            assert!(samples.file(name).is_none(), "{name}");
        }
        assert!(Samples::of_run(Path::new("/no/such/run")).newest().is_empty());
    }
}
