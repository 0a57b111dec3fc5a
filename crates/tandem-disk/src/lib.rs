//! Disk access that a test can watch: every write of a run, and the reads of the user's files.
//!
//! In: what `std::fs` takes. Out: what it returns. A normal run has no hook and behaves like
//! `std::fs`. A test adds a hook that is called before each operation. The hook may end the process,
//! fail the operation as a full or broken disk would, delay it, or record it. [`power_loss`]
//! computes from such a record what a power cut may leave. Starts no thread.

pub mod operation; // 1. one change, and its name
pub mod watch; // 2. hooks that see operations first
pub mod file; // 3. a file that is written
pub mod directory; // 4. create, rename and remove
pub mod replace_file; // 5. replace a file atomically
pub mod directory_lock; // 6. one writer per directory
pub mod power_loss; // 7. what a power cut may leave of a list of changes
pub mod read; // 8. reads of the user's files
pub mod retry; // 9. repeat a read after a transient error
pub mod storage; // 10. what kind of storage a path is on
pub mod fingerprint; // 11. content by its hash

pub use directory::{
    create_dir, create_dir_all, remove_dir_all, remove_file, rename, sync_directory, write,
};
pub use file::File;
pub use fingerprint::Fingerprint;
pub use operation::Operation;
pub use read::{Access, AccessKind, ReadFile};
pub use retry::retry;
pub use watch::{Watch, watch, watch_reads};
