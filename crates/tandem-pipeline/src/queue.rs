//! The queue between two stages: bounded in items and bytes, and in order.
//!
//! In: items from any number of workers, each with the number of the input that it results from.
//! Out: the same items in the order of those numbers. A worker reserves a slot *before* it takes
//! its input, so every input in work has room for its result, and the results that were finished
//! early are bounded by the same slots. A slot is free again when the next stage takes the item;
//! at the end of a route, when the consumer has finished it (there they are the batch slots).
//! Items never overtake each other. A skipped input travels as a marker: an entry with a ticket,
//! without a body and without bytes, in the order of the items. Starts no thread, knows no clock. Next: [`crate::worker`].

use crate::budget::{Charge, QueueBudget, Stopped};
use crate::payload::Payload;
use crate::slot_pool::SlotPool;
use crate::slots::{SlotState, Slots};
use crate::sync::{Condvar, Mutex, MutexGuard, lock, wait, wait_at_most};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tandem_telemetry::event::StartReason;
use tandem_units::{Bytes, Ticket};

/// Inputs that may be finished before the one whose turn it is. Only inputs without a result can
/// reach this limit: all others are limited by the slots.
const WINDOW: usize = 1024;

/// A queue, and the buffer in which early results wait for their turn.
pub(crate) struct Queue<T> {
    budget: Arc<QueueBudget>,
    state: Mutex<QueueContents<T>>,
    arrived: Condvar,
    room: Condvar,
    turn: Condvar,
}

struct QueueContents<T> {
    ready: VecDeque<QueueEntry<T>>,
    // Early results; the front belongs to the input whose turn it is.
    early: VecDeque<Early<T>>,
    turn: u64,
    taken: u64,
    slots: SlotPool,
    producers: usize,
    stopped: bool,
    // The input whose turn it is has used its slot and may need another. The next free slot is
    // reserved for it: otherwise later inputs could use all slots while they wait for it.
    turn_lacks_slot: bool,
    waiting: Waiting,
    display: Option<Slots>,
}

#[derive(Default)]
struct Waiting {
    arrival: usize,
    room: usize,
    turn: usize,
}

struct Early<T> {
    entries: Vec<QueueEntry<T>>,
    done: bool,
}

/// A reserved slot of a queue, by its index.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct QueueSlot(pub(crate) usize);

/// An item in a queue, or the marker of a skipped one, with its slot and its bytes.
pub(crate) struct QueueEntry<T> {
    /// `None` in a marker.
    pub(crate) body: Option<T>,
    pub(crate) ticket: Option<Ticket>,
    /// `None` in a marker, which has no bytes.
    pub(crate) charge: Option<Charge>,
    pub(crate) slot: QueueSlot,
}

/// What [`Queue::take`] found.
pub(crate) enum Taken<T> {
    /// The next item or marker, and its number in this queue.
    Item(u64, QueueEntry<T>),
    /// There are no more; the number of items there were.
    End(u64),
}

/// How full a queue is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Items that the next stage could take now.
    pub ready: usize,
    /// Slots in use: for items that are ready, in work or finished early.
    pub in_use: usize,
    pub slots: usize,
    /// Bytes charged to this queue.
    pub bytes: Bytes,
    pub limit: Bytes,
}

impl<T: Payload> Queue<T> {
    pub(crate) fn new(budget: Arc<QueueBudget>, slots: usize, producers: usize) -> Queue<T> {
        let state = QueueContents {
            ready: VecDeque::new(),
            early: VecDeque::new(),
            turn: 0,
            taken: 0,
            slots: SlotPool::new(slots),
            producers,
            stopped: false,
            turn_lacks_slot: false,
            waiting: Waiting::default(),
            display: None,
        };
        let (arrived, room, turn) = (Condvar::new(), Condvar::new(), Condvar::new());
        Queue { budget, state: Mutex::new(state), arrived, room, turn }
    }

    /// From now on `slots` shows the states of this queue's slots.
    pub(crate) fn show_in(&self, slots: Slots) {
        let mut state = lock(&self.state);
        slots.resize(state.slots.count());
        state.display = Some(slots);
    }

    /// Reserves a slot for the next result, unless `slot` is one already.
    pub(crate) fn reserve(
        &self,
        slot: &mut Option<QueueSlot>,
        waiting: &mut dyn FnMut(),
    ) -> Result<(), Stopped> {
        let mut state = lock(&self.state);
        loop {
            if state.stopped {
                return Err(Stopped);
            }
            if state.early.len() < WINDOW {
                if slot.is_none() && state.has_room() {
                    *slot = state.slots.take().map(QueueSlot);
                }
                if slot.is_some() {
                    return Ok(());
                }
            }
            waiting();
            state.waiting.room += 1;
            state = wait(&self.room, state);
            state.waiting.room -= 1;
        }
    }

    /// Passes on a result of input number `input`, whose charge is `source`.
    pub(crate) fn push(
        &self,
        input: u64,
        body: T,
        slot: &mut Option<QueueSlot>,
        source: &mut Option<Charge>,
        waiting: &mut dyn FnMut(),
    ) -> Result<(), Stopped> {
        let (size, ticket) = (body.size(), body.ticket());
        let turn = slot.is_some() && self.is_turn(input);
        let early = if slot.is_some() && !turn { self.budget.charge_ahead(size) } else { None };
        let charge = match early {
            Some(charge) => charge,
            None if turn => self.budget.charge(size, source, waiting)?,
            None => {
                self.reserve_in_turn(input, slot, waiting)?;
                self.budget.charge(size, source, waiting)?
            }
        };
        let Some(slot) = slot.take() else { return Err(Stopped) };
        self.put(input, QueueEntry { body: Some(body), ticket, charge: Some(charge), slot })
    }

    /// Passes on a marker: input number `input` was skipped. Waits for no bytes, and for a slot only
    /// if the worker did not reserve one.
    pub(crate) fn push_marker(
        &self,
        input: u64,
        ticket: Option<Ticket>,
        slot: &mut Option<QueueSlot>,
        waiting: &mut dyn FnMut(),
    ) -> Result<(), Stopped> {
        if slot.is_none() {
            self.reserve_in_turn(input, slot, waiting)?;
        }
        let Some(slot) = slot.take() else { return Err(Stopped) };
        self.put(input, QueueEntry { body: None, ticket, charge: None, slot })
    }

    /// Input number `input` has no further results.
    pub(crate) fn complete(&self, input: u64) {
        let mut state = lock(&self.state);
        if input != state.turn {
            state.early_of(input).done = true;
            return;
        }
        let ready_before = state.ready.len();
        let crowded = state.early.len() >= WINDOW;
        state.advance();
        let arrived = (state.ready.len() - ready_before).min(state.waiting.arrival);
        let (turn, room) = (state.waiting.turn, state.waiting.room);
        let has_room = state.has_room();
        drop(state);
        (0..arrived).for_each(|_| self.arrived.notify_one());
        if turn > 0 {
            self.turn.notify_all();
        }
        if room > 0 && crowded {
            self.room.notify_all();
        } else if room > 0 && has_room {
            self.room.notify_one();
        }
    }

    /// Waits until all inputs before this one are complete.
    pub(crate) fn await_turn(&self, input: u64, waiting: &mut dyn FnMut()) -> Result<(), Stopped> {
        let mut state = lock(&self.state);
        while state.turn != input {
            if state.stopped {
                return Err(Stopped);
            }
            waiting();
            state.waiting.turn += 1;
            state = wait(&self.turn, state);
            state.waiting.turn -= 1;
        }
        Ok(())
    }

    /// One worker has ended.
    pub(crate) fn retire(&self) {
        let mut state = lock(&self.state);
        state.producers -= 1;
        let over = state.producers == 0;
        drop(state);
        if over {
            self.arrived.notify_all();
        }
    }

    /// Takes the next item and frees its slot.
    pub(crate) fn take(&self, waiting: &mut dyn FnMut()) -> Result<Taken<T>, Stopped> {
        let (mut state, taken) = self.next(waiting)?;
        if let Taken::Item(_, entry) = &taken {
            state.free(&entry.slot);
            self.wake_for_room(state);
        }
        Ok(taken)
    }

    /// Takes the next item and keeps its slot until [`Queue::release`].
    pub(crate) fn take_and_keep(&self, waiting: &mut dyn FnMut()) -> Result<Taken<T>, Stopped> {
        let (mut state, taken) = self.next(waiting)?;
        if let Taken::Item(_, entry @ QueueEntry { body: Some(_), .. }) = &taken {
            state.show(&entry.slot, SlotState::Training, entry.ticket);
        }
        Ok(taken)
    }

    /// Frees a slot.
    pub(crate) fn release(&self, slot: QueueSlot) {
        let mut state = lock(&self.state);
        state.show(&slot, SlotState::Preparing, None);
        state.free(&slot);
        self.wake_for_room(state);
    }

    /// Waits until `count` items are ready, every slot is, the data has ended, the run is
    /// stopped, or until the deadline. Returns the number of items ready and what ended the wait.
    /// Markers are not counted as items, but they take up slots: a queue full of them is ready.
    pub(crate) fn await_ready(
        &self,
        count: usize,
        deadline: Instant,
    ) -> Result<(usize, StartReason), Stopped> {
        let mut state = lock(&self.state);
        loop {
            if state.stopped {
                return Err(Stopped);
            }
            let ready = state.items_ready();
            let left = deadline.saturating_duration_since(Instant::now());
            // There can never be more items than slots.
            if ready >= count || state.ready.len() >= state.slots.count() {
                return Ok((ready, StartReason::EnoughReady));
            }
            if state.producers == 0 {
                return Ok((ready, StartReason::EndOfData));
            }
            if left == Duration::ZERO {
                return Ok((ready, StartReason::DelayOver));
            }
            state.waiting.arrival += 1;
            state = wait_at_most(&self.arrived, state, left);
            state.waiting.arrival -= 1;
        }
    }

    /// Waits until [`Queue::take`] would return at once, or until the deadline; whether it would.
    /// `waiting` is called before the first wait.
    pub(crate) fn await_next(&self, deadline: Instant, waiting: &mut dyn FnMut()) -> bool {
        let mut state = lock(&self.state);
        loop {
            if state.stopped || !state.ready.is_empty() || state.producers == 0 {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                return false;
            }
            waiting();
            state.waiting.arrival += 1;
            state = wait_at_most(&self.arrived, state, left);
            state.waiting.arrival -= 1;
        }
    }

    fn next(
        &self,
        waiting: &mut dyn FnMut(),
    ) -> Result<(MutexGuard<'_, QueueContents<T>>, Taken<T>), Stopped> {
        let mut state = lock(&self.state);
        loop {
            if state.stopped {
                return Err(Stopped);
            }
            if let Some(entry) = state.ready.pop_front() {
                let number = state.taken;
                state.taken += 1;
                return Ok((state, Taken::Item(number, entry)));
            }
            if state.producers == 0 {
                let count = state.taken;
                return Ok((state, Taken::End(count)));
            }
            waiting();
            state.waiting.arrival += 1;
            state = wait(&self.arrived, state);
            state.waiting.arrival -= 1;
        }
    }

    fn is_turn(&self, input: u64) -> bool {
        lock(&self.state).turn == input
    }

    /// Waits until it is this input's turn and there is a slot for it.
    pub(crate) fn reserve_in_turn(
        &self,
        input: u64,
        slot: &mut Option<QueueSlot>,
        waiting: &mut dyn FnMut(),
    ) -> Result<(), Stopped> {
        let mut state = lock(&self.state);
        loop {
            if state.stopped {
                return Err(Stopped);
            }
            if state.turn == input {
                if slot.is_none() {
                    *slot = state.slots.take().map(QueueSlot);
                }
                if slot.is_some() {
                    state.turn_lacks_slot = false;
                    return Ok(());
                }
            }
            waiting();
            state.waiting.turn += 1;
            state = wait(&self.turn, state);
            state.waiting.turn -= 1;
        }
    }

    fn put(&self, input: u64, mut entry: QueueEntry<T>) -> Result<(), Stopped> {
        let mut state = lock(&self.state);
        if state.stopped {
            return Err(Stopped);
        }
        if state.turn != input {
            state.early_of(input).entries.push(entry);
            return Ok(());
        }
        entry.settle();
        state.deliver(entry);
        state.turn_lacks_slot = true;
        let taker_waits = state.waiting.arrival > 0;
        drop(state);
        if taker_waits {
            self.arrived.notify_one();
        }
        Ok(())
    }

    fn wake_for_room(&self, state: MutexGuard<'_, QueueContents<T>>) {
        let turn = state.waiting.turn > 0;
        let room = state.waiting.room > 0 && state.has_room();
        drop(state);
        if turn {
            self.turn.notify_all();
        }
        if room {
            self.room.notify_one();
        }
    }
}

impl<T> QueueEntry<T> {
    fn settle(&mut self) {
        if let Some(charge) = &mut self.charge {
            charge.settle();
        }
    }
}

impl<T> QueueContents<T> {
    fn items_ready(&self) -> usize {
        self.ready.iter().filter(|entry| entry.body.is_some()).count()
    }

    /// Whether there is a slot for an input that has none yet.
    fn has_room(&self) -> bool {
        self.slots.free() > usize::from(self.turn_lacks_slot)
    }

    fn early_of(&mut self, input: u64) -> &mut Early<T> {
        let index = (input - self.turn) as usize;
        while self.early.len() <= index {
            self.early.push_back(Early { entries: Vec::new(), done: false });
        }
        &mut self.early[index]
    }

    /// Completes the input whose turn it is, and the next inputs if they were finished early.
    fn advance(&mut self) {
        self.early.pop_front();
        self.turn += 1;
        self.turn_lacks_slot = false;
        while let Some(next) = self.early.front_mut() {
            let (done, entries) = (next.done, std::mem::take(&mut next.entries));
            self.turn_lacks_slot = !done && !entries.is_empty();
            for mut entry in entries {
                entry.settle();
                self.deliver(entry);
            }
            if !done {
                break;
            }
            self.early.pop_front();
            self.turn += 1;
        }
    }

    fn deliver(&mut self, entry: QueueEntry<T>) {
        if entry.body.is_some() {
            self.show(&entry.slot, SlotState::Ready, entry.ticket);
        }
        self.ready.push_back(entry);
    }

    fn free(&mut self, slot: &QueueSlot) {
        self.slots.put_back(slot.0);
    }

    fn show(&mut self, slot: &QueueSlot, state: SlotState, ticket: Option<Ticket>) {
        if let Some(slots) = &self.display {
            slots.set(slot.0, state, ticket);
        }
    }
}

/// A queue of any item type, as the control handle needs it.
pub(crate) trait AnyQueue: Send + Sync {
    fn level(&self) -> Level;
    fn resize(&self, slots: usize);
    /// Ends every wait at this queue, now and later.
    fn stop(&self);
}

impl<T: Payload> AnyQueue for Queue<T> {
    fn level(&self) -> Level {
        let state = lock(&self.state);
        let (ready, in_use, slots) =
            (state.items_ready(), state.slots.in_use(), state.slots.count());
        drop(state);
        Level { ready, in_use, slots, bytes: self.budget.used(), limit: self.budget.limit() }
    }

    fn resize(&self, slots: usize) {
        let mut state = lock(&self.state);
        state.slots.resize(slots);
        if let Some(slots) = &state.display {
            slots.resize(state.slots.count());
        }
        drop(state);
        self.room.notify_all();
        self.turn.notify_all();
    }

    fn stop(&self) {
        lock(&self.state).stopped = true;
        self.budget.stop();
        self.arrived.notify_all();
        self.room.notify_all();
        self.turn.notify_all();
    }
}
