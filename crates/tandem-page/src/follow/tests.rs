//! A follower keeps up with records that grow, are torn, replaced, truncated, resumed or missing.

use super::*;
use std::fs;
use std::io::Write;

fn header(begun: u64) -> String {
    format!(
        "{{\"at\":0,\"event\":\"run\",\"format\":\"tandem-run\",\"schema\":{{\"major\":1,\"minor\":0}},\
         \"program\":\"tandem\",\"version\":\"0\",\"started_unix_ms\":{begun},\"settings\":{{}},\"host\":{{}}}}\n"
    )
}

fn step(number: u64) -> String {
    format!(
        "{{\"at\":{number}000000000,\"event\":\"step\",\"step\":{number},\"ticket\":{{\"epoch\":0,\"seq\":0}},\
         \"took\":100000000,\"waited\":0,\"items\":8,\"frames\":9,\"losses\":{{\"total\":{number}.5}}}}\n"
    )
}

fn append(path: &Path, text: &str) {
    let mut file = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

fn steps(follower: &Follower) -> Vec<f64> {
    let view = follower.view();
    let points = view.losses.first().map(|(_, series)| series.points()).unwrap_or_default();
    points.into_iter().map(|(step, _)| step).collect()
}

#[test]
fn lines_are_taken_when_they_are_complete() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("run.jsonl");
    append(&record, &(header(1) + &step(1)));
    let mut follower = Follower::start(folder.path()).unwrap();
    assert_eq!(follower.poll().unwrap(), Found::Nothing);
    let second = step(2);
    append(&record, &second[..40]);
    follower.poll().unwrap();
    assert_eq!(steps(&follower), [1.0]);
    append(&record, &second[40..]);
    assert_eq!(follower.poll().unwrap(), Found::More);
    assert_eq!(steps(&follower), [1.0, 2.0]);
}

/// The first line of a rank's record.
fn rank_header(rank: usize, job: &str) -> String {
    let settings = format!("{{\"ranks\":{{\"rank\":{rank},\"ranks\":2,\"job\":\"{job}\"}}}}");
    header(1).replace("\"settings\":{}", &format!("\"settings\":{settings}"))
}

#[test]
fn the_records_of_other_ranks_are_followed_too() {
    let folder = tempfile::tempdir().unwrap();
    append(&folder.path().join("run.jsonl"), &(rank_header(0, "now") + &step(1)));
    let mut follower = Follower::start(folder.path()).unwrap();
    assert!(follower.view().summary.other_ranks.is_empty(), "rank 1 has written nothing yet");
    let other = folder.path().join("ranks/1");
    fs::create_dir_all(&other).unwrap();
    append(&other.join("run.jsonl"), &(rank_header(1, "now") + &step(1)));
    assert_eq!(follower.poll().unwrap(), Found::More);
    let steps_of = |follower: &Follower| {
        let view = follower.view();
        view.summary.other_ranks.get(&1).map(|found| found.steps.all.count())
    };
    assert_eq!(steps_of(&follower), Some(1));
    assert_eq!(follower.poll().unwrap(), Found::Nothing);
    append(&other.join("run.jsonl"), &step(2));
    assert_eq!(follower.poll().unwrap(), Found::More);
    assert_eq!(steps_of(&follower), Some(2));
    // The next job has its own records: those of the last one are not part of it.
    let next = rank_header(0, "next").replace("unix_ms\":1", "unix_ms\":2");
    append(&folder.path().join("run-from-00000001.jsonl"), &(next + &step(2)));
    follower.poll().unwrap();
    assert_eq!(steps_of(&follower), None);
}

#[test]
fn a_resumed_run_is_followed_into_its_next_record() {
    let folder = tempfile::tempdir().unwrap();
    append(&folder.path().join("run.jsonl"), &(header(1) + &step(1) + &step(2)));
    let mut follower = Follower::start(folder.path()).unwrap();
    let part = folder.path().join("run-from-00000001.jsonl");
    append(&part, &header(2)[..30]);
    follower.poll().unwrap();
    assert_eq!(steps(&follower), [1.0, 2.0]);
    fs::remove_file(&part).unwrap();
    append(&part, &(header(2) + &step(2) + &step(3)));
    follower.poll().unwrap();
    assert_eq!(steps(&follower), [1.0, 2.0, 3.0]);
    assert_eq!(follower.view().earlier_parts, 1);
    // A follower that starts later sees the same.
    let late = Follower::start(folder.path()).unwrap();
    assert_eq!(steps(&late), [1.0, 2.0, 3.0]);
    append(&part, &step(4));
    follower.poll().unwrap();
    assert_eq!(steps(&follower), [1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn a_replaced_record_is_read_from_its_start() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("run.jsonl");
    append(&record, &(header(1) + &step(1) + &step(2)));
    let mut follower = Follower::start(&record).unwrap();
    fs::remove_file(&record).unwrap();
    assert_eq!(follower.poll().unwrap(), Found::Nothing);
    assert_eq!(steps(&follower), [1.0, 2.0]);
    append(&record, &(header(9) + &step(7)));
    follower.poll().unwrap();
    assert_eq!(steps(&follower), [7.0]);
    assert_eq!(follower.view().earlier_parts, 0);
    // Cut short in place.
    fs::write(&record, header(10)).unwrap();
    follower.poll().unwrap();
    assert!(steps(&follower).is_empty());
}

#[test]
fn what_is_not_a_record_is_refused_and_what_is_not_there_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let error = Follower::start(folder.path()).unwrap_err();
    assert!(error.to_string().contains("no run record"), "{error}");
    let text = folder.path().join("metadata.csv");
    for words in ["id|text\n", "no end of line"] {
        fs::write(&text, words).unwrap();
        let error = Follower::start(&text).unwrap_err();
        assert!(error.to_string().contains("is not a run record"), "{error}");
    }
    let error = Follower::start(&folder.path().join("none.jsonl")).unwrap_err();
    assert!(error.to_string().contains("cannot open"), "{error}");
}

#[test]
fn a_record_without_its_first_line_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("run.jsonl");
    fs::write(&record, "").unwrap();
    let mut follower = Follower::start(folder.path()).unwrap();
    append(&record, &(header(1) + &step(1)));
    assert_eq!(follower.poll().unwrap(), Found::More);
    assert_eq!(steps(&follower), [1.0]);
}

#[test]
fn damage_and_news_of_a_newer_program_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("run.jsonl");
    let aurora = "{\"at\":1,\"event\":\"aurora\"}\n";
    append(&record, &(header(1) + "nonsense\n" + aurora + &header(2) + &step(1)));
    let follower = Follower::start(&record).unwrap();
    let notes = follower.view().notes.clone().unwrap();
    assert_eq!((notes.lines, notes.broken, notes.unknown["aurora"]), (5, 2, 1));
    assert_eq!(steps(&follower), [1.0]);
}
