//! The thread that writes a run's log.
//!
//! In: messages from the queue. Out: records in the event file, files under `samples/`. Points whose
//! values are still on the device stay pending, within a window and a time limit, while pictures and
//! sound are written. Points keep their order. Nothing this thread does makes a sender wait.

use super::{LogMessage, LogQueue, RunLogSettings};
use crate::log::picture;
use std::collections::VecDeque;
use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tandem_disk::replace_file::replace_file;
use tandem_model::vocoder::wav::{WavError, level, wav_of_levels};
use tandem_plot::{Picture, PictureError};
use tandem_telemetry::event::{Loss, Warning};
use tandem_telemetry::pending::Poll;
use tandem_telemetry::tensorboard::{EventFile, Shown};
use tandem_telemetry::{Recorder, TelemetryError};

/// Interval of polls for pending values and for the end.
const POLL_EVERY: Duration = Duration::from_millis(50);

pub(super) struct LogWorker {
    samples: PathBuf,
    events: EventFile,
    settings: RunLogSettings,
    queue: Arc<LogQueue>,
    recorder: Recorder,
    // In order of arrival.
    pending: VecDeque<Points>,
}

struct Points {
    since: Instant,
    step: u64,
    values: Vec<Loss>,
}

/// Why a message could not be written.
#[derive(Debug, thiserror::Error)]
enum WriteError {
    #[error(transparent)]
    Picture(#[from] PictureError),
    #[error("cannot encode the sound as WAV")]
    Sound(#[from] WavError),
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
        queue: Arc<LogQueue>,
        recorder: Recorder,
    ) -> LogWorker {
        LogWorker { samples, events, settings, queue, recorder, pending: VecDeque::new() }
    }

    pub(super) fn run(&mut self) {
        loop {
            let closing = self.queue.closing.load(Ordering::Acquire);
            // At most one full queue per turn, so that pending values and the disk are served, too.
            for _ in 0..self.queue.messages.capacity() {
                let Some(message) = self.queue.messages.pop() else { break };
                self.take(message);
            }
            self.release(Instant::now(), self.settings.queue);
            self.flush();
            if closing {
                break;
            }
            std::thread::park_timeout(POLL_EVERY);
        }
        self.close();
        // Messages that arrived while the log was closing.
        let missed = std::iter::from_fn(|| self.queue.messages.pop()).count();
        self.queue.dropped.fetch_add(missed as u64, Ordering::Relaxed);
    }

    fn take(&mut self, message: LogMessage) {
        let size = message.size().0;
        if let LogMessage::Scalars { step, values } = message {
            self.pending.push_back(Points { since: Instant::now(), step, values });
        } else {
            let written = self.write(message);
            self.count(written);
        }
        self.queue.waiting.fetch_sub(size, Ordering::AcqRel);
    }

    fn write(&mut self, message: LogMessage) -> Result<(), WriteError> {
        let mel = &self.settings.mel;
        match message {
            // Handled by `take`.
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
                // Listening is for comparison: one loud sample does not make the others quieter, and NaN is silence.
                let levels: Vec<i16> = samples.iter().copied().map(level).collect();
                let wav = wav_of_levels(&levels, rate)?;
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
    ) -> Result<(), WriteError> {
        let Picture { width, height, png } = picture;
        let written = self.sample(step, name, &format!("-{kind}.png"), &png);
        self.events.add(step, &tag(kind, name), Shown::Image { width, height, png });
        written
    }

    /// One level only: a run directory that was moved away must not appear again under its old name.
    fn create_samples_directory(&self) -> io::Result<()> {
        match tandem_disk::create_dir(&self.samples) {
            Err(_) if self.samples.is_dir() => Ok(()),
            created => created,
        }
    }

    /// A file under `samples/`, replaced whole.
    fn sample(
        &self,
        step: u64,
        name: &str,
        ending: &str,
        contents: &[u8],
    ) -> Result<(), WriteError> {
        let path = self.samples.join(format!("step-{step:06}-{}{ending}", file_name(name)));
        let written = self.create_samples_directory().and_then(|()| replace_file(&path, contents));
        written.map_err(|source| WriteError::File { path, source })
    }

    /// Writes pending points in order, up to the first one that may still wait. At most `window` of them
    /// stay pending.
    fn release(&mut self, now: Instant, window: usize) {
        while let Some(points) = self.pending.front() {
            let waiting = points.values.iter().any(|loss| loss.value.poll() == Poll::Waiting);
            let waited = now.saturating_duration_since(points.since);
            if waiting && self.pending.len() <= window && waited < self.settings.values_within {
                return;
            }
            if let Some(points) = self.pending.pop_front() {
                self.write_points(points);
            }
        }
    }

    fn write_points(&mut self, Points { step, values, .. }: Points) {
        for loss in values {
            match loss.value.value() {
                Some(value) => self.events.add(step, &loss.name, Shown::Scalar(value)),
                None => {
                    self.queue.late.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        self.count(Ok(()));
    }

    /// A failure here loses nothing: the event file buffers what could not be written.
    fn flush(&mut self) {
        if let Err(error) = self.events.flush() {
            self.report(&error.into());
        }
    }

    fn count(&self, written: Result<(), WriteError>) {
        let counter = match &written {
            Ok(()) => &self.queue.written,
            Err(_) => &self.queue.errors,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = &written {
            self.report(error);
        }
    }

    /// The first failure is reported at once, the number of failures at the end.
    fn report(&self, error: &WriteError) {
        let causes = std::iter::successors(error.source(), |cause| (*cause).source());
        let text = causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"));
        if self.queue.first_error.set(text.clone()).is_ok() {
            let text = format!("the run continues, but its log is incomplete: {text}");
            self.recorder.send(Warning { code: "run_log".into(), text });
        }
    }

    /// Gives the last values a moment to arrive, then writes everything and syncs.
    fn close(&mut self) {
        let until = Instant::now() + self.settings.close_within / 2;
        while !self.pending.is_empty() && Instant::now() < until {
            self.release(Instant::now(), usize::MAX);
            if !self.pending.is_empty() {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        self.release(Instant::now(), 0);
        if let Err(error) = self.events.close() {
            self.count(Err(error.into()));
        }
        self.queue.dropped.fetch_add(self.events.lost(), Ordering::Relaxed);
    }
}

fn title(step: u64, name: &str) -> String {
    format!("{name}, step {step}")
}

fn tag(kind: &str, name: &str) -> String {
    format!("{kind}/{name}")
}

/// A file name with at most 40 characters, safe for every file system.
pub(super) fn file_name(name: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "-_".contains(letter);
    name.chars().map(|letter| if plain(letter) { letter } else { '-' }).take(40).collect()
}
