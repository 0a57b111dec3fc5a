//! Starts and joins the threads of a run.
//!
//! In: the stages of a route. Out: a [`Feed`] for the consumer and a [`Control`] for all other
//! threads. Threads are named `tandem-STAGE-WORKER` and live as long as the run. At the end all of
//! them are joined; one that does not return from its stage is left behind and reported by name.
//! Next: [`crate::feed`].

use crate::adapt::Adapt;
use crate::control::Control;
use crate::error::PipelineError;
use crate::feed::Feed;
use crate::intervals::Intervals;
use crate::meter::{Activity, ActivitySpan, Meter, SpanListener};
use crate::monitor::Monitor;
use crate::payload::Payload;
use crate::permits::Permits;
use crate::queue::{AnyQueue, Queue};
use crate::route::{Crew, Setup};
use crate::slots::Slots;
use crate::stop::{Cause, Stop};
use crate::sync::{Condvar, Mutex, lock, wait_at_most};
use crate::worker::Context;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tandem_telemetry::Recorder;
use tandem_telemetry::event::{Doing, SlotChange, Span};
use tandem_telemetry::record::Spans;

/// What a worker's thread runs.
pub(crate) type ThreadBody = Box<dyn FnOnce(Context) + Send>;

/// One stage of a route before it is started.
pub(crate) struct StageThreads {
    pub(crate) name: &'static str,
    pub(crate) crew: Crew,
    pub(crate) permits: Arc<Permits>,
    pub(crate) output: Arc<dyn AnyQueue>,
    pub(crate) bodies: Vec<ThreadBody>,
}

/// One stage of a running route.
pub(crate) struct RunningStage {
    pub(crate) name: &'static str,
    pub(crate) crew: Crew,
    pub(crate) permits: Arc<Permits>,
    pub(crate) meters: Vec<Arc<Meter>>,
    pub(crate) output: Arc<dyn AnyQueue>,
}

/// What all handles of a run share.
pub(crate) struct PipelineRun {
    pub(crate) stages: Vec<RunningStage>,
    pub(crate) consumer: &'static str,
    pub(crate) consumer_meter: Arc<Meter>,
    pub(crate) stop: Arc<Stop>,
    pub(crate) slots: Slots,
    pub(crate) intervals: Intervals,
    pub(crate) recorder: Recorder,
}

pub(crate) fn start<T: Payload>(
    parts: Vec<StageThreads>,
    end: Arc<Queue<T>>,
    setup: Setup,
) -> Result<Feed<T>, PipelineError> {
    let queues = parts.iter().map(|part| Arc::clone(&part.output)).collect();
    let all_permits = parts.iter().map(|part| Arc::clone(&part.permits)).collect();
    let stop = Arc::new(Stop::new(queues, all_permits));
    let slots = Slots::new(slot_listener(&setup.recorder));
    end.show_in(slots.clone());
    let (stages, bodies): (Vec<_>, Vec<_>) =
        parts.into_iter().map(|part| split(part, &setup.recorder)).unzip();
    let run = Arc::new(PipelineRun {
        stages,
        consumer: setup.consumer,
        consumer_meter: Arc::new(Meter::new(span_listener(&setup.recorder, setup.consumer, 0))),
        stop,
        slots,
        intervals: Intervals::new(),
        recorder: setup.recorder.clone(),
    });
    let mut threads = Threads::default();
    if let Err(error) = threads.start_all(&run, bodies, &setup) {
        run.stop.stop(Cause::Failed(error.clone()));
        threads.join(&run.stop, setup.watch.grace);
        return Err(error);
    }
    // Last, so that a token that is cancelled already stops a complete run.
    setup.cancel.attach(&run.stop);
    Ok(Feed::new(end, Control(run), threads, setup.watch.grace, setup.slow))
}

fn split(part: StageThreads, recorder: &Recorder) -> (RunningStage, Vec<ThreadBody>) {
    let meter = |index| Arc::new(Meter::new(span_listener(recorder, part.name, index)));
    let meters = (0..part.bodies.len()).map(meter).collect();
    let StageThreads { name, crew, permits, output, bodies } = part;
    (RunningStage { name, crew, permits, meters, output }, bodies)
}

fn slot_listener(recorder: &Recorder) -> crate::slots::Listener {
    let recorder = recorder.clone();
    Box::new(move |index, slot| {
        let change = SlotChange { slot: index as u32, state: slot.state, ticket: slot.ticket };
        recorder.send(change);
    })
}

fn span_listener(recorder: &Recorder, stage: &'static str, worker: usize) -> Option<SpanListener> {
    if recorder.spans() == Spans::Dropped {
        return None;
    }
    let clock = recorder.clock()?;
    let recorder = recorder.clone();
    Some(Box::new(move |span: ActivitySpan| {
        let doing = match span.activity {
            Activity::Busy => Doing::Busy,
            Activity::Starved => Doing::Starved,
            Activity::Blocked => Doing::Blocked,
            Activity::Parked => return,
        };
        let (begin, end) = (clock.at(span.begin), clock.at(span.end));
        // A wait is reported under the stage's name, work under the name of its part.
        let part = span.part.filter(|_| doing == Doing::Busy);
        let (stage, worker) = (part.unwrap_or(stage).into(), worker as u32);
        recorder.send_at(end, Span { stage, worker, ticket: span.ticket, doing, begin, end });
    }))
}

/// The threads of a run.
#[derive(Default)]
pub(crate) struct Threads {
    workers: Vec<(String, JoinHandle<()>)>,
    active: Arc<ActiveThreads>,
    monitor: Option<(Arc<Quit>, JoinHandle<()>)>,
}

impl Threads {
    fn start_all(
        &mut self,
        run: &Arc<PipelineRun>,
        bodies: Vec<Vec<ThreadBody>>,
        setup: &Setup,
    ) -> Result<(), PipelineError> {
        // Before the first worker starts, so that the first interval includes all its work.
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
                    intervals: run.intervals.clone(),
                };
                let name = format!("tandem-{}-{index}", stage.name);
                let guard = self.active.enter();
                let priority = setup.priority;
                let thread = spawn(&name, move || {
                    let _guard = guard;
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

    /// Joins every thread and returns the names of those that could not be joined. After an alarm
    /// of the watchdog, threads have `grace` to end. Without one this waits for all.
    pub(crate) fn join(&mut self, stop: &Stop, grace: Duration) -> Vec<String> {
        while !self.active.wait_empty(Duration::from_millis(20)) {
            if stop.time_since_alarm().is_some_and(|since| since > grace) {
                break;
            }
        }
        let mut left = Vec::new();
        let empty = self.active.wait_empty(Duration::ZERO);
        for (name, thread) in self.workers.drain(..) {
            if empty || thread.is_finished() {
                // A worker's panic was caught and reported inside its thread.
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

/// Counts the threads that have not ended.
#[derive(Default)]
struct ActiveThreads {
    count: Mutex<usize>,
    left: Condvar,
}

struct ActiveGuard(Arc<ActiveThreads>);

impl ActiveThreads {
    fn enter(self: &Arc<Self>) -> ActiveGuard {
        *lock(&self.count) += 1;
        ActiveGuard(Arc::clone(self))
    }

    fn wait_empty(&self, at_most: Duration) -> bool {
        let count = lock(&self.count);
        if *count == 0 {
            return true;
        }
        *wait_at_most(&self.left, count, at_most) == 0
    }
}

impl Drop for ActiveGuard {
    fn drop(&mut self) {
        *lock(&self.0.count) -= 1;
        self.0.left.notify_all();
    }
}

/// Tells the monitor to end.
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

    /// Waits for at most this long; returns whether the monitor must end.
    pub(crate) fn wait(&self, at_most: Duration) -> bool {
        let asked = lock(&self.asked);
        if *asked {
            return true;
        }
        *wait_at_most(&self.changed, asked, at_most)
    }
}
