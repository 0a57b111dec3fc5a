//! `tandem import`, and the layouts as `tandem prepare` reads and prints them.

mod support;

use std::fs;
use std::path::Path;
use support::{Kind, TestDir, tone_wav, wav};
use tandem_audio::flac_stream::flac_file;
use tandem_audio::{AudioConfig, Decoder, Sound};
use tandem_units::SampleRate;

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

/// The recordings of a speaker of the demo corpus, joined to one, with a third of a second between them; their texts.
fn long_recording(dir: &TestDir, speaker: &str) -> Vec<String> {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo-corpus");
    let manifest = fs::read_to_string(demo.join("metadata.csv")).expect("a manifest");
    let mut decoder = Decoder::new(SampleRate(22_050), AudioConfig::default());
    let (mut samples, mut texts) = (Vec::new(), Vec::new());
    for line in manifest.lines().filter(|line| line.contains(&format!("|{speaker}|"))) {
        let cells: Vec<&str> = line.split('|').collect();
        let bytes = fs::read(demo.join(format!("wavs/{}.flac", cells[0]))).expect("a recording");
        samples.extend(decoder.decode(&bytes, Some("flac")).expect("sound").to_f32());
        samples.extend([0.0; 7_350]);
        texts.push(cells[1].to_owned());
    }
    let bytes = flac_file(Sound::F32(&samples), SampleRate(22_050)).expect("a file");
    dir.write("book/long.flac", &bytes);
    texts
}

#[test]
fn a_long_recording_is_cut_into_its_sentences_and_wrong_ones_are_left_out() {
    let dir = TestDir::new();
    let texts = long_recording(&dir, "jack");
    let mut written = texts.clone();
    written[9] = "A hundred soldiers marched across the frozen lake before midnight.".into();
    dir.write("book/long.txt", written.join("\n").as_bytes());
    let (book, text) = (dir.path("corpus/book"), dir.path("corpus/book/long.txt"));
    let recording = book.join("long.flac");
    let done = dir.run(&["import", recording.to_str().unwrap(), "clean", "--json"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let summary = done.json();
    let manifest = read(&dir, "clean/metadata.csv");
    let found = |text: &String| manifest.lines().any(|line| line.ends_with(&format!("|{text}")));
    let right = texts.iter().enumerate().filter(|(number, _)| *number != 9);
    let kept = right.filter(|(_, text)| found(text)).count();
    assert!(kept >= texts.len() - 3, "{kept} of {}\n{summary}\n{manifest}", texts.len());
    assert!(!found(&written[9]), "{manifest}");
    assert!(read(&dir, "clean/rejected.tsv").contains("text_does_not_fit"));
    assert_eq!(summary["cut"]["sentences"], texts.len() as u64, "{summary}");
    // Interrupted before the manifest: the recording is not aligned again, so its text may be gone.
    fs::remove_file(dir.path("clean/metadata.csv")).unwrap();
    fs::write(text, "x").unwrap();
    dir.run(&["import", recording.to_str().unwrap(), "clean"]);
    assert_eq!(read(&dir, "clean/metadata.csv"), manifest);
    let prepared = dir.run(&["prepare", "clean", "--json"]).json();
    assert_eq!((&prepared["usable"], &prepared["rejected"]), (&summary["imported"], &0.into()));
}

#[test]
fn a_long_recording_without_a_text_is_cut_in_pauses_and_heard_by_a_judge() {
    let dir = TestDir::new();
    let texts = long_recording(&dir, "emma");
    let book = dir.path("corpus/book");
    let refused = dir.run(&["import", "--cut", book.to_str().unwrap(), "none"]);
    refused.assert_failed(&["no text beside the recording", "--judge"]);
    let judge = "sh -c 'for file; do echo heard words; done' -";
    let done =
        dir.run(&["import", "--cut", book.to_str().unwrap(), "clean", "--judge", judge, "--json"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let rows = done.json()["cut"]["heard"].as_u64().unwrap() as usize;
    assert!((texts.len() / 2..=2 * texts.len()).contains(&rows), "{rows} of {}", texts.len());
    assert!(read(&dir, "clean/metadata.csv").starts_with("long-0001|heard words\n"));
}
