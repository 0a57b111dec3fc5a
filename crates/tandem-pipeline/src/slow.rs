//! Slows stages on purpose, to test that a profile finds the slow one.
//!
//! In: names of stages and the time to add to each of their items. Out: a sleep inside the stage's
//! busy time, in its worker. A name that no stage has slows nothing. The list is empty by default.

use std::sync::Arc;
use std::time::Duration;

/// Time added to each item, by stage. Clones share the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slowdowns(Arc<[(String, Duration)]>);

impl Slowdowns {
    /// The added time per item of each stage. The consumer is a stage with its own name.
    pub fn of(stages: impl IntoIterator<Item = (String, Duration)>) -> Slowdowns {
        Slowdowns(stages.into_iter().collect())
    }

    /// Time added to each item of a stage.
    pub fn of_stage(&self, stage: &str) -> Duration {
        self.0.iter().filter(|(name, _)| name == stage).map(|(_, added)| *added).sum()
    }

    /// The same list without this stage.
    pub fn without(&self, stage: &str) -> Slowdowns {
        Slowdowns::of(self.0.iter().filter(|(name, _)| name != stage).cloned())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn list(&self) -> &[(String, Duration)] {
        &self.0
    }

    /// Sleeps for the time added to this stage.
    pub(crate) fn wait(&self, stage: &str) {
        let added = self.of_stage(stage);
        if added > Duration::ZERO {
            std::thread::sleep(added);
        }
    }
}
