//! Mel frames of the data device equal those of the host: the same batches in the same order, with
//! values within the stated tolerance. The device is the CPU backend here. The GPU tests of
//! `tandem-model` run the same code on software GPUs.

mod kit;

use kit::TestCorpus;
use std::sync::Arc;
use tandem_data::batch::BatchConfig;
use tandem_device::placement::MelOn;
use tandem_device::placement::OpenDevices;
use tandem_model::Device;
use tandem_model::device_mel::{MelPlace, TOLERANCE};
use tandem_pipeline::CancelToken;
use tandem_telemetry::Recorder;
use tandem_train::feed::mel_placement::{MelDecision, decide_mel_place};
use tandem_train::{FeedSettings, Prepared, TrainError, feed};
use tandem_units::{Hint, Seed};

struct Seen {
    rows: Vec<u32>,
    symbols: Vec<i32>,
    mel: Vec<f32>,
    references: Vec<f32>,
    counts: Vec<usize>,
}

fn settings(workers: usize) -> FeedSettings {
    let batch = BatchConfig { batch_size: 4, seed: Seed(5), max_buckets: 3, ..Default::default() };
    FeedSettings { workers, epochs: Some(1), reference_frames: 16, ..FeedSettings::new(batch) }
}

fn seen(prepared: &Arc<Prepared>, settings: &FeedSettings) -> Vec<Seen> {
    let mut batches = feed(prepared, settings, &Recorder::off(), &CancelToken::new()).unwrap();
    let mut seen = Vec::new();
    while let Some(ready) = batches.next().unwrap() {
        seen.push(Seen {
            rows: ready.batch.row_ids().to_vec(),
            symbols: ready.batch.symbols().to_vec(),
            mel: ready.batch.mel().to_vec(),
            references: ready.references.mel().to_vec(),
            counts: ready.references.counts().to_vec(),
        });
    }
    seen
}

#[track_caller]
fn check_same(host: &[Seen], device: &[Seen], tolerance: f32) {
    assert!(!host.is_empty());
    assert_eq!(host.len(), device.len());
    for (host, device) in host.iter().zip(device) {
        assert_eq!((&host.rows, &host.symbols), (&device.rows, &device.symbols));
        assert_eq!(host.counts, device.counts);
        for (host, device) in [(&host.mel, &device.mel), (&host.references, &device.references)] {
            assert_eq!(host.len(), device.len());
            let off = host.iter().zip(device).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(off <= tolerance, "{off}");
        }
    }
}

#[test]
fn batches_of_the_device_equal_those_of_the_host() {
    let corpus = TestCorpus::with_rows(24);
    let prepared = corpus.prepare_shared();
    let on_device = FeedSettings { mel_device: Some(Device::flex()), ..settings(2) };
    let (host, device) = (seen(&prepared, &settings(1)), seen(&prepared, &on_device));
    assert!(host.iter().any(|batch| batch.counts.iter().any(|&count| count > 0)), "references");
    // Pure tones leave bands at the floor, where logarithms differ more than in speech.
    check_same(&host, &device, 4.0 * TOLERANCE);
}

#[test]
fn cached_frames_are_not_computed_again() {
    let corpus = TestCorpus::with_rows(24).cache_features();
    let prepared = corpus.prepare_shared();
    let on_device = FeedSettings { mel_device: Some(Device::flex()), ..settings(2) };
    check_same(&seen(&prepared, &settings(1)), &seen(&prepared, &on_device), 0.0);
}

#[test]
fn without_a_gpu_the_host_computes_mel_frames_and_a_device_is_refused() {
    let corpus = TestCorpus::with_rows(8);
    let prepared = corpus.prepare_shared();
    let cpu = OpenDevices { data: Device::flex(), model: Device::flex() };
    let decide = |requested| decide_mel_place(requested, &prepared, &settings(1), &cpu);
    let decided = decide(MelOn::Auto).unwrap();
    assert_eq!((decided, decided.place()), (MelDecision::OnlyHost, MelPlace::Host));
    let text = "mel frames: on the host (the CPU is the only device)";
    assert_eq!(decided.to_string(), text);
    assert_eq!(decide(MelOn::Host).unwrap(), MelDecision::Requested(MelPlace::Host));
    let refused = decide(MelOn::Device).unwrap_err();
    assert!(matches!(refused, TrainError::NoMelDevice), "{refused}");
    assert!(refused.hint().unwrap().contains("--mel-on device"));
}
