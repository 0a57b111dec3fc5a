//! The view in the terminal. The terminal is restored at the end, also after an error.

use crate::exit::ExitStatus;
use crate::failure::{Advised, Context, Result};
use ratatui_core::terminal::Terminal;
use ratatui_termion::TermionBackend;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tandem_page::follow::{Follower, Found};
use tandem_page::terminal::draw;
use tandem_pipeline::CancelToken;
use termion::event::Key;
use termion::input::TermRead;
use termion::raw::IntoRawMode;
use termion::screen::IntoAlternateScreen;

/// Interval at which the record and the terminal size are polled.
const POLL_EVERY: Duration = Duration::from_millis(500);

/// Shows the run until `q`, Escape or Ctrl-C.
pub fn watch(run: &Path, cancel: &CancelToken) -> Result<ExitStatus> {
    let mut follower = Follower::start(run)?;
    if !(io::stdout().is_terminal() && io::stdin().is_terminal()) {
        let advice = "remove `--tui` to use the page, or use `tandem report` in scripts";
        return Err(Advised::new("`--tui` needs a terminal", advice).into());
    }
    let quit = keys()?;
    let raw = io::stdout().into_raw_mode().context("cannot switch the terminal to raw mode")?;
    let screen = raw.into_alternate_screen().context("cannot switch the terminal to raw mode")?;
    let mut terminal = Terminal::new(TermionBackend::new(screen))?;
    let name = run.to_string_lossy();
    let mut due = Instant::now();
    while !(quit.load(Ordering::Relaxed) || cancel.is_cancelled()) {
        if Instant::now() >= due {
            due = Instant::now() + POLL_EVERY;
            // A record that cannot be read temporarily must not end the view.
            let _: Result<Found, _> = follower.poll();
            terminal.draw(|frame| draw(frame, &follower.view(), &name))?;
        }
        std::thread::sleep(Duration::from_millis(30));
    }
    terminal.show_cursor()?;
    Ok(ExitStatus::Done)
}

/// A flag that a key sets. In raw mode Ctrl-C is a key like any other.
fn keys() -> Result<Arc<AtomicBool>> {
    let quit = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&quit);
    let listen = move || {
        for key in io::stdin().keys().map_while(Result::ok) {
            if matches!(key, Key::Char('q' | 'Q') | Key::Esc | Key::Ctrl('c' | 'd')) {
                break;
            }
        }
        // A closed stdin ends the view, too.
        flag.store(true, Ordering::Relaxed);
    };
    std::thread::Builder::new()
        .name("tandem-keys".into())
        .spawn(listen)
        .context("cannot start the thread that listens for keys")?;
    Ok(quit)
}
