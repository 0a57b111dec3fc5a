//! One row of the corpus as the index keeps it: fixed size, no pointers.

use crate::cache::segment::EntryLocation;
use crate::cache::{Fingerprint, Stamp};
use bytemuck::{Pod, Zeroable};

/// One row: what it was made of, how long it is, where its parts are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Record {
    /// Hash of the manifest row: id, text, speaker, language, split.
    pub source: Fingerprint,
    /// Hash of the recording's bytes.
    pub audio_hash: Fingerprint,
    /// The recording when it was last read.
    pub audio: Stamp,
    /// Offset of the text entry.
    pub text_offset: u64,
    /// Offset of the mel entry.
    pub mel_offset: u64,
    /// Where the row's id, audio path and note begin in the index's names.
    pub names_offset: u64,
    /// Segment of the text entry; 0: there is none.
    pub text_segment: u32,
    /// Segment of the mel entry; 0: there is none.
    pub mel_segment: u32,
    /// Mel frames of the recording.
    pub frames: u32,
    /// Symbols of the transcript.
    pub symbols: u32,
    /// Line of the manifest, from 1.
    pub line: u32,
    /// Bytes of the note: why the row is not usable.
    pub note_length: u32,
    /// Bytes of the id.
    pub id_length: u16,
    /// Bytes of the audio path.
    pub audio_length: u16,
    /// Which manifest of [`crate::cache::Meta::sources`].
    pub manifest: u16,
    /// Which speaker of [`crate::cache::Meta::speakers`].
    pub speaker: u16,
    /// Which language of [`crate::cache::Meta::languages`].
    pub language: u16,
    /// 0 for training, 1 for evaluation.
    pub split: u8,
    /// A [`RowState`].
    pub state: u8,
    /// Room for what comes later; zero.
    pub reserved: [u8; 12],
}

/// Whether a row can be trained on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowState {
    /// It has text and sound.
    Usable,
    /// It has neither; its note says why.
    Rejected,
}

const _: () = assert!(size_of::<Record>() == 128, "the index format fixes the record's size");

impl Record {
    /// Whether the row can be trained on.
    pub fn state(&self) -> RowState {
        if self.state == 0 { RowState::Usable } else { RowState::Rejected }
    }

    /// Where the text entry is.
    pub fn text(&self) -> EntryLocation {
        EntryLocation { segment: self.text_segment, offset: self.text_offset }
    }

    /// Where the mel entry is.
    pub fn mel(&self) -> EntryLocation {
        EntryLocation { segment: self.mel_segment, offset: self.mel_offset }
    }

    /// What both entries are filed under. Settings are not part of it: they choose the directory.
    pub fn key(&self) -> Fingerprint {
        row_key(&self.source, &self.audio_hash)
    }
}

/// The key of a row: everything of the corpus that its entries were made from.
///
/// Both are hashes already, so their sum is one too; it is asked for a million times at a start.
/// One of them is turned, so that a row and a recording with the same hash do not meet.
pub fn row_key(source: &Fingerprint, audio_hash: &Fingerprint) -> Fingerprint {
    let [source, audio] = [source, audio_hash].map(|hash| u128::from_le_bytes(hash.0));
    Fingerprint(source.wrapping_add(audio.rotate_left(64)).to_le_bytes())
}
