//! `--html` and `--lang`: the result as an HTML page.

use crate::failure::{Context, Result};
use crate::printer::Printer;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::path::{Path, PathBuf};
use tandem_disk::replace_file::replace_file;
use tandem_page::{Lang, Page, render};

#[derive(clap::Args, Clone, Debug)]
pub struct PageArgs {
    /// Also write the result as one HTML file with plots, readable offline
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    pub language: LangArg,
}

/// Language of the page.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct LangArg {
    /// Language of the page: English, or Persian from right to left
    #[arg(long, value_name = "LANG", default_value = "en", value_parser = languages())]
    pub lang: Lang,
}

fn languages() -> impl TypedValueParser<Value = Lang> {
    PossibleValuesParser::new(Lang::CODES).try_map(|code| code.parse::<Lang>())
}

impl PageArgs {
    /// Writes the page if `--html` is given; an existing file is replaced atomically.
    pub fn write(&self, out: &mut Printer, page: impl FnOnce(Lang) -> Result<Page>) -> Result<()> {
        let Some(path) = &self.html else { return Ok(()) };
        let text = render::html(&page(self.language.lang)?);
        replace_file(path, text.as_bytes())
            .with_context(|| format!("cannot write the page `{}`", path.display()))?;
        out.note(&format!("page: {}", path.display()));
        Ok(())
    }

    /// Refuses a file that cannot be written before hours are spent on its contents.
    pub fn check(&self) -> Result<()> {
        let Some(path) = &self.html else { return Ok(()) };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        if path.is_dir() || !folder.is_dir() {
            return Err(crate::failure::Advised::new(
                format!("cannot write the page `{}`", path.display()),
                "name a file in a directory that exists, such as `--html report.html`",
            )
            .into());
        }
        Ok(())
    }
}
