//! What to change in a run, as a flag to type, with the gain that its measurements predict.
//!
//! In: the sums of a run, or of its last steps. Out: [`Advice`], the largest gain first, each flag once. Gains
//! follow from measured stage times and waits; where only a limit is known, it is given as "up to". Nothing is
//! advised that was not measured to cost time, that the machine does not have, or that only measures. Pure.

use crate::event::Name;
use crate::rules::{DEEPEST, LEAST_GAIN, Rules};
use crate::summary::Summary;
use crate::variation::Variation;
use crate::variation_cause::VariationSource;
use crate::verdict::{Cause, Pace, StageLoad, TRAIN, Verdict, stage_loads, verdict};
use serde::{Deserialize, Serialize};
use std::fmt;
use tandem_units::{Lang, percent};

/// One change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// What to type, such as `--num-workers 4`.
    pub flag: String,
    /// Share of the step time that it should save.
    pub gain: f64,
    /// Whether `gain` is a limit: the change saves that much at most.
    pub at_most: bool,
    pub why: String,
}

impl Advice {
    /// In a sentence of this language; the reason is in English only.
    pub fn words(&self, lang: Lang) -> String {
        let (Advice { flag, at_most, .. }, gain) = (self, lang.percent(self.gain));
        match (lang, at_most) {
            (Lang::En, _) => self.to_string(),
            (Lang::Fa, true) => format!("`{flag}` زمان هر گام را تا {gain} کم می‌کند."),
            (Lang::Fa, false) => format!("`{flag}` زمان هر گام را حدود {gain} کم می‌کند."),
        }
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = if self.at_most { "up to " } else { "about " };
        let Advice { flag, gain, why, .. } = self;
        write!(f, "`{flag}` saves {limit}{} of a step: {why}", percent(*gain))
    }
}

/// What to change in this run.
pub fn advice(summary: &Summary, rules: &Rules) -> Vec<Advice> {
    let mut found = bottleneck(summary, rules);
    let judged = summary.variation();
    let judged = judged.filter(|judged| judged.by_shape > rules.variation);
    if let Some(against) = judged.and_then(|judged| against_variation(summary, &judged)) {
        // The measured cause of the waits explains more than that no stage is too slow on average.
        let deeper = |advice: &Advice| advice.flag.starts_with(DEEPER);
        if !deeper(&against) {
            found.retain(|advice| !deeper(advice));
        }
        found.push(against);
    }
    found.retain(|advice| advice.gain >= LEAST_GAIN);
    found.sort_by(|one, other| other.gain.total_cmp(&one.gain));
    // Two reasons for the same flag are one piece of advice.
    let mut seen: Vec<String> = Vec::new();
    found.retain(|advice| {
        let new = !seen.contains(&advice.flag);
        seen.push(advice.flag.clone());
        new
    });
    found
}

/// The change against varying step times that fits their measured cause.
fn against_variation(summary: &Summary, judged: &Variation) -> Option<Advice> {
    let setting = Setting::of(summary);
    let cause = judged.cause.as_ref()?;
    // What the model waits is the most that less waiting can save.
    let stall = Pace::of(&summary.steps).map_or(0.0, |pace| pace.stall);
    let gain = match cause.source {
        VariationSource::Stage | VariationSource::Waiting => judged.excess.min(stall),
        _ => judged.excess,
    };
    let at_most =
        |flag: String, why: &str| Some(Advice { flag, gain, at_most: true, why: why.into() });
    match cause.source {
        VariationSource::Stage if setting.computes(cause.stage.as_ref()) => at_most(
            "--cache-dataset".into(),
            "recordings are read and mel frames computed once instead of in every epoch",
        ),
        VariationSource::Stage | VariationSource::Waiting => {
            at_most(setting.deeper()?, "more ready batches bridge a slow one")
        }
        VariationSource::OwnWork => {
            at_most(setting.rarer_validation(), "validation and samples use the CPU that trains")
        }
        // No setting of a run changes what other programs use, or how even a device is.
        VariationSource::OtherPrograms | VariationSource::Model => None,
    }
}

/// Changes that a bottleneck before the model calls for.
fn bottleneck(summary: &Summary, rules: &Rules) -> Vec<Advice> {
    let verdict = verdict(summary, rules);
    let setting = Setting::of(summary);
    let loads = stage_loads(summary);
    let Some(pace) = Pace::of(&summary.steps) else { return Vec::new() };
    match verdict.cause {
        Cause::Feed => {
            let Some(worst) = loads.iter().find(|load| Some(&load.stage) == verdict.stage.as_ref())
            else {
                return Vec::new();
            };
            setting.against_slow_stage(worst, &loads, pace, &verdict)
        }
        Cause::Variation => setting.deeper().map_or_else(Vec::new, |flag| {
            let why =
                format!("the model waits {} although no stage is too slow", percent(pace.stall));
            vec![Advice { flag, gain: pace.stall, at_most: true, why }]
        }),
        Cause::Communication => vec![Advice {
            flag: format!("--grad-accum {}", 2 * setting.grad_accum),
            gain: verdict.cost / 2.0,
            at_most: false,
            why: "gradients are summed half as often, for steps of twice as many batches".into(),
        }],
        Cause::Rank | Cause::NoSteps | Cause::Model | Cause::Balanced | Cause::Unknown => {
            Vec::new()
        }
    }
}

/// The settings that advice starts from, as far as the record knows them.
struct Setting {
    workers: u64,
    cores: Option<u64>,
    depth: Option<u64>,
    cached: bool,
    /// Whether the model trains on a GPU.
    gpu: bool,
    /// GPUs in the machine, as far as the record says.
    gpus: u64,
    two_gpus: bool,
    validate_every: Option<u64>,
    grad_accum: u64,
}

impl Setting {
    fn of(summary: &Summary) -> Setting {
        let header = summary.header.as_ref();
        let settings = header.map(|header| &header.settings);
        let at = |pointer: &str| settings.and_then(|settings| settings.pointer(pointer));
        let number = |pointer: &str| at(pointer).and_then(serde_json::Value::as_u64);
        let loading = summary.stages.iter().find(|sums| sums.stage == LOAD);
        let ready = summary.queues.get(TRAIN).and_then(|queue| queue.limit_items);
        let mode = at("/placement/mode").and_then(serde_json::Value::as_str);
        Setting {
            workers: loading
                .map(|sums| u64::from(sums.workers))
                .or_else(|| number("/config/num_workers"))
                .unwrap_or(1)
                .max(1),
            cores: header.and_then(|header| header.host.threads).map(u64::from),
            depth: ready.or_else(|| number("/config/prefetch_buffer_size")),
            // A vocoder learns from recordings: a cache of mel frames does not replace them.
            cached: at("/config/cache_dataset").and_then(serde_json::Value::as_bool) == Some(true)
                || at("/command").and_then(serde_json::Value::as_str) == Some("train-vocoder"),
            gpu: mode.is_some_and(|mode| mode != "cpu"),
            gpus: number("/placement/gpus").unwrap_or(0),
            two_gpus: number("/config/devices/model_gpu").is_some(),
            validate_every: number("/config/train/validate_every"),
            grad_accum: number("/config/train/grad_accum").unwrap_or(1).max(1),
        }
    }

    /// Whether a stage computes what a cache would hold.
    fn computes(&self, stage: Option<&Name>) -> bool {
        !self.cached && stage.is_some_and(|name| *name == LOAD || *name == PREPROCESS)
    }

    /// None where the buffer is as deep as is useful.
    fn deeper(&self) -> Option<String> {
        let depth = self.depth.unwrap_or(3);
        let deeper = (2 * depth).min(DEEPEST);
        (deeper > depth).then(|| format!("{DEEPER} {deeper}"))
    }

    fn rarer_validation(&self) -> String {
        format!("--validate-every {}", 2 * self.validate_every.unwrap_or(500))
    }

    fn against_slow_stage(
        &self,
        worst: &StageLoad,
        loads: &[StageLoad],
        pace: Pace,
        verdict: &Verdict,
    ) -> Vec<Advice> {
        // Of two stages that are equally slow, a faster one alone changes nothing.
        if verdict.facts.as_slow.is_some() {
            return Vec::new();
        }
        let cost = verdict.cost;
        if worst.stage != LOAD && worst.stage != PREPROCESS {
            return self.against_slow_copy(worst, cost);
        }
        let mut found = Vec::new();
        if !self.cached {
            found.push(Advice {
                flag: "--cache-dataset".into(),
                gain: cost,
                at_most: true,
                why: format!("`{}` reads finished mel frames instead of recordings", worst.stage),
            });
        }
        let cores = self.cores.unwrap_or(self.workers);
        let others = loads.iter().filter(|load| load.stage != worst.stage);
        let next = others.map(|load| load.per_step).fold(0.0, f64::max);
        // The fewest workers with which the stage is no slower than the next one.
        let wanted = (worst.per_step * self.workers as f64 / next.max(1e-9)).ceil();
        let wanted = (wanted as u64).clamp(self.workers + 1, cores.max(self.workers + 1));
        if wanted <= cores {
            let with = worst.per_step * self.workers as f64 / wanted as f64;
            found.push(Advice {
                flag: format!("--num-workers {wanted}"),
                gain: (1.0 - with.max(next) / pace.step).clamp(0.0, cost),
                // On a CPU the model and the workers share the cores.
                at_most: !self.gpu,
                why: format!("{} of {cores} CPU cores load data", self.workers),
            });
        }
        found
    }

    /// Alignment and copies have one worker each: only another device helps.
    fn against_slow_copy(&self, worst: &StageLoad, cost: f64) -> Vec<Advice> {
        let moves = worst.stage == ALIGN || worst.stage == TRANSFER;
        if !moves || !self.gpu || self.gpus < 2 {
            return Vec::new();
        }
        let why = if self.two_gpus {
            format!("`{}` crosses the link between the two GPUs; choose a faster pair", worst.stage)
        } else {
            format!("`{}` moves off the GPU that trains", worst.stage)
        };
        let flag = "--data-gpu A --model-gpu B".into();
        vec![Advice { flag, gain: cost, at_most: true, why }]
    }
}

const DEEPER: &str = "--prefetch-buffer-size";
const LOAD: &str = "load";
const PREPROCESS: &str = "preprocess";
const ALIGN: &str = "align";
const TRANSFER: &str = "transfer";

#[cfg(test)]
mod tests;
