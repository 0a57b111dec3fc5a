//! The tests search the event file for bytes. `xtask/tests/check_tensorboard.py` checks that TensorBoard
//! reads it.

use super::*;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;
use tandem_telemetry::event::RunHeader;
use tandem_telemetry::{Pending, Recording, Summary};
use tempfile::TempDir;

/// Only a log that hangs takes longer.
const PATIENCE: Duration = Duration::from_secs(300);
const MEL: MelConfig = MelConfig::SPEECH_22K;

struct TestRun {
    directory: TempDir,
    recording: Recording,
}

impl TestRun {
    fn new() -> TestRun {
        let header = RunHeader::now("test", "0", serde_json::json!({}));
        let (recording, _) = Recording::in_memory(header).unwrap();
        TestRun { directory: tempfile::tempdir().unwrap(), recording }
    }

    fn log(&self, settings: RunLogSettings) -> RunLog {
        RunLog::start(self.directory.path(), settings, self.recording.recorder()).unwrap()
    }

    fn sample(&self, name: &str) -> PathBuf {
        self.directory.path().join("samples").join(name)
    }

    fn events(&self) -> Vec<u8> {
        let entries = fs::read_dir(self.directory.path()).unwrap();
        let mut paths = entries.map(|entry| entry.unwrap().path());
        let found = paths.find(|path| path.to_string_lossy().contains("events.out.tfevents."));
        fs::read(found.unwrap()).unwrap()
    }

    /// The offset of these bytes in the event file.
    fn offset_of(&self, bytes: &[u8]) -> Option<usize> {
        self.events().windows(bytes.len()).position(|part| part == bytes)
    }

    fn end(self) -> Summary {
        self.recording.finish().summary
    }
}

fn point(name: &'static str, value: Pending<f32>) -> Loss {
    Loss { name: name.into(), value }
}

fn mel(step: u64) -> LogMessage {
    let frames = (0..800).map(|i| (i as f32 * 0.37).sin()).collect();
    LogMessage::Mel { step, name: "en".into(), frames }
}

fn loss(step: u64, value: f32) -> LogMessage {
    LogMessage::Scalars { step, values: vec![point("loss", Pending::known(value))] }
}

#[test]
fn every_kind_of_message_is_in_the_event_file_and_in_samples() {
    let run = TestRun::new();
    let log = run.log(RunLogSettings::new(MEL));
    let sender = log.sender();
    let name = || "en".to_string();
    sender.send(loss(100, 0.123));
    sender.send(mel(100));
    let alignment = Alignment::Path(vec![3, 4, 5]);
    sender.send(LogMessage::Alignment { step: 100, name: name(), alignment });
    let samples: Vec<f32> = (0..2205).map(|i| (i as f32 * 0.1).sin() * 0.5).collect();
    let rate = SampleRate(22050);
    sender.send(LogMessage::Audio { step: 100, name: name(), rate, samples });
    sender.send(LogMessage::Text { step: 100, name: "fa/1".into(), text: "سلام".into() });
    let ending = log.finish();
    assert!(ending.is_whole(), "{ending}");
    assert_eq!(ending.written, 5);
    for kind in ["mel", "alignment"] {
        let png = fs::read(run.sample(&format!("step-000100-en-{kind}.png"))).unwrap();
        assert!(png.starts_with(b"\x89PNG"));
        assert!(run.offset_of(&png).is_some(), "{kind}");
        assert!(run.offset_of(format!("{kind}/en").as_bytes()).is_some());
    }
    let wav = fs::read(run.sample("step-000100-en.wav")).unwrap();
    assert!(run.offset_of(&wav).is_some());
    let mut reader = hound::WavReader::new(&wav[..]).unwrap();
    assert_eq!((reader.spec().sample_rate, reader.len()), (22050, 2205));
    let peak = reader.samples::<i16>().map(|sample| sample.unwrap()).max().unwrap();
    assert!((16380..=16384).contains(&peak), "{peak}");
    assert_eq!(fs::read_to_string(run.sample("step-000100-fa-1.txt")).unwrap(), "سلام");
    assert!(run.offset_of("سلام".as_bytes()).is_some());
    assert!(run.offset_of(&0.123f32.to_le_bytes()).is_some());
    assert_eq!(run.end().warning_count, 0);
}

#[test]
fn late_losses_are_waited_for_and_keep_their_order() {
    let run = TestRun::new();
    let log = run.log(RunLogSettings::new(MEL));
    let (promise, pending) = Pending::later();
    let begin = Instant::now();
    log.sender().send(LogMessage::Scalars { step: 1, values: vec![point("loss", pending)] });
    log.sender().send(loss(2, 0.456));
    log.sender().send(mel(2));
    // A sender that waited for the loss would never get here: the promise is kept below.
    while !run.sample("step-000002-en-mel.png").exists() {
        assert!(begin.elapsed() < PATIENCE, "pictures must not wait for losses");
        std::thread::yield_now();
    }
    assert_eq!(run.offset_of(&0.456f32.to_le_bytes()), None, "it waits for the loss before it");
    promise.set(0.123);
    let ending = log.finish();
    assert!(ending.is_whole(), "{ending}");
    let offsets = [0.123f32, 0.456].map(|value| run.offset_of(&value.to_le_bytes()).unwrap());
    assert!(offsets[0] < offsets[1], "{offsets:?}");
}

#[test]
fn a_loss_that_never_arrives_is_counted_and_delays_nothing() {
    let run = TestRun::new();
    let close_within = Duration::from_millis(400);
    let log = run.log(RunLogSettings { close_within, ..RunLogSettings::new(MEL) });
    let (dropped, never) = Pending::later();
    drop(dropped);
    let (_kept, waiting) = Pending::later();
    let values = vec![point("a", never), point("b", waiting), point("c", Pending::known(0.123))];
    log.sender().send(LogMessage::Scalars { step: 1, values });
    // The promise is kept below: an end that waited for it would not return.
    let ending = log.finish();
    assert_eq!((ending.late, ending.ending), (2, Ending::Whole));
    assert!(run.offset_of(&0.123f32.to_le_bytes()).is_some(), "the others are written");
    let summary = run.end();
    assert_eq!(summary.warnings[0].text, "the run's log is incomplete: 2 values arrived too late");
}

#[test]
fn a_value_that_times_out_does_not_block_the_next_ones() {
    let run = TestRun::new();
    let values_within = Duration::from_millis(100);
    let log = run.log(RunLogSettings { values_within, ..RunLogSettings::new(MEL) });
    let (_kept, waiting) = Pending::later();
    log.sender().send(LogMessage::Scalars { step: 1, values: vec![point("loss", waiting)] });
    log.sender().send(loss(2, 0.456));
    let begin = Instant::now();
    while run.offset_of(&0.456f32.to_le_bytes()).is_none() {
        assert!(begin.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(begin.elapsed() >= values_within, "{:?}", begin.elapsed());
    assert_eq!(log.finish().late, 1);
}

#[test]
fn a_full_queue_drops_messages_and_never_blocks_the_sender() {
    let run = TestRun::new();
    let log = run.log(RunLogSettings { queue: 4, ..RunLogSettings::new(MEL) });
    let sender = log.sender();
    let messages: Vec<LogMessage> = (0..200).map(mel).collect();
    messages.into_iter().for_each(|message| sender.send(message));
    let ending = log.finish();
    assert_eq!(ending.written + ending.dropped, 200);
    // A sender that waited for room would have dropped none.
    assert!(ending.dropped > 100, "{ending}");
    assert_eq!(run.end().warning_count, 1);
}

#[test]
fn sound_cannot_use_the_space_reserved_for_curves() {
    let run = TestRun::new();
    let room = Bytes::kib(64);
    let log = run.log(RunLogSettings { queue_bytes: room, ..RunLogSettings::new(MEL) });
    let sound = |samples| LogMessage::Audio {
        step: 1,
        name: "en".into(),
        rate: SampleRate(22050),
        samples: vec![0.0; samples],
    };
    log.sender().send(sound(14_000));
    log.sender().send(loss(1, 0.123));
    log.sender().send(sound(100));
    let ending = log.finish();
    assert_eq!((ending.dropped, ending.written), (1, 2), "{ending}");
}

#[test]
fn a_failing_samples_directory_causes_warnings_and_keeps_the_curves() {
    let run = TestRun::new();
    fs::write(run.directory.path().join("samples"), "in the way").unwrap();
    let log = run.log(RunLogSettings::new(MEL));
    (1..=3).for_each(|step| log.sender().send(mel(step)));
    log.sender().send(loss(3, 0.123));
    let ending = log.finish();
    assert_eq!((ending.errors, ending.written), (3, 1));
    assert!(run.offset_of(&0.123f32.to_le_bytes()).is_some());
    assert!(run.offset_of(b"mel/en").is_some(), "pictures still go to the event file");
    let summary = run.end();
    let texts: Vec<&str> = summary.warnings.iter().map(|warning| &*warning.text).collect();
    assert_eq!(texts.len(), 2, "one when it happens, one at the end: {texts:?}");
    assert!(texts[0].starts_with("the run continues, but its log is incomplete: cannot write"));
    assert!(texts[1].contains("3 could not be written, first: cannot write"), "{}", texts[1]);
}

#[test]
fn a_picture_that_cannot_be_drawn_is_reported_and_the_log_continues() {
    let run = TestRun::new();
    let log = run.log(RunLogSettings::new(MEL));
    log.sender().send(LogMessage::Mel { step: 1, name: "en".into(), frames: vec![0.0; 81] });
    log.sender().send(mel(2));
    let ending = log.finish();
    assert_eq!((ending.errors, ending.written), (1, 1));
    assert!(run.end().warnings[0].text.ends_with("81 values cannot be divided into rows of 80"));
}

#[test]
fn a_missing_directory_is_an_error_at_the_start() {
    let settings = RunLogSettings::new(MEL);
    let error = RunLog::start(Path::new("/nowhere/run"), settings, Recorder::off()).err().unwrap();
    assert!(error.to_string().contains("/nowhere/run"), "{error}");
}

#[test]
fn messages_after_the_end_are_dropped_silently() {
    let run = TestRun::new();
    let log = run.log(RunLogSettings::new(MEL));
    let sender = log.sender();
    log.finish();
    sender.send(mel(1));
    LogSender::off().send(mel(1));
    assert!(!run.sample("step-000001-en-mel.png").exists());
}

#[test]
fn names_become_file_names() {
    for (name, wanted) in [("en", "en"), ("../x y", "---x-y"), ("فارسی", "فارسی"), ("a.b", "a-b")]
    {
        assert_eq!(worker::file_name(name), wanted);
    }
    assert_eq!(worker::file_name(&"x".repeat(500)).len(), 40);
}
