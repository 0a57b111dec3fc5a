//! The configuration file: TOML or YAML, of Tandem or of MyXTTS. An unknown key is an error with line,
//! column and the nearest known key.

mod format; // parses the text; errors with line and column
pub mod place; // line and column of a key
pub mod tree; // a file of Tandem or MyXTTS as it is written
pub mod nearest; // the nearest known name for a misspelt one
pub mod reference; // every key, generated from the code

use crate::failure::{Advised, Failure, Result};
use crate::printer::Printer;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use tandem_settings::SetKeys;
use tandem_train::file_config::FileConfig;
use tree::Written;

/// Longer files are refused.
const LONGEST: u64 = 1 << 20;

/// Reads a file of Tandem or MyXTTS; `None` gives the defaults. What means something else here than in MyXTTS is
/// printed, one line for each key.
pub fn read(path: Option<&Path>, out: &mut Printer) -> Result<FileConfig> {
    let Some(path) = path else { return Ok(FileConfig::default()) };
    let written = Written::read(path)?;
    written.changed_meanings(path).iter().for_each(|line| out.note(line));
    Ok(written.config)
}

/// Reads settings that are a tree already: those of the Python package.
pub fn of_tree(tree: serde_json::Value) -> Result<FileConfig> {
    let set_keys = SetKeys::of(&tree);
    let config = format::parse_tree::<FileConfig>(tree)?.checked()?;
    Ok(FileConfig { set_keys, ..config })
}

/// Parses the text of a file, and checks its values.
fn parsed(format: format::Format, text: &str) -> Result<FileConfig> {
    let config = format.parse::<FileConfig>(text)?;
    config.checked().map_err(Failure::from)
}

fn read_text(path: &Path) -> Result<String, Advised> {
    let unread = |error: std::io::Error| {
        Advised::new(error.to_string(), "check the path given to `--config`")
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unread)?;
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(unread)?;
    if bytes.len() as u64 > LONGEST {
        return Err(Advised::new("the file is longer than 1 MiB", "name another file"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        Advised::new(
            format!("line {line} is not UTF-8 text (byte {} of the file)", at + 1),
            "save the file as UTF-8: in an editor, or with `iconv -f ENCODING -t UTF-8`",
        )
    })
}

#[cfg(test)]
mod tests;
