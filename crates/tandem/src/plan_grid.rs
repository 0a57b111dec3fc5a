//! Predictions tried on this machine: a grid of real runs, each predicted from a run without
//! changes.
//!
//! In: which corpus, how many steps. Out: [`Tried`] configurations. Stages are slowed on purpose,
//! so that each of them sets the pace in turn; predictions add what is known of that to costs
//! that were measured.

use crate::corpus_args::BatchArgs;
use crate::failure::Result;
use crate::printer::Printer;
use crate::profiling::{ProfilingArgs, STAGES, Session};
use std::time::Duration;
use tandem_insight::measured::{Measured, Phase};
use tandem_insight::plan_check::Tried;
use tandem_insight::predict::{Item, Setting, host_floor, items, predict};
use tandem_pipeline::{CancelToken, Slowdowns};
use tandem_train::FeedSettings;

/// What is tried.
pub struct Grid {
    /// How the trainer is run.
    pub args: ProfilingArgs,
    /// Batch sizes.
    pub batches: Vec<usize>,
    /// Workers.
    pub workers: Vec<usize>,
    /// Depths.
    pub depths: Vec<usize>,
    /// What each stage is slowed by, in turn.
    pub slow: Duration,
}

impl Grid {
    /// Runs all of it; each result is told as it comes.
    pub fn run(&self, cancel: &CancelToken, out: &mut Printer) -> Result<Vec<Tried>> {
        let mut tried = Vec::new();
        let stages = STAGES.iter().filter(|stage| **stage != "align");
        for &batch in &self.batches {
            let mut args = self.args.clone();
            args.batch = BatchArgs { batch_size: Some(batch), ..args.batch };
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
        let plain = FeedSettings { workers: 1, depth: 2, ..session.feed.clone() };
        let mut base = session.measure("without changes", &plain, out)?;
        for &workers in &self.workers {
            for &depth in &self.depths {
                let slow = Slowdowns::of([(stage.to_string(), self.slow)]);
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
                out.note(&format!(
                    "{}: predicted {:.1} ms, measured {:.1} ms, {:+.1} %; repeated {again} times",
                    one.what,
                    1e3 * one.predicted,
                    1e3 * one.measured,
                    100.0 * one.error()
                ));
                tried.push(one);
            }
        }
        Ok(())
    }

    /// From costs without changes, and what is known of the change.
    fn predicted(&self, base: &Measured, stage: &str, setting: Setting) -> f64 {
        let costs: Vec<Item> =
            items(base).into_iter().map(|item| slower(item, stage, self.slow)).collect();
        predict(&costs, setting, host_floor(base).unwrap_or(0.0)).step
    }

    /// Whether the machine did something else during one of two runs: training, which is the
    /// same in both, must have taken as long, and never much longer.
    fn is_disturbed(&self, base: &Measured, run: &Measured, stage: &str) -> bool {
        let added = if stage == "train" { self.slow.as_secs_f64() } else { 0.0 };
        let expected = base.usual(Phase::Train);
        let ratio = (run.usual(Phase::Train) - added) / expected.max(1e-9);
        let longest = run.phase(Phase::Train).map_or(0.0, |figures| figures.max) - added;
        !(1.0 / SAME..=SAME).contains(&ratio) || longest > PAUSE * expected
    }
}

/// Times that a configuration is tried again when the machine was disturbed.
const AGAIN: u32 = 3;
/// Runs whose training differs by less than this factor had the same machine.
const SAME: f64 = 1.3;
/// A step this many times as long as usual is a pause of the machine.
const PAUSE: f64 = 3.0;

fn slower(item: Item, stage: &str, by: Duration) -> Item {
    let by = by.as_secs_f64();
    match stage {
        "transfer" => Item { transfer: item.transfer + by, ..item },
        "train" => Item { train: item.train + by, ..item },
        _ => Item { assemble: item.assemble + by, ..item },
    }
}
