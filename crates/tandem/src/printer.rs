//! Where output goes: data to stdout, words for people to stderr, progress in between.
//!
//! Colours appear on a terminal only (`anstream` removes them elsewhere and honours `NO_COLOR`);
//! a progress bar becomes a plain line now and then when stderr is not a terminal.

use crate::failure::{Context, Failure, Result};
use comfy_table::{ContentArrangement, Table, presets};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use serde::Serialize;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};
use terminal_size::{Width, terminal_size_of};

/// The only place of the program that prints.
pub struct Printer {
    on_terminal: bool,
}

impl Printer {
    /// Output as the surroundings want it.
    pub fn new() -> Printer {
        Printer { on_terminal: io::stderr().is_terminal() }
    }

    /// Whether a person sees stderr as it is written.
    pub fn on_terminal(&self) -> bool {
        self.on_terminal
    }

    /// A line of the answer, to stdout.
    pub fn line(&mut self, text: &str) -> Result<()> {
        match writeln!(anstream::stdout().lock(), "{text}") {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(ReaderGone.into()),
            other => other.context("cannot write to stdout"),
        }
    }

    /// The answer as JSON, to stdout.
    pub fn json(&mut self, value: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string_pretty(value).map_err(Failure::foreign)?;
        self.line(&text)
    }

    /// A word to the person at the keyboard, to stderr. A closed stderr is nobody's loss.
    pub fn note(&mut self, text: &str) {
        let _ = writeln!(anstream::stderr().lock(), "{text}");
    }

    /// A table in the house style: no frame, one space of air.
    pub fn table(header: &[&str]) -> Table {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(header.iter().copied());
        // Cells are folded to fit a terminal; a file or a pipe gets whole lines.
        if let Some((Width(width), _)) = terminal_size_of(io::stdout()) {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        table
    }

    /// Progress over `total` steps of what `what` names.
    pub fn progress(&self, what: &str, total: u64) -> Progress {
        Progress::new(what, total, self.on_terminal)
    }
}

/// Whoever read our output went away (`tandem ... | head`).
#[derive(Debug)]
pub struct ReaderGone;

impl std::fmt::Display for ReaderGone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("nobody reads the output any more")
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

/// How often a run without a terminal says how far it is.
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
            // A text that cannot take a number has no reader either.
            let _ = write!(text, "{:.0}/s", state.per_sec());
        });
        let bar = ProgressBar::new(total).with_style(style).with_message(what.to_string());
        Progress { bar, lines: None }
    }

    /// So many steps are done in all.
    pub fn at(&mut self, done: u64) {
        self.bar.set_position(done);
        let Some(lines) = &mut self.lines else { return };
        if Instant::now() >= lines.due {
            lines.due = Instant::now() + LINE_EVERY;
            let text = format!("{}: {done} of {}", lines.what, lines.total);
            let _ = writeln!(anstream::stderr().lock(), "{text}");
        }
    }

    /// Takes the bar off the screen.
    pub fn done(self) {
        self.bar.finish_and_clear();
    }
}
