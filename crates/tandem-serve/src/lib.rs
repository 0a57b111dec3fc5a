//! The speech server: a trained voice behind OpenAI's speech API.
//!
//! In: a checkpoint and requests over HTTP. Out: audio, sentence by sentence as it is ready. Synthesis
//! runs on its own threads behind a bounded queue; the async threads of `tandem-http` only move bytes.
//! Never: an answer without a token on an address that other machines reach, a file written, a request
//! to another host.

pub mod voices; // 1. the names that requests may use
pub mod token; // 1. the secret of an open server
pub mod request; // 2. JSON -> a checked request
pub mod answer_memory; // 3. bytes that clients have not taken
pub mod workers; // 3. the queue and the threads that synthesize
pub mod speech; // 3. a checkpoint as a worker
pub mod encode; // 4. samples -> WAV, PCM, FLAC
mod routes; // 5. which path does what
mod page; // 5. the page to type and listen in
mod metrics; // 5. numbers for Prometheus
pub mod server; // 6. start and stop
pub mod api_error; // refusals in OpenAI's shape
pub mod error; // errors at the start, with hints

pub use error::ServeError;
pub use server::{ServeOptions, SpeechServer};
pub use token::Token;
pub use voices::Voices;
