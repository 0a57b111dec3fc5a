//! A new run: a voice with initial weights.
//!
//! In: a corpus, settings, devices. Out: [`RunStart`]. Refuses a directory that holds a run already.
//! Next: [`crate::run::trainer`].

use crate::TrainError;
use crate::feed::align::snapshots::AlignerSnapshots;
use crate::feed::load::Load;
use crate::feed::mel_scale::measure_mel_scale;
use crate::feed::worker_mel::WorkerMel;
use crate::feed::{FeedSettings, Rows};
use crate::prepare::Prepared;
use crate::run::job::RunStart;
use crate::run::plan::total_steps;
use crate::run::state::RunState;
use crate::run::step::TrainState;
use crate::train_settings::TrainSettings;
use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_audio::mel::MelKernel;
use tandem_data::batch::{HostBatch, Position};
use tandem_data::corpus::Split;
use tandem_device::placement::OpenDevices;
use tandem_model::Module;
use tandem_model::checkpoint::Checkpoints;
use tandem_model::metrics::{MelFrames, level};
use tandem_model::network::size::VoiceConfig;
use tandem_model::network::voice::Voice;
use tandem_model::optimizer::Optimizer;
use tandem_model::trained_voice::{KnownSpeaker, VOICE_VERSION, VoiceDocument};
use tandem_pipeline::{CancelToken, Pool};
use tandem_telemetry::Recorder;

/// Speakers of whom a reference segment is saved with the voice.
pub(crate) const MOST_SPEAKERS: usize = 64;
/// Frames of such a segment.
const SEGMENT_FRAMES: usize = 256;
/// Utterances of a speaker whose level is measured, evenly spread over all.
const ROWS_OF_LEVEL: usize = 16;

/// A new run. The directory must not hold one already.
pub fn begin(
    prepared: &Arc<Prepared>,
    feed: &FeedSettings,
    settings: &TrainSettings,
    devices: &OpenDevices,
    checkpoints: &Checkpoints,
    cancel: &CancelToken,
) -> Result<RunStart, TrainError> {
    if let Some(found) = checkpoints.load_newest()? {
        let directory = checkpoints.directory().to_path_buf();
        return Err(TrainError::RunExists { directory, step: found.contents.step });
    }
    begin_without_checkpoints(prepared, feed, settings, devices, cancel)
}

/// The same on a rank that writes no checkpoints: rank 0 checks the directory.
pub fn begin_without_checkpoints(
    prepared: &Arc<Prepared>,
    feed: &FeedSettings,
    settings: &TrainSettings,
    devices: &OpenDevices,
    cancel: &CancelToken,
) -> Result<RunStart, TrainError> {
    let (document, speakers) = describe(prepared, feed, settings, cancel)?;
    let device = devices.model.clone().autodiff();
    let voice =
        Voice::with_compute(settings.precision.compute(), &document.config, settings.seed, &device);
    let first = BTreeMap::from([(0, voice.encoder.valid())]);
    let optimizer = Optimizer::new(&voice);
    let total = total_steps(prepared, feed, settings)?;
    Ok(RunStart {
        train_state: TrainState::new(voice, optimizer, 0, settings, total),
        snapshots: AlignerSnapshots::new(settings.alignment, first),
        state: RunState::new(prepared, feed, settings, Position::start(feed.batch.seed)),
        document: Arc::new(document),
        speakers: Arc::new(speakers),
    })
}

/// The description of the voice, and a reference segment of each speaker.
fn describe(
    prepared: &Arc<Prepared>,
    feed: &FeedSettings,
    settings: &TrainSettings,
    cancel: &CancelToken,
) -> Result<(VoiceDocument, Vec<Vec<f32>>), TrainError> {
    let (meta, data) = (prepared.cache.meta(), &prepared.settings);
    let scale = measure_mel_scale(prepared, feed, cancel)?;
    let table = prepared.front_end.table();
    let config =
        VoiceConfig::of(settings.model_size, table.len(), meta.languages.len(), data.mel.bands);
    let (speakers, mut segments) = reference_segments(prepared);
    segments.iter_mut().for_each(|mel| *mel = scale.normalised(mel));
    let document = VoiceDocument {
        version: VOICE_VERSION,
        size: settings.model_size,
        config,
        scale,
        mel: data.mel.clone(),
        audio: data.audio,
        text: data.text.clone(),
        lexicon: prepared.front_end.lexicon().map(str::to_owned),
        symbols: table.version(),
        languages: meta.languages.clone(),
        speakers,
    };
    Ok((document, segments))
}

/// The beginning of the longest utterance of each speaker, and the level of some of its utterances. A speaker whose
/// recording cannot be read is left out.
pub(crate) fn reference_segments(prepared: &Arc<Prepared>) -> (Vec<KnownSpeaker>, Vec<Vec<f32>>) {
    let rows = Arc::new(Rows::of(prepared, Split::Train));
    let mel = prepared.settings.mel.clone();
    let bands = mel.bands;
    let mut kernel = WorkerMel::new(mel.clone(), MelKernel::best_for(&mel));
    let pool = Pool::new(1, move || HostBatch::new(&mel));
    let mut load = Load::new(prepared.clone(), rows.clone(), pool, Recorder::off());
    let meta = prepared.cache.meta();
    let (mut known, mut found) = (Vec::new(), Vec::new());
    for (&speaker, utterances) in rows.by_speaker.iter().take(MOST_SPEAKERS) {
        let longest = utterances.iter().max_by_key(|&&row| rows.frames[row as usize]);
        let Some(&row) = longest else { continue };
        let record = prepared.cache.row(rows.cache_row[row as usize] as usize);
        let Some(language) = record.map(|row| row.record.language) else { continue };
        if let Ok(mut frames) = load.mel_of(row, &mut kernel) {
            let some = utterances.iter().step_by(utterances.len().div_ceil(ROWS_OF_LEVEL));
            let readable = some.filter_map(|&row| load.mel_of(row, &mut kernel).ok());
            let level = mean_level(readable, bands);
            frames.truncate(SEGMENT_FRAMES * bands);
            let name = meta.speakers.get(speaker as usize).cloned().unwrap_or_default();
            let language = meta.languages.get(language as usize).cloned().unwrap_or_default();
            known.push(KnownSpeaker { name, language, level });
            found.push(frames);
        }
    }
    (known, found)
}

/// The mean level of utterances, in dB.
fn mean_level(utterances: impl Iterator<Item = Vec<f32>>, bands: usize) -> Option<f32> {
    let of_one = |mel: Vec<f32>| MelFrames::new(&mel, bands).map(level).ok();
    let levels: Vec<f64> = utterances.filter_map(of_one).collect();
    (!levels.is_empty()).then(|| (levels.iter().sum::<f64>() / levels.len() as f64) as f32)
}
