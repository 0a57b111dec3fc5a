//! `tandem devices` through the real program: what it lists, and how it refuses.
//!
//! The same with or without GPUs in the build: flags here name backends that are never in it, or
//! numbers that no machine has.

mod kit;

use kit::Place;
use serde_json::Value;

/// A backend that this build has not, as the program itself says.
fn not_built(place: &Place) -> String {
    let found = place.run(&["devices", "--json"]).json();
    let backends = found["backends"].as_array().expect("a list");
    let missing = backends.iter().find(|report| report["built"] == false);
    missing.expect("no build has all vendors")["backend"].as_str().expect("a name").to_owned()
}

#[test]
fn the_processor_is_listed_with_its_facts() {
    let place = Place::new();
    let found = place.run(&["devices", "--json", "--backend", "cpu"]).json();
    let reports = found["backends"].as_array().expect("a list");
    assert_eq!(reports.len(), 6, "every backend is reported, built or not");
    let cpu = reports.iter().find(|report| report["backend"] == "cpu").expect("always there");
    assert_eq!(cpu["devices"][0]["kind"], "processor");
    assert!(cpu["devices"][0]["memory"].as_u64().expect("Linux tells") > 1 << 28);
    assert!(found["processor"]["threads"].as_u64().expect("a count") >= 1);
    assert_eq!(found["placement"]["mode"], "cpu");
}

#[test]
fn what_is_missing_comes_with_the_way_to_get_it() {
    let place = Place::new();
    let missing = not_built(&place);
    let said = place.run(&["devices"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains(&format!("--features {missing}")), "{}", said.out);
    assert!(said.out.contains("mode: "), "the banner of a run: {}", said.out);
}

#[test]
fn the_banner_holds_mode_devices_buffer_and_limits() {
    let place = Place::new();
    let flags = ["devices", "--backend", "cpu", "--buffer-size", "20"];
    let more =
        ["--enable-memory-isolation", "--data-gpu-memory", "100", "--model-gpu-memory", "200"];
    let said = place.run(&[&flags[..], &more[..]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    for line in ["mode: CPU buffered", "buffer: 20 samples", "on one device 300 MB together"] {
        assert!(said.out.contains(line), "`{line}` is not in:\n{}", said.out);
    }
}

#[test]
fn half_a_pair_the_same_twice_and_numbers_nobody_has_are_refused() {
    let place = Place::new();
    let words = "insufficient GPUs for multi-GPU mode";
    for flags in [
        &["--data-gpu", "4000"][..],
        &["--model-gpu", "4000"],
        &["--data-gpu", "4000", "--model-gpu", "4001"],
        &["--data-gpu", "4000", "--model-gpu", "4000"],
        &["--backend", "cpu", "--data-gpu", "0", "--model-gpu", "1"],
    ] {
        place.run(&[&["devices"], flags].concat()).failed(&[words, "found", "hint: "]);
    }
}

#[test]
fn a_backend_that_is_not_built_in_is_refused_with_the_feature_to_build_with() {
    let place = Place::new();
    let missing = not_built(&place);
    let said = place.run(&["devices", "--backend", &missing]);
    said.failed(&["is not in this build", &format!("--features {missing}")]);
    let said = place.run(&["devices", "--backend", "cudas"]);
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("no backend `cudas`"), "{}", said.err);
}

#[test]
fn a_budget_is_refused_where_the_memory_is_not_there_or_nobody_keeps_it() {
    let place = Place::new();
    let cpu = ["devices", "--backend", "cpu"];
    let huge = ["--enable-memory-isolation", "--model-gpu-memory", "900000000"];
    place.run(&[&cpu[..], &huge].concat()).failed(&["--model-gpu-memory asks for", "or less"]);
    let said = place.run(&[&cpu[..], &huge[1..]].concat());
    said.failed(&["memory isolation is off", "--enable-memory-isolation"]);
}

#[test]
fn settings_of_a_file_are_used_and_checked() {
    let place = Place::new();
    let write = |text: &str| std::fs::write(place.inside("run.toml"), text).expect("written");
    write("[devices]\nbackend = \"cpu\"\nbuffer_size = 7\n");
    let found = place.run(&["devices", "--config", "run.toml", "--json"]).json();
    assert_eq!(found["placement"]["buffer_size"], Value::from(7));
    write("[devices]\nbuffer_size = 0\n");
    place.run(&["devices", "--config", "run.toml"]).failed(&["`devices.buffer_size` is 0"]);
    write("[devices]\nbackends = \"cpu\"\n");
    place.run(&["devices", "--config", "run.toml"]).failed(&["unknown key `devices.backends`"]);
}
