//! Messages of two ranks on one machine, through memory that both have.
//!
//! In: values of this rank. Out: those of the other one. Each rank writes to its own ring buffers and reads from those of
//! the other rank: the sender copies a message to the next slot, and the receiver adds it from there. Without shared
//! memory the kernel copies messages from process to process, page by page. Two counters say how many messages were
//! written and how many were taken. Nothing here waits: a message without a free slot is copied when its sender asks for
//! it again. Rank 0 creates the memory as a file in `/dev/shm`, both ranks open it, and then its name is removed.

use crate::exchange::{Link, MessageKind, UNDER_WAY, add};
use crate::transport::TransportError;
use memmap2::MmapRaw;
use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::NamedTempFile;

/// Values of a slot: 64 KiB.
const SLOT: usize = 1 << 14;
const SLOTS: usize = UNDER_WAY;
/// Bytes of the ring buffers of both ranks: 2 MiB and a little.
const SIZE: usize = 2 * size_of::<Rings>();

/// What one rank sends: a ring buffer for each kind of message. All zeros means empty.
#[repr(C, align(64))]
struct Rings {
    by_kind: [Ring; 2],
}

#[repr(C)]
struct Ring {
    /// Messages that the sender has written, and that the receiver has taken.
    written: Counter,
    taken: Counter,
    /// Values of the message in each slot.
    counts: [AtomicU64; SLOTS],
    /// Each begins with a cache line.
    slots: [[UnsafeCell<f32>; SLOT]; SLOTS],
}

/// Has a cache line to itself: the other rank reads it all the time.
#[repr(C, align(64))]
struct Counter(AtomicU64);

/// The ring buffers of both ranks, seen by one of them.
pub(crate) struct SharedLink {
    memory: MmapRaw,
    rank: usize,
    /// By kind.
    sending: [Sending; 2],
    receiving: [Receiving; 2],
}

#[derive(Default)]
struct Sending {
    started: u64,
    /// Messages that wait for a slot.
    waiting: VecDeque<(*const f32, usize)>,
}

#[derive(Default)]
struct Receiving {
    started: u64,
    taken: u64,
}

/// The number of a message among those of its kind and direction.
pub(crate) enum Request {
    Send { kind: MessageKind, number: u64 },
    Values { number: u64, count: usize },
    Sum { number: u64, to: *mut f32, count: usize },
}

/// Empty ring buffers in a directory in memory. The name is removed when this is dropped; who has opened it keeps the memory.
pub(crate) fn create() -> io::Result<NamedTempFile> {
    let in_memory = Path::new("/dev/shm");
    match in_memory.is_dir() {
        true => create_in(in_memory),
        false => create_in(&std::env::temp_dir()),
    }
}

fn create_in(directory: &Path) -> io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix("tandem-ranks-").tempfile_in(directory)?;
    // Written, not only extended: without enough room this fails, and not the first use of the memory.
    file.write_all(&vec![0; SIZE])?;
    Ok(file)
}

impl SharedLink {
    /// Opens the memory that rank 0 has created. Each rank does that once.
    pub(crate) fn open(path: &Path, rank: usize) -> io::Result<SharedLink> {
        assert!(rank < 2, "rank {rank} of two");
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let size = file.metadata()?.len();
        if size != SIZE as u64 {
            return Err(io::Error::other(format!("it has {size} bytes instead of {SIZE}")));
        }
        let memory = MmapRaw::map_raw(&file)?;
        Ok(SharedLink { memory, rank, sending: Default::default(), receiving: Default::default() })
    }

    /// Copies what waits to free slots.
    fn fill_slots(&mut self, kind: MessageKind) {
        let ring = &rings(&self.memory, self.rank).by_kind[kind as usize];
        let sending = &mut self.sending[kind as usize];
        let mut written = sending.started - sending.waiting.len() as u64;
        while !sending.waiting.is_empty() && written < ring.taken.get() + SLOTS as u64 {
            let Some((from, count)) = sending.waiting.pop_front() else { return };
            // SAFETY: the sender keeps its memory until the request is over, `count` values fit into a slot, and the
            // receiver has taken what was in this one.
            unsafe { stream(from, ring.slot(written), count) };
            ring.count(written).store(count as u64, Ordering::Relaxed);
            written += 1;
            ring.written.set(written);
        }
    }

    /// What the other rank sends. This rank changes no more of it than the counter of what it took.
    fn incoming(&self, kind: MessageKind) -> &Ring {
        &rings(&self.memory, 1 - self.rank).by_kind[kind as usize]
    }

    /// Whether message `number` was written. An error if it has another length than this rank expects.
    fn has_arrived(
        &self,
        kind: MessageKind,
        number: u64,
        count: usize,
    ) -> Result<bool, TransportError> {
        let ring = self.incoming(kind);
        if number >= ring.written.get() {
            return Ok(false);
        }
        let sent = ring.count(number).load(Ordering::Relaxed);
        // A message that was taken before: its slot may have another one.
        let is_taken = number < self.receiving[kind as usize].taken;
        if is_taken || sent == count as u64 {
            return Ok(true);
        }
        let why = format!("a message of the other rank has {sent} values instead of {count}");
        Err(TransportError { call: "a sum through shared memory", why })
    }

    /// The slot of message `number` was read: the other rank may use it again.
    fn release(&mut self, kind: MessageKind, number: u64) {
        self.receiving[kind as usize].taken = number + 1;
        self.incoming(kind).taken.set(number + 1);
    }
}

impl Link for SharedLink {
    const PART: usize = SLOT;
    type Request = Request;

    unsafe fn send(
        &mut self,
        kind: MessageKind,
        from: *const f32,
        count: usize,
    ) -> Result<Request, TransportError> {
        assert!(count <= SLOT, "a message of {count} values");
        let sending = &mut self.sending[kind as usize];
        let number = sending.started;
        sending.started += 1;
        sending.waiting.push_back((from, count));
        self.fill_slots(kind);
        Ok(Request::Send { kind, number })
    }

    unsafe fn receive_sum(
        &mut self,
        to: *mut f32,
        count: usize,
    ) -> Result<Request, TransportError> {
        assert!(count <= SLOT, "a message of {count} values");
        let receiving = &mut self.receiving[MessageKind::Sum as usize];
        receiving.started += 1;
        Ok(Request::Sum { number: receiving.started - 1, to, count })
    }

    fn receive_values(&mut self, count: usize) -> Result<Option<Request>, TransportError> {
        assert!(count <= SLOT, "a message of {count} values");
        let receiving = &mut self.receiving[MessageKind::Values as usize];
        if receiving.started - receiving.taken >= UNDER_WAY as u64 {
            return Ok(None);
        }
        receiving.started += 1;
        Ok(Some(Request::Values { number: receiving.started - 1, count }))
    }

    fn is_over(&mut self, request: &mut Request) -> Result<bool, TransportError> {
        Ok(match *request {
            Request::Send { kind, number } => {
                self.fill_slots(kind);
                let sending = &self.sending[kind as usize];
                number < sending.started - sending.waiting.len() as u64
            }
            Request::Values { number, count } => {
                self.has_arrived(MessageKind::Values, number, count)?
            }
            Request::Sum { number, to, count } => {
                let has_arrived = self.has_arrived(MessageKind::Sum, number, count)?;
                if has_arrived && number == self.receiving[MessageKind::Sum as usize].taken {
                    let slot = self.incoming(MessageKind::Sum).slot(number);
                    // SAFETY: the slot is written and not used again before it is released; the receiver keeps its
                    // memory until this request is over.
                    unsafe { std::ptr::copy_nonoverlapping(slot, to, count) };
                    self.release(MessageKind::Sum, number);
                }
                has_arrived
            }
        })
    }

    fn add(&mut self, request: Request, to: &mut [f32]) {
        let Request::Values { number, count } = request else { return };
        let slot = self.incoming(MessageKind::Values).slot(number);
        // SAFETY: the slot has room for `count` values, is written, and is not used again before it is released.
        add(to, unsafe { std::slice::from_raw_parts(slot, count) });
        self.release(MessageKind::Values, number);
    }
}

impl Ring {
    fn count(&self, number: u64) -> &AtomicU64 {
        &self.counts[number as usize % SLOTS]
    }

    fn slot(&self, number: u64) -> *mut f32 {
        self.slots[number as usize % SLOTS].as_ptr().cast_mut().cast()
    }
}

impl Counter {
    /// What was written before the other rank set this is visible.
    fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    fn set(&self, count: u64) {
        self.0.store(count, Ordering::Release);
    }
}

/// What rank 0 or 1 sends.
fn rings(memory: &MmapRaw, rank: usize) -> &Rings {
    // SAFETY: the file has the ring buffers of two ranks, nobody shortens it, and a mapping begins with a page. What
    // both ranks use is atomic, or belongs to one of them by what the counters say.
    unsafe { &*memory.as_ptr().cast::<Rings>().add(rank) }
}

/// Copies with non-temporal stores. Ordinary stores first take back the cache lines that the other core has read: at
/// times that took eight times as long.
///
/// # Safety
/// As [`std::ptr::copy_nonoverlapping`], and `to` begins with a cache line.
#[cfg(target_arch = "x86_64")]
unsafe fn stream(from: *const f32, to: *mut f32, count: usize) {
    use std::arch::x86_64::{_mm_loadu_ps, _mm_sfence, _mm_stream_ps};
    const LANES: usize = 4;
    let whole = count - count % LANES;
    // SAFETY: all parts are inside of both, and every store is aligned because the first one is. The fence makes what
    // was stored visible before the counter that is set next.
    unsafe {
        for at in (0..whole).step_by(LANES) {
            _mm_stream_ps(to.add(at), _mm_loadu_ps(from.add(at)));
        }
        std::ptr::copy_nonoverlapping(from.add(whole), to.add(whole), count - whole);
        _mm_sfence();
    }
}

/// # Safety
/// As [`std::ptr::copy_nonoverlapping`].
#[cfg(not(target_arch = "x86_64"))]
unsafe fn stream(from: *const f32, to: *mut f32, count: usize) {
    // SAFETY: the caller's.
    unsafe { std::ptr::copy_nonoverlapping(from, to, count) };
}

#[cfg(test)]
mod tests;
