//! What a listener decided about rows: `decisions.tsv` in the corpus directory.
//!
//! In: that file, with the columns id, decision and text. Out: [`Decisions`]: rows to leave out, and texts that replace those
//! of the manifest. The page of `tandem analyze --alignments --html` saves it. Next: [`super::manifest`].

use crate::DataError;
use hashbrown::HashMap;
use std::fs;
use std::io;
use std::path::Path;
use tandem_disk::retry;

/// The file, in the corpus directory.
pub const DECISIONS: &str = "decisions.tsv";

/// About one row. To keep a row is the same as no decision; it is written down so that nobody listens to it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Keep,
    Drop,
    /// What is said in truth.
    Fix(String),
}

/// Decisions by id.
#[derive(Clone, Debug, Default)]
pub struct Decisions(HashMap<String, Decision>);

impl Decisions {
    /// None without the file.
    pub fn read(root: &Path) -> Result<Decisions, DataError> {
        let path = root.join(DECISIONS);
        let text = match retry(|| fs::read_to_string(&path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Decisions::default());
            }
            text => text.map_err(|source| DataError::Read { path: path.clone(), source })?,
        };
        let mut decisions = HashMap::new();
        for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let mut cells = line.split('\t').map(str::trim);
            let mut next = || cells.next().unwrap_or_default();
            let decision = match (next(), next(), next()) {
                ("", _, _) | ("id", "decision", _) => continue,
                (id, "keep", _) => (id, Decision::Keep),
                (id, "drop", _) => (id, Decision::Drop),
                (id, "fix", text) if !text.is_empty() => (id, Decision::Fix(text.into())),
                _ => return Err(DataError::Decision { path, line: number + 1 }),
            };
            decisions.insert(decision.0.to_owned(), decision.1);
        }
        Ok(Decisions(decisions))
    }

    pub fn of(&self, id: &str) -> Option<&Decision> {
        self.0.get(id)
    }

    /// How many rows are dropped, and how many have another text.
    pub fn counts(&self) -> (usize, usize) {
        let count =
            |wanted: fn(&Decision) -> bool| self.0.values().filter(|one| wanted(one)).count();
        (count(|one| *one == Decision::Drop), count(|one| matches!(one, Decision::Fix(_))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::{Corpus, CorpusConfig};

    #[test]
    fn dropped_rows_are_left_out_and_fixed_texts_replace_others() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            tandem_disk::write(&folder.path().join(name), text.as_bytes()).unwrap();
        };
        write("metadata.csv", "a|one word\nb|two words\nc|three words\n");
        tandem_disk::create_dir_all(&folder.path().join("wavs")).unwrap();
        for id in ["a", "b", "c"] {
            write(&format!("wavs/{id}.wav"), "x");
        }
        write(DECISIONS, "id\tdecision\ttext\na\tdrop\t\nb\tkeep\t\nc\tfix\tother words\n");
        let config = CorpusConfig::default();
        let corpus = Corpus::read(folder.path(), &config).unwrap();
        let rows: Vec<(&str, &str)> =
            corpus.utterances.iter().map(|row| (&row.id[..], &row.text[..])).collect();
        assert_eq!(rows, [("b", "two words"), ("c", "other words")]);
        let located = Corpus::locate(folder.path(), &config).unwrap();
        assert_eq!((located.dropped, located.fixed), (1, 1));
        assert!(located.files.iter().any(|file| file.ends_with(DECISIONS)), "its stamp is watched");
        write(DECISIONS, "a\tfix\t\n");
        let error = Corpus::read(folder.path(), &config).unwrap_err();
        assert!(error.to_string().contains("line 1"), "{error}");
    }
}
