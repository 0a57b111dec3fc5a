//! An error as a user sees it: the fact, its causes and the hint, printed once, in `main`.
//!
//! In: any error of the workspace, through `?` or [`Context`]. Out: [`explain`]. An error enters a
//! [`Failure`] only if it implements [`Hint`]: a new error type without one does not compile, and
//! one with a hint cannot lose it. Errors of other crates have no hint and enter by
//! [`Failure::foreign`], in plain sight.

pub use crate::advised::Advised;
use crate::printer::ReaderGone;
use owo_colors::OwoColorize;
use std::error::Error;
use std::fmt;
use tandem_pipeline::PipelineError;
use tandem_train::TrainError;
use tandem_units::{Hint, Hinted};

/// The result of everything in the program that can fail.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a command failed: an error and what was being done, innermost first.
#[derive(Debug)]
pub struct Failure {
    context: Vec<String>,
    cause: Box<dyn Hinted>,
}

impl Failure {
    /// An error of another crate, which has no hint.
    pub fn foreign(error: impl Error + Send + Sync + 'static) -> Failure {
        Foreign(Box::new(error)).into()
    }

    /// A fact that nobody but a developer can do anything about.
    pub fn bare(fact: impl Into<String>) -> Failure {
        Foreign(fact.into().into()).into()
    }

    /// What the user can do about it, where the cause knows.
    pub fn hint(&self) -> Option<String> {
        self.cause.hint().or_else(|| {
            let of_system = |cause: &(dyn Error + 'static)| cause.is::<std::io::Error>();
            let hint =
                "the system refused it: check the path, what it links to, and its permissions";
            self.any_cause(of_system).then(|| hint.to_string())
        })
    }

    /// Everything that is known, outermost first: context, error, causes of the error.
    pub fn facts(&self) -> Vec<String> {
        let causes = self.causes().map(ToString::to_string);
        self.context.iter().rev().cloned().chain(causes).collect()
    }

    /// Whether the error or one of its causes is of a kind.
    pub fn any_cause(&self, is: impl Fn(&(dyn Error + 'static)) -> bool) -> bool {
        self.causes().any(is)
    }

    /// The error and the errors that caused it, outermost first; without the context.
    fn causes(&self) -> impl Iterator<Item = &(dyn Error + 'static)> {
        let first = &*self.cause as &(dyn Error + 'static);
        std::iter::successors(Some(first), |&cause| cause.source())
    }
}

impl<E: Hinted> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure { context: Vec::new(), cause: Box::new(error) }
    }
}

/// Adds what was being done when an error occurred.
pub trait Context<T> {
    fn context(self, doing: impl Into<String>) -> Result<T>;
    fn with_context<S: Into<String>>(self, doing: impl FnOnce() -> S) -> Result<T>;
}

impl<T, E: Into<Failure>> Context<T> for Result<T, E> {
    fn context(self, doing: impl Into<String>) -> Result<T> {
        self.with_context(|| doing)
    }

    fn with_context<S: Into<String>>(self, doing: impl FnOnce() -> S) -> Result<T> {
        self.map_err(|error| {
            let mut failure = error.into();
            failure.context.push(doing().into());
            failure
        })
    }
}

/// Fails with a fact that has no hint, unless the condition holds.
pub fn ensure(holds: bool, fact: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(Failure::bare(fact)) }
}

/// The whole error as text: `error:`, one `caused by:` for each cause, `hint:` where there is one.
pub fn explain(failure: &Failure) -> String {
    let facts = failure.facts().join("\n  caused by: ");
    let mut text = format!("{} {facts}", "error:".red().bold());
    if let Some(hint) = failure.hint() {
        text.push_str(&format!("\n{} {hint}", "hint:".cyan().bold()));
    }
    text
}

/// Whether the reader of our output closed the pipe (`tandem ... | head`), which is no failure.
pub fn is_closed_pipe(failure: &Failure) -> bool {
    failure.causes().any(|cause| cause.is::<ReaderGone>())
}

/// Whether the user stopped the command.
pub fn is_cancelled(failure: &Failure) -> bool {
    failure.causes().any(|cause| {
        matches!(cause.downcast_ref(), Some(PipelineError::Cancelled))
            || cause.downcast_ref().is_some_and(TrainError::is_cancelled)
    })
}

/// An error of another crate.
#[derive(Debug)]
struct Foreign(Box<dyn Error + Send + Sync>);

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Foreign {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

impl Hint for Foreign {}

#[cfg(test)]
mod tests;
