//! The examples of docs/scale-out.md for Slurm and Kubernetes: their syntax, and the flags that they use.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use support::TestDir;

fn example(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples").join(name)
}

/// Every `--flag` after the name of the program is one of `tandem train`.
#[track_caller]
fn assert_known_flags<'a>(words: impl Iterator<Item = &'a str>) {
    let help = TestDir::new().run(&["train", "--help"]).out;
    let known: BTreeSet<&str> = help.split([' ', ',', '\n']).collect();
    let used = words.skip_while(|word| *word != "train").filter(|word| word.starts_with("--"));
    let used: Vec<&str> = used.collect();
    assert!(used.contains(&"--train-data"), "{used:?}");
    for flag in used {
        assert!(known.contains(flag), "`tandem train` has no {flag}");
    }
}

#[test]
fn the_slurm_script_is_a_script() {
    let path = example("train.slurm");
    let checked = Command::new("bash").arg("-n").arg(&path).output().expect("bash");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let text = fs::read_to_string(&path).unwrap();
    let options = text.lines().filter_map(|line| line.strip_prefix("#SBATCH "));
    assert!(options.clone().count() > 4 && options.clone().all(|line| line.starts_with("--")));
    let srun = text.split("srun ").nth(1).expect("srun starts the ranks");
    let srun = srun.split("|| code").next().unwrap_or_default();
    assert_known_flags(srun.split_whitespace());
}

#[test]
fn the_mpi_job_is_yaml_with_a_launcher_and_workers() {
    let text = fs::read_to_string(example("mpijob.yaml")).unwrap();
    let job: serde_json::Value = yaml_serde::from_str(&text).expect("YAML");
    assert_eq!(
        (&job["apiVersion"], &job["kind"]),
        (&"kubeflow.org/v2beta1".into(), &"MPIJob".into())
    );
    let replicas = &job["spec"]["mpiReplicaSpecs"];
    assert_eq!(replicas["Launcher"]["replicas"], 1);
    assert!(replicas["Worker"]["replicas"].as_u64() > Some(1));
    let container = |kind: &str| &replicas[kind]["template"]["spec"]["containers"][0];
    let command = container("Launcher")["command"].as_array().expect("a command").iter();
    let words: Vec<&str> = command.map(|word| word.as_str().expect("every word is text")).collect();
    assert_eq!(words[0], "mpirun");
    // The ranks get SIGTERM and the time to save before Kubernetes kills the launcher.
    let pause = words.iter().skip_while(|word| **word != "odls_base_sigkill_timeout").nth(1);
    let pause: u64 = pause.expect("a time for ranks to save").parse().expect("seconds");
    let grace = &replicas["Launcher"]["template"]["spec"]["terminationGracePeriodSeconds"];
    assert!(grace.as_u64() > Some(2 * pause), "{grace} and {pause}");
    assert_known_flags(words.into_iter());
    // Workers mount what the command names.
    let volume = &container("Worker")["volumeMounts"][0];
    assert_eq!((&volume["mountPath"], &volume["name"]), (&"/data".into(), &"data".into()));
}
