//! A small corpus of each layout, good and hostile: what it is recognised as, and what becomes of each row.

use super::*;
use std::fs;
use std::os::unix::fs::symlink;
use tandem_units::Hint;

struct Made(tempfile::TempDir);

impl Made {
    /// Files with their contents; recordings are empty files: nothing here decodes them.
    fn with(files: &[(&str, &str)]) -> Made {
        let folder = tempfile::tempdir().expect("a directory");
        for (file, text) in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().expect("inside")).expect("created");
            fs::write(path, text).expect("written");
        }
        Made(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn read(&self, config: &CorpusConfig) -> Corpus {
        Corpus::read(self.path(), config).expect("a corpus")
    }

    /// The layout and `id text speaker language recording` of each usable row.
    #[track_caller]
    fn check(&self, layout: Layout, description: &str, expected: &[[&str; 5]]) -> Vec<RejectedRow> {
        self.check_with(&CorpusConfig::default(), layout, description, expected)
    }

    #[track_caller]
    fn check_with(
        &self,
        config: &CorpusConfig,
        layout: Layout,
        description: &str,
        expected: &[[&str; 5]],
    ) -> Vec<RejectedRow> {
        let located = Corpus::locate(self.path(), config).expect("recognised");
        assert_eq!((located.layout, located.description.as_str()), (layout, description));
        let corpus = self.read(config);
        let found: Vec<[String; 5]> = corpus.utterances.iter().map(fields).collect();
        assert_eq!(found, expected, "{:?}", corpus.rejected);
        corpus.rejected
    }
}

fn fields(row: &Utterance) -> [String; 5] {
    let named = |name: &Option<String>| name.clone().unwrap_or_default();
    let audio = row.audio.display().to_string();
    [row.id.clone(), row.text.clone(), named(&row.speaker), named(&row.language), audio]
}

#[track_caller]
fn check_reasons(rejected: &[RejectedRow], expected: &[(&str, RejectReason)]) {
    let found: Vec<_> = rejected.iter().map(|row| (row.id.as_str(), row.reason)).collect();
    assert_eq!(found, expected, "{rejected:?}");
}

#[test]
fn ljspeech_and_piper_are_told_apart_and_a_flag_overrides_it() {
    let wavs = [("wavs/a.wav", ""), ("wavs/b.wav", "")];
    let with = |text| Made::with(&[&wavs[..], &[("metadata.csv", text)]].concat());
    let rows = [["a", "x y", "", "", "wavs/a.wav"], ["b", "z", "", "", "wavs/b.wav"]];
    let plain = with("a|x y\nb|z\n");
    plain.check(Layout::Ljspeech, "LJSpeech (`metadata.csv`: id|text)", &rows);
    let piper = with("a|ali|x y\nb|ali|z\n");
    let spoken = [["a", "x y", "ali", "", "wavs/a.wav"], ["b", "z", "ali", "", "wavs/b.wav"]];
    let words = "Piper (`metadata.csv`: id|speaker|text); by its content the second column is a speaker, `--layout \
                 ljspeech` reads it as the text";
    piper.check(Layout::Piper, words, &spoken);
    let config = CorpusConfig {
        layout: Some(Layout::Ljspeech),
        text_column: TextColumn::Text,
        ..CorpusConfig::default()
    };
    let texts = [["a", "ali", "", "", "wavs/a.wav"], ["b", "ali", "", "", "wavs/b.wav"]];
    let words = "LJSpeech (`metadata.csv`: id|text|normalised)";
    piper.check_with(&config, Layout::Ljspeech, words, &texts);
    let numbers = with("a|1984|nineteen eighty-four\nb|2001|two thousand one\n");
    let located = Corpus::locate(numbers.path(), &CorpusConfig::default()).unwrap();
    assert!(
        located.description.contains("second column is a text, `--layout piper`"),
        "{located:?}"
    );
    let config = CorpusConfig { layout: Some(Layout::Piper), ..CorpusConfig::default() };
    assert_eq!(numbers.read(&config).utterances[0].speaker.as_deref(), Some("1984"));
}

#[test]
fn common_voice_is_read_with_speakers_and_languages() {
    let table = "client_id\tpath\tsentence\tup_votes\tlocale\n\
                 f00\ta.mp3\tHello | there\t2\ten\nbar\tb.mp3\tسلام\t3\tfa\nbar\tgone.mp3\tno\t3\tfa\nshort\n\
                 bar\t../c.mp3\tout\t3\tfa\n";
    let made = Made::with(&[
        ("validated.tsv", table),
        ("test.tsv", "client_id\tpath\tsentence\tlocale\nx\tc.mp3\tnot read\ten\n"),
        ("clips/a.mp3", ""),
        ("clips/b.mp3", ""),
        ("clips/c.mp3", ""),
    ]);
    let rejected = made.check(
        Layout::CommonVoice,
        "Common Voice (`validated.tsv`: speaker, id, text, language)",
        &[
            ["a", "Hello | there", "f00", "en", "clips/a.mp3"],
            ["b", "سلام", "bar", "fa", "clips/b.mp3"],
        ],
    );
    use RejectReason::*;
    check_reasons(
        &rejected,
        &[("gone.mp3", MissingAudio), ("short", WrongColumns), ("../c.mp3", LeavesCorpus)],
    );
    let header = "client_id\tpath\tsentence\tlocale\n";
    let split = Made::with(&[
        ("train.tsv", &format!("{header}x\ta.mp3\tone\ten\n")),
        ("dev.tsv", &format!("{header}y\tb.mp3\ttwo\ten\n")),
        ("clips/a.mp3", ""),
        ("clips/b.mp3", ""),
    ]);
    let splits = split.read(&CorpusConfig::default()).utterances;
    assert_eq!(splits.iter().map(|row| row.split).collect::<Vec<_>>(), [Split::Train, Split::Eval]);
}

#[test]
fn vctk_takes_the_speaker_from_the_folder_and_the_first_microphone() {
    let made = Made::with(&[
        ("txt/p225/p225_001.txt", "Please call Stella.\n"),
        ("txt/p225/p225_002.txt", "Two\nlines"),
        ("txt/p226/p226_001.txt", "No recording"),
        ("wav48_silence_trimmed/p225/p225_001_mic1.flac", ""),
        ("wav48_silence_trimmed/p225/p225_001_mic2.flac", ""),
        ("wav48_silence_trimmed/p225/p225_002.wav", ""),
    ]);
    let folder = "wav48_silence_trimmed/p225";
    let rejected = made.check(
        Layout::Vctk,
        "VCTK",
        &[
            [
                "p225/p225_001",
                "Please call Stella.",
                "p225",
                "",
                &format!("{folder}/p225_001_mic1.flac"),
            ],
            ["p225/p225_002", "Two lines", "p225", "", &format!("{folder}/p225_002.wav")],
        ],
    );
    check_reasons(&rejected, &[("p226_001", RejectReason::MissingAudio)]);
}

#[test]
fn librispeech_and_libritts_are_read_below_their_chapters() {
    let made = Made::with(&[
        (
            "dev-clean/84/121123/84-121123.trans.txt",
            "84-121123-0000 WE SAY\n84-121123-0001 OH\n84-121123-0002\n",
        ),
        ("dev-clean/84/121123/84-121123-0000.flac", ""),
        ("dev-clean/84/121123/84-121123-0002.flac", ""),
    ]);
    let folder = "dev-clean/84/121123";
    let first = format!("{folder}/84-121123-0000.flac");
    let rejected = made.check(
        Layout::Libri,
        "LibriSpeech or LibriTTS",
        &[["84-121123-0000", "we say", "84", "", &first]],
    );
    use RejectReason::*;
    check_reasons(&rejected, &[("84-121123-0001", MissingAudio), ("84-121123-0002", EmptyText)]);
    let made = Made::with(&[
        ("84/1/84_1_000001_000000.normalized.txt", "Mister Smith, in nineteen ten."),
        ("84/1/84_1_000001_000000.original.txt", "Mr. Smith, in 1910."),
        ("84/1/84_1_000001_000000.wav", ""),
    ]);
    let row = |text| [["84_1_000001_000000", text, "84", "", "84/1/84_1_000001_000000.wav"]];
    made.check(Layout::Libri, "LibriSpeech or LibriTTS", &row("Mister Smith, in nineteen ten."));
    let config = CorpusConfig { text_column: TextColumn::Text, ..CorpusConfig::default() };
    made.check_with(&config, Layout::Libri, "LibriSpeech or LibriTTS", &row("Mr. Smith, in 1910."));
}

#[test]
fn a_text_beside_each_recording_is_read_and_what_has_no_partner_is_listed() {
    let made = Made::with(&[
        ("README.txt", "not a row"),
        ("home/a.wav", ""),
        ("home/a.txt", "\u{feff}one  two\n"),
        ("home/b.wav", ""),
        ("home/c.txt", "three"),
        ("home/license.txt", "not a row"),
        ("samples/x.wav", ""),
    ]);
    fs::write(made.path().join("home/d.txt"), b"caf\xE9 au lait").unwrap();
    fs::write(made.path().join("home/d.wav"), b"").unwrap();
    let title = "a text file beside each recording";
    let rejected =
        made.check(Layout::TextFiles, title, &[["home/a", "one two", "", "", "home/a.wav"]]);
    use RejectReason::*;
    check_reasons(
        &rejected,
        &[("home/b", EmptyText), ("home/c", MissingAudio), ("home/d", InvalidUtf8)],
    );
    assert!(rejected[2].fix.contains("WINDOWS-1252"), "{}", rejected[2].fix);
}

#[test]
fn a_recording_beside_its_text_comes_before_a_copy_in_another_folder() {
    let made = Made::with(&[("a.wav", ""), ("a.txt", "one"), ("wavs/a.wav", "")]);
    let title = "a text file beside each recording";
    made.check(Layout::TextFiles, title, &[["a", "one", "", "", "a.wav"]]);
}

#[test]
fn a_text_that_links_out_of_the_corpus_is_not_read() {
    let secret = Made::with(&[("secret.txt", "a secret")]);
    let made = Made::with(&[("a.wav", ""), ("a.txt", "fine"), ("b.wav", "")]);
    symlink(secret.path().join("secret.txt"), made.path().join("b.txt")).unwrap();
    symlink(secret.path(), made.path().join("folder")).unwrap();
    let rejected = made.check(
        Layout::TextFiles,
        "a text file beside each recording",
        &[["a", "fine", "", "", "a.wav"]],
    );
    check_reasons(&rejected, &[("b", RejectReason::LeavesCorpus)]);
    assert!(!format!("{rejected:?}").contains("a secret"));
}

#[test]
fn nemo_manifests_are_read_and_absolute_paths_need_permission() {
    let elsewhere = Made::with(&[("far/b.wav", ""), ("other/c.wav", "")]);
    let there = elsewhere.path().canonicalize().unwrap();
    let far = there.join("far");
    let made = Made::with(&[("sub/a.wav", "")]);
    let inside = made.path().canonicalize().unwrap().join("sub/a.wav");
    let lines = [
        format!(
            r#"{{"audio_filepath": "{}", "text": "one", "duration": 1.5, "speaker": 7}}"#,
            inside.display()
        ),
        format!(r#"{{"audio_filepath": "{}/b.wav", "text": "two", "lang": "en"}}"#, far.display()),
        format!(r#"{{"audio_filepath": "{}/other/c.wav", "text": "three"}}"#, there.display()),
        format!(r#"{{"audio_filepath": "{}/../other/c.wav", "text": "four"}}"#, far.display()),
        r#"{"audio_filepath": "../d.wav", "text": "five"}"#.to_owned(),
        r#"{"audio_filepath": "sub/a.wav", "text": "six", "offset": 2.5, "duration": 1}"#
            .to_owned(),
        r#"{"audio_filepath": "sub/a.wav", "text": ""#.to_owned(),
        r#"{"text": "seven"}"#.to_owned(),
    ];
    fs::write(made.path().join("train_manifest.json"), lines.join("\n")).unwrap();
    let title = "JSON Lines (NeMo) (`train_manifest.json`)";
    let first = ["sub/a", "one", "7", "", "sub/a.wav"];
    let reasons = |rejected: &[RejectedRow]| -> Vec<(u32, RejectReason)> {
        rejected.iter().map(|row| (row.line, row.reason)).collect()
    };
    use RejectReason::*;
    let rest = [
        (3, LeavesCorpus),
        (4, LeavesCorpus),
        (5, LeavesCorpus),
        (6, PartOfRecording),
        (7, WrongColumns),
        (8, EmptyId),
    ];
    let rejected = made.check(Layout::Nemo, title, &[first]);
    assert_eq!(reasons(&rejected), [&[(2, LeavesCorpus)][..], &rest].concat());
    assert!(rejected[0].fix.contains("--recordings-dir"));
    let config = CorpusConfig { recordings_dir: Some(far.clone()), ..CorpusConfig::default() };
    let second = far.join("b.wav").display().to_string();
    let rejected =
        made.check_with(&config, Layout::Nemo, title, &[first, ["b", "two", "", "en", &second]]);
    assert_eq!(reasons(&rejected), rest);
    let rows = Corpus::rows_with_parts(made.path(), &config).unwrap();
    let parts: Vec<_> = rows
        .filter_map(|row| match row.unwrap() {
            CorpusRow::Usable(row) => row.part.map(|part| (row.id, part.start.as_secs_f64())),
            CorpusRow::Rejected(_) => None,
        })
        .collect();
    assert_eq!(parts, [("sub/a_00002500".to_owned(), 2.5)]);
}

#[test]
fn cuts_of_lhotse_are_whole_recordings_or_parts() {
    let cut = |id: &str, start: f64, length: f64, kind: &str| {
        format!(
            r#"{{"id":"{id}","start":{start},"duration":{length},"channel":0,"type":"MonoCut","supervisions":[{{"text":"said {id}","speaker":"mina","language":"fa"}}],"recording":{{"id":"r","duration":2.0,"sources":[{{"type":"{kind}","channels":[0],"source":"a.flac"}}]}}}}"#
        )
    };
    let lines = [
        cut("one", 0.0, 1.999, "file"),
        cut("two", 1.0, 1.0, "file"),
        cut("three", 0.0, 2.0, "command"),
    ];
    let made = Made::with(&[("cuts.jsonl", &lines.join("\n")), ("a.flac", "")]);
    let rejected = made.check(
        Layout::Lhotse,
        "lhotse cuts (`cuts.jsonl`)",
        &[["one", "said one", "mina", "fa", "a.flac"]],
    );
    use RejectReason::*;
    check_reasons(&rejected, &[("two", PartOfRecording), ("", MissingAudio)]);
}

#[test]
fn tables_of_espnet_are_read_side_by_side_and_no_command_is_run() {
    let made = Made::with(&[
        ("text", "a one two\nb three\nc four\nd five\n"),
        ("wav.scp", "a audio/a.wav\nb touch ran |\nd /etc/d.wav\n"),
        ("utt2spk", "a ali\nb bob\nd dan\n"),
        ("audio/a.wav", ""),
    ]);
    let rejected = made.check(
        Layout::Espnet,
        "ESPnet or Kaldi (`text`)",
        &[["a", "one two", "ali", "", "audio/a.wav"]],
    );
    use RejectReason::*;
    check_reasons(&rejected, &[("b", MissingAudio), ("c", MissingAudio), ("d", LeavesCorpus)]);
    assert!(!made.path().join("ran").exists());
    fs::write(made.path().join("segments"), "a a 0 1\n").unwrap();
    let fault = Corpus::read(made.path(), &CorpusConfig::default()).unwrap_err();
    assert!(fault.to_string().contains("segments"), "{fault}");
    let located = Corpus::locate(made.path(), &CorpusConfig::default()).unwrap();
    assert_eq!(located.files[0], Path::new("text"));
    assert!(located.files.contains(&PathBuf::from("utt2spk")), "a changed speaker changes rows");
}

#[test]
fn audio_folders_have_quotes_and_splits() {
    let made = Made::with(&[
        (
            "metadata.csv",
            "file_name,transcription,speaker_id\na.wav,\"Well, \"\"yes\"\".\",ali\nb.wav,one,two,three\n",
        ),
        ("a.wav", ""),
    ]);
    let rejected = made.check(
        Layout::HuggingFace,
        "Hugging Face audio folder (`metadata.csv`)",
        &[["a", "Well, \"yes\".", "ali", "", "a.wav"]],
    );
    check_reasons(&rejected, &[("", RejectReason::WrongColumns)]);
    let made = Made::with(&[
        ("train/metadata.jsonl", "{\"file_name\": \"a.wav\", \"text\": \"one\"}\n"),
        ("train/a.wav", ""),
        ("validation/metadata.jsonl", "{\"file_name\": \"a.wav\", \"text\": \"two\"}\n"),
        ("validation/a.wav", ""),
    ]);
    made.check(
        Layout::HuggingFace,
        "Hugging Face audio folder (`train/metadata.jsonl`)",
        &[
            ["train/a", "one", "", "", "train/a.wav"],
            ["validation/a", "two", "", "", "validation/a.wav"],
        ],
    );
    let splits = made.read(&CorpusConfig::default()).utterances;
    assert_eq!(splits.iter().map(|row| row.split).collect::<Vec<_>>(), [Split::Train, Split::Eval]);
}

#[test]
fn layouts_that_are_not_read_say_what_to_do() {
    let fault = |files: &[(&str, &str)], config: &CorpusConfig| {
        let fault = Corpus::read(Made::with(files).path(), config).expect_err("not read");
        (fault.to_string(), fault.hint().expect("a hint"))
    };
    let any = CorpusConfig::default();
    let (words, hint) = fault(&[("data/train-00000-of-00001.parquet", "PAR1")], &any);
    assert!(words.contains("parquet") && hint.contains("metadata.jsonl"), "{words} {hint}");
    let (words, hint) = fault(&[("cuts.jsonl.gz", "")], &any);
    assert!(words.contains("compressed") && hint.contains("gunzip"), "{words} {hint}");
    let wanted = CorpusConfig { layout: Some(Layout::Vctk), ..any.clone() };
    let (words, _) = fault(&[("metadata.csv", "a|b\n")], &wanted);
    assert!(words.contains("txt/") && words.contains("wav48"), "{words}");
    let nowhere = CorpusConfig { recordings_dir: Some("no/such/place".into()), ..any };
    let (words, hint) = fault(&[("metadata.csv", "a|b\n")], &nowhere);
    assert!(
        words.contains("recordings_dir") && hint.contains("--recordings-dir"),
        "{words} {hint}"
    );
}

#[test]
fn a_changed_added_or_removed_text_file_changes_the_stamp_of_its_folder() {
    let made = Made::with(&[("x/a.wav", ""), ("x/a.txt", "one")]);
    let stamp = || Corpus::stamp(made.path()).unwrap();
    let first = stamp();
    assert_eq!(first, stamp());
    fs::write(made.path().join("x/a.txt"), "another").unwrap();
    let second = stamp();
    fs::write(made.path().join("x/b.txt"), "two").unwrap();
    let third = stamp();
    assert!(first != second && second != third && first != third);
    fs::remove_file(made.path().join("x/b.txt")).unwrap();
    assert_eq!(second, stamp());
}

#[test]
fn every_layout_has_its_own_word_and_is_searched_for() {
    for layout in Layout::ALL {
        let word = serde_json::to_value(layout).unwrap();
        assert_eq!(word, layout.name());
    }
    let names: std::collections::BTreeSet<_> = Layout::ALL.iter().map(|one| one.title()).collect();
    assert_eq!(names.len(), Layout::ALL.len());
}
