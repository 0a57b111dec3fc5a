//! Describes the stages of a pipeline in order, and starts them.
//!
//! In: a source and stages, each with the limits of its output queue. Out: a [`Feed`], from which
//! the consumer takes items in the order of the source, whatever the number of workers.
//! Nothing runs before [`Route::start`]. Next: [`crate::feed`].
//!
//! ```
//! # use tandem_pipeline::{Crew, QueueLimits, Emitter, Payload, Route, Setup, Stage, StageError};
//! # use tandem_units::Bytes;
//! struct Number(u64);
//! impl Payload for Number {
//!     fn size(&self) -> Bytes { Bytes(8) }
//! }
//! struct Double;
//! impl Stage for Double {
//!     type In = Number;
//!     type Out = Number;
//!     fn name(&self) -> &'static str { "double" }
//!     fn step(&mut self, item: Number, out: &mut dyn Emitter<Number>) -> Result<(), StageError> {
//!         out.push(Number(item.0 * 2))
//!     }
//! }
//! let limits = QueueLimits::bytes(Bytes::kib(1)).items(4);
//! let mut feed = Route::from((0..5).map(Number), limits.clone())
//!     .then_by(Crew::of(2), || Double, limits)
//!     .start(Setup::default())?;
//! let mut doubled = Vec::new();
//! while let Some(number) = feed.next()? {
//!     doubled.push(number.0);
//! }
//! assert_eq!(doubled, [0, 2, 4, 6, 8]);
//! # Ok::<(), tandem_pipeline::PipelineError>(())
//! ```

use crate::adapt::Adapt;
use crate::error::PipelineError;
use crate::feed::Feed;
use crate::payload::Payload;
use crate::permits::Permits;
use crate::queue::{AnyQueue, Queue};
use crate::queue_limits::QueueLimits;
use crate::run::{self, StageThreads};
use crate::slow::Slowdowns;
use crate::stage::Stage;
use crate::stop::CancelToken;
use crate::thread_priority::ThreadPriority;
use crate::watchdog::Watch;
use crate::worker::{Context, Source, Worker};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tandem_telemetry::Recorder;

/// A pipeline that is not started yet; `T` is the output of its last stage.
pub struct Route<T: Payload> {
    id: u64,
    end: Arc<Queue<T>>,
    parts: Vec<StageThreads>,
}

/// How many workers a stage has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crew {
    pub workers: usize,
    /// The most workers it may get while running.
    pub up_to: usize,
    /// The command-line flag that sets `workers`, for [`crate::Control::flags`].
    pub flag: Option<&'static str>,
}

impl Crew {
    /// A fixed number of workers.
    pub fn of(workers: usize) -> Crew {
        Crew { workers: workers.max(1), up_to: workers.max(1), flag: None }
    }

    /// The controller may add workers up to `most`.
    pub fn up_to(self, most: usize) -> Crew {
        Crew { up_to: most.max(self.workers), ..self }
    }

    pub fn flag(self, flag: &'static str) -> Crew {
        Crew { flag: Some(flag), ..self }
    }
}

/// The settings of a run.
pub struct Setup {
    /// The name of the consumer in reports.
    pub consumer: &'static str,
    pub recorder: Recorder,
    /// Lets another thread stop the run.
    pub cancel: CancelToken,
    /// When the watchdog ends the run.
    pub watch: Watch,
    pub adapt: Adapt,
    /// The interval at which stage times and queue levels are recorded.
    pub sample_every: Duration,
    pub priority: ThreadPriority,
    /// Stages that are slowed on purpose, to test reports of slow stages.
    pub slow: Slowdowns,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            consumer: "train",
            recorder: Recorder::off(),
            cancel: CancelToken::new(),
            watch: Watch::default(),
            adapt: Adapt::Off,
            sample_every: Duration::from_secs(1),
            priority: ThreadPriority::Equal,
            slow: Slowdowns::default(),
        }
    }
}

impl<T: Payload> Route<T> {
    /// Begins with an iterator, which runs on its own thread, and its output queue.
    pub fn from<I>(source: I, limits: QueueLimits) -> Route<T>
    where
        I: Iterator<Item = T> + Send + 'static,
    {
        static ROUTES: AtomicU64 = AtomicU64::new(0);
        let id = ROUTES.fetch_add(1, Ordering::Relaxed);
        let end = Arc::new(Queue::new(limits.queue_budget(id), limits.items, 1));
        let source = Source { items: source, output: Arc::clone(&end) };
        let body = Box::new(move |context: Context| source.run(context));
        let part = StageThreads {
            name: "source",
            crew: Crew::of(1),
            permits: Arc::new(Permits::new(1)),
            output: Arc::clone(&end) as Arc<dyn AnyQueue>,
            bodies: vec![body],
        };
        Route { id, end, parts: vec![part] }
    }

    /// Adds a stage with one worker, and its output queue.
    pub fn then<S: Stage<In = T>>(self, stage: S, limits: QueueLimits) -> Route<S::Out> {
        // Never called: the only worker already has its stage.
        let make = || -> S { unreachable!("a single worker has its stage") };
        self.through(stage, Crew::of(1), Arc::new(make), limits)
    }

    /// Adds a stage with several workers, each of which gets its stage from `make`.
    pub fn then_by<S: Stage<In = T>>(
        self,
        crew: Crew,
        make: impl Fn() -> S + Send + Sync + 'static,
        limits: QueueLimits,
    ) -> Route<S::Out> {
        self.through(make(), crew, Arc::new(make), limits)
    }

    /// Starts all threads.
    pub fn start(self, setup: Setup) -> Result<Feed<T>, PipelineError> {
        run::start(self.parts, self.end, setup)
    }

    fn through<S: Stage<In = T>>(
        mut self,
        first: S,
        crew: Crew,
        make: Arc<dyn Fn() -> S + Send + Sync>,
        limits: QueueLimits,
    ) -> Route<S::Out> {
        let name = first.name();
        let output = Arc::new(Queue::new(limits.queue_budget(self.id), limits.items, crew.up_to));
        let permits = Arc::new(Permits::new(crew.workers));
        let mut first = Some(first);
        let bodies = (0..crew.up_to).map(|index| {
            let worker = Worker {
                index,
                stage: first.take(),
                make: Arc::clone(&make),
                permits: Arc::clone(&permits),
                input: Arc::clone(&self.end),
                output: Arc::clone(&output),
                slot: None,
            };
            Box::new(move |context: Context| worker.run(context)) as run::ThreadBody
        });
        let bodies = bodies.collect();
        let any_output = Arc::clone(&output) as Arc<dyn AnyQueue>;
        self.parts.push(StageThreads { name, crew, permits, output: any_output, bodies });
        Route { id: self.id, end: output, parts: self.parts }
    }
}
