//! An error of the program itself: a fact and a hint.

use std::error::Error;
use std::fmt;
use tandem_units::Hint;

/// An error of a command itself, with its hint.
#[derive(Debug)]
pub struct Advised {
    fact: String,
    advice: String,
}

impl Advised {
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
