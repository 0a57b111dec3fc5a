//! The summary line every hundred steps.
//!
//! In: step and stage events. Out: [`PeriodicLine`]: step times, throughput and variation of
//! the last steps, with a warning that names the likely stage where variation is too high.
//! Prints nothing: the record's listener decides where the line goes.

use crate::event::{Event, Stamped, Warning};
use crate::rules::Rules;
use crate::stats::Figures;
use crate::summary::{StageSums, Summary};
use crate::verdict::{likely_stage, percent};
use serde::{Deserialize, Serialize};
use std::fmt;
use tandem_units::Seconds;

/// The last hundred steps in figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeriodicLine {
    /// The last step of these.
    pub step: u64,
    /// Their times, in seconds.
    pub times: Figures,
    pub steps_per_second: f64,
    pub samples_per_second: f64,
    /// Share of the time the model waited.
    pub stall: f64,
    /// Set where variation is over the limit.
    pub warning: Option<Warning>,
}

/// Collects events until a line is due.
#[derive(Clone, Debug, Default)]
pub struct Window {
    sums: Summary,
    // From the window before: short windows may see no stage line of their own.
    stages: Vec<StageSums>,
}

impl Window {
    /// Counts an event in; returns a line at every [`Rules::every`]th step.
    pub fn add(&mut self, stamped: &Stamped, rules: &Rules) -> Option<PeriodicLine> {
        let Event::Step(_) = stamped.event else {
            if matches!(stamped.event, Event::Stage(_)) {
                self.sums.add(stamped);
            }
            return None;
        };
        self.sums.add(stamped);
        if rules.every == 0 || self.sums.steps.all.count() < rules.every {
            return None;
        }
        let mut sums = std::mem::take(&mut self.sums);
        if sums.stages.is_empty() {
            sums.stages = self.stages.clone();
        }
        let line = periodic_line(&sums, rules);
        self.stages = sums.stages;
        line
    }
}

/// The line for the steps in these sums; `None` where there are none.
pub fn periodic_line(sums: &Summary, rules: &Rules) -> Option<PeriodicLine> {
    let times = sums.steps.all.figures()?;
    let whole = sums.steps.took.seconds().0;
    let per_second = |count: f64| if whole > 0.0 { count / whole } else { 0.0 };
    let warning = (times.variation > rules.variation).then(|| warning(sums, &times, rules));
    Some(PeriodicLine {
        step: sums.steps.last,
        times,
        steps_per_second: per_second(times.count as f64),
        samples_per_second: per_second(sums.steps.items as f64),
        stall: sums.steps.waited.share_of(sums.steps.took),
        warning,
    })
}

fn warning(sums: &Summary, times: &Figures, rules: &Rules) -> Warning {
    let cause = likely_stage(sums, rules).map_or_else(
        || "the record has no stages".to_string(),
        |stage| format!("likely stage: `{stage}`"),
    );
    let text = format!(
        "step times vary by {} around step {} (limit {}); {cause}",
        percent(times.variation),
        sums.steps.last,
        percent(rules.variation)
    );
    Warning { code: "variation".into(), text }
}

impl fmt::Display for PeriodicLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = &self.times;
        write!(
            f,
            "step {}: mean {}, std {}, min {}, max {}, {:.2} steps/s, {:.1} samples/s, \
             variation {}, waited {}",
            self.step,
            Seconds(times.mean),
            Seconds(times.std),
            Seconds(times.min),
            Seconds(times.max),
            self.steps_per_second,
            self.samples_per_second,
            percent(times.variation),
            percent(self.stall)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Nanos;
    use crate::event::{StageInterval, Step};

    fn step(number: u64, took: u64, waited: u64) -> Stamped {
        let step = Step {
            step: number,
            took: Nanos::millis(took),
            waited: Nanos::millis(waited),
            items: 16,
            ..Step::default()
        };
        Stamped { at: Nanos(number), event: step.into() }
    }

    fn stage(name: &'static str, busy: u64) -> Stamped {
        let interval = StageInterval {
            stage: name.into(),
            workers: 1,
            interval: Nanos::millis(1000),
            busy: Nanos::millis(busy),
            blocked: Nanos::millis(1000 - busy),
            items: 10,
            ..StageInterval::default()
        };
        Stamped { at: Nanos(0), event: interval.into() }
    }

    fn lines(events: impl IntoIterator<Item = Stamped>) -> Vec<PeriodicLine> {
        let mut window = Window::default();
        let rules = Rules::default();
        events.into_iter().filter_map(|event| window.add(&event, &rules)).collect()
    }

    #[test]
    fn a_line_comes_every_hundred_steps_with_the_figures_of_those_alone() {
        let lines = lines((1..=250).map(|n| step(n, if n <= 100 { 100 } else { 50 }, 0)));
        let said: Vec<String> = lines.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "step 100: mean 100.00 ms, std 0 s, min 100.00 ms, max 100.00 ms, \
                 10.00 steps/s, 160.0 samples/s, variation 0.0 %, waited 0.0 %",
                "step 200: mean 50.00 ms, std 0 s, min 50.00 ms, max 50.00 ms, \
                 20.00 steps/s, 320.0 samples/s, variation 0.0 %, waited 0.0 %",
            ]
        );
    }

    #[test]
    fn varying_steps_that_wait_name_the_slowest_stage_before_the_model() {
        let stages = [stage("load", 990), stage("preprocess", 200)];
        let steps = (1..=200).map(|n| if n % 2 == 0 { step(n, 50, 0) } else { step(n, 150, 100) });
        let lines = lines(stages.into_iter().chain(steps));
        for line in &lines {
            let warning = line.warning.as_ref().unwrap();
            assert!(warning.text.contains("vary by 50.0 %"), "{}", warning.text);
            assert!(warning.text.ends_with("likely stage: `load`"), "{}", warning.text);
        }
        assert_eq!(lines.len(), 2, "the second window has no stage line of its own");
    }

    #[test]
    fn varying_steps_without_waits_name_the_model() {
        let stages = [stage("load", 990)];
        let steps = (1..=100).map(|n| step(n, if n % 2 == 0 { 50 } else { 150 }, 0));
        let lines = lines(stages.into_iter().chain(steps));
        assert!(lines[0].warning.as_ref().unwrap().text.ends_with("likely stage: `train`"));
    }

    #[test]
    fn thirty_percent_exactly_is_no_warning() {
        let steps = (1..=100).map(|n| step(n, if n % 2 == 0 { 70 } else { 130 }, 0));
        assert_eq!(lines(steps)[0].warning, None);
    }
}
