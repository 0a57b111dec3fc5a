//! The moments of writing at which a kill or a full disk could do harm, each with a name.
//!
//! In a usual build this does nothing. Tests, and builds with the feature `failpoints`, have a hook
//! called at each of them: it may end the process, or give an error as the disk would.

use std::io;

/// Called with the name of the moment.
#[cfg(any(test, feature = "failpoints"))]
pub type Hook = Box<dyn FnMut(&str) -> io::Result<()> + Send>;

/// Who is told.
#[derive(Default)]
pub struct Moments {
    #[cfg(any(test, feature = "failpoints"))]
    hook: Option<Hook>,
}

impl Moments {
    /// Something was done, or is about to be.
    #[cfg(any(test, feature = "failpoints"))]
    pub fn reached(&mut self, moment: &dyn Fn() -> String) -> io::Result<()> {
        self.hook.as_mut().map_or(Ok(()), |hook| hook(&moment()))
    }

    /// Something was done, or is about to be.
    #[cfg(not(any(test, feature = "failpoints")))]
    pub fn reached(&mut self, _moment: &dyn Fn() -> String) -> io::Result<()> {
        Ok(())
    }

    /// Has `hook` called from now on.
    #[cfg(any(test, feature = "failpoints"))]
    pub fn call(&mut self, hook: Hook) {
        self.hook = Some(hook);
    }
}

impl std::fmt::Debug for Moments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Moments")
    }
}
