//! `tandem watch`: follows a run on a live page in the browser, or in the terminal.

mod screen; // the view in the terminal

use crate::exit::ExitStatus;
use crate::failure::{Context, Result};
use crate::interrupt::cancel_on_signals;
use crate::page_args::LangArg;
use crate::printer::Printer;
use std::path::PathBuf;
use std::time::Duration;
use tandem_page::{Dashboard, DashboardOptions, PageListener};

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The run: its directory, or its record (`run.jsonl`); finished or running
    run: PathBuf,
    /// Port of the page on this machine; 0: any free port
    #[arg(long, value_name = "N", default_value_t = PageListener::PORT)]
    port: u16,
    #[command(flatten)]
    language: LangArg,
    /// Show the run in this terminal instead; q quits
    #[arg(long, conflicts_with = "port")]
    tui: bool,
}

const EXAMPLES: &str = "\
Examples:
  tandem watch runs/first                 then open http://127.0.0.1:7878/
  tandem watch runs/first --port 0 --lang fa
  tandem watch runs/first --tui           in the terminal, for example over SSH

The page can be opened only on this machine. From another machine: ssh -L 7878:127.0.0.1:7878 HOST. \
Prometheus reads the same port at /metrics. Ctrl-C closes the page and does not affect the run.";

/// Shows the run until Ctrl-C.
pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    let fact = || format!("cannot watch `{}`", args.run.display());
    let cancel = cancel_on_signals()?;
    if args.tui {
        return screen::watch(&args.run, &cancel).with_context(fact);
    }
    let name = args.run.to_string_lossy();
    let options = DashboardOptions { lang: args.language.lang, ..DashboardOptions::new(name) };
    let door = PageListener::take(args.port).with_context(fact)?;
    let page = Dashboard::open(door, &args.run, options).with_context(fact)?;
    out.line(&page.url())?;
    out.note("open this address in a browser on this machine; Ctrl-C closes the page");
    while !cancel.is_cancelled() {
        std::thread::sleep(Duration::from_millis(100));
    }
    // Ctrl-C is the normal end of this command.
    Ok(ExitStatus::Done)
}
