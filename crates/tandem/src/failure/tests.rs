//! No hint is lost between a library and the `hint:` line.

use super::*;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use tandem_audio::AudioError;
use tandem_audio::mel::MelError;
use tandem_cluster::ClusterError;
use tandem_data::DataError;
use tandem_data::batch::{BatchError, Unfit};
use tandem_data::corpus::Split;
use tandem_data::import::ImportError;
use tandem_data::long_text::LongTextError;
use tandem_device::backend::{Backend, DeviceError};
use tandem_device::memory::{MemoryError, Side};
use tandem_device::placement::{DeviceConfigError, PlacementError};
use tandem_device::sampler::SampleError;
use tandem_eval::cutting::CutError;
use tandem_eval::evaluate::EvaluateError;
use tandem_export::ExportError;
use tandem_http::HttpError;
use tandem_insight::compare::CompareError;
use tandem_insight::measured::MeasureError;
use tandem_insight::plan::PlanError;
use tandem_insight::run_source::RunSourceError;
use tandem_insight::scaling::ScalingError;
use tandem_model::checkpoint::{Broken, CheckpointError, Fault};
use tandem_model::device_mel::DeviceMelError;
use tandem_model::gradients::ReduceError;
use tandem_model::metrics::MetricError;
use tandem_model::synthesis::text::SynthesisError;
use tandem_model::trained_voice::VoiceError;
use tandem_model::vocoder::VocoderError;
use tandem_model::vocoder::neural::trained::VocoderFileError;
use tandem_model::vocoder::wav::WavError;
use tandem_model::weights::WeightsError;
use tandem_page::PageError;
use tandem_pipeline::budget::Stopped;
use tandem_plot::PictureError;
use tandem_serve::ServeError;
use tandem_settings::OutOfRange;
use tandem_telemetry::TelemetryError;
use tandem_text::{LexiconFault, TextError};
use tandem_train::file_config::{FileConfigError, setting};
use tandem_train::judge::JudgeError;
use tandem_units::Bytes;

fn plain(failure: &Failure) -> String {
    anstream::adapter::strip_str(&explain(failure)).to_string()
}

#[test]
fn an_error_shows_its_causes_and_the_hint_of_the_cause() {
    let cause = DataError::Read {
        path: "metadata.csv".into(),
        source: io::Error::from(io::ErrorKind::NotFound),
    };
    let error = Err::<(), _>(cause).context("cannot prepare `corpus`").unwrap_err();
    assert_eq!(
        plain(&error),
        "error: cannot prepare `corpus`\n  caused by: cannot read `metadata.csv`\n  \
         caused by: entity not found\nhint: check the path for typing errors"
    );
}

/// One error of every public error type of the workspace. A new type is added here: the test below
/// fails until it is, and the list compiles only if the type implements `Hint`.
fn samples() -> Vec<(&'static str, Box<dyn Hinted>)> {
    let mel = || MelError::Empty;
    let device = || DeviceError::NotBuilt { backend: Backend::Cuda };
    let no_home = || DataError::NoHome { corpus: "corpus".into() };
    let no_record = || TelemetryError::Empty { path: "run.jsonl".into() };
    let missing = || WeightsError::Missing { name: "decoder".into() };
    macro_rules! samples {
        ($($kind:ident: $error:expr,)*) => {{
            // The annotation makes the compiler check that the name is the type's.
            vec![$((stringify!($kind), { let error: $kind = $error; Box::new(error) })),*]
        }};
    }
    samples![
        AudioError: AudioError::EmptyFile,
        BatchError: BatchError::Edges,
        Broken: Broken { path: "step-1".into(), fault: Fault::Missing { file: "x".into() } },
        CheckpointError: CheckpointError::PartMissing { name: "voice".into() },
        ClusterError: ClusterError::ThreadEnded,
        CompareError: CompareError::TooFewSteps { run: "run".into(), found: 1, needed: 2 },
        CutError: CutError::NoPath,
        DataError: no_home(),
        DeviceConfigError: DeviceConfigError::BudgetWithoutIsolation,
        DeviceError: device(),
        DeviceMelError: DeviceMelError::Mel(mel()),
        EvaluateError: EvaluateError::NoRows { corpus: "corpus".into(), split: Split::Eval },
        ExportError: ExportError::NoSpeaker,
        Fault: Fault::Missing { file: "manifest.json".into() },
        FileConfigError: FileConfigError::TwoTextLengths,
        HttpError: HttpError::PortTaken { address: ([127, 0, 0, 1], 80).into() },
        ImportError: ImportError::Encode { message: "x".into() },
        JudgeError: JudgeError::Stopped,
        LexiconFault: LexiconFault::Columns { found: 1 },
        LongTextError: LongTextError::Empty { path: "book.txt".into() },
        MeasureError: MeasureError::Record(no_record()),
        MelError: mel(),
        MemoryError: MemoryError::OverBudget {
            side: Side::Model,
            owner: "a batch".into(),
            needed: Bytes::mib(2),
            in_use: Bytes::mib(1),
            budget: Bytes::mib(2),
        },
        MetricError: MetricError::Empty { what: "frames" },
        OutOfRange: OutOfRange {
            setting: setting("num_workers").expect("declared"),
            value: "0".into(),
        },
        PageError: PageError::NoRecord { path: "run".into() },
        PictureError: PictureError::Empty { what: "frames" },
        PipelineError: PipelineError::Panic { stage: "load", ticket: None, item: None, message: "x".into() },
        PlacementError: PlacementError::Device(device()),
        PlanError: PlanError::NoProfile,
        ReduceError: ReduceError("the other process has left".into()),
        RunSourceError: RunSourceError::NotARun { path: "a.log".into() },
        SampleError: SampleError::UnknownVendor,
        ScalingError: ScalingError::NoRuns,
        ServeError: ServeError::VoiceName { name: "".into() },
        Stopped: Stopped,
        SynthesisError: SynthesisError::NothingToSay,
        TelemetryError: no_record(),
        TextError: TextError::Empty,
        TrainError: TrainError::Data(no_home()),
        Unfit: Unfit::NoFrames,
        VocoderError: VocoderError::Empty,
        VocoderFileError: VocoderFileError::NoVocoder { path: "run".into() },
        VoiceError: VoiceError::Weights { path: "step-1".into(), source: missing() },
        WavError: WavError::TooLong { samples: 1 },
        WeightsError: missing(),
    ]
}

#[test]
fn every_public_error_type_of_the_workspace_is_among_the_samples() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace's crates");
    let mut found = BTreeSet::new();
    for member in fs::read_dir(crates).unwrap() {
        errors_under(&member.unwrap().path().join("src"), &mut found);
    }
    let sampled: BTreeSet<String> = samples().iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(found, sampled, "left: types that derive `thiserror::Error`; right: samples");
}

/// The names of public types that derive `thiserror::Error`.
fn errors_under(directory: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            errors_under(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            for derived in text.split("#[derive(").skip(1) {
                let Some((list, rest)) = derived.split_once(")]") else { continue };
                let is_error = |name: &str| name.trim().rsplit("::").next() == Some("Error");
                if list.split(',').any(is_error) {
                    found.extend(public_type(rest));
                }
            }
        }
    }
}

fn public_type(after_derive: &str) -> Option<String> {
    let line = after_derive.lines().find(|line| line.contains("enum ") || line.contains("struct "));
    let name = line?.strip_prefix("pub enum ").or(line?.strip_prefix("pub struct "))?;
    Some(name.split(|c: char| !c.is_alphanumeric()).next()?.to_string())
}

#[test]
fn the_hint_of_every_error_type_reaches_the_screen() {
    let mut hints = 0;
    for (name, error) in samples() {
        let hint = error.hint();
        hints += usize::from(hint.is_some());
        let failure = Failure { context: Vec::new(), cause: error };
        let failure = Err::<(), _>(failure).context("cannot do it").unwrap_err();
        check_shown(name, &failure, hint);
    }
    assert!(hints > 20, "{hints} of the samples have a hint");
}

#[test]
fn the_hint_of_an_error_that_stops_a_pipeline_stage_reaches_the_screen() {
    for (name, error) in samples() {
        let hint = error.hint();
        let stage = PipelineError::Stage { stage: "load", ticket: None, source: Arc::from(error) };
        check_shown(name, &TrainError::from(stage).into(), hint);
    }
}

#[track_caller]
fn check_shown(name: &str, failure: &Failure, hint: Option<String>) {
    let shown = plain(failure);
    let line = shown.split_once("\nhint: ").map(|(_, hint)| hint.to_string());
    assert_eq!(line, hint, "{name}: {shown}");
}
