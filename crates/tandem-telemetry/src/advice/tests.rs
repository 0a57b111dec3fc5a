//! Advice of constructed runs.

use super::*;
use crate::clock::Nanos;
use crate::event::{Event, HostFacts, QueueLevel, RunHeader, StageInterval, Stamped, Step};
use tandem_units::Bytes;

struct Run {
    cached: bool,
    workers: u32,
    cores: u32,
    mode: &'static str,
    gpus: u32,
    command: &'static str,
}

const RUN: Run =
    Run { cached: false, workers: 2, cores: 8, mode: "cpu", gpus: 0, command: "train" };

impl Run {
    /// A run of 100 steps, each of `step` ms with `waited` ms of waiting, and stages that need so
    /// many milliseconds of one worker for a batch.
    fn summary(&self, stages: &[(&'static str, u64)], step: u64, waited: u64) -> Summary {
        let mut summary = Summary::default();
        let mut add = |event: Event| summary.add(&Stamped { at: Nanos(1), event });
        let settings = serde_json::json!({
            "command": self.command,
            "config": {"cache_dataset": self.cached, "train_data": "voice"},
            "placement": {"mode": self.mode, "gpus": self.gpus},
        });
        let mut header = RunHeader::now("tandem", "0", settings);
        header.host = HostFacts { threads: Some(self.cores), ..HostFacts::default() };
        add(Event::Run(Box::new(header)));
        add(QueueLevel {
            queue: "train".into(),
            items: 1,
            bytes: Bytes(1),
            limit: Bytes(9),
            limit_items: Some(4),
        }
        .into());
        for number in 1..=100 {
            let (took, waited) = (Nanos::millis(step), Nanos::millis(waited));
            add(Step { step: number, took, waited, items: 16, ..Step::default() }.into());
        }
        for (name, millis) in stages {
            let workers = if *name == "load" { self.workers } else { 1 };
            add(StageInterval {
                stage: (*name).into(),
                workers,
                interval: Nanos::millis(step * 100),
                busy: Nanos::millis(millis * 100),
                items: 100,
                ..StageInterval::default()
            }
            .into());
        }
        summary
    }

    #[track_caller]
    fn check(&self, stages: &[(&'static str, u64)], step: u64, waited: u64, wanted: &[&str]) {
        let found = advice(&self.summary(stages, step, waited), &Rules::default());
        let said: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(said, wanted);
    }
}

#[test]
fn a_model_that_never_waits_needs_no_advice() {
    RUN.check(&[("load", 40), ("align", 5)], 100, 0, &[]);
}

#[test]
fn slow_loading_asks_for_the_cache_and_for_as_many_workers_as_help() {
    // 200 ms of two workers are 100 ms a step; the model needs 40 ms: 5 workers are enough.
    RUN.check(
        &[("load", 200), ("align", 5)],
        100,
        60,
        &[
            "`--cache-dataset` saves up to 60.0 % of a step: `load` reads finished mel frames \
             instead of recordings",
            "`--num-workers 5` saves up to 60.0 % of a step: 2 of 8 CPU cores load data",
        ],
    );
    // A vocoder needs the recordings themselves.
    let vocoder = Run { command: "train-vocoder", ..RUN };
    let more = "`--num-workers 5` saves up to 60.0 % of a step: 2 of 8 CPU cores load data";
    vocoder.check(&[("load", 200), ("align", 5)], 100, 60, &[more]);
    let full = Run { cached: true, cores: 2, ..RUN };
    full.check(&[("load", 200), ("align", 5)], 100, 60, &[]);
    let four = Run { cached: true, cores: 3, ..RUN };
    four.check(
        &[("load", 200), ("align", 5)],
        100,
        60,
        &["`--num-workers 3` saves up to 33.3 % of a step: 2 of 3 CPU cores load data"],
    );
}

#[test]
fn waits_without_a_slow_stage_ask_for_a_deeper_buffer() {
    RUN.check(
        &[("load", 80), ("align", 5)],
        100,
        30,
        &["`--prefetch-buffer-size 8` saves up to 30.0 % of a step: the model waits 30.0 % \
           although no stage is too slow"],
    );
}

#[test]
fn a_slow_copy_asks_for_another_gpu_where_there_is_one() {
    let wanted = "`--data-gpu A --model-gpu B` saves up to 60.0 % of a step: `align` moves off the \
                  GPU that trains";
    let slow = [("load", 20), ("align", 100)];
    Run { mode: "single", gpus: 2, ..RUN }.check(&slow, 100, 60, &[wanted]);
    Run { mode: "single", gpus: 1, ..RUN }.check(&slow, 100, 60, &[]);
    RUN.check(&slow, 100, 60, &[]);
    // Two stages that are equally slow: neither alone is worth a change.
    let both = [("load", 200), ("align", 98)];
    Run { mode: "single", gpus: 2, ..RUN }.check(&both, 100, 60, &[]);
}
