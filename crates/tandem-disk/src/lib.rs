//! Every change that a run makes to the disk goes through here, so that it can be watched.
//!
//! In: what `std::fs` takes. Out: what it gives; nobody notices the difference, since a usual run is
//! not watched. A test watches: it hears of every change before it is made, and may end the process
//! there, refuse the change as a full or broken disk would, or keep a list from which [`power_loss`]
//! makes what a power cut may leave. Depends on nothing, starts no thread.

pub mod operation; // 1. one change, and its name
pub mod watch; // 2. who hears of it
pub mod file; // 3. a file that is written
pub mod directory; // 4. names that come, go and change
pub mod replace_file; // 5. a file changes at once or not at all
pub mod directory_lock; // 6. one writer per directory
pub mod power_loss; // 7. what a power cut may leave of a list of changes

pub use directory::{
    create_dir, create_dir_all, remove_dir_all, remove_file, rename, sync_directory, write,
};
pub use file::File;
pub use operation::Operation;
pub use watch::{Watch, watch};
