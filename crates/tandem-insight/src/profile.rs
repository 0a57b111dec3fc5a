//! A profile: several runs of one setting in, one result out.
//!
//! In: [`ProfileRuns`], the unmodified trainer, with features cached, with batches from
//! memory (model alone) and without a model (data alone). Out: [`ProfileAnswer`], figures and
//! sentences for a table, a page or a script. Causes follow from measured differences between
//! runs. Next: the program prints it; `plan` predicts from it.

mod runs; // the runs that are compared

pub use runs::{ProfileRuns, RunKind, Sharing, Subject};

use crate::batch_advice::BatchAdvice;
use crate::measured::{DeviceFigures, Measured, Phase};
pub use crate::profile_rules::{RuleKind, RuleResult};
use crate::profile_verdict::profile_verdict;
pub use crate::recommend::{Change, Recommendation};
use serde::{Deserialize, Serialize};
use tandem_telemetry::crowd::Crowd;
pub use tandem_telemetry::rules::ProfileRules;
use tandem_telemetry::verdict::{Cause, Verdict};
use tandem_telemetry::{Figures, Stats, Variation};
use tandem_units::Bytes;

/// One phase of the run as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseFigures {
    /// `load`, `preprocess`, `align`, `transfer`, `train` or `gaps`.
    pub phase: String,
    /// Workers that share it.
    pub workers: usize,
    /// Seconds of a worker for one batch; of `gaps`, in which the model had no batch.
    pub figures: Figures,
    /// What it needs of every step, its workers together, hidden or not; 1 sets the pace.
    pub work: f64,
    /// Share of the time that the model's thread spent on it or waiting for it: adds up to 1.
    pub share: f64,
}

/// How long one of the runs took for a batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunFigures {
    pub run: RunKind,
    /// Seconds of a step.
    pub step: Figures,
    pub samples_per_second: f64,
    /// How much its steps differ beyond their shapes.
    #[serde(default)]
    pub variation: Option<Variation>,
    /// Share of the time its consumer waited.
    pub stall: f64,
    /// Its time against the run as it is: 0.9 is a tenth faster.
    pub ratio: f64,
}

/// What profiling itself cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overhead {
    /// Events of the run as it is.
    pub events: u64,
    /// Seconds that sending one takes, measured here.
    pub per_event: f64,
    /// Share of the run as it is that this makes.
    pub share: f64,
    /// Seconds that the whole profile took.
    pub took: f64,
}

/// Padded shapes of an epoch with a batch size: what memory and time follow from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BatchShapes {
    /// Most utterances of a batch.
    pub batch_size: usize,
    /// Rows, symbols, frames; and how many batches have that shape.
    pub shapes: Vec<([u32; 3], u32)>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProfileAnswer {
    /// Always [`ProfileAnswer::FORMAT`].
    pub format: String,
    pub subject: Subject,
    /// Each run in a line.
    pub runs: Vec<RunFigures>,
    /// Phases of the run as it is, in order, `gaps` last.
    pub phases: Vec<PhaseFigures>,
    /// Devices during the run as it is.
    pub devices: Vec<DeviceFigures>,
    /// The promised thresholds, and whether they are met.
    pub rules: Vec<RuleResult>,
    /// Other programs on the machine, where they explain the figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crowd: Option<Crowd>,
    /// The bottleneck.
    pub verdict: Verdict,
    /// What to change, the largest gain first.
    pub recommendations: Vec<Recommendation>,
    /// Batch size and memory, from short runs of other sizes.
    #[serde(default)]
    pub batch: BatchAdvice,
    /// Contradictory measurements: other programs used the machine meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
    /// What profiling itself cost.
    pub overhead: Option<Overhead>,
    /// The corpus by batch size.
    pub shapes: Vec<BatchShapes>,
    /// Every batch of every run: the input of predictions.
    pub measured: ProfileRuns,
}

impl ProfileAnswer {
    /// The word in `format`.
    pub const FORMAT: &'static str = "tandem-profile-1";

    pub fn judge(
        subject: Subject,
        runs: ProfileRuns,
        shapes: Vec<BatchShapes>,
        rules: &ProfileRules,
    ) -> ProfileAnswer {
        let needs = Needs::of(&runs, subject.setting.workers);
        let verdict = profile_verdict(&runs, &needs, &subject, rules);
        let phases = phases(&runs.as_is, &needs, &subject, &verdict);
        let recommendations = crate::recommend::recommend(&subject, &runs, rules);
        ProfileAnswer {
            format: Self::FORMAT.into(),
            runs: run_figures(&runs),
            devices: runs.as_is.devices.clone(),
            rules: RuleResult::all(rules, &phases, &runs.as_is),
            phases,
            verdict,
            recommendations,
            batch: BatchAdvice::of(&subject, &runs.as_is, &[]),
            crowd: runs.as_is.crowd(),
            doubts: runs.doubts(),
            overhead: None,
            shapes,
            subject,
            measured: runs,
        }
    }
}

/// What each crew needs for one batch, all its workers together, seconds.
#[derive(Clone, Debug)]
pub(crate) struct Needs {
    pub(crate) crews: [(Phase, f64); 4],
    /// The same for each phase: load and preprocess share their workers.
    phases: [(Phase, f64); 5],
    /// Time from one batch to the next.
    pub(crate) step: f64,
}

impl Needs {
    /// From what is usual, in the run as it is or in the one that had the stage to itself,
    /// whichever is less: interference of other programs must affect both to count.
    pub(crate) fn of(runs: &ProfileRuns, workers: usize) -> Needs {
        let least = |phase: Phase| {
            let alone = match phase {
                Phase::Train => &runs.model_alone,
                _ => &runs.data_alone,
            };
            runs.as_is.usual(phase).min(alone.usual(phase))
        };
        let (load, preprocess) = (least(Phase::Load), least(Phase::Preprocess));
        // The two share their workers; the crew has the name of the larger one.
        let name = if preprocess > load { Phase::Preprocess } else { Phase::Load };
        let share = workers.max(1) as f64;
        let phases = Phase::ALL.map(|phase| match phase.shares_workers() {
            true => (phase, least(phase) / share),
            false => (phase, least(phase)),
        });
        let crews = [
            (name, (load + preprocess) / share),
            (Phase::Align, least(Phase::Align)),
            (Phase::Transfer, least(Phase::Transfer)),
            (Phase::Train, least(Phase::Train)),
        ];
        Needs { crews, phases, step: runs.as_is.usual_step() }
    }

    pub(crate) fn of_phase(&self, phase: Phase) -> f64 {
        self.crews.iter().find(|crew| crew.0 == phase).map_or(0.0, |crew| crew.1)
    }

    /// Crews before the model, the slowest first.
    pub(crate) fn feed(&self) -> impl Iterator<Item = (Phase, f64)> {
        let mut sorted = self.crews;
        sorted.sort_by(|left, right| right.1.total_cmp(&left.1));
        sorted.into_iter().filter(|crew| crew.0 != Phase::Train)
    }

    /// The slowest crew and the next one.
    pub(crate) fn top_two(&self) -> [(Phase, f64); 2] {
        let mut sorted = self.crews;
        sorted.sort_by(|left, right| right.1.total_cmp(&left.1));
        [sorted[0], sorted[1]]
    }
}

fn run_figures(runs: &ProfileRuns) -> Vec<RunFigures> {
    let base = runs.as_is.per_batch();
    let one = |(kind, run): (RunKind, &Measured)| {
        let items: u64 = run.batches.iter().map(|batch| u64::from(batch.items)).sum();
        let time = run.step.mean * run.step.count as f64;
        let per_batch = match kind {
            RunKind::ModelAlone => runs.model_alone_step(),
            _ => run.per_batch(),
        };
        RunFigures {
            run: kind,
            step: run.step,
            samples_per_second: items as f64 / time.max(1e-9),
            variation: run.variation.clone(),
            stall: run.stall(),
            ratio: per_batch / base.max(1e-12),
        }
    };
    runs.list().into_iter().map(one).collect()
}

/// The table. Waiting is attributed to the stage that the verdict names; otherwise it is a gap.
fn phases(
    run: &Measured,
    needs: &Needs,
    subject: &Subject,
    verdict: &Verdict,
) -> Vec<PhaseFigures> {
    let stall = run.stall();
    let named = verdict.stage.as_ref().filter(|_| verdict.cause == Cause::Feed);
    let bottleneck = named.and_then(|name| Phase::of(name));
    let shared = Phase::shares_workers;
    let crew = run.mean(Phase::Load) + run.mean(Phase::Preprocess);
    let mut found = Vec::new();
    for phase in Phase::ALL {
        let Some(figures) = run.phase(phase) else { continue };
        let workers = if shared(phase) { subject.setting.workers.max(1) } else { 1 };
        let waited_for = match bottleneck {
            Some(named) if shared(named) && shared(phase) => stall * figures.mean / crew.max(1e-12),
            Some(named) if named == phase => stall,
            _ => 0.0,
        };
        let share = if phase == Phase::Train { 1.0 - stall } else { waited_for };
        // What the verdict compares: the usual time, where the phase was disturbed less.
        let need = needs.phases.iter().find(|need| need.0 == phase).map_or(0.0, |need| need.1);
        let work = need / needs.step.max(1e-12);
        let phase = phase.name().to_string();
        found.push(PhaseFigures { phase, workers, figures, work, share });
    }
    let gaps: Stats = run.batches.iter().map(|batch| batch.waited).collect();
    if let Some(figures) = gaps.figures() {
        let share = if bottleneck.is_some() { 0.0 } else { stall };
        let phase = "gaps".to_string();
        found.push(PhaseFigures { phase, workers: 1, figures, work: stall, share });
    }
    found
}

/// Peak memory on a device of that role, where known.
pub fn peak_memory(run: &Measured, role: tandem_telemetry::event::DeviceRole) -> Option<Bytes> {
    let device = run.devices.iter().find(|device| device.role == role)?;
    device.memory.map(|figures| Bytes(figures.max as u64))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::measured::DeviceFigures;
    use crate::measured::tests::{equal, measured};
    use crate::predict::Setting;
    use tandem_telemetry::Stats;
    use tandem_telemetry::event::DeviceRole;

    pub(crate) fn subject() -> Subject {
        Subject {
            corpus: "demo".into(),
            model_size: "tiny".into(),
            parameters: 2_000_000,
            batch_size: 2,
            grad_accum: 1,
            setting: Setting { workers: 1, depth: 3 },
            cached: false,
            sharing: Sharing::Cpu,
            data_device: "cpu".into(),
            model_device: "cpu".into(),
            cores: 4,
            warmup: 2,
            slowed: Vec::new(),
        }
    }

    /// Load, preprocess, align, transfer and train in milliseconds; the rest follows from the
    /// slowest.
    pub(crate) fn runs([load, pre, align, transfer, train]: [f64; 5]) -> ProfileRuns {
        let data = (load + pre).max(align).max(transfer);
        let step = data.max(train);
        let of = |costs: [f64; 6]| measured(&equal(30, costs));
        ProfileRuns {
            as_is: of([load, pre, align, transfer, train, step - train]),
            cached: Some(of([1.0, 0.1, align, transfer, train, 0.0])),
            model_alone: of([0.0, 0.0, 0.0, 0.0, train, 0.0]),
            data_alone: of([load, pre, align, transfer, 0.1, data - 0.1]),
        }
    }

    fn answer(costs: [f64; 5]) -> ProfileAnswer {
        ProfileAnswer::judge(subject(), runs(costs), Vec::new(), &ProfileRules::default())
    }

    #[track_caller]
    fn check(costs: [f64; 5], stage: Option<&str>) {
        let found = answer(costs);
        assert_eq!(found.verdict.stage.as_deref(), stage, "{}", found.verdict.sentence);
        let whole: f64 = found.phases.iter().map(|phase| phase.share).sum();
        assert!((whole - 1.0).abs() < 1e-6, "shares add up to {whole}");
    }

    #[test]
    fn the_slow_stage_is_named_and_none_of_a_balanced_run() {
        check([90.0, 5.0, 10.0, 2.0, 40.0], Some("load"));
        check([5.0, 90.0, 10.0, 2.0, 40.0], Some("preprocess"));
        check([5.0, 5.0, 90.0, 2.0, 40.0], Some("align"));
        check([5.0, 5.0, 10.0, 90.0, 40.0], Some("transfer"));
        check([5.0, 5.0, 10.0, 2.0, 90.0], Some("train"));
        check([30.0, 10.0, 10.0, 2.0, 41.0], None);
        check([3.0, 1.0, 10.0, 39.0, 40.0], None);
        // The two slowest feed a model that waits: that is not balance.
        check([88.0, 2.0, 10.0, 85.0, 40.0], Some("load"));
    }

    #[test]
    fn varying_times_are_the_cause_only_where_no_stage_is() {
        let named = |stage: &'static str| Some(stage.into());
        let with_waits = |costs: [f64; 5], waited: f64| {
            let mut odd = runs(costs);
            let batches = odd.as_is.batches.iter_mut();
            batches.for_each(|batch| batch.waited = waited / 1e3);
            let judged = ProfileAnswer::judge(subject(), odd, Vec::new(), &ProfileRules::default());
            (judged.verdict.cause, judged.verdict.stage)
        };
        assert_eq!(
            with_waits([5.0, 5.0, 10.0, 2.0, 40.0], 20.0),
            (Cause::Variation, named("load"))
        );
        assert_eq!(
            with_waits([5.0, 5.0, 10.0, 39.0, 40.0], 20.0),
            (Cause::Variation, named("transfer"))
        );
        let slow = with_waits([5.0, 5.0, 10.0, 90.0, 40.0], 150.0);
        assert_eq!(slow, (Cause::Feed, named("transfer")));
    }

    #[test]
    fn contradictory_measurements_are_reported() {
        let mut odd = runs([5.0, 5.0, 10.0, 2.0, 40.0]);
        assert!(odd.doubts().is_empty());
        odd.model_alone = measured(&equal(30, [0.0, 0.0, 0.0, 0.0, 60.0, 0.0]));
        assert!(odd.doubts()[0].contains("60.00 ms alone and 40"), "{:?}", odd.doubts());
    }

    #[test]
    fn a_busy_machine_is_reported() {
        let said = |process: f64, machine: f64| {
            let mut busy = runs([5.0, 5.0, 10.0, 2.0, 40.0]);
            busy.as_is.devices = [("process", process), ("machine", machine)]
                .map(|(device, share)| DeviceFigures {
                    device: device.into(),
                    role: DeviceRole::Host,
                    utilisation: Stats::from_iter([share, share]).figures(),
                    memory: None,
                    memory_total: None,
                })
                .into();
            ProfileAnswer::judge(subject(), busy, Vec::new(), &ProfileRules::default()).crowd
        };
        assert_eq!(said(0.5, 0.98), Some(Crowd { machine: 0.98, run: 0.5 }));
        assert_eq!([said(0.97, 0.98), said(0.3, 0.35)], [None, None]);
    }

    #[test]
    fn a_profile_is_read_back_from_json() {
        let found = answer([90.0, 5.0, 10.0, 2.0, 40.0]);
        let text = serde_json::to_string(&found).unwrap();
        assert_eq!(serde_json::from_str::<ProfileAnswer>(&text).unwrap(), found);
    }

    #[test]
    fn rules_and_shares_follow_what_the_model_waits_for() {
        let found = answer([90.0, 10.0, 10.0, 2.0, 40.0]);
        let share = |name: &str| found.phases.iter().find(|p| p.phase == name).unwrap().share;
        assert!((share("load") - 0.54).abs() < 0.01 && (share("train") - 0.4).abs() < 0.01);
        let broken = |found: &ProfileAnswer| -> Vec<String> {
            let broken = found.rules.iter().filter(|rule| rule.broken == Some(true));
            broken.map(|rule| rule.name.clone()).collect()
        };
        assert_eq!(broken(&found), ["load", "training"]);
        assert_eq!(broken(&answer([5.0, 5.0, 10.0, 90.0, 40.0])), ["transfer", "training"]);
        assert!(broken(&answer([5.0, 5.0, 10.0, 2.0, 90.0])).is_empty());
    }
}
