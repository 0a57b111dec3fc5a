//! `tandem devices`: what it lists, and which requests it refuses.
//!
//! The tests hold with and without GPU features: they name backends that are not in the build, or
//! device numbers that no machine has.

mod support;

use serde_json::Value;
use support::TestDir;

/// A backend that the program lists as missing from this build.
fn not_built(dir: &TestDir) -> String {
    let found = dir.run(&["devices", "--json"]).json();
    let backends = found["backends"].as_array().expect("a list");
    let missing = backends.iter().find(|report| report["built"] == false);
    missing.expect("no build has all vendors")["backend"].as_str().expect("a name").to_owned()
}

#[test]
fn the_cpu_is_listed_with_threads_and_memory() {
    let dir = TestDir::new();
    let found = dir.run(&["devices", "--json", "--backend", "cpu"]).json();
    let reports = found["backends"].as_array().expect("a list");
    assert_eq!(reports.len(), 6, "every backend is reported, built or not");
    let cpu = reports.iter().find(|report| report["backend"] == "cpu").expect("always there");
    assert_eq!(cpu["devices"][0]["kind"], "processor");
    assert!(cpu["devices"][0]["memory"].as_u64().expect("Linux reports it") > 1 << 28);
    assert!(found["processor"]["threads"].as_u64().expect("a count") >= 1);
    assert_eq!(found["placement"]["mode"], "cpu");
}

#[test]
fn a_missing_backend_is_listed_with_its_build_feature() {
    let dir = TestDir::new();
    let missing = not_built(&dir);
    let output = dir.run(&["devices"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.out.contains(&format!("--features {missing}")), "{}", output.out);
    assert!(output.out.contains("mode: "), "the banner of a run: {}", output.out);
}

#[test]
fn the_banner_shows_mode_devices_buffer_and_limits() {
    let dir = TestDir::new();
    let flags = ["devices", "--backend", "cpu", "--buffer-size", "20"];
    let more =
        ["--enable-memory-isolation", "--data-gpu-memory", "100", "--model-gpu-memory", "200"];
    let output = dir.run(&[&flags[..], &more[..]].concat());
    assert_eq!(output.code, Some(0), "{output:?}");
    for line in [
        "mode: CPU buffered",
        "host buffer: 2 batches (from --buffer-size 20)",
        "on one device 300 MB together",
    ] {
        assert!(output.out.contains(line), "`{line}` is not in:\n{}", output.out);
    }
}

#[test]
fn incomplete_equal_and_nonexistent_gpu_pairs_are_refused() {
    let dir = TestDir::new();
    let words = "insufficient GPUs for multi-GPU mode";
    for flags in [
        &["--data-gpu", "4000"][..],
        &["--model-gpu", "4000"],
        &["--data-gpu", "4000", "--model-gpu", "4001"],
        &["--data-gpu", "4000", "--model-gpu", "4000"],
        &["--backend", "cpu", "--data-gpu", "0", "--model-gpu", "1"],
    ] {
        dir.run(&[&["devices"], flags].concat()).assert_failed(&[words, "found", "hint: "]);
    }
}

#[test]
fn a_backend_that_is_not_in_the_build_is_refused_with_its_feature() {
    let dir = TestDir::new();
    let missing = not_built(&dir);
    let output = dir.run(&["devices", "--backend", &missing]);
    output.assert_failed(&["is not in this build", &format!("--features {missing}")]);
    let output = dir.run(&["devices", "--backend", "cudas"]);
    assert_eq!(output.code, Some(2));
    assert!(output.err.contains("no backend `cudas`"), "{}", output.err);
}

#[test]
fn a_memory_budget_above_the_memory_or_without_isolation_is_refused() {
    let dir = TestDir::new();
    let cpu = ["devices", "--backend", "cpu"];
    let huge = ["--enable-memory-isolation", "--model-gpu-memory", "900000000"];
    dir.run(&[&cpu[..], &huge].concat()).assert_failed(&["--model-gpu-memory asks for", "or less"]);
    let output = dir.run(&[&cpu[..], &huge[1..]].concat());
    output.assert_failed(&["memory isolation is off", "--enable-memory-isolation"]);
}

#[test]
fn device_settings_of_a_file_are_used_and_checked() {
    let dir = TestDir::new();
    let write = |text: &str| std::fs::write(dir.path("run.toml"), text).expect("written");
    write("[devices]\nbackend = \"cpu\"\nbuffer_size = 7\n");
    let found = dir.run(&["devices", "--config", "run.toml", "--json"]).json();
    assert_eq!(found["buffers"]["samples"], Value::from(7));
    assert_eq!(found["buffers"]["depth"], Value::from(1));
    write("[devices]\nbuffer_size = 0\n");
    dir.run(&["devices", "--config", "run.toml"]).assert_failed(&["`devices.buffer_size` is 0"]);
    write("[devices]\nbackends = \"cpu\"\n");
    dir.run(&["devices", "--config", "run.toml"])
        .assert_failed(&["unknown key `devices.backends`"]);
}
