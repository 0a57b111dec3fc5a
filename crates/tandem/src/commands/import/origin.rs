//! Where an imported corpus is from: `ORIGIN.toml`, and the licence files of the source.
//!
//! In: the settings of an import. Out: a file that is written first. A directory that has one with other settings, or that
//! has files but none, is not written to.

use super::ImportSettings;
use super::source::Located;
use crate::advised::Advised;
use crate::failure::{Context, Failure, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use tandem_disk::replace_file::replace_file;

const NAME: &str = "ORIGIN.toml";
/// Copies of the licence files.
const FOLDER: &str = "origin";
/// The beginnings of their names, in small letters.
const LICENCES: [&str; 4] = ["license", "licence", "copying", "readme"];
const LARGEST: u64 = 1 << 20;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    source: String,
    layout: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    licence: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
    rate: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    trim_silence: Option<f32>,
    trim_margin: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    loudness: Option<f32>,
    /// How long recordings were cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut: Option<super::long::CutOrigin>,
}

impl Origin {
    pub fn of(
        settings: &ImportSettings,
        located: &Located,
        licence: Option<String>,
        origin: Option<String>,
    ) -> Origin {
        let audio = &settings.audio;
        let source = located.root.file_name().unwrap_or(located.root.as_os_str());
        Origin {
            // The name, not the path: a corpus is passed on, and the path names a user.
            source: source.to_string_lossy().into_owned(),
            layout: located.layout.into(),
            licence,
            origin,
            rate: settings.rate.0,
            trim_silence: audio.trim_silence,
            trim_margin: audio.trim_margin,
            loudness: audio.loudness,
            cut: settings.long.as_ref().map(super::long::LongSettings::origin),
        }
    }

    /// Starts an import into `output`, or continues one with the same settings.
    pub fn begin(&self, output: &Path) -> Result<()> {
        tandem_disk::create_dir_all(output)
            .with_context(|| format!("cannot create `{}`", output.display()))?;
        let path = output.join(NAME);
        let failed = || format!("cannot read `{}`", path.display());
        if path.exists() {
            let text = fs::read_to_string(&path).with_context(failed)?;
            let known: Origin = toml::from_str(&text).map_err(|error| {
                Advised::new(format!("`{NAME}` cannot be read: {error}"), "name another directory")
            })?;
            return match known == *self {
                true => Ok(()),
                false => Err(Advised::new(
                    format!("`{NAME}` there says that it was imported from another source or with other settings"),
                    "name another directory, or repeat the command that began the import",
                )
                .into()),
            };
        }
        let listed =
            fs::read_dir(output).with_context(|| format!("cannot list `{}`", output.display()))?;
        // The lock of an import that was ended before it wrote anything.
        let mut others =
            listed.flatten().filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'));
        if others.next().is_some() {
            let fact = format!("`{}` has other files", output.display());
            return Err(Advised::new(
                fact,
                "name a new or an empty directory: nothing is overwritten",
            )
            .into());
        }
        let text = toml::to_string(self)
            .map_err(Failure::foreign)
            .with_context(|| format!("cannot write `{NAME}`"))?;
        replace_file(&path, text.as_bytes())
            .with_context(|| format!("cannot write `{}`", path.display()))
    }
}

/// Copies licence and description of the source. A link is not followed.
pub fn copy_licences(root: &Path, output: &Path) -> Result<()> {
    let listed = fs::read_dir(root).with_context(|| format!("cannot list `{}`", root.display()))?;
    for entry in listed.flatten() {
        let name = entry.file_name().to_string_lossy().to_lowercase();
        let small = entry.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= LARGEST);
        let copy = output.join(FOLDER).join(entry.file_name());
        if !small || !LICENCES.iter().any(|start| name.starts_with(start)) || copy.exists() {
            continue;
        }
        let failed = || format!("cannot copy `{}`", entry.path().display());
        tandem_disk::create_dir_all(&output.join(FOLDER)).with_context(failed)?;
        let bytes = fs::read(entry.path()).with_context(failed)?;
        replace_file(&copy, &bytes).with_context(failed)?;
    }
    Ok(())
}
