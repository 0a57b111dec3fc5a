//! One validation by several ranks.
//!
//! In: the metrics of the batches that this rank measured. Out: on rank 0, those of all ranks in the order of the
//! batches. The mean over them has the same bits with any number of ranks. Parts travel as messages between the
//! validation threads, so the sums of the training threads do not wait for them. Every rank sends one part for each
//! validation, also where it failed or was stopped, so that parts never get out of step.

use crate::run::validator::BatchMetrics;
use serde::{Deserialize, Serialize};
use tandem_cluster::Cluster;

/// What a rank found for its share of the batches. `None`: the run is being stopped.
pub(crate) type OwnPart = Result<Option<Vec<BatchMetrics>>, String>;

/// What is known after all ranks were asked.
#[derive(Debug, PartialEq)]
pub(crate) enum Combined {
    /// The batches of all ranks, in order.
    All(Vec<BatchMetrics>),
    /// Rank 0 has them.
    OnRankZero,
    Stopped,
    Failed(String),
}

/// A message to rank 0.
#[derive(Serialize, Deserialize)]
struct Part {
    step: u64,
    result: PartResult,
}

#[derive(Serialize, Deserialize)]
enum PartResult {
    /// Floats as bits: text would round them.
    Measured(Vec<[u64; BatchMetrics::VALUES]>),
    Stopped,
    Failed(String),
}

/// Combines the parts; `cluster` is none in a process that trains alone. `total` is the number of batches of
/// all ranks.
pub(crate) fn combine(
    cluster: Option<&Cluster>,
    step: u64,
    total: usize,
    own: OwnPart,
) -> Combined {
    let Some(cluster) = cluster else { return in_order(vec![own], total) };
    if !cluster.is_first() {
        return send(cluster, step, own);
    }
    let mut parts = vec![own];
    for rank in 1..cluster.ranks() {
        let named = |why: String| format!("rank {rank} on host {}: {why}", cluster.host(rank));
        // Also after a failure: the next validation must not find this part.
        parts.push(receive(cluster, rank, step).map_err(named));
    }
    in_order(parts, total)
}

fn send(cluster: &Cluster, step: u64, own: OwnPart) -> Combined {
    let (result, here) = match own {
        Ok(Some(batches)) => {
            let bits = batches.iter().map(BatchMetrics::to_bits).collect();
            (PartResult::Measured(bits), Combined::OnRankZero)
        }
        Ok(None) => (PartResult::Stopped, Combined::Stopped),
        Err(why) => (PartResult::Failed(why.clone()), Combined::Failed(why)),
    };
    let sent = match serde_json::to_vec(&Part { step, result }) {
        Ok(bytes) => cluster.send(0, bytes).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    sent.map_or_else(Combined::Failed, |()| here)
}

fn receive(cluster: &Cluster, rank: usize, step: u64) -> OwnPart {
    let bytes = cluster.receive(rank).map_err(|error| error.to_string())?;
    let part: Part = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    if part.step != step {
        return Err(format!("it validated step {} instead of {step}", part.step));
    }
    match part.result {
        PartResult::Measured(bits) => {
            Ok(Some(bits.into_iter().map(BatchMetrics::from_bits).collect()))
        }
        PartResult::Stopped => Ok(None),
        PartResult::Failed(why) => Err(why),
    }
}

/// All parts as one list. A failure comes before a stop, and both before a result.
fn in_order(parts: Vec<OwnPart>, total: usize) -> Combined {
    let (mut all, mut stopped) = (Vec::with_capacity(total), false);
    for part in parts {
        match part {
            Ok(Some(batches)) => all.extend(batches),
            Ok(None) => stopped = true,
            Err(why) => return Combined::Failed(why),
        }
    }
    if stopped {
        return Combined::Stopped;
    }
    all.sort_by_key(|batch| batch.number);
    match all.iter().map(|batch| batch.number).eq(0..total as u64) {
        true => Combined::All(all),
        false => {
            let found = all.len();
            let why = format!(
                "the ranks measured {found} batches, but the set has {total}: a rank reads other rows"
            );
            Combined::Failed(why)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_cluster::ClusterOptions;
    use tandem_cluster::in_process::Hub;

    fn batch(number: u64) -> BatchMetrics {
        BatchMetrics { number, utterances: 2.0, prior: 0.1 * number as f64, ..Default::default() }
    }

    fn numbers(list: &[u64]) -> OwnPart {
        Ok(Some(list.iter().map(|number| batch(*number)).collect()))
    }

    /// What each rank knows after the parts were combined.
    fn combined(total: usize, parts: Vec<OwnPart>) -> Vec<Combined> {
        let hub = Hub::new(parts.len());
        std::thread::scope(|scope| {
            let ranks: Vec<_> = parts
                .into_iter()
                .enumerate()
                .map(|(rank, part)| {
                    let transport = hub.transport(rank);
                    scope.spawn(move || {
                        let options = ClusterOptions::default();
                        let cluster = Cluster::start(options, move || Ok(transport)).unwrap();
                        let found = combine(Some(&cluster), 7, total, part);
                        cluster.finish().unwrap();
                        found
                    })
                })
                .collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    }

    #[test]
    fn rank_zero_has_all_batches_in_order() {
        let found = combined(5, vec![numbers(&[0, 3]), numbers(&[1, 4]), numbers(&[2])]);
        assert_eq!(found[0], Combined::All((0..5).map(batch).collect()));
        assert_eq!(found[1..], [Combined::OnRankZero, Combined::OnRankZero]);
        assert_eq!(combine(None, 7, 2, numbers(&[0, 1])), Combined::All(vec![batch(0), batch(1)]));
    }

    #[test]
    fn a_rank_that_failed_or_was_stopped_is_known_to_rank_zero() {
        let found = combined(2, vec![numbers(&[0]), Err("no memory".into())]);
        let Combined::Failed(why) = &found[0] else { panic!("{found:?}") };
        assert!(why.starts_with("rank 1 on host ") && why.ends_with(": no memory"), "{why}");
        assert_eq!(combined(2, vec![numbers(&[0]), Ok(None)])[0], Combined::Stopped);
    }

    #[test]
    fn batches_that_are_missing_or_measured_twice_are_a_failure() {
        for second in [&[0][..], &[]] {
            let found = combined(2, vec![numbers(&[0]), numbers(second)]);
            assert!(matches!(found[0], Combined::Failed(_)), "{found:?}");
        }
    }
}
