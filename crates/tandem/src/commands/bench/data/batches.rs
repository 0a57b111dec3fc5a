//! Corpus to padded batches, through the data pipeline of training.

use super::clips::{Clip, write_corpus};
use crate::commands::bench::target::{Limit, Target, median};
use crate::failure::Result;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tandem_audio::mel::MelKernel;
use tandem_data::batch::BatchConfig;
use tandem_pipeline::CancelToken;
use tandem_telemetry::Recorder;
use tandem_train::prepare::row::Features;
use tandem_train::{
    DataSettings, FeedSettings, PrepareOptions, Prepared, TrainError, Watcher, feed, prepare,
};

/// Rows on the fly: every distinct clip four times.
const ROWS: usize = 1024;
/// Rows with cached features: 270 MB, more than any CPU cache holds.
const CACHED_ROWS: usize = 2048;

/// After this time a file counts as unchanged by its stamp.
const SETTLED: Duration = Duration::from_secs(4);

/// On the fly against the same loop with realfft; two threads against one; cached features.
pub fn measure(clips: &[Clip], dir: &Path, rounds: usize) -> Result<Vec<Target>> {
    let root = dir.join("on-the-fly");
    write_corpus(clips, ROWS, &root)?;
    let fly = Arc::new(prepared(&root, Features::OnTheFly)?);
    let best = MelKernel::best_for(&fly.settings.mel);
    let [mut one, mut two, mut slow] = [(); 3].map(|()| Vec::new());
    for _ in 0..rounds {
        one.push(rate(&fly, best, 1)?);
        slow.push(rate(&fly, MelKernel::General, 1)?);
        two.push(rate(&fly, best, 2)?);
    }
    let ratio = |over: &[f64], under: &[f64]| {
        median(over.iter().zip(under).map(|(over, under)| over / under).collect())
    };
    let how = |what: &str| format!("median of {rounds} alternating rounds, {what}");
    let mut targets = vec![
        Target::new(
            "on the fly, against the same loop with realfft",
            ratio(&one, &slow),
            "x",
            Limit::AtLeast(2.3),
            how("1 thread: read, decode, mel, pad, hand over"),
        ),
        Target::new(
            "on the fly, 2 threads against 1",
            ratio(&two, &one),
            "x",
            Limit::AtLeast(1.8),
            how("16 utterances a batch"),
        ),
        Target::note("on the fly, 1 thread", median(one), "utt/s", how("mean clip 4.7 s")),
        Target::note("on the fly, 2 threads", median(two), "utt/s", how("mean clip 4.7 s")),
    ];
    let root = dir.join("cached");
    write_corpus(clips, CACHED_ROWS, &root)?;
    let cached = Arc::new(prepared(&root, Features::Cached)?);
    // Files that were just written are verified in every epoch, others in the first one only.
    std::thread::sleep(SETTLED);
    let first = rate(&cached, best, 2)?;
    let rates = (0..rounds).map(|_| rate(&cached, best, 2)).collect::<Result<Vec<_>, _>>()?;
    let how = format!("median of {rounds} epochs after the first ({first:.0}), f32, 2 threads");
    let figure = median(rates);
    targets.push(Target::new("cached", figure, "utt/s", Limit::AtLeast(60_000.0), how));
    Ok(targets)
}

/// Utterances per second that reach a consumer that does no work, over one epoch.
fn rate(prepared: &Arc<Prepared>, kernel: MelKernel, workers: usize) -> Result<f64, TrainError> {
    let mut settings = FeedSettings::new(BatchConfig::default());
    settings.workers = workers;
    settings.most_workers = workers;
    settings.depth = 4;
    settings.kernel = Some(kernel);
    settings.epochs = Some(1);
    let mut feed = feed(prepared, &settings, &Recorder::off(), &CancelToken::new())?;
    // Threads are started and buffers allocated before the measurement.
    let mut used = 0;
    for _ in 0..8 {
        feed.next()?;
    }
    let start = Instant::now();
    while let Some(ready) = feed.next()? {
        used += ready.batch.used();
        std::hint::black_box(ready.batch.mel()[0]);
    }
    Ok(used as f64 / start.elapsed().as_secs_f64())
}

pub fn prepared(root: &Path, features: Features) -> Result<Prepared, TrainError> {
    let options = PrepareOptions { features, ..PrepareOptions::default() };
    prepare(root, &DataSettings::default(), &options, &mut Silent, &CancelToken::new())
}

pub struct Silent;

impl Watcher for Silent {
    fn waiting_for(&mut self, _owner: &str) {}
    fn progress(&mut self, _done: usize, _rows: usize) {}
}
