//! Several processes ("ranks") that work on one job: who they are, what they sum, whether all are alive.
//!
//! In: calls of the training thread. Out: the same result on every rank, or an error that names the
//! rank that is missing. No call waits without a limit: a rank that dies, hangs or loses its network
//! fails every call of all others. Knows nothing about voices. MPI types appear in
//! `mpi_transport.rs` and its folder only.

pub mod launch; // 1. how many ranks this process was started as
pub mod identity; // 2. host, process and cores of a rank
pub mod transport; // 3. what carries data between ranks: the trait
pub mod in_process; // 3. threads of one process, for tests
#[cfg(feature = "mpi")]
mod mpi_transport; // 3. MPI
#[cfg(any(feature = "mpi", test))]
mod exchange; // 3. the sum of two ranks
#[cfg(any(feature = "mpi", test))]
mod shared_memory; // 3. its messages on one machine
mod message; // 4. small messages: heartbeats, failures
mod watch; // 5. which rank has been silent for too long
mod service; // 6. the calls under way, and what becomes of them
mod shared; // 7. which thread makes the calls
pub mod cluster; // 8. the handle that everybody else uses
pub mod error; // what can fail, with a hint

pub use cluster::{AGREED_VALUES, Cluster, ClusterOptions, PendingSum, Topic};
pub use error::ClusterError;
pub use launch::Launch;
