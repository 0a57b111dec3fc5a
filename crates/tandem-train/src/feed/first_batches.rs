//! The first batches of a corpus, read before training starts.
//!
//! In: a prepared corpus. Out: each batch, passed to a closure by reference. The same seed gives
//! the same batches for any number of workers. Next: [`crate::feed::mel_scale`] and [`crate::feed::align::flat_start`].

use crate::TrainError;
use crate::feed::mel::Ready;
use crate::feed::schedule::Shard;
use crate::feed::skip_list::SkipList;
use crate::feed::{FeedSettings, feed};
use crate::prepare::Prepared;
use std::sync::Arc;
use tandem_data::batch::Position;
use tandem_pipeline::{Adapt, CancelToken};
use tandem_telemetry::Recorder;

/// Calls `visit` for the first `batches` batches, or for all of the first epoch if it has fewer.
pub fn for_first_batches(
    prepared: &Arc<Prepared>,
    settings: &FeedSettings,
    batches: usize,
    cancel: &CancelToken,
    mut visit: impl FnMut(&Ready),
) -> Result<(), TrainError> {
    let settings = FeedSettings {
        start: Position::start(settings.batch.seed),
        first: 0,
        epochs: Some(1),
        adapt: Adapt::Off,
        reference_frames: 0,
        // Every rank measures the same batches.
        shard: Shard::ALL,
        // Batches of this pass have numbers of their own. Rows that fail here are counted as in training.
        skip_list: SkipList::default(),
        ..settings.clone()
    };
    let mut feed = feed(prepared, &settings, &Recorder::off(), cancel)?;
    for _ in 0..batches {
        let Some(ready) = feed.next()? else { break };
        visit(&ready);
    }
    Ok(())
}
