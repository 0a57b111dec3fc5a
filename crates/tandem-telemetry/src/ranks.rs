//! The ranks of a data-parallel run, side by side: who needs how long, and what the sums of gradients cost.
//!
//! In: [`RankInterval`]s, which any rank records about all of them, and the records of the other ranks where the
//! directory of the run has them. Out: [`RankReport`], and a verdict where communication or one rank limits the run.
//! A step of all ranks takes as long as that of the slowest, plus the sum of the gradients.

use crate::clock::Nanos;
use crate::event::{DeviceRole, Name, RunHeader, RunOutcome};
use crate::rules::TOO_MUCH_FOR_RANKS;
use crate::summary::Summary;
use crate::verdict::{
    Cause, RankFacts, StageLoad, TRAIN, Verdict, VerdictFacts, slowest_stage, stage_loads,
};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What all ranks did since the last such event, about once a second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankInterval {
    /// The last step of the interval.
    pub step: u64,
    /// How many steps it has.
    pub steps: u64,
    /// Time of these steps.
    pub took: Nanos,
    /// Time from the start of a step to the end of its last batch, without waiting for data, by rank.
    pub busy: Vec<Nanos>,
    /// Time in which the training thread had no batch, by rank.
    pub starved: Vec<Nanos>,
    /// Time of the slowest rank of each step.
    pub slowest: Nanos,
    /// Time in which the rank that records this summed gradients.
    pub reduce: Nanos,
    /// The same of every rank, up to the step before the last.
    #[serde(default)]
    pub reduces: Vec<Nanos>,
    /// Steps in which this rank was the slowest, by rank.
    #[serde(default)]
    pub slowest_in: Vec<u64>,
}

/// All intervals in sums, in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RankSums {
    pub steps: u64,
    pub took: f64,
    pub busy: Vec<f64>,
    pub starved: Vec<f64>,
    pub slowest: f64,
    pub reduce: f64,
    pub reduces: Vec<f64>,
    pub slowest_in: Vec<u64>,
}

impl RankSums {
    pub fn per_step(&self, seconds: f64) -> f64 {
        seconds / self.steps.max(1) as f64
    }

    pub fn add(&mut self, interval: &RankInterval) {
        let add = |sums: &mut Vec<f64>, times: &[Nanos]| {
            sums.resize(sums.len().max(times.len()), 0.0);
            sums.iter_mut().zip(times).for_each(|(sum, time)| *sum += time.seconds().0);
        };
        self.steps += interval.steps;
        self.took += interval.took.seconds().0;
        add(&mut self.busy, &interval.busy);
        add(&mut self.starved, &interval.starved);
        self.slowest += interval.slowest.seconds().0;
        self.reduce += interval.reduce.seconds().0;
        add(&mut self.reduces, &interval.reduces);
        self.slowest_in.resize(self.slowest_in.len().max(interval.slowest_in.len()), 0);
        let counts = self.slowest_in.iter_mut().zip(&interval.slowest_in);
        counts.for_each(|(sum, count)| *sum += count);
    }
}

/// The ranks of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankReport {
    pub ranks: Vec<RankLoad>,
    /// Share of the time in which gradients are summed.
    pub reduce: f64,
    /// Share of the time in which ranks wait for the slowest of the step, whose batch is longer.
    pub uneven: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankLoad {
    pub host: String,
    /// Seconds at work in a step.
    pub busy: f64,
    /// Seconds of a step without a batch.
    pub starved: f64,
    /// Seconds of a step in which it summed gradients.
    #[serde(default)]
    pub reduce: f64,
    /// Share of the steps in which it was the slowest.
    #[serde(default)]
    pub slowest_in: f64,
    /// What its own record adds; none where that record was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<RankRecord>,
}

/// What only the record of a rank knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankRecord {
    /// The slowest of its stages before the model.
    pub stage: Option<StageLoad>,
    /// Share of the time in which its model device was busy; that of its process on the CPU.
    pub utilisation: Option<f64>,
    pub skipped: u64,
    pub warnings: u64,
    /// How it ended; none while it runs, and after a kill.
    pub outcome: Option<RunOutcome>,
}

impl RankRecord {
    fn of(summary: &Summary) -> RankRecord {
        let mut stages = stage_loads(summary);
        stages.retain(|load| load.stage != TRAIN);
        let device = |wanted: DeviceRole, name: Option<&str>| {
            let is_it = |(role, found): &(DeviceRole, Name)| {
                *role == wanted && name.is_none_or(|name| **found == *name)
            };
            summary.devices.iter().find(|(key, _)| is_it(key))
        };
        let model = device(DeviceRole::Model, None);
        let model = model.or_else(|| device(DeviceRole::Host, Some("process")));
        RankRecord {
            stage: slowest_stage(&stages).cloned(),
            utilisation: model
                .and_then(|(_, sums)| sums.utilisation.figures())
                .map(|figures| figures.mean),
            skipped: summary.skips.count,
            warnings: summary.warning_count,
            outcome: summary.ending.as_ref().map(|ending| ending.outcome),
        }
    }
}

/// The directories in which the other ranks of a run write their records, with their ranks. Empty for a run of one
/// process, and for the record of another rank than the first.
pub fn rank_directories(run: &Path, header: Option<&RunHeader>) -> Vec<(usize, PathBuf)> {
    let Some(ranks) = header.map(|header| &header.settings["ranks"]) else { return Vec::new() };
    if ranks["rank"].as_u64() != Some(0) {
        return Vec::new();
    }
    let count = ranks["ranks"].as_u64().unwrap_or(0) as usize;
    (1..count).map(|rank| (rank, run.join("ranks").join(rank.to_string()))).collect()
}

/// Whether two records are of the same job: a directory may hold records of an earlier one with more ranks.
pub fn same_job(one: Option<&RunHeader>, other: Option<&RunHeader>) -> bool {
    let job =
        |header: Option<&RunHeader>| header.map(|header| header.settings["ranks"]["job"].clone());
    job(one) == job(other)
}

impl RankLoad {
    /// Seconds of a step until its last batch is trained.
    pub fn per_step(&self) -> f64 {
        self.busy + self.starved
    }
}

/// None for a run of one process.
pub fn rank_report(summary: &Summary) -> Option<RankReport> {
    let sums = summary.ranks.as_ref().filter(|sums| sums.steps > 0 && sums.took > 0.0)?;
    let per_step = |seconds: f64| sums.per_step(seconds);
    let ranks: Vec<RankLoad> = (0..sums.busy.len())
        .map(|rank| RankLoad {
            host: host_of(summary, rank),
            busy: per_step(sums.busy[rank]),
            starved: per_step(sums.starved.get(rank).copied().unwrap_or(0.0)),
            reduce: per_step(sums.reduces.get(rank).copied().unwrap_or(0.0)),
            slowest_in: per_step(sums.slowest_in.get(rank).map_or(0.0, |count| *count as f64)),
            record: record_of(summary, rank).map(RankRecord::of),
        })
        .collect();
    let mean = ranks.iter().map(RankLoad::per_step).sum::<f64>() / ranks.len().max(1) as f64;
    let uneven = (per_step(sums.slowest) - mean).max(0.0) / per_step(sums.took);
    Some(RankReport { ranks, reduce: sums.reduce / sums.took, uneven })
}

/// The record of a rank. That of rank 0 counts only where those of others were read, too.
fn record_of(summary: &Summary, rank: usize) -> Option<&Summary> {
    match rank {
        0 => (!summary.other_ranks.is_empty()).then_some(summary),
        _ => summary.other_ranks.get(&rank),
    }
}

/// The host of a rank, as the header of the record names it.
pub(crate) fn host_of(summary: &Summary, rank: usize) -> String {
    let hosts = summary.header.as_ref().map(|header| &header.settings["ranks"]["hosts"]);
    hosts.and_then(|hosts| hosts[rank].as_str()).unwrap_or("unknown").to_string()
}

/// The verdict where ranks limit the run: communication, or one slow rank. None otherwise.
pub(crate) fn rank_verdict(summary: &Summary, facts: VerdictFacts) -> Option<Verdict> {
    let report = rank_report(summary)?;
    let sums = summary.ranks.as_ref()?;
    let step = sums.per_step(sums.took);
    let mut order: Vec<usize> = (0..report.ranks.len()).collect();
    order.sort_by(|a, b| report.ranks[*b].per_step().total_cmp(&report.ranks[*a].per_step()));
    let (&slow, &next) = (order.first()?, order.get(1)?);
    let (slowest, second) = (&report.ranks[slow], &report.ranks[next]);
    let straggler = (slowest.per_step() - second.per_step()) / step;
    let stage = slowest.record.as_ref().and_then(|record| record.stage.as_ref());
    let ranks = RankFacts {
        ranks: report.ranks.len(),
        slow,
        host: slowest.host.clone(),
        per_step: slowest.per_step(),
        next: second.per_step(),
        waits: slowest.starved > slowest.busy,
        stage: stage.map(StageLoad::need),
    };
    let facts = VerdictFacts { ranks: Some(ranks), ..facts };
    if report.reduce > TOO_MUCH_FOR_RANKS && report.reduce >= straggler {
        return Some(Verdict::new(Cause::Communication, None, [Some(report.reduce), None], facts));
    }
    if straggler <= TOO_MUCH_FOR_RANKS {
        return None;
    }
    let stage = Some(format!("rank {slow} ({})", slowest.host).into());
    Some(Verdict::new(Cause::Rank, stage, [Some(straggler), None], facts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::RunHeader;

    /// A run of two ranks with steps of one second.
    fn summary(busy: [u64; 2], starved: [u64; 2], reduce: u64) -> Summary {
        let nanos = |milliseconds: u64| Nanos(milliseconds * 1_000_000);
        let hosts = serde_json::json!({"ranks": {"hosts": ["a", "b"]}});
        let mut summary =
            Summary { header: Some(RunHeader::now("test", "0", hosts)), ..Summary::default() };
        let slowest = (busy[0] + starved[0]).max(busy[1] + starved[1]);
        summary.ranks.get_or_insert_default().add(&RankInterval {
            step: 10,
            steps: 1,
            took: nanos(1000),
            busy: busy.map(nanos).to_vec(),
            starved: starved.map(nanos).to_vec(),
            slowest: nanos(slowest),
            reduce: nanos(reduce),
            reduces: vec![nanos(reduce), nanos(2 * reduce)],
            slowest_in: vec![0, 1],
        });
        summary
    }

    #[track_caller]
    fn check(summary: &Summary, expected: Option<(Cause, f64, &str)>) {
        let found = rank_verdict(summary, VerdictFacts::default());
        match (found, expected) {
            (None, None) => {}
            (Some(found), Some((cause, cost, words))) => {
                assert_eq!(found.cause, cause);
                assert!((found.cost - cost).abs() < 1e-9, "{}", found.cost);
                assert!(found.sentence.contains(words), "{}", found.sentence);
            }
            (found, _) => panic!("{found:?}"),
        }
    }

    #[test]
    fn equal_ranks_and_a_short_sum_are_no_bottleneck() {
        check(&summary([950, 940], [0, 0], 50), None);
        check(&Summary::default(), None);
    }

    #[test]
    fn a_long_sum_of_gradients_is_named_with_its_share() {
        let found = summary([690, 700], [0, 0], 300);
        check(&found, Some((Cause::Communication, 0.3, "takes 30.0 % of the time")));
    }

    #[test]
    fn a_slow_rank_is_named_with_its_host_and_what_it_costs() {
        let slow = summary([500, 900], [0, 0], 50);
        check(&slow, Some((Cause::Rank, 0.4, "rank 1 on host b is the bottleneck")));
        let starved = summary([200, 500], [700, 0], 50);
        check(&starved, Some((Cause::Rank, 0.4, "rank 0 on host a is the bottleneck")));
        check(&starved, Some((Cause::Rank, 0.4, "most of it waiting for data")));
    }

    #[test]
    fn the_records_of_other_ranks_name_the_stage_that_holds_a_slow_rank_back() {
        use crate::event::{Skipped, StageInterval, Stamped, Step};
        let mut found = summary([500, 100], [0, 800], 50);
        assert!(rank_report(&found).unwrap().ranks.iter().all(|rank| rank.record.is_none()));
        let mut other = Summary::default();
        let mut add = |event| other.add(&Stamped { at: Nanos(1), event });
        let took = Nanos::millis(1000);
        add(Step { step: 1, took, waited: Nanos::millis(800), ..Step::default() }.into());
        let (interval, busy) = (took, Nanos::millis(850));
        let (starved, blocked) = (Nanos(0), Nanos(0));
        for (stage, busy) in [("load", busy), ("align", Nanos::millis(20))] {
            let (stage, workers, items) = (stage.into(), 1, 1);
            add(StageInterval { stage, workers, interval, busy, starved, blocked, items }.into());
        }
        let why = "cut off".to_string();
        add(Skipped { ticket: None, id: Some("a".into()), stage: "load".into(), why }.into());
        found.other_ranks.insert(1, other);
        let report = rank_report(&found).unwrap();
        let record = report.ranks[1].record.as_ref().unwrap();
        assert_eq!(record.stage.as_ref().unwrap().stage, "load");
        assert_eq!((record.skipped, record.warnings), (1, 0));
        assert!(report.ranks[0].record.is_some());
        let words = "most of it waiting for data (its `load` needs 0.850 s)";
        check(&found, Some((Cause::Rank, 0.4, words)));
    }

    #[test]
    fn the_report_has_every_rank() {
        let report = rank_report(&summary([500, 900], [100, 0], 50)).unwrap();
        assert_eq!(report.ranks.len(), 2);
        assert_eq!((report.ranks[1].host.as_str(), report.ranks[1].busy), ("b", 0.9));
        assert_eq!(report.ranks[0].starved, 0.1);
        assert_eq!((report.ranks[1].reduce, report.ranks[1].slowest_in), (0.1, 1.0));
        assert!((report.reduce - 0.05).abs() < 1e-9);
        assert!((report.uneven - 0.15).abs() < 1e-9, "{}", report.uneven);
    }
}
