//! The example that shows the whole path trains a voice that can be read back and speaks.

mod kit;
#[allow(dead_code, reason = "its `main` is not called")]
#[path = "../examples/minimal_train.rs"]
mod minimal_train;

use kit::TestCorpus;

#[test]
fn the_minimal_example_trains_saves_and_speaks() {
    let corpus = TestCorpus::with_rows(24);
    let out = tempfile::tempdir().expect("a temporary directory");
    minimal_train::train(corpus.root(), out.path(), 3).expect("trained");
    minimal_train::speak(out.path()).expect("spoken");
    assert!(out.path().join("step-00000003/manifest.json").is_file());
    let sound = hound::WavReader::open(out.path().join("speech.wav")).expect("a WAV file");
    assert!(sound.duration() > 0, "no samples");
}
