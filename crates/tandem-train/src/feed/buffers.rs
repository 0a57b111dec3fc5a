//! How many batches may wait: for the model and on the host. The only place that decides it.
//!
//! In: [`BufferRequest`], what the user typed (flag, environment or file), with the batch size and the
//! workers. Out: [`Buffers`], which the pipeline uses and every command shows. A typed number is used
//! as typed; a number that was not typed follows from a formula. Starts nothing.

use crate::TrainError;
use serde::Serialize;
use std::fmt;
use tandem_data::batch::auto_prefetch;
use tandem_pipeline::slots::DEFAULT_DEPTH;

/// Samples on the host where no number is typed.
pub const DEFAULT_SAMPLES: usize = 50;
/// More batches than this are a mistake: each is a slot, and each may need memory.
pub const MOST_BATCHES: usize = 4096;

/// What decides the buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferRequest {
    /// `--prefetch-buffer-size`, in batches, if typed.
    pub prefetch: Option<usize>,
    /// `--buffer-size`, in samples, if typed.
    pub samples: Option<usize>,
    pub batch_size: usize,
    pub workers: usize,
}

/// The buffers of a run. Displays as lines of the banner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Buffers {
    /// Batches for the model: the slots in which they are copied, ready or in training.
    pub depth: usize,
    /// Batches on the host: those that workers assemble, and those that wait for the model's side.
    pub host: usize,
    pub source: DepthSource,
    /// `--buffer-size`, if typed.
    pub samples: Option<usize>,
    pub batch_size: usize,
    pub workers: usize,
}

/// Where the depth comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DepthSource {
    /// `--prefetch-buffer-size`.
    Prefetch,
    /// `--buffer-size`, in batches.
    Samples,
    /// The formula of [`auto_prefetch`], and at least one slot for each state.
    Automatic,
}

impl Buffers {
    pub fn decide(request: &BufferRequest) -> Result<Buffers, TrainError> {
        let BufferRequest { prefetch, samples, batch_size, workers } = *request;
        let (depth, source) = match (prefetch, samples) {
            (Some(typed), _) => (typed.max(1), DepthSource::Prefetch),
            (None, Some(typed)) => (in_batches(typed, batch_size), DepthSource::Samples),
            (None, None) => (auto_prefetch(batch_size).max(DEFAULT_DEPTH), DepthSource::Automatic),
        };
        let host = host_batches(samples, batch_size, depth, workers);
        let prefetch = ("prefetch_buffer_size", "--prefetch-buffer-size", prefetch, depth);
        let samples_key = ("devices.buffer_size", "--buffer-size", samples, host);
        for (key, flag, typed, batches) in [prefetch, samples_key] {
            if typed.is_some() && batches > MOST_BATCHES {
                let value = format!("{batches} batches of {batch_size}");
                let expected = "at most 4096 batches";
                return Err(TrainError::BadSetting { key, flag, value, expected });
            }
        }
        Ok(Buffers { depth, host, source, samples, batch_size, workers })
    }

    /// The same with other workers.
    pub fn with_workers(&self, workers: usize) -> Buffers {
        let host = host_batches(self.samples, self.batch_size, self.depth, workers);
        Buffers { host, workers, ..*self }
    }

    /// The same with another batch size.
    pub fn with_batch_size(&self, batch_size: usize) -> Result<Buffers, TrainError> {
        let prefetch = (self.source == DepthSource::Prefetch).then_some(self.depth);
        let (samples, workers) = (self.samples, self.workers);
        Buffers::decide(&BufferRequest { prefetch, samples, batch_size, workers })
    }

    /// Workers that can be busy at once: each needs a place for its batch.
    pub fn busy_workers(&self) -> usize {
        self.workers.min(self.host)
    }

    /// Where the depth comes from, as a clause.
    pub fn why(&self) -> String {
        let batch = self.batch_size;
        match (self.source, self.samples) {
            (DepthSource::Prefetch, _) => "as typed".into(),
            (DepthSource::Samples, Some(typed)) => {
                let automatic = auto_prefetch(batch).max(DEFAULT_DEPTH);
                let instead = match automatic > self.depth {
                    true => format!("; {automatic} without it"),
                    false => String::new(),
                };
                format!("from --buffer-size {typed}{instead}")
            }
            (DepthSource::Samples | DepthSource::Automatic, _) => {
                let formula = auto_prefetch(batch);
                let slots = match formula < self.depth {
                    true => format!(" = {formula}, and at least {DEFAULT_DEPTH} slots"),
                    false => String::new(),
                };
                format!("automatic: max(2, min(8, 64 / {batch})){slots}")
            }
        }
    }
}

fn host_batches(samples: Option<usize>, batch_size: usize, depth: usize, workers: usize) -> usize {
    match samples {
        Some(typed) => in_batches(typed, batch_size),
        // More than the model's side takes would only cost memory; fewer than one for each worker and
        // one more would let workers wait.
        None => in_batches(DEFAULT_SAMPLES, batch_size).min(depth).max(workers.max(1) + 1),
    }
}

fn in_batches(samples: usize, batch_size: usize) -> usize {
    samples.div_ceil(batch_size.max(1)).max(1)
}

impl fmt::Display for Buffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |count: usize| match count {
            1 => "1 batch".to_string(),
            count => format!("{count} batches"),
        };
        writeln!(f, "prefetch: {} for the model ({})", counted(self.depth), self.why())?;
        let host = counted(self.host);
        match self.samples {
            Some(typed) => writeln!(f, "host buffer: {host} (from --buffer-size {typed})")?,
            None => writeln!(f, "host buffer: {host} (automatic)")?,
        }
        write!(f, "workers: {}", self.workers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tandem_units::Hint;

    fn decided(
        prefetch: Option<usize>,
        samples: Option<usize>,
        batch_size: usize,
        workers: usize,
    ) -> Buffers {
        Buffers::decide(&BufferRequest { prefetch, samples, batch_size, workers }).unwrap()
    }

    #[test]
    fn without_typed_numbers_the_formula_decides_with_at_least_three_slots() {
        let depths = [1, 8, 12, 16, 24, 32, 64].map(|batch| decided(None, None, batch, 1).depth);
        assert_eq!(depths, [8, 8, 5, 4, 3, 3, 3]);
        let hosts = [1, 8, 12, 16, 24, 32, 64].map(|batch| decided(None, None, batch, 1).host);
        assert_eq!(hosts, [8, 7, 5, 4, 3, 2, 2]);
        assert_eq!(decided(None, None, 16, 9).host, 10, "a place for each worker, and one more");
    }

    #[test]
    fn typed_numbers_are_used_as_typed() {
        for depth in [1, 2, 8, 300] {
            assert_eq!(decided(Some(depth), None, 16, 2).depth, depth);
            let both = decided(Some(depth), Some(100), 16, 2);
            assert_eq!((both.depth, both.host), (depth, 7), "one for each side");
        }
        let alone = decided(None, Some(100), 16, 2);
        assert_eq!((alone.depth, alone.host, alone.source), (7, 7, DepthSource::Samples));
        assert_eq!(decided(None, Some(5), 16, 8).depth, 1, "fewer than three, as typed");
        assert_eq!(decided(None, Some(5), 16, 8).busy_workers(), 1);
    }

    #[test]
    fn the_banner_gives_numbers_and_their_source() {
        let said = |prefetch, samples, batch| decided(prefetch, samples, batch, 2).to_string();
        assert_eq!(
            said(None, None, 16),
            "prefetch: 4 batches for the model (automatic: max(2, min(8, 64 / 16)))\n\
             host buffer: 4 batches (automatic)\nworkers: 2"
        );
        assert!(said(None, None, 32).starts_with(
            "prefetch: 3 batches for the model (automatic: max(2, min(8, 64 / 32)) = 2, and at \
             least 3 slots)\n"
        ));
        assert_eq!(
            said(Some(1), Some(40), 16),
            "prefetch: 1 batch for the model (as typed)\n\
             host buffer: 3 batches (from --buffer-size 40)\nworkers: 2"
        );
        assert!(said(None, Some(50), 32).starts_with(
            "prefetch: 2 batches for the model (from --buffer-size 50; 3 without it)\n"
        ));
        assert!(
            said(None, Some(100), 16)
                .starts_with("prefetch: 7 batches for the model (from --buffer-size 100)\n")
        );
    }

    #[test]
    fn a_mistaken_number_is_refused_with_its_flag() {
        let refused = |prefetch, samples| {
            let request = BufferRequest { prefetch, samples, batch_size: 1, workers: 1 };
            Buffers::decide(&request).expect_err("refused").hint().expect("a hint")
        };
        assert!(refused(Some(5000), None).contains("--prefetch-buffer-size"));
        assert!(refused(None, Some(5000)).contains("--buffer-size"));
    }

    proptest! {
        /// The numbers of a run, typed again, give the same run: `config.toml` and the flags that the
        /// controller prints depend on it.
        #[test]
        fn decided_numbers_typed_again_give_the_same(
            prefetch in prop::option::of(1usize..300),
            samples in prop::option::of(1usize..4000),
            batch in 1usize..200,
            workers in 1usize..64,
        ) {
            let first = decided(prefetch, samples, batch, workers);
            let again = decided(Some(first.depth), samples, batch, workers);
            prop_assert_eq!((first.depth, first.host), (again.depth, again.host));
        }
    }
}
