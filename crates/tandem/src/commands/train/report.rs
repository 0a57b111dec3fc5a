//! The end of a run: its report on stdout, where the checkpoint is, and what to type next.

use super::TrainingRun;
use crate::exit::ExitStatus;
use crate::failure::{Context, Result};
use crate::next_command::next_command;
use crate::printer::Printer;
use std::path::Path;
use tandem_telemetry::Rules;
use tandem_telemetry::record::Closed;
use tandem_telemetry::report::Report;
use tandem_train::run::job::{Ending, Outcome};

impl TrainingRun {
    pub(super) fn report(
        &self,
        outcome: Outcome,
        closed: &Closed,
        record: &Path,
        json: bool,
        out: &mut Printer,
    ) -> Result<ExitStatus> {
        let report = Report::from_summary(&closed.summary, None, &Rules::default());
        // Next to the figures, so that a log of either stream leads to the record.
        let record = format!("record: {}", record.display());
        if json {
            out.json(&report)?;
            out.note(&record);
        } else {
            out.line(report.to_string().trim_end())?;
            out.line(&format!("batch     {} utterances", self.plan.batch.batch_size))?;
            out.line(&format!("shapes    {}", outcome.shapes))?;
            out.line(&format!("warm-up   {}", outcome.warm_up))?;
            out.line(&format!("in use    {}", outcome.memory))?;
            if !self.phases.is_empty() {
                out.line(&format!("peaks     {}", self.phases))?;
            }
            if let Some(worst) = &outcome.worst {
                out.line(&format!("memory    {worst}"))?;
            }
            out.line(&record)?;
        }
        let directory = self.directory.path().display();
        if let Some(saved) = &outcome.written.last {
            out.note(&format!("latest checkpoint: {} ({})", saved.path.display(), saved.bytes));
        }
        match (&outcome.ending, outcome.written.failure) {
            (Ending::Failed(_), Some(error)) => {
                out.note(&format!("the last checkpoint could not be written: {error}"));
            }
            (_, Some(error)) => {
                let fact = "its last checkpoint is not on disk";
                return Err(error)
                    .context(format!("the run reached step {}, but {fact}", outcome.step));
            }
            (_, None) => {}
        }
        match outcome.ending {
            Ending::Done => {
                out.note(&format!(
                    "synthesize: tandem synth --checkpoint {directory} --text \"...\" -o out.wav"
                ));
                out.note(&next_command(&report, self.directory.path(), &self.plan.train_data));
                Ok(ExitStatus::Done)
            }
            Ending::NoProgress => {
                out.note("stopped early: validation did not improve any more (`--patience`)");
                out.note(&next_command(&report, self.directory.path(), &self.plan.train_data));
                Ok(ExitStatus::Done)
            }
            Ending::Interrupted => {
                out.note(&format!(
                    "stopped at step {}; run the same command with `{}` to continue",
                    outcome.step,
                    self.directory.resume_flags()
                ));
                Ok(ExitStatus::Interrupted)
            }
            Ending::Failed(error) => {
                out.note(&format!(
                    "stopped at step {}; run the same command with `{}` to continue",
                    outcome.step,
                    self.directory.resume_flags()
                ));
                Err(error).context("training stopped")
            }
        }
    }
}
