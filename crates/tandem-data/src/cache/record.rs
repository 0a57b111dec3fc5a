//! One row of the corpus in the index: fixed size, no pointers.

use crate::cache::Stamp;
use crate::cache::segment::EntryLocation;
use bytemuck::{Pod, Zeroable};
use tandem_disk::Fingerprint;

/// One row: the hashes of its inputs, its lengths, and the locations of its entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Record {
    /// Hash of the manifest row: id, text, speaker, language, split.
    pub source: Fingerprint,
    /// Hash of the recording's bytes.
    pub audio_hash: Fingerprint,
    /// Stamp of the recording when it was last read.
    pub audio: Stamp,
    /// Offset of the text entry.
    pub text_offset: u64,
    /// Offset of the mel entry.
    pub mel_offset: u64,
    /// Offset of the row's id, audio path and note in the index's names.
    pub names_offset: u64,
    /// Segment of the text entry; 0 for none.
    pub text_segment: u32,
    /// Segment of the mel entry; 0 for none.
    pub mel_segment: u32,
    /// Mel frames of the recording.
    pub frames: u32,
    /// Symbols of the transcript.
    pub symbols: u32,
    /// Line of the manifest, from 1.
    pub line: u32,
    /// Length in bytes of the note: why the row is not usable.
    pub note_length: u32,
    pub id_length: u16,
    pub audio_length: u16,
    /// Index into [`crate::cache::Meta::sources`].
    pub manifest: u16,
    /// Index into [`crate::cache::Meta::speakers`].
    pub speaker: u16,
    /// Index into [`crate::cache::Meta::languages`].
    pub language: u16,
    /// 0 for training, 1 for evaluation.
    pub split: u8,
    /// A [`RowState`].
    pub state: u8,
    /// Reserved; zero.
    pub reserved: [u8; 12],
}

/// Whether a row can be trained on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowState {
    Usable,
    /// It has no entries; its note gives the reason.
    Rejected,
}

const _: () = assert!(size_of::<Record>() == 128, "the index format fixes the record's size");

impl Record {
    /// Its bytes on disk.
    pub fn as_bytes(&self) -> &[u8] {
        bytemuck::bytes_of(self)
    }

    /// `None` for another number of bytes than a record has.
    pub fn from_bytes(bytes: &[u8]) -> Option<Record> {
        bytemuck::try_pod_read_unaligned(bytes).ok()
    }

    pub fn state(&self) -> RowState {
        if self.state == 0 { RowState::Usable } else { RowState::Rejected }
    }

    pub fn text(&self) -> EntryLocation {
        EntryLocation { segment: self.text_segment, offset: self.text_offset }
    }

    pub fn mel(&self) -> EntryLocation {
        EntryLocation { segment: self.mel_segment, offset: self.mel_offset }
    }

    /// The key of both entries. Settings are not part of it: they select the directory.
    pub fn key(&self) -> Fingerprint {
        row_key(&self.source, &self.audio_hash)
    }
}

/// The key of a row: a hash of everything in the corpus that its entries depend on.
///
/// Both inputs are hashes, so their sum is one too; it is computed a million times at a start. One
/// of them is rotated, so that a row and a recording with the same hash do not collide.
pub fn row_key(source: &Fingerprint, audio_hash: &Fingerprint) -> Fingerprint {
    let [source, audio] = [source, audio_hash].map(|hash| u128::from_le_bytes(hash.0));
    Fingerprint(source.wrapping_add(audio.rotate_left(64)).to_le_bytes())
}
