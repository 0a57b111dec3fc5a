//! The configuration matrix: default settings by GPU memory.
//!
//! In: a card's memory, where known. Out: one of three [`Preset`]s. The numbers are promised.

use serde::{Deserialize, Serialize};
use tandem_units::Bytes;

/// Usual settings for cards of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preset {
    /// Memory of the card in GB.
    pub card_gb: u64,
    /// Least and most utterances of a batch.
    pub batch: (usize, usize),
    /// Budget for data work in MB.
    pub data_mb: u64,
    /// Budget for the model in MB.
    pub model_mb: u64,
    /// Least and most batches that may wait.
    pub prefetch: (usize, usize),
}

/// The promised matrix.
pub const PRESETS: [Preset; 3] = [
    Preset { card_gb: 12, batch: (8, 8), data_mb: 4096, model_mb: 8192, prefetch: (6, 8) },
    Preset { card_gb: 16, batch: (12, 12), data_mb: 6144, model_mb: 10240, prefetch: (4, 6) },
    Preset { card_gb: 24, batch: (16, 24), data_mb: 8192, model_mb: 16384, prefetch: (2, 4) },
];

impl Preset {
    /// The largest that fits a card. A card sold as 12 GB reports a little less.
    pub fn for_card(memory: Bytes) -> Option<Preset> {
        let gigabytes = memory.0 as f64 / 1e9;
        PRESETS.into_iter().rev().find(|preset| gigabytes >= 0.95 * preset.card_gb as f64)
    }

    /// The one of this size.
    pub fn of_size(card_gb: u64) -> Option<Preset> {
        PRESETS.into_iter().find(|preset| preset.card_gb == card_gb)
    }

    /// What to type after `tandem train`.
    pub fn flags(&self) -> String {
        format!(
            "--batch-size {} --enable-memory-isolation --data-gpu-memory {} --model-gpu-memory {} \
             --prefetch-buffer-size {}",
            self.batch.1, self.data_mb, self.model_mb, self.prefetch.1
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_gets_the_largest_preset_that_fits() {
        let of = |gb: f64| Preset::for_card(Bytes((gb * 1e9) as u64)).map(|p| p.card_gb);
        assert_eq!(
            [of(8.0), of(11.8), of(16.1), of(23.7), of(80.0)],
            [None, Some(12), Some(16), Some(24), Some(24)]
        );
    }

    #[test]
    fn the_matrix_is_the_promised_one() {
        let row = |p: Preset| (p.card_gb, p.batch, p.data_mb, p.model_mb, p.prefetch);
        assert_eq!(
            PRESETS.map(row),
            [
                (12, (8, 8), 4096, 8192, (6, 8)),
                (16, (12, 12), 6144, 10240, (4, 6)),
                (24, (16, 24), 8192, 16384, (2, 4)),
            ]
        );
    }
}
