//! Helpers: clips, and a cache of them.

#![allow(dead_code, reason = "each test file uses its own part of the kit")]

use std::fs;
use std::path::{Path, PathBuf};
use tandem_data::cache::{
    Cache, CachedText, Draft, EntryBuffer, Found, Meta, NewRow, Record, Stamp,
};
use tandem_disk::Fingerprint;
use tandem_disk::directory_lock::{Attempt, DirectoryLock};

pub const SETTINGS: Fingerprint = Fingerprint([3; 16]);
pub const BANDS: usize = 4;

#[derive(Clone, Debug, PartialEq)]
pub struct Clip {
    pub id: String,
    pub text: String,
    pub symbols: Vec<u16>,
    pub mel: Vec<f32>,
}

pub fn clips(count: usize) -> Vec<Clip> {
    let clip = |n: usize| Clip {
        id: format!("clip-{n:04}"),
        text: format!("text number {n}"),
        symbols: (0..n as u16 % 7 + 1).collect(),
        mel: (0..(1 + n % 5) * BANDS).map(|v| (n * 100 + v) as f32).collect(),
    };
    (0..count).map(clip).collect()
}

pub fn record(clip: &Clip) -> Record {
    Record {
        source: Fingerprint::of(clip.text.as_bytes()),
        audio_hash: Fingerprint::of(bytemuck::cast_slice(&clip.mel)),
        audio: Stamp::MISSING,
        frames: (clip.mel.len() / BANDS) as u32,
        symbols: clip.symbols.len() as u32,
        ..Record::default()
    }
}

pub fn settings_dir(dir: &Path) -> PathBuf {
    dir.join(SETTINGS.to_string())
}

pub fn begin(dir: &Path, old: Option<&Cache>) -> Draft {
    let Attempt::Held(lock) = DirectoryLock::try_take(dir).unwrap() else {
        panic!("lock is taken")
    };
    Draft::begin(&settings_dir(dir), SETTINGS, lock, old).unwrap()
}

pub fn add(draft: &mut Draft, clip: &Clip) {
    let mut record = record(clip);
    let text = CachedText::new(record.frames, "en", &clip.symbols, &clip.text, "");
    let place = draft.add_text(record.key(), &text).unwrap();
    (record.text_segment, record.text_offset) = (place.segment, place.offset);
    let place = draft.add_mel(record.key(), &clip.mel).unwrap();
    (record.mel_segment, record.mel_offset) = (place.segment, place.offset);
    draft.push(NewRow { record, id: &clip.id, audio: "", note: "" }, None).unwrap();
}

pub fn meta() -> Meta {
    Meta { bands: BANDS as u32, features: true, ..Meta::default() }
}

pub fn build(dir: &Path, clips: &[Clip]) -> Cache {
    let mut draft = begin(dir, None);
    clips.iter().for_each(|clip| add(&mut draft, clip));
    draft.commit(meta()).unwrap()
}

pub fn open(dir: &Path) -> Option<Cache> {
    match Cache::open(&settings_dir(dir), SETTINGS) {
        Found::Ready(cache) => Some(*cache),
        Found::Nothing | Found::Unusable(_) => None,
    }
}

/// Compares everything readable with the expected values; returns the number of complete rows.
pub fn check_readable_rows(cache: &Cache, clips: &[Clip]) -> usize {
    let (mut whole, mut buffer) = (0, EntryBuffer::default());
    for (row, clip) in clips.iter().enumerate().take(cache.len()) {
        let Some(found) = cache.row(row) else { continue };
        assert_eq!(found.id, clip.id);
        let text = cache.text(found.record, &mut buffer);
        if let Some(text) = text {
            assert_eq!(text.normalized, clip.text);
            assert_eq!(text.symbols().collect::<Vec<_>>(), clip.symbols);
        }
        let mel = cache.mel(found.record);
        if let Some(mel) = &mel {
            assert_eq!(*mel, clip.mel);
        }
        whole += usize::from(text.is_some() && mel.is_some());
    }
    whole
}

pub fn files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        fs::read_dir(settings_dir(dir)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}
