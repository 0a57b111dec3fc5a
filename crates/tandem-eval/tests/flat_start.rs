//! The flat start on a real corpus, compared with the known start times of its words.

use std::path::Path;
use std::sync::Arc;
use tandem_data::batch::BatchConfig;
use tandem_data::corpus::Split;
use tandem_eval::evaluate::{TimingError, WordTimings};
use tandem_model::alignment::Aligner;
use tandem_pipeline::CancelToken;
use tandem_train::feed::align::flat_start::estimate_flat_start;
use tandem_train::feed::first_batches::for_first_batches;
use tandem_train::feed::mel_scale::measure_mel_scale;
use tandem_train::feed::{FeedSettings, Rows};
use tandem_train::prepare::row::Features;
use tandem_train::{DataSettings, PrepareOptions, Watcher, prepare};

struct NoProgress;

impl Watcher for NoProgress {
    fn waiting_for(&mut self, _: &str) {}
    fn progress(&mut self, _: usize, _: usize) {}
}

#[test]
fn flat_start_finds_the_words_of_the_demo_corpus() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tandem/demo-corpus");
    let folder = tempfile::tempdir().unwrap();
    let cancel = CancelToken::new();
    let options = PrepareOptions {
        features: Features::Cached,
        cache_dir: Some(folder.path().into()),
        ..PrepareOptions::default()
    };
    let settings = DataSettings::default();
    let prepared =
        Arc::new(prepare(&corpus, &settings, &options, &mut NoProgress, &cancel).unwrap());
    let feed = FeedSettings::new(BatchConfig { batch_size: 8, ..BatchConfig::default() });
    let scale = measure_mel_scale(&prepared, &feed, &cancel).unwrap();
    let known = estimate_flat_start(&prepared, &feed, &scale, &cancel).unwrap();

    let timings = WordTimings::read(&corpus).unwrap();
    let (rows, table) = (Rows::of(&prepared, Split::Train), prepared.front_end.table());
    let rate = 22050.0 / 256.0;
    let (mut found, mut even) = (Vec::new(), Vec::new());
    for_first_batches(&prepared, &feed, 100, &cancel, |ready| {
        let batch = &ready.batch;
        let (shape, bands) = (batch.shape(), batch.bands());
        for (row, &planned) in batch.row_ids().iter().enumerate() {
            let number = rows.cache_row[planned as usize] as usize;
            let id = prepared.cache.row(number).unwrap().id.to_string();
            let (count, frames) =
                (batch.symbol_counts()[row] as usize, batch.frame_counts()[row] as usize);
            let symbols = &batch.symbols()[row * shape.symbols..][..count];
            let mel =
                scale.normalised(&batch.mel()[row * shape.frames * bands..][..frames * bands]);
            let language = batch.languages()[row];
            let path = known.align(&mut Aligner::default(), symbols, language, &mel).unwrap();
            found.extend(timings.errors(&id, symbols, &path, table, rate));
            let pace: Vec<u32> = (0..count)
                .map(|at| ((at + 1) * frames / count - at * frames / count) as u32)
                .collect();
            even.extend(timings.errors(&id, symbols, &pace, table, rate));
        }
    })
    .unwrap();
    let (found, even) = (TimingError::of(found).unwrap(), TimingError::of(even).unwrap());
    assert!(found.words > 600, "{found:?}");
    assert!(even.median_frames > 4.0, "{even:?}");
    assert!(found.median_frames < 2.5 && found.p90_frames < 10.0, "{found:?}");
}
