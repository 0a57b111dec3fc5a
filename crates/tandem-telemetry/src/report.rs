//! The final report: step times, bottleneck and grade of a run.
//!
//! In: a [`Summary`], from a record or from memory. Out: [`Report`], a pure function of it, for
//! people through `Display` ([`crate::report_text`]) and for scripts through serde. Figures
//! that were not measured are absent.

use crate::advice::{Advice, advice};
use crate::clock::Nanos;
use crate::crowd::Crowd;
use crate::event::{
    Data, Decision, DeviceRole, Graphs, Health, Kernels, Name, RunOutcome, Started, Warning,
};
use crate::grade::{Grading, grade};
use crate::pending::Pending;
use crate::ranks::{RankReport, rank_report};
use crate::reader::{ReadNotes, RunRecord};
use crate::rules::Rules;
use crate::stats::Figures;
use crate::summary::{DeviceSums, QueueSums, SkippedRow, Summary, WarmUpSums};
use crate::variation::Variation;
use crate::verdict::{Pace, StageLoad, Verdict, efficiency, stage_loads, verdict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tandem_units::Bytes;

/// The report of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// What ran, and how it ended.
    pub run: RunFacts,
    /// What the run found in its corpus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Data>,
    /// Step times and throughput; none where no step was finished.
    pub steps: Option<StepReport>,
    /// The ranks of a data-parallel run, side by side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<RankReport>,
    /// Stages in path order, the model last.
    pub stages: Vec<StageLoad>,
    /// Slowest stage over step time.
    pub efficiency: Option<f64>,
    /// Queues, by the stage they feed.
    pub queues: Vec<QueueReport>,
    /// Sampled devices.
    pub devices: Vec<DeviceReport>,
    /// Other programs on the machine, where they explain the figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crowd: Option<Crowd>,
    /// The bottleneck.
    pub verdict: Verdict,
    /// Against the targets.
    pub grading: Grading,
    /// What to change, the largest gain first.
    #[serde(default)]
    pub advice: Vec<Advice>,
    /// Shapes compiled before step 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUpSums>,
    /// Kernels tuned and compiled before step 1, and those from the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernels: Option<Kernels>,
    /// Steps as CUDA graphs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graphs: Option<Graphs>,
    /// The controlled start.
    pub start: Option<Started>,
    pub adaptation: Adaptation,
    pub skips: SkipReport,
    /// Optimizer steps all of whose batches were skipped.
    #[serde(default)]
    pub empty_steps: u64,
    pub checkpoints: u64,
    /// The step of the last one.
    pub last_checkpoint: Option<u64>,
    /// How many warnings there were.
    pub warning_count: u64,
    /// The first of them.
    pub warnings: Vec<Warning>,
    /// What the record itself lost.
    pub record: RecordReport,
}

/// What ran, and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunFacts {
    /// Program and version.
    pub program: String,
    /// Wall time at the start, milliseconds since 1970 UTC.
    pub started_unix_ms: u64,
    /// From the start to the last event.
    pub lasted: Nanos,
    /// How it ended; `None` where the record has no final event, as after a kill.
    pub outcome: Option<RunOutcome>,
    /// The reason, if any.
    pub why: Option<String>,
}

/// Step times and throughput.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepReport {
    /// All steps, seconds.
    pub all: Figures,
    /// Without the first; none where that was the only one.
    pub steady: Option<Figures>,
    /// The first step, which compiles kernels.
    pub first: Nanos,
    /// Number of the last step.
    pub last: u64,
    /// Steps per second over all steps.
    pub steps_per_second: f64,
    pub samples_per_second: f64,
    /// Real mel frames per second.
    pub frames_per_second: f64,
    /// Share of the time the model waited, the first step left out.
    pub stall: f64,
    /// Distinct padded shapes; none where shapes were not recorded.
    pub shapes: Option<u64>,
    /// How much steps of the same shape differ; none where that cannot be judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variation: Option<Variation>,
    /// Losses of the last step; a missing value had not arrived.
    pub losses: BTreeMap<Name, Pending<f32>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueReport {
    pub queue: Name,
    /// Mean bytes in it.
    pub mean: Bytes,
    /// Most bytes seen in it.
    pub peak: Bytes,
    /// The most it may hold.
    pub limit: Bytes,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceReport {
    pub device: Name,
    /// What it was used for.
    pub role: DeviceRole,
    pub samples: u64,
    /// Share of time it was busy, 0 to 1.
    pub utilisation: Option<Figures>,
    /// Share of active multiprocessors; few devices report it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub activity: Option<Figures>,
    /// Memory in use, bytes.
    pub memory: Option<Figures>,
    pub memory_total: Option<Bytes>,
    /// Degrees Celsius.
    pub temperature: Option<Figures>,
    /// Watts.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub power: Option<Figures>,
}

/// What the adaptive controller did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Adaptation {
    pub kept: u64,
    #[serde(alias = "taken_back")]
    pub reverted: u64,
    /// The first ones, each with its measured effect.
    pub decisions: Vec<Decision>,
    /// Its final values, as flags.
    pub flags: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SkipReport {
    pub count: u64,
    /// How many at each stage.
    pub by_stage: BTreeMap<Name, u64>,
    /// Each skipped row once, at most [`crate::summary::SkipSums::ROWS`].
    #[serde(default)]
    pub rows: Vec<SkippedRow>,
    /// Skips of rows that are not in `rows`.
    #[serde(default)]
    pub others: u64,
}

/// What the record itself lost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordReport {
    /// While it was written.
    pub health: Health,
    /// While it was read; none where the report comes from memory.
    pub notes: Option<ReadNotes>,
}

impl Report {
    /// From a whole record.
    pub fn of(record: &RunRecord, rules: &Rules) -> Report {
        Report::from_summary(&Summary::from(record), Some(record.notes.clone()), rules)
    }

    /// From sums; `notes` where they were read from a file.
    pub fn from_summary(summary: &Summary, notes: Option<ReadNotes>, rules: &Rules) -> Report {
        let skips = summary.all_skips();
        Report {
            run: run_facts(summary),
            data: summary.data.clone(),
            steps: steps(summary),
            ranks: rank_report(summary),
            stages: stage_loads(summary),
            efficiency: efficiency(summary),
            queues: summary.queues.iter().filter_map(|(name, sums)| queue(name, sums)).collect(),
            devices: summary
                .devices
                .iter()
                .map(|((role, name), sums)| device(*role, name, sums))
                .collect(),
            crowd: Crowd::of(summary),
            verdict: verdict(summary, rules),
            grading: grade(summary, &rules.targets),
            advice: advice(summary, rules),
            warm_up: summary.warm_up.clone(),
            kernels: summary.kernels.clone(),
            graphs: summary.graphs.clone(),
            start: summary.started.clone(),
            adaptation: adaptation(summary),
            skips: SkipReport {
                count: skips.count,
                by_stage: skips.by_stage,
                rows: skips.rows,
                others: skips.others,
            },
            empty_steps: summary.empty_steps,
            checkpoints: summary.checkpoints.count,
            last_checkpoint: summary.checkpoints.last_step,
            warning_count: summary.all_warning_count(),
            warnings: summary.all_warnings(),
            record: RecordReport { health: summary.health.clone(), notes },
        }
    }
}

fn run_facts(summary: &Summary) -> RunFacts {
    let header = summary.header.as_ref();
    let ending = summary.ending.as_ref();
    RunFacts {
        program: header.map(|h| format!("{} {}", h.program, h.version)).unwrap_or_default(),
        started_unix_ms: header.map_or(0, |h| h.started_unix_ms),
        lasted: summary.last_at,
        outcome: ending.map(|ending| ending.outcome),
        why: ending.and_then(|ending| ending.why.clone()),
    }
}

fn steps(summary: &Summary) -> Option<StepReport> {
    let steps = &summary.steps;
    let whole = steps.took.seconds().0;
    let per_second = |count: f64| if whole > 0.0 { count / whole } else { 0.0 };
    let all = steps.all.figures()?;
    Some(StepReport {
        all,
        steady: steps.steady.figures(),
        first: steps.first?,
        last: steps.last,
        steps_per_second: per_second(all.count as f64),
        samples_per_second: per_second(steps.items as f64),
        frames_per_second: per_second(steps.frames as f64),
        stall: Pace::of(steps)?.stall,
        shapes: (!steps.shapes.is_empty()).then_some(steps.shapes.len() as u64),
        variation: summary.variation(),
        losses: steps.losses.iter().map(|(name, value)| (name.clone(), (*value).into())).collect(),
    })
}

fn queue(name: &Name, sums: &QueueSums) -> Option<QueueReport> {
    let bytes = sums.bytes.figures()?;
    Some(QueueReport {
        queue: name.clone(),
        mean: Bytes(bytes.mean as u64),
        peak: Bytes(bytes.max as u64),
        limit: sums.limit,
    })
}

fn device(role: DeviceRole, name: &Name, sums: &DeviceSums) -> DeviceReport {
    DeviceReport {
        device: name.clone(),
        role,
        samples: sums.samples,
        utilisation: sums.utilisation.figures(),
        activity: sums.activity.figures(),
        memory: sums.memory.figures(),
        memory_total: sums.memory_total,
        temperature: sums.temperature.figures(),
        power: sums.power.figures(),
    }
}

fn adaptation(summary: &Summary) -> Adaptation {
    let [_, kept, reverted] = summary.decision_counts;
    Adaptation {
        kept,
        reverted,
        decisions: summary.decisions.clone(),
        flags: summary.ending.as_ref().map(|ending| ending.flags.clone()).unwrap_or_default(),
    }
}
