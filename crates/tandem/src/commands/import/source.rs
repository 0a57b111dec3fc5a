//! What is imported: the rows of a corpus, or the sentences of long recordings.
//!
//! In: the settings of an import. Out: [`Source`]: rows in order, each with its recording. Next: [`super::write_rows`].

use super::ImportSettings;
use super::long::{self, CutShare};
use super::manifest::{UsedColumns, columns_of};
use crate::failure::Result;
use crate::printer::Printer;
use std::path::PathBuf;
use tandem_data::DataError;
use tandem_data::corpus::{Corpus, CorpusRow, LongRecordings};
use tandem_pipeline::CancelToken;

pub type RowResult = std::result::Result<CorpusRow, DataError>;

/// What SOURCE was recognised as.
pub struct Located {
    /// With symbolic links resolved.
    pub root: PathBuf,
    pub layout: &'static str,
    pub description: String,
}

impl Located {
    pub fn find(settings: &ImportSettings) -> Result<Located> {
        if settings.long.is_some() {
            let LongRecordings { root, recordings } = LongRecordings::find(&settings.source)?;
            let texts = recordings.iter().filter(|one| one.text.is_some()).count();
            let description = format!("long recordings: {}, {texts} with a text", recordings.len());
            return Ok(Located { root, layout: "long-recordings", description });
        }
        let found = Corpus::locate(&settings.source, &settings.corpus)?;
        let (layout, description) = (found.layout.name(), found.description);
        Ok(Located { root: found.root, layout, description })
    }
}

pub struct Source {
    /// The recordings of the rows are relative to it.
    pub root: PathBuf,
    pub manifests: Vec<PathBuf>,
    /// The number of rows, or more.
    pub most: usize,
    pub columns: UsedColumns,
    /// SOURCE names its held-out rows.
    pub held_out: bool,
    pub rows: Box<dyn Iterator<Item = RowResult>>,
    pub cut: Option<CutShare>,
}

impl Source {
    pub fn open(
        settings: &ImportSettings,
        cancel: &CancelToken,
        out: &mut Printer,
    ) -> Result<Source> {
        if let Some(long) = &settings.long {
            return long::open(settings, long, cancel, out);
        }
        let open = || Corpus::rows_with_parts(&settings.source, &settings.corpus);
        let columns = columns_of(&mut open()?)?;
        let rows = open()?;
        Ok(Source {
            root: rows.root().into(),
            manifests: rows.manifests(),
            most: rows.most(),
            columns,
            held_out: rows.names_held_out(),
            rows: Box::new(rows),
            cut: None,
        })
    }
}
