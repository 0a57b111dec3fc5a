//! Cost of each batch of a run by phase, read from the run's record.
//!
//! In: a record with spans. Out: [`Measured`]: one [`BatchCost`] for each batch after
//! the warm-up, and the devices in that time. A record without spans or with too few steps is an
//! error. Next: [`crate::profile`], [`crate::predict`].

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tandem_telemetry::crowd::Crowd;
use tandem_telemetry::event::{DeviceRole, Doing, Event, Span, Step};
use tandem_telemetry::step_sample::StepTime;
use tandem_telemetry::{Figures, Nanos, RunRecord, Stats, TelemetryError, Variation, variation};
use tandem_units::{Bytes, Hint};

/// The parts of a batch's way, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Text from the cache, recordings read and decoded.
    Load,
    /// Mel frames.
    Preprocess,
    /// Texts aligned with recordings.
    Align,
    /// To the model's device.
    Transfer,
    /// The step itself.
    Train,
}

impl Phase {
    /// All of them, in the order of the path.
    pub const ALL: [Phase; 5] =
        [Phase::Load, Phase::Preprocess, Phase::Align, Phase::Transfer, Phase::Train];

    /// The name in records and tables.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Load => "load",
            Phase::Preprocess => "preprocess",
            Phase::Align => "align",
            Phase::Transfer => "transfer",
            Phase::Train => "train",
        }
    }

    /// Whether the workers of the corpus do it.
    pub fn shares_workers(self) -> bool {
        matches!(self, Phase::Load | Phase::Preprocess)
    }

    /// The phase that a stage of this name is.
    pub fn of(stage: &str) -> Option<Phase> {
        Phase::ALL.into_iter().find(|phase| phase.name() == stage)
    }
}

/// What one batch cost, in seconds of one worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BatchCost {
    /// Its number in the run.
    pub seq: u64,
    /// Padded frames in it: rows times frames of a row; `None` where unknown.
    pub padded: Option<u64>,
    pub items: u32,
    pub load: f64,
    pub preprocess: f64,
    pub align: f64,
    pub transfer: f64,
    pub train: f64,
    /// How long the model had no batch before this one.
    pub waited: f64,
}

impl BatchCost {
    /// The cost of one phase.
    pub fn phase(&self, phase: Phase) -> f64 {
        match phase {
            Phase::Load => self.load,
            Phase::Preprocess => self.preprocess,
            Phase::Align => self.align,
            Phase::Transfer => self.transfer,
            Phase::Train => self.train,
        }
    }

    fn phase_mut(&mut self, phase: Phase) -> &mut f64 {
        match phase {
            Phase::Load => &mut self.load,
            Phase::Preprocess => &mut self.preprocess,
            Phase::Align => &mut self.align,
            Phase::Transfer => &mut self.transfer,
            Phase::Train => &mut self.train,
        }
    }
}

/// A device while the measured steps ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceFigures {
    pub device: String,
    /// What the run used it for.
    pub role: DeviceRole,
    /// Share of time it was busy; `None` where it is not reported.
    pub utilisation: Option<Figures>,
    /// Memory in use, bytes; `None` where it is not reported.
    pub memory: Option<Figures>,
    pub memory_total: Option<Bytes>,
}

/// One run after its warm-up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Time of a step, seconds; waiting included.
    pub step: Figures,
    /// How much steps of the same shape differ; none where that cannot be judged.
    #[serde(default)]
    pub variation: Option<Variation>,
    pub batches: Vec<BatchCost>,
    /// Devices in the time of the measured steps.
    pub devices: Vec<DeviceFigures>,
    /// Events of the whole record: what recording it cost.
    pub events: u64,
    /// The whole run, its beginning and end included.
    pub lasted: f64,
}

impl Measured {
    /// Other programs that used CPU time which the run needed.
    pub fn crowd(&self) -> Option<Crowd> {
        let busy = |name: &str| {
            let device = self.devices.iter().find(|found| found.device == name)?;
            device.utilisation.as_ref().map(|share| share.mean)
        };
        Crowd::of_shares(busy("process")?, busy("machine")?)
    }
}

/// Why a record cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    #[error(transparent)]
    Record(#[from] TelemetryError),
    /// Nothing is left after the warm-up.
    #[error("`{}` has {steps} steps, of which the first {skip} are warm-up", path.display())]
    TooShort { path: PathBuf, steps: usize, skip: u64 },
    /// The record has no spans.
    #[error("`{}` has no spans: the time of each stage per batch is unknown", path.display())]
    NoSpans { path: PathBuf },
}

impl Hint for MeasureError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Record(error) => error.hint(),
            Self::TooShort { .. } => Some("measure more steps: `--num-steps 100`".into()),
            Self::NoSpans { .. } => Some(
                "use a record that `tandem profile --record DIR` wrote; training records sums only"
                    .into(),
            ),
        }
    }
}

impl Measured {
    /// Reads a record and leaves its first `skip` steps out.
    pub fn read(path: &Path, skip: u64) -> Result<Measured, MeasureError> {
        Measured::of(&RunRecord::read(path)?, skip, path)
    }

    /// The same from a record in memory; `path` is its name in errors.
    pub fn of(record: &RunRecord, skip: u64, path: &Path) -> Result<Measured, MeasureError> {
        let mut steps: Vec<(Nanos, &Step)> = Vec::new();
        for stamped in &record.events {
            if let Event::Step(step) = &stamped.event {
                steps.push((stamped.at, step));
            }
        }
        let skip = skip as usize;
        // The measured time begins at the end of the step before the first measured one.
        if steps.len() < skip.max(1) + 2 {
            let (path, skip) = (path.to_path_buf(), skip as u64);
            return Err(MeasureError::TooShort { path, steps: steps.len(), skip });
        }
        let (warm, measured) = steps.split_at(skip.max(1));
        let first = warm.last().map_or(0, |(_, step)| step.ticket.seq + 1);
        let last = measured.last().map_or(0, |(_, step)| step.ticket.seq);
        let batches = batches(record, first, last, measured);
        if batches.iter().all(|batch| batch.train <= 0.0) {
            return Err(MeasureError::NoSpans { path: path.to_path_buf() });
        }
        let times: Stats = measured.iter().map(|(_, step)| step.took.seconds().0).collect();
        let from = warm.last().map_or(Nanos(0), |(at, _)| *at);
        let until = measured.last().map_or(from, |(at, _)| *at);
        let Some(step) = times.figures() else {
            return Err(MeasureError::NoSpans { path: path.to_path_buf() });
        };
        let single: Vec<StepTime> =
            measured.iter().map(|(_, step)| StepTime::from(*step)).collect();
        Ok(Measured {
            step,
            variation: variation(&single),
            batches,
            devices: devices(record, from, until),
            events: record.events.len() as u64,
            lasted: record.events.last().map_or(0.0, |stamped| stamped.at.seconds().0),
        })
    }

    /// Batches of one step.
    pub fn batches_per_step(&self) -> f64 {
        self.batches.len() as f64 / self.step.count.max(1) as f64
    }

    /// Mean time from one batch to the next.
    pub fn per_batch(&self) -> f64 {
        self.step.mean / self.batches_per_step().max(1e-9)
    }

    /// Figures of one phase, per batch.
    pub fn phase(&self, phase: Phase) -> Option<Figures> {
        self.batches.iter().map(|batch| batch.phase(phase)).collect::<Stats>().figures()
    }

    /// Mean of one phase, per batch.
    pub fn mean(&self, phase: Phase) -> f64 {
        self.phase(phase).map_or(0.0, |figures| figures.mean)
    }

    /// Median cost of a batch in a phase: robust against short interference of other programs.
    pub fn usual(&self, phase: Phase) -> f64 {
        self.phase(phase).map_or(0.0, |figures| figures.p50)
    }

    /// Mean time from one batch to the next, without the extremes: see [`bounded`].
    pub fn usual_step(&self) -> f64 {
        let times = bounded(self.batches.iter().map(|batch| batch.train + batch.waited).collect());
        times.iter().sum::<f64>() / times.len().max(1) as f64
    }

    /// Share of the time in which the model had no batch.
    pub fn stall(&self) -> f64 {
        let waited: f64 = self.batches.iter().map(|batch| batch.waited).sum();
        (waited / (self.per_batch() * self.batches.len() as f64).max(1e-9)).clamp(0.0, 1.0)
    }

    /// Mean padded frames of a batch; `None` where unknown.
    pub fn padded(&self) -> Option<f64> {
        let known: Vec<f64> =
            self.batches.iter().filter_map(|b| b.padded.map(|p| p as f64)).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    }

    /// Mean utilisation of all devices of a role; for the host, of this process.
    pub fn utilisation(&self, role: DeviceRole) -> Option<f64> {
        let of = self.devices.iter().find(|device| {
            device.role == role && (role != DeviceRole::Host || device.device == "process")
        })?;
        of.utilisation.map(|figures| figures.mean)
    }
}

/// The same numbers in their order, the lowest and the highest tenth clamped
/// (winsorised): a pause of a shared machine is not caused by a setting.
pub fn bounded(mut values: Vec<f64>) -> Vec<f64> {
    let mut sorted = values.clone();
    sorted.sort_by(f64::total_cmp);
    let cut = sorted.len() / 10;
    if let (Some(&low), Some(&high)) = (sorted.get(cut), sorted.iter().rev().nth(cut)) {
        values.iter_mut().for_each(|value| *value = value.clamp(low, high));
    }
    values
}

fn batches(record: &RunRecord, first: u64, last: u64, steps: &[(Nanos, &Step)]) -> Vec<BatchCost> {
    let mut found: BTreeMap<u64, BatchCost> =
        (first..=last).map(|seq| (seq, BatchCost { seq, ..BatchCost::default() })).collect();
    for (_, step) in steps {
        if let Some(batch) = found.get_mut(&step.ticket.seq) {
            batch.items = step.items;
            batch.padded = step.shape.map(|[rows, _, frames]| u64::from(rows) * u64::from(frames));
        }
    }
    for stamped in &record.events {
        let Event::Span(span) = &stamped.event else { continue };
        let (Some(ticket), Some(phase)) = (span.ticket, Phase::of(&span.stage)) else { continue };
        let length = length(span);
        match (span.doing, phase) {
            (Doing::Busy, phase) => {
                if let Some(batch) = found.get_mut(&ticket.seq) {
                    *batch.phase_mut(phase) += length;
                }
            }
            // While the model waits, its ticket is still that of the previous batch.
            (Doing::Starved, Phase::Train) => {
                if let Some(batch) = found.get_mut(&(ticket.seq + 1)) {
                    batch.waited += length;
                }
            }
            _ => {}
        }
    }
    // A batch that was left out on the way was never trained on.
    found.into_values().filter(|batch| batch.train > 0.0).collect()
}

fn length(span: &Span) -> f64 {
    span.end.less(span.begin).seconds().0
}

#[derive(Default)]
struct Samples {
    utilisation: Stats,
    memory: Stats,
    total: Option<Bytes>,
    /// The sample nearest to the window, outside of it: how far, and its memory.
    nearest: Option<(Nanos, Bytes)>,
}

impl Samples {
    /// Memory changes slowly: a window shorter than the interval of samples has that of the nearest one.
    fn memory(&self) -> Option<Figures> {
        self.memory.figures().or_else(|| {
            let mut only = Stats::default();
            only.add(self.nearest?.1.0 as f64);
            only.figures()
        })
    }
}

fn devices(record: &RunRecord, from: Nanos, until: Nanos) -> Vec<DeviceFigures> {
    let mut found: BTreeMap<(DeviceRole, String), Samples> = BTreeMap::new();
    for stamped in &record.events {
        let Event::Device(sample) = &stamped.event else { continue };
        let samples = found.entry((sample.role, sample.device.to_string())).or_default();
        samples.total = sample.memory_total.or(samples.total);
        if (from..=until).contains(&stamped.at) {
            sample.utilisation.into_iter().for_each(|share| samples.utilisation.add(share.into()));
            sample.memory_used.into_iter().for_each(|used| samples.memory.add(used.0 as f64));
        } else if let Some(used) = sample.memory_used {
            let at = stamped.at;
            let far = if at < from { from.less(at) } else { at.less(until) };
            if samples.nearest.is_none_or(|(nearest, _)| far < nearest) {
                samples.nearest = Some((far, used));
            }
        }
    }
    let figures = |((role, device), samples): ((DeviceRole, String), Samples)| DeviceFigures {
        device,
        role,
        utilisation: samples.utilisation.figures(),
        memory: samples.memory(),
        memory_total: samples.total,
    };
    found.into_iter().map(figures).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use tandem_telemetry::event::{DeviceSample, RunHeader};
    use tandem_telemetry::{ReadNotes, Stamped};
    use tandem_units::{Epoch, Ticket};

    /// A run of made-up costs, one batch after the other.
    pub(crate) fn run(costs: &[BatchCost]) -> RunRecord {
        let mut events = Vec::new();
        let mut now = 0.0;
        let at = |seconds: f64| Nanos((seconds * 1e9) as u64);
        for cost in costs {
            let ticket = Ticket { epoch: Epoch(0), seq: cost.seq };
            let mut span = |stage: Phase, doing, ticket, begin: f64, length: f64| {
                let (begin, end) = (at(begin), at(begin + length));
                let stage = stage.name().into();
                let span = Span { stage, worker: 0, ticket: Some(ticket), doing, begin, end };
                events.push(Stamped { at: end, event: span.into() });
            };
            for phase in Phase::ALL {
                span(phase, Doing::Busy, ticket, now, cost.phase(phase));
            }
            if let Some(before) = cost.seq.checked_sub(1) {
                let before = Ticket { epoch: Epoch(0), seq: before };
                span(Phase::Train, Doing::Starved, before, now, cost.waited);
            }
            let took = cost.train + cost.waited;
            now += took;
            let step = Step {
                step: cost.seq + 1,
                ticket,
                took: at(took),
                waited: at(cost.waited),
                items: 2,
                frames: 10,
                shape: Some([2, 8, 100]),
                ..Step::default()
            };
            events.push(Stamped { at: at(now), event: step.into() });
        }
        let header = RunHeader::now("test", "0", serde_json::Value::Null);
        RunRecord { header, events, notes: ReadNotes::default() }
    }

    /// So many equal batches with these costs in milliseconds: load, preprocess, align, transfer,
    /// train, waited.
    pub(crate) fn equal(
        count: u64,
        [load, pre, align, transfer, train, waited]: [f64; 6],
    ) -> Vec<BatchCost> {
        let one = |seq| BatchCost {
            seq,
            padded: Some(200),
            items: 2,
            load: load / 1e3,
            preprocess: pre / 1e3,
            align: align / 1e3,
            transfer: transfer / 1e3,
            train: train / 1e3,
            waited: waited / 1e3,
        };
        (0..count).map(one).collect()
    }

    pub(crate) fn measured(costs: &[BatchCost]) -> Measured {
        Measured::of(&run(costs), 2, Path::new("made up")).unwrap()
    }

    #[test]
    fn every_phase_of_every_batch_comes_back() {
        let costs = equal(10, [3.0, 2.0, 5.0, 1.0, 20.0, 4.0]);
        let found = measured(&costs);
        assert_eq!(found.batches.len(), 8, "two are warm-up");
        for (phase, wanted) in Phase::ALL.into_iter().zip([0.003, 0.002, 0.005, 0.001, 0.020]) {
            assert!((found.mean(phase) - wanted).abs() < 1e-6, "{phase:?}");
        }
        assert!((found.step.mean - 0.024).abs() < 1e-6);
        assert!((found.stall() - 4.0 / 24.0).abs() < 1e-3, "{}", found.stall());
        assert_eq!(found.padded(), Some(200.0));
    }

    #[test]
    fn a_pause_of_the_machine_changes_nothing_usual() {
        let mut costs = equal(22, [3.0, 2.0, 5.0, 1.0, 20.0, 4.0]);
        costs[7].train = 3.0;
        let found = measured(&costs);
        assert!(found.mean(Phase::Train) > 0.1 && found.step.mean > 0.1);
        assert!((found.usual(Phase::Train) - 0.020).abs() < 2e-4);
        assert!((found.usual_step() - 0.024).abs() < 1e-6, "{}", found.usual_step());
    }

    #[test]
    fn a_run_shorter_than_the_interval_of_samples_has_the_memory_of_the_nearest_one() {
        let mut record = run(&equal(9, [1.0; 6]));
        let last = record.events.last().unwrap().at;
        for (at, mib) in [(Nanos(0), 1), (last + Nanos(5), 2), (last + Nanos(900), 3)] {
            let memory_used = Some(Bytes::mib(mib));
            let utilisation = Some(0.5);
            let device = DeviceSample::new("process".into(), DeviceRole::Host);
            let event = DeviceSample { memory_used, utilisation, ..device }.into();
            record.events.push(Stamped { at, event });
        }
        let found = Measured::of(&record, 2, Path::new("short")).unwrap().devices;
        let memory = found[0].memory.as_ref().map(|memory| memory.mean);
        assert_eq!(memory, Some(Bytes::mib(2).0 as f64));
        assert!(found[0].utilisation.is_none(), "a rate needs a sample within the run");
    }

    #[test]
    fn what_says_too_little_is_refused_with_a_way_out() {
        let few = equal(3, [1.0; 6]);
        let error = Measured::of(&run(&few), 2, Path::new("few")).unwrap_err();
        assert!(error.to_string().contains("3 steps") && error.hint().is_some(), "{error}");
        let mut record = run(&equal(9, [1.0; 6]));
        record.events.retain(|stamped| !matches!(stamped.event, Event::Span(_)));
        let error = Measured::of(&record, 2, Path::new("sums")).unwrap_err();
        assert!(matches!(error, MeasureError::NoSpans { .. }) && error.hint().is_some());
    }
}
