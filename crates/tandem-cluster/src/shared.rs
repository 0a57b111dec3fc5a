//! Which thread makes the calls of a rank: the one that waits for a reply, or else the communication thread.
//!
//! In: calls of any thread. Out: replies. A thread that waits takes the turns of the [`Service`] itself: nobody needs
//! to be woken, and where each rank has one core, the rank keeps to it. While nobody waits, the communication thread
//! takes turns: it carries on what was started, and sends heartbeats. One thread at a time has the service.

use crate::error::ClusterError;
use crate::identity::Identity;
use crate::service::{Ending, LOOK_EVERY, Service};
use crate::transport::{Call, Reply};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// The longest sleep of the communication thread.
const IDLE: Duration = Duration::from_millis(10);

pub(crate) struct ServiceCalls {
    service: Mutex<Service>,
    /// Threads that want the service. The communication thread leaves it to them.
    wanted: AtomicUsize,
    /// The communication thread left calls under way to them, and sleeps.
    left: AtomicBool,
    wake: Condvar,
}

/// A call that was started.
pub(crate) struct Pending {
    shared: Arc<ServiceCalls>,
    answer: Receiver<Result<Reply, ClusterError>>,
}

impl Pending {
    /// Takes turns until the reply is there.
    pub(crate) fn wait(self) -> Result<Reply, ClusterError> {
        let _wanted = Wanted::new(&self.shared);
        loop {
            match self.answer.try_recv() {
                Ok(reply) => return reply,
                Err(TryRecvError::Disconnected) => return Err(ClusterError::ThreadEnded),
                Err(TryRecvError::Empty) => {}
            }
            self.shared.take_turn();
        }
    }
}

/// Keeps the communication thread away from the service.
struct Wanted<'a>(&'a ServiceCalls);

impl<'a> Wanted<'a> {
    fn new(shared: &'a ServiceCalls) -> Wanted<'a> {
        shared.wanted.fetch_add(1, Ordering::SeqCst);
        Wanted(shared)
    }
}

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        self.0.wanted.fetch_sub(1, Ordering::SeqCst);
        if self.0.left.swap(false, Ordering::SeqCst) {
            // With the lock: between its look at `wanted` and its sleep the communication thread has it.
            drop(self.0.lock());
            self.0.wake();
        }
    }
}

/// After the communication thread nobody answers, also where it ended by a panic.
struct Ended<'a>(&'a ServiceCalls);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.lock().end();
    }
}

impl ServiceCalls {
    pub(crate) fn new(service: Service) -> ServiceCalls {
        ServiceCalls {
            service: Mutex::new(service),
            wanted: AtomicUsize::new(0),
            left: AtomicBool::new(false),
            wake: Condvar::new(),
        }
    }

    pub(crate) fn begin(self: &Arc<ServiceCalls>, call: Call) -> Pending {
        let (reply, answer) = sync_channel(1);
        self.with(|service| service.start(call, reply));
        Pending { shared: self.clone(), answer }
    }

    pub(crate) fn identify(&self, identities: Vec<Identity>) {
        self.with(|service| service.identify(identities));
    }

    pub(crate) fn show_progress(&self, counter: Arc<AtomicU64>) {
        self.with(|service| service.own_progress = counter);
    }

    pub(crate) fn end(&self, ending: Ending) {
        self.with(|service| service.end_by(ending));
        self.wake();
    }

    /// Takes turns until no call is under way.
    pub(crate) fn complete_calls(&self) {
        let _wanted = Wanted::new(self);
        while !self.lock().is_idle() {
            self.take_turn();
        }
    }

    fn take_turn(&self) {
        let mut service = self.lock();
        service.turn();
        let pause = service.pause();
        drop(service);
        match pause {
            Some(pause) => std::thread::sleep(pause),
            None => std::thread::yield_now(),
        }
    }

    /// The communication thread carries on what was started.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// The communication thread: runs until the job ends, well or not.
    pub(crate) fn run(&self, handles: &Weak<()>) {
        let _ended = Ended(self);
        let mut service = self.lock();
        loop {
            match service.ending.take() {
                Some(Ending::Finish { done }) => {
                    service.finish();
                    let _ = done.send(());
                    return;
                }
                Some(Ending::Stop { why, done }) => {
                    self.stop(service, &why);
                    let _ = done.send(());
                    return;
                }
                None => {}
            }
            // Every handle is gone, and nobody said that the job ended.
            if handles.strong_count() == 0 {
                return self.stop(service, "its process ended early");
            }
            self.left.store(!service.is_idle(), Ordering::SeqCst);
            if self.is_wanted() || service.is_idle() {
                let woken = self.wake.wait_timeout(service, IDLE);
                service = woken.unwrap_or_else(PoisonError::into_inner).0;
            } else {
                drop(service);
                self.take_turn();
                service = self.lock();
            }
            self.left.store(false, Ordering::SeqCst);
            // Heartbeats.
            if !self.is_wanted() && service.is_idle() {
                service.turn();
            }
        }
    }

    /// Returns when the process may end. In between, other threads learn that their calls have failed.
    fn stop<'a>(&'a self, mut service: MutexGuard<'a, Service>, why: &str) {
        service.stop(why);
        let begun = Instant::now();
        while !service.may_leave(begun.elapsed()) {
            drop(service);
            std::thread::sleep(LOOK_EVERY);
            service = self.lock();
            service.take_leave();
        }
    }

    fn with<R>(&self, work: impl FnOnce(&mut Service) -> R) -> R {
        let _wanted = Wanted::new(self);
        work(&mut self.lock())
    }

    fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::SeqCst) > 0
    }

    fn lock(&self) -> MutexGuard<'_, Service> {
        self.service.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for ServiceCalls {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("ServiceCalls").finish_non_exhaustive()
    }
}
