//! Prepared utterances on disk, so that a second start reads them instead of the corpus.
//!
//! In: what the text and audio modules made of a row, with the key of everything that went into
//! it. Out: lengths and places of all rows at once ([`Cache`]), text and mel of one row on demand.
//! Nothing read here is believed before its checksum fits; a part that does not fit is reported
//! as missing, and only that part is made again. Next on the path: [`crate::batch`].
//!
//! ```text
//! CORPUS/.tandem-cache/            or the user's cache directory, where the corpus is read-only
//!   lock                           held by the one process that builds; says which
//!   3f9a.../                       one directory per set of settings
//!     index                        one record per row, replaced whole
//!     text-000001.seg              symbols and normalised text, appended
//!     mel-000001.seg               features, appended (`--cache-dataset` only)
//! ```

pub mod fingerprint; // 1. what a thing is known by
pub mod location; // 2. which directory holds the cache
pub mod segment; // 3. checked entries, appended
pub mod text_entry; // 4. a row's text as bytes
pub mod record; // 5. one row, fixed size
pub mod index; // 6. all rows, checked in blocks
pub mod draft; // 7. the next state, being written
pub mod store; // 8. the current state, being read

pub use draft::{Draft, Leftovers, NewRow};
pub use fingerprint::{Fingerprint, Stamp};
pub use index::Meta;
pub use location::CacheLocation;
pub use record::{Record, RowState};
pub use store::{Cache, Found, Row};
pub use text_entry::CachedText;
