//! Ids, links and odd names, and the recording that each leads to.

use super::*;
use std::fs;
use std::os::unix::fs::symlink;

fn corpus(files: &[&str]) -> (tempfile::TempDir, Recordings) {
    let folder = tempfile::tempdir().expect("a directory");
    for file in files {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().expect("inside")).expect("created");
        fs::write(path, "").expect("written");
    }
    let root = folder.path().canonicalize().expect("it exists");
    (folder, Recordings::new(&root))
}

fn find(recordings: &mut Recordings, id: &str) -> Result<String, RejectReason> {
    let found = clean(id).and_then(|id| recordings.find(&id));
    found.map(|path| path.display().to_string()).map_err(|fault| fault.reason)
}

#[track_caller]
fn check(files: &[&str], id: &str, expected: &str) {
    let (_folder, mut recordings) = corpus(files);
    assert_eq!(find(&mut recordings, id), Ok(expected.to_owned()), "for `{id}`");
}

#[test]
fn an_id_may_have_an_extension_a_folder_or_neither() {
    check(&["wavs/a.wav"], "a", "wavs/a.wav");
    check(&["wavs/a.wav"], "a.wav", "wavs/a.wav");
    check(&["wavs/a.wav"], "wavs/a.wav", "wavs/a.wav");
    check(&["wavs/a.wav"], "./wavs//a", "wavs/a.wav");
    check(&["wavs/v1/d/a.flac"], "v1/d/a", "wavs/v1/d/a.flac");
    check(&["wavs/v1/a.ogg"], "v1\\a.ogg", "wavs/v1/a.ogg");
    check(&["wavs/a.1.wav"], "a.1", "wavs/a.1.wav");
    check(&["wavs/a.mp3.wav"], "a.mp3", "wavs/a.mp3.wav");
}

#[test]
fn folders_and_extensions_have_an_order() {
    check(&["a.wav", "clips/a.wav", "wavs/a.mp3"], "a", "wavs/a.mp3");
    check(&["a.wav", "clips/a.wav"], "a", "clips/a.wav");
    check(&["a.wav", "wavs/b.wav"], "a", "a.wav");
    check(&["wavs/a.ogg", "wavs/a.flac"], "a", "wavs/a.flac");
    check(&["wavs/a.ogg", "wavs/a.flac"], "a.ogg", "wavs/a.ogg");
    check(&["wavs/a.flac"], "a.wav", "wavs/a.flac");
}

#[test]
fn extensions_in_capitals_and_decomposed_names_are_found() {
    check(&["wavs/a.WAV"], "a", "wavs/a.WAV");
    check(&["wavs/a.WAV", "wavs/a.wav"], "a.WAV", "wavs/a.wav");
    check(&["wavs/cafe\u{301}.wav"], "café", "wavs/cafe\u{301}.wav");
    check(&["wavs/café.wav"], "cafe\u{301}", "wavs/café.wav");
    check(&["wavs/می\u{200c}روم.wav"], "می\u{200c}روم", "wavs/می\u{200c}روم.wav");
}

#[test]
fn a_path_that_leaves_the_corpus_is_refused() {
    let (_folder, mut recordings) = corpus(&["wavs/a.wav"]);
    for id in ["../a", "v/../../a", "..\\a", "/etc/a.wav", "C:\\a.wav", "\\\\host\\a", ".."] {
        assert_eq!(find(&mut recordings, id), Err(RejectReason::LeavesCorpus), "for `{id}`");
    }
    assert_eq!(find(&mut recordings, "a..b"), Err(RejectReason::MissingAudio));
    assert_eq!(find(&mut recordings, " ./ "), Err(RejectReason::EmptyId));
}

#[test]
fn links_are_followed_inside_the_corpus_only() {
    let (folder, mut recordings) = corpus(&["wavs/a.wav", "deep/b.wav"]);
    let outside = corpus(&["wavs/secret.wav"]).0;
    let wavs = folder.path().join("wavs");
    symlink("a.wav", wavs.join("inner.wav")).expect("linked");
    symlink("../deep", wavs.join("inner_folder")).expect("linked");
    symlink(outside.path().join("wavs/secret.wav"), wavs.join("out.wav")).expect("linked");
    symlink(outside.path().join("wavs"), wavs.join("out_folder")).expect("linked");
    symlink("nowhere.wav", wavs.join("broken.wav")).expect("linked");
    symlink("loop.wav", wavs.join("loop.wav")).expect("linked");
    assert_eq!(find(&mut recordings, "inner"), Ok("wavs/inner.wav".into()));
    assert_eq!(find(&mut recordings, "inner_folder/b"), Ok("wavs/inner_folder/b.wav".into()));
    assert_eq!(find(&mut recordings, "out"), Err(RejectReason::LeavesCorpus));
    assert_eq!(find(&mut recordings, "out_folder/secret"), Err(RejectReason::LeavesCorpus));
    assert_eq!(find(&mut recordings, "broken"), Err(RejectReason::MissingAudio));
    assert_eq!(find(&mut recordings, "loop"), Err(RejectReason::MissingAudio));
}

/// A corpus whose folder `wavs` is a link to another directory that has these files.
fn linked_corpus(files: &[&str]) -> (tempfile::TempDir, tempfile::TempDir, Recordings) {
    let outside = corpus(files).0;
    let (folder, _) = corpus(&["metadata.csv"]);
    symlink(outside.path().join("wavs"), folder.path().join("wavs")).expect("linked");
    let recordings = Recordings::new(&folder.path().canonicalize().expect("it exists"));
    (folder, outside, recordings)
}

#[test]
fn a_folder_of_recordings_may_be_a_link_to_another_disk() {
    let (_folder, _outside, mut recordings) = linked_corpus(&["wavs/a.wav", "wavs/v/b.flac"]);
    assert_eq!(find(&mut recordings, "a"), Ok("wavs/a.wav".into()));
    assert_eq!(find(&mut recordings, "wavs/a.wav"), Ok("wavs/a.wav".into()));
    assert_eq!(find(&mut recordings, "v/b"), Ok("wavs/v/b.flac".into()));
    assert!(recordings.has_folder());
}

#[test]
fn a_chain_of_links_to_the_folder_is_followed() {
    let (folder, _outside, _) = linked_corpus(&["wavs/a.wav"]);
    fs::rename(folder.path().join("wavs"), folder.path().join("second")).expect("renamed");
    symlink("second", folder.path().join("first")).expect("linked");
    symlink("first", folder.path().join("wavs")).expect("linked");
    let mut recordings = Recordings::new(&folder.path().canonicalize().expect("it exists"));
    assert_eq!(find(&mut recordings, "a"), Ok("wavs/a.wav".into()));
}

#[test]
fn no_id_and_no_link_leaves_a_linked_folder() {
    let files = ["wavs/a.wav", "secret.wav", "other/secret.wav"];
    let (_folder, outside, mut recordings) = linked_corpus(&files);
    let wavs = outside.path().join("wavs");
    symlink("a.wav", wavs.join("inner.wav")).expect("linked");
    symlink("../secret.wav", wavs.join("out.wav")).expect("linked");
    symlink("../other", wavs.join("out_folder")).expect("linked");
    symlink("out_folder", wavs.join("nested")).expect("linked");
    symlink("out.wav", wavs.join("chain.wav")).expect("linked");
    assert_eq!(find(&mut recordings, "inner"), Ok("wavs/inner.wav".into()));
    for id in [
        "../secret",
        "wavs/../secret",
        "/etc/passwd",
        "out",
        "chain",
        "out_folder/secret",
        "nested/secret",
    ] {
        assert_eq!(find(&mut recordings, id), Err(RejectReason::LeavesCorpus), "for `{id}`");
    }
}

#[test]
fn a_link_that_leaves_is_named_with_its_target_and_a_fix() {
    let (_folder, outside, mut recordings) = linked_corpus(&["wavs/a.wav", "secret.wav"]);
    symlink("../secret.wav", outside.path().join("wavs/out.wav")).expect("linked");
    let fault = recordings.find("out").expect_err("refused");
    assert!(fault.message.contains("`wavs/out.wav`"), "{}", fault.message);
    assert!(fault.message.contains("secret.wav"), "{}", fault.message);
    assert!(fault.fix.contains("git annex unlock"), "{}", fault.fix);
}

#[test]
fn a_broken_link_is_named() {
    let (folder, _) = corpus(&["audio/a.wav"]);
    symlink("/no/such/disk", folder.path().join("wavs")).expect("linked");
    symlink("nowhere.wav", folder.path().join("audio/b.wav")).expect("linked");
    let mut recordings = Recordings::new(&folder.path().canonicalize().expect("it exists"));
    assert_eq!(find(&mut recordings, "a"), Ok("audio/a.wav".into()));
    let fault = recordings.find("c").expect_err("missing");
    assert!(fault.message.contains("the link `wavs` is broken"), "{}", fault.message);
    let fault = recordings.find("wavs/c").expect_err("broken");
    assert!(fault.message.contains("the link `wavs` cannot be followed"), "{}", fault.message);
    let fault = recordings.find("b").expect_err("broken");
    assert_eq!(fault.reason, RejectReason::MissingAudio);
    assert!(fault.message.contains("`audio/b.wav`"), "{}", fault.message);
}

#[test]
fn a_fifo_is_not_a_recording() {
    let (folder, mut recordings) = corpus(&["wavs/b.flac", "clips/c.wav"]);
    for name in ["a.wav", "b.wav", "c.wav"] {
        let path = folder.path().join("wavs").join(name);
        rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RUSR).expect("created");
    }
    symlink("a.wav", folder.path().join("wavs/d.wav")).expect("linked");
    for id in ["a", "d"] {
        let fault = recordings.find(id).expect_err("refused");
        assert_eq!(fault.reason, RejectReason::BrokenAudio);
        assert!(fault.message.contains("is not a regular file"), "{}", fault.message);
    }
    assert_eq!(find(&mut recordings, "b"), Ok("wavs/b.flac".into()));
    assert_eq!(find(&mut recordings, "c"), Ok("clips/c.wav".into()));
}

#[test]
fn a_listing_that_fails_is_tried_again() {
    let (folder, mut recordings) = corpus(&["wavs/a.wav"]);
    let tries = std::sync::atomic::AtomicU32::new(0);
    let hook = move |_: &tandem_disk::Access<'_>| match tries
        .fetch_add(1, std::sync::atomic::Ordering::Relaxed)
        < 2
    {
        true => Err(io::Error::from_raw_os_error(5)),
        false => Ok(()),
    };
    let root = folder.path().canonicalize().expect("it exists");
    let _watch = tandem_disk::watch_reads(&root, std::sync::Arc::new(hook));
    assert_eq!(find(&mut recordings, "a"), Ok("wavs/a.wav".into()));
}

#[test]
fn invented_paths_are_missing_and_cause_no_error() {
    let (_folder, mut recordings) = corpus(&["wavs/a.wav"]);
    let deep = "x/".repeat(100_000) + "a";
    for id in [deep.as_str(), "a/b", "a.wav/b", "\0", "\0/a", "wavs", &"n".repeat(5000)] {
        assert_eq!(find(&mut recordings, id), Err(RejectReason::MissingAudio));
    }
}
