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
use crate::run::job::RunStart;
use crate::run::plan::total_steps;
use crate::run::state::{CorpusFacts, Resumed, RunState, corpus_facts};
use crate::run::step::TrainState;
use crate::train_settings::TrainSettings;
use std::fmt::Display;
use std::sync::Arc;
use tandem_data::batch::Position;
use tandem_device::placement::OpenDevices;
use tandem_model::Module;
use tandem_model::checkpoint::{Checkpoints, Loaded};
use tandem_model::network::voice::Voice;
use tandem_model::trained_voice::{VoiceDocument, read_document};
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
    let Some(Loaded { contents, path, passed_over, .. }) = checkpoints.load_newest()? else {
        let directory = checkpoints.directory().to_path_buf();
        return Err(TrainError::NothingToResume { directory });
    };
    let mut document = read_document(&contents, &path)?;
    compare_voice(&document, prepared, settings, contents.step)?;
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
    }
    let snapshots = AlignerSnapshots::new(settings.alignment, resumed.aligner_snapshots);
    let rebuilt = snapshots.rebuild_missing(step, &resumed.voice.encoder.valid());
    if let (Some(first), Some(last)) = (rebuilt.first(), rebuilt.last()) {
        notes.push(format!(
            "the checkpoint has no aligner snapshots of steps {first} to {last}; they are rebuilt from \
             the weights of step {step}, so alignments differ from those of an uninterrupted run"
        ));
    }
    notes.extend(compare_best(&mut state, checkpoints, step)?);
    let now = RunState::new(prepared, feed, settings, state.position);
    let start = RunStart {
        train_state: TrainState::new(resumed.voice, resumed.optimizer, step, settings, total),
        snapshots,
        state: RunState { corpus: now.corpus, settings: now.settings, ..state },
        document: Arc::new(resumed.document),
        speakers: Arc::new(resumed.speakers),
    };
    let damaged = passed_over.iter().map(ToString::to_string).collect();
    Ok(ResumedRun { start, damaged, notes })
}

/// `best.json` is the truth about the best checkpoint: it may be newer than the state of the checkpoint,
/// whose validation may have ended after it was written.
fn compare_best(
    state: &mut RunState,
    checkpoints: &Checkpoints,
    step: u64,
) -> Result<Option<String>, TrainError> {
    let best = checkpoints.best()?.filter(|best| best.path.is_dir() && best.step <= step);
    let note = match (&best, state.best) {
        (None, Some(_)) => {
            Some("there is no best checkpoint any more; the next validation sets a new one".into())
        }
        _ => None,
    };
    if best.is_none() || state.best.is_none() {
        state.since_best = 0;
    }
    state.best = best.map(|best| best.score);
    Ok(note)
}

/// What a saved voice must share with the corpus and the settings.
fn compare_voice(
    document: &VoiceDocument,
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
    if document.languages != prepared.cache.meta().languages {
        let now = prepared.cache.meta().languages.join(", ");
        return refused(
            format!("it was trained on {}, the corpus has {now}", document.languages.join(", ")),
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
    let (old, new) = (&before.optimizer, &now.optimizer);
    let (old_align, new_align) = (&before.alignment, &now.alignment);
    let precision = |settings: &TrainSettings| format!("{:?}", settings.precision).to_lowercase();
    let number = |value: f64| value.to_string();
    let count = |value: u64| value.to_string();
    let limit = |value: Option<u64>| value.map_or("unset".to_string(), |value| value.to_string());
    let rows = [
        ("--lr", number(old.lr), number(new.lr)),
        ("--final-lr", number(old.final_lr), number(new.final_lr)),
        ("--warmup-steps", count(old.warmup_steps), count(new.warmup_steps)),
        ("--weight-decay", number(old.weight_decay), number(new.weight_decay)),
        ("--clip", number(old.clip), number(new.clip)),
        ("train.optimizer.beta1", number(old.beta1), number(new.beta1)),
        ("train.optimizer.beta2", number(old.beta2), number(new.beta2)),
        ("train.optimizer.epsilon", number(old.epsilon), number(new.epsilon)),
        ("--ema-decay", number(before.ema_decay), number(now.ema_decay)),
        ("--mixed-precision", precision(before), precision(now)),
        ("--grad-accum", count(before.grad_accum as u64), count(now.grad_accum as u64)),
        ("--align-every", count(old_align.every), count(new_align.every)),
        ("--align-lag", count(old_align.lag), count(new_align.lag)),
        ("--align-flat-start", count(old_align.flat_start), count(new_align.flat_start)),
    ];
    let mut notes: Vec<String> = rows
        .into_iter()
        .filter(|(_, before, now)| before != now)
        .map(|(flag, before, now)| changed(flag, &before, &now, step))
        .collect();
    let length = |settings: &TrainSettings| {
        (limit(settings.max_steps), limit(settings.epochs.map(u64::from)))
    };
    if length(before) != length(now) {
        notes.push(format!(
            "`--max-steps` or `--epochs` changed: the learning rate follows a schedule of {total} steps \
             from step {step} on"
        ));
    }
    notes
}

fn changed(flag: &str, before: &dyn Display, now: &dyn Display, step: u64) -> String {
    format!("`{flag}` was {before} and is {now} from step {step} on")
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
            grad_accum: 2,
            optimizer: OptimizerSettings {
                lr: 0.5,
                final_lr: 0.5,
                warmup_steps: 7,
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
}
