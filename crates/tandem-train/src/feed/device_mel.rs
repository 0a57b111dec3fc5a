//! The second stage, on the data device: the sound of a whole batch becomes mel frames there.
//!
//! In: [`Loaded`]. Out: [`Ready`], equal to those of [`crate::feed::mel`] within the tolerance of
//! [`tandem_model::device_mel`]. Frames are copied back to the host, where texts are aligned to
//! them. Runs on a thread of its own, which waits for the device while workers load the next
//! batches. Cached frames are not computed again. Next: [`crate::feed::align`].

use crate::TrainError;
use crate::feed::load::{Clip, Loaded};
use crate::feed::mel::Ready;
use tandem_audio::mel::MelConfig;
use tandem_data::batch::HostBatch;
use tandem_device::backend::{DeviceError, guarded};
use tandem_model::Device;
use tandem_model::device_mel::{DeviceMel, DeviceMelError, SoundBatch};
use tandem_pipeline::{Emitter, Stage, StageError};

/// Reference lengths are rounded up to multiples of this, so that there are few shapes.
const REFERENCE_STEP: usize = 128;

const READING: &str = "reading mel frames back from the data device";

/// Computes mel frames on a device, batch by batch.
pub struct DevicePreprocess {
    mel: DeviceMel,
    config: MelConfig,
    sounds: SoundBatch,
}

impl DevicePreprocess {
    pub fn new(config: &MelConfig, device: &Device) -> Result<DevicePreprocess, TrainError> {
        let mel = DeviceMel::new(config, device)?;
        Ok(DevicePreprocess { mel, config: config.clone(), sounds: SoundBatch::new(config) })
    }

    /// The frames of these sounds, each row padded to `frames`.
    fn extract<'a>(
        &mut self,
        clips: impl Iterator<Item = &'a Clip>,
        rows: usize,
        frames: usize,
    ) -> Result<Vec<f32>, DeviceMelError> {
        self.sounds.reset(rows, frames);
        for clip in clips {
            self.sounds.push(clip.as_sound())?;
        }
        let frames = self.mel.extract(&self.sounds)?;
        let values = guarded(READING, || frames.try_into_vec_as::<f32>())?;
        Ok(values.map_err(|error| DeviceError::broke(READING, &error.to_string()))?)
    }

    fn fill_batch(
        &mut self,
        batch: &mut HostBatch,
        sounds: &[Option<Clip>],
    ) -> Result<(), DeviceMelError> {
        if sounds.iter().all(Option::is_none) {
            return Ok(());
        }
        // The whole padded shape, so that the device sees only the shapes of the plan.
        let shape = batch.shape();
        let mel = self.extract(sounds.iter().flatten(), shape.rows, shape.frames)?;
        let missing = batch.rows_mut().zip(sounds).filter(|(_, sound)| sound.is_some());
        let mel = mel.chunks_exact(shape.frames * self.config.bands);
        for ((row, _), frames) in missing.zip(mel) {
            let length = row.mel.len();
            row.mel.copy_from_slice(&frames[..length]);
        }
        Ok(())
    }

    fn fill_references(&mut self, loaded: &mut Loaded) -> Result<(), DeviceMelError> {
        let sounds = loaded.references.take_sounds();
        let frames = |clip: &Clip| self.config.frames(clip.as_sound().len()).0;
        let Some(longest) = sounds.iter().map(|(_, clip, _)| frames(clip)).max() else {
            return Ok(());
        };
        let padded = longest.next_multiple_of(REFERENCE_STEP);
        let counts: Vec<usize> = sounds.iter().map(|(_, clip, _)| frames(clip)).collect();
        let rows = loaded.batch.shape().rows;
        let mel = self.extract(sounds.iter().map(|(_, clip, _)| clip), rows, padded)?;
        let bands = self.config.bands;
        for (((row, _, at), count), mel) in
            sounds.iter().zip(counts).zip(mel.chunks_exact(padded * bands))
        {
            loaded.references.fill(*row, &mel[..count * bands], *at);
        }
        Ok(())
    }
}

impl Stage for DevicePreprocess {
    type In = Loaded;
    type Out = Ready;

    fn name(&self) -> &'static str {
        "preprocess"
    }

    fn step(&mut self, mut loaded: Loaded, out: &mut dyn Emitter<Ready>) -> Result<(), StageError> {
        let sounds = std::mem::take(&mut loaded.sounds);
        self.fill_batch(&mut loaded.batch, &sounds).map_err(StageError::stop)?;
        self.fill_references(&mut loaded).map_err(StageError::stop)?;
        let Loaded { ticket, position, mut batch, references, .. } = loaded;
        batch.finish();
        out.push(Ready { ticket, position, batch, references })
    }
}
