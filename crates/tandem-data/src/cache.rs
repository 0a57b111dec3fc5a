//! Prepared utterances on disk, so that a second start reads them instead of the corpus.
//!
//! In: the processed text and audio of a row, with a key over everything that influenced them. Out:
//! the lengths of all rows at once ([`Cache`]), text and mel frames of one row on demand. Nothing is
//! used before its checksum is verified. A part that does not match counts as missing, and only that
//! part is computed again. Next on the path: [`crate::batch`].
//!
//! ```text
//! CORPUS/.tandem-cache/            or the user's cache directory if the corpus is read-only
//!   lock                           locked by the process that builds; contains its id
//!   3f9a.../                       one directory per set of settings
//!     index                        one record per row, replaced whole
//!     text-000001.seg              symbols and normalised text, appended
//!     mel-000001.seg               features, appended (`--cache-dataset` only)
//!     checked                      which text segments the last start verified
//! ```

pub mod stamp; // 1. size, time and inode of a file
pub mod location; // 2. which directory holds the cache
pub mod segment; // 3. append-only files of entries with checksums
mod verified; // entries that need no second check in this process
mod checked_segments; // segments that need no second check at the next start
mod entry_buffer; // memory for the entries that are read
pub mod text_entry; // 4. a row's text as bytes
pub mod record; // 5. one row, fixed size
pub mod index; // 6. all rows, with a checksum per block
pub mod draft; // 7. writes the next state
pub mod store; // 8. reads the current state

pub use draft::{Draft, LeftText, Leftovers, NewRow};
pub use entry_buffer::EntryBuffer;
pub use index::{Meta, RowBuffer};
pub use location::CacheLocation;
pub use record::{Record, RowState};
pub use segment::EntryLocation;
pub use stamp::Stamp;
pub use store::{Cache, Found, FoundRow, Row};
pub use text_entry::CachedText;
