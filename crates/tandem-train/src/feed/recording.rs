//! One recording of a prepared corpus: read, compared with what was prepared, decoded.
//!
//! In: its path and its record in the cache. Out: sound, borrowed until the next recording. Next:
//! [`crate::feed::load`].

use crate::prepare::Prepared;
use std::path::Path;
use std::sync::Arc;
use tandem_audio::{Decoder, FileReader, Sound};
use tandem_data::cache::{Record, Stamp};
use tandem_disk::Fingerprint;

/// Receives the path of each file before it is read.
pub(crate) type OnFile<'a> = &'a mut dyn FnMut(&Path);

/// Owns the buffers of a worker for files and samples.
pub(crate) struct RecordingReader {
    prepared: Arc<Prepared>,
    file: FileReader,
    decoder: Decoder,
}

impl RecordingReader {
    pub(crate) fn new(prepared: Arc<Prepared>) -> RecordingReader {
        let decoder = Decoder::new(prepared.settings.mel.rate, prepared.settings.audio);
        RecordingReader { prepared, file: FileReader::default(), decoder }
    }

    /// The sound of a row, or why it cannot be used.
    pub(crate) fn read(
        &mut self,
        audio: &str,
        record: &Record,
        on_file: OnFile<'_>,
    ) -> Result<Sound<'_>, String> {
        let settings = &self.prepared.settings;
        let path = self.prepared.root.join(audio);
        on_file(&path);
        let read = self.file.read(&path, &settings.audio);
        let bytes = read.map_err(|error| in_one_line(&error))?;
        // After the bytes: a file that is written to meanwhile has a new stamp by now.
        let stamp = Stamp::of(&path).map_err(|error| in_one_line(&error))?;
        // The same bytes with a new stamp are unchanged. Other bytes may not match the prepared text.
        if stamp != record.audio && Fingerprint::of(bytes) != record.audio_hash {
            return Err("the recording changed since it was prepared".into());
        }
        let extension = path.extension().and_then(|extension| extension.to_str());
        let sound = self.decoder.decode(bytes, extension).map_err(|error| in_one_line(&error))?;
        if settings.mel.frames(sound.len()).0 != record.frames as usize {
            return Err("the recording has another length than when it was prepared".into());
        }
        Ok(sound)
    }
}

/// An error and its cause on one line, for the run record.
pub(crate) fn in_one_line(error: &dyn std::error::Error) -> String {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{error}{cause}")
}
