//! Curves, pictures, sound and words for TensorBoard.
//!
//! In: values by tag and step. Out: `events.out.tfevents.TIME.HOST`, the file that TensorBoard
//! reads while it grows. An existing file is never changed: every run, including one resumed
//! after a crash, creates its own file. A failed write is repeated from the byte where it stopped,
//! so no record inside the file is torn. Records wait in memory up to a limit; past it they are
//! dropped and counted.

mod framing;
mod messages;

use crate::error::TelemetryError;
use crate::event::Lane;
use crate::record_file::{Offer, Outbox, RecordFile};
use messages::{
    AudioPluginData, Content, DT_STRING, Dim, Event, Image, PluginData, SESSION_START, SessionLog,
    Summary, SummaryMetadata, Tensor, TensorShape, Value, WAV, What,
};
use prost::Message;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use tandem_disk::File;

/// Bytes that wait while the disk fails.
const WAITING: usize = 32 << 20;
/// Time between two attempts on a failing disk.
const RETRY_EVERY: Duration = Duration::from_secs(1);
/// Files that may be created in one second; more indicate a fault.
const FILES_A_SECOND: u32 = 1000;

/// What is shown at a step under a tag.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    /// A point of a curve. NaN and infinities are points too.
    Scalar(f32),
    /// A PNG in red, green and blue.
    Image {
        /// Pixels across.
        width: u32,
        /// Pixels down.
        height: u32,
        png: Vec<u8>,
    },
    /// The bytes of a WAV file.
    Audio(Vec<u8>),
    /// Words, shown as Markdown.
    Text(String),
}

/// An event file under way. Not for the training thread: its calls write to disk.
pub struct EventFile {
    path: PathBuf,
    outbox: Outbox,
    payload: Vec<u8>,
    record: Vec<u8>,
    lost: u64,
}

impl EventFile {
    /// Opens a new file in a directory that exists. Points of `first_step` and later ones that
    /// an earlier run wrote are discarded by TensorBoard: the run repeats those steps.
    pub fn create(directory: &Path, first_step: u64) -> Result<EventFile, TelemetryError> {
        let (path, file) = create_new(directory, now(), &host_name())?;
        EventFile::on(path, Box::new(file), first_step)
    }

    fn on(
        path: PathBuf,
        file: Box<dyn RecordFile>,
        first_step: u64,
    ) -> Result<EventFile, TelemetryError> {
        let outbox = Outbox::new(file, WAITING, RETRY_EVERY);
        let (payload, record) = (Vec::new(), Vec::new());
        let mut events = EventFile { path, outbox, payload, record, lost: 0 };
        events.put(0, What::FileVersion("brain.Event:2".into()));
        if first_step > 1 {
            events.put(first_step, What::SessionLog(SessionLog { status: SESSION_START }));
        }
        events.flush()?;
        Ok(events)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a value; it reaches the disk with the next [`EventFile::flush`].
    pub fn add(&mut self, step: u64, tag: &str, shown: Shown) {
        let (metadata, content) = content(shown);
        let value = Value { tag: tag.into(), metadata, content: Some(content) };
        self.put(step, What::Summary(Summary { value: vec![value] }));
    }

    /// Hands everything to the disk. After an error nothing is lost yet: what was not written
    /// waits for the next call, which makes no new attempt within a second.
    pub fn flush(&mut self) -> Result<(), TelemetryError> {
        let result = self.outbox.flush(Instant::now());
        self.named(result)
    }

    /// The last attempt: all that waits, then a sync.
    pub fn close(&mut self) -> Result<(), TelemetryError> {
        let result = self.outbox.close(Instant::now());
        self.named(result)
    }

    /// Values that found no room while the disk failed.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    fn named(&self, result: io::Result<()>) -> Result<(), TelemetryError> {
        result.map_err(|source| TelemetryError::Write { path: self.path.clone(), source })
    }

    fn put(&mut self, step: u64, what: What) {
        let step = i64::try_from(step).unwrap_or(i64::MAX);
        let event = Event { wall_time: now().as_secs_f64(), step, what: Some(what) };
        self.payload.clear();
        self.record.clear();
        // A vector grows as needed, so there is always room.
        let _ = event.encode(&mut self.payload);
        framing::frame(&self.payload, &mut self.record);
        if self.outbox.offer(&self.record, Lane::Essential) == Offer::Refused {
            self.lost += 1;
        }
    }
}

fn content(shown: Shown) -> (Option<SummaryMetadata>, Content) {
    match shown {
        Shown::Scalar(value) => (None, Content::SimpleValue(value)),
        Shown::Image { width, height, png } => {
            let [width, height] = [width, height].map(|n| i32::try_from(n).unwrap_or(i32::MAX));
            (
                None,
                Content::Image(Image { height, width, colorspace: 3, encoded_image_string: png }),
            )
        }
        Shown::Audio(wav) => {
            // One sound: its bytes and an empty label. The older form of the message is shown as
            // a file of unknown kind by TensorBoard's newer server.
            let encoding = AudioPluginData { encoding: WAV }.encode_to_vec();
            let tensor = strings(&[1, 2], vec![wav, Vec::new()]);
            (Some(for_plugin("audio", encoding)), Content::Tensor(tensor))
        }
        Shown::Text(text) => {
            let tensor = strings(&[], vec![text.into_bytes()]);
            (Some(for_plugin("text", Vec::new())), Content::Tensor(tensor))
        }
    }
}

fn strings(shape: &[i64], string_val: Vec<Vec<u8>>) -> Tensor {
    let dim = shape.iter().map(|&size| Dim { size }).collect();
    Tensor { dtype: DT_STRING, tensor_shape: Some(TensorShape { dim }), string_val }
}

fn for_plugin(name: &str, content: Vec<u8>) -> SummaryMetadata {
    SummaryMetadata { plugin_data: Some(PluginData { plugin_name: name.into(), content }) }
}

/// A file that was not there before. TensorBoard reads files in the order of their names.
fn create_new(
    directory: &Path,
    time: Duration,
    host: &str,
) -> Result<(PathBuf, File), TelemetryError> {
    let name = format!("events.out.tfevents.{:010}.{host}", time.as_secs());
    let names = (1..FILES_A_SECOND).map(|number| format!("{name}.{number}"));
    let mut last = None;
    for name in std::iter::once(name.clone()).chain(names) {
        let path = directory.join(name);
        match File::create_new(&path) {
            Ok(file) => return Ok((path, file)),
            Err(source) if source.kind() == io::ErrorKind::AlreadyExists => last = Some(source),
            Err(source) => return Err(TelemetryError::Write { path, source }),
        }
    }
    let source = last.unwrap_or_else(|| io::ErrorKind::AlreadyExists.into());
    Err(TelemetryError::Write { path: directory.join(name), source })
}

/// Since 1970; a clock before that counts as then.
fn now() -> Duration {
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()
}

/// The machine's name, in letters that every file system takes.
fn host_name() -> String {
    let system = rustix::system::uname();
    let name = system.nodename().to_string_lossy().into_owned();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let name: String = name.chars().map(|c| if plain(c) { c } else { '-' }).collect();
    if name.is_empty() { "localhost".into() } else { name }
}

#[cfg(test)]
mod tests;
