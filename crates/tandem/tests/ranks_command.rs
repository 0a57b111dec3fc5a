//! A build without MPI that is started as several ranks ends at once: it never trains independent copies.

#![cfg(not(feature = "mpi"))]

mod support;

use support::{CommandOutput, TestDir};

const TRAIN: [&str; 7] =
    ["train", "--train-data", "demo", "--max-steps", "1", "--checkpoint-dir", "run"];

#[test]
fn several_ranks_without_mpi_are_refused_with_what_to_build() {
    for (name, ranks) in
        [("OMPI_COMM_WORLD_SIZE", "4"), ("PMI_SIZE", "2"), ("SLURM_STEP_NUM_TASKS", "3")]
    {
        let dir = TestDir::new();
        let output = dir.tandem(&TRAIN).env(name, ranks).output().unwrap();
        let output = CommandOutput::of(output);
        let fact = format!("started {ranks} ranks, but this build has no MPI");
        output.assert_failed(&[&fact, "--features mpi", "libopenmpi-dev"]);
        assert!(!dir.path("run").exists(), "nothing was started");
    }
}

#[test]
fn one_rank_and_the_batch_script_of_slurm_are_one_process() {
    let dir = TestDir::new();
    for (name, ranks) in [("OMPI_COMM_WORLD_SIZE", "1"), ("SLURM_NTASKS", "4")] {
        let output = dir.tandem(&["devices"]).env(name, ranks).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
}

#[test]
fn benchmarks_of_ranks_say_how_to_start_them() {
    let dir = TestDir::new();
    for part in ["reduce", "scale"] {
        let output = dir.run(&["bench", part]);
        output.assert_failed(&["started alone", "mpirun -np 2"]);
    }
}
