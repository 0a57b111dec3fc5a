//! The third stage: each text is aligned to its recording, ahead of the step that trains on it.
//!
//! In: [`Ready`]. Out: [`Aligned`], a batch on the host. The text encoder of a fixed earlier
//! step predicts the mel frame of each symbol. The search for the best monotonic path runs on this
//! stage's own thread, never on the training thread. Next: [`crate::feed::transfer`].

pub mod snapshots; // encoders of earlier steps, which align
pub mod flat_start; // the alignment of the first steps
pub mod text_fit; // one text aligned to one recording
pub mod corpus_fit; // the texts of a corpus, by a trained voice

use crate::feed::align::snapshots::{AlignerSnapshot, AlignerSnapshots};
use crate::feed::align::text_fit::fit_text;
use crate::feed::mel::Ready;
use crate::run::background::BackgroundPool;
use std::time::Duration;
use tandem_data::batch::Position;
use tandem_device::backend::guarded;
use tandem_model::alignment::flat_start::FlatStart;
use tandem_model::alignment::{Aligner, log_likelihoods};
use tandem_model::mel_scale::MelScale;
use tandem_model::metrics::{AlignmentHealth, HealthLimits};
use tandem_model::network::ops::Lengths;
use tandem_model::network::voice::Encoder;
use tandem_model::train_batch::{AlignedBatch, mask};
use tandem_model::{Device, Tensor, TensorData};
use tandem_pipeline::{CancelToken, Emitter, Payload, Stage, StageError};
use tandem_telemetry::Recorder;
use tandem_telemetry::event::{Skipped, Warning};
use tandem_units::{Bytes, Seed, Ticket};

/// Weight of the diagonal prior: speech is assumed to have an even pace.
const DIAGONAL: f32 = 1.0;

/// A longer wait for a snapshot causes a warning.
const LATE: Duration = Duration::from_millis(10);

/// An aligned batch on the host.
pub struct Aligned {
    pub ticket: Ticket,
    /// The start position that makes this batch the first one.
    pub position: Position,
    pub batch: AlignedBatch,
    /// Its utterances, as indices into [`crate::feed::Rows`].
    pub rows: Vec<u32>,
    /// Steps between the weights that aligned it and the step that uses it.
    pub age: u64,
}

impl Payload for Aligned {
    fn size(&self) -> Bytes {
        Bytes::of_slice(&self.batch.mel) + Bytes::of_slice(&self.batch.reference)
    }

    fn ticket(&self) -> Option<Ticket> {
        Some(self.ticket)
    }
}

/// Aligns texts to recordings.
pub struct Align {
    /// Aligns the first steps.
    pub flat_start: Option<FlatStart>,
    /// How many steps use the flat start.
    pub flat_start_steps: u64,
    /// Text encoders of earlier steps, which align the later steps.
    pub snapshots: AlignerSnapshots,
    /// The device of the text encoder.
    pub device: Device,
    pub scale: MelScale,
    /// Mel frames per decoder position.
    pub patch: usize,
    /// Batches per step, on all ranks together.
    pub batches_per_step: u64,
    /// Seed of flow noise and flow times.
    pub seed: Seed,
    /// Ends a wait for a snapshot.
    pub cancel: CancelToken,
    pub recorder: Recorder,
    /// Threads of the text encoder where the CPU trains.
    pub pool: BackgroundPool,
    pub aligner: Aligner,
}

impl Stage for Align {
    type In = Ready;
    type Out = Aligned;

    fn name(&self) -> &'static str {
        "align"
    }

    fn step(&mut self, ready: Ready, out: &mut dyn Emitter<Aligned>) -> Result<(), StageError> {
        let step = ready.ticket.seq / self.batches_per_step;
        let seed = self.seed.for_ticket(ready.ticket);
        let mut batch = unaligned(&ready, &self.scale, self.patch, seed);
        let (age, short) = match &self.flat_start {
            Some(flat_start) if step < self.flat_start_steps => {
                (0, align_by_flat_start(flat_start, &mut self.aligner, &mut batch))
            }
            _ => self.align_by_snapshot(step, &mut batch, out)?,
        };
        for row in short {
            self.report_short(&ready, row);
        }
        out.push(Aligned {
            ticket: ready.ticket,
            position: ready.position,
            batch,
            rows: ready.batch.row_ids().to_vec(),
            age,
        })
    }
}

impl Align {
    /// Returns the age of the alignment in steps, and the rows that cannot be aligned.
    fn align_by_snapshot(
        &mut self,
        step: u64,
        batch: &mut AlignedBatch,
        out: &mut dyn Emitter<Aligned>,
    ) -> Result<(u64, Vec<usize>), StageError> {
        let Some(snapshot) = self.snapshot(step, out) else {
            return Err(StageError::skip("the run is being stopped"));
        };
        if snapshot.waited > LATE {
            self.warn_of_wait(step, snapshot.waited);
        }
        let device = &self.device;
        let priors = guarded("encoding texts ahead of training", || {
            self.pool.run(|| priors(snapshot.on(device), batch, device))
        })
        .map_err(StageError::stop)?;
        Ok((step - snapshot.step, align_by_prior(&mut self.aligner, batch, &priors)))
    }

    /// The snapshot for a step. Time spent waiting for it counts as waiting, not as work. None when the
    /// run ends first.
    fn snapshot(&self, step: u64, out: &mut dyn Emitter<Aligned>) -> Option<AlignerSnapshot> {
        if let Some(snapshot) = self.snapshots.get(step) {
            return Some(snapshot);
        }
        out.waiting(&format_args!("the weights of step {}", self.snapshots.wanted_by(step)));
        let snapshot = self.snapshots.wait_for(step, &self.cancel);
        out.working();
        snapshot
    }

    fn report_short(&self, ready: &Ready, row: usize) {
        let (symbols, frames) = (ready.batch.symbol_counts()[row], ready.batch.frame_counts()[row]);
        let why = format!("{symbols} symbols cannot be spoken in {frames} frames");
        let id = Some(format!("row {}", ready.batch.row_ids()[row]));
        let (ticket, stage) = (Some(ready.ticket), "align".into());
        self.recorder.send(Skipped { ticket, id, stage, why });
    }

    fn warn_of_wait(&self, step: u64, waited: Duration) {
        let text = format!(
            "step {step} waited {:.2} s for the weights that align it; a larger \
             `--align-lag` lets alignment run further ahead",
            waited.as_secs_f64()
        );
        self.recorder.send(Warning { code: "alignment_late".into(), text });
    }
}

/// A batch without durations: frames are normalised and padded to a whole number of patches.
pub(crate) fn unaligned(ready: &Ready, scale: &MelScale, patch: usize, seed: Seed) -> AlignedBatch {
    let (batch, references) = (&ready.batch, &ready.references);
    let (shape, bands) = (batch.shape(), batch.bands());
    let frames = shape.frames.next_multiple_of(patch);
    let mut mel = vec![0.0; shape.rows * frames * bands];
    let rows = batch.mel().chunks_exact(shape.frames * bands);
    for (target, row) in mel.chunks_exact_mut(frames * bands).zip(rows) {
        scale.normalise(row, target);
    }
    let mut reference = vec![0.0; shape.rows * references.frames() * bands];
    scale.normalise(references.mel(), &mut reference);
    let mut reference_counts = references.counts().to_vec();
    reference_counts.resize(shape.rows, 0);
    AlignedBatch {
        rows: shape.rows,
        symbols: shape.symbols,
        frames,
        bands,
        patch,
        symbol_counts: counts(batch.symbol_counts()),
        frame_counts: counts(batch.frame_counts()),
        symbol_ids: batch.symbols().to_vec(),
        languages: batch.languages().to_vec(),
        durations: vec![0; shape.rows * shape.symbols],
        mel,
        reference_frames: references.frames(),
        reference,
        reference_counts,
        seed,
    }
}

/// Fills in durations from the mel frame that the text encoder predicts for each symbol. Returns the
/// rows that cannot be aligned.
pub(crate) fn align_by_prior(
    aligner: &mut Aligner,
    batch: &mut AlignedBatch,
    priors: &[f32],
) -> Vec<usize> {
    let (symbols, bands) = (batch.symbols, batch.bands);
    fill_durations(batch, |row, text, mel| {
        let prior = &priors[row * symbols * bands..][..text.len() * bands];
        search_path(aligner, log_likelihoods(mel, prior, bands), text.len())
    })
}

/// Like [`align_by_prior`], but returns the health of each row's alignment.
pub(crate) fn align_with_health(
    aligner: &mut Aligner,
    batch: &mut AlignedBatch,
    priors: &[f32],
    limits: &HealthLimits,
) -> Vec<AlignmentHealth> {
    let (symbols, bands) = (batch.symbols, batch.bands);
    let mut healths = Vec::new();
    fill_durations(batch, |row, text, mel| {
        let prior = &priors[row * symbols * bands..][..text.len() * bands];
        let fit = fit_text(aligner, mel, prior, bands, limits)?;
        healths.push(fit.health);
        Some(fit.durations)
    });
    healths
}

/// Frames of each symbol on the best path, with the diagonal prior. Shape: `[frames, symbols]`.
pub(crate) fn search_path(
    aligner: &mut Aligner,
    mut likelihoods: Vec<f32>,
    symbols: usize,
) -> Option<Vec<u32>> {
    if symbols == 0 {
        return None;
    }
    aligner.add_diagonal_prior(&mut likelihoods, symbols, DIAGONAL);
    aligner.search(&likelihoods, symbols)
}

/// Like [`align_by_prior`], with the mean frames that were estimated before training.
fn align_by_flat_start(
    flat_start: &FlatStart,
    aligner: &mut Aligner,
    batch: &mut AlignedBatch,
) -> Vec<usize> {
    let languages = batch.languages.clone();
    fill_durations(batch, |row, text, mel| flat_start.align(aligner, text, languages[row], mel))
}

/// A row with more symbols than frames cannot be aligned: it is emptied and its index returned.
fn fill_durations(
    batch: &mut AlignedBatch,
    mut search: impl FnMut(usize, &[i32], &[f32]) -> Option<Vec<u32>>,
) -> Vec<usize> {
    let (symbols, bands) = (batch.symbols, batch.bands);
    let mut short = Vec::new();
    for row in 0..batch.rows {
        let (count, frames) = (batch.symbol_counts[row], batch.frame_counts[row]);
        if count == 0 {
            continue;
        }
        let mel = &batch.mel[row * batch.frames * bands..][..frames * bands];
        let text = &batch.symbol_ids[row * symbols..][..count];
        match search(row, text, mel) {
            Some(found) => batch.durations[row * symbols..][..count].copy_from_slice(&found),
            None => {
                short.push(row);
                (batch.symbol_counts[row], batch.frame_counts[row]) = (0, 0);
            }
        }
    }
    short
}

/// The mel frame that the text encoder predicts for each symbol. Shape: `[rows, symbols, bands]`.
pub fn priors(encoder: &Encoder, batch: &AlignedBatch, device: &Device) -> Vec<f32> {
    let (rows, bands) = (batch.rows, batch.bands);
    let shape = [rows, batch.reference_frames, bands];
    let reference = TensorData::new(batch.reference.clone(), shape);
    let reference = Tensor::<3>::from_data(reference, device);
    let real = mask(&batch.reference_counts, batch.reference_frames, device);
    let languages = TensorData::new(batch.languages.clone(), [rows, 1]);
    let symbols = TensorData::new(batch.symbol_ids.clone(), [rows, batch.symbols]);
    let voice = encoder.speaker_embedding(reference, real);
    let condition = encoder.condition(voice, Tensor::from_data(languages, device));
    let text = Lengths::new(&batch.symbol_counts, batch.symbols, device);
    let encoded = encoder.encode_text(Tensor::from_data(symbols, device), condition, &text);
    encoded.prior.try_into_vec_as::<f32>().expect("32-bit floats")
}

fn counts(list: &[i32]) -> Vec<usize> {
    list.iter().map(|&count| count as usize).collect()
}
