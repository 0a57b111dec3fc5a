//! The native half of the Python package `tandem`; `python/tandem` is the half that users see.
//!
//! In: calls from Python, settings as JSON. Out: batches and sound as memory that NumPy uses in place, and
//! exceptions of `tandem.errors` with a hint. Long work runs on threads of its own while this module looks
//! for signals, so Ctrl-C works. A panic becomes an exception. No thread of ours ever calls Python.

mod errors; // failures as Python exceptions
mod interruptible; // work that Ctrl-C can end
mod memory; // our memory as NumPy arrays
mod process; // objects whose threads a fork leaves behind
mod settings; // settings: checks, TOML, their reference
mod corpus; // prepare
mod loader; // batches
mod record; // the run record of a loader
mod voice; // speech of a trained voice
mod inspect; // one text, one recording

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::corpus::prepare;
    #[pymodule_export]
    use crate::inspect::{features_of_file, features_of_samples, licenses, text};
    #[pymodule_export]
    use crate::interruptible::{panic_for_tests, panic_here_for_tests, wait_for_tests};
    #[pymodule_export]
    use crate::loader::NativeLoader;
    #[pymodule_export]
    use crate::memory::Memory;
    #[pymodule_export]
    use crate::settings::{
        check_settings, convert_settings, data_keys, read_settings, settings_reference,
        settings_to_toml,
    };
    #[pymodule_export]
    use crate::voice::NativeVoice;

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
