//! The manifest of an imported corpus: `metadata.csv`, or one for training and one that is held out.
//!
//! In: imported rows, in order. Out: a draft that becomes the manifest when all rows are in it. Columns that no row uses
//! are not written, and a header names the others where there are more than `id|text`.

use super::source::RowResult;
use crate::failure::{Context, Result};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use tandem_data::corpus::{CorpusRow, Split, Utterance};
use tandem_data::import::imported_id;
use tandem_disk::File;
use tandem_disk::replace_file::{commit, draft_path};

const WHOLE: &str = "metadata.csv";
const TRAIN: &str = "metadata_train.csv";
const EVAL: &str = "metadata_eval.csv";

/// The import was finished.
pub fn exists(output: &Path) -> bool {
    [WHOLE, TRAIN].iter().any(|name| output.join(name).exists())
}

/// The optional columns that a row of the source uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsedColumns {
    speaker: bool,
    language: bool,
    phonemes: bool,
}

pub fn columns_of(rows: &mut dyn Iterator<Item = RowResult>) -> Result<UsedColumns> {
    let mut used = UsedColumns::default();
    for row in rows {
        if let CorpusRow::Usable(row) = row? {
            used.speaker |= row.speaker.is_some();
            used.language |= row.language.is_some();
            used.phonemes |= row.phonemes.is_some();
        }
    }
    Ok(used)
}

pub struct ManifestWriter {
    columns: UsedColumns,
    train: Draft,
    /// Where the source names the held-out rows.
    eval: Option<Draft>,
}

struct Draft {
    path: PathBuf,
    draft: PathBuf,
    file: BufWriter<File>,
}

impl ManifestWriter {
    pub fn create(output: &Path, columns: UsedColumns, held_out: bool) -> Result<ManifestWriter> {
        let (train, eval) = match held_out {
            true => (TRAIN, Some(Draft::create(&output.join(EVAL), columns)?)),
            false => (WHOLE, None),
        };
        Ok(ManifestWriter { columns, train: Draft::create(&output.join(train), columns)?, eval })
    }

    pub fn add(&mut self, row: &Utterance) -> Result<()> {
        let UsedColumns { speaker, language, phonemes } = self.columns;
        let mut line = format!("{}|{}", imported_id(&row.id), cell(&row.text));
        let optional =
            [(speaker, &row.speaker), (language, &row.language), (phonemes, &row.phonemes)];
        for (_, value) in optional.into_iter().filter(|(used, _)| *used) {
            line.push('|');
            line.push_str(&cell(value.as_deref().unwrap_or_default()));
        }
        line.push('\n');
        let draft = match (&mut self.eval, row.split) {
            (Some(eval), Split::Eval) => eval,
            _ => &mut self.train,
        };
        draft.write(&line)
    }

    /// The drafts become the manifests. That of the training rows is the last: it shows that the import is finished.
    pub fn finish(self) -> Result<()> {
        self.eval.into_iter().chain([self.train]).try_for_each(Draft::finish)
    }

    /// The rows are not complete.
    pub fn discard(self) {
        for draft in self.eval.into_iter().chain([self.train]) {
            // A draft that stays is harmless: its name is not read.
            let _ = tandem_disk::remove_file(&draft.draft);
        }
    }
}

impl Draft {
    fn create(path: &Path, columns: UsedColumns) -> Result<Draft> {
        let draft = draft_path(path);
        let file =
            File::create(&draft).with_context(|| format!("cannot write `{}`", draft.display()))?;
        let mut draft = Draft { path: path.into(), draft, file: BufWriter::new(file) };
        if columns != UsedColumns::default() {
            let UsedColumns { speaker, language, phonemes } = columns;
            let named = [(speaker, "|speaker"), (language, "|language"), (phonemes, "|phonemes")];
            let used: String =
                named.iter().filter(|(used, _)| *used).map(|(_, name)| *name).collect();
            draft.write(&format!("id|text{used}\n"))?;
        }
        Ok(draft)
    }

    fn write(&mut self, line: &str) -> Result<()> {
        let path = &self.draft;
        self.file
            .write_all(line.as_bytes())
            .with_context(|| format!("cannot write `{}`", path.display()))
    }

    fn finish(mut self) -> Result<()> {
        let path = &self.path;
        let written = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        written
            .and_then(|()| commit(&self.draft, path))
            .with_context(|| format!("cannot write `{}`", path.display()))
    }
}

/// A text that has the separator or a line end would shift the columns.
fn cell(text: &str) -> String {
    let text = text.replace('|', " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
