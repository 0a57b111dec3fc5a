//! A fact with its way out, for failures that no library knows.

use std::error::Error;
use std::fmt;
use tandem_units::Hint;

/// A failure of a command itself, with its way out.
#[derive(Debug)]
pub struct Advised {
    fact: String,
    advice: String,
}

impl Advised {
    /// A fact and what to do about it.
    pub fn new(fact: impl Into<String>, advice: impl Into<String>) -> Advised {
        Advised { fact: fact.into(), advice: advice.into() }
    }
}

impl fmt::Display for Advised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fact)
    }
}

impl Error for Advised {}

impl Hint for Advised {
    fn hint(&self) -> Option<String> {
        Some(self.advice.clone())
    }
}
