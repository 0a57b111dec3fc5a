//! Good and bad manifests, and the result for each row.

use super::*;
use proptest::prelude::*;
use std::fs;
use std::os::unix::fs::symlink;
use tandem_units::Hint;

/// A corpus on disk for one test.
struct Made(tempfile::TempDir);

impl Made {
    fn with(files: &[(&str, &[u8])]) -> Made {
        let folder = tempfile::tempdir().expect("a directory");
        for (file, bytes) in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().expect("inside")).expect("created");
            fs::write(path, bytes).expect("written");
        }
        Made(folder)
    }

    fn read(&self) -> Result<Corpus, DataError> {
        Corpus::read(self.0.path(), &CorpusConfig::default())
    }
}

const CLIPS: [(&str, &[u8]); 3] = [("wavs/a.wav", b""), ("wavs/b.wav", b""), ("wavs/c.flac", b"")];

fn corpus_of(manifest: &[u8]) -> Made {
    Made::with(&[&CLIPS[..], &[("metadata.csv", manifest)]].concat())
}

/// Reads a manifest over the clips a, b and c; expects `id text speaker language` of each
/// used row, and line and reason of each rejected one.
#[track_caller]
fn check(manifest: &[u8], used: &[[&str; 4]], rejected: &[(u32, RejectReason)]) {
    let corpus = corpus_of(manifest).read().expect("a corpus");
    let found: Vec<[&str; 4]> = corpus
        .utterances
        .iter()
        .map(|row| {
            let [speaker, language] = [&row.speaker, &row.language].map(|n| n.as_deref());
            [&row.id, &row.text, speaker.unwrap_or(""), language.unwrap_or("")]
        })
        .collect();
    assert_eq!(found, used);
    let found: Vec<_> = corpus.rejected.iter().map(|row| (row.line, row.reason)).collect();
    assert_eq!(found, rejected);
}

#[test]
fn phonemes_are_read_from_the_column_a_header_names() {
    let corpus = corpus_of("id|text|phonemes\na|hello|həlˈoʊ\nb|world| \n".as_bytes()).read();
    let found: Vec<_> = corpus.unwrap().utterances.into_iter().map(|row| row.phonemes).collect();
    assert_eq!(found, [Some("həlˈoʊ".to_owned()), None]);
}

#[track_caller]
fn check_fault(made: &Made, fact: &str, advice: &str) {
    let fault = made.read().expect_err("no corpus");
    let (words, hint) = (fault.to_string(), fault.hint().expect("a hint"));
    assert!(words.contains(fact), "{words}");
    assert!(hint.contains(advice), "{hint}");
}

#[test]
fn two_and_three_columns_with_all_line_ends_and_marks_are_read() {
    check(
        b"a|one word\nb|two words",
        &[["a", "one word", "", ""], ["b", "two words", "", ""]],
        &[],
    );
    let spelled = "\u{feff}a|in 3 days|in three days\r\n\r\nb.wav|no reading|\r\n";
    check(spelled.as_bytes(), &[["a", "in three days", "", ""], ["b", "no reading", "", ""]], &[]);
}

#[test]
fn a_header_may_name_and_reorder_columns() {
    check(
        "speaker_name|language|audio_file|text\nmina|fa|wavs/a.wav|سلام\n".as_bytes(),
        &[["wavs/a", "سلام", "mina", "fa"]],
        &[],
    );
}

#[test]
fn speaker_and_language_are_found_without_a_header() {
    check(
        "a|۲ نان|دو نان|mina|fa\nc|2 loaves|two loaves|jack|en\n".as_bytes(),
        &[["a", "دو نان", "mina", "fa"], ["c", "two loaves", "jack", "en"]],
        &[],
    );
}

#[test]
fn quotes_joiners_and_marks_are_unchanged() {
    let text = "\"He said «می\u{200c}روم» \u{202b}cafe\u{301}\u{202c}\", then left ";
    let manifest = format!("a|{text}\nb|it\"s|it\"s\n");
    check(manifest.as_bytes(), &[["a", text, "", ""]], &[(2, RejectReason::WrongColumns)]);
}

#[test]
fn the_raw_text_can_be_selected() {
    let made = corpus_of(b"a|in 3 days|in three days\n");
    let config = CorpusConfig { text_column: TextColumn::Text, ..Default::default() };
    let corpus = Corpus::read(made.0.path(), &config).expect("a corpus");
    assert_eq!(corpus.utterances[0].text, "in 3 days");
}

#[test]
fn a_default_language_fills_the_gaps_only() {
    let made = corpus_of("id|text|lang\na|سلام|\nb|hello|en\n".as_bytes());
    let config = CorpusConfig { default_language: Some("fa".into()), ..Default::default() };
    let corpus = Corpus::read(made.0.path(), &config).expect("a corpus");
    let languages: Vec<_> = corpus.utterances.iter().map(|row| row.language.as_deref()).collect();
    assert_eq!(languages, [Some("fa"), Some("en")]);
}

#[test]
fn each_bad_row_is_listed_and_the_others_are_used() {
    use RejectReason::*;
    let mut manifest = b"a|fine words\nb|bad \xE9t\xE9\n".to_vec();
    manifest.extend_from_slice("b|too|many|columns\nnone\nb|\u{200c} \u{200f}\n".as_bytes());
    manifest.extend_from_slice(b"|no id\na.wav|again\n../a|out\n/a|out\nz|no audio\nc|fine too\n");
    check(
        &manifest,
        &[["a", "fine words", "", ""], ["c", "fine too", "", ""]],
        &[
            (2, InvalidUtf8),
            (3, WrongColumns),
            (4, WrongColumns),
            (5, EmptyText),
            (6, EmptyId),
            (7, DuplicateId),
            (8, LeavesCorpus),
            (9, LeavesCorpus),
            (10, MissingAudio),
        ],
    );
}

#[test]
fn a_rejected_row_says_where_it_is_and_what_to_do() {
    let made = corpus_of(b"a|one word\nb|x\xFFy\na|two words\nz|more\nb|x|y\n");
    let rejected = made.read().expect("a corpus").rejected;
    let words = |at: usize| format!("{} | {}", rejected[at].message, rejected[at].fix);
    assert!(rejected.iter().all(|row| row.manifest == "metadata.csv"));
    assert_eq!(rejected[0].id, "b");
    assert!(words(0).contains("byte 4 of the line (byte 15 of the file)"), "{}", words(0));
    assert!(words(1).contains("line 1 of `metadata.csv`"), "{}", words(1));
    assert!(words(2).contains("`z` (.wav, .flac, .mp3, .ogg) in wavs/, ./"), "{}", words(2));
    assert!(words(3).contains("3 columns, expected 2"), "{}", words(3));
    assert!(words(3).contains("--separator"), "{}", words(3));
}

#[test]
fn an_endless_line_is_one_rejected_row() {
    let mut manifest = b"a|one word\nb|".to_vec();
    manifest.resize(3 << 20, b'x');
    manifest.extend_from_slice(b"\nc|more words\n");
    let rejected = [(2, RejectReason::LineTooLong)];
    check(&manifest, &[["a", "one word", "", ""], ["c", "more words", "", ""]], &rejected);
}

#[test]
fn an_invalid_manifest_is_one_error() {
    check_fault(&corpus_of(b""), "no rows", "id|text");
    check_fault(&corpus_of(b"\n \r\n"), "no rows", "id|text");
    check_fault(&corpus_of(b"id|text\n"), "no rows", "id|text");
    check_fault(&corpus_of(b"a\tb c\nb\td e\n"), "most have 1", "--separator tab");
    check_fault(&corpus_of(b"a|b c\rb|d e\r"), "carriage return", "tr '\\r'");
    check_fault(&corpus_of(b"just words\n"), "2 to 5 columns", "corpus.separator");
    check_fault(&corpus_of(b"a|b|c|d|e|f|g\n"), "most have 7", "header line");
    check_fault(&corpus_of(b"id|text\na|b|c\n"), "2 columns", "corpus.separator");
    check_fault(&corpus_of(b"\xFF\xFEa\0|\0b\0"), "UTF-16", "iconv");
    check_fault(
        &corpus_of(b"a|caf\xE9\nb|th\xE9\n"),
        "probably WINDOWS-1252",
        "iconv -f WINDOWS-1252",
    );
}

#[test]
fn a_corpus_without_recordings_is_one_error_that_names_the_folders() {
    let made = Made::with(&[("metadata.csv", b"a|b\n"), ("recordings/a.wav", b"")]);
    check_fault(&made, "`wavs/`, `wav/`, `audio/`, `clips/`", "`recordings`");
    let made = Made::with(&[("metadata.csv", b"a|b\n")]);
    check_fault(&made, "holds no recordings", "folder `wavs`");
}

#[test]
fn a_linked_corpus_with_a_linked_folder_is_read() {
    let disk = Made::with(&[("LJSpeech/wavs/a.wav", b""), ("outside.wav", b"")]);
    let home = Made::with(&[("voice/metadata.csv", b"a|one word\n../outside|two words\n")]);
    symlink(disk.0.path().join("LJSpeech/wavs"), home.0.path().join("voice/wavs")).expect("linked");
    symlink("voice", home.0.path().join("link")).expect("linked");
    let path = home.0.path().join("link");
    let corpus = Corpus::read(&path, &CorpusConfig::default()).expect("a corpus");
    assert_eq!(corpus.utterances.len(), 1);
    assert!(corpus.audio_path(&corpus.utterances[0]).is_file());
    assert_eq!(corpus.rejected[0].reason, RejectReason::LeavesCorpus);
}

#[test]
fn a_folder_of_recordings_on_a_missing_disk_is_one_error_that_names_the_link() {
    let made = Made::with(&[("metadata.csv", b"a|b\n")]);
    symlink("/no/such/disk/wavs", made.0.path().join("wavs")).expect("linked");
    check_fault(&made, "holds no recordings", "the link `wavs` leads to no directory");
}

#[test]
fn invalid_settings_are_refused() {
    let made = corpus_of(b"a|b\n");
    for config in [
        CorpusConfig { eval_share: 1.0, ..Default::default() },
        CorpusConfig { eval_share: f64::NAN, ..Default::default() },
        CorpusConfig { separator: '\n', ..Default::default() },
        CorpusConfig { separator: 'a', ..Default::default() },
    ] {
        let fault = Corpus::read(made.0.path(), &config).expect_err("refused");
        assert!(matches!(fault, DataError::CorpusSetting { .. }), "{fault}");
    }
}

#[test]
fn an_unknown_setting_is_refused() {
    let fault = serde_json::from_str::<CorpusConfig>(r#"{"seperator": ";"}"#).expect_err("refused");
    assert!(fault.to_string().contains("seperator"), "{fault}");
    let read: CorpusConfig = serde_json::from_str(r#"{"separator": ";"}"#).expect("known");
    assert_eq!(read, CorpusConfig { separator: ';', ..Default::default() });
}

#[test]
fn train_and_eval_manifests_are_used_as_they_are() {
    let mut files = CLIPS.to_vec();
    files.extend([
        ("metadata.csv", &b"a|x y\nb|x y\nc|x y\n"[..]),
        ("metadata_train.csv", b"a|x y\nb|x y\n"),
        ("metadata_eval.csv", b"c|x y\nb|leaks\n"),
    ]);
    let corpus = Made::with(&files).read().expect("a corpus");
    let ids = |split| corpus.of(split).map(|row| row.id.as_str()).collect::<Vec<_>>();
    assert_eq!((ids(Split::Train), ids(Split::Eval)), (vec!["a", "b"], vec!["c"]));
    let leak = &corpus.rejected[0];
    assert_eq!(
        (leak.manifest.as_str(), leak.reason),
        ("metadata_eval.csv", RejectReason::DuplicateId)
    );
    assert!(leak.message.contains("line 2 of `metadata_train.csv`"), "{}", leak.message);
}

#[test]
fn the_rows_of_an_eval_manifest_are_excluded_from_training() {
    let mut files = CLIPS.to_vec();
    files.extend([
        ("metadata.csv", &b"a|x y\nb|x y\nc|x y\n"[..]),
        ("metadata_val.csv", b"c|x y\n"),
    ]);
    let corpus = Made::with(&files).read().expect("a corpus");
    let ids = |split| corpus.of(split).map(|row| row.id.as_str()).collect::<Vec<_>>();
    assert_eq!((ids(Split::Train), ids(Split::Eval)), (vec!["a", "b"], vec!["c"]));
    assert_eq!(corpus.rejected, []);
}

#[test]
fn the_demo_corpus_is_read_whole() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tandem/demo-corpus");
    let corpus = Corpus::read(&root, &CorpusConfig::default()).expect("a corpus");
    assert_eq!(corpus.rejected, []);
    assert_eq!((corpus.of(Split::Train).count(), corpus.of(Split::Eval).count()), (134, 16));
    for split in [Split::Train, Split::Eval] {
        let mut speakers: Vec<_> = corpus.of(split).map(|row| row.speaker.as_deref()).collect();
        speakers.sort();
        speakers.dedup();
        assert_eq!(speakers.len(), 6);
    }
    assert!(corpus.utterances.iter().all(|row| corpus.audio_path(row).is_file()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_bytes_cause_a_panic(
        pieces in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..12),
                Just(b"|".to_vec()), Just(b"\n".to_vec()), Just(b"\r\n".to_vec()),
                Just(b"a".to_vec()), Just(b"../".to_vec()), Just(b"id|text\n".to_vec()),
                Just("\u{feff}".as_bytes().to_vec()),
            ],
            0..40,
        ),
    ) {
        let bytes = pieces.concat();
        if let Ok(corpus) = corpus_of(&bytes).read() {
            let rows = corpus.utterances.len() + corpus.rejected.len();
            let lines = bytes.split(|&byte| byte == b'\n').count();
            prop_assert!(rows >= 1 && rows <= lines);
        }
    }

    #[test]
    fn any_text_without_separator_and_line_end_is_unchanged(
        texts in prop::collection::vec("[^|\r\n]{0,40}", 1..3),
    ) {
        let rows = texts.iter().zip(["a", "b"]);
        let manifest: String = rows.map(|(text, id)| format!("{id}|x{text}\n")).collect();
        let corpus = corpus_of(manifest.as_bytes()).read().expect("a corpus");
        let found: Vec<_> = corpus.utterances.iter().map(|row| row.text.clone()).collect();
        prop_assert_eq!(found, texts.iter().map(|text| format!("x{text}")).collect::<Vec<_>>());
    }
}
