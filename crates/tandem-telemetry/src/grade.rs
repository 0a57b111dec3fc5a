//! Grades a run against the targets.
//!
//! In: the sums of a run and [`Targets`]. Variation is judged per shape ([`mod@crate::variation`]). Out: [`Grading`]: a grade for each criterion that was
//! measured, and the lowest of them for the run. What was not measured is named as such and
//! never guessed: a run without GPUs is graded on its variation alone, which the sentence states.

use crate::event::DeviceRole;
use crate::rules::{Target, Targets};
use crate::stats::Stats;
use crate::summary::Summary;
use serde::{Deserialize, Serialize};
use tandem_units::percent;

/// Grade of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// Not even the minimum.
    Below,
    /// The least that is acceptable.
    Minimum,
    Good,
    /// The best there is a target for.
    Excellent,
}

/// The grade of a run and what it rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grading {
    /// The lowest grade of all criteria measured; none where nothing was.
    pub grade: Option<Grade>,
    pub criteria: Vec<Criterion>,
    /// The grade, the criteria that prevent a better one, and what was not measured.
    pub sentence: String,
}

/// One thing a run is graded by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Criterion {
    pub name: String,
    /// The measured share; none where it was not measured.
    pub measured: Option<f64>,
    pub grade: Option<Grade>,
    /// What the next better grade requires.
    pub wanted: Option<String>,
}

pub fn grade(summary: &Summary, targets: &Targets) -> Grading {
    let variation = summary.variation().map(|found| found.by_shape);
    let criteria = vec![
        at_least("data GPU", utilisation(summary, DeviceRole::Data), targets, |t| t.data_gpu),
        at_least("model GPU", utilisation(summary, DeviceRole::Model), targets, |t| t.model_gpu),
        below("variation", variation, targets, |t| t.variation),
    ];
    let grade = criteria.iter().filter_map(|criterion| criterion.grade).min();
    let sentence = sentence(grade, &criteria);
    Grading { grade, criteria, sentence }
}

/// Mean over all devices of a role, each sample counting once.
fn utilisation(summary: &Summary, role: DeviceRole) -> Option<f64> {
    let mut all = Stats::default();
    let devices = summary.devices.iter().filter(|((found, _), _)| *found == role);
    devices.for_each(|(_, sums)| all.merge(&sums.utilisation));
    all.figures().map(|figures| figures.mean)
}

/// Samples are single precision: 90 % may arrive as 89.999998 %.
const ROUNDING: f64 = 1e-6;

type Limit = fn(&Target) -> f64;

fn at_least(name: &str, measured: Option<f64>, targets: &Targets, limit: Limit) -> Criterion {
    criterion(name, measured, targets, |value, target| {
        (value + ROUNDING >= limit(target), format!("at least {}", percent(limit(target))))
    })
}

fn below(name: &str, measured: Option<f64>, targets: &Targets, limit: Limit) -> Criterion {
    criterion(name, measured, targets, |value, target| {
        (value + ROUNDING < limit(target), format!("below {}", percent(limit(target))))
    })
}

fn criterion(
    name: &str,
    measured: Option<f64>,
    targets: &Targets,
    meets: impl Fn(f64, &Target) -> (bool, String),
) -> Criterion {
    let mut found = Criterion { name: name.into(), measured, grade: None, wanted: None };
    let Some(value) = measured else { return found };
    let ladder = [
        (Grade::Excellent, &targets.excellent),
        (Grade::Good, &targets.good),
        (Grade::Minimum, &targets.minimum),
    ];
    for (grade, target) in ladder {
        let (reached, requirement) = meets(value, target);
        if reached {
            found.grade = Some(grade);
            return found;
        }
        found.wanted = Some(requirement);
    }
    found.grade = Some(Grade::Below);
    found
}

fn sentence(grade: Option<Grade>, criteria: &[Criterion]) -> String {
    let missing: Vec<&str> = criteria
        .iter()
        .filter(|criterion| criterion.measured.is_none())
        .map(|criterion| criterion.name.as_str())
        .collect();
    let (alone, unmeasured) = if missing.is_empty() {
        (String::new(), String::new())
    } else {
        let measured = criteria.iter().filter(|criterion| criterion.measured.is_some());
        let names: Vec<&str> = measured.map(|criterion| criterion.name.as_str()).collect();
        (
            format!(" by {} alone", names.join(" and ")),
            format!("; not measured: {}", missing.join(", ")),
        )
    };
    let Some(grade) = grade else { return format!("not graded{unmeasured}") };
    let short: Vec<String> = criteria
        .iter()
        .filter(|criterion| criterion.grade == Some(grade))
        .filter_map(|criterion| {
            let (measured, wanted) = (criterion.measured?, criterion.wanted.as_ref()?);
            Some(format!("{} is {}, wanted {wanted}", criterion.name, percent(measured)))
        })
        .collect();
    let because = if short.is_empty() { String::new() } else { format!(" ({})", short.join("; ")) };
    format!("{}{alone}{because}{unmeasured}", grade.words())
}

impl Grade {
    /// For a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Grade::Below => "below the minimum",
            Grade::Minimum => "minimum",
            Grade::Good => "good",
            Grade::Excellent => "excellent",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Nanos;
    use crate::event::{DeviceSample, Stamped, Step};

    fn run(data: Option<f32>, model: Option<f32>, times: &[u64]) -> Summary {
        let mut summary = Summary::default();
        let mut add = |event| summary.add(&Stamped { at: Nanos(1), event });
        for (role, utilisation) in [(DeviceRole::Data, data), (DeviceRole::Model, model)] {
            let Some(utilisation) = utilisation else { continue };
            let utilisation = Some(utilisation);
            let sample = DeviceSample { utilisation, ..DeviceSample::new("gpu".into(), role) };
            add(sample.into());
        }
        for (index, &millis) in times.iter().enumerate() {
            let step = Step {
                step: index as u64 + 1,
                took: Nanos::millis(millis),
                items: 1,
                ..Step::default()
            };
            add(step.into());
        }
        summary
    }

    #[track_caller]
    fn check(summary: Summary, grade_wanted: Option<Grade>, words: &str) {
        let grading = grade(&summary, &Targets::default());
        assert_eq!(grading.grade, grade_wanted, "{}", grading.sentence);
        assert!(grading.sentence.contains(words), "{}", grading.sentence);
    }

    #[test]
    fn the_lowest_criterion_decides_and_is_named() {
        let even = [100; 9];
        check(run(Some(0.7), Some(0.95), &even), Some(Grade::Excellent), "excellent");
        check(run(Some(0.7), Some(0.85), &even), Some(Grade::Good), "model GPU is 85.0 %");
        check(run(Some(0.45), Some(0.95), &even), Some(Grade::Minimum), "wanted at least 50.0 %");
        check(run(Some(0.7), Some(0.1), &even), Some(Grade::Below), "wanted at least 70.0 %");
        // Variation of 50 and 150 is one half.
        let swing = [100, 50, 150, 50, 150];
        check(run(Some(0.7), Some(0.95), &swing), Some(Grade::Below), "variation is 50.0 %");
    }

    #[test]
    fn the_limits_are_those_promised() {
        check(run(Some(0.6), Some(0.9), &[100; 9]), Some(Grade::Excellent), "");
        check(run(Some(0.5), Some(0.8), &[100; 9]), Some(Grade::Good), "");
        check(run(Some(0.4), Some(0.7), &[100; 9]), Some(Grade::Minimum), "");
        check(run(Some(0.39), Some(0.7), &[100; 9]), Some(Grade::Below), "");
        // 80 and 120: variation exactly 20 %, which is not below 20 %.
        let steps = [100, 80, 120, 80, 120];
        check(run(Some(0.6), Some(0.9), &steps), Some(Grade::Good), "wanted below 20.0 %");
    }

    #[test]
    fn what_was_not_measured_is_named_and_not_guessed() {
        check(run(None, None, &[100; 9]), Some(Grade::Excellent), "not measured: data GPU, model");
        check(run(None, Some(0.75), &[100; 9]), Some(Grade::Minimum), "not measured: data GPU");
        check(run(None, None, &[100]), None, "not graded; not measured: data GPU, model GPU, var");
    }
}
