//! Which mode, workers, depth and batch to use, predicted from what a profile measured.
//!
//! In: [`ProfileAnswer`]s and a [`PlanQuestion`]. Out: [`PlanAnswer`]: a row for everything that
//! can be predicted, ranked; what cannot, with the measurement that is missing and the command
//! that makes it; and whether a second GPU is worthwhile. Runs nothing.

use crate::batch_fit::items_of_batch;
use crate::measured::Measured;
pub use crate::plan_error::{Missing, PlanError};
use crate::predict::{Item, Predicted, Setting, host_floor, items, joined, predict};
pub use crate::presets::{PRESETS, Preset};
use crate::profile::{ProfileAnswer, Sharing};
use crate::reduce_cost::ReduceCost;
use serde::{Deserialize, Serialize};
use tandem_telemetry::event::DeviceRole;
use tandem_telemetry::rules::WORTH_A_SECOND_GPU;
use tandem_units::{Bytes, Seconds, percent};

/// How devices are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlanMode {
    /// Data work and model on one device.
    Single,
    /// A device each.
    Dual,
    /// Two ranks, each with a device, the whole model and half of the batches.
    DataParallel,
}

impl PlanMode {
    pub const ALL: [PlanMode; 3] = [PlanMode::Single, PlanMode::Dual, PlanMode::DataParallel];

    /// For tables.
    pub fn name(self) -> &'static str {
        match self {
            PlanMode::Single => "single",
            PlanMode::Dual => "dual",
            PlanMode::DataParallel => "data-parallel",
        }
    }
}

/// What to predict.
#[derive(Clone, Debug)]
pub struct PlanQuestion {
    /// Modes; a mode that the user named and that cannot be predicted is an error.
    pub modes: Vec<PlanMode>,
    /// Whether the user named the modes.
    pub named: bool,
    /// Workers; none: those of the profile, and its double.
    pub workers: Vec<usize>,
    /// Depths; none: that of the profile, and its double.
    pub depths: Vec<usize>,
    /// Batch sizes; none: that of the profile.
    pub batches: Vec<usize>,
    /// What sums of gradients over two ranks cost; `None`: not measured.
    pub reduce: Option<ReduceCost>,
    /// GPUs of the machine that the plan is for; `None`: not known.
    pub gpus: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanRow {
    /// How devices are used.
    pub mode: PlanMode,
    /// Most utterances of a batch, on each device.
    pub batch_size: usize,
    /// Workers and depth.
    #[serde(flatten)]
    pub setting: Setting,
    pub predicted: Predicted,
    pub samples_per_second: f64,
    /// Against the profiled setting, predicted in the same way: 0.1 is a tenth more utterances a second.
    pub gain: f64,
    /// What limits the step: a stage, or the CPU cores.
    #[serde(default)]
    pub limit: String,
    /// Memory of the model's device; `None` where the device does not report it.
    pub memory: Option<Bytes>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanAnswer {
    /// Utterances a second of the profiled run, measured.
    pub measured: f64,
    /// The profiled run predicted from its own batches, against what it measured.
    pub own_error: f64,
    /// The most utterances a second first.
    pub rows: Vec<PlanRow>,
    pub choice: usize,
    /// Which mode to use and why.
    pub advice: String,
    /// What cannot be predicted, and what would have to be measured.
    pub missing: Vec<Missing>,
    /// Each mode in a line: its best row, or what is missing.
    #[serde(default)]
    pub modes: Vec<ModeLine>,
    pub presets: Vec<Preset>,
    /// The one for the model's device, where its memory is known.
    pub preset: Option<Preset>,
}

/// A mode at a glance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModeLine {
    pub mode: PlanMode,
    /// What to type for it.
    pub flags: String,
    /// Place of its best row; none where it cannot be predicted.
    pub best: Option<usize>,
    /// Whether its times were measured in a run of that mode, or joined from separate runs.
    pub measured: bool,
    /// What is missing to predict it.
    pub missing: Option<Missing>,
}

impl PlanMode {
    /// The flags that choose this mode.
    pub fn flags(self) -> &'static str {
        match self {
            PlanMode::Single => "(none, or --backend)",
            PlanMode::Dual => "--data-gpu 0 --model-gpu 1",
            PlanMode::DataParallel => "mpirun -np 2",
        }
    }
}

pub fn plan(profiles: &[ProfileAnswer], question: &PlanQuestion) -> Result<PlanAnswer, PlanError> {
    let Some(base) = profiles.first() else { return Err(PlanError::NoProfile) };
    let usual = base.measured.as_is.usual_step();
    let measured = utterances(base, base.subject.batch_size) / usual.max(1e-12);
    let own = own_row(base, question)?;
    let or_usual = |list: &[usize], here: usize, more: Option<usize>| match list {
        [] => std::iter::once(here).chain(more).collect(),
        list => list.to_vec(),
    };
    let Setting { workers: here, depth } = base.subject.setting;
    // More workers than cores only take turns.
    let more = Some((2 * here).min(base.subject.cores)).filter(|more| *more > here);
    let workers: Vec<usize> = or_usual(&question.workers, here, more);
    let depths = or_usual(&question.depths, depth, Some(2 * depth));
    let batches = or_usual(&question.batches, base.subject.batch_size, None);
    let (mut rows, mut missing) = (Vec::new(), Vec::new());
    let mut lacking_of: Vec<(PlanMode, Missing)> = Vec::new();
    for &mode in &question.modes {
        for &batch_size in &batches {
            let costs = match costs(profiles, mode, batch_size, question) {
                Ok(costs) => costs,
                Err(lacking) if question.named || !question.batches.is_empty() => {
                    return Err(PlanError::NotMeasured(lacking));
                }
                Err(lacking) => {
                    lacking_of.push((mode, lacking.clone()));
                    missing.push(lacking);
                    continue;
                }
            };
            for &workers in &workers {
                for &depth in &depths {
                    rows.push(row(&costs, Setting { workers, depth }, own.samples_per_second));
                }
            }
        }
    }
    rows.sort_by(|left, right| right.samples_per_second.total_cmp(&left.samples_per_second));
    if rows.is_empty() {
        let lacking = missing.into_iter().next();
        return Err(lacking.map_or(PlanError::NoProfile, PlanError::NotMeasured));
    }
    let (choice, advice) = choose(&rows, base, question.gpus);
    let modes = question.modes.iter().map(|&mode| {
        let lacking = lacking_of.iter().find(|(of, _)| *of == mode);
        let (flags, missing) = (mode.flags().into(), lacking.map(|(_, missing)| missing.clone()));
        let best = best_of(&rows, mode);
        ModeLine { mode, flags, best, measured: is_measured(profiles, mode), missing }
    });
    let modes = modes.collect();
    let card = base.devices.iter().find(|device| device.role == DeviceRole::Model);
    Ok(PlanAnswer {
        measured,
        own_error: own.predicted.step / usual.max(1e-12) - 1.0,
        choice,
        advice,
        rows,
        missing,
        modes,
        presets: PRESETS.to_vec(),
        preset: card.and_then(|card| card.memory_total).and_then(Preset::for_card),
    })
}

/// Whether a profile ran in this mode; otherwise its times are joined from separate runs.
fn is_measured(profiles: &[ProfileAnswer], mode: PlanMode) -> bool {
    profiles.iter().any(|profile| match mode {
        PlanMode::Single => profile.subject.sharing != Sharing::TwoGpus,
        PlanMode::Dual => profile.subject.sharing == Sharing::TwoGpus,
        PlanMode::DataParallel => false,
    })
}

/// The profiled setting, predicted as every other: what gains are measured against.
fn own_row(base: &ProfileAnswer, question: &PlanQuestion) -> Result<PlanRow, PlanError> {
    let mode = match base.subject.sharing {
        Sharing::TwoGpus => PlanMode::Dual,
        Sharing::Cpu | Sharing::OneGpu => PlanMode::Single,
    };
    let costs = costs(std::slice::from_ref(base), mode, base.subject.batch_size, question)
        .map_err(PlanError::NotMeasured)?;
    Ok(row(&costs, base.subject.setting, f64::NAN))
}

/// What a mode's batches cost, and how many utterances a step has.
struct ModeCosts {
    mode: PlanMode,
    batch_size: usize,
    items: Vec<Item>,
    floor: f64,
    utterances: f64,
    memory: Option<Bytes>,
    /// Processes that train together.
    ranks: usize,
    cores: usize,
}

fn row(costs: &ModeCosts, setting: Setting, own: f64) -> PlanRow {
    // Every rank has its own workers; more of them than cores share the cores.
    let crowd = (costs.ranks * setting.workers) as f64 / costs.cores.max(1) as f64;
    let crowd = if costs.ranks > 1 { crowd.max(1.0) } else { 1.0 };
    let items: Vec<Item> =
        costs.items.iter().map(|item| Item { assemble: crowd * item.assemble, ..*item }).collect();
    let predicted = predict(&items, setting, costs.floor);
    let samples_per_second = costs.utterances / predicted.step.max(1e-12);
    PlanRow {
        mode: costs.mode,
        batch_size: costs.batch_size,
        setting,
        predicted,
        samples_per_second,
        gain: samples_per_second / own.max(1e-12) - 1.0,
        limit: limit(&items, setting, costs.floor).into(),
        memory: costs.memory,
    }
}

/// What needs most of a step on average.
fn limit(items: &[Item], setting: Setting, floor: f64) -> &'static str {
    let count = items.len().max(1) as f64;
    let mean = |cost: fn(&Item) -> f64| items.iter().map(cost).sum::<f64>() / count;
    let needs = [
        ("the model", mean(|item| item.train)),
        ("loading", mean(|item| item.assemble) / setting.workers.max(1) as f64),
        ("alignment", mean(|item| item.align)),
        ("the copy", mean(|item| item.transfer)),
        ("the CPU cores", floor),
    ];
    // The first of equal needs: the model.
    let most = needs.iter().map(|need| need.1).fold(0.0, f64::max);
    needs.into_iter().find(|need| need.1 >= most).map_or("the model", |need| need.0)
}

fn costs(
    profiles: &[ProfileAnswer],
    mode: PlanMode,
    batch_size: usize,
    question: &PlanQuestion,
) -> Result<ModeCosts, Missing> {
    let fits = |profile: &&ProfileAnswer| match (mode, profile.subject.sharing) {
        (PlanMode::Single, sharing) => sharing != Sharing::TwoGpus,
        (PlanMode::Dual | PlanMode::DataParallel, _) => true,
    };
    // Prefer a profile with the requested batch size, then one with the requested sharing.
    let rank = |profile: &&ProfileAnswer| {
        let whole = mode == PlanMode::Dual && profile.subject.sharing == Sharing::TwoGpus;
        (profile.subject.batch_size == batch_size, whole)
    };
    let Some(profile) = profiles.iter().filter(fits).max_by_key(rank) else {
        return Err(Missing::single());
    };
    let runs = &profile.measured;
    let whole = match (mode, profile.subject.sharing) {
        (PlanMode::Single, _) | (PlanMode::Dual, Sharing::TwoGpus) => true,
        (PlanMode::Dual | PlanMode::DataParallel, _) => false,
    };
    if let (false, Some(doubt)) = (whole, runs.doubts().first()) {
        return Err(Missing::doubted(mode.name(), doubt));
    }
    let (mut items, floor) = match whole {
        true => (items(&runs.as_is), host_floor(&runs.as_is)),
        false => (joined(&runs.data_alone, &runs.model_alone), None),
    };
    if profile.subject.batch_size != batch_size {
        let from = if whole { &runs.as_is } else { &runs.data_alone };
        items = items_of_batch(profile, from, &items, batch_size)?;
    }
    let scale = mean_train(&items) / mean_train(&joined_or(runs, whole)).max(1e-12);
    let mut utterances = utterances(profile, batch_size);
    if mode == PlanMode::DataParallel {
        let Some(reduce) = &question.reduce else { return Err(Missing::reduce()) };
        items = of_two_ranks(&items, reduce.of_model(profile.subject.parameters));
        utterances *= 2.0;
    }
    let ranks = if mode == PlanMode::DataParallel { 2 } else { 1 };
    let floor = floor.unwrap_or(0.0) * scale;
    let memory = memory(profile, batch_size);
    let cores = profile.subject.cores;
    Ok(ModeCosts { mode, batch_size, items, floor, utterances, memory, ranks, cores })
}

/// Steps of two ranks: consecutive batches are trained at the same time, each on its own device, and the
/// step takes as long as the slower one, plus the sum of the gradients.
pub fn of_two_ranks(items: &[Item], reduce: f64) -> Vec<Item> {
    // A run with one batch trains it on both.
    let second = |pair: &[Item]| *pair.get(1).unwrap_or(&pair[0]);
    let step = |pair: &[Item]| {
        let (one, other) = (pair[0], second(pair));
        Item {
            assemble: one.assemble.max(other.assemble),
            align: one.align.max(other.align),
            transfer: one.transfer.max(other.transfer),
            train: one.train.max(other.train) + reduce,
        }
    };
    items.chunks(2).map(step).collect()
}

fn joined_or(runs: &crate::profile::ProfileRuns, whole: bool) -> Vec<Item> {
    match whole {
        true => items(&runs.as_is),
        false => joined(&runs.data_alone, &runs.model_alone),
    }
}

fn mean_train(items: &[Item]) -> f64 {
    items.iter().map(|item| item.train).sum::<f64>() / items.len().max(1) as f64
}

/// Mean utterances of a batch: counted in the run, or by the corpus where the size is another.
fn utterances(profile: &ProfileAnswer, batch_size: usize) -> f64 {
    let run: &Measured = &profile.measured.as_is;
    if profile.subject.batch_size == batch_size {
        let all: u64 = run.batches.iter().map(|batch| u64::from(batch.items)).sum();
        return all as f64 / run.batches.len().max(1) as f64;
    }
    let shapes = profile.shapes.iter().find(|shapes| shapes.batch_size == batch_size);
    let (rows, batches) = shapes.map_or((batch_size as f64, 1.0), |shapes| {
        let rows = shapes.shapes.iter().map(|(s, n)| f64::from(s[0]) * f64::from(*n)).sum();
        (rows, shapes.shapes.iter().map(|(_, n)| f64::from(*n)).sum::<f64>())
    });
    rows / batches.max(1.0)
}

/// Weights, gradients, two moments and the running mean, four bytes each.
const BYTES_PER_PARAMETER: f64 = 20.0;

/// Memory that the model's device needs for the largest batch of the corpus.
fn memory(profile: &ProfileAnswer, batch_size: usize) -> Option<Bytes> {
    let device = profile.devices.iter().find(|device| device.role == DeviceRole::Model)?;
    let peak = device.memory?.max;
    let fixed = BYTES_PER_PARAMETER * profile.subject.parameters as f64;
    let measured = profile.measured.as_is.batches.iter().filter_map(|batch| batch.padded).max()?;
    let shapes = profile.shapes.iter().find(|shapes| shapes.batch_size == batch_size)?;
    let padded = |shape: &[u32; 3]| u64::from(shape[0]) * u64::from(shape[2]);
    let largest = shapes.shapes.iter().map(|(shape, _)| padded(shape)).max()?;
    let growing = (peak - fixed).max(0.0) / measured.max(1) as f64;
    Some(Bytes((fixed + growing * largest as f64) as u64))
}

/// A setting this close to the best one is as good: fewer workers and batches cost less.
const AS_GOOD: f64 = 0.99;

/// The best row of a mode: the smallest setting that is as good as the first one.
fn best_of(rows: &[PlanRow], mode: PlanMode) -> Option<usize> {
    let best = rows.iter().find(|row| row.mode == mode)?;
    let as_good = rows.iter().enumerate().filter(|(_, row)| {
        row.mode == mode
            && row.batch_size == best.batch_size
            && row.samples_per_second >= AS_GOOD * best.samples_per_second
    });
    let smallest = as_good.min_by_key(|(_, row)| (row.setting.workers, row.setting.depth))?;
    Some(smallest.0)
}

fn choose(rows: &[PlanRow], base: &ProfileAnswer, gpus: Option<usize>) -> (usize, String) {
    let best_of = |mode| best_of(rows, mode);
    let flags = |row: &PlanRow| {
        format!(
            "`--batch-size {} --num-workers {} --pipeline-depth {}`",
            row.batch_size, row.setting.workers, row.setting.depth
        )
    };
    let Some(single) = best_of(PlanMode::Single) else {
        let row = &rows[0];
        return (
            0,
            format!("use {}: {}; single mode was not measured", row.mode.name(), flags(row)),
        );
    };
    let here = &rows[single];
    // Rows are sorted, so the first of a mode is its best, and the first of another mode the best of all others.
    let Some(other) = rows.iter().position(|row| row.mode != PlanMode::Single) else {
        let (step, busy) = (Seconds(here.predicted.step), percent(here.predicted.model_busy));
        return (
            single,
            format!("use single: {}; a step takes {step}, the model works {busy}", flags(here)),
        );
    };
    let other = best_of(rows[other].mode).unwrap_or(other);
    let there = &rows[other];
    let more = |row: &PlanRow| row.samples_per_second / here.samples_per_second.max(1e-12) - 1.0;
    let gives = |row: &PlanRow| match more(row) {
        gain if gain >= 0.005 => format!("{} more utterances a second", percent(gain)),
        _ => "no more utterances a second".to_string(),
    };
    // What the second device would give in its other use.
    let instead = rows.iter().find(|row| ![PlanMode::Single, there.mode].contains(&row.mode));
    let instead = instead
        .map(|row| format!("; {} it gives {}", use_of(row.mode), gives(row)))
        .unwrap_or_default();
    let device = second_device(base.subject.sharing, there.mode);
    let used = use_of(there.mode);
    let interval = format!(
        "{} to {} against {} to {} a step",
        Seconds(there.predicted.low),
        Seconds(there.predicted.high),
        Seconds(here.predicted.low),
        Seconds(here.predicted.high)
    );
    if more(there) < WORTH_A_SECOND_GPU {
        let advice = format!(
            "use single: {device} is not worth it: {used} it gives {} ({interval}), below the {}{instead}; {}",
            gives(there),
            percent(WORTH_A_SECOND_GPU),
            flags(here)
        );
        return (single, advice);
    }
    // A CPU has no second device beside it, and a machine no second GPU that it does not have.
    let has_second = base.subject.sharing != Sharing::Cpu && gpus.is_none_or(|gpus| gpus >= 2);
    if !has_second {
        let has = match (base.subject.sharing, gpus) {
            (Sharing::Cpu, _) => "this profile is of a CPU".to_string(),
            (_, Some(1)) => "this machine has one GPU".to_string(),
            (_, gpus) => format!("this machine has {} GPUs", gpus.unwrap_or(0)),
        };
        let advice = format!(
            "use single: {}; {has}; {device} {used} would give {} ({interval}){instead}",
            flags(here),
            gives(there)
        );
        return (single, advice);
    }
    let command = match there.mode {
        PlanMode::DataParallel => {
            "`mpirun -np 2 --bind-to none tandem train`, twice the batches a step, with "
        }
        _ => "",
    };
    let advice = format!(
        "use {}: {device} {used} gives {} ({interval}){instead}; {command}{}",
        there.mode.name(),
        gives(there),
        flags(there)
    );
    (other, advice)
}

/// What a second device does in a mode.
fn use_of(mode: PlanMode) -> &'static str {
    match mode {
        PlanMode::DataParallel => "as second model device",
        _ => "as data device",
    }
}

fn second_device(sharing: Sharing, mode: PlanMode) -> &'static str {
    match (sharing, mode) {
        (Sharing::Cpu, PlanMode::DataParallel) => "a second machine like this one",
        (Sharing::Cpu, _) => "a separate device for the data work, as fast as this CPU,",
        _ => "a second GPU",
    }
}

#[cfg(test)]
mod tests;
