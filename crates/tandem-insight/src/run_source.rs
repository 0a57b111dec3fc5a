//! A run, by whatever the user has of it: its directory, its record, or its redirected output.
//!
//! In: a path. Out: [`RunSource`]. A text log is followed to the record that it names; where that is gone, the figures
//! of its lines are used ([`crate::run_log`]). [`RunFigures`] are what both kinds can give.
//! Next: [`crate::compare`], [`crate::scaling`].

use crate::measured_run::{MeasuredRun, PROCESS};
use crate::run_log::LoggedRun;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use tandem_telemetry::TelemetryError;
use tandem_telemetry::event::DeviceRole;
use tandem_telemetry::variation::variation;
use tandem_units::Hint;

/// What is left of a run.
#[derive(Clone, Debug)]
pub enum RunSource {
    /// Every step.
    Record(Box<MeasuredRun>),
    /// Printed figures only.
    Log(LoggedRun),
}

/// Why a path is no run.
#[derive(Debug, thiserror::Error)]
pub enum RunSourceError {
    #[error(transparent)]
    Record(#[from] TelemetryError),
    #[error("`{}` is neither a run record nor the output of `tandem train`", path.display())]
    NotARun { path: PathBuf },
    /// The run was shorter than its first line of figures.
    #[error("`{}` has no step times, and its record is gone", path.display())]
    NoFigures { path: PathBuf },
}

impl Hint for RunSourceError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Record(error) => error.hint(),
            Self::NotARun { .. } => Some(
                "name a run directory, its `run.jsonl`, or a log: `tandem train ... > a.log 2>&1`"
                    .into(),
            ),
            Self::NoFigures { .. } => Some(
                "a log has figures after 100 steps or at the end of its run: let the run finish, or \
                 keep its directory"
                    .into(),
            ),
        }
    }
}

/// A log larger than this was not written by one run.
const LARGEST_LOG: u64 = 256 << 20;

impl RunSource {
    pub fn read(path: &Path) -> Result<RunSource, RunSourceError> {
        if path.is_dir() || !is_text(path)? {
            return Ok(RunSource::Record(Box::new(MeasuredRun::read(path)?)));
        }
        let failed = |source| TelemetryError::Read { path: path.to_path_buf(), source };
        let mut bytes = Vec::new();
        let file = File::open(path).map_err(failed)?;
        file.take(LARGEST_LOG).read_to_end(&mut bytes).map_err(failed)?;
        let text = String::from_utf8_lossy(&bytes);
        let not_a_run = || RunSourceError::NotARun { path: path.to_path_buf() };
        let log = LoggedRun::parse(&text, path).ok_or_else(not_a_run)?;
        if let Some(record) = log.record.as_deref().and_then(|record| find_record(record, path)) {
            let run = MeasuredRun::read(&record)?;
            return Ok(RunSource::Record(Box::new(MeasuredRun { path: path.into(), ..run })));
        }
        if log.steps == 0 || log.mean <= 0.0 {
            return Err(RunSourceError::NoFigures { path: path.to_path_buf() });
        }
        Ok(RunSource::Log(log))
    }

    pub fn figures(&self) -> RunFigures {
        match self {
            RunSource::Record(run) => RunFigures::from(&**run),
            RunSource::Log(log) => RunFigures::from(log),
        }
    }
}

/// Records begin with a brace; an empty file is an empty record.
fn is_text(path: &Path) -> Result<bool, TelemetryError> {
    let failed = |source| TelemetryError::Open { path: path.to_path_buf(), source };
    let mut first = [0u8; 64];
    let count = File::open(path).map_err(failed)?.read(&mut first).map_err(failed)?;
    let first = first[..count].iter().find(|byte| !byte.is_ascii_whitespace());
    Ok(first.is_some_and(|byte| *byte != b'{'))
}

/// The record as it was named, or seen from the directory of the log.
fn find_record(record: &Path, log: &Path) -> Option<PathBuf> {
    let beside = log.parent().map(|folder| folder.join(record));
    [Some(record.to_path_buf()), beside].into_iter().flatten().find(|path| path.is_file())
}

/// Figures of a run that its record and its output both have.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFigures {
    pub path: PathBuf,
    pub steps: usize,
    pub batch_size: Option<u32>,
    /// Mean seconds of a step.
    pub mean: f64,
    /// Standard error of that mean, as a share of it: from single steps or from hundreds of steps, whichever is larger.
    pub error: f64,
    pub samples_per_second: f64,
    pub frames_per_second: Option<f64>,
    /// Variation of the step time beyond the shapes of the batches.
    pub by_shape: Option<f64>,
    pub devices: Vec<FigureDevice>,
    pub lasted: Option<f64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FigureDevice {
    pub device: String,
    pub role: DeviceRole,
    /// Mean share of time it was busy.
    pub busy: Option<f64>,
    /// The most memory in use, in bytes.
    pub peak_memory: Option<f64>,
}

impl RunFigures {
    /// The most memory in use, and by which device: by the model's, otherwise by the process.
    pub fn peak_memory(&self) -> Option<(&str, f64)> {
        let of = |role: DeviceRole| {
            let devices = self.devices.iter().filter(move |device| device.role == role);
            let own = devices.filter(|device| device.is_own());
            let peaks = own.filter_map(|one| Some((one.device.as_str(), one.peak_memory?)));
            peaks.max_by(|one, other| one.1.total_cmp(&other.1))
        };
        of(DeviceRole::Model).or_else(|| of(DeviceRole::Host))
    }
}

impl FigureDevice {
    /// The machine's memory is shared by all programs; the process belongs to the run.
    pub fn is_own(&self) -> bool {
        self.role != DeviceRole::Host || self.device == PROCESS
    }
}

impl From<&LoggedRun> for RunFigures {
    fn from(log: &LoggedRun) -> RunFigures {
        RunFigures {
            path: log.path.clone(),
            steps: log.steps as usize,
            batch_size: log.batch_size,
            mean: log.mean,
            error: relative_error(log.mean, log.std, log.steps as f64, &log.windows),
            samples_per_second: log.samples_per_second,
            frames_per_second: log.frames_per_second,
            by_shape: log.by_shape,
            devices: log
                .devices
                .iter()
                .map(|one| FigureDevice {
                    device: one.device.clone(),
                    role: one.role,
                    busy: one.busy,
                    peak_memory: one.peak_memory,
                })
                .collect(),
            lasted: log.lasted,
        }
    }
}

impl From<&MeasuredRun> for RunFigures {
    fn from(run: &MeasuredRun) -> RunFigures {
        let times = run.times();
        let (mean, std) = (mean(&times), deviation(&times));
        let windows: Vec<f64> = times.chunks_exact(100).map(self::mean).collect();
        let took: f64 = times.iter().sum();
        let per_second = |count: f64| if took > 0.0 { count / took } else { 0.0 };
        let devices = run.devices.iter().map(|series| FigureDevice {
            device: series.device.clone(),
            role: series.role,
            busy: (!series.utilisation.is_empty()).then(|| self::mean(&series.utilisation)),
            peak_memory: series.memory.iter().copied().reduce(f64::max),
        });
        RunFigures {
            path: run.path.clone(),
            steps: times.len(),
            batch_size: run.batch_size(),
            mean,
            error: relative_error(mean, std, times.len() as f64, &windows),
            samples_per_second: per_second(run.steps.iter().map(|s| f64::from(s.items)).sum()),
            frames_per_second: Some(per_second(run.steps.iter().map(|s| s.frames as f64).sum())),
            by_shape: variation(run.sample.steps()).map(|found| found.by_shape),
            devices: devices.collect(),
            lasted: Some(run.lasted.0),
        }
    }
}

/// Steps that are near each other are alike, so the error of their mean is larger than that of independent steps:
/// the means of whole windows show by how much.
fn relative_error(mean: f64, std: f64, steps: f64, windows: &[f64]) -> f64 {
    if mean <= 0.0 || steps < 1.0 {
        return 0.0;
    }
    let single = std / steps.sqrt();
    let whole = match windows.len() {
        0..3 => 0.0,
        count => deviation(windows) / (count as f64 - 1.0).sqrt(),
    };
    single.max(whole) / mean
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn deviation(values: &[f64]) -> f64 {
    let middle = mean(values);
    let squares = values.iter().map(|value| (value - middle).powi(2)).sum::<f64>();
    (squares / values.len().max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    const LINE: &str = "step 100: mean 20.00 ms, std 2.00 ms, min 18.00 ms, max 30.00 ms, 50.00 \
                        steps/s, 400.0 samples/s, variation 3.1 % by shape, 9.0 % raw, waited 0.0 %\n";

    #[test]
    fn a_log_is_followed_to_its_record_and_read_where_that_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let record = write(
            folder.path(),
            "runs/a/run.jsonl",
            include_str!("../../../docs/example-run.jsonl"),
        );
        let log = write(folder.path(), "a.log", &format!("{LINE}record: runs/a/run.jsonl\n"));
        let RunSource::Record(run) = RunSource::read(&log).unwrap() else { panic!("no record") };
        assert_eq!(run.path, log, "named as the user named it");
        assert!(!run.steps.is_empty());
        fs::remove_file(record).unwrap();
        let RunSource::Log(log) = RunSource::read(&log).unwrap() else { panic!("a record") };
        let figures = RunFigures::from(&log);
        assert_eq!((figures.steps, figures.samples_per_second), (100, 400.0));
        assert!((figures.error - 0.01).abs() < 1e-9, "2 ms over the root of 100, of 20 ms");
    }

    #[test]
    fn other_files_are_refused_with_a_hint() {
        let folder = tempfile::tempdir().unwrap();
        for (text, words) in [
            ("Epoch 1/10\n", "neither a run record nor the output"),
            ("record: runs/gone/run.jsonl\n", "has no step times"),
            ("", "is empty"),
            ("{\"step\": 1}\n", "is not a run record"),
        ] {
            let path = write(folder.path(), "x", text);
            let error = RunSource::read(&path).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
            assert!(error.hint().is_some(), "{error}");
        }
        assert!(RunSource::read(&folder.path().join("nowhere")).is_err());
    }
}
