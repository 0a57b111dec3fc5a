//! `tandem import`, and the layouts as `tandem prepare` reads and prints them.

mod support;

use std::fs;
use support::{Kind, TestDir, tone_wav, wav};

/// Two rows of VCTK, one without a recording, and a licence.
fn vctk() -> TestDir {
    let tone = tone_wav();
    TestDir::with(&[
        ("txt/p225/p225_001.txt", b"one word"),
        ("txt/p225/p225_002.txt", b"no recording"),
        ("txt/p226/p226_001.txt", b"two | words"),
        ("wav48/p225/p225_001.wav", &tone),
        ("wav48/p226/p226_001.wav", &wav(Kind::Int(16), 48_000, 2, 1.0)),
        ("LICENSE", b"CC-BY-4.0"),
    ])
}

fn import(dir: &TestDir, more: &[&str]) -> support::CommandOutput {
    dir.run(&[&["import", "corpus", "clean"][..], more].concat())
}

fn read(dir: &TestDir, file: &str) -> String {
    fs::read_to_string(dir.path(file)).expect("a text")
}

#[test]
fn an_imported_corpus_is_prepared_with_the_speakers_of_its_source() {
    let dir = vctk();
    let done = import(&dir, &["--licence", "CC-BY-4.0", "--json"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let summary = done.json();
    let counts = ["rows", "imported", "rejected"].map(|key| summary[key].as_u64().unwrap());
    assert_eq!(counts, [3, 2, 1], "{summary}");
    assert_eq!(summary["recognised"], "VCTK");
    let manifest = "id|text|speaker\np225/p225_001|one word|p225\np226/p226_001|two words|p226\n";
    assert_eq!(read(&dir, "clean/metadata.csv"), manifest);
    assert_eq!(read(&dir, "clean/origin/LICENSE"), "CC-BY-4.0");
    assert!(read(&dir, "clean/rejected.tsv").contains("missing_audio"));
    let origin = read(&dir, "clean/ORIGIN.toml");
    assert!(origin.contains("licence = \"CC-BY-4.0\"") && origin.contains("layout = \"vctk\""));
    assert!(!origin.contains(dir.path("corpus").to_str().unwrap()), "no path of this machine");
    let prepared = dir.run(&["prepare", "clean"]);
    assert_eq!(prepared.code, Some(0), "{prepared:?}");
    for line in
        ["layout     LJSpeech (`metadata.csv`: id|text|speaker)", "speakers   p225 1, p226 1"]
    {
        assert!(prepared.out.contains(line), "{}", prepared.out);
    }
}

#[test]
fn an_interrupted_import_continues_and_a_finished_one_is_left_alone() {
    let dir = vctk();
    assert_eq!(import(&dir, &[]).code, Some(0));
    let first = fs::read(dir.path("clean/wavs/p225/p225_001.flac")).unwrap();
    fs::write(dir.path("clean/metadata.csv"), "p225/p225_001|corrected by hand\n").unwrap();
    let again = import(&dir, &[]);
    assert_eq!((again.code, again.out.contains("is complete")), (Some(0), true), "{again:?}");
    assert_eq!(read(&dir, "clean/metadata.csv"), "p225/p225_001|corrected by hand\n");
    // As after Ctrl-C: a part of the recordings, and no manifest.
    fs::remove_file(dir.path("clean/metadata.csv")).unwrap();
    fs::remove_file(dir.path("clean/wavs/p226/p226_001.flac")).unwrap();
    let summary = import(&dir, &["--json"]).json();
    assert_eq!((&summary["imported"], &summary["there"]), (&2.into(), &1.into()), "{summary}");
    assert_eq!(fs::read(dir.path("clean/wavs/p225/p225_001.flac")).unwrap(), first);
    let other = import(&dir, &["--rate", "16000"]);
    other.assert_failed(&["other settings", "name another directory"]);
}

#[test]
fn nothing_is_written_into_the_source_or_over_other_files() {
    let dir = vctk();
    fs::create_dir(dir.path("clean")).unwrap();
    fs::write(dir.path("clean/mine.txt"), "mine").unwrap();
    import(&dir, &[]).assert_failed(&["has other files", "nothing is overwritten"]);
    assert_eq!(fs::read_dir(dir.path("clean")).unwrap().count(), 1);
    let (source, inside) = (dir.path("corpus"), dir.path("corpus/clean"));
    let done = dir.run(&["import", source.to_str().unwrap(), inside.to_str().unwrap()]);
    done.assert_failed(&["OUT is inside SOURCE"]);
    assert!(!inside.exists());
}

#[test]
fn parts_of_long_recordings_are_rejected_by_prepare_and_cut_by_import() {
    let dir = TestDir::with(&[(
        "train.jsonl",
        b"{\"audio_filepath\": \"long.wav\", \"text\": \"one\", \"offset\": 0, \"duration\": 1.0}\n\
          {\"audio_filepath\": \"long.wav\", \"text\": \"two\", \"offset\": 1.5, \"duration\": 2.0}\n\
          {\"audio_filepath\": \"long.wav\", \"text\": \"far\", \"offset\": 9, \"duration\": 2.0}\n",
    )]);
    dir.write("long.wav", &wav(Kind::Int(16), 22_050, 1, 4.0));
    let refused = dir.run(&["prepare", "corpus"]);
    refused.assert_failed(&["a part of a longer recording", "tandem import"]);
    let summary = import(&dir, &["--json"]).json();
    assert_eq!((&summary["imported"], &summary["rejected"]), (&2.into(), &1.into()), "{summary}");
    assert_eq!(summary["written"], 3.0);
    let prepared = dir.run(&["prepare", "clean", "--json"]).json();
    assert_eq!(prepared["usable"], 2, "{prepared}");
    assert!(read(&dir, "clean/rejected.tsv").contains("outside the recording"));
}

#[test]
fn an_edited_text_file_is_prepared_again() {
    let tone = tone_wav();
    let dir = TestDir::with(&[
        ("a.txt", b"one word"),
        ("a.wav", &tone),
        ("b.txt", b"two words"),
        ("b.wav", &tone),
    ]);
    let summary = dir.prepare(&[]);
    assert_eq!((&summary["layout"], &summary["rebuilt"]), (&"text-files".into(), &2.into()));
    assert_eq!(dir.prepare(&[])["rebuilt"], 0, "the cache is read");
    fs::write(dir.corpus().join("b.txt"), "other words").unwrap();
    assert_eq!(dir.prepare(&[])["rebuilt"], 1);
}
