//! The program as one of several ranks, started by `mpirun` or `srun`.
//!
//! In: how this process was started. Out: the other ranks, or an error before any work is done. A process
//! never works on its own where the user started several of them together: that would be several
//! independent runs in one directory. Rank 0 prints; the others print their own errors only.

use crate::failure::{Advised, Failure, Result};
use crate::printer::Printer;
use std::time::Duration;
use tandem_cluster::{Cluster, ClusterError, Launch};
use tandem_train::{PrepareOptions, TrainError};

/// Flags of commands that several ranks can run together.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Ranks (mpirun, srun)")]
pub struct RankArgs {
    /// Seconds without a heartbeat after which a rank is lost and the job ends [default: 12]
    #[arg(long, value_name = "SECONDS", env = "TANDEM_RANK_TIMEOUT", value_parser = timeout)]
    pub rank_timeout: Option<Duration>,
}

fn timeout(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (2.0..=86_400.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("expected seconds, from 2 to 86400".into()),
    }
}

/// Refuses what would run as independent copies: a build without MPI, or a command that knows no ranks.
pub fn refuse_copies(launch: Option<&Launch>, knows_ranks: bool) -> Result<(), Advised> {
    let Some(Launch { launcher, ranks, .. }) = launch.filter(|launch| launch.is_parallel()) else {
        return Ok(());
    };
    if !cfg!(feature = "mpi") {
        let fact = format!(
            "{launcher} started {ranks} ranks, but this build has no MPI: they would be {ranks} \
             independent runs"
        );
        let advice = "build with MPI: install libopenmpi-dev, openmpi-bin and libclang-dev, then \
                      `cargo build --release -p tandem --features mpi`; docs/scale-out.md";
        return Err(Advised::new(fact, advice));
    }
    if !knows_ranks {
        let fact =
            format!("{launcher} started {ranks} ranks of a command that runs in one process");
        return Err(Advised::new(fact, "start this command without `mpirun` or `srun`"));
    }
    Ok(())
}

/// Joins the other ranks; none where this process was started alone. Divides the cores of a machine
/// among its ranks, and silences all ranks but the first.
pub fn join(args: &RankArgs, out: &mut Printer) -> Result<Option<Cluster>> {
    let Some(cluster) = connect(args)? else { return Ok(None) };
    if !cluster.is_first() {
        out.only_errors(format!(
            "rank {} on host {}",
            cluster.rank(),
            cluster.host(cluster.rank())
        ));
    }
    out.note(&describe(&cluster));
    if let Some(warning) = cluster.warning() {
        out.note(&format!("warning: {warning}"));
    }
    share_cores(&cluster)?;
    Ok(Some(cluster))
}

#[cfg(feature = "mpi")]
fn connect(args: &RankArgs) -> Result<Option<Cluster>> {
    use tandem_cluster::ClusterOptions;
    let usual = ClusterOptions::default();
    let silence_limit = args.rank_timeout.unwrap_or(usual.silence_limit);
    let program = format!("tandem {}", env!("CARGO_PKG_VERSION"));
    Ok(Cluster::join(ClusterOptions { silence_limit, program, ..usual })?)
}

#[cfg(not(feature = "mpi"))]
fn connect(_args: &RankArgs) -> Result<Option<Cluster>> {
    Ok(None)
}

/// Seconds that a rank should have to save a checkpoint after a stop.
const TIME_TO_SAVE: u64 = 10;

/// How to stop a run under Open MPI with a checkpoint. None where `mpirun` was told to give the ranks enough time.
///
/// After SIGTERM or Ctrl-C it passes SIGTERM on after this time (1 s unless set), and SIGKILL after the same time again.
/// It passes SIGUSR1 on at once and then waits.
pub fn how_to_stop(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    variable("OMPI_COMM_WORLD_SIZE")?;
    let set = variable("OMPI_MCA_odls_base_sigkill_timeout");
    let seconds = set.and_then(|seconds| seconds.trim().parse::<u64>().ok());
    if seconds.is_some_and(|seconds| seconds >= TIME_TO_SAVE) {
        return None;
    }
    Some(
        "to stop this run with a checkpoint, send SIGUSR1 to `mpirun`; after Ctrl-C or SIGTERM it kills the ranks \
         within 2 s, unless `--mca odls_base_sigkill_timeout 20` gives them time to save"
            .into(),
    )
}

/// `ranks: 4 (2 on a, 2 on b)`
fn describe(cluster: &Cluster) -> String {
    let mut hosts: Vec<(&str, usize)> = Vec::new();
    for identity in cluster.identities() {
        match hosts.iter_mut().find(|(host, _)| *host == identity.host) {
            Some((_, count)) => *count += 1,
            None => hosts.push((&identity.host, 1)),
        }
    }
    let hosts: Vec<String> =
        hosts.iter().map(|(host, count)| format!("{count} on {host}")).collect();
    format!("ranks: {} ({})", cluster.ranks(), hosts.join(", "))
}

/// Threads of this process: its part of the cores that it may use.
pub fn cores_of(cluster: Option<&Cluster>) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (cores / cluster.map_or(1, Cluster::ranks_on_same_cores)).max(1)
}

/// Data workers of this rank: what the user set, or its part of the default.
pub fn workers(set: usize, cluster: &Cluster) -> usize {
    if set == PrepareOptions::default().workers { cores_of(Some(cluster)) } else { set }
}

fn share_cores(cluster: &Cluster) -> Result<()> {
    // Set by the user.
    if std::env::var_os("RAYON_NUM_THREADS").is_some() {
        return Ok(());
    }
    let threads = cores_of(Some(cluster));
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().map_err(Failure::foreign)
}

/// Ends the job on this rank, well or not. The work of rank 0 is on disk when this is called.
pub fn leave<T>(cluster: Option<&Cluster>, result: Result<T>) -> Result<T> {
    let Some(cluster) = cluster else { return result };
    match result {
        Ok(done) => {
            cluster.finish()?;
            Ok(done)
        }
        Err(error) => {
            cluster.fail(&error.facts().join(": "));
            Err(error)
        }
    }
}

/// Whether rank 0 reports the same error: the loss or the stop of another rank.
pub fn is_told_by_rank_0(failure: &Failure) -> bool {
    let told = |cause: &(dyn std::error::Error + 'static)| {
        let cluster = match cause.downcast_ref::<TrainError>() {
            Some(TrainError::Cluster(error)) => Some(error),
            _ => cause.downcast_ref::<ClusterError>(),
        };
        cluster.is_some_and(ClusterError::is_told_by_another_rank)
    };
    failure.any_cause(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_was_started_alone_is_never_refused() {
        let one = Launch { launcher: "mpirun", rank: 0, ranks: 1 };
        for launch in [None, Some(&one)] {
            assert!(refuse_copies(launch, false).is_ok());
        }
    }

    #[test]
    fn open_mpi_that_leaves_no_time_to_save_is_named() {
        let told = |set: &[(&str, &str)]| {
            how_to_stop(|name| {
                let pair = set.iter().find(|(known, _)| *known == name);
                pair.map(|(_, value)| value.to_string())
            })
        };
        let (open_mpi, pause) =
            (("OMPI_COMM_WORLD_SIZE", "2"), "OMPI_MCA_odls_base_sigkill_timeout");
        assert_eq!(told(&[]), None);
        assert_eq!(told(&[("SLURM_STEP_NUM_TASKS", "2")]), None);
        assert!(told(&[open_mpi]).is_some_and(|text| text.contains("SIGUSR1")));
        assert!(told(&[open_mpi, (pause, "1")]).is_some());
        assert!(told(&[open_mpi, (pause, "soon")]).is_some());
        assert_eq!(told(&[open_mpi, (pause, "20")]), None);
    }

    #[test]
    fn several_ranks_of_a_command_for_one_process_are_refused() {
        let four = Launch { launcher: "mpirun", rank: 3, ranks: 4 };
        assert!(refuse_copies(Some(&four), false).is_err());
        assert_eq!(refuse_copies(Some(&four), true).is_ok(), cfg!(feature = "mpi"));
    }
}
