//! The path of the data, written down once, in order; then started.
//!
//! In: a source and stages, each with the bounds of the queue behind it. Out: a [`Feed`], from
//! which the consumer takes items in the order of the source, whatever the number of workers.
//! Nothing runs before [`Route::start`]. Next: [`crate::feed`].
//!
//! ```
//! # use tandem_pipeline::{Crew, Hold, Outlet, Payload, Route, Setup, Stage, Trouble};
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
//!     fn step(&mut self, item: Number, out: &mut dyn Outlet<Number>) -> Result<(), Trouble> {
//!         out.push(Number(item.0 * 2))
//!     }
//! }
//! let hold = Hold::bytes(Bytes::kib(1)).items(4);
//! let mut feed = Route::from((0..5).map(Number), hold.clone())
//!     .then_by(Crew::of(2), || Double, hold)
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
use crate::gate::Gate;
use crate::hold::Hold;
use crate::link::{AnyLink, Link};
use crate::payload::Payload;
use crate::run::{self, Part};
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

/// Stages on their way to be started; `T` is what leaves the last of them.
pub struct Route<T: Payload> {
    id: u64,
    end: Arc<Link<T>>,
    parts: Vec<Part>,
}

/// How many workers a stage has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crew {
    /// Workers at the start.
    pub workers: usize,
    /// The most it may come to have while running.
    pub up_to: usize,
    /// The flag that sets `workers`, for the line that prints the final values.
    pub flag: Option<&'static str>,
}

impl Crew {
    /// So many workers, no more and no less.
    pub fn of(workers: usize) -> Crew {
        Crew { workers: workers.max(1), up_to: workers.max(1), flag: None }
    }

    /// The same, free to grow while running.
    pub fn up_to(self, most: usize) -> Crew {
        Crew { up_to: most.max(self.workers), ..self }
    }

    /// The same, set by this flag.
    pub fn flag(self, flag: &'static str) -> Crew {
        Crew { flag: Some(flag), ..self }
    }
}

/// What a run needs beside its route.
pub struct Setup {
    /// What the consumer is called in reports.
    pub consumer: &'static str,
    /// Where events go.
    pub recorder: Recorder,
    /// Lets somebody else stop the run.
    pub cancel: CancelToken,
    /// What counts as frozen.
    pub watch: Watch,
    /// Whether workers and depth may change while running.
    pub adapt: Adapt,
    /// How often the stages' shares and the queues' levels go to the record.
    pub sample_every: Duration,
    /// Whether the stages step back behind the consumer.
    pub priority: ThreadPriority,
    /// Stages slowed on purpose, for tests of what judges runs.
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
    /// Begins with an iterator, which gets a thread of its own, and the queue behind it.
    pub fn from<I>(source: I, hold: Hold) -> Route<T>
    where
        I: Iterator<Item = T> + Send + 'static,
    {
        static ROUTES: AtomicU64 = AtomicU64::new(0);
        let id = ROUTES.fetch_add(1, Ordering::Relaxed);
        let end = Arc::new(Link::new(hold.seat(id), hold.items, 1));
        let source = Source { items: source, output: Arc::clone(&end) };
        let body = Box::new(move |context: Context| source.run(context));
        let part = Part {
            name: "source",
            crew: Crew::of(1),
            gate: Arc::new(Gate::new(1)),
            output: Arc::clone(&end) as Arc<dyn AnyLink>,
            bodies: vec![body],
        };
        Route { id, end, parts: vec![part] }
    }

    /// Goes on through a stage with one worker, and the queue behind it.
    pub fn then<S: Stage<In = T>>(self, stage: S, hold: Hold) -> Route<S::Out> {
        // With one worker, which has its stage, this is never called.
        let make = || -> S { unreachable!("a single worker has its stage") };
        self.through(stage, Crew::of(1), Arc::new(make), hold)
    }

    /// Goes on through a stage with several workers, each of which gets a stage from `make`.
    pub fn then_by<S: Stage<In = T>>(
        self,
        crew: Crew,
        make: impl Fn() -> S + Send + Sync + 'static,
        hold: Hold,
    ) -> Route<S::Out> {
        self.through(make(), crew, Arc::new(make), hold)
    }

    /// Starts all threads. The first item may be taken at once.
    pub fn start(self, setup: Setup) -> Result<Feed<T>, PipelineError> {
        run::start(self.parts, self.end, setup)
    }

    fn through<S: Stage<In = T>>(
        mut self,
        first: S,
        crew: Crew,
        make: Arc<dyn Fn() -> S + Send + Sync>,
        hold: Hold,
    ) -> Route<S::Out> {
        let name = first.name();
        let output = Arc::new(Link::new(hold.seat(self.id), hold.items, crew.up_to));
        let gate = Arc::new(Gate::new(crew.workers));
        let mut first = Some(first);
        let bodies = (0..crew.up_to).map(|index| {
            let worker = Worker {
                index,
                stage: first.take(),
                make: Arc::clone(&make),
                gate: Arc::clone(&gate),
                input: Arc::clone(&self.end),
                output: Arc::clone(&output),
                place: None,
            };
            Box::new(move |context: Context| worker.run(context)) as run::Body
        });
        let bodies = bodies.collect();
        let view = Arc::clone(&output) as Arc<dyn AnyLink>;
        self.parts.push(Part { name, crew, gate, output: view, bodies });
        Route { id: self.id, end: output, parts: self.parts }
    }
}
