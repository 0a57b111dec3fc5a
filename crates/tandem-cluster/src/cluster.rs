//! The handle of a rank: sums, broadcasts and messages.
//!
//! In: values of this rank. Out: the same result on every rank, or an error that names the rank which is
//! missing. Clones share one communication thread. Every rank must make the same calls in the same order, from one
//! thread at a time.

use crate::error::ClusterError;
use crate::identity::Identity;
use crate::service::{Ending, Service};
use crate::shared::{Pending, ServiceCalls};
use crate::transport::{Call, Reply, Transport};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// Bytes of one broadcast; more are sent in pieces. MPI counts with 32 bits.
const PIECE: usize = 256 << 20;
/// The longest that the end of a good run waits for MPI.
const FINISH_LIMIT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// A rank that sends no heartbeat for this long is lost (`--rank-timeout`).
    pub silence_limit: Duration,
    /// How long a failed rank waits for rank 0, which saves a checkpoint, when it sees no progress there.
    pub goodbye_limit: Duration,
    /// Name and version of the program, equal on all ranks.
    pub program: String,
}

impl Default for ClusterOptions {
    fn default() -> ClusterOptions {
        ClusterOptions {
            silence_limit: Duration::from_secs(12),
            goodbye_limit: Duration::from_secs(60),
            program: String::new(),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Cluster(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shared: Arc<ServiceCalls>,
    /// The communication thread sees when the last one is gone.
    handle: Arc<()>,
    rank: usize,
    ranks: usize,
    warning: Option<String>,
    identities: Vec<Identity>,
    /// The last step that the ranks agreed on.
    last_step: AtomicU64,
}

/// What an agreement is about. Ranks that agree on different things are out of step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// Whether and how step `step` is done.
    Step { step: u64 },
    /// A comparison at the start.
    Comparison,
    /// All ranks are at the same place.
    Barrier,
    /// The job ended well.
    Finish,
}

impl Topic {
    fn code(self) -> f64 {
        match self {
            Topic::Step { .. } => 1.0,
            Topic::Comparison => 2.0,
            Topic::Barrier => 3.0,
            Topic::Finish => 4.0,
        }
    }

    /// For messages, from the two numbers that travel.
    fn describe(code: f64, step: f64) -> String {
        match code as u8 {
            1 => format!("before step {step}"),
            2 => "in a comparison at the start".into(),
            3 => format!("in a barrier after the agreement on step {step}"),
            4 => format!("at the end of the job, after the agreement on step {step}"),
            _ => "in an agreement of another program".into(),
        }
    }
}

/// Numbers that a rank brings to an agreement.
pub const AGREED_VALUES: usize = 12;
/// And what comes before them: topic and step.
const AGREEMENT: usize = 2 + AGREED_VALUES;

/// A sum that is under way.
#[must_use = "every rank must take part in every sum"]
pub struct PendingSum(Pending);

impl PendingSum {
    /// Carries it on until it is over, together with all others that are under way.
    pub fn wait(self) -> Result<Vec<f32>, ClusterError> {
        match self.0.wait()? {
            Reply::F32(values) => Ok(values),
            _ => Err(ClusterError::ThreadEnded),
        }
    }
}

impl Cluster {
    /// Joins the ranks that the launcher started. `None` in a process that was started alone.
    #[cfg(feature = "mpi")]
    pub fn join(options: ClusterOptions) -> Result<Option<Cluster>, ClusterError> {
        use crate::launch::Launch;
        let Some(launch) = Launch::of_this_process().filter(Launch::is_parallel) else {
            return Ok(None);
        };
        let cluster = Cluster::start(options, crate::mpi_transport::MpiTransport::start)?;
        if cluster.ranks() != launch.ranks {
            let Launch { launcher, ranks: started, .. } = launch;
            return Err(ClusterError::NotConnected { launcher, started, seen: cluster.ranks() });
        }
        Ok(Some(cluster))
    }

    /// Starts the communication thread, which makes the transport.
    pub fn start<T, F>(options: ClusterOptions, make: F) -> Result<Cluster, ClusterError>
    where
        T: Transport + 'static,
        F: FnOnce() -> Result<T, ClusterError> + Send + 'static,
    {
        let (tell, told) = sync_channel(1);
        let program = options.program.clone();
        let handle = Arc::new(());
        let handles = Arc::downgrade(&handle);
        let communicate = move || {
            let transport = match make() {
                Ok(transport) => transport,
                Err(error) => {
                    let _ = tell.send(Err(error));
                    return;
                }
            };
            let (rank, ranks) = (transport.rank(), transport.ranks());
            let warning = transport.warning();
            let shared = Arc::new(ServiceCalls::new(Service::new(Box::new(transport), options)));
            if tell.send(Ok((shared.clone(), rank, ranks, warning))).is_ok() {
                shared.run(&handles);
            }
        };
        std::thread::Builder::new()
            .name("tandem-ranks".into())
            .spawn(communicate)
            .map_err(|error| ClusterError::Start { why: error.to_string() })?;
        let (shared, rank, ranks, warning) =
            told.recv().map_err(|_| ClusterError::ThreadEnded)??;
        let (identities, last_step) = (Vec::new(), AtomicU64::new(0));
        let inner = Inner { shared, handle, rank, ranks, warning, identities, last_step };
        Cluster(Arc::new(inner)).identified(&program)
    }

    /// Tells the ranks who they are, and compares their programs.
    fn identified(self, program: &str) -> Result<Cluster, ClusterError> {
        let own = serde_json::to_vec(&Identity::of_this_process(program)).unwrap_or_default();
        let all = self.gather(own)?;
        let all = all.iter().map(|bytes| serde_json::from_slice(bytes).unwrap_or_default());
        let identities: Vec<Identity> = all.collect();
        self.0.shared.identify(identities.clone());
        let Inner { shared, handle, rank, ranks, warning, .. } = &*self.0;
        let (shared, handle, warning) = (shared.clone(), handle.clone(), warning.clone());
        let (rank, ranks, last_step) = (*rank, *ranks, AtomicU64::new(0));
        let inner = Inner { shared, handle, rank, ranks, warning, identities, last_step };
        let cluster = Cluster(Arc::new(inner));
        let programs = cluster.identities().iter().map(|known| known.program.as_str());
        cluster.compare(programs, "another version of the program")?;
        Ok(cluster)
    }

    pub fn rank(&self) -> usize {
        self.0.rank
    }

    pub fn ranks(&self) -> usize {
        self.0.ranks
    }

    /// Whether this rank writes what there is one of: checkpoints, samples, messages.
    pub fn is_first(&self) -> bool {
        self.rank() == 0
    }

    pub fn identities(&self) -> &[Identity] {
        &self.0.identities
    }

    /// What is slower than it could be between these ranks, and why.
    pub fn warning(&self) -> Option<&str> {
        self.0.warning.as_deref()
    }

    /// A name of this job that no other one has: records of the same job have the same.
    pub fn job(&self) -> String {
        let first = self.identities().first().cloned().unwrap_or_default();
        format!("{}-{}-{}", first.host, first.process, first.started.unwrap_or_default())
    }

    pub fn host(&self, rank: usize) -> &str {
        self.identities().get(rank).map_or("unknown", |known| known.host.as_str())
    }

    /// The number of this rank among those of its machine.
    pub fn local_rank(&self) -> usize {
        self.on_this_host().take_while(|rank| *rank < self.rank()).count()
    }

    /// Ranks on this machine.
    pub fn local_ranks(&self) -> usize {
        self.on_this_host().count()
    }

    /// Ranks that use the same cores as this one: those of this machine, unless the launcher gave each
    /// its own cores.
    pub fn ranks_on_same_cores(&self) -> usize {
        let cores = |rank: usize| &self.identities()[rank].cores;
        self.on_this_host().filter(|rank| cores(*rank) == cores(self.rank())).count().max(1)
    }

    fn on_this_host(&self) -> impl Iterator<Item = usize> {
        (0..self.ranks()).filter(|rank| self.host(*rank) == self.host(self.rank()))
    }

    /// The sum over all ranks. The order of the addition is that of the transport; with two ranks there is
    /// only one.
    pub fn sum_f64(&self, values: Vec<f64>) -> Result<Vec<f64>, ClusterError> {
        match self.call(Call::SumF64(values))? {
            Reply::F64(values) => Ok(values),
            _ => Err(ClusterError::ThreadEnded),
        }
    }

    /// Starts a sum over all ranks, which the communication thread carries on. Several may be under way; all ranks
    /// start them in the same order.
    pub fn start_sum(&self, values: Vec<f32>) -> PendingSum {
        let sum = self.queue_sum(values);
        self.0.shared.wake();
        sum
    }

    /// As [`Cluster::start_sum`], for a caller that waits for it at once: the thread that waits carries it on. No other
    /// thread is woken, which would take the core of another rank where all cores are busy.
    pub fn queue_sum(&self, values: Vec<f32>) -> PendingSum {
        PendingSum(self.0.shared.begin(Call::SumF32(values)))
    }

    /// Carries on all calls under way until they are over, or have failed.
    pub fn complete_calls(&self) {
        self.0.shared.complete_calls();
    }

    /// The values of every rank, on every rank. Fails on all ranks where one of them is at another topic or step. All
    /// agreements have the same size, so that ranks which are out of step still understand each other.
    pub fn agree(
        &self,
        topic: Topic,
        values: [f64; AGREED_VALUES],
    ) -> Result<Vec<[f64; AGREED_VALUES]>, ClusterError> {
        if let Topic::Step { step } = topic {
            self.0.last_step.store(step, Ordering::Relaxed);
        }
        let mut told = vec![0.0; AGREEMENT * self.ranks()];
        let own = &mut told[AGREEMENT * self.rank()..][..AGREEMENT];
        own[0] = topic.code();
        own[1] = self.0.last_step.load(Ordering::Relaxed) as f64;
        own[2..].copy_from_slice(&values);
        let all = self.sum_f64(told)?;
        let all: Vec<&[f64]> = all.chunks_exact(AGREEMENT).collect();
        if let Some(rank) = all.iter().position(|told| told[..2] != all[0][..2]) {
            let place = |rank: usize| Topic::describe(all[rank][0], all[rank][1]);
            let (host, there, first) = (self.host(rank).to_string(), place(rank), place(0));
            return Err(ClusterError::OutOfStep { rank, host, there, first });
        }
        let values = |told: &&[f64]| {
            let mut values = [0.0; AGREED_VALUES];
            values.copy_from_slice(&told[2..]);
            values
        };
        Ok(all.iter().map(values).collect())
    }

    /// Returns when all ranks have called it.
    pub fn barrier(&self) -> Result<(), ClusterError> {
        self.agree(Topic::Barrier, [0.0; AGREED_VALUES]).map(drop)
    }

    /// What a rank that failed watches while it waits for rank 0: a counter that this rank raises when it makes
    /// progress.
    pub fn show_progress(&self, counter: Arc<AtomicU64>) {
        self.0.shared.show_progress(counter);
    }

    /// The bytes of one rank, on every rank. What the other ranks pass does not matter.
    pub fn broadcast(&self, root: usize, bytes: Vec<u8>) -> Result<Vec<u8>, ClusterError> {
        let mine = self.rank() == root;
        let length = if mine { bytes.len() as u64 } else { 0 };
        let length = self.bytes(Call::Broadcast { root, bytes: length.to_le_bytes().to_vec() })?;
        let length: [u8; 8] = length.try_into().map_err(|_| ClusterError::ThreadEnded)?;
        let length = u64::from_le_bytes(length) as usize;
        let mut whole = Vec::with_capacity(length);
        while whole.len() < length {
            let size = PIECE.min(length - whole.len());
            let piece = match mine {
                true => bytes[whole.len()..][..size].to_vec(),
                false => vec![0; size],
            };
            whole.extend(self.bytes(Call::Broadcast { root, bytes: piece })?);
        }
        Ok(whole)
    }

    /// The bytes of every rank, on every rank.
    pub fn gather(&self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, ClusterError> {
        (0..self.ranks()).map(|root| self.broadcast(root, bytes.clone())).collect()
    }

    /// Fails on every rank if one of them has another value than rank 0.
    pub fn check_equal(&self, value: &str, what: &'static str) -> Result<(), ClusterError> {
        self.agree(Topic::Comparison, [0.0; AGREED_VALUES])?;
        let all = self.gather(value.as_bytes().to_vec())?;
        let all: Vec<_> = all.iter().map(|bytes| String::from_utf8_lossy(bytes)).collect();
        self.compare(all.iter().map(|text| &**text), what)
    }

    fn compare<'a>(
        &self,
        values: impl Iterator<Item = &'a str>,
        what: &'static str,
    ) -> Result<(), ClusterError> {
        let values: Vec<&str> = values.collect();
        match values.iter().position(|value| *value != values[0]) {
            Some(rank) => {
                Err(ClusterError::Differs { rank, host: self.host(rank).to_string(), what })
            }
            None => Ok(()),
        }
    }

    /// A message to one rank. Returns when the network took it.
    pub fn send(&self, to: usize, bytes: Vec<u8>) -> Result<(), ClusterError> {
        self.call(Call::Send { to, bytes }).map(drop)
    }

    /// The next message of one rank.
    pub fn receive(&self, from: usize) -> Result<Vec<u8>, ClusterError> {
        self.bytes(Call::Receive { from })
    }

    /// The job ended well on this rank. Waits for the others.
    pub fn finish(&self) -> Result<(), ClusterError> {
        self.agree(Topic::Finish, [0.0; AGREED_VALUES])?;
        let (done, ended) = sync_channel(1);
        self.0.shared.end(Ending::Finish { done });
        // The work is done: a library that does not end is left behind.
        let _ = ended.recv_timeout(FINISH_LIMIT);
        Ok(())
    }

    /// The job failed on this rank. The others are told, and this returns when the process may end:
    /// rank 0 calls it after its checkpoint is written, and the others wait for that.
    pub fn fail(&self, why: &str) {
        let (done, ended) = sync_channel(1);
        self.0.shared.end(Ending::Stop { why: why.to_string(), done });
        let _ = ended.recv();
    }

    fn bytes(&self, call: Call) -> Result<Vec<u8>, ClusterError> {
        match self.call(call)? {
            Reply::Bytes(bytes) => Ok(bytes),
            _ => Err(ClusterError::ThreadEnded),
        }
    }

    fn call(&self, call: Call) -> Result<Reply, ClusterError> {
        self.0.shared.begin(call).wait()
    }
}

#[cfg(test)]
mod tests;
