//! `tandem analyze --alignments`: a run of the real program, and what it says of its transcripts.

mod kit;

use kit::runs::SMALL_STEPS;
use kit::{Place, Said};

fn train_one_step(place: &Place) -> Said {
    let one = ["--max-steps", "1", "--checkpoint-dir", "run"];
    place.run(&[&SMALL_STEPS[..], &one].concat())
}

#[test]
fn a_voice_that_knows_nothing_says_so_instead_of_accusing_transcripts() {
    let place = Place::new();
    let trained = train_one_step(&place);
    assert_eq!(trained.code, Some(0), "{trained:?}");
    let ask = ["analyze", "--alignments", "run", "--limit", "12"];
    let said = place.run(&[&ask[..], &["--json"]].concat());
    assert_eq!(said.code, Some(1), "{said:?}");
    let found: serde_json::Value = serde_json::from_str(&said.out).expect("JSON and nothing else");
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

    let table = place.run(&[&ask[..], &["--top", "3", "--held-out"]].concat());
    assert_eq!(table.code, Some(1), "{table:?}");
    assert!(table.out.contains("margin") && table.out.contains("cannot tell"), "{table:?}");
    assert!(table.out.contains("train on"), "{table:?}");
    assert!(table.err.contains("step 1 of `run/step-00000001`"), "{table:?}");
}

#[test]
fn what_cannot_be_listened_to_is_an_error_with_a_way_out() {
    let place = Place::new();
    assert_eq!(train_one_step(&place).code, Some(0));
    place.run(&["analyze", "--alignments", "nowhere"]).failed(&["nowhere"]);
    place
        .run(&["analyze", "--alignments", "run", "--keep-diacritics"])
        .failed(&["another way than this voice learned it", "leave out flags"]);
    place.run(&["analyze", "no-corpus", "--alignments", "run"]).failed(&["no-corpus"]);
    let alone = place.run(&["analyze", "--held-out"]);
    assert_eq!(alone.code, Some(2), "{alone:?}");
    assert!(alone.err.contains("--alignments"), "{alone:?}");
}
