//! Several processes ("ranks") that train one voice: data-parallel training.
//!
//! In: this rank's gradients. Out: the sum over all ranks, and what all ranks agree on. Every rank has the
//! same weights and goes through the same batch plan; each trains every `ranks`-th batch of it. Before each
//! optimizer step the ranks agree: whether all continue, how many utterances the step has, and now and then
//! whether their weights are equal. Then [`crate::run::all_reduce`] sums the gradients. No call here waits
//! for a lost rank: see `tandem_cluster`.

use crate::TrainError;
use crate::feed::align::snapshots::AlignerSnapshots;
use crate::feed::schedule::{Shard, Tickets};
use crate::run::all_reduce::AllReduce;
use crate::run::job::RunStart;
use crate::train_settings::TrainSettings;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tandem_cluster::{AGREED_VALUES, Cluster, Topic};
use tandem_model::gradients::{GradientReducer, GradientSum, ReduceError};
use tandem_model::network::voice::Voice;
use tandem_model::weights::{weights_of, with_weights};
use tandem_model::{Device, Module, Tensor, TensorData};
use tandem_telemetry::clock::Nanos;
use tandem_telemetry::event::RankInterval;
use tandem_units::Ticket;
use xxhash_rust::xxh3::Xxh3;

/// Steps between two comparisons of the weights, after that of the first step.
const COMPARE_EVERY: u64 = 100;
/// Time between two events about the ranks.
const RECORD_EVERY: Duration = Duration::from_secs(1);
/// Where the numbers of an agreement are: what each rank brings to the step, and what it tells. A checksum takes two.
const UTTERANCES: usize = 0;
const FRAMES: usize = 1;
const BATCHES: usize = 2;
const VOTE: usize = 3;
const BUSY: usize = 4;
const STARVED: usize = 5;
const CHECKSUM: usize = 6;
const VALIDATOR_FULL: usize = 8;
const REDUCED: usize = 9;

/// What a rank wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vote {
    Continue,
    /// The user stops the run.
    Interrupted,
    /// Validation stopped getting better.
    NoProgress,
}

/// What a rank brings to a step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Contribution {
    pub utterances: usize,
    pub frames: u64,
    pub batches: u64,
    /// From the end of the last step to the end of this rank's last batch.
    pub busy: Duration,
    /// The part of it in which there was no batch.
    pub starved: Duration,
    /// Its validator has no room for this step.
    pub validator_full: bool,
}

/// What all ranks know about a step before it happens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Agreed {
    pub utterances: usize,
    pub frames: u64,
    pub batches: u64,
    /// Seconds at work, by rank.
    pub busy: Vec<f64>,
    /// Seconds without a batch, by rank.
    pub starved: Vec<f64>,
    /// Seconds in which gradients of the step before were summed, by rank.
    pub reduced: Vec<f64>,
    /// The validator of a rank has no room for this step: no rank validates it.
    pub validator_full: bool,
}

/// How the ranks continue.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    Step(Agreed),
    /// All ranks end after the last complete step.
    End(Vote),
}

/// This rank among the others.
pub struct Ranks {
    cluster: Cluster,
    /// All batches, those of other ranks included.
    plan: Tickets,
    shard: Shard,
    all_reduce: AllReduce,
    agreed: Agreed,
    /// Whether the weights were compared since the start.
    compared: bool,
    /// Of the last step.
    reduced_in: Duration,
    interval: Interval,
}

/// Times of the steps since the last event.
#[derive(Default)]
struct Interval {
    steps: u64,
    took: Duration,
    busy: Vec<f64>,
    starved: Vec<f64>,
    reduced: Vec<f64>,
    slowest: f64,
    slowest_in: Vec<u64>,
    reduce: Duration,
}

impl Ranks {
    pub fn new(cluster: Cluster, plan: Tickets, voice: &Voice, device: &Device) -> Ranks {
        let all_reduce = AllReduce::new(cluster.clone(), voice, device);
        let shard = Shard { rank: cluster.rank(), ranks: cluster.ranks() };
        let (agreed, reduced_in, interval) =
            (Agreed::default(), Duration::ZERO, Interval::default());
        let compared = false;
        Ranks { cluster, plan, shard, all_reduce, agreed, compared, reduced_in, interval }
    }

    /// Notes the times of a step. Now and then, returns those of all steps since the last time.
    pub fn after_step(&mut self, step: u64, took: Duration) -> Option<RankInterval> {
        let interval = &mut self.interval;
        interval.steps += 1;
        interval.took += took;
        interval.reduce += self.reduced_in;
        let add = |sums: &mut Vec<f64>, times: &[f64]| {
            sums.resize(times.len(), 0.0);
            sums.iter_mut().zip(times).for_each(|(sum, time)| *sum += time);
        };
        add(&mut interval.busy, &self.agreed.busy);
        add(&mut interval.starved, &self.agreed.starved);
        add(&mut interval.reduced, &self.agreed.reduced);
        let whole = self.agreed.busy.iter().zip(&self.agreed.starved).map(|(a, b)| a + b);
        if let Some((rank, time)) = whole.enumerate().max_by(|a, b| a.1.total_cmp(&b.1)) {
            interval.slowest += time;
            interval.slowest_in.resize(self.shard.ranks, 0);
            interval.slowest_in[rank] += 1;
        }
        if interval.took < RECORD_EVERY {
            return None;
        }
        self.take_interval(step)
    }

    /// The times since the last event, at the end of a run.
    pub fn take_interval(&mut self, step: u64) -> Option<RankInterval> {
        let done = std::mem::take(&mut self.interval);
        let nanos = |seconds: &f64| Nanos::from(Duration::from_secs_f64(seconds.max(0.0)));
        (done.steps > 0).then(|| RankInterval {
            step,
            steps: done.steps,
            took: done.took.into(),
            busy: done.busy.iter().map(nanos).collect(),
            starved: done.starved.iter().map(nanos).collect(),
            slowest: nanos(&done.slowest),
            reduce: done.reduce.into(),
            reduces: done.reduced.iter().map(nanos).collect(),
            slowest_in: done.slowest_in,
        })
    }

    /// Whether all ranks can validate the step that they agreed on.
    pub fn can_validate(&self) -> bool {
        !self.agreed.validator_full
    }

    /// The next batch of the plan, and whether this rank trains it. None at the end of the data.
    pub fn next_batch(&mut self) -> Option<(Ticket, bool)> {
        let ticket = self.plan.next_ticket()?;
        Some((ticket, self.shard.has(ticket.seq)))
    }

    /// Called by every rank before each step, and by a rank that wants to end.
    pub fn agree(
        &mut self,
        vote: Vote,
        brought: Contribution,
        voice: &Voice,
        step: u64,
    ) -> Result<Decision, TrainError> {
        let mut own = [0.0; AGREED_VALUES];
        own[UTTERANCES] = brought.utterances as f64;
        own[FRAMES] = brought.frames as f64;
        own[BATCHES] = brought.batches as f64;
        own[VOTE] = f64::from(vote.code());
        (own[BUSY], own[STARVED]) = (brought.busy.as_secs_f64(), brought.starved.as_secs_f64());
        if !std::mem::replace(&mut self.compared, true) || step.is_multiple_of(COMPARE_EVERY) {
            let sum = checksum(voice);
            own[CHECKSUM] = (sum >> 32) as f64;
            own[CHECKSUM + 1] = (sum & u64::from(u32::MAX)) as f64;
        }
        own[VALIDATOR_FULL] = f64::from(u8::from(brought.validator_full));
        own[REDUCED] = self.reduced_in.as_secs_f64();
        let all = self.cluster.agree(Topic::Step { step }, own)?;
        if let Some(vote) = all.iter().map(|told| Vote::from_code(told[VOTE])).max() {
            match vote {
                Vote::Continue => {}
                ending => return Ok(Decision::End(ending)),
            }
        }
        let checksum = |rank: &[f64; AGREED_VALUES]| [rank[CHECKSUM], rank[CHECKSUM + 1]];
        if let Some(rank) = all.iter().position(|rank| checksum(rank) != checksum(&all[0])) {
            let host = self.cluster.host(rank).to_string();
            return Err(TrainError::Drift { rank, host, step: step - 1 });
        }
        let sum = |value: usize| all.iter().map(|told| told[value]).sum::<f64>();
        let each = |value: usize| all.iter().map(|told| told[value]).collect();
        self.agreed = Agreed {
            utterances: sum(UTTERANCES) as usize,
            frames: sum(FRAMES) as u64,
            batches: sum(BATCHES) as u64,
            busy: each(BUSY),
            starved: each(STARVED),
            reduced: each(REDUCED),
            validator_full: sum(VALIDATOR_FULL) > 0.0,
        };
        Ok(Decision::Step(self.agreed.clone()))
    }
}

impl GradientReducer for Ranks {
    fn reduce(&mut self, gradients: &mut GradientSum) -> Result<(), ReduceError> {
        let from = Instant::now();
        // All batches of the step were skipped, on every rank.
        if self.agreed.batches == 0 {
            self.reduced_in = Duration::ZERO;
            return Ok(());
        }
        let own = std::mem::take(gradients);
        *gradients = self.all_reduce.sum(own, self.agreed.utterances)?;
        self.reduced_in = from.elapsed();
        Ok(())
    }
}

impl Vote {
    fn code(self) -> u8 {
        match self {
            Vote::Continue => 0,
            Vote::NoProgress => 1,
            Vote::Interrupted => 2,
        }
    }

    fn from_code(code: f64) -> Vote {
        match code as u8 {
            0 => Vote::Continue,
            1 => Vote::NoProgress,
            _ => Vote::Interrupted,
        }
    }
}

impl PartialOrd for Vote {
    fn partial_cmp(&self, other: &Vote) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// A stop by the user comes before everything else.
impl Ord for Vote {
    fn cmp(&self, other: &Vote) -> std::cmp::Ordering {
        self.code().cmp(&other.code())
    }
}

/// Makes the start equal on all ranks: fails where corpus, settings or checkpoint differ, and passes the
/// weights of rank 0 to the others.
pub fn synchronize(
    cluster: &Cluster,
    start: &mut RunStart,
    settings: &TrainSettings,
) -> Result<(), TrainError> {
    let json = |value: serde_json::Result<String>| value.map_err(TrainError::Settings);
    cluster.check_equal(&start.train_state.step.to_string(), "another checkpoint")?;
    let corpus = json(serde_json::to_string(&(&start.state.corpus, start.state.position)))?;
    cluster.check_equal(&corpus, "another corpus or other batches")?;
    let plain = TrainSettings { checkpoint_dir: None, ..settings.clone() };
    cluster.check_equal(&json(serde_json::to_string(&plain))?, "other settings")?;
    cluster.check_equal(&json(serde_json::to_string(&*start.document))?, "another voice")?;
    let voice = &start.train_state.voice;
    let mut bytes = Vec::new();
    if cluster.is_first() {
        for weight in weights_of(voice) {
            bytes.extend_from_slice(weight.values.into_data().as_bytes());
        }
    }
    let bytes = cluster.broadcast(0, bytes)?;
    if cluster.is_first() {
        return Ok(());
    }
    let floats =
        bytes.chunks_exact(4).map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]));
    let floats: Vec<f32> = floats.collect();
    let mut rest = &floats[..];
    let mut tensors = Vec::new();
    for weight in weights_of(voice) {
        let (values, after) = rest.split_at(weight.shape.iter().product());
        rest = after;
        let data = TensorData::new(values.to_vec(), [values.len()]);
        tensors.push(Tensor::from_data(data, &weight.values.device()));
    }
    start.train_state.voice = with_weights(voice.clone(), tensors);
    if start.train_state.step == 0 {
        let first = BTreeMap::from([(0, start.train_state.voice.encoder.valid())]);
        start.snapshots = AlignerSnapshots::new(settings.alignment, first);
    }
    Ok(())
}

fn checksum(voice: &Voice) -> u64 {
    let mut hash = Xxh3::new();
    for weight in weights_of(voice) {
        hash.update(weight.values.into_data().as_bytes());
    }
    hash.digest()
}
