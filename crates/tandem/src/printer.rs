//! All output of the program: results to stdout, messages and progress to stderr.
//!
//! Colours appear on a terminal only (`anstream` removes them elsewhere and honours `NO_COLOR`);
//! a progress bar becomes a plain line now and then when stderr is not a terminal. The terminal that `mpirun` gives to
//! its ranks is none: see [`crate::terminal`].

use crate::failure::{Context, Failure, Result};
use crate::terminal::{Stream, reaches_terminal};
use comfy_table::{ContentArrangement, Table, presets};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use serde::Serialize;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};
use terminal_size::{Width, terminal_size_of};

/// The only part of the program that prints.
pub struct Printer {
    on_terminal: bool,
    /// The name of a process that prints errors only.
    silenced: Option<String>,
}

impl Printer {
    /// Detects whether stdout and stderr are terminals.
    pub fn new() -> Printer {
        // `anstream` sees the terminal of this process alone. What the user forces stays.
        let forced = std::env::var_os("CLICOLOR_FORCE").is_some_and(|force| force != "0");
        if io::stdout().is_terminal() && !reaches_terminal(Stream::Stdout) && !forced {
            anstream::ColorChoice::Never.write_global();
        }
        Printer { on_terminal: reaches_terminal(Stream::Stderr), silenced: None }
    }

    /// From now on only errors are printed, each with this name: another rank prints the rest.
    pub fn only_errors(&mut self, name: String) {
        self.silenced = Some(name);
        self.on_terminal = false;
    }

    pub fn is_silenced(&self) -> bool {
        self.silenced.is_some()
    }

    /// Prints an error to stderr.
    pub fn error(&mut self, text: &str) {
        let name = self.silenced.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
        let _ = writeln!(anstream::stderr().lock(), "{name}{text}");
    }

    /// Whether stderr is a terminal.
    pub fn on_terminal(&self) -> bool {
        self.on_terminal
    }

    /// Prints a line of the result to stdout.
    pub fn line(&mut self, text: &str) -> Result<()> {
        if self.is_silenced() {
            return Ok(());
        }
        match writeln!(anstream::stdout().lock(), "{text}") {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(ReaderGone.into()),
            other => other.context("cannot write to stdout"),
        }
    }

    /// Prints the result as JSON to stdout.
    pub fn json(&mut self, value: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string_pretty(value).map_err(Failure::foreign)?;
        self.line(&text)
    }

    /// Prints a message to stderr. A closed stderr is ignored.
    pub fn note(&mut self, text: &str) {
        if self.is_silenced() {
            return;
        }
        let _ = writeln!(anstream::stderr().lock(), "{text}");
    }

    /// A table without borders.
    pub fn table(header: &[&str]) -> Table {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(header.iter().copied());
        // Cells are wrapped to fit a terminal; a file or a pipe gets whole lines.
        if let Some((Width(width), _)) = terminal_size_of(io::stdout()) {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        table
    }

    /// Progress over `total` steps of what `what` names.
    pub fn progress(&self, what: &str, total: u64) -> Progress {
        match self.silenced {
            Some(_) => Progress { bar: ProgressBar::hidden(), lines: None },
            None => Progress::new(what, total, self.on_terminal),
        }
    }
}

/// The process that reads stdout closed it (`tandem ... | head`).
#[derive(Debug)]
pub struct ReaderGone;

impl std::fmt::Display for ReaderGone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("stdout was closed by its reader")
    }
}

impl std::error::Error for ReaderGone {}

impl tandem_units::Hint for ReaderGone {}

/// A progress bar on a terminal, a line every few seconds elsewhere.
pub struct Progress {
    bar: ProgressBar,
    lines: Option<Lines>,
}

struct Lines {
    what: String,
    total: u64,
    due: Instant,
}

/// Interval between progress lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

impl Progress {
    fn new(what: &str, total: u64, on_terminal: bool) -> Progress {
        if !on_terminal {
            let due = Instant::now() + LINE_EVERY;
            let lines = Some(Lines { what: what.to_string(), total, due });
            return Progress { bar: ProgressBar::hidden(), lines };
        }
        let style = ProgressStyle::with_template(
            "{msg} {wide_bar} {human_pos}/{human_len} {speed} eta {eta}",
        )
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .with_key("speed", |state: &ProgressState, text: &mut dyn fmt::Write| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{:.0}/s", state.per_sec());
        });
        let bar = ProgressBar::new(total).with_style(style).with_message(what.to_string());
        Progress { bar, lines: None }
    }

    /// Sets the number of steps done.
    pub fn at(&mut self, done: u64) {
        self.bar.set_position(done);
        let Some(lines) = &mut self.lines else { return };
        if Instant::now() >= lines.due {
            lines.due = Instant::now() + LINE_EVERY;
            let text = format!("{}: {done} of {}", lines.what, lines.total);
            let _ = writeln!(anstream::stderr().lock(), "{text}");
        }
    }

    /// Removes the bar.
    pub fn done(self) {
        self.bar.finish_and_clear();
    }
}
