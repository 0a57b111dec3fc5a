//! How good a voice is: it says what it never learned, and is held against the recordings.
//!
//! In: a trained voice and a corpus. Out: [`Evaluation`]: every utterance's scores, their means by
//! language and speaker, and advice. The voice is given another utterance of the same speaker to
//! imitate, never the one it is judged by. Writes nothing, starts no thread.

mod error;
mod judge;
mod word_timings;

pub use error::EvaluateError;
pub use word_timings::{TimingError, WordTimings};

use judge::Judge;
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

/// Off by more than this share, a voice is hasty or slow.
const PACE: f64 = 0.15;
/// Off by more than this many semitones, a voice is another's.
const PITCH: f64 = 3.0;

/// What is judged.
#[derive(Clone, Debug)]
pub struct EvaluateOptions {
    /// Rows held out, or rows that were learned from.
    pub split: Split,
    /// At most so many rows, spread over all.
    pub limit: Option<usize>,
    /// How the voice speaks.
    pub sampling: SamplingOptions,
}

impl Default for EvaluateOptions {
    fn default() -> EvaluateOptions {
        EvaluateOptions { split: Split::Eval, limit: None, sampling: SamplingOptions::default() }
    }
}

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Evaluation {
    /// The checkpoint that spoke.
    pub checkpoint: PathBuf,
    /// Steps it was trained.
    pub step: u64,
    /// What it was held against.
    pub corpus: PathBuf,
    /// Which rows.
    pub split: Split,
    /// Means over all utterances.
    pub all: Tally,
    /// How far starts of words are off when its texts are laid over the recordings; none where
    /// the corpus does not say when words begin.
    pub timing: Option<TimingError>,
    /// Means by language.
    pub languages: BTreeMap<String, Tally>,
    /// Means by speaker; empty where the corpus names none.
    pub speakers: BTreeMap<String, Tally>,
    /// One by one, in the order of the corpus.
    pub utterances: Vec<Judged>,
    /// Rows that could not be judged.
    pub skipped: Vec<Unjudged>,
    /// What is out of bounds, and what to do about it.
    pub findings: Vec<Finding>,
    /// Speech that was made.
    pub spoken: Seconds,
    /// How long all of it took.
    pub took: Seconds,
}

/// One utterance.
#[derive(Clone, Debug, Serialize)]
pub struct Judged {
    /// Its name in the corpus.
    pub id: String,
    /// The language it was read in.
    pub language: String,
    /// Who speaks, where the corpus says so.
    pub speaker: Option<String>,
    /// How suspicious its transcript is, from 0 up.
    pub suspicion: f64,
    /// What was found.
    #[serde(flatten)]
    pub scores: Scores,
}

/// A row that could not be judged.
#[derive(Clone, Debug, Serialize)]
pub struct Unjudged {
    /// Its name in the corpus.
    pub id: String,
    /// What is wrong with it.
    pub why: String,
}

/// Judges a voice. `watch` hears how many rows are done, and of how many.
pub fn evaluate(
    synthesizer: &mut Synthesizer,
    corpus: &Corpus,
    options: &EvaluateOptions,
    watch: &mut dyn FnMut(usize, usize),
    cancel: &CancelToken,
) -> Result<Evaluation, EvaluateError> {
    let begun = Instant::now();
    let rows: Vec<&Utterance> = corpus.of(options.split).collect();
    if rows.is_empty() {
        let (corpus, split) = (corpus.root.clone(), options.split);
        return Err(EvaluateError::NoRows { corpus, split });
    }
    let rows = spread(&rows, options.limit.unwrap_or(rows.len()));
    let mut judge = Judge::new(synthesizer, corpus, &options.sampling, cancel)?;
    let (mut utterances, mut skipped) = (Vec::new(), Vec::new());
    for (number, row) in rows.iter().enumerate() {
        watch(number, rows.len());
        if cancel.is_cancelled() {
            return Err(EvaluateError::cancelled());
        }
        match judge.judge(row) {
            Ok(judged) => utterances.push(judged),
            Err(error) if error.is_of_one_row() => {
                skipped.push(Unjudged { id: row.id.clone(), why: error.whole() });
            }
            Err(error) => return Err(error),
        }
    }
    watch(rows.len(), rows.len());
    let (spoken, timing) = (judge.spoken(), judge.timing());
    let scores: Vec<Scores> = utterances.iter().map(|judged| judged.scores).collect();
    let Some(all) = Tally::of(&scores) else {
        let first = skipped.first().map_or(String::new(), |row| row.why.clone());
        return Err(EvaluateError::NothingJudged { rows: rows.len(), first });
    };
    let trained = synthesizer.trained();
    Ok(Evaluation {
        checkpoint: trained.path.clone(),
        step: trained.step,
        corpus: corpus.root.clone(),
        split: options.split,
        all,
        timing,
        languages: tallies(&utterances, |judged| Some(judged.language.clone())),
        speakers: tallies(&utterances, |judged| judged.speaker.clone()),
        findings: findings(&all),
        utterances,
        skipped,
        spoken,
        took: Seconds(begun.elapsed().as_secs_f64()),
    })
}

/// At most so many of a list, evenly spread over it.
fn spread<'a, T>(all: &[&'a T], most: usize) -> Vec<&'a T> {
    let count = most.min(all.len());
    (0..count).map(|place| all[place * all.len() / count]).collect()
}

fn tallies(
    utterances: &[Judged],
    group: impl Fn(&Judged) -> Option<String>,
) -> BTreeMap<String, Tally> {
    let mut groups: BTreeMap<String, Vec<Scores>> = BTreeMap::new();
    for judged in utterances {
        if let Some(name) = group(judged) {
            groups.entry(name).or_default().push(judged.scores);
        }
    }
    let tally = |(name, scores): (String, Vec<Scores>)| Some((name, Tally::of(&scores)?));
    groups.into_iter().filter_map(tally).collect()
}

/// What is out of bounds in the means.
fn findings(all: &Tally) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut finding = |fact: String, advice| found.push(Finding { fact, advice });
    if all.gain <= 0.0 {
        finding(
            format!(
                "{:.1} dB from the recordings, the mean frame is {:.1} dB: nothing was learned",
                all.distortion, all.baseline
            ),
            "train on, and check with `tandem analyze` that transcripts fit their recordings",
        );
    }
    if all.duration_bias.abs() > PACE {
        let way = if all.duration_bias < 0.0 { "shorter" } else { "longer" };
        finding(
            format!("speech is {:.0} % {way} than recorded", 100.0 * all.duration_bias.abs()),
            "train on; until then `tandem synth --speed` makes up for it",
        );
    }
    if let Some(pitch) = all.pitch_error.filter(|pitch| *pitch > PITCH) {
        finding(
            format!("the pitch is {pitch:.1} semitones off"),
            "train on, with more clips of each speaker if there are few",
        );
    }
    let limits = HealthLimits::default();
    if let Some(coverage) = all.coverage.filter(|coverage| *coverage < limits.coverage) {
        finding(
            format!("{:.0} % of the symbols have a sane length of sound", 100.0 * coverage),
            "look at the rows with the highest `suspicion` in `--json`: text and sound may differ",
        );
    }
    found
}

#[cfg(test)]
mod tests;
