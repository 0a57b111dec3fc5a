//! What can fail between ranks. Errors are cloned: one lost rank fails every call that is under way.

use tandem_units::Hint;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClusterError {
    /// It died, hangs, or cannot be reached.
    #[error("rank {rank} on host {host} is lost: {why}")]
    Lost { rank: usize, host: String, why: String },
    /// It ended by itself, with an error of its own.
    #[error("rank {rank} on host {host} stopped: {why}")]
    Stopped { rank: usize, host: String, why: String },
    /// The other ranks gave this one up.
    #[error("the other ranks continue without rank {rank}, this one, which they lost: {why}")]
    GivenUp { rank: usize, why: String },
    /// Ranks that must be equal are not.
    #[error("rank {rank} on host {host} has {what} than rank 0")]
    Differs { rank: usize, host: String, what: &'static str },
    /// Ranks that do different things at the same time: a fault of the program.
    #[error("rank {rank} on host {host} is {there}, but rank 0 is {first}")]
    OutOfStep { rank: usize, host: String, there: String, first: String },
    /// MPI knows fewer ranks than the launcher started.
    #[error("{launcher} started {started} ranks, but MPI sees {seen}")]
    NotConnected { launcher: &'static str, started: usize, seen: usize },
    #[error("MPI cannot be started: {why}")]
    Start { why: String },
    #[error("MPI failed in {call}: {why}")]
    Mpi { call: &'static str, why: String },
    #[error("the communication thread ended")]
    ThreadEnded,
}

impl ClusterError {
    /// Whether another rank reports the cause, too.
    pub fn is_told_by_another_rank(&self) -> bool {
        matches!(self, Self::Stopped { .. } | Self::Lost { .. })
    }
}

impl Hint for ClusterError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Lost { .. } | Self::GivenUp { .. } => {
                "add `--resume` to continue from the newest checkpoint, with the machines that are \
                 left: `mpirun` with fewer ranks and a larger `--grad-accum` keeps the effective batch"
                    .into()
            }
            Self::Stopped { .. } => "the message of that rank says why".into(),
            Self::Differs { .. } => {
                "start all ranks with the same program, flags, configuration file and corpus".into()
            }
            Self::OutOfStep { .. } => {
                "this is a fault of the program, please report it; add `--resume` to continue from the \
                 newest checkpoint"
                    .into()
            }
            Self::NotConnected { .. } => {
                "use the `mpirun` of the MPI library that this program was built with; with Slurm: \
                 `srun --mpi=pmix`"
                    .into()
            }
            Self::Start { .. } | Self::Mpi { .. } | Self::ThreadEnded => return None,
        })
    }
}
