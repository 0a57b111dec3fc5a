//! The calls of a rank that are under way, and the heartbeats of all ranks.
//!
//! In: [`Call`]s. Out: replies, or one error for all of them. Nothing here waits: one thread at a time takes turns
//! ([`crate::shared`]), and each turn polls the calls, sends and receives heartbeats, and gives up when a rank is
//! lost. A call that was given up is never touched again: its memory stays with the transport until the process ends.

use crate::cluster::ClusterOptions;
use crate::error::ClusterError;
use crate::identity::Identity;
use crate::message::Message;
use crate::transport::{Call, CallId, Delivered, Reply, Transport, TransportError};
use crate::watch::Watch;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

/// Time between two looks at notes and processes.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(20);
const SIGN_EVERY: Duration = Duration::from_millis(500);
/// A call is polled without sleep for this long. Most are over by then.
const SPIN: Duration = Duration::from_millis(2);
const POLL_EVERY: Duration = Duration::from_micros(100);
/// The longest that the end of a failed rank waits for notes to leave.
const GOODBYE: Duration = Duration::from_secs(1);
/// The longest that a failed rank waits for rank 0, whatever progress that makes.
const LONGEST_GOODBYE: Duration = Duration::from_secs(30 * 60);

pub(crate) type ReplySender = SyncSender<Result<Reply, ClusterError>>;

/// How the job ends on this rank.
pub(crate) enum Ending {
    /// All ranks end well. Answered when the transport has ended.
    Finish { done: SyncSender<()> },
    /// This rank ends with an error. Answered when the process may end.
    Stop { why: String, done: SyncSender<()> },
}

pub(crate) struct Service {
    transport: Box<dyn Transport>,
    options: ClusterOptions,
    identities: Vec<Identity>,
    watch: Watch,
    active: Vec<(CallId, ReplySender)>,
    /// Calls whose transport reported an error: the watch will name the rank.
    broken: Vec<ReplySender>,
    fault: Option<(TransportError, Instant)>,
    failed: Option<ClusterError>,
    outbox: BTreeMap<usize, VecDeque<Message>>,
    released: bool,
    /// Raised by this process while it makes progress.
    pub(crate) own_progress: Arc<AtomicU64>,
    /// The progress of rank 0, and when it was last seen to rise.
    root_progress: (u64, Instant),
    /// What the thread of the service does next.
    pub(crate) ending: Option<Ending>,
    /// No call is possible any more.
    ended: bool,
    looked: Instant,
    signed: Option<Instant>,
    progressed: Instant,
}

impl Service {
    pub(crate) fn new(transport: Box<dyn Transport>, options: ClusterOptions) -> Service {
        let (rank, ranks) = (transport.rank(), transport.ranks());
        let watch = Watch::new(rank, ranks, options.silence_limit);
        let identity = |_| Identity { host: "unknown".into(), ..Identity::default() };
        Service {
            identities: (0..ranks).map(identity).collect(),
            outbox: watch.peers().into_iter().map(|peer| (peer, VecDeque::new())).collect(),
            watch,
            transport,
            options,
            active: Vec::new(),
            broken: Vec::new(),
            fault: None,
            failed: None,
            released: false,
            own_progress: Arc::default(),
            root_progress: (0, Instant::now()),
            ending: None,
            ended: false,
            looked: Instant::now(),
            signed: None,
            progressed: Instant::now(),
        }
    }

    /// Starts a call. Its reply comes with a later turn.
    pub(crate) fn start(&mut self, call: Call, reply: ReplySender) {
        if let Some(error) = &self.failed {
            let _ = reply.send(Err(error.clone()));
            return;
        }
        // Without a sender, the caller learns that there is nobody to answer.
        if self.ended {
            return;
        }
        self.progressed = Instant::now();
        match self.transport.start(call) {
            Ok(id) => self.active.push((id, reply)),
            Err(error) => self.note_fault(error, reply),
        }
    }

    pub(crate) fn identify(&mut self, identities: Vec<Identity>) {
        self.watch.identify(&identities);
        self.identities = identities;
    }

    /// Whether no call is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.active.is_empty()
    }

    /// Carries on what is under way, and looks after the ranks.
    pub(crate) fn turn(&mut self) {
        self.poll();
        self.look();
    }

    /// How long to sleep before the next turn; none while a reply is expected soon. A long wait is for a slower rank,
    /// and leaves the core to others.
    pub(crate) fn pause(&self) -> Option<Duration> {
        (self.progressed.elapsed() >= SPIN).then_some(POLL_EVERY)
    }

    fn poll(&mut self) {
        if self.active.is_empty() || self.failed.is_some() {
            return;
        }
        if self.fault.is_none() {
            match self.transport.advance() {
                Ok(0) => {}
                Ok(_) => self.progressed = Instant::now(),
                Err(error) => self.fault = Some((error, Instant::now())),
            }
        }
        let mut index = 0;
        while index < self.active.len() && self.failed.is_none() {
            match self.transport.poll(self.active[index].0) {
                Ok(None) => index += 1,
                Ok(Some(answer)) => {
                    let (_, reply) = self.active.remove(index);
                    self.progressed = Instant::now();
                    // The caller may have given up.
                    let _ = reply.send(Ok(answer));
                }
                Err(error) => {
                    let (_, reply) = self.active.remove(index);
                    self.note_fault(error, reply);
                }
            }
        }
    }

    /// An error of the network: which rank it is shows by its silence.
    fn note_fault(&mut self, error: TransportError, reply: ReplySender) {
        self.broken.push(reply);
        self.fault.get_or_insert((error, Instant::now()));
    }

    fn look(&mut self) {
        if self.looked.elapsed() < LOOK_EVERY {
            return;
        }
        self.looked = Instant::now();
        self.take_notes();
        self.send_notes();
        if let Some((rank, why)) = self.watch.look(self.looked)
            && self.failed.is_none()
        {
            self.give_up(rank, why);
        }
        if let Some((error, since)) = &self.fault
            && since.elapsed() > self.options.silence_limit
        {
            let TransportError { call, why } = error.clone();
            self.fail(ClusterError::Mpi { call, why });
        }
    }

    fn take_notes(&mut self) {
        while let Ok(Some((sender, bytes))) = self.transport.take_note() {
            self.watch.heard(sender);
            match Message::decode(&bytes) {
                Some(Message::Stopped { rank, why }) => self.peer_stopped(rank, why),
                Some(Message::Lost { rank, why }) if rank == self.transport.rank() => {
                    self.fail(ClusterError::GivenUp { rank, why });
                }
                Some(Message::Lost { rank, why }) => self.give_up(rank, why),
                Some(Message::Released) => self.released = true,
                Some(Message::Alive { progress }) if sender == 0 => {
                    if progress > self.root_progress.0 {
                        self.root_progress = (progress, Instant::now());
                    }
                }
                Some(Message::Alive { .. }) | None => {}
            }
        }
    }

    fn send_notes(&mut self) {
        let sign_due = self.signed.is_none_or(|at| at.elapsed() >= SIGN_EVERY);
        let progress = self.own_progress.load(Ordering::Relaxed);
        for (&peer, notes) in &mut self.outbox {
            let sign = sign_due.then_some(Message::Alive { progress });
            let note = notes.front().cloned().or(sign);
            let Some(note) = note else { continue };
            // A network that does not take it shows by the silence of the other side.
            let sent = self.transport.send_note(peer, &note.encode());
            if sent == Ok(Delivered::Yes) {
                notes.pop_front();
            }
        }
        if sign_due {
            self.signed = Some(Instant::now());
        }
    }

    fn give_up(&mut self, rank: usize, why: String) {
        let host = self.host(rank);
        self.tell_all(&Message::Lost { rank, why: why.clone() });
        self.fail(ClusterError::Lost { rank, host, why });
    }

    fn peer_stopped(&mut self, rank: usize, why: String) {
        let host = self.host(rank);
        self.tell_all(&Message::Stopped { rank, why: why.clone() });
        self.fail(ClusterError::Stopped { rank, host, why });
    }

    /// Rank 0 passes on what it learned; the others have nobody to tell.
    fn tell_all(&mut self, note: &Message) {
        if self.transport.rank() == 0 && self.failed.is_none() {
            self.outbox.values_mut().for_each(|notes| notes.push_back(note.clone()));
        }
    }

    fn fail(&mut self, error: ClusterError) {
        let error = self.failed.get_or_insert(error).clone();
        let active = self.active.drain(..).map(|(_, reply)| reply);
        for reply in active.chain(self.broken.drain(..)) {
            let _ = reply.send(Err(error.clone()));
        }
        self.fault = None;
    }

    fn host(&self, rank: usize) -> String {
        self.identities.get(rank).map_or_else(|| "unknown".into(), |known| known.host.clone())
    }

    /// The end of a job that went well. Called on the thread that made the transport.
    pub(crate) fn finish(&mut self) {
        self.transport.finish();
        self.end();
    }

    /// The thread of the service ends the job in this way, unless it ends already.
    pub(crate) fn end_by(&mut self, ending: Ending) {
        if !self.ended && self.ending.is_none() {
            self.ending = Some(ending);
        }
    }

    /// No call is possible any more. A thread that waits for one learns that.
    pub(crate) fn end(&mut self) {
        self.ended = true;
        self.ending = None;
        self.active.clear();
        self.broken.clear();
    }

    /// The end of a failed rank begins. The launcher ends all ranks when the first one ends with an error, so
    /// every rank waits until rank 0 has written its checkpoint: see [`Service::may_leave`].
    pub(crate) fn stop(&mut self, why: &str) {
        let rank = self.transport.rank();
        if self.failed.is_none() {
            let note = Message::stopped(rank, why);
            self.outbox.values_mut().for_each(|notes| notes.push_back(note.clone()));
            let (host, why) = (self.host(rank), why.to_string());
            self.fail(ClusterError::Stopped { rank, host, why });
        }
        if rank == 0 {
            self.outbox.values_mut().for_each(|notes| notes.push_back(Message::Released));
        }
    }

    /// A turn of a rank that stops.
    pub(crate) fn take_leave(&mut self) {
        self.take_notes();
        self.send_notes();
        let root_lost = self.watch.look(Instant::now()).is_some_and(|(lost, _)| lost == 0);
        self.released |= root_lost && self.transport.rank() != 0;
    }

    /// Whether a rank that stops may end its process, after so long.
    pub(crate) fn may_leave(&self, waited: Duration) -> bool {
        let sent = self.outbox.values().all(VecDeque::is_empty);
        match self.transport.rank() {
            0 => sent || waited > GOODBYE,
            _ => {
                let unseen = waited.min(self.root_progress.1.elapsed());
                let given_up = unseen > self.options.goodbye_limit || waited > LONGEST_GOODBYE;
                self.released || given_up
            }
        }
    }
}
