//! `tandem profile` and `tandem plan` on a small corpus: the profile names the slowed stage, and plans
//! refuse settings that were not measured.

mod support;

use serde_json::Value;
use support::{CommandOutput, TestDir};

/// Clips of half a second: a step is short, so the slowed stage is the bottleneck.
fn test_dir() -> TestDir {
    let rows = ('a'..='l').map(|name| format!("{name}|hello there|hello there\n"));
    TestDir::with_clips(12, &rows.collect::<String>())
}

const PROFILE: [&str; 14] = [
    "profile",
    "--train-data",
    "corpus",
    "--cache-dataset",
    "--batch-size",
    "2",
    "--pipeline-depth",
    "2",
    "--num-workers",
    "1",
    "--num-steps",
    "4",
    "--skip-steps",
    "1",
];

fn profile(dir: &TestDir, more: &[&str]) -> CommandOutput {
    dir.run(&[&PROFILE[..], more].concat())
}

/// The delay is several times the step time, which is measured first, so the test holds on any
/// machine. `tandem bench profile` without these flags is the long form. `tandem-insight` tests balanced
/// runs with synthetic records, because two real stages are equally fast only on a quiet machine.
#[test]
fn every_slowed_stage_is_named() {
    let dir = test_dir();
    let args = [&["bench"], &PROFILE[..], &["--runs", "4", "--balanced", "0", "--json"]].concat();
    let output = dir.run(&args);
    let found: Value = serde_json::from_str(&output.out).expect("JSON");
    assert_eq!(found[0]["measured"].as_f64(), Some(4.0), "{}", output.err);
    assert_eq!(output.code, Some(0), "{}", output.err);
}

/// A stage that is slower than the model reduces throughput only in the turns that use the pipeline. How slow the
/// model is depends on the machine, so the delay grows until the stage is the slower one.
#[test]
fn the_overhead_of_the_pipeline_is_measured_in_turns() {
    let dir = test_dir();
    let measured = |delay: u64| {
        let slow = format!("align={delay}");
        let turns = ["--turn", "16", "--slow-stage", &slow, "--json"];
        let output = dir.run(&[&["bench", "feed"], &PROFILE[1..], &turns].concat());
        let found: Value = serde_json::from_str(&output.out).expect("JSON");
        (found[0]["measured"].as_f64().expect("a number"), output)
    };
    let mut delay = 150;
    let (mut ratio, mut output) = measured(delay);
    while ratio >= 0.9 && delay < 10_000 {
        delay *= 4;
        (ratio, output) = measured(delay);
    }
    assert!(ratio > 0.0 && ratio < 0.9, "{}", output.out);
    assert_eq!(output.code, Some(1), "{}", output.err);
}

/// On a busy machine a part may take longer alone than in the whole run, and a plan refuses such a
/// profile. This copies the measurements of the whole run to the parts.
fn remove_noise(dir: &TestDir) {
    let path = dir.path("saved/profile.json");
    let text = std::fs::read_to_string(&path).expect("the answer");
    let mut answer: Value = serde_json::from_str(&text).expect("JSON");
    for alone in ["model_alone", "data_alone"] {
        answer["measured"][alone] = answer["measured"]["as_is"].clone();
    }
    std::fs::write(&path, answer.to_string()).expect("written");
}

#[test]
fn a_saved_profile_gives_plans_and_refuses_what_was_not_measured() {
    let dir = test_dir();
    let record = ["--record", "saved", "--slow-stage", "load=60", "--apply"];
    let output = profile(&dir, &record);
    for words in
        ["as is", "model alone", "data alone", "gaps", "at most 20.0 %", "verdict", "overhead"]
    {
        assert!(output.out.contains(words), "no `{words}` in {}", output.out);
    }
    // Half and twice the batch size, mean and deviation of devices, memory.
    for words in ["busy (mean, std)", "memory (mean, std; peak of total)", "memory    process used"]
    {
        assert!(output.out.contains(words), "no `{words}` in {}", output.out);
    }
    let sizes = output.out.lines().filter(|line| {
        let cells: Vec<&str> = line.split_whitespace().collect();
        matches!(cells[..], ["1" | "2" | "4", "4", ..])
    });
    assert_eq!(sizes.count(), 3, "a row for each batch size in {}", output.out);
    for file in
        ["as-is.jsonl", "model-alone.jsonl", "data-alone.jsonl", "batch-4.jsonl", "profile.json"]
    {
        assert!(dir.path("saved").join(file).exists(), "{file}");
    }
    profile(&dir, &record).assert_failed(&["already contains a profile", "another directory"]);

    remove_noise(&dir);
    let plan = dir.run(&["plan", "saved", "--num-workers", "1,2", "--pipeline-depth", "2"]);
    assert_eq!(plan.code, Some(0), "{plan:?}");
    for words in [
        "single",
        "dual",
        "use",
        "missing",
        "data-parallel",
        "24 GB",
        "16-24",
        "2-4",
        "times from",
        "--data-gpu 0 --model-gpu 1",
        "a run of this mode",
        "separate runs",
    ] {
        assert!(plan.out.contains(words), "no `{words}` in {}", plan.out);
    }
    let parallel = ["plan", "saved", "--mode", "data-parallel"];
    dir.run(&parallel).assert_failed(&["data-parallel", "not measured", "bench reduce", "--link"]);
    let size = |bytes: u64, seconds: f64| serde_json::json!({"bytes": bytes, "seconds": seconds, "bytes_per_second": 1.0});
    let mut cost = serde_json::json!({
        "ranks": 2, "hosts": ["a", "b"], "latency_seconds": 1e-4,
        "sizes": [size(4, 1e-4), size(4 << 20, 5e-3)],
    });
    let named = [&parallel[..], &["--reduce", "cost.json"]].concat();
    dir.run(&named).assert_failed(&["cannot read `cost.json`", "bench reduce"]);
    std::fs::write(dir.path("cost.json"), cost.to_string()).unwrap();
    let planned = dir.run(&named);
    assert_eq!(planned.code, Some(0), "{planned:?}");
    assert!(planned.err.contains("as measured on a and b"), "{}", planned.err);
    // Where `bench reduce` saves it.
    std::fs::create_dir_all(dir.path("data")).unwrap();
    std::fs::copy(dir.path("cost.json"), dir.path("data/reduce.json")).unwrap();
    assert!(dir.run(&parallel).err.contains("as measured on a and b"));
    cost["ranks"] = 4.into();
    std::fs::write(dir.path("cost.json"), cost.to_string()).unwrap();
    dir.run(&named).assert_failed(&["measured with 4 ranks", "bench reduce"]);
    let linked = dir.run(&[&parallel[..], &["--link", "12", "--json"]].concat()).json();
    assert_eq!(linked["rows"][0]["mode"], "data-parallel");
    let large = dir.run(&["plan", "saved", "--batch-size", "64"]);
    large.assert_failed(&["batch of 64", "tandem profile --batch-size 64"]);
    dir.run(&["plan", "saved/as-is.jsonl"]).assert_failed(&["is not a profile", "profile.json"]);
}

#[test]
fn presets_match_the_documentation_and_invalid_arguments_are_refused() {
    let dir = test_dir();
    let output = dir.run(&["plan", "--preset", "24"]);
    assert_eq!(
        output.out.trim(),
        "--batch-size 24 --enable-memory-isolation --data-gpu-memory 8192 --model-gpu-memory \
         16384 --prefetch-buffer-size 4"
    );
    assert!(output.err.contains("the tuner takes 2.0 GiB of a CUDA card"), "{}", output.err);
    dir.run(&["plan", "--preset", "13"]).assert_failed(&["13 GB", "12, 16 or 24"]);
    dir.run(&["plan"]).assert_failed(&["no profile", "tandem profile --record"]);
    if !cfg!(feature = "mpi") {
        let ranks = ["plan", "--check", "--mode", "data-parallel"];
        dir.run(&ranks).assert_failed(&["this build has no MPI", "--features mpi"]);
    }
    dir.run(&["bench", "launches", "--backend", "cpu"]).assert_failed(&[
        "does not count launches",
        "cuda_tests.sh launches",
        "nsys",
    ]);
    dir.run(&["plan", "--slow", "3"]).assert_failed(&["no effect", "--check"]);
    dir.run(&["plan", "nowhere"]).assert_failed(&["nowhere", "tandem profile"]);
    profile(&dir, &["--data-gpu", "0", "--model-gpu", "1"])
        .assert_failed(&["insufficient GPUs for multi-GPU mode"]);
    let slowed = profile(&dir, &["--slow-stage", "paint=3"]);
    assert!(slowed.code == Some(2) && slowed.err.contains("is not a stage"), "{slowed:?}");
}
