//! The start of a run: new, resumed or fine-tuned, and what the user and the record are told about it.
//!
//! In: open devices and prepared data. Out: [`RunStart`], with notes on what differs from the last part of the run.

use super::TrainingRun;
use crate::failure::{Context, Result};
use crate::printer::Printer;
use crate::speaking_args::damaged_checkpoint;
use tandem_model::Module;
use tandem_model::checkpoint::Checkpoints;
use tandem_model::vocoder::neural::trained::{attach_to_run, attached_to};
use tandem_pipeline::CancelToken;
use tandem_train::FeedSettings;
use tandem_train::run::fine_tune::fine_tune;
use tandem_train::run::job::RunStart;
use tandem_train::run::resume::{resume, resume_without_lock};
use tandem_train::run::start::{begin, begin_without_checkpoints};

impl TrainingRun {
    pub(super) fn begin(
        &self,
        feed: &FeedSettings,
        checkpoints: Option<&Checkpoints>,
        cancel: &CancelToken,
    ) -> Result<(RunStart, Vec<String>)> {
        let (prepared, settings, devices) = (&self.prepared, &self.plan.train, &self.devices);
        if let (false, Some(from)) = (self.plan.resume, &settings.from_voice) {
            let start = fine_tune(from, prepared, feed, settings, devices, checkpoints)
                .with_context(|| format!("cannot fine-tune `{}`", from.display()))?;
            return Ok((start, Vec::new()));
        }
        if !self.plan.resume {
            let start = match checkpoints {
                Some(own) => begin(prepared, feed, settings, devices, own, cancel)?,
                None => begin_without_checkpoints(prepared, feed, settings, devices, cancel)?,
            };
            return Ok((start, Vec::new()));
        }
        let taken = match checkpoints {
            Some(own) => resume(prepared, feed, settings, devices, own, self.changes)?,
            None => {
                let directory = self.directory.path();
                resume_without_lock(prepared, feed, settings, devices, directory, self.changes)?
            }
        };
        let damaged = taken.damaged.iter().map(|fact| damaged_checkpoint(fact));
        let changed = taken.notes.iter().map(|fact| format!("resumed with a change: {fact}"));
        Ok((taken.start, damaged.chain(changed).collect()))
    }

    pub(super) fn describe(&self, start: &RunStart) -> String {
        let size = self.plan.train.model_size.name();
        let parameters = start.train_state.voice.num_params();
        let from = match start.train_state.step {
            0 => "new run".to_string(),
            step => format!("resumed at step {step}"),
        };
        let directory = self.directory.path().display();
        let batch = self.plan.batch.batch_size;
        format!(
            "voice: {size}, {}; batch {batch}; {from} in {directory}",
            crate::counted::parameters(parameters)
        )
    }

    /// Says what a fine-tuned run took over from its voice.
    pub(super) fn note_source(&self, start: &RunStart, out: &mut Printer) {
        let Some(taken) = start.state.taken_over.as_ref().filter(|_| start.train_state.step == 0)
        else {
            return;
        };
        out.note(&taken.to_string());
        let flat_start = self.plan.train.alignment.flat_start;
        if !taken.new_languages.is_empty() && flat_start == 0 {
            let languages = taken.new_languages.join(", ");
            out.note(&format!(
                "{languages}: the voice cannot align a language it does not know; \
                 `--align-flat-start 100` begins without it"
            ));
        }
    }

    /// A fine-tuned run uses the neural vocoder of the voice it starts from.
    pub(super) fn take_vocoder(&self, start: &RunStart, out: &mut Printer) -> Result<()> {
        let is_new = start.train_state.step == 0 && self.is_first();
        let Some(taken) = start.state.taken_over.as_ref().filter(|_| is_new) else { return Ok(()) };
        let Some(vocoder) = attached_to(&taken.checkpoint) else { return Ok(()) };
        attach_to_run(self.directory.path(), &start.document.mel, &vocoder)
            .with_context(|| format!("cannot use the vocoder `{}`", vocoder.display()))?;
        out.note("  vocoder    that of the voice; `tandem attach-vocoder` replaces it");
        Ok(())
    }

    pub(super) fn settings(&self, start: &RunStart) -> serde_json::Value {
        let mut settings = serde_json::json!({
            "command": "train",
            "placement": self.placement,
            "config": self.plan.to_file(),
        });
        if let Some(cluster) = &self.cluster {
            let hosts: Vec<&str> = (0..cluster.ranks()).map(|rank| cluster.host(rank)).collect();
            settings["ranks"] = serde_json::json!({
                "rank": cluster.rank(),
                "ranks": cluster.ranks(),
                "hosts": hosts,
                "job": cluster.job(),
            });
        }
        if let Some(taken_over) = &start.state.taken_over {
            settings["taken_over"] = serde_json::json!(taken_over);
        }
        settings
    }
}
