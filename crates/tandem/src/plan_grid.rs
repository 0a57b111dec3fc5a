//! Compares predictions with real runs on this machine, over a grid of configurations.
//!
//! In: corpus and number of steps. Out: [`Tried`] configurations. Stages are slowed on purpose, so
//! that each of them becomes the bottleneck in turn; a prediction adds the known delay to the costs
//! measured without it.

use crate::failure::Result;
use crate::printer::Printer;
use crate::profiling::{ProfilingArgs, STAGES, Session};
use crate::setting_flags::typed;
use std::time::Duration;
use tandem_insight::measured::{Measured, Phase};
use tandem_insight::plan_check::Tried;
use tandem_insight::predict::{Item, Setting, host_floor, items, predict};
use tandem_pipeline::{CancelToken, Slowdown, Slowdowns};
use tandem_train::FeedSettings;

/// The configurations to run.
pub struct Grid {
    pub args: ProfilingArgs,
    pub batches: Vec<usize>,
    pub workers: Vec<usize>,
    pub depths: Vec<usize>,
    /// Delay added to each stage in turn.
    pub slow: Duration,
}

impl Grid {
    /// Runs the grid and prints each result.
    pub fn run(&self, cancel: &CancelToken, out: &mut Printer) -> Result<Vec<Tried>> {
        let mut tried = Vec::new();
        let stages = STAGES.iter().filter(|stage| **stage != "align");
        for &batch in &self.batches {
            let mut args = self.args.clone();
            let settings = args.batch.settings.typed.clone();
            args.batch.settings = settings.and(typed("batch.batch_size", batch.to_string())).into();
            let session = Session::open(&args, cancel, out)?;
            for stage in stages.clone() {
                self.slowed(&session, batch, stage, &mut tried, out)?;
            }
        }
        Ok(tried)
    }

    /// All workers and depths with one stage slowed.
    fn slowed(
        &self,
        session: &Session,
        batch: usize,
        stage: &str,
        tried: &mut Vec<Tried>,
        out: &mut Printer,
    ) -> Result<()> {
        let plain = FeedSettings { workers: 1, depth: 2, host: None, ..session.feed.clone() };
        let mut base = session.measure("without changes", &plain, out)?;
        for &workers in &self.workers {
            for &depth in &self.depths {
                let slow = Slowdowns::of([Slowdown::always(stage, self.slow)]);
                let most_workers = plain.most_workers.max(workers);
                let feed = FeedSettings { workers, most_workers, depth, slow, ..plain.clone() };
                let what = format!(
                    "batch {batch}, {workers} workers, depth {depth}, {stage} slowed by {} ms",
                    self.slow.as_millis()
                );
                let mut run = session.measure(&what, &feed, out)?;
                let mut again = 0;
                while again < AGAIN && self.is_disturbed(&base, &run, stage) {
                    again += 1;
                    base = session.measure("without changes", &plain, out)?;
                    run = session.measure(&what, &feed, out)?;
                }
                let predicted = self.predicted(&base, stage, Setting { workers, depth });
                let (measured, group) = (run.usual_step(), format!("{batch} {stage}"));
                let one = Tried { what, group, predicted, measured, again };
                out.note(&one.line());
                tried.push(one);
            }
        }
        Ok(())
    }

    /// Predicted step time: the measured costs plus the added delay.
    fn predicted(&self, base: &Measured, stage: &str, setting: Setting) -> f64 {
        let costs: Vec<Item> =
            items(base).into_iter().map(|item| slower(item, stage, self.slow)).collect();
        predict(&costs, setting, host_floor(base).unwrap_or(0.0)).step
    }

    /// Whether other programs disturbed one of two runs: the training phase is the same in both, so
    /// it must take about the same time, without long pauses.
    fn is_disturbed(&self, base: &Measured, run: &Measured, stage: &str) -> bool {
        let added = if stage == "train" { self.slow.as_secs_f64() } else { 0.0 };
        let expected = base.usual(Phase::Train);
        let ratio = (run.usual(Phase::Train) - added) / expected.max(1e-9);
        let longest = run.phase(Phase::Train).map_or(0.0, |figures| figures.max) - added;
        !(1.0 / SAME..=SAME).contains(&ratio) || longest > PAUSE * expected
    }
}

/// Retries of a configuration if the machine was disturbed.
const AGAIN: u32 = 3;
/// Runs whose training phase differs by less than this factor were not disturbed.
const SAME: f64 = 1.3;
/// A step this many times longer than usual is a disturbance.
const PAUSE: f64 = 3.0;

fn slower(item: Item, stage: &str, by: Duration) -> Item {
    let by = by.as_secs_f64();
    match stage {
        "transfer" => Item { transfer: item.transfer + by, ..item },
        "train" => Item { train: item.train + by, ..item },
        _ => Item { assemble: item.assemble + by, ..item },
    }
}
