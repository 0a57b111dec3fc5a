//! `tandem licenses`: licences and notices of the program and of everything in it.

use crate::exit::ExitStatus;
use crate::failure::Result;
use crate::notices::notices;
use crate::printer::Printer;

#[derive(clap::Args)]
#[command(after_help = "Example:\n  tandem licenses > licenses.txt")]
pub struct Args {}

pub fn run(_: Args, out: &mut Printer) -> Result<ExitStatus> {
    out.line(&notices())?;
    Ok(ExitStatus::Done)
}
