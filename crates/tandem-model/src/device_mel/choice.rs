//! Host or device for mel frames: measured once, at the start, on utterances of the corpus.
//!
//! In: some utterances. Out: [`MelChoice`], which displays the measurement and the decision. Both ways
//! end with frames on the host, where they are aligned with the text. Values are compared too: a
//! device that computes with less than single precision, as some matrix units do, is not used.

use super::{BAND_TOLERANCE, DeviceMel, DeviceMelError, SoundBatch};
use burn::tensor::Device;
use serde::Serialize;
use std::fmt;
use std::time::{Duration, Instant};
use tandem_audio::Sound;
use tandem_audio::mel::{MelConfig, MelError, MelExtractor};
use tandem_device::backend::{DeviceError, guarded};
use tandem_units::Seconds;

/// Where mel frames are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MelPlace {
    /// On the CPU, by the loading threads.
    Host,
    /// On the data device.
    Device,
}

/// The measurement and the decision.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MelChoice {
    pub place: MelPlace,
    /// Time of one host thread for a second of audio.
    pub host: Seconds,
    /// Host threads that would share the work.
    pub threads: usize,
    /// Time of the device for a second of audio, including both copies.
    pub device: Seconds,
    /// Largest difference of a band, relative to the loudest.
    pub difference: f32,
}

impl MelChoice {
    /// The device must be accurate, and faster than all threads together.
    pub(super) fn of(host: Seconds, threads: usize, device: Seconds, difference: f32) -> MelChoice {
        let faster = device.0 < host.0 / threads.max(1) as f64;
        // False for NaN.
        let accurate = difference <= BAND_TOLERANCE;
        let place = if faster && accurate { MelPlace::Device } else { MelPlace::Host };
        MelChoice { place, host, threads, device, difference }
    }
}

/// Measures both on these utterances: one round as warm-up, then the best of `rounds`.
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
        let failed = |why: &str| DeviceError::broke("reading mel frames", why);
        let values = values.map_err(|error| failed(&error.to_string()))?;
        // The first round compiles and tunes kernels; values are compared in it.
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

/// The host kernel with a padded batch.
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

/// The largest difference before the logarithm, relative to the loudest band; NaN if a value is NaN.
pub(super) fn largest_difference(host: &[f32], device: &[f32]) -> f32 {
    let loudest = host.iter().fold(0.0f32, |most, value| most.max(value.exp()));
    let differences = host.iter().zip(device).map(|(h, d)| (h.exp() - d.exp()).abs());
    // `max` would ignore NaN.
    let worst = differences.fold(0.0f32, |worst, one| if one <= worst { worst } else { one });
    worst / loudest
}

impl fmt::Display for MelChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MelChoice { place, host, threads, device, difference } = self;
        let (name, reason) = match place {
            MelPlace::Device => ("computed on the data device", "it is faster"),
            MelPlace::Host if *difference <= BAND_TOLERANCE => {
                ("computed on the host", "it is faster")
            }
            MelPlace::Host => ("computed on the host", "the device is not accurate enough"),
        };
        write!(
            f,
            "{name}, since {reason}: a second of audio takes {host} of one of \
             {threads} host threads, {device} on the device (values differ by {difference:.1e})"
        )
    }
}
