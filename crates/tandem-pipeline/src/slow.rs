//! Slows stages on purpose, to test that a profile or a warning finds the slow one.
//!
//! In: names of stages, the time to add, and to which of their items. Out: a sleep inside the stage's
//! busy time, in its worker. A name that no stage has slows nothing. The list is empty by default.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Time added to items, by stage. Clones share the list and count items together.
#[derive(Clone, Debug, Default)]
pub struct Slowdowns(Arc<[(Slowdown, AtomicU64)]>);

/// Time added to items of one stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slowdown {
    pub stage: String,
    pub added: Duration,
    /// Of this many items ...
    pub period: u64,
    /// ... the last so many are slow; all of them where both are one.
    pub slow: u64,
}

impl Slowdown {
    /// The same time for each item.
    pub fn always(stage: &str, added: Duration) -> Slowdown {
        Slowdown { stage: stage.into(), added, period: 1, slow: 1 }
    }
}

/// `STAGE=MS`, `STAGE=MS@PERIOD` (every PERIODth item) or `STAGE=MS@PERIOD:SLOW` (the last SLOW of
/// every PERIOD items).
impl FromStr for Slowdown {
    type Err = String;

    fn from_str(text: &str) -> Result<Slowdown, String> {
        let wrong = || "expected STAGE=MILLISECONDS, or STAGE=MILLISECONDS@PERIOD:SLOW".to_string();
        let (stage, rest) = text.split_once('=').ok_or_else(wrong)?;
        let (added, turns) = rest.split_once('@').unwrap_or((rest, "1:1"));
        let (period, slow) = turns.split_once(':').unwrap_or((turns, "1"));
        let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
        let (period, slow) = (number(period)?, number(slow)?);
        if stage.is_empty() || slow == 0 || slow > period {
            return Err(wrong());
        }
        let added = Duration::from_millis(number(added)?);
        Ok(Slowdown { stage: stage.into(), added, period, slow })
    }
}

impl Slowdowns {
    /// The consumer is a stage with its own name.
    pub fn of(stages: impl IntoIterator<Item = Slowdown>) -> Slowdowns {
        Slowdowns(stages.into_iter().map(|slowdown| (slowdown, AtomicU64::new(0))).collect())
    }

    /// The same list without this stage.
    pub fn without(&self, stage: &str) -> Slowdowns {
        Slowdowns::of(self.list().filter(|slowdown| slowdown.stage != stage).cloned())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn list(&self) -> impl Iterator<Item = &Slowdown> {
        self.0.iter().map(|(slowdown, _)| slowdown)
    }

    /// Sleeps for the time added to this item of the stage.
    pub(crate) fn wait(&self, stage: &str) {
        let added = self.next_of(stage);
        if added > Duration::ZERO {
            std::thread::sleep(added);
        }
    }

    fn next_of(&self, stage: &str) -> Duration {
        let concerned = self.0.iter().filter(|(slowdown, _)| slowdown.stage == stage);
        let added = concerned.map(|(slowdown, turns)| {
            let turn = turns.fetch_add(1, Ordering::Relaxed) % slowdown.period;
            let slow = turn >= slowdown.period - slowdown.slow;
            if slow { slowdown.added } else { Duration::ZERO }
        });
        added.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, first_six: [u64; 6]) {
        let slow = Slowdowns::of([text.parse().unwrap()]);
        let added = [(); 6].map(|()| slow.next_of("load").as_millis() as u64);
        assert_eq!(added, first_six);
        assert_eq!(slow.next_of("train"), Duration::ZERO);
    }

    #[test]
    fn all_items_or_the_last_of_a_period_are_slow() {
        check("load=5", [5; 6]);
        check("load=5@3", [0, 0, 5, 0, 0, 5]);
        check("load=5@4:2", [0, 0, 5, 5, 0, 0]);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["load", "load=", "=5", "load=x", "load=5@", "load=5@0", "load=5@2:3"] {
            assert!(text.parse::<Slowdown>().is_err(), "{text}");
        }
    }
}
