//! Stages slowed on purpose, to prove that a profile finds the slow one.
//!
//! In: names of stages and how much longer each of their items should take. Out: a wait inside
//! the stage's own working time, in the worker of a route that runs for real. Nothing is slowed
//! unless asked; a name that no stage has slows nothing.

use std::sync::Arc;
use std::time::Duration;

/// How much longer each item takes, by stage; copies share the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slowdowns(Arc<[(String, Duration)]>);

impl Slowdowns {
    /// Slows these stages, each by so much per item. The consumer goes by its own name.
    pub fn of(stages: impl IntoIterator<Item = (String, Duration)>) -> Slowdowns {
        Slowdowns(stages.into_iter().collect())
    }

    /// What is added to each item of a stage.
    pub fn of_stage(&self, stage: &str) -> Duration {
        self.0.iter().filter(|(name, _)| name == stage).map(|(_, added)| *added).sum()
    }

    /// The same with this stage as fast as it is.
    pub fn without(&self, stage: &str) -> Slowdowns {
        Slowdowns::of(self.0.iter().filter(|(name, _)| name != stage).cloned())
    }

    /// Whether nothing is slowed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of it, in the order given.
    pub fn list(&self) -> &[(String, Duration)] {
        &self.0
    }

    /// Waits for as long as this stage is slowed by.
    pub(crate) fn wait(&self, stage: &str) {
        let added = self.of_stage(stage);
        if added > Duration::ZERO {
            std::thread::sleep(added);
        }
    }
}
