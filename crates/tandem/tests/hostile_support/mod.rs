//! The tables of the hostile campaign, multiplied out to cases.

mod arguments; // values of flags, and paths where files are expected
mod files; // corpora, recordings, configurations, voices and records on disk

use crate::support::TestDir;
use std::fmt;

/// Arguments and environment of one run of the program.
#[derive(Clone)]
pub struct Case {
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
}

impl Case {
    pub fn of(args: &[&str]) -> Case {
        Case { args: args.iter().map(ToString::to_string).collect(), env: Vec::new() }
    }

    pub fn with_env(mut self, name: &str, value: &str) -> Case {
        self.env.push((name.into(), value.into()));
        self
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.env {
            write!(f, "{name}={value:?} ")?;
        }
        write!(f, "tandem")?;
        for arg in &self.args {
            match arg.char_indices().nth(80) {
                Some((end, _)) => write!(f, " {:?}...", &arg[..end])?,
                None => write!(f, " {arg:?}")?,
            }
        }
        Ok(())
    }
}

/// Every case; the files that they name are in [`room`].
pub fn cases() -> Vec<Case> {
    let mut all = arguments::cases();
    all.extend(files::cases());
    all
}

/// The directory in which all cases run.
pub fn room() -> TestDir {
    files::room()
}
