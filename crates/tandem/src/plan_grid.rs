//! Predictions tried on this machine: a grid of real runs, each predicted from a run without
//! changes.
//!
//! In: which corpus, how many steps. Out: [`Tried`] configurations. Stages are slowed on purpose,
//! so that each of them sets the pace in turn; predictions add what is known of that to costs
//! that were measured.

use crate::corpus_args::BatchArgs;
use crate::printer::Printer;
use crate::profiling::{ProfilingArgs, STAGES, Session};
use std::time::Duration;
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
    pub fn run(&self, cancel: &CancelToken, out: &mut Printer) -> anyhow::Result<Vec<Tried>> {
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

    /// All workers and depths with one stage slowed, after a run without changes.
    fn slowed(
        &self,
        session: &Session,
        batch: usize,
        stage: &str,
        tried: &mut Vec<Tried>,
        out: &mut Printer,
    ) -> anyhow::Result<()> {
        let plain = FeedSettings { workers: 1, depth: 2, ..session.feed.clone() };
        let base = session.measure("without changes", &plain, out)?;
        let slow = Slowdowns::of([(stage.to_string(), self.slow)]);
        let costs: Vec<Item> =
            items(&base).into_iter().map(|item| slower(item, stage, self.slow)).collect();
        let floor = host_floor(&base).unwrap_or(0.0);
        for &workers in &self.workers {
            for &depth in &self.depths {
                let slow = slow.clone();
                let most_workers = plain.most_workers.max(workers);
                let feed = FeedSettings { workers, most_workers, depth, slow, ..plain.clone() };
                let what = format!(
                    "batch {batch}, {workers} workers, depth {depth}, {stage} slowed by {} ms",
                    self.slow.as_millis()
                );
                let predicted = predict(&costs, Setting { workers, depth }, floor).step;
                let measured = session.measure(&what, &feed, out)?.usual_step();
                let group = format!("{batch} {stage}");
                let one = Tried { what, group, predicted, measured };
                out.note(&format!(
                    "{}: predicted {:.1} ms, measured {:.1} ms, {:+.1} %",
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
}

fn slower(item: Item, stage: &str, by: Duration) -> Item {
    let by = by.as_secs_f64();
    match stage {
        "transfer" => Item { transfer: item.transfer + by, ..item },
        "train" => Item { train: item.train + by, ..item },
        _ => Item { assemble: item.assemble + by, ..item },
    }
}
