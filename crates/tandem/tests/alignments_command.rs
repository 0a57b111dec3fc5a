//! `tandem analyze --alignments` on a run of the real program: the ranking of transcripts, and errors.

mod support;

use support::runs::SMALL_STEPS;
use support::{CommandOutput, TestDir};

fn train_one_step(dir: &TestDir) -> CommandOutput {
    let one = ["--max-steps", "1", "--checkpoint-dir", "run"];
    dir.run(&[&SMALL_STEPS[..], &one].concat())
}

#[test]
fn an_untrained_voice_reports_that_it_cannot_rank_transcripts() {
    let dir = TestDir::new();
    let trained = train_one_step(&dir);
    assert_eq!(trained.code, Some(0), "{trained:?}");
    let ask = ["analyze", "--alignments", "run", "--limit", "12"];
    let output = dir.run(&[&ask[..], &["--json"]].concat());
    assert_eq!(output.code, Some(1), "{output:?}");
    let found: serde_json::Value =
        serde_json::from_str(&output.out).expect("JSON and nothing else");
    assert_eq!((&found["step"], &found["suspicious"]), (&1.into(), &0.into()), "{found}");
    let rows = found["rows"].as_array().expect("a list");
    assert_eq!(rows.len(), 12);
    for name in ["suspicion", "coverage", "diagonality", "entropy", "misfit", "margin", "line"] {
        assert!(rows.iter().all(|row| row[name].is_number()), "{name}: {found}");
    }
    let suspicions: Vec<f64> = rows.iter().map(|row| row["suspicion"].as_f64().unwrap()).collect();
    assert!(suspicions.is_sorted_by(|a, b| a >= b), "{suspicions:?}");
    let fact = found["findings"][0]["fact"].as_str().expect("a finding");
    assert!(fact.contains("cannot tell"), "{found}");

    let table = dir.run(&[&ask[..], &["--top", "3", "--held-out", "--html", "rows.html"]].concat());
    assert_eq!(table.code, Some(1), "{table:?}");
    assert!(table.out.contains("margin") && table.out.contains("cannot tell"), "{table:?}");
    assert!(table.out.contains("continue training"), "{table:?}");
    assert!(table.err.contains("step 1 of `run/step-00000001`"), "{table:?}");
    let page = std::fs::read_to_string(dir.path("rows.html")).expect("a page");
    assert_eq!(page.matches("data:audio/flac;base64,ZkxhQ").count(), 3, "players with FLAC");
    assert!(page.contains("data-file=\"decisions.tsv\"") && page.contains("value=\"drop\""));
}

#[test]
fn unusable_runs_and_corpora_are_errors_with_a_hint() {
    let dir = TestDir::new();
    assert_eq!(train_one_step(&dir).code, Some(0));
    dir.run(&["analyze", "--alignments", "nowhere"]).assert_failed(&["nowhere"]);
    dir.run(&["analyze", "--alignments", "run", "--keep-diacritics"])
        .assert_failed(&["another way than this voice learned it", "remove flags"]);
    dir.run(&["analyze", "no-corpus", "--alignments", "run"]).assert_failed(&["no-corpus"]);
    let alone = dir.run(&["analyze", "--held-out"]);
    assert_eq!(alone.code, Some(2), "{alone:?}");
    assert!(alone.err.contains("--alignments"), "{alone:?}");
}
