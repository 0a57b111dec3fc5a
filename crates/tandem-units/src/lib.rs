//! Quantities with units, and ids that cannot be confused.
//!
//! Depends on no other crate of the workspace; every other crate may use it. A conversion needs the
//! quantity that relates two others: a [`SampleRate`] turns [`Samples`] into [`Seconds`], a [`Hop`]
//! turns them into [`Frames`].

pub mod quantity; // seconds, samples, frames, bytes, rates
pub mod figures; // percent and median, in one way everywhere
pub mod lang; // the language of pages and sentences, and its numbers
pub mod order; // seed, epoch, ticket: order and randomness
pub mod hint; // advice that goes with an error
pub mod panic_guard; // a panic in a library becomes an error

pub use figures::{median, percent, signed_percent};
pub use hint::{Hint, Hinted};
pub use lang::Lang;
pub use order::{Epoch, Seed, Ticket};
pub use quantity::{Bytes, Frames, Hop, SampleRate, Samples, Seconds};
