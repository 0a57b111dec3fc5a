//! What a run starts from: nothing, or a checkpoint.
//!
//! In: a corpus, settings, devices. Out: [`RunStart`]. A checkpoint that does not fit what is
//! asked now is an error that says what changed, and what that means.

use crate::TrainError;
use crate::feed::align::snapshots::AlignerSnapshots;
use crate::feed::load::Load;
use crate::feed::mel_scale::measure_mel_scale;
use crate::feed::worker_mel::WorkerMel;
use crate::feed::{FeedSettings, Rows};
use crate::prepare::Prepared;
use crate::run::job::RunStart;
use crate::run::plan::total_steps;
use crate::run::state::corpus_facts;
use crate::run::state::{CorpusFacts, Resumed, RunState};
use crate::run::step::TrainState;
use crate::train_settings::TrainSettings;
use std::collections::BTreeMap;
use std::sync::Arc;
use tandem_data::audio::mel::MelKernel;
use tandem_data::batch::{HostBatch, Position};
use tandem_data::corpus::Split;
use tandem_device::placement::OpenDevices;
use tandem_model::Module;
use tandem_model::checkpoint::{Checkpoints, Loaded};
use tandem_model::network::size::VoiceConfig;
use tandem_model::network::voice::Voice;
use tandem_model::optimizer::Optimizer;
use tandem_model::trained_voice::{KnownSpeaker, VOICE_VERSION, VoiceDocument, read_document};
use tandem_pipeline::{CancelToken, Pool};
use tandem_telemetry::Recorder;
use tandem_units::Epoch;

/// Speakers of whom a stretch is kept with the voice.
const MOST_SPEAKERS: usize = 64;
/// Frames of such a stretch.
const STRETCH: usize = 256;

/// Whether a run may go on although its corpus or settings changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Changes {
    /// No: it would not be the same run.
    #[default]
    Refused,
    /// Yes, from the start of the next epoch.
    Allowed,
}

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
    let (document, speakers) = describe(prepared, feed, settings, cancel)?;
    let device = devices.model.clone().autodiff();
    let voice =
        Voice::computing(settings.precision.compute(), &document.config, settings.seed, &device);
    let encoder = voice.encoder.valid().fork(&devices.data);
    let encoders = BTreeMap::from([(0, Arc::new(encoder))]);
    let optimizer = Optimizer::new(&voice);
    let total = total_steps(prepared, feed, settings)?;
    Ok(RunStart {
        train_state: TrainState::new(voice, optimizer, 0, settings, total),
        snapshots: AlignerSnapshots::new(settings.alignment, encoders),
        state: RunState {
            position: Position::start(feed.batch.seed),
            next_batch: 0,
            corpus: corpus_facts(prepared, feed),
            best: None,
            since_best: 0,
            validation: None,
        },
        document: Arc::new(document),
        speakers: Arc::new(speakers),
    })
}

/// A run taken up again, and what was passed over to find it.
pub struct ResumedRun {
    /// The run.
    pub start: RunStart,
    /// Newer checkpoints that are broken, each in a sentence.
    pub passed_over: Vec<String>,
    /// What is not as it was, where that was allowed.
    pub changes: Option<String>,
}

/// Takes up the newest whole checkpoint of a directory.
pub fn resume(
    prepared: &Arc<Prepared>,
    feed: &FeedSettings,
    settings: &TrainSettings,
    devices: &OpenDevices,
    checkpoints: &Checkpoints,
    changes: Changes,
) -> Result<ResumedRun, TrainError> {
    let Some(Loaded { contents, path, passed_over, .. }) = checkpoints.load_newest()? else {
        let directory = checkpoints.directory().to_path_buf();
        return Err(TrainError::NothingToResume { directory });
    };
    let mut document = read_document(&contents, &path)?;
    compare_voice(&document, prepared, settings, contents.step)?;
    // What it goes on reading with; words that are not in the corpus may have come or gone.
    document.lexicon = prepared.front_end.lexicon().map(str::to_owned);
    document.text.lexicon = prepared.settings.text.lexicon.clone();
    let device = devices.model.clone().autodiff();
    let fresh =
        Voice::computing(settings.precision.compute(), &document.config, settings.seed, &device);
    let resumed = Resumed::read(contents, document, fresh, &devices.data)?;
    let now = corpus_facts(prepared, feed);
    let mut state = resumed.state;
    let changed = difference(&state.corpus, &now);
    if let Some(what) = &changed {
        if changes == Changes::Refused {
            return Err(TrainError::Changed { step: resumed.step, what: what.clone() });
        }
        let epoch = Epoch(state.position.epoch.0 + 1);
        state.position = Position { seed: feed.batch.seed, epoch, batch: 0 };
        state.corpus = now;
    }
    let total = total_steps(prepared, feed, settings)?;
    let train_state =
        TrainState::new(resumed.voice, resumed.optimizer, resumed.step, settings, total);
    let start = RunStart {
        train_state,
        snapshots: AlignerSnapshots::new(settings.alignment, resumed.aligner_snapshots),
        state,
        document: Arc::new(resumed.document),
        speakers: Arc::new(resumed.speakers),
    };
    let passed_over = passed_over.iter().map(ToString::to_string).collect();
    Ok(ResumedRun { start, passed_over, changes: changed })
}

/// What the voice must share with the corpus and the settings to be trained on.
fn compare_voice(
    document: &VoiceDocument,
    prepared: &Prepared,
    settings: &TrainSettings,
    step: u64,
) -> Result<(), TrainError> {
    let changed = |what: String| Err(TrainError::Changed { step, what });
    if document.size != settings.model_size {
        let (found, asked) = (document.size.name(), settings.model_size.name());
        return changed(format!("its voice is of size {found}, `--model-size {asked}` is asked"));
    }
    if document.mel != prepared.settings.mel {
        return changed("mel frames are made with other settings now".into());
    }
    if document.languages != prepared.cache.meta().languages {
        return changed(format!(
            "it knows the languages {}, the corpus has {}",
            document.languages.join(", "),
            prepared.cache.meta().languages.join(", ")
        ));
    }
    Ok(())
}

fn difference(before: &CorpusFacts, now: &CorpusFacts) -> Option<String> {
    if before.rows != now.rows {
        return Some(format!(
            "the corpus had {} rows to learn from and has {} now, so the order of batches is \
             another one",
            before.rows, now.rows
        ));
    }
    if before.fingerprint != now.fingerprint {
        return Some(
            "texts, lengths or speakers of the corpus changed, so its batches are others".into(),
        );
    }
    let same = before.batches == now.batches;
    (!same).then(|| {
        "batch size, frame budget or seed changed, so the order of batches is another one".into()
    })
}

/// What the voice is, and a stretch of each speaker.
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
    let (speakers, mut stretches) = stretches(prepared);
    stretches.iter_mut().for_each(|mel| *mel = scale.normalised(mel));
    let document = VoiceDocument {
        version: VOICE_VERSION,
        size: settings.model_size,
        config,
        scale,
        mel: data.mel.clone(),
        text: data.text.clone(),
        lexicon: prepared.front_end.lexicon().map(str::to_owned),
        symbols: table.version(),
        languages: meta.languages.clone(),
        speakers,
    };
    Ok((document, stretches))
}

/// The beginning of the longest utterance of each speaker. One that cannot be read is left out.
fn stretches(prepared: &Arc<Prepared>) -> (Vec<KnownSpeaker>, Vec<Vec<f32>>) {
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
            frames.truncate(STRETCH * bands);
            let name = meta.speakers.get(speaker as usize).cloned().unwrap_or_default();
            let language = meta.languages.get(language as usize).cloned().unwrap_or_default();
            known.push(KnownSpeaker { name, language });
            found.push(frames);
        }
    }
    (known, found)
}
