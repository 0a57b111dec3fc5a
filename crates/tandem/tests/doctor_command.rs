//! `tandem doctor` as a user meets it: what is in it, and what is not.

mod kit;

use kit::{Place, Said};
use std::fs;
use std::process::Command;

/// The program, run by somebody with a name, a home and a secret.
fn doctor(place: &Place, args: &[&str]) -> Said {
    let mut command: Command = place.tandem(&[&["doctor"], args].concat());
    command
        .env("USER", "zarathustra")
        .env("TANDEM_DATA_DIR", place.inside("home/zarathustra-data"));
    command.env("WANDB_API_KEY", "abc123").env("CUDA_VISIBLE_DEVICES", "1");
    Said::of(command.output().expect("the program runs"))
}

fn place() -> Place {
    let place = Place::new();
    let home = place.inside("home");
    fs::create_dir(&home).expect("a home");
    let config = format!(
        "train_data = \"{}/voices\"\ncache_dir = \"/media/zarathustra/cache\"\n# password: hunter2\n",
        home.display()
    );
    fs::write(place.inside("run.toml"), config).expect("written");
    fs::create_dir(place.inside("run")).expect("a run");
    let record = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/example-run.jsonl");
    fs::copy(record, place.inside("run/run.jsonl")).expect("a record");
    place
}

#[test]
fn it_holds_what_a_bug_report_needs() {
    let place = place();
    let said = doctor(&place, &["--config", "run.toml"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    for words in [
        "== program ==",
        "backends in this build: cpu",
        "CUDA_VISIBLE_DEVICES=1",
        "== machine ==",
        "processor: ",
        "== devices ==",
        "cpu",
        "== placement ==",
        "mode: ",
        "== config ==",
        "train_data",
        "== report ==",
        "verdict",
        "settings of the run",
    ] {
        assert!(said.out.contains(words), "`{words}` is not in:\n{}", said.out);
    }
}

#[test]
fn nothing_personal_is_in_it_unless_asked_for() {
    let place = place();
    let home = place.inside("home").display().to_string();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name of the machine");
    let said = doctor(&place, &["--config", "run.toml"]);
    for secret in ["zarathustra", home.as_str(), "abc123", "hunter2"] {
        assert!(!said.out.contains(secret), "`{secret}` is in:\n{}", said.out);
    }
    assert!(said.out.contains("host: [host]"), "{}", said.out);
    assert!(
        said.out.contains("~/voices") && said.out.contains("/media/[user]/cache"),
        "{}",
        said.out
    );
    let full = doctor(&place, &["--config", "run.toml", "--full"]);
    for word in [home.as_str(), "/media/zarathustra", "hunter2", host.trim()] {
        assert!(full.out.contains(word), "`{word}` is not in:\n{}", full.out);
    }
    assert!(!full.out.contains("abc123"), "variables of other programs are nobody's business");
}

#[test]
fn it_is_a_text_or_an_archive_by_its_name() {
    let place = place();
    let said = doctor(&place, &["-o", "report.txt"]);
    assert!(said.code == Some(0) && said.out.is_empty(), "{said:?}");
    assert!(said.err.contains("written: report.txt"), "{}", said.err);
    assert!(
        fs::read_to_string(place.inside("report.txt")).expect("a text").contains("== report ==")
    );
    assert_eq!(doctor(&place, &["run", "-o", "report.zip"]).code, Some(0));
    let file = fs::File::open(place.inside("report.zip")).expect("an archive");
    let mut archive = zip::ZipArchive::new(file).expect("a zip");
    let names: Vec<String> = archive.file_names().map(String::from).collect();
    assert!(
        names.contains(&"report.txt".into()) && names.contains(&"machine.txt".into()),
        "{names:?}"
    );
    let report = std::io::read_to_string(archive.by_name("report.txt").expect("a part"));
    assert!(report.expect("text").contains("verdict"));
}

#[test]
fn faults_are_part_of_the_answer() {
    let place = place();
    fs::write(place.inside("bad.toml"), "num_workerz = 3\n").expect("written");
    fs::write(place.inside("foreign.jsonl"), "x\n").expect("written");
    let found = doctor(&place, &["foreign.jsonl", "--config", "bad.toml", "--json"]).json();
    let text = |name: &str| {
        let section = found.as_array().expect("sections").iter().find(|s| s["name"] == name);
        section.expect("a section")["text"].as_str().expect("text").to_string()
    };
    assert!(text("placement").contains("did you mean `num_workers`?"), "{}", text("placement"));
    assert!(text("report").contains("is not a run record"), "{}", text("report"));
    doctor(&place, &["-o", "no/such/place.txt"])
        .failed(&["cannot write", "a directory that exists"]);
}
