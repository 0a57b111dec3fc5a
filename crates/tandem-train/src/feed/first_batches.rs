//! The first batches of a corpus, looked at before training starts.
//!
//! In: a prepared corpus. Out: each batch, lent to a closure. The same batches for the same
//! seed, whatever the workers. Next: [`crate::feed::mel_scale`] and [`crate::feed::align::flat_start`].

use crate::TrainError;
use crate::feed::mel::Ready;
use crate::feed::row_failures::RowFailures;
use crate::feed::{FeedSettings, feed};
use crate::prepare::Prepared;
use std::sync::Arc;
use tandem_data::batch::Position;
use tandem_pipeline::{Adapt, CancelToken};
use tandem_telemetry::Recorder;

/// Looks at so many batches, or at all of the first epoch where there are fewer.
pub fn survey(
    prepared: &Arc<Prepared>,
    settings: &FeedSettings,
    batches: usize,
    cancel: &CancelToken,
    mut look: impl FnMut(&Ready),
) -> Result<(), TrainError> {
    let settings = FeedSettings {
        start: Position::start(settings.batch.seed),
        first: 0,
        epochs: Some(1),
        adapt: Adapt::Off,
        reference_frames: 0,
        row_failures: RowFailures::default(),
        ..settings.clone()
    };
    let mut feed = feed(prepared, &settings, &Recorder::off(), cancel)?;
    for _ in 0..batches {
        let Some(ready) = feed.next()? else { break };
        look(&ready);
    }
    Ok(())
}
