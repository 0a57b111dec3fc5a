//! CPU utilisation from CPU time: the difference of two samples.

use std::time::{Duration, Instant};

#[derive(Default)]
pub(super) struct ProcessorShare {
    before: Option<(Instant, Duration)>,
}

impl ProcessorShare {
    /// Utilisation of this many CPUs since the last call; `None` at the first.
    pub(super) fn since_last(&mut self, now: Instant, used: Duration, of: f64) -> Option<f32> {
        let (then, before) = self.before.replace((now, used))?;
        let elapsed = now.saturating_duration_since(then).as_secs_f64();
        let worked = used.saturating_sub(before).as_secs_f64();
        (elapsed > 0.0 && of > 0.0).then_some((worked / elapsed / of) as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utilisation_is_relative_to_all_cpus_and_the_time_between_two_samples() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let used = Duration::from_millis;
        let mut share = ProcessorShare::default();
        assert_eq!(share.since_last(at(0), used(500), 4.0), None);
        assert_eq!(share.since_last(at(1000), used(2500), 4.0), Some(0.5));
        assert_eq!(share.since_last(at(2000), used(2500), 4.0), Some(0.0));
        assert_eq!(share.since_last(at(2000), used(2600), 4.0), None, "no time has passed");
    }
}
