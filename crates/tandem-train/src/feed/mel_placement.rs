//! Where mel frames are computed in a run: as requested, or as measured once at its start.
//!
//! In: the request, the devices, a few recordings of the corpus. Out: [`MelDecision`], which prints
//! as a line of the banner. With one device, the host computes them unless the device is requested:
//! the CPU is the host itself, and a GPU that trains has no time to spare.

use crate::TrainError;
use crate::feed::load::{Clip, Load};
use crate::feed::schedule::Tickets;
use crate::feed::{FeedSettings, Rows};
use crate::prepare::Prepared;
use std::fmt;
use std::sync::Arc;
use tandem_audio::Sound;
use tandem_data::batch::{HostBatch, Position};
use tandem_device::backend::compiles_kernels;
use tandem_device::placement::MelOn;
use tandem_device::placement::OpenDevices;
use tandem_model::device_mel::{MelChoice, MelPlace, choose_mel_place};
use tandem_pipeline::{Pool, Stage};
use tandem_telemetry::Recorder;
use tandem_units::Epoch;

/// Recordings to measure with: about one batch.
const SOUNDS: usize = 16;
/// Batches to load them from, at most.
const BATCHES: usize = 4;
/// Rounds; the fastest counts.
const ROUNDS: usize = 3;

/// Where mel frames are computed, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MelDecision {
    /// On the host: the CPU is the only device.
    OnlyHost,
    /// On the host: the one GPU trains.
    GpuTrains,
    /// Nowhere: the frames are cached.
    Cached,
    /// As requested.
    Requested(MelPlace),
    /// Where it is faster.
    Measured(MelChoice),
}

impl MelDecision {
    pub fn place(&self) -> MelPlace {
        match self {
            MelDecision::Requested(place) => *place,
            MelDecision::Measured(choice) => choice.place,
            _ => MelPlace::Host,
        }
    }
}

/// Fails where the request does not fit the devices, before anything is prepared.
pub fn check_mel_place(requested: MelOn, devices: &OpenDevices) -> Result<(), TrainError> {
    match requested {
        MelOn::Device if !compiles_kernels(&devices.data) => Err(TrainError::NoMelDevice),
        _ => Ok(()),
    }
}

/// Reads a few recordings and measures, where both the host and the device are possible.
pub fn decide_mel_place(
    requested: MelOn,
    prepared: &Arc<Prepared>,
    feed: &FeedSettings,
    devices: &OpenDevices,
) -> Result<MelDecision, TrainError> {
    check_mel_place(requested, devices)?;
    let is_gpu = compiles_kernels(&devices.data);
    match requested {
        MelOn::Device => Ok(MelDecision::Requested(MelPlace::Device)),
        MelOn::Host => Ok(MelDecision::Requested(MelPlace::Host)),
        MelOn::Auto if !is_gpu => Ok(MelDecision::OnlyHost),
        MelOn::Auto if !devices.are_apart() => Ok(MelDecision::GpuTrains),
        MelOn::Auto => measure(prepared, feed, devices),
    }
}

fn measure(
    prepared: &Arc<Prepared>,
    feed: &FeedSettings,
    devices: &OpenDevices,
) -> Result<MelDecision, TrainError> {
    let clips = some_sounds(prepared, feed)?;
    if clips.is_empty() {
        return Ok(MelDecision::Cached);
    }
    let sounds: Vec<Sound<'_>> = clips.iter().map(Clip::as_sound).collect();
    let (mel, threads) = (&prepared.settings.mel, feed.workers.max(1));
    let choice = choose_mel_place(mel, &sounds, &devices.data, threads, ROUNDS)?;
    Ok(MelDecision::Measured(choice))
}

/// Recordings of the first batches whose frames are not cached.
fn some_sounds(prepared: &Arc<Prepared>, feed: &FeedSettings) -> Result<Vec<Clip>, TrainError> {
    let rows = Arc::new(Rows::of(prepared, feed.split));
    let batches = Arc::new(feed.batches(&rows)?);
    let mel = prepared.settings.mel.clone();
    let pool = Pool::new(1, move || HostBatch::new(&mel));
    let mut load = Load::new(prepared.clone(), rows, pool, Recorder::off());
    let tickets = Tickets::new(batches, Position::start(feed.batch.seed), Some(Epoch(1)));
    let mut clips = Vec::new();
    for planned in tickets.take(BATCHES) {
        let mut loaded = Vec::new();
        // An unreadable batch is reported when the run loads it.
        let _ = load.step(planned, &mut loaded);
        clips.extend(loaded.into_iter().flat_map(|loaded| loaded.sounds).flatten());
        if clips.len() >= SOUNDS {
            break;
        }
    }
    clips.truncate(SOUNDS);
    Ok(clips)
}

impl fmt::Display for MelDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            MelDecision::OnlyHost => "on the host (the CPU is the only device)",
            MelDecision::GpuTrains => "on the host (the one GPU trains; `--mel-on device` uses it)",
            MelDecision::Cached => "from the cache",
            MelDecision::Requested(MelPlace::Host) => "on the host (`--mel-on host`)",
            MelDecision::Requested(MelPlace::Device) => "on the data device (`--mel-on device`)",
            MelDecision::Measured(choice) => return write!(f, "mel frames: {choice}"),
        };
        write!(f, "mel frames: {text}")
    }
}
