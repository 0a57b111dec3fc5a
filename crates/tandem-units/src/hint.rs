//! The way out that goes with an error.

/// An error that can tell the user what to do about it.
///
/// The fact stays in `Display`, the cause in `source`; only the advice is here.
pub trait Hint {
    /// One sentence in the imperative, or nothing where there is no good advice.
    fn hint(&self) -> Option<String>;
}
