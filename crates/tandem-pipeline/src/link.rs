//! The queue between two stages: bounded in places and bytes, and in order.
//!
//! In: items from any number of workers, each marked with the number of the input it was made
//! from. Out: the same items in the order of those numbers. A worker takes a place *before* it
//! takes its input, so every input being worked on has room for its result, and the buffer of
//! results that came too early is bounded by the same places. A place is free again when the
//! next stage takes the item; at the end of a route, when the consumer is done with it (there
//! the places are the batch slots). Items never overtake each other. A skipped input travels as a
//! marker: an entry with a ticket, without a body and without bytes, in the order of the items.
//! Starts no thread, knows no clock. Next: [`crate::worker`].

use crate::budget::{Charge, Seat, Stopped};
use crate::payload::Payload;
use crate::places::Places;
use crate::slots::{SlotState, Slots};
use crate::sync::{Condvar, Mutex, MutexGuard, lock, wait, wait_at_most};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tandem_telemetry::event::StartReason;
use tandem_units::{Bytes, Ticket};

/// Inputs that may be finished ahead of the one whose turn it is. Only inputs without a result
/// come near it: all others are held back by the places.
const WINDOW: usize = 1024;

/// A queue and the buffer that restores the order in front of it.
pub(crate) struct Link<T> {
    seat: Arc<Seat>,
    state: Mutex<State<T>>,
    arrived: Condvar,
    room: Condvar,
    turn: Condvar,
}

struct State<T> {
    ready: VecDeque<Parcel<T>>,
    // What came early: the front belongs to the input whose turn it is.
    early: VecDeque<Early<T>>,
    turn: u64,
    taken: u64,
    places: Places,
    producers: usize,
    stopped: bool,
    // The input whose turn it is has used its place and may need another: the next free one is
    // kept for it, or those after it could hold all places while they wait for it.
    bare: bool,
    waiting: Waiting,
    slots: Option<Slots>,
}

#[derive(Default)]
struct Waiting {
    arrival: usize,
    room: usize,
    turn: usize,
}

struct Early<T> {
    parcels: Vec<Parcel<T>>,
    done: bool,
}

/// A place in a queue, by its number.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place(pub(crate) usize);

/// An item in a queue, or the marker of a skipped one, with what it takes up.
pub(crate) struct Parcel<T> {
    /// `None` in a marker.
    pub(crate) body: Option<T>,
    pub(crate) ticket: Option<Ticket>,
    /// `None` in a marker, which has no bytes.
    pub(crate) charge: Option<Charge>,
    pub(crate) place: Place,
}

/// What [`Link::take`] found.
pub(crate) enum Taken<T> {
    /// The next item or marker, and its number in this queue.
    Item(u64, Parcel<T>),
    /// There were so many items, and there will be no more.
    End(u64),
}

/// A look at a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Items the next stage could take now.
    pub ready: usize,
    /// Places in use: items ready, in the works or finished early.
    pub held: usize,
    /// All places.
    pub places: usize,
    /// Bytes charged to this queue.
    pub bytes: Bytes,
    /// The most bytes it may hold.
    pub limit: Bytes,
}

impl<T: Payload> Link<T> {
    pub(crate) fn new(seat: Arc<Seat>, places: usize, producers: usize) -> Link<T> {
        let state = State {
            ready: VecDeque::new(),
            early: VecDeque::new(),
            turn: 0,
            taken: 0,
            places: Places::new(places),
            producers,
            stopped: false,
            bare: false,
            waiting: Waiting::default(),
            slots: None,
        };
        let (arrived, room, turn) = (Condvar::new(), Condvar::new(), Condvar::new());
        Link { seat, state: Mutex::new(state), arrived, room, turn }
    }

    /// From now on `slots` shows the states of the places.
    pub(crate) fn show_on(&self, slots: Slots) {
        let mut state = lock(&self.state);
        slots.resize(state.places.count());
        state.slots = Some(slots);
    }

    /// Takes a place for the next result, unless `place` holds one already.
    pub(crate) fn reserve(
        &self,
        place: &mut Option<Place>,
        waiting: &mut dyn FnMut(),
    ) -> Result<(), Stopped> {
        let mut state = lock(&self.state);
        loop {
            if state.stopped {
                return Err(Stopped);
            }
            if state.early.len() < WINDOW {
                if place.is_none() && state.has_room() {
                    *place = state.places.take().map(Place);
                }
                if place.is_some() {
                    return Ok(());
                }
            }
            waiting();
            state.waiting.room += 1;
            state = wait(&self.room, state);
            state.waiting.room -= 1;
        }
    }

    /// Passes on a result of input `input`, whose charge is `source`.
    pub(crate) fn push(
        &self,
        input: u64,
        body: T,
        place: &mut Option<Place>,
        source: &mut Option<Charge>,
        waiting: &mut dyn FnMut(),
    ) -> Result<(), Stopped> {
        let (size, ticket) = (body.size(), body.ticket());
        let turn = place.is_some() && self.is_turn(input);
        let early = if place.is_some() && !turn { self.seat.charge_ahead(size) } else { None };
        let charge = match early {
            Some(charge) => charge,
            None if turn => self.seat.charge(size, source, waiting)?,
            None => {
                self.reserve_in_turn(input, place, waiting)?;
                self.seat.charge(size, source, waiting)?
            }
        };
        let Some(place) = place.take() else { return Err(Stopped) };
        self.put(input, Parcel { body: Some(body), ticket, charge: Some(charge), place })
    }

    /// Passes on that input `input` was skipped. Waits for no bytes, and for a place only where
    /// the worker did not reserve one.
    pub(crate) fn push_marker(
        &self,
        input: u64,
        ticket: Option<Ticket>,
        place: &mut Option<Place>,
        waiting: &mut dyn FnMut(),
    ) -> Result<(), Stopped> {
        if place.is_none() {
            self.reserve_in_turn(input, place, waiting)?;
        }
        let Some(place) = place.take() else { return Err(Stopped) };
        self.put(input, Parcel { body: None, ticket, charge: None, place })
    }

    /// Input `input` will have no further results.
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

    /// One worker has passed on everything it ever will.
    pub(crate) fn retire(&self) {
        let mut state = lock(&self.state);
        state.producers -= 1;
        let over = state.producers == 0;
        drop(state);
        if over {
            self.arrived.notify_all();
        }
    }

    /// Takes the next item and frees its place.
    pub(crate) fn take(&self, waiting: &mut dyn FnMut()) -> Result<Taken<T>, Stopped> {
        let (mut state, taken) = self.next(waiting)?;
        if let Taken::Item(_, parcel) = &taken {
            state.free(&parcel.place);
            self.wake_for_room(state);
        }
        Ok(taken)
    }

    /// Takes the next item and keeps its place until [`Link::release`].
    pub(crate) fn take_and_keep(&self, waiting: &mut dyn FnMut()) -> Result<Taken<T>, Stopped> {
        let (mut state, taken) = self.next(waiting)?;
        if let Taken::Item(_, parcel @ Parcel { body: Some(_), .. }) = &taken {
            state.show(&parcel.place, SlotState::Training, parcel.ticket);
        }
        Ok(taken)
    }

    /// Frees a place.
    pub(crate) fn release(&self, place: Place) {
        let mut state = lock(&self.state);
        state.show(&place, SlotState::Preparing, None);
        state.free(&place);
        self.wake_for_room(state);
    }

    /// Waits until `count` items are ready, every place is, the data has ended, the run is
    /// stopped, or until the deadline. Gives the number of items ready and what ended the wait.
    /// Markers are not counted as items, but they take up places: a queue full of them is ready.
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
            // More than there are places can never be ready.
            if ready >= count || state.ready.len() >= state.places.count() {
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

    fn next(
        &self,
        waiting: &mut dyn FnMut(),
    ) -> Result<(MutexGuard<'_, State<T>>, Taken<T>), Stopped> {
        let mut state = lock(&self.state);
        loop {
            if state.stopped {
                return Err(Stopped);
            }
            if let Some(parcel) = state.ready.pop_front() {
                let number = state.taken;
                state.taken += 1;
                return Ok((state, Taken::Item(number, parcel)));
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

    /// Waits until it is this input's turn and there is a place for it.
    pub(crate) fn reserve_in_turn(
        &self,
        input: u64,
        place: &mut Option<Place>,
        waiting: &mut dyn FnMut(),
    ) -> Result<(), Stopped> {
        let mut state = lock(&self.state);
        loop {
            if state.stopped {
                return Err(Stopped);
            }
            if state.turn == input {
                if place.is_none() {
                    *place = state.places.take().map(Place);
                }
                if place.is_some() {
                    state.bare = false;
                    return Ok(());
                }
            }
            waiting();
            state.waiting.turn += 1;
            state = wait(&self.turn, state);
            state.waiting.turn -= 1;
        }
    }

    fn put(&self, input: u64, mut parcel: Parcel<T>) -> Result<(), Stopped> {
        let mut state = lock(&self.state);
        if state.stopped {
            return Err(Stopped);
        }
        if state.turn != input {
            state.early_of(input).parcels.push(parcel);
            return Ok(());
        }
        parcel.settle();
        state.deliver(parcel);
        state.bare = true;
        let somebody = state.waiting.arrival > 0;
        drop(state);
        if somebody {
            self.arrived.notify_one();
        }
        Ok(())
    }

    fn wake_for_room(&self, state: MutexGuard<'_, State<T>>) {
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

impl<T> Parcel<T> {
    fn settle(&mut self) {
        if let Some(charge) = &mut self.charge {
            charge.settle();
        }
    }
}

impl<T> State<T> {
    fn items_ready(&self) -> usize {
        self.ready.iter().filter(|parcel| parcel.body.is_some()).count()
    }

    /// Whether there is a place for an input that has none yet.
    fn has_room(&self) -> bool {
        self.places.free() > usize::from(self.bare)
    }

    fn early_of(&mut self, input: u64) -> &mut Early<T> {
        let index = (input - self.turn) as usize;
        while self.early.len() <= index {
            self.early.push_back(Early { parcels: Vec::new(), done: false });
        }
        &mut self.early[index]
    }

    /// The turn's input is complete: those after it that came early go through.
    fn advance(&mut self) {
        self.early.pop_front();
        self.turn += 1;
        self.bare = false;
        while let Some(next) = self.early.front_mut() {
            let (done, parcels) = (next.done, std::mem::take(&mut next.parcels));
            self.bare = !done && !parcels.is_empty();
            for mut parcel in parcels {
                parcel.settle();
                self.deliver(parcel);
            }
            if !done {
                break;
            }
            self.early.pop_front();
            self.turn += 1;
        }
    }

    fn deliver(&mut self, parcel: Parcel<T>) {
        if parcel.body.is_some() {
            self.show(&parcel.place, SlotState::Ready, parcel.ticket);
        }
        self.ready.push_back(parcel);
    }

    fn free(&mut self, place: &Place) {
        self.places.give_back(place.0);
    }

    fn show(&mut self, place: &Place, state: SlotState, ticket: Option<Ticket>) {
        if let Some(slots) = &self.slots {
            slots.set(place.0, state, ticket);
        }
    }
}

/// What the control handle needs of a queue, whatever travels in it.
pub(crate) trait AnyLink: Send + Sync {
    fn level(&self) -> Level;
    fn resize(&self, places: usize);
    /// Sends all away who wait here, now and later.
    fn stop(&self);
}

impl<T: Payload> AnyLink for Link<T> {
    fn level(&self) -> Level {
        let state = lock(&self.state);
        let (ready, held, places) =
            (state.items_ready(), state.places.held(), state.places.count());
        drop(state);
        Level { ready, held, places, bytes: self.seat.used(), limit: self.seat.limit() }
    }

    fn resize(&self, places: usize) {
        let mut state = lock(&self.state);
        state.places.resize(places);
        if let Some(slots) = &state.slots {
            slots.resize(state.places.count());
        }
        drop(state);
        self.room.notify_all();
        self.turn.notify_all();
    }

    fn stop(&self) {
        lock(&self.state).stopped = true;
        self.seat.stop();
        self.arrived.notify_all();
        self.room.notify_all();
        self.turn.notify_all();
    }
}
