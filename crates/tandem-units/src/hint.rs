//! The advice that goes with an error.
//!
//! Every public error of the workspace implements [`Hint`]. The program accepts an error only as
//! [`Hinted`], so an error without an `impl Hint` does not compile there. Next: `tandem/failure.rs`
//! prints the hint.

use std::error::Error;

/// An error that can say what the user can do about it.
///
/// The fact stays in `Display`, the cause in `source`; only the advice is here. A variant that
/// wraps another error of the workspace returns the hint of that error.
pub trait Hint {
    /// One sentence in the imperative, or `None` where there is no good advice.
    fn hint(&self) -> Option<String> {
        None
    }
}

/// An error with its hint, as a trait object that can cross threads.
pub trait Hinted: Error + Hint + Send + Sync + 'static {}

impl<E: Error + Hint + Send + Sync + 'static> Hinted for E {}

impl Hint for std::io::Error {}
