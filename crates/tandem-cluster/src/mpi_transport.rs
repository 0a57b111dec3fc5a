//! MPI as transport. MPI types and calls of its library are in this file and its folder only.
//!
//! In: [`Call`]s. Out: replies, by polling non-blocking requests. MPI is told that one thread at a time calls it; the
//! thread that made the transport is the one that ends it. Memory of a request that was started belongs to MPI until
//! its test says that it is over: it is owned by `active` and `exchanges`, and never freed before that. A failed job
//! does not finalize MPI, which would wait for the missing rank.

use crate::error::ClusterError;
use crate::exchange::{Exchanges, PairSums};
use crate::transport::{Call, CallId, Delivered, Reply, Transport, TransportError};
use mpi::Threading;
use mpi::environment::Universe;
use mpi::ffi;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;

/// Each kind of traffic has its own communicator, so one tag is enough but for the sums of two ranks.
const TAG: c_int = 1;

mod pair_link; // the sums of two ranks

pub(crate) struct MpiTransport {
    /// Finalizes MPI when dropped; only [`Transport::finish`] does that.
    universe: ManuallyDrop<Universe>,
    finished: bool,
    rank: usize,
    ranks: usize,
    collectives: ffi::MPI_Comm,
    messages: ffi::MPI_Comm,
    notes: ffi::MPI_Comm,
    calls: CallId,
    active: BTreeMap<CallId, Active>,
    notes_sent: HashMap<usize, (ffi::MPI_Request, Vec<u8>)>,
    /// The sums of two ranks.
    exchanges: Box<dyn PairSums>,
    warning: Option<String>,
}

// SAFETY: the handles of MPI are valid on every thread of the process. `MPI_THREAD_SERIALIZED` allows calls of any
// thread, one at a time: the owner of the transport is the only one.
unsafe impl Send for MpiTransport {}

/// A call that was started, with the memory that MPI reads and writes.
struct Active {
    /// `None` for a message that has not arrived.
    request: Option<ffi::MPI_Request>,
    buffers: Buffers,
}

enum Buffers {
    F32 { _sent: Vec<f32>, received: Vec<f32> },
    F64 { _sent: Vec<f64>, received: Vec<f64> },
    Broadcast(Vec<u8>),
    Send { _bytes: Vec<u8> },
    Receive { from: usize, bytes: Vec<u8> },
}

impl MpiTransport {
    /// Starts MPI on the calling thread, which makes all later calls.
    pub(crate) fn start() -> Result<MpiTransport, ClusterError> {
        let failed = |why: &str| ClusterError::Start { why: why.into() };
        let (universe, threading) = mpi::initialize_with_threading(Threading::Serialized)
            .ok_or_else(|| failed("it was started already in this process"))?;
        if threading < Threading::Serialized {
            return Err(failed("the library was built without support for threads"));
        }
        let wrong = |TransportError { call, why }| ClusterError::Mpi { call, why };
        let (mut rank, mut ranks) = (0, 0);
        // SAFETY: MPI is initialized, and the results are written to integers of this frame.
        unsafe {
            check("MPI_Comm_rank", ffi::MPI_Comm_rank(ffi::RSMPI_COMM_WORLD, &mut rank))
                .map_err(wrong)?;
            check("MPI_Comm_size", ffi::MPI_Comm_size(ffi::RSMPI_COMM_WORLD, &mut ranks))
                .map_err(wrong)?;
        }
        let collectives = communicator().map_err(wrong)?;
        let shared = match ranks {
            2 => pair_link::shared(rank).map_err(wrong)?,
            _ => Ok(None),
        };
        let messages = || pair_link::MpiLink::new(1 - rank, collectives);
        let rank = rank as usize;
        let (exchanges, warning): (Box<dyn PairSums>, _) = match shared {
            Ok(Some(link)) => (Box::new(Exchanges::new(rank, link)), None),
            Ok(None) => (Box::new(Exchanges::new(rank, messages())), None),
            Err(why) => (Box::new(Exchanges::new(rank, messages())), Some(why)),
        };
        Ok(MpiTransport {
            universe: ManuallyDrop::new(universe),
            finished: false,
            rank,
            ranks: ranks as usize,
            collectives,
            messages: communicator().map_err(wrong)?,
            notes: communicator().map_err(wrong)?,
            calls: 0,
            active: BTreeMap::new(),
            notes_sent: HashMap::new(),
            exchanges,
            warning,
        })
    }

    /// Starts the receive of a message that has arrived.
    fn probe(&self, from: usize) -> Result<Option<(ffi::MPI_Request, Vec<u8>)>, TransportError> {
        let Some((_, size, mut message)) = self.arrived(self.messages, from as c_int)? else {
            return Ok(None);
        };
        let mut bytes = vec![0_u8; size];
        // SAFETY: a null request is a plain value that MPI replaces.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        // SAFETY: `bytes` has `size` bytes on the heap and moves to `active` with the request.
        check("MPI_Imrecv", unsafe {
            ffi::MPI_Imrecv(
                bytes.as_mut_ptr().cast::<c_void>(),
                size as c_int,
                ffi::RSMPI_UINT8_T,
                &mut message,
                &mut request,
            )
        })?;
        Ok(Some((request, bytes)))
    }

    /// Source, size and handle of a message that has arrived.
    fn arrived(
        &self,
        on: ffi::MPI_Comm,
        from: c_int,
    ) -> Result<Option<(usize, usize, ffi::MPI_Message)>, TransportError> {
        let (mut flag, mut size) = (0, 0);
        // SAFETY: a status is plain data that MPI fills, and a null message is a plain value.
        let (mut status, mut message): (ffi::MPI_Status, ffi::MPI_Message) =
            unsafe { (std::mem::zeroed(), ffi::RSMPI_MESSAGE_NULL) };
        // SAFETY: all results are written to variables of this frame.
        unsafe {
            let probed = ffi::MPI_Improbe(from, TAG, on, &mut flag, &mut message, &mut status);
            check("MPI_Improbe", probed)?;
            if flag == 0 {
                return Ok(None);
            }
            check("MPI_Get_count", ffi::MPI_Get_count(&status, ffi::RSMPI_UINT8_T, &mut size))?;
        }
        Ok(Some((status.MPI_SOURCE as usize, size.max(0) as usize, message)))
    }
}

impl Transport for MpiTransport {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.ranks
    }

    fn start(&mut self, call: Call) -> Result<CallId, TransportError> {
        // SAFETY: a null request is a plain value that MPI replaces.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        let buffers = match call {
            Call::SumF32(values) if self.ranks == 2 => {
                self.calls += 1;
                self.exchanges.start(self.calls, values)?;
                return Ok(self.calls);
            }
            Call::SumF32(sent) => {
                let mut received = vec![0.0_f32; sent.len()];
                // SAFETY: both vectors have `len` floats on the heap, and move to `active` with the request.
                check("MPI_Iallreduce", unsafe {
                    ffi::MPI_Iallreduce(
                        sent.as_ptr().cast(),
                        received.as_mut_ptr().cast(),
                        sent.len() as c_int,
                        ffi::RSMPI_FLOAT,
                        ffi::RSMPI_SUM,
                        self.collectives,
                        &mut request,
                    )
                })?;
                Buffers::F32 { _sent: sent, received }
            }
            Call::SumF64(sent) => {
                let mut received = vec![0.0_f64; sent.len()];
                // SAFETY: as above, with doubles.
                check("MPI_Iallreduce", unsafe {
                    ffi::MPI_Iallreduce(
                        sent.as_ptr().cast(),
                        received.as_mut_ptr().cast(),
                        sent.len() as c_int,
                        ffi::RSMPI_DOUBLE,
                        ffi::RSMPI_SUM,
                        self.collectives,
                        &mut request,
                    )
                })?;
                Buffers::F64 { _sent: sent, received }
            }
            Call::Broadcast { root, mut bytes } => {
                // SAFETY: the bytes are on the heap, and move to `active` with the request.
                check("MPI_Ibcast", unsafe {
                    ffi::MPI_Ibcast(
                        bytes.as_mut_ptr().cast(),
                        bytes.len() as c_int,
                        ffi::RSMPI_UINT8_T,
                        root as c_int,
                        self.collectives,
                        &mut request,
                    )
                })?;
                Buffers::Broadcast(bytes)
            }
            Call::Send { to, bytes } => {
                send(&bytes, to, self.messages, &mut request)?;
                Buffers::Send { _bytes: bytes }
            }
            Call::Receive { from } => {
                let buffers = Buffers::Receive { from, bytes: Vec::new() };
                self.calls += 1;
                self.active.insert(self.calls, Active { request: None, buffers });
                return Ok(self.calls);
            }
        };
        self.calls += 1;
        self.active.insert(self.calls, Active { request: Some(request), buffers });
        Ok(self.calls)
    }

    fn poll(&mut self, call: CallId) -> Result<Option<Reply>, TransportError> {
        if self.exchanges.holds(call) {
            return Ok(self.exchanges.take(call).map(Reply::F32));
        }
        let Some(active) = self.active.get(&call) else { return Ok(None) };
        if let Active { request: None, buffers: Buffers::Receive { from, .. } } = active {
            let from = *from;
            let Some((request, bytes)) = self.probe(from)? else { return Ok(None) };
            let buffers = Buffers::Receive { from, bytes };
            self.active.insert(call, Active { request: Some(request), buffers });
        }
        let is_over = match self.active.get_mut(&call) {
            Some(Active { request: Some(request), .. }) => is_over(request)?,
            _ => false,
        };
        if !is_over {
            return Ok(None);
        }
        let buffers = self.active.remove(&call).map(|active| active.buffers);
        Ok(buffers.map(|buffers| match buffers {
            Buffers::F32 { received, .. } => Reply::F32(received),
            Buffers::F64 { received, .. } => Reply::F64(received),
            Buffers::Broadcast(bytes) | Buffers::Receive { bytes, .. } => Reply::Bytes(bytes),
            Buffers::Send { .. } => Reply::Sent,
        }))
    }

    fn advance(&mut self) -> Result<u64, TransportError> {
        self.exchanges.advance()
    }

    fn send_note(&mut self, to: usize, note: &[u8]) -> Result<Delivered, TransportError> {
        if let Some((request, _)) = self.notes_sent.get_mut(&to) {
            if !is_over(request)? {
                return Ok(Delivered::Busy);
            }
            self.notes_sent.remove(&to);
        }
        let bytes = note.to_vec();
        // SAFETY: a null request is a plain value that MPI replaces.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        send(&bytes, to, self.notes, &mut request)?;
        self.notes_sent.insert(to, (request, bytes));
        Ok(Delivered::Yes)
    }

    fn take_note(&mut self) -> Result<Option<(usize, Vec<u8>)>, TransportError> {
        // SAFETY: a constant of the library.
        let any = unsafe { ffi::RSMPI_ANY_SOURCE };
        let Some((source, size, mut message)) = self.arrived(self.notes, any)? else {
            return Ok(None);
        };
        let mut bytes = vec![0_u8; size];
        // SAFETY: `bytes` has `size` bytes. The message is small and has arrived, so this does not wait.
        check("MPI_Mrecv", unsafe {
            ffi::MPI_Mrecv(
                bytes.as_mut_ptr().cast(),
                size as c_int,
                ffi::RSMPI_UINT8_T,
                &mut message,
                ffi::RSMPI_STATUS_IGNORE,
            )
        })?;
        Ok(Some((source, bytes)))
    }

    fn warning(&self) -> Option<String> {
        let why = self.warning.as_ref()?;
        Some(format!(
            "the two ranks of this machine do not share memory, and their sums take longer: {why}; give both the same \
             /dev/shm, with room for 2 MiB"
        ))
    }

    fn finish(&mut self) {
        if !std::mem::replace(&mut self.finished, true) {
            // SAFETY: dropped once, as `finished` says, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.universe) };
        }
    }
}

/// A duplicate of `MPI_COMM_WORLD` for one kind of message. Its errors are returned; they do not end the process.
fn communicator() -> Result<ffi::MPI_Comm, TransportError> {
    // SAFETY: MPI is initialized; the handle is written to a variable of this frame.
    unsafe {
        let mut copy = ffi::RSMPI_COMM_NULL;
        check("MPI_Comm_dup", ffi::MPI_Comm_dup(ffi::RSMPI_COMM_WORLD, &mut copy))?;
        let returned = ffi::MPI_Comm_set_errhandler(copy, ffi::RSMPI_ERRORS_RETURN);
        check("MPI_Comm_set_errhandler", returned)?;
        Ok(copy)
    }
}

/// The caller keeps `bytes` until the request is over.
fn send(
    bytes: &[u8],
    to: usize,
    on: ffi::MPI_Comm,
    request: &mut ffi::MPI_Request,
) -> Result<(), TransportError> {
    // SAFETY: `bytes` is valid, and its owner moves it to where it outlives the request.
    check("MPI_Isend", unsafe {
        ffi::MPI_Isend(
            bytes.as_ptr().cast(),
            bytes.len() as c_int,
            ffi::RSMPI_UINT8_T,
            to as c_int,
            TAG,
            on,
            request,
        )
    })
}

fn is_over(request: &mut ffi::MPI_Request) -> Result<bool, TransportError> {
    let mut flag = 0;
    // SAFETY: the request is one that MPI returned, and is null after it is over.
    check("MPI_Test", unsafe { ffi::MPI_Test(request, &mut flag, ffi::RSMPI_STATUS_IGNORE) })?;
    Ok(flag != 0)
}

fn check(call: &'static str, code: c_int) -> Result<(), TransportError> {
    if code == ffi::MPI_SUCCESS as c_int {
        return Ok(());
    }
    let mut text = [0_u8; ffi::MPI_MAX_ERROR_STRING as usize];
    let mut length = 0;
    // SAFETY: the buffer has the size that the library asks for.
    unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast(), &mut length) };
    let why = String::from_utf8_lossy(&text[..length.max(0) as usize]).into_owned();
    Err(TransportError { call, why })
}
