//! The HTTP layer of both servers: the live page of a run and the speech server.
//!
//! In: an address and an axum router. Out: a [`Server`] on its own named threads, which answers only
//! hosts that it knows, closes connections of slow clients, and ends within a limit. HTTP itself is
//! hyper's. Knows nothing about runs or speech.

pub mod address; // 1. a bound port
pub mod guard; // 2. which requests are refused, headers of every answer
pub mod server; // 3. threads, connections, the end
mod connection; // 3. one connection and its time limits
pub mod error; // errors and hints

pub use address::Listening;
pub use error::HttpError;
pub use guard::Hosts;
pub use server::{Limits, Server, ServerOptions, Stopped};
