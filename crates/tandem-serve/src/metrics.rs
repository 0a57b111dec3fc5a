//! Numbers about the server, for Prometheus at `/metrics`.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tandem_telemetry::metrics::{Exposition, Type};

/// Counted since the start.
#[derive(Debug, Default)]
pub struct Stats {
    /// Requests in the queue.
    pub waiting: AtomicUsize,
    /// Requests that a worker synthesizes.
    pub active: AtomicUsize,
    /// Requests whose client was gone before the end.
    pub cancelled: AtomicU64,
    sums: Mutex<Sums>,
}

#[derive(Debug, Default)]
struct Sums {
    /// Requests for speech by status.
    answers: BTreeMap<u16, u64>,
    /// Texts that were synthesized to the end.
    texts: u64,
    busy: f64,
    audio: f64,
    first_audio: f64,
    first_audio_count: u64,
}

impl Stats {
    /// A request for speech was answered with this status.
    pub fn answered(&self, status: u16) {
        *self.sums().answers.entry(status).or_default() += 1;
    }

    /// The first bytes of an answer were ready this long after its request.
    pub fn first_audio(&self, after: Duration) {
        let mut sums = self.sums();
        sums.first_audio += after.as_secs_f64();
        sums.first_audio_count += 1;
    }

    /// A text was synthesized: computing time, and seconds of audio.
    pub fn synthesized(&self, took: Duration, audio: f64) {
        let mut sums = self.sums();
        sums.texts += 1;
        sums.busy += took.as_secs_f64();
        sums.audio += audio;
    }

    /// The mean computing time of a text.
    pub fn mean_seconds(&self) -> Option<f64> {
        let sums = self.sums();
        (sums.texts > 0).then(|| sums.busy / sums.texts as f64)
    }

    /// The page for Prometheus.
    pub fn prometheus(&self) -> String {
        let mut page = Exposition::default();
        // Writing to a string cannot fail.
        let _ = self.write(&mut page);
        page.text
    }

    fn write(&self, page: &mut Exposition) -> std::fmt::Result {
        let sums = self.sums();
        page.metric("serve_requests_total", Type::Counter, "Requests for speech by status.")?;
        for (status, count) in &sums.answers {
            let labels = [("status", &*status.to_string())];
            page.value("serve_requests_total", &labels, *count as f64)?;
        }
        let cancelled = self.cancelled.load(Relaxed) as f64;
        let gauge = |count: &AtomicUsize| count.load(Relaxed) as f64;
        for (name, kind, help, value) in [
            ("serve_waiting", Type::Gauge, "Requests in the queue.", gauge(&self.waiting)),
            ("serve_active", Type::Gauge, "Requests in synthesis.", gauge(&self.active)),
            ("serve_cancelled_total", Type::Counter, "Requests whose client left.", cancelled),
            ("serve_texts_total", Type::Counter, "Texts synthesized.", sums.texts as f64),
            ("serve_busy_seconds_total", Type::Counter, "Time of synthesis.", sums.busy),
            ("serve_audio_seconds_total", Type::Counter, "Audio synthesized.", sums.audio),
            (
                "serve_first_audio_seconds_total",
                Type::Counter,
                "Time from requests to their first sentence.",
                sums.first_audio,
            ),
            (
                "serve_first_audio_count_total",
                Type::Counter,
                "Requests whose first sentence was ready.",
                sums.first_audio_count as f64,
            ),
        ] {
            page.single(name, kind, help, value)?;
        }
        Ok(())
    }

    fn sums(&self) -> std::sync::MutexGuard<'_, Sums> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_number() {
        let stats = Stats::default();
        stats.answered(200);
        stats.answered(200);
        stats.answered(429);
        stats.synthesized(Duration::from_millis(500), 2.0);
        stats.waiting.fetch_add(3, Relaxed);
        let page = stats.prometheus();
        for line in [
            "tandem_serve_requests_total{status=\"200\"} 2",
            "tandem_serve_requests_total{status=\"429\"} 1",
            "tandem_serve_waiting 3",
            "tandem_serve_busy_seconds_total 0.5",
            "tandem_serve_audio_seconds_total 2",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} is not in {page}");
        }
        assert_eq!(stats.mean_seconds(), Some(0.5));
    }
}
