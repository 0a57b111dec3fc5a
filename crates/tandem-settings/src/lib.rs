//! A setting is declared once; everything else is derived from the declaration.
//!
//! In: a table of the configuration file, declared with [`settings!`]. Out: a plain struct with its default, and a
//! [`Setting`] for each field, from which come the flag, the environment variable, the help, the page
//! docs/configuration.md, the Python classes, the checks of a value, what a resumed run says of a change, and the value
//! of a fine-tuning run. Which of several values counts is decided in [`resolve()`] alone. Knows no command line: the
//! program turns a [`Setting`] into a flag.

pub mod setting; // what is known of a setting
pub mod range; // which numbers it accepts
pub mod value; // a value as text, as typed and as shown
pub mod table; // the settings of a table; `settings!` declares one
pub mod set_keys; // which keys a file sets
pub mod resolve; // which value counts: flag, variable, file, fine-tuning, default

pub use range::Range;
pub use resolve::{Start, Typed, resolve};
pub use set_keys::SetKeys;
pub use setting::{OnResume, Setting};
pub use table::{Difference, OutOfRange, Seen, SettingTable, changes, check};
pub use value::{SettingValue, ValueKind};
