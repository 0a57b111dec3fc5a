//! `tandem prepare` on valid and broken corpora: which rows are used, which are rejected, and what the
//! messages say.

mod support;

use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::process::Command;
use support::{CommandOutput, Kind, TestDir, settings_dir, tone_wav, wav, wav_of};

/// Prepares a manifest over the clips a, b and c; expects this many usable rows and no rejected one.
#[track_caller]
fn check_used(manifest: &[u8], rows: usize) -> Value {
    let dir = TestDir::with_clips(3, "");
    dir.write("metadata.csv", manifest);
    let summary = dir.prepare(&[]);
    assert_eq!((&summary["usable"], &summary["rejected"]), (&rows.into(), &0.into()), "{summary}");
    summary
}

#[test]
fn manifests_of_2_3_and_5_columns_are_read() {
    check_used(b"a|one word\nb|two words\n", 2);
    check_used(b"a|in 3 days|in three days\nb|two words|\n", 2);
    let summary = check_used("a|سلام|سلام|mina|fa\nb|two|two|jack|en\n".as_bytes(), 2);
    assert_eq!(summary["speakers"], serde_json::json!({"jack": 1, "mina": 1}));
    assert_eq!(summary["languages"], serde_json::json!({"en": 1, "fa": 1}));
}

#[test]
fn a_header_a_byte_order_mark_and_windows_line_ends_are_read() {
    check_used(b"id|text\na|one word\nb|two words\n", 2);
    check_used("\u{feff}a|one word\r\n\r\nb|two words\r\n".as_bytes(), 2);
    let summary = check_used(b"text|speaker_name|audio_file\nhello|mina|wavs/a.wav\nyes|jo|b\n", 2);
    assert_eq!(summary["speakers"], serde_json::json!({"jo": 1, "mina": 1}));
}

#[test]
fn a_column_of_phonemes_replaces_the_text_and_its_symbols_are_checked() {
    let manifest = "id|text|phonemes|language\na|Mám ☃|/maːm trʒɪ/|cs\nb|hello||en\n\
        c|dům|duːm ☃|cs\n";
    let dir = TestDir::with_clips(3, "");
    dir.write("metadata.csv", manifest.as_bytes());
    let languages = ["--languages", "en,cs", "--max-rejected", "1"];
    let summary = dir.prepare(&languages);
    assert_eq!((&summary["usable"], &summary["rejected"]), (&2.into(), &1.into()), "{summary}");
    let row = &summary["rejected_rows"][0];
    let message = "`☃` (U+2603) at character 6 of the phonemes is not a symbol the voice knows";
    assert_eq!((&row["id"], &row["message"]), (&"c".into(), &message.into()));
    // Where characters are asked for, the text counts again: its sign cannot be read.
    let characters = ["--pronunciation", "characters"];
    let summary = dir.prepare(&[&languages[..], &characters].concat());
    assert_eq!(summary["rejected_rows"][0]["id"], "a", "{summary}");
    assert_eq!((&summary["usable"], &summary["rejected"]), (&2.into(), &1.into()), "{summary}");
}

#[test]
fn the_symbols_of_each_language_and_uncertain_words_are_shown() {
    let dir = TestDir::with_clips(3, "a|a frimble\nb|سلام دنیا\nc|yes\n");
    let shown = dir.run(&["prepare", "corpus"]);
    let line = "symbols    en built-in phonemes, fa built-in phonemes; of 5 words, 20.0 % guessed and \
        0.0 % in characters (`tandem text` names them)";
    assert!(shown.out.contains(line), "{}", shown.out);
    // Nothing is read the second time.
    let shown = dir.run(&["prepare", "corpus"]);
    assert!(
        shown.out.contains("symbols    en built-in phonemes, fa built-in phonemes\n"),
        "{}",
        shown.out
    );
}

#[test]
fn ids_may_have_an_extension_and_directories() {
    let dir = TestDir::with(&[
        ("wavs/en/a.wav", &tone_wav()),
        ("wavs/fa/b.wav", &tone_wav()),
        ("wavs/c.WAV", &tone_wav()),
        ("metadata.csv", "en/a|one\nfa/b.wav|دو\nc.wav|three\n".as_bytes()),
    ]);
    let summary = dir.prepare(&[]);
    assert_eq!((&summary["usable"], &summary["rejected"]), (&3.into(), &0.into()), "{summary}");
}

#[test]
fn quotes_joiners_marks_and_direction_stay_in_the_text() {
    let text = "«می\u{200c}روم» \u{202b}گفت\u{202c}";
    check_used(format!("a|\"He said \u{201c}cafe\u{301}\u{201d}\"\nb|{text}\n").as_bytes(), 2);
    let dir = TestDir::with_clips(2, &format!("a|\"Yes\" he said\nb|{text}\n"));
    let batches = dir.run(&["batches", "corpus", "--json"]).json();
    assert_eq!(batches["utterances"], 1, "one is held out: {batches}");
}

#[test]
fn train_and_eval_manifests_define_the_split() {
    let dir = TestDir::with_clips(3, "a|x y\nb|x y\nc|x y\n");
    dir.write("metadata_train.csv", b"a|x y\nb|x y\n");
    dir.write("metadata_eval.csv", b"c|x y\n");
    let summary = dir.prepare(&[]);
    assert_eq!((&summary["train"], &summary["eval"]), (&2.into(), &1.into()));
}

#[test]
fn every_sample_rate_width_and_channel_count_keeps_its_duration() {
    let mut kinds = Vec::new();
    for rate in [8_000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000] {
        kinds.push((Kind::Int(16), rate, 1));
    }
    for channels in 2..=8 {
        kinds.push((Kind::Int(16), 22_050, channels));
    }
    for kind in [Kind::Int(8), Kind::Int(24), Kind::Int(32), Kind::Float] {
        kinds.push((kind, 44_100, 2));
    }
    let dir = TestDir::new();
    let mut manifest = String::new();
    for (number, (kind, rate, channels)) in kinds.iter().enumerate() {
        dir.write(&format!("wavs/c{number}.wav"), &wav(*kind, *rate, *channels, 1.0));
        manifest.push_str(&format!("c{number}|one second\n"));
    }
    dir.write("metadata.csv", manifest.as_bytes());
    let summary = dir.prepare(&[]);
    assert_eq!(summary["usable"], kinds.len(), "{summary}");
    // One second is 22,050 samples or 87 frames of 256 at any rate of the file; the total length is
    // counted in whole frames.
    let sound = summary["sound"].as_f64().unwrap() / kinds.len() as f64;
    assert!((sound - 1.0).abs() < 0.013, "{sound} s each");
    assert_eq!(summary["longest_frames"], 87);
}

/// One bad clip and four good rows: the bad row is listed with these words, and the others are used.
#[track_caller]
fn check_refused(clip: &[u8], reason: &str, words: &str) {
    let dir = TestDir::with_clips(4, "a|one\nb|two\nbad|three\nc|four\nd|five\n");
    dir.write("wavs/bad.wav", clip);
    let summary = dir.prepare(&[]);
    assert_eq!((&summary["usable"], &summary["rejected"]), (&4.into(), &1.into()), "{summary}");
    let row = &summary["rejected_rows"][0];
    let text = |key: &str| row[key].as_str().unwrap_or_default().to_string();
    assert_eq!((text("manifest").as_str(), row["line"].as_u64()), ("metadata.csv", Some(3)));
    assert_eq!((text("id").as_str(), text("reason").as_str()), ("bad", reason), "{row}");
    assert!(text("message").contains(words), "{row}");
    assert!(text("fix").len() > 10, "{row}");
    assert!(!text("message").contains('\n') && !text("fix").contains('\n'), "{row}");
    let list = fs::read_to_string(summary["rejected_list"].as_str().unwrap()).unwrap();
    let line = ["metadata.csv", "3", "bad", reason, &text("message"), &text("fix")].join("\t");
    assert_eq!(list.lines().nth(1), Some(line.as_str()));
}

#[test]
fn broken_recordings_are_listed_with_their_fault() {
    let whole = tone_wav();
    check_refused(b"", "broken_audio", "empty");
    check_refused(&whole[..44], "broken_audio", "");
    check_refused(&whole[..whole.len() / 2], "broken_audio", "truncated");
    check_refused(&whole[..20], "broken_audio", "");
    check_refused(&wav(Kind::Int(16), 22_050, 1, 0.0), "broken_audio", "no samples");
    check_refused(&wav(Kind::Int(16), 22_050, 1, 0.01), "broken_audio", "the minimum is 100.00 ms");
    check_refused(b"<html>not found</html>", "broken_audio", "");
    let silence = wav_of(Kind::Int(16), 22_050, 1, std::iter::repeat_n(0.0, 22_050));
    check_refused(&silence, "broken_audio", "silent");
    let nan = (0..22_050).map(|at| if at == 11_025 { f64::NAN } else { 0.1 });
    check_refused(&wav_of(Kind::Float, 22_050, 1, nan), "broken_audio", "is NaN or infinite");
    let loud = std::iter::repeat_n(20_000.0, 22_050);
    check_refused(&wav_of(Kind::Float, 22_050, 1, loud), "broken_audio", "");
}

#[test]
fn too_long_recordings_are_listed_with_the_limit() {
    check_refused(&wav(Kind::Int(16), 22_050, 1, 12.0), "audio_too_long", "the limit is 800");
    check_refused(&wav(Kind::Int(8), 4_000, 1, 130.0), "audio_too_long", "2.2 min");
    // The header claims ten hours: rejected before that much memory is allocated.
    let mut header = wav(Kind::Int(16), 22_050, 1, 0.5);
    let claimed = 22_050u32 * 2 * 36_000;
    header[40..44].copy_from_slice(&claimed.to_le_bytes());
    check_refused(&header, "broken_audio", "truncated");
}

/// One bad line between four good rows.
#[track_caller]
fn check_line(line: &[u8], reason: &str, words: &str) {
    let dir = TestDir::with_clips(4, "");
    let mut manifest = b"a|one\nb|two\n".to_vec();
    manifest.extend_from_slice(line);
    manifest.extend_from_slice(b"\nc|four\n");
    dir.write("metadata.csv", &manifest);
    dir.write("outside.wav", &tone_wav());
    fs::rename(dir.corpus().join("outside.wav"), dir.path("outside.wav")).unwrap();
    symlink(dir.path("outside.wav"), dir.corpus().join("wavs/link.wav")).unwrap();
    symlink(dir.path(""), dir.corpus().join("wavs/away")).unwrap();
    let summary = dir.prepare(&["--max-rejected", "0.5"]);
    assert_eq!((&summary["usable"], &summary["rejected"]), (&3.into(), &1.into()), "{summary}");
    let row = &summary["rejected_rows"][0];
    assert_eq!((row["reason"].as_str(), row["line"].as_u64()), (Some(reason), Some(3)), "{row}");
    assert!(row["message"].as_str().unwrap().contains(words), "{row}");
    assert!(row["fix"].as_str().unwrap().len() > 10, "{row}");
}

#[test]
fn ids_outside_of_the_corpus_are_rejected() {
    check_line(b"../outside|words", "leaves_corpus", "leaves the corpus");
    check_line(b"wavs/../../outside|words", "leaves_corpus", "leaves the corpus");
    check_line(b"/etc/passwd|words", "leaves_corpus", "leaves the corpus");
    check_line(b"C:\\clips\\a|words", "leaves_corpus", "leaves the corpus");
    check_line(b"link|words", "leaves_corpus", "wavs/link.wav");
    check_line(b"away/outside|words", "leaves_corpus", "wavs/away");
}

#[test]
fn a_linked_folder_of_recordings_is_used() {
    let dir = TestDir::with_clips(3, "a|one\nb|two\nc|three\n");
    fs::rename(dir.corpus().join("wavs"), dir.path("recordings")).unwrap();
    symlink(dir.path("recordings"), dir.corpus().join("wavs")).unwrap();
    let summary = dir.prepare(&[]);
    assert_eq!((&summary["usable"], &summary["rejected"]), (&3.into(), &0.into()), "{summary}");
}

#[test]
fn a_fifo_in_place_of_a_recording_is_one_rejected_row() {
    let dir = TestDir::with_clips(3, "a|one\nb|two\nc|three\n");
    fs::remove_file(dir.corpus().join("wavs/b.wav")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(dir.corpus().join("wavs/b.wav")).status();
    assert!(made.unwrap().success());
    let summary = dir.prepare(&["--max-rejected", "0.5"]);
    let row = &summary["rejected_rows"][0];
    assert_eq!(row["reason"].as_str(), Some("broken_audio"), "{row}");
    assert!(row["message"].as_str().unwrap().contains("is not a regular file"), "{row}");
}

#[test]
fn a_read_that_fails_twice_is_repeated_and_one_that_fails_four_times_costs_one_row() {
    let dir = TestDir::with_clips(3, "a|one\nb|two\nc|three\n");
    for name in ["open", "read"] {
        let failure = format!("read-error:{name} wavs/b.wav#1-2");
        let summary = dir.prepare(&["--cache-dir", name, "--inject-failure", &failure]);
        assert_eq!(summary["rejected"], 0, "{summary}");
    }
    let limit = ["--max-rejected", "0.5"];
    let failing =
        dir.prepare(&[&limit[..], &["--inject-failure", "read-error:open wavs/b.wav#1-"]].concat());
    let row = &failing["rejected_rows"][0];
    assert_eq!((&failing["rejected"], row["id"].as_str()), (&1.into(), Some("b")), "{failing}");
    assert!(row["message"].as_str().unwrap().contains("tried 4 times"), "{row}");
    // The error was the disk's, so it is not remembered as a fault of the recording.
    assert_eq!(dir.prepare(&limit)["rejected"], 0);
}

#[test]
fn bad_lines_are_listed_with_their_fault() {
    check_line(b"z|words", "missing_audio", "no recording `z`");
    check_line(b"a|again", "duplicate_id", "line 1 of `metadata.csv`");
    check_line(b"d|caf\xE9", "invalid_utf8", "byte 6 of the line");
    check_line(b"d|one|too|many", "wrong_columns", "4 columns, expected 2");
    check_line(b"d|", "empty_text", "empty");
    check_line(b"|words", "empty_id", "empty");
    check_line("d|one ★ two".as_bytes(), "unknown_symbol", "U+2605");
    check_line("d|Привет, мир".as_bytes(), "unknown_language", "Cyrillic");
    check_line(format!("d|{}", "la ".repeat(3334)).as_bytes(), "text_too_long", "the limit is 200");
}

#[test]
fn too_many_bad_rows_are_an_error_unless_allowed() {
    let dir = TestDir::with_clips(2, "a|one\nb|two\ny|three\nz|four\n");
    let output = dir.run(&["prepare", "corpus"]);
    output.assert_failed(&[
        "2 of 4 rows are unusable (50.0 %), the limit is 20.0 %",
        "--max-rejected",
    ]);
    // The message lists rows and names the file with the complete list.
    assert!(
        output.err.contains("metadata.csv:3") && output.err.contains("metadata.csv:4"),
        "{output:?}"
    );
    let list = settings_dir(&dir.corpus().join(".tandem-cache")).join("rejected.tsv");
    assert!(output.err.contains(list.to_str().unwrap()), "{output:?}");
    assert_eq!(fs::read_to_string(list).unwrap().lines().count(), 3);
    assert_eq!(output.out, "");

    let output = dir.run(&["prepare", "corpus", "--max-rejected", "0.5"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.out.contains("2 usable") && output.out.contains("2 rejected"), "{output:?}");
    assert!(output.out.contains("rejected.tsv"), "{output:?}");
    dir.run(&["prepare", "corpus", "--max-rejected", "2"]);
}

#[test]
fn a_corpus_without_usable_rows_is_always_refused() {
    let dir = TestDir::with(&[("wavs/a.wav", b""), ("metadata.csv", b"a|one\nb|two\n")]);
    let output = dir.run(&["prepare", "corpus", "--max-rejected", "1"]);
    output.assert_failed(&["none of 2 rows is usable", "metadata.csv:1", "metadata.csv:2"]);
}

#[test]
fn an_invalid_corpus_is_one_error_with_a_hint() {
    let dir = TestDir::with(&[("readme.txt", b"")]);
    dir.run(&["prepare", "corpse"]).assert_failed(&[
        "no corpus at `corpse`",
        "did you mean",
        "corpus",
    ]);
    dir.run(&["prepare", "corpus"]).assert_failed(&["no manifest", "metadata.csv"]);
    dir.write("metadata.csv", b"");
    dir.run(&["prepare", "corpus"]).assert_failed(&["no rows", "id|text"]);
    dir.write("metadata.csv", b"a|one\n");
    dir.run(&["prepare", "corpus"]).assert_failed(&["holds no recordings", "wavs"]);
    dir.write("wavs/a.wav", &tone_wav());
    dir.write("metadata.csv", b"a\tone\n");
    dir.run(&["prepare", "corpus"]).assert_failed(&["most have 1", "separator"]);
    dir.write("metadata.csv", b"\xFF\xFEa\0|\0b\0");
    dir.run(&["prepare", "corpus"]).assert_failed(&["UTF-16", "iconv"]);
    dir.run(&["prepare", "corpus/metadata.csv/x"]).assert_failed(&["corpus/metadata.csv/x"]);
}

#[test]
fn a_read_only_corpus_is_cached_in_the_user_cache_directory() {
    let dir = TestDir::with_clips(3, "a|one\nb|two\nc|three\n");
    for folder in ["", "wavs"] {
        let path = dir.corpus().join(folder);
        fs::set_permissions(path, fs::Permissions::from_mode(0o555)).unwrap();
    }
    for folder in ["home", "user-cache"] {
        fs::create_dir(dir.path(folder)).unwrap();
        fs::set_permissions(dir.path(folder), fs::Permissions::from_mode(0o777)).unwrap();
    }
    // Root may write everywhere, so the program then runs as user nobody, from a path that nobody can read.
    let program = dir.path("tandem");
    fs::copy(env!("CARGO_BIN_EXE_tandem"), &program).unwrap();
    let mut command = dir.with_test_env(Command::new(program), &["prepare", "corpus", "--json"]);
    let probe = dir.corpus().join("probe");
    if fs::write(&probe, "").is_ok() {
        fs::remove_file(probe).unwrap();
        command.uid(65_534).gid(65_534);
    }
    for rebuilt in [3, 0] {
        let summary = CommandOutput::of(command.output().expect("it runs")).json();
        assert_eq!(summary["rebuilt"], rebuilt);
        let cache = summary["cache"].as_str().unwrap();
        assert!(cache.contains("user-cache/tandem/corpus-"), "{cache}");
    }
    assert!(!dir.corpus().join(".tandem-cache").exists());
    fs::set_permissions(dir.corpus(), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_named_cache_directory_is_used_and_must_be_one() {
    let dir = TestDir::with_clips(2, "a|one\nb|two\n");
    let summary = dir.prepare(&["--cache-dir", "fast"]);
    assert!(summary["cache"].as_str().unwrap().starts_with("fast/corpus-"), "{summary}");
    assert!(!dir.corpus().join(".tandem-cache").exists());
    let output = dir.run(&["prepare", "corpus", "--cache-dir", "corpus/metadata.csv"]);
    output.assert_failed(&["cannot write", "--cache-dir"]);
}
