//! Quantities that carry their unit, and ids that cannot be mixed up.
//!
//! Depends on nothing of ours; every other crate may use it. Conversion between two
//! quantities needs the thing that relates them: a [`SampleRate`] turns [`Samples`] into
//! [`Seconds`], a [`Hop`] turns them into [`Frames`].

pub mod quantity; // seconds, samples, frames, bytes, rates
pub mod order; // seed, epoch, ticket: what decides order and chance
pub mod hint; // the way out that goes with an error

pub use hint::Hint;
pub use order::{Epoch, Seed, Ticket};
pub use quantity::{Bytes, Frames, Hop, SampleRate, Samples, Seconds};
