//! A route that runs: its threads, its meters, and how they end.
//!
//! In: the parts of a route. Out: a [`Feed`] for the consumer and a [`Control`] for everyone
//! else. Threads are named `tandem-STAGE-WORKER` and live as long as the run. At the end all of
//! them are joined; one that is stuck inside a stage is left behind and named.

use crate::adapt::Adapt;
use crate::control::Control;
use crate::error::PipelineError;
use crate::feed::Feed;
use crate::gate::Gate;
use crate::link::{AnyLink, Link};
use crate::meter::{Activity, Meter, Piece, PieceListener};
use crate::monitor::Monitor;
use crate::payload::Payload;
use crate::route::{Crew, Setup};
use crate::slots::Slots;
use crate::stop::{Cause, Stop};
use crate::sync::{Condvar, Mutex, lock, wait_at_most};
use crate::worker::Context;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tandem_telemetry::Recorder;
use tandem_telemetry::event::{Doing, SlotChange, Span};
use tandem_telemetry::record::Spans;

/// What a worker's thread runs.
pub(crate) type Body = Box<dyn FnOnce(Context) + Send>;

/// One stage of a route before it is started.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) crew: Crew,
    pub(crate) gate: Arc<Gate>,
    pub(crate) output: Arc<dyn AnyLink>,
    pub(crate) bodies: Vec<Body>,
}

/// One stage of a running route.
pub(crate) struct Running {
    pub(crate) name: &'static str,
    pub(crate) crew: Crew,
    pub(crate) gate: Arc<Gate>,
    pub(crate) meters: Vec<Arc<Meter>>,
    pub(crate) output: Arc<dyn AnyLink>,
}

/// What all handles of a run share.
pub(crate) struct Run {
    pub(crate) stages: Vec<Running>,
    pub(crate) consumer: &'static str,
    pub(crate) consumer_meter: Arc<Meter>,
    pub(crate) stop: Arc<Stop>,
    pub(crate) slots: Slots,
    pub(crate) recorder: Recorder,
    pub(crate) started: Instant,
}

pub(crate) fn start<T: Payload>(
    parts: Vec<Part>,
    end: Arc<Link<T>>,
    setup: Setup,
) -> Result<Feed<T>, PipelineError> {
    let links = parts.iter().map(|part| Arc::clone(&part.output)).collect();
    let gates = parts.iter().map(|part| Arc::clone(&part.gate)).collect();
    let stop = Arc::new(Stop::new(links, gates));
    let slots = Slots::new(slot_listener(&setup.recorder));
    end.show_on(slots.clone());
    let (stages, bodies): (Vec<_>, Vec<_>) =
        parts.into_iter().map(|part| split(part, &setup.recorder)).unzip();
    let run = Arc::new(Run {
        stages,
        consumer: setup.consumer,
        consumer_meter: Arc::new(Meter::new(piece_listener(&setup.recorder, setup.consumer, 0))),
        stop,
        slots,
        recorder: setup.recorder.clone(),
        started: Instant::now(),
    });
    let mut threads = Threads::default();
    if let Err(error) = threads.start_all(&run, bodies, &setup) {
        run.stop.stop(Cause::Failed(error.clone()));
        threads.join(&run.stop, setup.watch.grace);
        return Err(error);
    }
    // Last, so that a token cancelled long ago stops a run that is whole.
    setup.cancel.attach(&run.stop);
    Ok(Feed::new(end, Control(run), threads, setup.watch.grace, setup.slow))
}

fn split(part: Part, recorder: &Recorder) -> (Running, Vec<Body>) {
    let meter = |index| Arc::new(Meter::new(piece_listener(recorder, part.name, index)));
    let meters = (0..part.bodies.len()).map(meter).collect();
    let Part { name, crew, gate, output, bodies } = part;
    (Running { name, crew, gate, meters, output }, bodies)
}

fn slot_listener(recorder: &Recorder) -> crate::slots::Listener {
    let recorder = recorder.clone();
    Box::new(move |index, slot| {
        let change = SlotChange { slot: index as u32, state: slot.state, ticket: slot.ticket };
        recorder.send(change);
    })
}

fn piece_listener(
    recorder: &Recorder,
    stage: &'static str,
    worker: usize,
) -> Option<PieceListener> {
    if recorder.spans() == Spans::Dropped {
        return None;
    }
    let clock = recorder.clock()?;
    let recorder = recorder.clone();
    Some(Box::new(move |piece: Piece| {
        let doing = match piece.activity {
            Activity::Busy => Doing::Busy,
            Activity::Starved => Doing::Starved,
            Activity::Blocked => Doing::Blocked,
            Activity::Parked => return,
        };
        let (begin, end) = (clock.at(piece.begin), clock.at(piece.end));
        // Waiting is the worker's; work may be that of a part.
        let part = piece.part.filter(|_| doing == Doing::Busy);
        let (stage, worker) = (part.unwrap_or(stage).into(), worker as u32);
        recorder.send_at(end, Span { stage, worker, ticket: piece.ticket, doing, begin, end });
    }))
}

/// The threads of a run.
#[derive(Default)]
pub(crate) struct Threads {
    workers: Vec<(String, JoinHandle<()>)>,
    at_work: Arc<Roll>,
    monitor: Option<(Arc<Quit>, JoinHandle<()>)>,
}

impl Threads {
    fn start_all(
        &mut self,
        run: &Arc<Run>,
        bodies: Vec<Vec<Body>>,
        setup: &Setup,
    ) -> Result<(), PipelineError> {
        // Before the first worker starts: what it does then counts in the first interval.
        let adapt = match &setup.adapt {
            Adapt::Off => None,
            Adapt::On(limits) => Some(limits.clone()),
        };
        let monitor = Monitor::new(Arc::clone(run), &setup.watch, setup.sample_every, adapt);
        for (stage, bodies) in run.stages.iter().zip(bodies) {
            for (index, body) in bodies.into_iter().enumerate() {
                let context = Context {
                    stage: stage.name,
                    meter: Arc::clone(&stage.meters[index]),
                    stop: Arc::clone(&run.stop),
                    recorder: run.recorder.clone(),
                    slow: setup.slow.clone(),
                };
                let name = format!("tandem-{}-{index}", stage.name);
                let entry = self.at_work.enter();
                let priority = setup.priority;
                let thread = spawn(&name, move || {
                    let _at_work = entry;
                    priority.apply();
                    body(context);
                })?;
                self.workers.push((name, thread));
            }
        }
        let quit = Arc::new(Quit::default());
        let until = Arc::clone(&quit);
        let thread = spawn("tandem-monitor", move || monitor.run(&until))?;
        self.monitor = Some((quit, thread));
        Ok(())
    }

    /// Joins every thread and gives the names of those that could not be: a thread inside a
    /// frozen stage gets `grace` to come back. Without a watchdog this waits for all.
    pub(crate) fn join(&mut self, stop: &Stop, grace: Duration) -> Vec<String> {
        while !self.at_work.wait_empty(Duration::from_millis(20)) {
            if stop.frozen_for().is_some_and(|since| since > grace) {
                break;
            }
        }
        let mut left = Vec::new();
        let empty = self.at_work.wait_empty(Duration::ZERO);
        for (name, thread) in self.workers.drain(..) {
            if empty || thread.is_finished() {
                // A worker's panic was caught and told inside its thread.
                let _ = thread.join();
            } else {
                left.push(name);
            }
        }
        if let Some((quit, thread)) = self.monitor.take() {
            quit.quit();
            let _ = thread.join();
        }
        left
    }
}

fn spawn(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, PipelineError> {
    std::thread::Builder::new().name(name.to_string()).spawn(body).map_err(|source| {
        PipelineError::Thread { name: name.to_string(), source: Arc::new(source) }
    })
}

/// Who is still at work.
#[derive(Default)]
struct Roll {
    count: Mutex<usize>,
    left: Condvar,
}

struct Entry(Arc<Roll>);

impl Roll {
    fn enter(self: &Arc<Self>) -> Entry {
        *lock(&self.count) += 1;
        Entry(Arc::clone(self))
    }

    fn wait_empty(&self, at_most: Duration) -> bool {
        let count = lock(&self.count);
        if *count == 0 {
            return true;
        }
        *wait_at_most(&self.left, count, at_most) == 0
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        *lock(&self.0.count) -= 1;
        self.0.left.notify_all();
    }
}

/// Ends the monitor.
#[derive(Default)]
pub(crate) struct Quit {
    asked: Mutex<bool>,
    changed: Condvar,
}

impl Quit {
    fn quit(&self) {
        *lock(&self.asked) = true;
        self.changed.notify_all();
    }

    /// Waits, and says whether it is time to end.
    pub(crate) fn wait(&self, at_most: Duration) -> bool {
        let asked = lock(&self.asked);
        if *asked {
            return true;
        }
        *wait_at_most(&self.changed, asked, at_most)
    }
}
