//! The thread that writes a run's log.
//!
//! In: messages from the queue. Out: records in the event file, files under `samples/`. Points whose
//! values are still on the device are held back, within a window and a time limit, while pictures
//! and sound pass; points keep their order. Nothing this thread does makes a sender wait.

use super::wave::wav;
use super::{LogMessage, RunLogSettings, Tray};
use crate::log::picture::{self, Picture, PictureError};
use std::collections::VecDeque;
use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tandem_disk::replace_file::replace_file;
use tandem_telemetry::event::{Loss, Warning};
use tandem_telemetry::pending::Poll;
use tandem_telemetry::tensorboard::{EventFile, Shown};
use tandem_telemetry::{Recorder, TelemetryError};

/// How often held values and the end are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

pub(super) struct LogWorker {
    samples: PathBuf,
    events: EventFile,
    settings: RunLogSettings,
    tray: Arc<Tray>,
    recorder: Recorder,
    // In order, each with the moment it arrived here.
    held: VecDeque<Points>,
}

struct Points {
    since: Instant,
    step: u64,
    values: Vec<Loss>,
}

/// Why a message is not on disk.
#[derive(Debug, thiserror::Error)]
enum Unwritten {
    #[error(transparent)]
    Picture(#[from] PictureError),
    #[error("cannot make a WAV of the sound")]
    Sound(#[from] hound::Error),
    #[error("cannot write `{}`", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Events(#[from] TelemetryError),
}

impl LogWorker {
    pub(super) fn new(
        samples: PathBuf,
        events: EventFile,
        settings: RunLogSettings,
        tray: Arc<Tray>,
        recorder: Recorder,
    ) -> LogWorker {
        LogWorker { samples, events, settings, tray, recorder, held: VecDeque::new() }
    }

    pub(super) fn run(&mut self) {
        loop {
            let closing = self.tray.closing.load(Ordering::Acquire);
            // No more than the queue holds, so that values and the disk get their turn.
            for _ in 0..self.tray.messages.capacity() {
                let Some(message) = self.tray.messages.pop() else { break };
                self.take(message);
            }
            self.release(Instant::now(), self.settings.queue);
            self.flush();
            if closing {
                break;
            }
            std::thread::park_timeout(LOOK_EVERY);
        }
        self.close();
        // What slipped in while the log was closing.
        let missed = std::iter::from_fn(|| self.tray.messages.pop()).count();
        self.tray.dropped.fetch_add(missed as u64, Ordering::Relaxed);
    }

    fn take(&mut self, message: LogMessage) {
        let size = message.size().0;
        if let LogMessage::Scalars { step, values } = message {
            self.held.push_back(Points { since: Instant::now(), step, values });
        } else {
            let written = self.write(message);
            self.count(written);
        }
        self.tray.waiting.fetch_sub(size, Ordering::AcqRel);
    }

    fn write(&mut self, message: LogMessage) -> Result<(), Unwritten> {
        let mel = &self.settings.mel;
        match message {
            // Taken aside before.
            LogMessage::Scalars { .. } => Ok(()),
            LogMessage::Mel { step, name, frames } => {
                let drawn = picture::mel(&title(step, &name), &frames, mel)?;
                self.picture(step, &name, "mel", drawn)
            }
            LogMessage::Alignment { step, name, alignment } => {
                let drawn = picture::alignment(&title(step, &name), &alignment, mel)?;
                self.picture(step, &name, "alignment", drawn)
            }
            LogMessage::Audio { step, name, rate, samples } => {
                let wav = wav(&samples, rate)?;
                let written = self.sample(step, &name, ".wav", &wav);
                self.events.add(step, &tag("audio", &name), Shown::Audio(wav));
                written
            }
            LogMessage::Text { step, name, text } => {
                let written = self.sample(step, &name, ".txt", text.as_bytes());
                self.events.add(step, &tag("text", &name), Shown::Text(text));
                written
            }
        }
    }

    fn picture(
        &mut self,
        step: u64,
        name: &str,
        kind: &str,
        picture: Picture,
    ) -> Result<(), Unwritten> {
        let Picture { width, height, png } = picture;
        let written = self.sample(step, name, &format!("-{kind}.png"), &png);
        self.events.add(step, &tag(kind, name), Shown::Image { width, height, png });
        written
    }

    /// A file under `samples/`, replaced whole.
    fn sample(
        &self,
        step: u64,
        name: &str,
        ending: &str,
        contents: &[u8],
    ) -> Result<(), Unwritten> {
        let path = self.samples.join(format!("step-{step:06}-{}{ending}", file_name(name)));
        let written =
            tandem_disk::create_dir_all(&self.samples).and_then(|()| replace_file(&path, contents));
        written.map_err(|source| Unwritten::File { path, source })
    }

    /// Writes held points from the front, until one is met that may still wait. At most `window`
    /// of them are held back.
    fn release(&mut self, now: Instant, window: usize) {
        while let Some(points) = self.held.front() {
            let waiting = points.values.iter().any(|loss| loss.value.poll() == Poll::Waiting);
            let waited = now.saturating_duration_since(points.since);
            if waiting && self.held.len() <= window && waited < self.settings.values_within {
                return;
            }
            if let Some(points) = self.held.pop_front() {
                self.write_points(points);
            }
        }
    }

    fn write_points(&mut self, Points { step, values, .. }: Points) {
        for loss in values {
            match loss.value.value() {
                Some(value) => self.events.add(step, &loss.name, Shown::Scalar(value)),
                None => {
                    self.tray.late.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        self.count(Ok(()));
    }

    /// A failure here has lost nothing yet: the event file keeps what the disk did not take.
    fn flush(&mut self) {
        if let Err(error) = self.events.flush() {
            self.tell(&error.into());
        }
    }

    fn count(&self, written: Result<(), Unwritten>) {
        let counter = match &written {
            Ok(()) => &self.tray.written,
            Err(_) => &self.tray.errors,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = &written {
            self.tell(error);
        }
    }

    /// The first failure is told at once, and loudly; the end tells how many there were.
    fn tell(&self, error: &Unwritten) {
        let causes = std::iter::successors(error.source(), |cause| (*cause).source());
        let told = causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"));
        if self.tray.first_error.set(told.clone()).is_ok() {
            let text = format!("the run goes on, but its log suffers: {told}");
            self.recorder.send(Warning { code: "run_log".into(), text });
        }
    }

    /// Gives the last values a moment to arrive, then writes everything and syncs.
    fn close(&mut self) {
        let until = Instant::now() + self.settings.close_within / 2;
        while !self.held.is_empty() && Instant::now() < until {
            self.release(Instant::now(), usize::MAX);
            if !self.held.is_empty() {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        self.release(Instant::now(), 0);
        if let Err(error) = self.events.close() {
            self.count(Err(error.into()));
        }
        self.tray.dropped.fetch_add(self.events.lost(), Ordering::Relaxed);
    }
}

fn title(step: u64, name: &str) -> String {
    format!("{name}, step {step}")
}

fn tag(kind: &str, name: &str) -> String {
    format!("{kind}/{name}")
}

/// A name in letters that every file system takes, and not too many of them.
pub(super) fn file_name(name: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "-_".contains(letter);
    name.chars().map(|letter| if plain(letter) { letter } else { '-' }).take(40).collect()
}
