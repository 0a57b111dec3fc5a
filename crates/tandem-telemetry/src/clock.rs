//! Time inside a run: nanoseconds since its start, on the monotonic clock.
//!
//! In: `Instant`, `Duration`. Out: [`Nanos`], as every event carries it. Wall time appears
//! once, in the record's header; changes of the system clock during a run have no effect.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};
use std::time::{Duration, Instant};
use tandem_units::Seconds;

/// A length of time, or a moment counted from the start of the run, in nanoseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// From milliseconds.
    pub const fn millis(count: u64) -> Nanos {
        Nanos(count * 1_000_000)
    }

    /// The same length in seconds.
    pub fn seconds(self) -> Seconds {
        Seconds(self.0 as f64 * 1e-9)
    }

    /// The difference, or zero where `other` is longer.
    pub fn less(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }

    /// This length as a share of `whole`; zero of nothing.
    pub fn share_of(self, whole: Nanos) -> f64 {
        if whole.0 == 0 { 0.0 } else { self.0 as f64 / whole.0 as f64 }
    }
}

impl From<Duration> for Nanos {
    fn from(length: Duration) -> Nanos {
        // 2^64 ns are 584 years: a longer run is cut there.
        Nanos(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(length: Nanos) -> Duration {
        Duration::from_nanos(length.0)
    }
}

// Sums saturate: a damaged record must not cause a panic of the reader.
impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        self.less(other)
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        *self = *self + other;
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Nanos>>(items: I) -> Nanos {
        items.fold(Nanos(0), |total, item| total + item)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.seconds().fmt(f)
    }
}

/// The clock of one run. Copies agree, on every thread.
#[derive(Clone, Copy, Debug)]
pub struct RunClock {
    origin: Instant,
}

impl RunClock {
    /// A clock that reads zero now.
    pub fn start() -> RunClock {
        RunClock { origin: Instant::now() }
    }

    /// Time since the start of the run.
    pub fn now(&self) -> Nanos {
        self.origin.elapsed().into()
    }

    /// Time of an instant in this run; zero if it is before the start.
    pub fn at(&self, instant: Instant) -> Nanos {
        instant.saturating_duration_since(self.origin).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_print_as_seconds_do_and_never_overflow() {
        assert_eq!(Nanos::millis(150).to_string(), "150.00 ms");
        assert_eq!(Nanos(u64::MAX) + Nanos(1), Nanos(u64::MAX));
        assert_eq!(Nanos(3) - Nanos(5), Nanos(0));
        assert_eq!(Nanos(1).share_of(Nanos(0)), 0.0);
    }

    #[test]
    fn an_instant_before_the_run_counts_as_its_start() {
        let early = Instant::now();
        let clock = RunClock { origin: early + Duration::from_secs(1) };
        assert_eq!(clock.at(early), Nanos(0));
        assert_eq!(clock.at(early + Duration::from_secs(3)), Nanos::millis(2000));
    }
}
