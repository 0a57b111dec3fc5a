//! Host or device: measured once, at the start, on sounds of this very corpus.
//!
//! In: a sample of sounds. Out: [`MelChoice`], whose text says what was measured and decided. Both
//! ways end with frames on the host, where texts are laid over them.
//! Values are compared too: a device that computes in less than single precision (some matrix
//! units do) is not taken, however fast it is.

use super::{BAND_TOLERANCE, DeviceMel, DeviceMelError, SoundBatch};
use burn::tensor::Device;
use serde::Serialize;
use std::fmt;
use std::time::{Duration, Instant};
use tandem_data::audio::Sound;
use tandem_data::audio::mel::{MelConfig, MelError, MelExtractor};
use tandem_device::backend::{DeviceError, guarded};
use tandem_units::Seconds;

/// Where mel frames are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MelPlace {
    /// By the host's kernel, on the loading threads.
    Host,
    /// On the data device.
    Device,
}

/// What was measured, and what follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MelChoice {
    /// The decision.
    pub place: MelPlace,
    /// Host's time for a second of sound on one thread.
    pub host: Seconds,
    /// Threads of the host that would share the work.
    pub threads: usize,
    /// Device's time for a second of sound: samples there, frames back.
    pub device: Seconds,
    /// Largest difference of a band, relative to the loudest.
    pub difference: f32,
}

impl MelChoice {
    /// Decides from what was measured: the device must be right, and faster than all threads.
    pub(super) fn of(host: Seconds, threads: usize, device: Seconds, difference: f32) -> MelChoice {
        let faster = device.0 < host.0 / threads.max(1) as f64;
        // Written so that NaN is not right.
        let right = difference <= BAND_TOLERANCE;
        let place = if faster && right { MelPlace::Device } else { MelPlace::Host };
        MelChoice { place, host, threads, device, difference }
    }
}

/// Measures both on these sounds: one round to warm up, then the best of `rounds`.
pub fn choose_mel_place(
    config: &MelConfig,
    sounds: &[Sound<'_>],
    device: &Device,
    threads: usize,
    rounds: usize,
) -> Result<MelChoice, DeviceMelError> {
    let longest = sounds.iter().map(|sound| config.frames(sound.len()).0).max();
    let longest = longest.ok_or(MelError::Empty)?;
    let mut host = OnHost::new(config, sounds.len(), longest)?;
    let on_device = DeviceMel::new(config, device)?;
    let mut batch = SoundBatch::new(config);
    let (mut host_time, mut device_time) = (Duration::MAX, Duration::MAX);
    let mut difference = 0.0;
    for round in 0..=rounds.max(1) {
        let from = Instant::now();
        host.extract(sounds)?;
        let until = Instant::now();
        batch.reset(sounds.len(), longest);
        for sound in sounds {
            batch.push(*sound)?;
        }
        let made = on_device.extract(&batch)?;
        let values = guarded("reading mel frames", || made.try_into_vec_as::<f32>())?;
        let took = until.elapsed();
        let values = values.map_err(|error| DeviceError::Broke {
            doing: "reading mel frames",
            why: error.to_string(),
        })?;
        // The first round compiles and tunes, and is where values are compared.
        if round == 0 {
            difference = largest_difference(&host.values, &values);
        } else {
            host_time = host_time.min(until - from);
            device_time = device_time.min(took);
        }
    }
    let length: f64 = sounds.iter().map(|sound| config.rate.seconds(sound.len()).0).sum();
    let each = |time: Duration| Seconds(time.as_secs_f64() / length);
    Ok(MelChoice::of(each(host_time), threads, each(device_time), difference))
}

/// The host's kernel with a padded batch of its own.
struct OnHost {
    extractor: MelExtractor,
    row: usize,
    values: Vec<f32>,
}

impl OnHost {
    fn new(config: &MelConfig, rows: usize, frames: usize) -> Result<OnHost, MelError> {
        let row = frames * config.bands;
        let values = vec![config.floor.ln(); rows * row];
        Ok(OnHost { extractor: MelExtractor::new(config.clone())?, row, values })
    }

    fn extract(&mut self, sounds: &[Sound<'_>]) -> Result<(), MelError> {
        let bands = self.extractor.config().bands;
        for (row, sound) in self.values.chunks_exact_mut(self.row).zip(sounds) {
            let frames = self.extractor.frames(sound.len()).0;
            self.extractor.extract_into(*sound, &mut row[..frames * bands])?;
        }
        Ok(())
    }
}

/// Of the bands themselves, relative to the loudest; not a number where some value is none.
pub(super) fn largest_difference(host: &[f32], device: &[f32]) -> f32 {
    let loudest = host.iter().fold(0.0f32, |most, value| most.max(value.exp()));
    let differences = host.iter().zip(device).map(|(h, d)| (h.exp() - d.exp()).abs());
    // `max` would pass over what is no number.
    let worst = differences.fold(0.0f32, |worst, one| if one <= worst { worst } else { one });
    worst / loudest
}

impl fmt::Display for MelChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MelChoice { place, host, threads, device, difference } = self;
        let (name, reason) = match place {
            MelPlace::Device => ("made on the data device", "it is faster"),
            MelPlace::Host if *difference <= BAND_TOLERANCE => ("made on the host", "it is faster"),
            MelPlace::Host => ("made on the host", "the device's values are too far off"),
        };
        write!(
            f,
            "{name}, since {reason}: a second of sound takes {host} of one of \
             {threads} host threads, {device} on the device (values differ by {difference:.1e})"
        )
    }
}
