//! Which rank has been silent for too long.
//!
//! In: the moments at which ranks were heard, and the time. Out: a rank to give up, and why. Rank 0
//! watches all others, and all others watch rank 0. Time is observed time: a process that was stopped, or a
//! machine that slept, does not take its own absence for the silence of the others. No clock, no network.

use crate::identity::Identity;
use std::time::{Duration, Instant};

/// A longer time between two looks counts as this much.
const LONGEST_TICK: Duration = Duration::from_secs(1);

pub(crate) struct Watch {
    limit: Duration,
    /// Observed time.
    now: Duration,
    looked: Option<Instant>,
    peers: Vec<Peer>,
}

struct Peer {
    rank: usize,
    heard: Duration,
    /// Set where the same machine shows the process.
    process: Option<Identity>,
}

impl Watch {
    pub(crate) fn new(rank: usize, ranks: usize, limit: Duration) -> Watch {
        let watched = if rank == 0 { 1..ranks } else { 0..1 };
        let peer = |rank| Peer { rank, heard: Duration::ZERO, process: None };
        Watch { limit, now: Duration::ZERO, looked: None, peers: watched.map(peer).collect() }
    }

    /// The ranks to send heartbeats to.
    pub(crate) fn peers(&self) -> Vec<usize> {
        self.peers.iter().map(|peer| peer.rank).collect()
    }

    /// From now on, processes of this machine are watched directly.
    pub(crate) fn identify(&mut self, identities: &[Identity]) {
        for peer in &mut self.peers {
            let identity = identities.get(peer.rank).filter(|identity| identity.is_visible());
            peer.process = identity.cloned();
        }
    }

    pub(crate) fn heard(&mut self, rank: usize) {
        let now = self.now;
        self.peers.iter_mut().filter(|peer| peer.rank == rank).for_each(|peer| peer.heard = now);
    }

    /// The first rank that is lost, and why.
    pub(crate) fn look(&mut self, at: Instant) -> Option<(usize, String)> {
        let gap = self.looked.map_or(Duration::ZERO, |before| at.saturating_duration_since(before));
        self.looked = Some(at);
        self.now += gap.min(LONGEST_TICK);
        self.peers.iter().find_map(|peer| {
            if peer.process.as_ref().is_some_and(|process| !process.is_visible()) {
                return Some((peer.rank, "its process ended".to_string()));
            }
            let silent = self.now - peer.heard;
            let why = || format!("no heartbeat for {:.0} s", silent.as_secs_f64());
            (silent > self.limit).then(|| (peer.rank, why()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn rank_0_watches_all_and_the_others_watch_rank_0() {
        assert_eq!(Watch::new(0, 4, seconds(1)).peers(), [1, 2, 3]);
        assert_eq!(Watch::new(3, 4, seconds(1)).peers(), [0]);
    }

    #[test]
    fn a_silent_rank_is_lost_after_the_limit() {
        let (mut watch, start) = (Watch::new(0, 3, seconds(5)), Instant::now());
        for second in 0..=5 {
            assert_eq!(watch.look(start + seconds(second)), None);
            watch.heard(1);
        }
        let lost = watch.look(start + seconds(6));
        assert_eq!(lost, Some((2, "no heartbeat for 6 s".to_string())));
    }

    #[test]
    fn a_process_that_was_stopped_does_not_give_up_the_others() {
        let (mut watch, start) = (Watch::new(1, 2, seconds(5)), Instant::now());
        assert_eq!(watch.look(start), None);
        assert_eq!(watch.look(start + seconds(600)), None, "an absence of our own");
        watch.heard(0);
        assert_eq!(watch.look(start + seconds(601)), None);
    }
}
