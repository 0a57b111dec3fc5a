//! How good a voice is: it synthesizes held-out texts, which are compared with the recordings.
//!
//! In: a trained voice and a corpus. Out: [`Evaluation`]: the scores of every utterance, their means
//! by language and speaker, and advice. The reference of the voice is another utterance of the same
//! speaker, never the recording it is compared with. Writes nothing, starts no thread.

mod error;
pub mod in_words; // the result in one sentence
mod scorer;
mod word_timings;

pub use error::EvaluateError;
pub use word_timings::{TimingError, WordTimings};

use scorer::Scorer;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;
use tandem_data::corpus::{Corpus, Split, Utterance};
use tandem_model::metrics::alignment::Finding;
use tandem_model::metrics::{HealthLimits, Scores, Tally};
use tandem_model::synthesis::mel::SamplingOptions;
use tandem_model::synthesis::text::Synthesizer;
use tandem_pipeline::CancelToken;
use tandem_units::Seconds;

/// A larger duration error, as a share, is a finding.
const MAX_DURATION_BIAS: f64 = 0.15;
/// A larger pitch error, in semitones, is a finding.
const MAX_PITCH_ERROR: f64 = 3.0;

/// Which rows are evaluated, and how the voice speaks.
#[derive(Clone, Debug)]
pub struct EvaluateOptions {
    /// Held-out rows or training rows.
    pub split: Split,
    /// Maximum number of rows, evenly spread over all.
    pub limit: Option<usize>,
    pub sampling: SamplingOptions,
}

impl Default for EvaluateOptions {
    fn default() -> EvaluateOptions {
        EvaluateOptions { split: Split::Eval, limit: None, sampling: SamplingOptions::default() }
    }
}

/// The result of an evaluation.
#[derive(Clone, Debug, Serialize)]
pub struct Evaluation {
    pub checkpoint: PathBuf,
    /// Training steps of the checkpoint.
    pub step: u64,
    pub corpus: PathBuf,
    pub split: Split,
    /// Means over all utterances.
    pub all: Tally,
    /// Errors of the word start times when the voice aligns texts to the recordings; none where the
    /// corpus has no word timings.
    pub timing: Option<TimingError>,
    /// Means by language.
    pub languages: BTreeMap<String, Tally>,
    /// Means by speaker; empty where the corpus names none.
    pub speakers: BTreeMap<String, Tally>,
    /// In the order of the corpus.
    pub utterances: Vec<ScoredRow>,
    pub skipped: Vec<SkippedRow>,
    /// Values outside their limits, with advice.
    pub findings: Vec<Finding>,
    /// Length of the synthesized speech.
    pub spoken: Seconds,
    pub took: Seconds,
}

/// The scores of one utterance.
#[derive(Clone, Debug, Serialize)]
pub struct ScoredRow {
    pub id: String,
    pub language: String,
    /// None where the corpus names no speaker.
    pub speaker: Option<String>,
    /// How suspicious its transcript is, from 0 up.
    pub suspicion: f64,
    #[serde(flatten)]
    pub scores: Scores,
}

/// A row that could not be scored.
#[derive(Clone, Debug, Serialize)]
pub struct SkippedRow {
    pub id: String,
    pub why: String,
}

/// Evaluates a voice. `progress` receives the number of finished rows and of all rows.
pub fn evaluate(
    synthesizer: &mut Synthesizer,
    corpus: &Corpus,
    options: &EvaluateOptions,
    progress: &mut dyn FnMut(usize, usize),
    cancel: &CancelToken,
) -> Result<Evaluation, EvaluateError> {
    let started = Instant::now();
    let rows: Vec<&Utterance> = corpus.of(options.split).collect();
    if rows.is_empty() {
        let (corpus, split) = (corpus.root.clone(), options.split);
        return Err(EvaluateError::NoRows { corpus, split });
    }
    let rows = spread(&rows, options.limit.unwrap_or(rows.len()));
    let mut scorer = Scorer::new(synthesizer, corpus, &options.sampling, cancel)?;
    let (mut utterances, mut skipped) = (Vec::new(), Vec::new());
    for (number, row) in rows.iter().enumerate() {
        progress(number, rows.len());
        if cancel.is_cancelled() {
            return Err(EvaluateError::cancelled());
        }
        match scorer.score(row) {
            Ok(scored) => utterances.push(scored),
            Err(error) if error.is_row_error() => {
                skipped.push(SkippedRow { id: row.id.clone(), why: error.with_causes() });
            }
            Err(error) => return Err(error),
        }
    }
    progress(rows.len(), rows.len());
    let (spoken, timing) = (scorer.spoken(), scorer.timing());
    let scores: Vec<Scores> = utterances.iter().map(|scored| scored.scores).collect();
    let Some(all) = Tally::of(&scores) else {
        let first = skipped.first().map_or(String::new(), |row| row.why.clone());
        return Err(EvaluateError::NothingScored { rows: rows.len(), first });
    };
    let trained = synthesizer.trained();
    Ok(Evaluation {
        checkpoint: trained.path.clone(),
        step: trained.step,
        corpus: corpus.root.clone(),
        split: options.split,
        all,
        timing,
        languages: tallies(&utterances, |scored| Some(scored.language.clone())),
        speakers: tallies(&utterances, |scored| scored.speaker.clone()),
        findings: findings(&all),
        utterances,
        skipped,
        spoken,
        took: Seconds(started.elapsed().as_secs_f64()),
    })
}

/// At most `most` items, evenly spread over the list.
fn spread<'a, T>(all: &[&'a T], most: usize) -> Vec<&'a T> {
    let count = most.min(all.len());
    (0..count).map(|index| all[index * all.len() / count]).collect()
}

fn tallies(
    utterances: &[ScoredRow],
    group: impl Fn(&ScoredRow) -> Option<String>,
) -> BTreeMap<String, Tally> {
    let mut groups: BTreeMap<String, Vec<Scores>> = BTreeMap::new();
    for scored in utterances {
        if let Some(name) = group(scored) {
            groups.entry(name).or_default().push(scored.scores);
        }
    }
    let tally = |(name, scores): (String, Vec<Scores>)| Some((name, Tally::of(&scores)?));
    groups.into_iter().filter_map(tally).collect()
}

/// Means outside their limits, with advice.
fn findings(all: &Tally) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut finding = |fact: String, advice| found.push(Finding { fact, advice });
    if all.gain <= 0.0 {
        finding(
            format!(
                "{:.1} dB from the recordings, the mean frame is {:.1} dB: nothing was learned",
                all.distortion, all.baseline
            ),
            "continue training, and check with `tandem analyze` that transcripts fit their recordings",
        );
    }
    if all.duration_bias.abs() > MAX_DURATION_BIAS {
        let direction = if all.duration_bias < 0.0 { "shorter" } else { "longer" };
        finding(
            format!("speech is {:.0} % {direction} than recorded", 100.0 * all.duration_bias.abs()),
            "continue training; until then, `tandem synth --speed` compensates for it",
        );
    }
    if let Some(pitch) = all.pitch_error.filter(|pitch| *pitch > MAX_PITCH_ERROR) {
        finding(
            format!("the pitch is {pitch:.1} semitones off"),
            "continue training, with more recordings of each speaker if there are few",
        );
    }
    let limits = HealthLimits::default();
    if let Some(coverage) = all.coverage.filter(|coverage| *coverage < limits.coverage) {
        finding(
            format!("{:.0} % of the symbols have a plausible duration", 100.0 * coverage),
            "check the rows with the highest `suspicion` in `--json`: text and recording may differ",
        );
    }
    found
}

#[cfg(test)]
mod tests;
