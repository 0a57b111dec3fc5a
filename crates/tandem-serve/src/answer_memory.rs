//! Memory of answers that clients have not taken yet: bounded for each client and for all.
//!
//! In: a request that a worker begins. Out: a [`Reservation`] of what one client may hold, or none; parts that give their bytes
//! back when the connection is done with them. Never waits: a worker that cannot reserve refuses the request.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use tandem_units::Bytes;

/// What one client may leave untaken: 23 minutes of samples of 16 bit at 24 kHz.
pub const PER_CLIENT: Bytes = Bytes::mib(64);

/// The bound of all answers, and what is reserved of it.
#[derive(Clone, Debug)]
pub struct AnswerMemory {
    per_client: u64,
    total: u64,
    reserved: Arc<AtomicU64>,
}

impl AnswerMemory {
    pub fn new(per_client: Bytes, total: Bytes) -> AnswerMemory {
        let total = total.0.max(per_client.0);
        AnswerMemory { per_client: per_client.0, total, reserved: Arc::default() }
    }

    /// Room for one answer.
    pub fn reserve(&self) -> Option<Reservation> {
        let more = |reserved: u64| {
            let reserved = reserved + self.per_client;
            (reserved <= self.total).then_some(reserved)
        };
        self.reserved.fetch_update(Relaxed, Relaxed, more).ok()?;
        let answer = AnswerBytes { untaken: 0, under_way: true };
        Some(Reservation { memory: self.clone(), answer: Arc::new(Mutex::new(answer)) })
    }

    pub fn reserved(&self) -> Bytes {
        Bytes(self.reserved.load(Relaxed))
    }
}

#[derive(Debug)]
struct AnswerBytes {
    untaken: u64,
    /// Its worker still adds parts.
    under_way: bool,
}

/// The room of one answer while its worker runs; afterwards only what is untaken stays reserved.
#[derive(Debug)]
pub struct Reservation {
    memory: AnswerMemory,
    answer: Arc<Mutex<AnswerBytes>>,
}

impl Reservation {
    pub fn per_client(&self) -> Bytes {
        Bytes(self.memory.per_client)
    }

    /// Counts a part of this size; none where the client would hold too much.
    pub fn hold(&self, bytes: usize) -> Option<Held> {
        let bytes = bytes as u64;
        let mut answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        if answer.untaken + bytes > self.memory.per_client {
            return None;
        }
        answer.untaken += bytes;
        Some(Held {
            bytes,
            answer: Arc::clone(&self.answer),
            reserved: Arc::clone(&self.memory.reserved),
        })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        answer.under_way = false;
        self.memory.reserved.fetch_sub(self.memory.per_client - answer.untaken, Relaxed);
    }
}

/// The bytes of a part, until it is dropped.
#[derive(Debug)]
pub struct Held {
    bytes: u64,
    answer: Arc<Mutex<AnswerBytes>>,
    reserved: Arc<AtomicU64>,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        answer.untaken -= self.bytes;
        if !answer.under_way {
            self.reserved.fetch_sub(self.bytes, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_untaken_stays_reserved() {
        let memory = AnswerMemory::new(Bytes(100), Bytes(250));
        let (first, second) = (memory.reserve().unwrap(), memory.reserve().unwrap());
        assert!(memory.reserve().is_none(), "250 bytes are room for two answers");
        let parts = [first.hold(60).unwrap(), first.hold(40).unwrap()];
        assert!(first.hold(1).is_none(), "a client holds at most 100 bytes");
        drop((first, second));
        assert_eq!(memory.reserved(), Bytes(100));
        let [taken, _left] = parts;
        drop(taken);
        assert_eq!(memory.reserved(), Bytes(40));
    }

    #[test]
    fn a_client_that_takes_its_parts_may_have_a_long_answer() {
        let memory = AnswerMemory::new(Bytes(100), Bytes(100));
        let answer = memory.reserve().unwrap();
        for _ in 0..50 {
            drop(answer.hold(90).unwrap());
        }
        drop(answer);
        assert_eq!(memory.reserved(), Bytes(0));
    }
}
