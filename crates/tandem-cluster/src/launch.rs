//! How this process was started: alone, or as one of several ranks.
//!
//! In: environment variables of the launcher. Out: [`Launch`]. Pure: reads the environment through the
//! given function and starts nothing. A build without MPI uses it to refuse a start as several ranks,
//! which would be several independent runs.

/// What a launcher says about this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The program that started the ranks, for messages.
    pub launcher: &'static str,
    pub rank: usize,
    pub ranks: usize,
}

/// Variables of the launchers: number of ranks, own rank.
const LAUNCHERS: [(&str, &str, &str); 3] = [
    ("mpirun (Open MPI)", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    // Set inside a step only: `SLURM_NTASKS` is also set in a batch script, which is one process.
    ("srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
    ("mpirun (MPICH)", "PMI_SIZE", "PMI_RANK"),
];

impl Launch {
    /// `None` for a process that was not started by a launcher that is known here.
    pub fn detect(variable: impl Fn(&str) -> Option<String>) -> Option<Launch> {
        LAUNCHERS.iter().find_map(|&(launcher, ranks, rank)| {
            let ranks = variable(ranks)?.trim().parse().ok()?;
            let rank = variable(rank).and_then(|rank| rank.trim().parse().ok()).unwrap_or(0);
            Some(Launch { launcher, rank, ranks })
        })
    }

    /// The launcher of this process.
    pub fn of_this_process() -> Option<Launch> {
        Launch::detect(|name| std::env::var(name).ok())
    }

    pub fn is_parallel(&self) -> bool {
        self.ranks > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(variables: &[(&str, &str)], expected: Option<(&'static str, usize, usize)>) {
        let found = Launch::detect(|name| {
            let pair = variables.iter().find(|(known, _)| *known == name);
            pair.map(|(_, value)| value.to_string())
        });
        assert_eq!(found.map(|l| (l.launcher, l.rank, l.ranks)), expected);
    }

    #[test]
    fn each_launcher_is_known_by_its_variables() {
        check(&[], None);
        check(
            &[("OMPI_COMM_WORLD_SIZE", "4"), ("OMPI_COMM_WORLD_RANK", "3")],
            Some(("mpirun (Open MPI)", 3, 4)),
        );
        check(&[("PMI_SIZE", "2"), ("PMI_RANK", "1")], Some(("mpirun (MPICH)", 1, 2)));
        check(&[("SLURM_STEP_NUM_TASKS", "8"), ("SLURM_PROCID", "5")], Some(("srun", 5, 8)));
    }

    #[test]
    fn a_batch_script_of_slurm_is_one_process() {
        check(&[("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0")], None);
    }
}
