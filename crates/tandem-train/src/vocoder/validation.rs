//! Held-out segments and samples of a vocoder run.
//!
//! In: held-out rows of the corpus. Out: the mean losses of a network on fixed segments of them, and whole recordings
//! that were synthesized from their mel frames. The segments are the same in every validation.

use crate::TrainError;
use crate::feed::load::Load;
use crate::feed::row_failures::RowFailures;
use crate::feed::{FeedSettings, Rows};
use crate::prepare::Prepared;
use crate::vocoder::segments::{CutSegments, samples_of};
use std::sync::Arc;
use tandem_audio::Sound;
use tandem_audio::mel::MelExtractor;
use tandem_data::batch::HostBatch;
use tandem_data::corpus::Split;
use tandem_model::Device;
use tandem_model::between_threads::copy_to;
use tandem_model::vocoder::Vocoder;
use tandem_model::vocoder::neural::NeuralVocoder;
use tandem_model::vocoder::neural::losses::{log_magnitudes, losses};
use tandem_model::vocoder::neural::network::VocoderNetwork;
use tandem_model::vocoder::neural::segment::SegmentBatch;
use tandem_model::vocoder::neural::trained::VocoderDocument;
use tandem_pipeline::Pool;
use tandem_telemetry::Recorder;
use tandem_units::{Epoch, Ticket};

/// Segments of one batch.
const BATCH: usize = 8;
/// Held-out rows that are used, each with one segment.
const MOST_ROWS: usize = 48;
/// Recordings that are synthesized.
const SAMPLES: usize = 2;

/// The data of every validation.
pub struct VocoderValidation {
    batches: Vec<SegmentBatch>,
    samples: Vec<CopySample>,
}

/// A recording to synthesize from its own mel frames.
struct CopySample {
    name: String,
    mel: Vec<f32>,
}

/// Mean losses over all segments.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ValidationLosses {
    pub convergence: f64,
    pub magnitude: f64,
}

impl ValidationLosses {
    /// The distance that is heard: what the best checkpoint has least of.
    pub fn distance(&self) -> f64 {
        self.convergence + self.magnitude
    }
}

impl VocoderValidation {
    /// None where the corpus has no held-out row that can be read.
    pub fn build(
        prepared: &Arc<Prepared>,
        feed: &FeedSettings,
        document: &VocoderDocument,
    ) -> Result<Option<VocoderValidation>, TrainError> {
        let rows = Arc::new(Rows::of(prepared, Split::Eval));
        // Failures of these rows do not count against the training rows' limit.
        let feed = FeedSettings { row_failures: RowFailures::default(), ..feed.clone() };
        let recorder = Recorder::off();
        let mut cutter = CutSegments::new(prepared, &rows, document, &feed, &recorder)?;
        let ticket = Ticket { epoch: Epoch(0), seq: 0 };
        let (mut batches, mut batch) = (Vec::new(), SegmentBatch::default());
        for row in 0..rows.cache_row.len().min(MOST_ROWS) as u32 {
            // A row without a segment is left out of the validation.
            let _ = cutter.cut(ticket, row, &mut |_| {}, &mut batch);
            if batch.segments == BATCH {
                batches.push(std::mem::take(&mut batch));
            }
        }
        batches.extend((batch.segments > 0).then_some(batch));
        let samples = copy_samples(prepared, &rows, document)?;
        Ok((!batches.is_empty()).then_some(VocoderValidation { batches, samples }))
    }

    /// The mean losses of a network without autodiff.
    pub fn measure(&self, network: &VocoderNetwork, device: &Device) -> ValidationLosses {
        let (mut sums, mut segments) = (ValidationLosses::default(), 0);
        for batch in &self.batches {
            segments += batch.segments;
            let batch = batch.to_device(device);
            let losses = losses(log_magnitudes(network, &batch), &batch);
            sums.convergence += f64::from(losses.convergence.into_scalar::<f32>());
            sums.magnitude += f64::from(losses.magnitude.into_scalar::<f32>());
        }
        let share = 1.0 / segments.max(1) as f64;
        ValidationLosses {
            convergence: sums.convergence * share,
            magnitude: sums.magnitude * share,
        }
    }

    /// Recordings synthesized from their mel frames.
    pub fn synthesize(
        &self,
        document: &VocoderDocument,
        network: &VocoderNetwork,
    ) -> Result<Vec<Synthesized>, TrainError> {
        let network = copy_to(network, &Device::flex());
        let mut vocoder = NeuralVocoder::new(document.clone(), network)?;
        let samples = self.samples.iter().map(|sample| {
            let samples = vocoder.synthesize(&sample.mel)?;
            Ok(Synthesized { name: sample.name.clone(), samples, mel: sample.mel.clone() })
        });
        samples.collect()
    }
}

/// A recording that went through mel frames and vocoder.
pub struct Synthesized {
    pub name: String,
    pub samples: Vec<f32>,
    /// What it was synthesized from, `[frames, bands]`.
    pub mel: Vec<f32>,
}

fn copy_samples(
    prepared: &Arc<Prepared>,
    rows: &Arc<Rows>,
    document: &VocoderDocument,
) -> Result<Vec<CopySample>, TrainError> {
    let mel = document.mel.clone();
    let pool = Pool::new(1, move || HostBatch::new(&mel));
    let mut load = Load::new(prepared.clone(), rows.clone(), pool, Recorder::off());
    let mut extractor = MelExtractor::new(document.mel.clone())?;
    let ticket = Ticket { epoch: Epoch(0), seq: 0 };
    let mut samples = Vec::new();
    for row in 0..rows.cache_row.len().min(SAMPLES) as u32 {
        let Some(clip) = load.clip_of(ticket, row, &mut |_| {}) else { continue };
        let number = rows.cache_row[row as usize] as usize;
        let id = prepared.cache.row(number).map(|row| row.id.to_string()).unwrap_or_default();
        let mel = extractor.extract(Sound::F32(&samples_of(clip)))?;
        samples.push(CopySample { name: id.replace('/', "-"), mel: mel.into_values() });
    }
    Ok(samples)
}
