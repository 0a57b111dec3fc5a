//! What a validation measures: sums over each batch, and the means over all of them.
//!
//! In: the sums of batches, from any rank. Out: [`Metrics`], the same whichever rank measured which batch.

use tandem_model::metrics::AlignmentHealth;

/// Sums over one batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct BatchMetrics {
    /// Its place in the validation set.
    pub(crate) number: u64,
    pub(crate) utterances: f64,
    pub(crate) prior: f64,
    pub(crate) duration: f64,
    pub(crate) flow: f64,
    pub(crate) coverage: f64,
    pub(crate) diagonality: f64,
    pub(crate) entropy: f64,
    /// Utterances with an alignment.
    pub(crate) aligned: f64,
}

impl BatchMetrics {
    /// Numbers of a batch in a message.
    pub(crate) const VALUES: usize = 9;

    pub(crate) fn to_bits(&self) -> [u64; Self::VALUES] {
        let BatchMetrics { number, utterances, prior, duration, flow, .. } = self;
        let BatchMetrics { coverage, diagonality, entropy, aligned, .. } = self;
        let floats = [utterances, prior, duration, flow, coverage, diagonality, entropy, aligned];
        let mut bits = [*number; Self::VALUES];
        bits[1..].iter_mut().zip(floats).for_each(|(bits, value)| *bits = value.to_bits());
        bits
    }

    pub(crate) fn from_bits(bits: [u64; Self::VALUES]) -> BatchMetrics {
        let [number, rest @ ..] = bits;
        let [utterances, prior, duration, flow, coverage, diagonality, entropy, aligned] =
            rest.map(f64::from_bits);
        BatchMetrics {
            number,
            utterances,
            prior,
            duration,
            flow,
            coverage,
            diagonality,
            entropy,
            aligned,
        }
    }

    pub(super) fn add_health(&mut self, health: &AlignmentHealth) {
        self.coverage += health.coverage;
        self.diagonality += health.diagonality;
        self.entropy += health.entropy.unwrap_or_default();
        self.aligned += 1.0;
    }
}

/// Means over the whole set.
#[derive(Default)]
pub(super) struct Metrics {
    pub(super) prior: f64,
    pub(super) duration: f64,
    pub(super) flow: f64,
    pub(super) coverage: f64,
    pub(super) diagonality: f64,
    pub(super) entropy: f64,
    pub(super) aligned: f64,
}

impl Metrics {
    /// Every utterance counts the same. Sums go through the batches in order, whichever rank measured them.
    pub(super) fn of(batches: &[BatchMetrics]) -> Metrics {
        let sum = |value: fn(&BatchMetrics) -> f64| batches.iter().map(value).sum::<f64>();
        let utterances = sum(|batch| batch.utterances).max(1.0);
        let aligned = sum(|batch| batch.aligned);
        Metrics {
            prior: sum(|batch| batch.prior) / utterances,
            duration: sum(|batch| batch.duration) / utterances,
            flow: sum(|batch| batch.flow) / utterances,
            coverage: sum(|batch| batch.coverage) / aligned.max(1.0),
            diagonality: sum(|batch| batch.diagonality) / aligned.max(1.0),
            entropy: sum(|batch| batch.entropy) / aligned.max(1.0),
            aligned,
        }
    }

    /// What is heard: the loss of the frames, without that of the durations. The duration loss is the largest of the
    /// three and is at its lowest long before the spectrum is, so that a sum of all three would choose a blurred voice.
    pub(super) fn acoustic(&self) -> f64 {
        self.prior + self.flow
    }

    /// The mean of all alignments; none where nothing could be aligned. Paths of the search are
    /// monotonic by themselves.
    pub(super) fn health(&self) -> Option<AlignmentHealth> {
        (self.aligned > 0.0).then_some(AlignmentHealth {
            coverage: self.coverage,
            monotonic: 1.0,
            diagonality: self.diagonality,
            entropy: Some(self.entropy),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_voice_is_the_one_whose_frames_are_best() {
        let early = Metrics { prior: 0.30, flow: 0.25, duration: 0.60, ..Metrics::default() };
        let late = Metrics { prior: 0.28, flow: 0.22, duration: 0.90, ..Metrics::default() };
        assert!(late.acoustic() < early.acoustic(), "the durations got worse, the frames did not");
    }
}
