//! Prediction errors for finished runs.
//!
//! In: profiles, the record of a run that was not part of them. Out: [`PastRun`]: the prediction
//! for its batch size, workers and depth, and the measurement.

use crate::measured_run::MeasuredRun;
use crate::plan::{Missing, PlanError, PlanMode, PlanQuestion, plan};
use crate::profile::{ProfileAnswer, Sharing};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use tandem_units::median;

/// Prediction for a finished run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PastRun {
    /// Its record, as it was named.
    pub run: PathBuf,
    /// Most utterances of a batch.
    pub batch_size: usize,
    pub workers: usize,
    pub depth: usize,
    /// Seconds of a step, predicted.
    pub predicted: f64,
    /// The median of its steps.
    pub measured: f64,
    /// Predicted over measured, less one.
    pub error: f64,
}

impl PastRun {
    /// Predicts a run from profiles of others.
    pub fn of(profiles: &[ProfileAnswer], run: &MeasuredRun) -> Result<PastRun, PlanError> {
        let number = |key: &str| {
            let found = run.settings.pointer(key).and_then(serde_json::Value::as_u64);
            found.and_then(|number| usize::try_from(number).ok()).filter(|number| *number > 0)
        };
        let lacking = |what: String| {
            let command = "tandem train --train-data CORPUS --checkpoint-dir RUN".to_string();
            PlanError::NotMeasured(Missing { what, command })
        };
        let name = run.path.display();
        let (Some(workers), Some(depth), Some(batch_size)) = (
            number("/config/num_workers"),
            number("/config/prefetch_buffer_size"),
            run.batch_size().map(|size| size as usize),
        ) else {
            return Err(lacking(format!(
                "`{name}` has no workers, depth and batch size: it is not a training run"
            )));
        };
        let size = run.settings.pointer("/config/train/model_size").and_then(|size| size.as_str());
        let profiled = profiles.first().map(|profile| profile.subject.model_size.as_str());
        if size != profiled {
            let (size, profiled) = (size.unwrap_or("unknown"), profiled.unwrap_or("none"));
            return Err(lacking(format!(
                "`{name}` trained model size {size}, but the profile is of {profiled}"
            )));
        }
        let mut times = run.times();
        times.sort_unstable_by(f64::total_cmp);
        let Some(&measured) = times.get(times.len() / 2) else {
            return Err(lacking(format!("`{name}` has no step after its warm-up")));
        };
        let two =
            profiles.first().is_some_and(|profile| profile.subject.sharing == Sharing::TwoGpus);
        let question = PlanQuestion {
            modes: vec![if two { PlanMode::Dual } else { PlanMode::Single }],
            named: true,
            workers: vec![workers],
            depths: vec![depth],
            batches: vec![batch_size],
            reduce: None,
            gpus: None,
        };
        let predicted = plan(profiles, &question)?.rows[0].predicted.step;
        let error = predicted / measured.max(1e-12) - 1.0;
        Ok(PastRun {
            run: run.path.clone(),
            batch_size,
            workers,
            depth,
            predicted,
            measured,
            error,
        })
    }
}

/// Median absolute error.
pub fn median_error(runs: &[PastRun]) -> Option<f64> {
    let mut errors: Vec<f64> = runs.iter().map(|run| run.error.abs()).collect();
    median(&mut errors)
}
