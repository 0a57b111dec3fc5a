//! The command that is most useful after a finished training run.
//!
//! In: the report of the run and its directory. Out: one command with a reason. A run that lost time gets the flag
//! that its measurements advise, or a profile where no flag is known; any other run is evaluated. Starts nothing.

use std::path::Path;
use tandem_telemetry::Report;
use tandem_telemetry::verdict::Cause;

/// The next command and what it is for.
pub fn next_command(report: &Report, directory: &Path, corpus: &Path) -> String {
    let directory = directory.display();
    let config = format!("--config {directory}/config.toml");
    let flag = report.advice.iter().find(|advice| advice.flag.starts_with("--"));
    if let Some(advice) = flag.filter(|advice| !advice.flag.contains(" A ")) {
        let limit = if advice.at_most { "up to " } else { "about " };
        let (flag, gain) = (&advice.flag, 100.0 * advice.gain);
        return format!(
            "next: `tandem train {config} --checkpoint-dir NEW {flag}` should save {limit}{gain:.1} % of a \
             step; `tandem compare {directory} NEW` shows whether it did"
        );
    }
    let lost = matches!(report.verdict.cause, Cause::Feed | Cause::Variation | Cause::Unknown);
    if lost || !report.advice.is_empty() {
        return format!(
            "next: `tandem profile {config}` shows where the time goes and what to change"
        );
    }
    format!(
        "next: `tandem evaluate --checkpoint {directory} --corpus {}` compares the voice with recordings; \
         `tandem profile {config}` shows what other settings would gain",
        corpus.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_telemetry::advice::Advice;
    use tandem_telemetry::{Rules, Summary};

    fn report(cause: Cause, advice: &[&str]) -> Report {
        let mut report = Report::from_summary(&Summary::default(), None, &Rules::default());
        report.verdict.cause = cause;
        let advised = |flag: &&str| Advice {
            flag: flag.to_string(),
            gain: 0.25,
            at_most: true,
            why: String::new(),
        };
        report.advice = advice.iter().map(advised).collect();
        report
    }

    #[track_caller]
    fn check(cause: Cause, advice: &[&str], start: &str) {
        let said = next_command(&report(cause, advice), Path::new("runs/a"), Path::new("demo"));
        assert!(said.starts_with(start), "{said}");
    }

    #[test]
    fn a_run_that_lost_time_gets_a_flag_or_a_profile_and_others_are_evaluated() {
        check(
            Cause::Feed,
            &["--cache-dataset"],
            "next: `tandem train --config runs/a/config.toml --checkpoint-dir NEW --cache-dataset` should \
             save up to 25.0 %",
        );
        check(Cause::Feed, &[], "next: `tandem profile --config runs/a/config.toml`");
        let profile = "next: `tandem profile --config";
        check(Cause::Feed, &["--data-gpu A --model-gpu B"], profile);
        check(Cause::Model, &[], "next: `tandem evaluate --checkpoint runs/a --corpus demo`");
    }
}
