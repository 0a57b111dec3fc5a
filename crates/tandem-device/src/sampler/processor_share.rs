//! From processor time used to the share of processors at work: the difference of two looks.

use std::time::{Duration, Instant};

#[derive(Default)]
pub(super) struct ProcessorShare {
    before: Option<(Instant, Duration)>,
}

impl ProcessorShare {
    /// Share of so many processors that was used since the last call; none at the first.
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
    fn a_share_is_of_all_processors_and_of_the_time_between_two_looks() {
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
