//! The summary line every hundred steps.
//!
//! In: step, stage and queue events. Out: [`PeriodicLine`]: step times, throughput and variation of
//! the last steps, with a warning where steps of the same shape differ too much: its measured
//! cause, and, once, the flag that helps the whole run most so far. Prints nothing: the record's listener decides
//! where the line goes.

use crate::advice::{Advice, advice};
use crate::event::{Event, Stamped, Warning};
use crate::rules::Rules;
use crate::stats::Figures;
use crate::step_sample::StepSample;
use crate::summary::{StageSums, StepSums, Summary};
use crate::variation::Variation;
use crate::variation_cause::VariationSource;
use serde::{Deserialize, Serialize};
use std::fmt;
use tandem_units::{Seconds, percent};

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
    /// How much steps of the same shape differ; none where that cannot be judged.
    pub variation: Option<Variation>,
    /// Set where they differ by more than the limit.
    pub warning: Option<Warning>,
}

/// Collects events until a line is due.
#[derive(Clone, Debug, Default)]
pub struct Window {
    sums: Summary,
    // From the window before: short windows may see no stage line of their own.
    stages: Vec<StageSums>,
    /// Flags of the advice that was given: each is named once.
    advised: Vec<String>,
}

impl Window {
    /// Counts an event in; returns a line at every [`Rules::every`]th step. Advice rests on the `whole` run, this
    /// event included: the windows of an uneven run would each advise something else.
    pub fn add(
        &mut self,
        stamped: &Stamped,
        whole: &Summary,
        rules: &Rules,
    ) -> Option<PeriodicLine> {
        let Event::Step(_) = stamped.event else {
            use Event::{Device, Queue, Run, Stage};
            if matches!(stamped.event, Run(_) | Stage(_) | Queue(_) | Device(_)) {
                self.sums.add(stamped);
            }
            return None;
        };
        self.sums.add(stamped);
        if rules.every == 0 || self.sums.steps.all.count() < rules.every {
            return None;
        }
        if self.sums.stages.is_empty() {
            self.sums.stages = std::mem::take(&mut self.stages);
        }
        let mut line = periodic_line(&self.sums, rules);
        if let Some(warning) = line.as_mut().and_then(|line| line.warning.as_mut()) {
            warning.text += &self.remedy(whole, rules);
        }
        self.stages = std::mem::take(&mut self.sums.stages);
        // Settings and queues stay; the first step of the run was in the first window only.
        let mut sample: StepSample = std::mem::take(&mut self.sums.steps.sample);
        sample.restart();
        self.sums.steps = StepSums { sample, ..StepSums::default() };
        self.sums.devices.clear();
        line
    }

    /// The best advice for the run so far, where it was not given yet.
    fn remedy(&mut self, whole: &Summary, rules: &Rules) -> String {
        let best: Option<Advice> = advice(whole, rules).into_iter().next();
        // `--num-workers 3` and `--num-workers 4` are the same remedy.
        let name = |advice: &Advice| advice.flag.split(' ').next().unwrap_or_default().to_string();
        let Some(best) = best.filter(|best| !self.advised.contains(&name(best))) else {
            return String::new();
        };
        self.advised.push(name(&best));
        format!("; {best}")
    }
}

/// The line for the steps in these sums; `None` where there are none.
pub fn periodic_line(sums: &Summary, rules: &Rules) -> Option<PeriodicLine> {
    let times = sums.steps.all.figures()?;
    let whole = sums.steps.took.seconds().0;
    let per_second = |count: f64| if whole > 0.0 { count / whole } else { 0.0 };
    let variation = sums.variation();
    let uneven = variation.as_ref().filter(|found| found.by_shape > rules.variation);
    let warning = uneven.map(|found| warning(sums.steps.last, found, rules));
    Some(PeriodicLine {
        step: sums.steps.last,
        times,
        steps_per_second: per_second(times.count as f64),
        samples_per_second: per_second(sums.steps.items as f64),
        stall: sums.steps.waited.share_of(sums.steps.took),
        variation,
        warning,
    })
}

fn warning(step: u64, found: &Variation, rules: &Rules) -> Warning {
    let text = format!(
        "step times vary by {} around step {step} (limit {}) beyond the shapes of their batches; {}",
        percent(found.by_shape),
        percent(rules.variation),
        cause_words(found),
    );
    Warning { code: "variation".into(), text }
}

/// The measured cause in words.
pub fn cause_words(found: &Variation) -> String {
    let Some(cause) = &found.cause else { return "no cause was measured".into() };
    let what = match (cause.source, &cause.stage) {
        (VariationSource::Stage, Some(stage)) => format!("the model waited for `{stage}`"),
        (VariationSource::Stage | VariationSource::Waiting, _) => "the model waited".into(),
        (VariationSource::OtherPrograms, _) => "other programs used the CPU".into(),
        (VariationSource::OwnWork, _) => "this run's own work used the CPU".into(),
        (VariationSource::Model, _) => "cause: `train`, the step itself".into(),
    };
    format!("{what} ({} of the variation): {}", percent(cause.share), cause.evidence)
}

impl fmt::Display for PeriodicLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = &self.times;
        write!(
            f,
            "step {}: mean {}, std {}, min {}, max {}, {:.2} steps/s, {:.1} samples/s, \
             {}, waited {}",
            self.step,
            Seconds(times.mean),
            Seconds(times.std),
            Seconds(times.min),
            Seconds(times.max),
            self.steps_per_second,
            self.samples_per_second,
            self.varied(),
            percent(self.stall)
        )
    }
}

impl PeriodicLine {
    fn varied(&self) -> String {
        match &self.variation {
            Some(found) => found.to_string(),
            None => format!("variation {} raw", percent(self.times.variation)),
        }
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
        let (mut window, mut whole) = (Window::default(), Summary::default());
        let rules = Rules::default();
        let lines = events.into_iter().filter_map(|event| {
            whole.add(&event);
            window.add(&event, &whole, &rules)
        });
        lines.collect()
    }

    #[test]
    fn a_line_comes_every_hundred_steps_with_the_figures_of_those_alone() {
        let lines = lines((1..=250).map(|n| step(n, if n <= 100 { 100 } else { 50 }, 0)));
        let said: Vec<String> = lines.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "step 100: mean 100.00 ms, std 0 s, min 100.00 ms, max 100.00 ms, \
                 10.00 steps/s, 160.0 samples/s, variation 0.0 % by shape, 0.0 % raw, waited 0.0 %",
                "step 200: mean 50.00 ms, std 0 s, min 50.00 ms, max 50.00 ms, \
                 20.00 steps/s, 320.0 samples/s, variation 0.0 % by shape, 0.0 % raw, waited 0.0 %",
            ]
        );
    }

    #[test]
    fn a_late_batch_names_the_stage_that_worked_on_it_and_the_flag() {
        let steps = (1..=200).map(|n| {
            let late = n % 4 == 0;
            let mut stamped = step(n, if late { 350 } else { 50 }, if late { 300 } else { 0 });
            let Event::Step(step) = &mut stamped.event else { panic!("not a step") };
            let (load, align) = (if late { 340 } else { 30 }, 5);
            step.work = [("load", load), ("align", align)]
                .map(|(name, time)| (name.into(), Nanos::millis(time)))
                .into();
            stamped
        });
        let lines = lines(std::iter::once(stage("load", 990)).chain(steps));
        assert_eq!(lines.len(), 2);
        for (number, line) in lines.iter().enumerate() {
            let warning = line.warning.as_ref().unwrap();
            for part in [
                "beyond the shapes of their batches; the model waited for `load` (100.0 % of the",
                "`load` took 30.00 ms for a usual batch and 340.00 ms for the late ones",
            ] {
                assert!(warning.text.contains(part), "{}", warning.text);
            }
            let advised = warning.text.contains("`--cache-dataset` saves up to 60");
            assert_eq!(advised, number == 0, "once, with the first: {}", warning.text);
        }
    }

    #[test]
    fn varying_steps_without_waits_name_the_model() {
        let steps = (1..=100).map(|n| step(n, if n % 2 == 0 { 50 } else { 150 }, 0));
        let lines = lines(steps);
        let text = &lines[0].warning.as_ref().unwrap().text;
        assert!(text.contains("cause: `train`") && !text.contains("saves"), "{text}");
    }

    #[test]
    fn steps_that_differ_only_in_shape_are_no_warning() {
        let steps = (1..=100).map(|n| {
            let frames = 100 + 100 * (n % 7);
            let mut stamped = step(n, 10 + frames / 4, 0);
            let Event::Step(step) = &mut stamped.event else { panic!("not a step") };
            step.shape = Some([16, 40, frames as u32]);
            stamped
        });
        let line = &lines(steps)[0];
        let found = line.variation.as_ref().unwrap();
        assert!(line.warning.is_none() && found.raw > 0.4 && found.by_shape < 0.01, "{line}");
    }

    #[test]
    fn thirty_percent_exactly_is_no_warning() {
        let steps = (1..=200).map(|n| step(n, if n % 2 == 0 { 70 } else { 130 }, 0));
        assert_eq!(lines(steps)[1].warning, None);
        let steps = (1..=200).map(|n| step(n, if n % 2 == 0 { 69 } else { 131 }, 0));
        assert!(lines(steps)[1].warning.is_some());
    }
}
