//! Advice that goes with an error.

/// An error with advice for the user.
///
/// `Display` states the fact and `source` the cause; the hint states only what to do.
pub trait Hint {
    /// One sentence in the imperative, or `None` without good advice.
    fn hint(&self) -> Option<String>;
}
