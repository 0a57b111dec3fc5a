//! A run continued from a checkpoint.
//!
//! In: the newest whole checkpoint of a directory, and the settings and corpus of now. Out:
//! [`ResumedRun`]. Every setting that changes the arithmetic is compared. Each difference is one of three
//! things: the run continues with a warning, something missing is rebuilt with a warning, or the run is
//! refused with a hint. Next: [`crate::run::trainer`].

use crate::TrainError;
use crate::feed::FeedSettings;
use crate::feed::align::snapshots::AlignerSnapshots;
use crate::prepare::Prepared;
use crate::run::fine_tune::TakenOver;
use crate::run::job::RunStart;
use crate::run::plan::total_steps;
use crate::run::state::{CorpusFacts, Resumed, RunState, STATE, corpus_facts};
use crate::run::step::TrainState;
use crate::train_settings::TrainSettings;
use std::path::Path;
use std::sync::Arc;
use tandem_data::batch::Position;
use tandem_device::placement::OpenDevices;
use tandem_model::Module;
use tandem_model::checkpoint::{Checkpoints, Loaded, Parts, load_newest};
use tandem_model::network::voice::Voice;
use tandem_model::trained_voice::{VoiceDocument, read_document};
use tandem_settings::{Difference, OnResume, changes};
use tandem_units::Epoch;

/// Whether a run may continue although its corpus or batch plan changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Changes {
    /// No: it would not be the same run.
    #[default]
    Refused,
    /// Yes, from the start of the next epoch.
    Allowed,
}

/// A run to continue, and what the user should know about it.
pub struct ResumedRun {
    pub start: RunStart,
    /// Newer checkpoints that are damaged, each in a sentence.
    pub damaged: Vec<String>,
    /// Differences to the run that wrote the checkpoint, each in a sentence.
    pub notes: Vec<String>,
}

/// Resumes the newest whole checkpoint of a directory.
pub fn resume(
    prepared: &Arc<Prepared>,
    feed: &FeedSettings,
    settings: &TrainSettings,
    devices: &OpenDevices,
    checkpoints: &Checkpoints,
    changes: Changes,
) -> Result<ResumedRun, TrainError> {
    let Some(loaded) = checkpoints.load_newest()? else {
        let directory = checkpoints.directory().to_path_buf();
        return Err(TrainError::NothingToResume { directory });
    };
    resume_from(loaded, prepared, feed, settings, devices, changes)
}

/// The same on a rank that writes no checkpoints: it reads the directory of rank 0.
pub fn resume_without_lock(
    prepared: &Arc<Prepared>,
    feed: &FeedSettings,
    settings: &TrainSettings,
    devices: &OpenDevices,
    directory: &Path,
    changes: Changes,
) -> Result<ResumedRun, TrainError> {
    let Some(loaded) = load_newest(directory, Parts::All)? else {
        return Err(TrainError::NothingToResume { directory: directory.to_path_buf() });
    };
    resume_from(loaded, prepared, feed, settings, devices, changes)
}

fn resume_from(
    loaded: Loaded,
    prepared: &Arc<Prepared>,
    feed: &FeedSettings,
    settings: &TrainSettings,
    devices: &OpenDevices,
    changes: Changes,
) -> Result<ResumedRun, TrainError> {
    let Loaded { contents, path, passed_over, .. } = loaded;
    let mut document = read_document(&contents, &path)?;
    let saved: RunState = contents.document(STATE)?;
    compare_source(saved.taken_over.as_ref(), settings, contents.step)?;
    compare_voice(&document, &saved, prepared, settings, contents.step)?;
    // Texts are read with the lexicon of now: words that the corpus does not use may differ.
    document.lexicon = prepared.front_end.lexicon().map(str::to_owned);
    document.text.lexicon = prepared.settings.text.lexicon.clone();
    let device = devices.model.clone().autodiff();
    let initial =
        Voice::with_compute(settings.precision.compute(), &document.config, settings.seed, &device);
    let resumed = Resumed::read(contents, document, initial)?;
    let (step, mut state) = (resumed.step, resumed.state);
    let mut notes = Vec::new();
    if let Some(what) = corpus_difference(&state.corpus, &corpus_facts(prepared, feed)) {
        if changes == Changes::Refused {
            return Err(TrainError::Changed { step, what });
        }
        let epoch = Epoch(state.position.epoch.0 + 1);
        state.position = Position { seed: feed.batch.seed, epoch, batch: 0 };
        notes.push(format!("{what}; the run continues at the start of epoch {}", epoch.0 + 1));
    }
    let total = total_steps(prepared, feed, settings)?;
    if let Some(before) = &state.settings {
        notes.extend(setting_changes(before, settings, step, total));
        let now = (feed.shard.ranks, settings.grad_accum);
        notes.extend(effective_batch_change((state.ranks, before.grad_accum), now, step));
    }
    let snapshots = AlignerSnapshots::new(settings.alignment, resumed.aligner_snapshots);
    let rebuilt = snapshots.rebuild_missing(step, &resumed.voice.encoder.valid());
    if let (Some(first), Some(last)) = (rebuilt.first(), rebuilt.last()) {
        notes.push(format!(
            "the checkpoint has no aligner snapshots of steps {first} to {last}; they are rebuilt from \
             the weights of step {step}, so alignments differ from those of an uninterrupted run"
        ));
    }
    let now = RunState::new(prepared, feed, settings, state.position);
    let start = RunStart {
        train_state: TrainState::new(resumed.voice, resumed.optimizer, step, settings, total),
        snapshots,
        state: RunState { corpus: now.corpus, settings: now.settings, ranks: now.ranks, ..state },
        document: Arc::new(resumed.document),
        speakers: Arc::new(resumed.speakers),
    };
    let damaged = passed_over.iter().map(ToString::to_string).collect();
    Ok(ResumedRun { start, damaged, notes })
}

/// A run continues from its own checkpoint, never from the voice it started from. `--from` still belongs to its settings:
/// it decides on defaults, such as the learning rate.
fn compare_source(
    before: Option<&TakenOver>,
    settings: &TrainSettings,
    step: u64,
) -> Result<(), TrainError> {
    let new_run = "start a new run in another `--checkpoint-dir`, without `--resume`";
    let (what, way_out) = match (before, &settings.from_voice) {
        (None, None) => return Ok(()),
        (Some(before), Some(typed)) if before.is_from(typed) => return Ok(()),
        (None, Some(typed)) => (
            format!("it was not fine-tuned from `{}`", typed.display()),
            format!("leave out `--from` to continue it; to fine-tune that voice, {new_run}"),
        ),
        (Some(before), None) => (
            format!("it was fine-tuned from `{}`, and `--from` is not set", before.from.display()),
            format!("type `--from {}`", before.from.display()),
        ),
        (Some(before), Some(typed)) => (
            format!(
                "it was fine-tuned from `{}`, not from `{}`",
                before.from.display(),
                typed.display()
            ),
            format!("type `--from {}`, or {new_run}", before.from.display()),
        ),
    };
    Err(TrainError::Incompatible { step, what, way_out })
}

/// What a saved voice must share with the corpus and the settings.
fn compare_voice(
    document: &VoiceDocument,
    state: &RunState,
    prepared: &Prepared,
    settings: &TrainSettings,
    step: u64,
) -> Result<(), TrainError> {
    let refused = |what: String, way_out: String| {
        let or = "or start a new run in another `--checkpoint-dir`";
        Err(TrainError::Incompatible { step, what, way_out: format!("{way_out}, {or}") })
    };
    if document.size != settings.model_size {
        let (saved, now) = (document.size.name(), settings.model_size.name());
        return refused(
            format!("its voice is of size {saved}, `--model-size {now}` is set now"),
            format!("type `--model-size {saved}`"),
        );
    }
    if document.mel != prepared.settings.mel {
        return refused(
            "it was trained on mel frames with other settings".into(),
            "use the mel settings of its `config.toml`".into(),
        );
    }
    // The saved voice keeps its way of reading: texts of the corpus must not be read in another one.
    let (saved, now) = (document.text.pronunciation, prepared.settings.text.pronunciation);
    let found = &prepared.summary.languages;
    let mut of_corpus =
        prepared.front_end.sources().filter(|(one, _)| found.contains_key(one.tag()));
    if let Some((language, _)) =
        of_corpus.find(|(one, source)| saved.source(*one).ok() != Some(*source))
    {
        return refused(
            format!(
                "its voice reads {language} with `--pronunciation {saved}`, `{now}` is set now"
            ),
            format!("type `--pronunciation {saved}`"),
        );
    }
    // A fine-tuned voice keeps languages of its source after those of its corpus.
    let kept = state.taken_over.as_ref().map_or(0, |taken| taken.kept_languages.len());
    let trained_on = &document.languages[..document.languages.len().saturating_sub(kept)];
    if *trained_on != prepared.cache.meta().languages {
        let now = prepared.cache.meta().languages.join(", ");
        return refused(
            format!("it was trained on {}, the corpus has {now}", trained_on.join(", ")),
            "resume with the corpus of its languages".into(),
        );
    }
    Ok(())
}

fn corpus_difference(before: &CorpusFacts, now: &CorpusFacts) -> Option<String> {
    if before.rows != now.rows {
        return Some(format!(
            "the corpus had {} training rows and has {} now, so the order of batches differs",
            before.rows, now.rows
        ));
    }
    if before.fingerprint != now.fingerprint {
        return Some(
            "texts, lengths or speakers of the corpus changed, so its batches differ".into(),
        );
    }
    (before.batches != now.batches).then(|| {
        "batch size, frame budget, seed or fixed shapes changed, so the batches differ".into()
    })
}

/// Settings that change the arithmetic from this step on. The run continues with the new ones.
fn setting_changes(
    before: &TrainSettings,
    now: &TrainSettings,
    step: u64,
    total: u64,
) -> Vec<String> {
    let said = |Difference { setting, before, now }| {
        format!("`{}` was {before} and is {now} from step {step} on", setting.shown_name())
    };
    let mut notes: Vec<String> =
        changes(before, now, OnResume::Warn).into_iter().map(said).collect();
    if !changes(before, now, OnResume::Reschedule).is_empty() {
        notes.push(format!(
            "`--max-steps` or `--epochs` changed: the learning rate follows a schedule of {total} steps \
             from step {step} on"
        ));
    }
    notes
}

/// What another number of ranks or another accumulation changes. Each is ranks and batches per rank.
fn effective_batch_change(
    before: (usize, usize),
    now: (usize, usize),
    step: u64,
) -> Option<String> {
    if before == now {
        return None;
    }
    let (old, new) = (before.0 * before.1, now.0 * now.1);
    let described = |(ranks, accum): (usize, usize)| {
        let ranks = if ranks == 1 { "1 rank".into() } else { format!("{ranks} ranks") };
        format!("{ranks} with `--grad-accum {accum}`")
    };
    let (from, to) = (described(before), described(now));
    if old == new {
        return Some(format!(
            "{from} became {to}: a step takes {new} batches as before, so only the order of \
             additions differs"
        ));
    }
    let way_out = match old.is_multiple_of(now.0) {
        true => format!("`--grad-accum {}` keeps it equal", old / now.0),
        false => format!("no `--grad-accum` keeps it equal with {} ranks", now.0),
    };
    Some(format!(
        "{from} became {to}: a step takes {new} batches instead of {old} from step {step} on; {way_out}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train_settings::{AlignmentSettings, OptimizerSettings, Precision};

    #[test]
    fn every_setting_that_changes_the_arithmetic_is_named() {
        let before = TrainSettings::default();
        let now = TrainSettings {
            max_steps: Some(9),
            optimizer: OptimizerSettings {
                lr: 0.5,
                final_lr: 0.5,
                warmup_steps: 7,
                hold_steps: 8,
                weight_decay: 0.5,
                beta1: 0.5,
                beta2: 0.5,
                epsilon: 0.5,
                clip: 0.5,
            },
            alignment: AlignmentSettings { every: 3, lag: 4, flat_start: 5 },
            ema_decay: 0.5,
            precision: Precision::Bf16,
            ..TrainSettings::default()
        };
        let notes = setting_changes(&before, &now, 40, 100);
        assert_eq!(notes.len(), 15, "{notes:#?}");
        assert_eq!(notes[0], "`--lr` was 0.001 and is 0.5 from step 40 on");
        assert!(setting_changes(&before, &before, 40, 100).is_empty());
        // Not named: what changes no weight.
        let other = TrainSettings { keep: 9, validate_every: 9, ..TrainSettings::default() };
        assert!(setting_changes(&before, &other, 40, 100).is_empty());
    }

    #[test]
    fn another_effective_batch_is_named_with_the_flag_that_keeps_it() {
        let said = |before, now| effective_batch_change(before, now, 40).unwrap_or_default();
        assert_eq!(said((2, 1), (2, 1)), "");
        assert_eq!(
            said((1, 1), (1, 2)),
            "1 rank with `--grad-accum 1` became 1 rank with `--grad-accum 2`: a step takes 2 batches \
             instead of 1 from step 40 on; `--grad-accum 1` keeps it equal"
        );
        assert_eq!(
            said((4, 1), (2, 1)),
            "4 ranks with `--grad-accum 1` became 2 ranks with `--grad-accum 1`: a step takes 2 batches \
             instead of 4 from step 40 on; `--grad-accum 2` keeps it equal"
        );
        assert!(
            said((2, 1), (1, 2))
                .ends_with("2 batches as before, so only the order of additions differs")
        );
        assert!(said((2, 1), (3, 1)).ends_with("no `--grad-accum` keeps it equal with 3 ranks"));
    }
}
