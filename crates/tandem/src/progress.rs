//! Progress of a training run: a bar on a terminal, plain lines elsewhere.
//!
//! In: the events of the run record ([`Listener`]), on the record's thread: training never waits for
//! a terminal. Out: text on stderr. [`board`] formats the values; this file only prints them. Colours
//! appear on a terminal only, and `NO_COLOR` is honoured.

mod board;

use crate::printer::Printer;
use board::{Board, Said};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use owo_colors::OwoColorize;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tandem_telemetry::record::{Listener, Update};

/// Interval between progress lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// How far a run will go.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plan {
    /// Steps of the run that is resumed; 0 for a new run.
    pub done: u64,
    /// The last step; none: until the epochs are over.
    pub last_step: Option<u64>,
    /// Passes over the corpus; none: until the steps are over.
    pub epochs: Option<u32>,
}

/// The bar or the lines of a training run.
pub struct TrainProgress(Arc<Mutex<Screen>>);

impl TrainProgress {
    /// Shows nothing until the first step.
    pub fn new(plan: Plan, out: &Printer) -> TrainProgress {
        let show = if out.on_terminal() {
            Show::Bar(bar(&plan, ProgressDrawTarget::stderr()))
        } else {
            Show::Lines { due: None, said: 0 }
        };
        TrainProgress::on(plan, show, Box::new(anstream::stderr()))
    }

    fn on(plan: Plan, show: Show, voice: Box<dyn Write + Send>) -> TrainProgress {
        TrainProgress(Arc::new(Mutex::new(Screen { board: Board::new(plan), show, voice })))
    }

    /// A listener for `RecordOptions::listener`.
    pub fn listener(&self) -> Listener {
        let screen = Arc::clone(&self.0);
        Listener::new(move |news| {
            let mut screen = screen.lock().unwrap_or_else(PoisonError::into_inner);
            screen.hear(news, Instant::now());
        })
    }

    /// Removes the bar, or prints the last line. Finish the recording first: it may send more events.
    pub fn done(self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).end();
    }
}

struct Screen {
    board: Board,
    show: Show,
    voice: Box<dyn Write + Send>,
}

enum Show {
    Bar(ProgressBar),
    /// When the next line is due, and the step of the last one.
    Lines {
        due: Option<Instant>,
        said: u64,
    },
}

impl Screen {
    fn hear(&mut self, news: Update<'_>, now: Instant) {
        for said in self.board.hear(news) {
            self.say(&said);
        }
        if matches!(news, Update::Event(stamped) if board::is_step(stamped)) {
            self.stepped(now);
        }
    }

    fn stepped(&mut self, now: Instant) {
        match &mut self.show {
            Show::Bar(bar) => {
                // The last of these draws: by then the others must be in place.
                bar.set_position(self.board.step());
                bar.set_prefix(self.board.epoch());
                bar.set_message(self.board.figures());
            }
            Show::Lines { due, said } => {
                if due.is_none_or(|due| now >= due) {
                    *due = Some(now + LINE_EVERY);
                    *said = self.board.step();
                    let line = self.board.line();
                    self.say(&Said::Line(line));
                }
            }
        }
    }

    /// A closed stderr is ignored.
    fn say(&mut self, said: &Said) {
        let text = match said {
            Said::Line(text) => text.clone(),
            Said::Warning(text) => format!("{} {text}", "warning:".yellow().bold()),
        };
        let voice = &mut self.voice;
        let mut speak = || drop(writeln!(voice, "{text}"));
        match &self.show {
            Show::Bar(bar) => bar.suspend(speak),
            Show::Lines { .. } => speak(),
        }
    }

    fn end(&mut self) {
        match &self.show {
            Show::Bar(bar) => bar.finish_and_clear(),
            Show::Lines { due: Some(_), said } if *said != self.board.step() => {
                let line = self.board.line();
                self.say(&Said::Line(line));
            }
            Show::Lines { .. } => {}
        }
    }
}

fn bar(plan: &Plan, target: ProgressDrawTarget) -> ProgressBar {
    let head = match plan.last_step {
        Some(_) => "{prefix} {wide_bar} step {human_pos} of {human_len}",
        None => "{spinner} {prefix} step {human_pos}",
    };
    let style = ProgressStyle::with_template(&format!("{head}\n{{wide_msg}}"))
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(plan.last_step, target).with_style(style)
}

#[cfg(test)]
mod tests;
