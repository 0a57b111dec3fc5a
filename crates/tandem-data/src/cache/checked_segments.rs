//! Remembers between two starts which text segments were verified.
//!
//! In: the stamps of the segments of a cache whose texts were all verified. Out: which of them need no second check at a
//! start. A start of a million rows would otherwise read half a gigabyte of texts that nobody changed. When a text is used,
//! it is always verified; see [`super::segment`].
//!
//! The file `checked` counts for one index, until the system is started again, and for segments with the same inode, size and
//! times. Damage that changes none of these is found when the text is used. [`forget`] then makes the next start verify all
//! texts, and the damaged ones are made from their sources.

use crate::cache::verified::FileStamp;
use serde::{Deserialize, Serialize};
use std::io::{self, Read};
use std::path::Path;
use tandem_disk::replace_file::replace_file;
use tandem_disk::{ReadFile, retry};
use xxhash_rust::xxh3::xxh3_64;

/// File name inside the settings directory.
pub const FILE_NAME: &str = "checked";
/// Changes when the system is started.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// There are never so many segments that the file is longer.
const LONGEST: u64 = 64 << 10;

/// Segments whose texts were all verified, by number.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckedSegments {
    /// The checksum of the index that refers to the texts.
    index: u64,
    /// The start of the system in which they were verified.
    boot: String,
    segments: Vec<(u32, FileStamp)>,
}

impl CheckedSegments {
    /// The segments that were verified for this index; `None` if the file is missing, damaged, or of another time.
    pub(super) fn read(directory: &Path, index: u64) -> Option<CheckedSegments> {
        let path = directory.join(FILE_NAME);
        let read = || {
            let mut contents = String::new();
            ReadFile::open(&path)?.take(LONGEST).read_to_string(&mut contents)?;
            Ok::<_, io::Error>(contents)
        };
        let contents = retry(read).ok()?;
        let (sum, body) = contents.split_once('\n')?;
        let found: CheckedSegments = serde_json::from_str(body).ok()?;
        let valid = sum == checksum(body) && found.index == index && found.boot == boot_id()?;
        valid.then_some(found)
    }

    pub(super) fn contains(&self, number: u32, stamp: &FileStamp) -> bool {
        self.segments.iter().any(|(known, then)| *known == number && then == stamp)
    }
}

/// Remembers that all texts of an index were verified. Does nothing if the system does not tell when it was started.
pub(super) fn remember(
    directory: &Path,
    index: u64,
    segments: Vec<(u32, FileStamp)>,
) -> io::Result<()> {
    let Some(boot) = boot_id() else { return Ok(()) };
    let body = serde_json::to_string(&CheckedSegments { index, boot, segments })?;
    replace_file(&directory.join(FILE_NAME), format!("{}\n{body}", checksum(&body)).as_bytes())
}

/// Makes the next start verify all texts.
pub(super) fn forget(directory: &Path) -> io::Result<()> {
    tandem_disk::remove_file(&directory.join(FILE_NAME))
}

fn checksum(body: &str) -> String {
    format!("{:016x}", xxh3_64(body.as_bytes()))
}

fn boot_id() -> Option<String> {
    let id = std::fs::read_to_string(BOOT_ID).ok()?;
    Some(id.trim().to_string()).filter(|id| !id.is_empty())
}
