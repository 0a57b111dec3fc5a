//! Rows beyond the length limits, for the user: how many, the flag that keeps them, its memory cost.
//!
//! In: the summary of a prepared corpus, the batch settings and the model size. Out: one sentence for
//! each limit. Changes nothing: the user decides.

use tandem_data::batch::BatchConfig;
use tandem_model::network::size::{ModelSize, VoiceConfig};
use tandem_train::Summary;
use tandem_train::prepare::too_long::{LengthLimit, TooLong};
use tandem_units::Bytes;

/// What decides the size of the largest batch.
#[derive(Clone, Copy)]
pub struct BatchFacts<'a> {
    pub batch: &'a BatchConfig,
    pub model_size: ModelSize,
    /// Mel bands.
    pub bands: usize,
}

/// One sentence for each limit that rows exceed.
pub fn too_long(summary: &Summary, facts: BatchFacts) -> Vec<String> {
    summary.too_long.iter().map(|over| sentence(over, facts)).collect()
}

fn sentence(over: &TooLong, facts: BatchFacts) -> String {
    let BatchFacts { batch, model_size, bands } = facts;
    let raised = match over.limit {
        LengthLimit::MelFrames => BatchConfig { max_mel_frames: over.longest, ..batch.clone() },
        LengthLimit::Symbols => BatchConfig { max_text_length: over.longest, ..batch.clone() },
    };
    // A frame budget below the longest recording would be refused.
    let budget = raised.frame_budget.filter(|budget| *budget < raised.max_mel_frames);
    let more = budget.map(|_| format!(" --frame-budget {}", raised.max_mel_frames));
    let raised = match budget {
        Some(_) => BatchConfig { frame_budget: Some(raised.max_mel_frames), ..raised },
        None => raised,
    };
    let (now, then) = (largest(batch), largest(&raised));
    let memory = |(rows, frames, symbols): (usize, usize, usize)| -> Bytes {
        VoiceConfig::of(model_size, 0, 0, bands).activations(rows, frames, symbols)
    };
    format!(
        "{over}; `{}{}` keeps them: the largest batch grows from {} to {}, its activations from about \
         {} to {} (model size {})",
        over.flag(),
        more.unwrap_or_default(),
        shape(now),
        shape(then),
        memory(now),
        memory(then),
        model_size.name()
    )
}

/// Rows, mel frames and symbols of the largest batch that the settings allow.
fn largest(batch: &BatchConfig) -> (usize, usize, usize) {
    (batch.rows_of(batch.max_mel_frames), batch.max_mel_frames, batch.max_text_length)
}

fn shape((rows, frames, symbols): (usize, usize, usize)) -> String {
    format!("{rows} x {frames} frames and {symbols} symbols")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(over: TooLong, batch: BatchConfig) -> String {
        let facts = BatchFacts { batch: &batch, model_size: ModelSize::Tiny, bands: 80 };
        sentence(&over, facts)
    }

    const LJSPEECH: TooLong =
        TooLong { limit: LengthLimit::MelFrames, value: 800, rows: 1310, of: 13_100, longest: 870 };

    #[test]
    fn long_recordings_are_counted_with_the_flag_and_its_cost() {
        let text = said(LJSPEECH, BatchConfig::default());
        assert!(
            text.starts_with(
                "1310 of 13100 rows (10.0 %) are longer than 800 mel frames and are not used; \
                 `--max-mel-frames 870` keeps them: the largest batch grows from 16 x 800 frames \
                 and 200 symbols to 16 x 870 frames and 200 symbols, its activations from about "
            ),
            "{text}"
        );
        assert!(text.ends_with("(model size tiny)"), "{text}");
    }

    #[test]
    fn a_frame_budget_grows_with_the_limit_where_it_must() {
        let batch = BatchConfig { frame_budget: Some(1600), ..BatchConfig::default() };
        assert!(said(LJSPEECH, batch).contains("from 2 x 800 frames and 200 symbols to 1 x 870"));
        let batch = BatchConfig { frame_budget: Some(800), ..BatchConfig::default() };
        let text = said(LJSPEECH, batch);
        assert!(text.contains("`--max-mel-frames 870 --frame-budget 870` keeps them"), "{text}");
    }

    #[test]
    fn long_texts_have_their_own_flag() {
        let over =
            TooLong { limit: LengthLimit::Symbols, value: 200, rows: 1, of: 40, longest: 260 };
        let text = said(over, BatchConfig::default());
        let start = "1 of 40 rows (2.5 %) is longer than 200 symbols and is not used; \
                     `--max-text-length 260` keeps them";
        assert!(text.starts_with(start), "{text}");
    }
}
