//! `tandem profile` and `tandem plan` on a small corpus: the slowed stage is named; plans say what they were made from, and refuse the rest.

mod kit;

use kit::{Place, Said};
use serde_json::Value;

/// Clips of half a second, so that a step takes next to nothing and what is slowed decides.
fn place() -> Place {
    let rows = ('a'..='l').map(|name| format!("{name}|hello there|hello there\n"));
    Place::with_clips(12, &rows.collect::<String>())
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

fn profile(place: &Place, more: &[&str]) -> Said {
    place.run(&[&PROFILE[..], more].concat())
}

/// Slowed by several times what a step takes, measured just before, so that it holds on any
/// machine; `tandem bench profile` without these flags is the long form. That balanced runs stay
/// unnamed is tested on made-up runs in `tandem-insight`: two real stages stay equal on a quiet
/// machine only.
#[test]
fn every_slowed_stage_is_named() {
    let place = place();
    let args = [&["bench"], &PROFILE[..], &["--runs", "4", "--balanced", "0", "--json"]].concat();
    let said = place.run(&args);
    let found: Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!(found[0]["measured"].as_f64(), Some(4.0), "{}", said.err);
    assert_eq!(said.code, Some(0), "{}", said.err);
}

/// A stage that is slower than the model costs steps, but only in the turns in which the pipeline works.
#[test]
fn what_the_pipeline_costs_is_measured_in_turns() {
    let place = place();
    let turns = ["--turn", "16", "--slow-stage", "align=150", "--json"];
    let said = place.run(&[&["bench", "feed"], &PROFILE[1..], &turns].concat());
    assert_eq!(said.code, Some(1), "{}", said.err);
    let found: Value = serde_json::from_str(&said.out).expect("JSON");
    let ratio = found[0]["measured"].as_f64().expect("a number");
    assert!(ratio > 0.0 && ratio < 0.9, "{found}");
}

/// On a busy machine a part may take longer alone than beside the others, which a plan refuses to
/// work with: the parts become those of the whole run.
fn calm(place: &Place) {
    let path = place.inside("kept/profile.json");
    let text = std::fs::read_to_string(&path).expect("the answer");
    let mut answer: Value = serde_json::from_str(&text).expect("JSON");
    for alone in ["model_alone", "data_alone"] {
        answer["measured"][alone] = answer["measured"]["as_is"].clone();
    }
    std::fs::write(&path, answer.to_string()).expect("written");
}

#[test]
fn a_profile_is_kept_and_planned_from_and_what_was_not_measured_is_refused() {
    let place = place();
    let kept = ["--record", "kept", "--slow-stage", "load=60", "--apply"];
    let said = profile(&place, &kept);
    for words in
        ["as is", "model alone", "data alone", "gaps", "at most 20.0 %", "verdict", "overhead"]
    {
        assert!(said.out.contains(words), "no `{words}` in {}", said.out);
    }
    for record in ["as-is.jsonl", "model-alone.jsonl", "data-alone.jsonl", "profile.json"] {
        assert!(place.inside("kept").join(record).exists(), "{record}");
    }
    profile(&place, &kept).failed(&["holds a profile already", "another directory"]);

    calm(&place);
    let plan = place.run(&["plan", "kept", "--num-workers", "1,2", "--pipeline-depth", "2"]);
    assert_eq!(plan.code, Some(0), "{plan:?}");
    for words in ["single", "dual", "use", "missing", "data-parallel", "24 GB", "16-24", "2-4"] {
        assert!(plan.out.contains(words), "no `{words}` in {}", plan.out);
    }
    let parallel = ["plan", "kept", "--mode", "data-parallel"];
    place.run(&parallel).failed(&["data-parallel", "not measured", "--link"]);
    let linked = place.run(&[&parallel[..], &["--link", "12", "--json"]].concat()).json();
    assert_eq!(linked["rows"][0]["mode"], "data-parallel");
    let large = place.run(&["plan", "kept", "--batch-size", "64"]);
    large.failed(&["batch of 64", "tandem profile --batch-size 64"]);
    place.run(&["plan", "kept/as-is.jsonl"]).failed(&["is not a profile", "profile.json"]);
}

#[test]
fn presets_are_the_promised_ones_and_nonsense_is_refused() {
    let place = place();
    let said = place.run(&["plan", "--preset", "24"]);
    assert_eq!(
        said.out.trim(),
        "--batch-size 24 --enable-memory-isolation --data-gpu-memory 8192 --model-gpu-memory \
         16384 --prefetch-buffer-size 4"
    );
    place.run(&["plan", "--preset", "13"]).failed(&["13 GB", "12, 16 or 24"]);
    place.run(&["plan"]).failed(&["no profile", "tandem profile --record"]);
    place.run(&["plan", "--slow", "3"]).failed(&["nothing is checked", "--check"]);
    place.run(&["plan", "nowhere"]).failed(&["nowhere", "tandem profile"]);
    profile(&place, &["--data-gpu", "0", "--model-gpu", "1"])
        .failed(&["insufficient GPUs for multi-GPU mode"]);
    let slowed = profile(&place, &["--slow-stage", "paint=3"]);
    assert!(slowed.code == Some(2) && slowed.err.contains("is no stage"), "{slowed:?}");
}
