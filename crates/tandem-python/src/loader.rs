//! The native half of `tandem.Loader`.
//!
//! In: a corpus and settings. Out: batches as [`Memory`], state and report as JSON. Waits with the
//! interpreter released and looks for signals. One iteration at a time: a new one ends the one before.

use crate::corpus::prepare_plan;
use crate::errors::{Class, of_panic};
use crate::interruptible::TICK;
use crate::memory::{BatchMemory, EmptyRows, Memory};
use crate::process::Process;
use crate::record::LoaderRecord;
use crate::settings::plan;
use pyo3::prelude::*;
use serde_json::json;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tandem::data_report::data_event;
use tandem::failure::{Context, Failure, Result};
use tandem::train_plan::TrainPlan;
use tandem_data::corpus::Split;
use tandem_device::placement::Shapes;
use tandem_telemetry::event::RunOutcome;
use tandem_train::feed::mel::Ready;
use tandem_train::loader::{LAST_EPOCH, Loader, LoaderState, Next};
use tandem_train::{FeedSettings, Prepared};
use tandem_units::Epoch;

#[pyclass(frozen, module = "tandem._native")]
pub struct NativeLoader {
    process: Process,
    // None after `close`, and in a forked process.
    open: Mutex<Option<Open>>,
    record: Mutex<Option<LoaderRecord>>,
    facts: Facts,
}

struct Open {
    loader: Loader,
    /// Counts iterations: an older one may not continue.
    iteration: u64,
}

/// What stays known after the loader is closed.
struct Facts {
    len: usize,
    utterances: usize,
    speakers: Vec<String>,
    languages: Vec<String>,
    empty_rows: EmptyRows,
}

/// A batch: epoch, number, ids, then the arrays.
type Parts = (u32, u64, Vec<String>, [Py<Memory>; 6]);

#[pymethods]
impl NativeLoader {
    #[new]
    fn new(
        py: Python<'_>,
        corpus: &str,
        settings: &str,
        split: &str,
        record: Option<PathBuf>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<NativeLoader> {
        let split = match split {
            "train" => Some(Split::Train),
            "eval" => Some(Split::Eval),
            "all" => None,
            other => {
                let fact = format!("`split` is `{other}`");
                return Err(Class::Settings.error(py, &fact, "write `train`, `eval` or `all`"));
            }
        };
        let plan = plan(settings, corpus).map_err(|failure| Class::Settings.of(py, failure))?;
        let prepared = Arc::new(prepare_plan(py, &plan, progress)?);
        let opened = py.detach(|| open(plan, prepared, split, record));
        opened.map_err(|failure| Class::Loader.of(py, failure))
    }

    #[getter]
    fn batches(&self) -> usize {
        self.facts.len
    }

    #[getter]
    fn utterances(&self) -> usize {
        self.facts.utterances
    }

    #[getter]
    fn speakers(&self) -> Vec<String> {
        self.facts.speakers.clone()
    }

    #[getter]
    fn languages(&self) -> Vec<String> {
        self.facts.languages.clone()
    }

    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        self.process.check(py, NAME)?;
        Ok(py.detach(|| self.open.lock().unwrap_or_else(PoisonError::into_inner).is_none()))
    }

    #[getter]
    fn epoch(&self, py: Python<'_>) -> PyResult<u32> {
        self.with(py, |open| Ok(open.loader.epoch().0))
    }

    fn set_epoch(&self, py: Python<'_>, epoch: u32) -> PyResult<()> {
        if epoch > LAST_EPOCH {
            let fact = format!("epoch {epoch} is too large");
            return Err(Class::Settings.error(py, &fact, "count epochs from 0"));
        }
        self.with(py, |open| {
            open.loader.set_epoch(Epoch(epoch));
            Ok(())
        })
    }

    /// Begins an epoch; returns the number of the iteration.
    fn begin(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |open| {
            open.loader.begin()?;
            open.iteration += 1;
            Ok(open.iteration)
        })
    }

    /// The next batch of an iteration, or `None` at the end of the epoch.
    fn next(&self, py: Python<'_>, iteration: u64) -> PyResult<Option<Parts>> {
        loop {
            let polled = self.with(py, |open| {
                if open.iteration != iteration {
                    return Ok(Polled::Replaced);
                }
                Ok(match open.loader.poll(TICK)? {
                    Next::NotYet => Polled::NotYet,
                    Next::EndOfEpoch => Polled::EndOfEpoch,
                    Next::Batch(ready) => {
                        let ids = open.loader.ids(&ready).into_iter().map(String::from).collect();
                        Polled::Batch(ready, ids)
                    }
                })
            })?;
            match polled {
                Polled::NotYet => py.check_signals()?,
                Polled::EndOfEpoch => return Ok(None),
                Polled::Batch(ready, ids) => return self.parts(py, *ready, ids).map(Some),
                Polled::Replaced => {
                    let fact = "this iterator was replaced: the loader was iterated again";
                    let hint = "use one iterator at a time, or create a second loader";
                    return Err(Class::Loader.error(py, fact, hint));
                }
            }
        }
    }

    fn state(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |open| serde_json::to_string(&open.loader.state()).map_err(Failure::foreign))
    }

    fn restore(&self, py: Python<'_>, state: &str) -> PyResult<()> {
        let state: LoaderState = serde_json::from_str(state).map_err(|error| {
            let fact = format!("this is not the state of a loader: {error}");
            Class::Loader.error(py, &fact, "give what `state_dict()` returned, unchanged")
        })?;
        self.with(py, |open| {
            open.loader.restore(&state)?;
            // An iterator of before would continue somewhere else.
            open.iteration += 1;
            Ok(())
        })
    }

    /// The report as text and as JSON.
    fn report(&self, py: Python<'_>) -> PyResult<(String, String)> {
        self.with_record(py, |record| {
            let report = record.report();
            let json = serde_json::to_string(&report).map_err(Failure::foreign)?;
            Ok((report.to_string().trim_end().to_string(), json))
        })
    }

    fn save_record(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.with_record(py, |record| record.save(&path))
    }

    /// Ends the threads. The report stays available.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.process.check(py, NAME)?;
        py.detach(|| self.end());
        Ok(())
    }
}

const NAME: &str = "Loader";

enum Polled {
    NotYet,
    EndOfEpoch,
    Batch(Box<Ready>, Vec<String>),
    Replaced,
}

impl NativeLoader {
    /// Calls `work` without the interpreter. Waits for another thread that uses the loader.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Open) -> Result<T> + Send,
    ) -> PyResult<T> {
        self.process.check(py, NAME)?;
        let done = py.detach(|| {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.as_mut().map(|open| catch_unwind(AssertUnwindSafe(|| work(open))))
        });
        match done {
            None => Err(Class::Loader.error(py, "the loader is closed", "create a new one")),
            Some(Ok(result)) => result.map_err(|failure| Class::Loader.of(py, failure)),
            Some(Err(panic)) => Err(of_panic(py, &*panic)),
        }
    }

    fn with_record<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&LoaderRecord) -> Result<T> + Send,
    ) -> PyResult<T> {
        self.process.check(py, NAME)?;
        let done = py.detach(|| {
            let record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
            record.as_ref().map(work)
        });
        let none = || Class::Loader.error(py, "the loader has no record", "create a new loader");
        done.ok_or_else(none)?.map_err(|failure| Class::Loader.of(py, failure))
    }

    fn parts(&self, py: Python<'_>, ready: Ready, ids: Vec<String>) -> PyResult<Parts> {
        let position = ready.position;
        let memory = BatchMemory::of(ready.batch, self.facts.empty_rows);
        let BatchMemory { text_ids, text_lengths, mel, mel_lengths, speaker, language } = memory;
        let arrays = [
            Py::new(py, text_ids)?,
            Py::new(py, text_lengths)?,
            Py::new(py, mel)?,
            Py::new(py, mel_lengths)?,
            Py::new(py, speaker)?,
            Py::new(py, language)?,
        ];
        Ok((position.epoch.0, position.batch, ids, arrays))
    }

    fn end(&self) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut open) = open {
            open.loader.close(RunOutcome::Done);
            let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
            record.iter_mut().for_each(LoaderRecord::finish);
        }
    }
}

impl Drop for NativeLoader {
    fn drop(&mut self) {
        if self.process.is_current() {
            return self.end();
        }
        // In a forked process: dropping would wait for threads that do not exist here.
        let open = self.open.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let record = self.record.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        std::mem::forget((open, record));
    }
}

fn open(
    plan: TrainPlan,
    prepared: Arc<Prepared>,
    split: Option<Split>,
    record: Option<PathBuf>,
) -> Result<NativeLoader> {
    let settings = json!({ "command": "Loader", "config": plan.to_file() });
    let record = LoaderRecord::start(record, settings)?;
    record.recorder().send(data_event(&prepared, plan.prepare.workers));
    let feed = FeedSettings { split, ..plan.feed_settings() };
    let (meta, max_failed) = (prepared.cache.meta(), plan.prepare.max_rejected);
    let (speakers, languages) = (meta.speakers.clone(), meta.languages.clone());
    let empty_rows = match feed.shapes {
        Shapes::Static => EmptyRows::Kept,
        Shapes::PerBatch => EmptyRows::LeftOut,
    };
    let loader = Loader::new(prepared, feed, max_failed, record.recorder())
        .with_context(|| format!("cannot load `{}`", plan.train_data.display()))?;
    let (len, utterances) = (loader.len(), loader.utterances());
    Ok(NativeLoader {
        process: Process::current(),
        open: Mutex::new(Some(Open { loader, iteration: 0 })),
        record: Mutex::new(Some(record)),
        facts: Facts { len, utterances, speakers, languages, empty_rows },
    })
}
