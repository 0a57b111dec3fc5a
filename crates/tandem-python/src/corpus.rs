//! `tandem.prepare`: a corpus becomes a cache.

use crate::errors::Class;
use crate::interruptible;
use crate::settings::plan;
use pyo3::prelude::*;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tandem::failure::{Context, Failure, Result};
use tandem::train_plan::TrainPlan;
use tandem_data::corpus::RejectedRow;
use tandem_pipeline::CancelToken;
use tandem_train::prepare::row::ChangeCheck;
use tandem_train::{Prepared, Summary, TrainError, Watcher};

#[derive(Serialize)]
struct AsJson<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    rejected_rows: &'a [RejectedRow],
}

/// Prepares a corpus and returns the summary as JSON. `progress` is called with finished and all rows.
#[pyfunction]
pub fn prepare(
    py: Python<'_>,
    corpus: &str,
    settings: &str,
    verify: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let mut plan = plan(settings, corpus).map_err(|failure| Class::Settings.of(py, failure))?;
    if verify {
        plan.prepare.change_check = ChangeCheck::Contents;
    }
    let prepared = prepare_plan(py, &plan, progress)?;
    let summary = AsJson { summary: &prepared.summary, rejected_rows: &prepared.rejected };
    serde_json::to_string(&summary).map_err(|error| Class::Internal.of(py, Failure::foreign(error)))
}

/// Prepares the corpus of a plan.
pub fn prepare_plan(
    py: Python<'_>,
    plan: &TrainPlan,
    progress: Option<Py<PyAny>>,
) -> PyResult<Prepared> {
    let cancel = CancelToken::new();
    let counts = Arc::new(Counts::default());
    let work = {
        let (plan, cancel, counts) = (plan.clone(), cancel.clone(), counts.clone());
        move || -> Result<Prepared> {
            let TrainPlan { corpus, data, prepare, train_data, .. } = &plan;
            let mut watcher = &*counts;
            let prepared = tandem_train::prepare(corpus, data, prepare, &mut watcher, &cancel);
            let prepared = prepared.map_err(with_rows);
            prepared.with_context(|| format!("cannot prepare `{}`", train_data.display()))
        }
    };
    let mut shown = 0;
    let mut show = || -> PyResult<()> {
        let done = counts.done.load(Ordering::Relaxed);
        let rows = counts.rows.load(Ordering::Relaxed);
        if let Some(call) = progress.as_ref().filter(|_| done > shown) {
            shown = done;
            Python::attach(|py| call.call1(py, (done, rows)).map(drop))?;
        }
        Ok(())
    };
    let prepared =
        interruptible::run(py, "prepare", Class::Corpus, Some(&cancel), &mut show, work)?;
    show()?;
    Ok(prepared)
}

/// Names the first rejected rows: the list is a file that a Python user may never open.
fn with_rows(error: TrainError) -> Failure {
    let rows = error.rejected().iter().take(3).map(|row| {
        format!("{}:{} `{}`: {} ({})", row.manifest, row.line, row.id, row.message, row.fix)
    });
    let rows: Vec<String> = rows.collect();
    let failure = Failure::from(error);
    if rows.is_empty() {
        return failure;
    }
    let named: Result<()> = Err(failure).context(format!("unusable: {}", rows.join("; ")));
    named.err().unwrap_or_else(|| Failure::bare("rows are unusable"))
}

#[derive(Default)]
struct Counts {
    done: AtomicUsize,
    rows: AtomicUsize,
}

impl Watcher for &Counts {
    fn waiting_for(&mut self, _owner: &str) {}

    fn progress(&mut self, done: usize, rows: usize) {
        self.rows.store(rows, Ordering::Relaxed);
        self.done.store(done, Ordering::Relaxed);
    }
}
