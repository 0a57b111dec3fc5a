//! The run record of a loader: a file that the user named, or a temporary one.
//!
//! In: the events of a loader. Out: the report of the run so far, and its record for `tandem report`. The
//! temporary file has no name, so that nothing is left behind by a process that is killed.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tandem::advised::Advised;
use tandem::failure::{Context, Failure, Result};
use tandem_disk::replace_file::replace_file;
use tandem_telemetry::event::RunHeader;
use tandem_telemetry::record::RecordOptions;

use tandem_telemetry::{RecordFile, Recorder, Recording, Report, Rules};

/// The longest a report waits for the events that were sent before it.
const SYNC: Duration = Duration::from_secs(2);

pub struct LoaderRecord {
    // None once the record is complete.
    recording: Option<Recording>,
    recorder: Recorder,
    place: RecordTarget,
}

enum RecordTarget {
    Named(PathBuf),
    Temporary(TemporaryFile),
}

impl LoaderRecord {
    pub fn start(path: Option<PathBuf>, settings: serde_json::Value) -> Result<LoaderRecord> {
        let header = RunHeader::now("tandem-python", env!("CARGO_PKG_VERSION"), settings);
        let options = RecordOptions::default();
        let (recording, place) = match path {
            Some(path) => {
                let named = || format!("cannot start the run record `{}`", path.display());
                let recording = Recording::create(&path, header, options).with_context(named)?;
                (recording, RecordTarget::Named(path))
            }
            None => {
                let file = tempfile::tempfile().map_err(Failure::foreign);
                let file = file.context("cannot create a temporary file for the run record")?;
                let file = TemporaryFile(Arc::new(Mutex::new(file)));
                let recording = Recording::start(Box::new(file.clone()), header, options)?;
                (recording, RecordTarget::Temporary(file))
            }
        };
        Ok(LoaderRecord { recorder: recording.recorder(), recording: Some(recording), place })
    }

    pub fn recorder(&self) -> Recorder {
        self.recorder.clone()
    }

    pub fn report(&self) -> Report {
        self.recorder.sync(SYNC);
        Report::from_summary(&self.recorder.summary(), None, &Rules::default())
    }

    /// Copies what is recorded so far.
    pub fn save(&self, path: &Path) -> Result<()> {
        self.recorder.sync(SYNC);
        let contents = match &self.place {
            RecordTarget::Named(path) => std::fs::read(path),
            RecordTarget::Temporary(file) => file.contents(),
        };
        let contents = contents.map_err(Failure::foreign).context("cannot read the run record")?;
        replace_file(path, &contents).map_err(|error| {
            let fact = format!("cannot write `{}`: {error}", path.display());
            Advised::new(fact, "check the directory, its free space and its permissions").into()
        })
    }

    /// Completes the record.
    pub fn finish(&mut self) {
        if let Some(recording) = self.recording.take() {
            recording.finish();
        }
    }
}

/// A file without a name. Every write goes to its end, whatever was read before.
#[derive(Clone)]
struct TemporaryFile(Arc<Mutex<File>>);

impl TemporaryFile {
    fn contents(&self) -> io::Result<Vec<u8>> {
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut contents = Vec::new();
        file.seek(SeekFrom::Start(0))?;
        file.read_to_end(&mut contents)?;
        Ok(contents)
    }
}

impl Write for TemporaryFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::End(0))?;
        file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl RecordFile for TemporaryFile {
    /// It does not outlive the process.
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}
