//! Writes a run's log with known contents, for `xtask/tests/check_tensorboard.py` to read back: a run
//! that was killed after step 100, and one that resumes from the checkpoint of step 60.
//!
//! `cargo run --release -p tandem-train --example write_run_log DIRECTORY`

use std::path::{Path, PathBuf};
use tandem_audio::mel::MelConfig;
use tandem_telemetry::event::Loss;
use tandem_telemetry::{Pending, Recorder};
use tandem_train::log::picture::Alignment;
use tandem_train::log::{LogMessage, RunLog, RunLogSettings};
use tandem_units::SampleRate;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = PathBuf::from(std::env::args().nth(1).ok_or("name a directory")?);
    std::fs::create_dir_all(&directory)?;
    run(&directory, 1..=100, 1.0)?;
    run(&directory, 61..=120, 2.0)
}

fn run(
    directory: &Path,
    steps: std::ops::RangeInclusive<u64>,
    factor: f32,
) -> Result<(), Box<dyn std::error::Error>> {
    let mel = MelConfig::SPEECH_22K;
    let bands = mel.bands;
    let settings = RunLogSettings { first_step: *steps.start(), ..RunLogSettings::new(mel) };
    let log = RunLog::start(directory, settings, Recorder::off())?;
    let sender = log.sender();
    for step in steps.clone() {
        let (promise, value) = Pending::later();
        let total = Loss { name: "loss/total".into(), value };
        sender.send(LogMessage::Scalars { step, values: vec![total] });
        promise.set(factor / step as f32);
    }
    let (step, name) = (*steps.end(), || "en".to_string());
    let rising = |i: usize| ((i % bands) as f32 - (i / bands) as f32 * 0.5).abs() * -0.1;
    let frames = (0..bands * 200).map(rising).collect();
    sender.send(LogMessage::Mel { step, name: name(), frames });
    let alignment = Alignment::Path((0..40).map(|i| 3 + i % 5).collect());
    sender.send(LogMessage::Alignment { step, name: name(), alignment });
    let rate = SampleRate(22050);
    let samples = (0..22050).map(|i| (i as f32 * 0.06267).sin() * 0.5).collect();
    sender.send(LogMessage::Audio { step, name: name(), rate, samples });
    let text = "**Hello** سلام".to_string();
    sender.send(LogMessage::Text { step, name: name(), text });
    let ending = log.finish();
    if ending.is_whole() { Ok(()) } else { Err(ending.to_string().into()) }
}
