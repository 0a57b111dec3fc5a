//! What carries data between ranks: the trait, without any MPI type.
//!
//! In: [`Call`]s, started one after the other. Out: a [`Reply`] for each, when it is asked for. Nothing here
//! waits: the caller polls, and decides when it has waited for too long.

/// An operation that all ranks start in the same order, or a message between two of them.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// The sum over all ranks, on every rank.
    SumF32(Vec<f32>),
    SumF64(Vec<f64>),
    /// The bytes of rank `root`, on every rank. All ranks give as many bytes.
    Broadcast {
        root: usize,
        bytes: Vec<u8>,
    },
    /// A message to one rank. Done when the bytes may be forgotten.
    Send {
        to: usize,
        bytes: Vec<u8>,
    },
    /// The next message of one rank.
    Receive {
        from: usize,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    F32(Vec<f32>),
    F64(Vec<f64>),
    Bytes(Vec<u8>),
    Sent,
}

/// The number of a call that was started.
pub type CallId = u64;

/// Used by one thread at a time. The thread that made it calls [`Transport::finish`].
pub trait Transport: Send {
    fn rank(&self) -> usize;

    fn ranks(&self) -> usize;

    fn start(&mut self, call: Call) -> Result<CallId, TransportError>;

    /// The reply, if it is there. Never waits.
    fn poll(&mut self, call: CallId) -> Result<Option<Reply>, TransportError>;

    /// Carries on the calls that consist of several messages. Returns how many messages moved: a long call moves
    /// although it has no reply yet.
    fn advance(&mut self) -> Result<u64, TransportError> {
        Ok(0)
    }

    /// Sends a small message, unless the last one to this rank is still on its way.
    fn send_note(&mut self, to: usize, note: &[u8]) -> Result<Delivered, TransportError>;

    /// The next small message and its sender.
    fn take_note(&mut self) -> Result<Option<(usize, Vec<u8>)>, TransportError>;

    /// What is slower than it could be on this machine, and why.
    fn warning(&self) -> Option<String> {
        None
    }

    /// Called when all ranks have agreed to end. Without it, nothing is waited for at the end.
    fn finish(&mut self);
}

/// What became of a small message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// Handed to the network.
    Yes,
    /// The last one is still on its way; this one is dropped.
    Busy,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportError {
    pub call: &'static str,
    pub why: String,
}
