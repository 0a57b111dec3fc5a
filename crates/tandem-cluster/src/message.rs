//! Small messages between rank 0 and every other rank.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Message {
    /// A heartbeat, with how far the sender has come: the number rises while it makes progress.
    Alive { progress: u64 },
    /// A rank ended with an error.
    Stopped { rank: usize, why: String },
    /// A rank is lost. From rank 0 only.
    Lost { rank: usize, why: String },
    /// Rank 0 has saved everything: a rank that waits to end may end.
    Released,
}

/// Characters of a reason that travel: a note must fit into one packet.
const LONGEST_WHY: usize = 600;

impl Message {
    pub(crate) fn stopped(rank: usize, why: &str) -> Message {
        Message::Stopped { rank, why: why.chars().take(LONGEST_WHY).collect() }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Message> {
        serde_json::from_slice(bytes).ok()
    }
}
