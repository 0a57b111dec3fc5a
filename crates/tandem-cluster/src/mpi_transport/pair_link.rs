//! The messages of the sums of two ranks: through shared memory on one machine, by MPI between two.
//!
//! In: the rank of this process. Out: a [`Link`] for [`crate::exchange`]. Whether the ranks share memory is decided
//! once, at the start, by both of them.

use super::{TAG, check, communicator, is_over};
use crate::exchange::{Link, MessageKind, UNDER_WAY, add};
use crate::shared_memory::{self, SharedLink};
use crate::transport::TransportError;
use mpi::ffi;
use std::ffi::c_int;

/// Of [`MessageKind::Sum`]; [`MessageKind::Values`] has the usual tag.
const SUM_TAG: c_int = 2;

/// Memory that both of two ranks have; none if they are on two machines. All ranks call it, and all of them have the
/// memory or know why there is none.
pub(super) fn shared(rank: c_int) -> Result<Result<Option<SharedLink>, String>, TransportError> {
    let (mut machine, mut ranks, mut fails) = (communicator()?, 0, 0);
    // SAFETY: MPI is initialized, and all results are written to variables of this frame.
    unsafe {
        let (world, info) = (machine, ffi::RSMPI_INFO_NULL);
        let shared = ffi::RSMPI_COMM_TYPE_SHARED;
        let split = ffi::MPI_Comm_split_type(world, shared, rank, info, &mut machine);
        check("MPI_Comm_split_type", split)?;
        check("MPI_Comm_size", ffi::MPI_Comm_size(machine, &mut ranks))?;
    }
    if ranks != 2 {
        return Ok(Ok(None));
    }
    let named = if rank == 0 { Some(shared_memory::create()) } else { None };
    let path = match &named {
        Some(Ok(named)) => named.path().display().to_string(),
        _ => String::new(),
    };
    let path = broadcast_path(&path, machine)?;
    let link = match named {
        Some(Err(error)) => Err(format!("rank 0 cannot create it: {error}")),
        _ if path.is_empty() => Err("rank 0 cannot create it".into()),
        _ => SharedLink::open(path.as_ref(), rank as usize)
            .map_err(|error| format!("rank {rank} cannot open {path}: {error}")),
    };
    let failed = c_int::from(link.is_err());
    // SAFETY: both are integers of this frame.
    check("MPI_Allreduce", unsafe {
        let (from, to) = ((&raw const failed).cast(), (&raw mut fails).cast());
        ffi::MPI_Allreduce(from, to, 1, ffi::RSMPI_INT32_T, ffi::RSMPI_SUM, machine)
    })?;
    // Both ranks have opened it: its name goes with `named`.
    Ok(match (link, fails) {
        (Ok(link), 0) => Ok(Some(link)),
        (Ok(_), _) => Err("the other rank cannot open it".into()),
        (Err(why), _) => Err(why),
    })
}

/// The path that rank 0 has.
fn broadcast_path(path: &str, on: ffi::MPI_Comm) -> Result<String, TransportError> {
    let mut bytes = [0_u8; 256];
    if let Some(start) = bytes.get_mut(..path.len()) {
        start.copy_from_slice(path.as_bytes());
    }
    let (start, count) = (bytes.as_mut_ptr().cast(), bytes.len() as c_int);
    // SAFETY: the buffer has as many bytes.
    let sent = unsafe { ffi::MPI_Bcast(start, count, ffi::RSMPI_UINT8_T, 0, on) };
    check("MPI_Bcast", sent)?;
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(text).into_owned())
}

/// The messages of sums of two ranks, on a communicator without others that have their tags.
pub(super) struct MpiLink {
    peer: c_int,
    on: ffi::MPI_Comm,
    /// What is received to be added: one slot for each message under way.
    scratch: Vec<f32>,
    free_slots: Vec<usize>,
}

pub(super) struct LinkRequest {
    request: ffi::MPI_Request,
    /// Where values to add are received.
    slot: usize,
}

impl MpiLink {
    pub(super) fn new(peer: c_int, on: ffi::MPI_Comm) -> MpiLink {
        let slots = (0..UNDER_WAY).map(|slot| slot * MpiLink::PART);
        MpiLink {
            peer,
            on,
            scratch: vec![0.0; UNDER_WAY * MpiLink::PART],
            free_slots: slots.collect(),
        }
    }

    /// # Safety
    /// The memory is valid and not used by anybody else until the request is over.
    unsafe fn receive(
        &self,
        kind: MessageKind,
        to: *mut f32,
        count: usize,
    ) -> Result<ffi::MPI_Request, TransportError> {
        let (to, count, float) = (to.cast(), count as c_int, float());
        // SAFETY: a null request is a plain value that MPI replaces. The caller keeps the memory.
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            let started =
                ffi::MPI_Irecv(to, count, float, self.peer, tag(kind), self.on, &mut request);
            check("MPI_Irecv", started).map(|()| request)
        }
    }
}

impl Link for MpiLink {
    /// 256 KiB.
    const PART: usize = 1 << 16;
    type Request = LinkRequest;

    unsafe fn send(
        &mut self,
        kind: MessageKind,
        from: *const f32,
        count: usize,
    ) -> Result<LinkRequest, TransportError> {
        let (from, count, float) = (from.cast(), count as c_int, float());
        // SAFETY: a null request is a plain value that MPI replaces. The caller keeps the memory.
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            let started =
                ffi::MPI_Isend(from, count, float, self.peer, tag(kind), self.on, &mut request);
            check("MPI_Isend", started).map(|()| LinkRequest { request, slot: 0 })
        }
    }

    unsafe fn receive_sum(
        &mut self,
        to: *mut f32,
        count: usize,
    ) -> Result<LinkRequest, TransportError> {
        // SAFETY: the caller keeps the memory.
        let request = unsafe { self.receive(MessageKind::Sum, to, count)? };
        Ok(LinkRequest { request, slot: 0 })
    }

    fn receive_values(&mut self, count: usize) -> Result<Option<LinkRequest>, TransportError> {
        let Some(slot) = self.free_slots.pop() else { return Ok(None) };
        // SAFETY: the slot is inside of the scratch memory, which is kept and not resized, and it is free.
        let request = unsafe {
            let to = self.scratch.as_mut_ptr().add(slot);
            self.receive(MessageKind::Values, to, count)?
        };
        Ok(Some(LinkRequest { request, slot }))
    }

    fn is_over(&mut self, request: &mut LinkRequest) -> Result<bool, TransportError> {
        is_over(&mut request.request)
    }

    fn add(&mut self, request: LinkRequest, to: &mut [f32]) {
        let count = to.len();
        add(to, &self.scratch[request.slot..][..count]);
        self.free_slots.push(request.slot);
    }
}

fn tag(kind: MessageKind) -> c_int {
    match kind {
        MessageKind::Values => TAG,
        MessageKind::Sum => SUM_TAG,
    }
}

fn float() -> ffi::MPI_Datatype {
    // SAFETY: a constant of the library.
    unsafe { ffi::RSMPI_FLOAT }
}
