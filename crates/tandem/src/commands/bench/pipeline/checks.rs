//! The targets of the pipeline and how each is measured.
//!
//! The overhead is the best of several short rounds, since other programs can only add to it. The cost
//! of the record is a difference, which other programs can change in both directions: a median.

use crate::commands::bench::target::{Limit, Target, median};
use crate::failure::{Context, Result};
use std::time::Instant;
use tandem_pipeline::cost::Cost;
use tandem_pipeline::rehearse::{Spend, rehearse, run_serially};
use tandem_pipeline::simulate::{RouteModel, StageModel};
use tandem_pipeline::{
    Emitter, Payload, PipelineError, QueueLimits, Route, Setup, Stage, StageError,
};
use tandem_telemetry::event::{RunHeader, Step};
use tandem_telemetry::record::{RecordOptions, Recorder, Recording, Spans};
use tandem_units::{Bytes, Epoch, Seconds, Seed, Ticket};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// About a minute in total.
    Short,
    /// A few minutes.
    Full,
}

/// Four stages of 20, 10, 15 and 150 ms: the step must be as long as the longest, and steady.
pub fn overlap(size: Size) -> Result<Vec<Target>, PipelineError> {
    let items = match size {
        Size::Short => 30,
        Size::Full => 200,
    };
    let stage = |name, milliseconds: f64| {
        let cost = Cost::constant(Seconds(milliseconds / 1e3));
        StageModel { name, cost, workers: 1, slots: 3 }
    };
    let line = RouteModel {
        stages: vec![stage("load", 20.0), stage("preprocess", 10.0), stage("copy", 15.0)],
        consumer: Cost::constant(Seconds(0.150)),
        wake: Seconds(0.0),
    };
    let costs = line.draw(items, Seed(1));
    let sum = run_serially(&line.draw(5, Seed(1)), Spend::Waiting).0 * 1e3;
    let measured = rehearse(&line, &costs, Spend::Waiting, Setup::default())?;
    let predicted = line.simulate(&costs).step.0 * 1e3;
    let how =
        format!("{items} steps of 20/10/15/150 ms; in line {sum:.1}, predicted {predicted:.1}");
    let stall = format!("the same steps; stall {:.2} %", measured.stall * 100.0);
    let (step, variation) = (measured.step.0 * 1e3, measured.variation * 100.0);
    Ok(vec![
        Target::new("step, four stages", step, "ms", Limit::AtMost(1.02 * 150.0), how),
        Target::new("variation of the step", variation, "%", Limit::AtMost(5.0), stall),
    ])
}

/// Four stages that do nothing, one worker each.
pub fn overhead(size: Size) -> Result<Target, PipelineError> {
    let rounds = (0..rounds(size)).map(|_| idle_run(20_000, 3, Recorder::off()));
    let rounds: Vec<f64> = rounds.collect::<Result<_, _>>()?;
    let how = format!("best of {} rounds; queues of 3 items, depth 3", rounds.len());
    let overhead = best(&rounds) * 1e6;
    Ok(Target::new("overhead, four stages", overhead, "us/item", Limit::AtMost(20.0), how))
}

/// The added time with everything recorded, including spans, as a share of a 10 ms step.
pub fn telemetry(size: Size) -> Result<Target> {
    let path = std::env::temp_dir().join(format!("tandem-bench-{}.jsonl", std::process::id()));
    // Room for all events of a round, and time to write them: a lost event would cost nothing.
    let room = RecordOptions { bulk_room: 1 << 18, essential_room: 1 << 14, ..Default::default() };
    let options = RecordOptions { spans: Spans::Recorded, ..room };
    let pause = options.flush_every * 2;
    let header = RunHeader::now("bench", env!("CARGO_PKG_VERSION"), serde_json::Value::Null);
    let recording = Recording::create(&path, header, options)?;
    let mut differences = Vec::new();
    for _ in 0..rounds(size) {
        // Longer queues than usual: waiting would hide the cost of the record.
        let off = idle_run(3_000, 64, Recorder::off())?;
        differences.push(idle_run(3_000, 64, recording.recorder())? - off);
        std::thread::sleep(pause);
    }
    let lost = recording.finish().health.total_lost();
    std::fs::remove_file(&path).with_context(|| format!("cannot remove `{}`", path.display()))?;
    let pairs = differences.len();
    let added = median(differences);
    let how = format!(
        "{:.1} us per step, median of {pairs} pairs; spans recorded, {lost} events lost",
        added * 1e6
    );
    let share = added / 0.010 * 100.0;
    Ok(Target::new("telemetry in a 10 ms step", share, "%", Limit::AtMost(1.0), how))
}

/// Ten million tiny items: memory after the first tenth against its highest value later.
pub fn memory() -> Result<Vec<Target>, PipelineError> {
    const ITEMS: u64 = 10_000_000;
    const PLACES: usize = 256;
    let mut feed = idle_route(ITEMS, PLACES).start(Setup::default())?;
    let (mut early, mut highest) = (None, None);
    let from = Instant::now();
    while let Some(item) = feed.next()? {
        if item.0.is_multiple_of(ITEMS / 100) {
            let now = resident();
            if item.0 <= ITEMS / 10 {
                early = early.max(now);
            } else {
                highest = highest.max(now);
            }
        }
    }
    let each = from.elapsed().as_secs_f64() / ITEMS as f64 * 1e6;
    let how = format!("10 million items through four stages, {PLACES} per queue");
    let name = "tiny items, four stages";
    let mut targets = vec![Target::new(name, each, "us/item", Limit::AtMost(20.0), how)];
    // Only Linux reports it; on other systems there is no value.
    if let Some((early, highest)) = early.zip(highest) {
        let growth = highest.saturating_sub(early) as f64 / 1048576.0;
        let how = format!("highest later against {} after one million items", Bytes(early));
        targets.push(Target::new("growth of memory", growth, "MiB", Limit::AtMost(1.0), how));
    }
    Ok(targets)
}

fn rounds(size: Size) -> usize {
    match size {
        Size::Short => 9,
        Size::Full => 51,
    }
}

fn best(rounds: &[f64]) -> f64 {
    rounds.iter().copied().fold(f64::INFINITY, f64::min)
}

struct Tiny(u64);

impl Payload for Tiny {
    fn size(&self) -> Bytes {
        Bytes(8)
    }

    fn ticket(&self) -> Option<Ticket> {
        Some(Ticket { epoch: Epoch(0), seq: self.0 })
    }
}

struct Idle(&'static str);

impl Stage for Idle {
    type In = Tiny;
    type Out = Tiny;

    fn name(&self) -> &'static str {
        self.0
    }

    fn step(&mut self, item: Tiny, out: &mut dyn Emitter<Tiny>) -> Result<(), StageError> {
        out.push(item)
    }
}

fn idle_route(items: u64, places: usize) -> Route<Tiny> {
    let hold = QueueLimits::bytes(Bytes::mib(1)).items(places);
    ["load", "preprocess", "copy", "last"]
        .into_iter()
        .fold(Route::from((0..items).map(Tiny), hold.clone()), |route, name| {
            route.then(Idle(name), hold.clone())
        })
}

/// Seconds per item.
fn idle_run(items: u64, places: usize, recorder: Recorder) -> Result<f64, PipelineError> {
    let setup = Setup { recorder: recorder.clone(), ..Setup::default() };
    let mut feed = idle_route(items, places).start(setup)?;
    let from = Instant::now();
    while let Some(item) = feed.next()? {
        recorder.send(Step {
            step: item.0 + 1,
            ticket: Ticket { epoch: Epoch(0), seq: item.0 },
            took: from.elapsed().into(),
            waited: feed.waited().into(),
            items: 1,
            frames: 1,
            shape: None,
            ..Step::default()
        });
    }
    Ok(from.elapsed().as_secs_f64() / items as f64)
}

/// Anonymous memory of this process in bytes, if the system reports it. Pages of the program file are
/// not counted: they depend on the needs of other programs.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}
