//! Prepares a corpus with a progress bar, and reports what it holds: on the screen, in the record.
//!
//! In: the settings of any command that reads a corpus. Out: [`Prepared`], lines for the user, and
//! the record's [`Data`] event. Rejected rows are never silent: the first ones are shown with a
//! reason and a fix, and the file that lists all of them is named.

use crate::counted::count;
use crate::failure::Result;
use crate::printer::{Printer, Progress};
use std::path::Path;
use tandem_data::corpus::DECISIONS;
use tandem_data::corpus::RejectedRow;
use tandem_pipeline::CancelToken;
use tandem_telemetry::event::{CacheState, Data, Warning};
use tandem_text::WordCounts;
use tandem_train::feed::row_failures::RowFailures;
use tandem_train::{DataSettings, PrepareOptions, Prepared, Summary, TrainError, Watcher, prepare};

/// Rejected rows shown where they are the subject; the list has all.
pub const MANY: usize = 20;
/// Rejected rows shown at the start of a run.
const FEW: usize = 5;

/// Prepares a corpus. Where too many rows are unusable, the first of them are shown.
pub fn prepare_corpus(
    corpus: &Path,
    data: &DataSettings,
    options: &PrepareOptions,
    cancel: &CancelToken,
    out: &mut Printer,
) -> Result<Prepared> {
    let prepared = prepare_quietly(corpus, data, options, cancel, out);
    if let Some(rejected) = prepared.as_ref().err().map(TrainError::rejected)
        && !rejected.is_empty()
    {
        out.note(&format!("{}\n", table_of(rejected, MANY)));
    }
    Ok(prepared?)
}

/// Prepares a corpus with a progress bar and shows no row.
pub fn prepare_quietly(
    corpus: &Path,
    data: &DataSettings,
    options: &PrepareOptions,
    cancel: &CancelToken,
    out: &mut Printer,
) -> Result<Prepared, TrainError> {
    let mut bar = PrepareProgress { out, progress: None };
    let prepared = prepare(corpus, data, options, &mut bar, cancel);
    if let Some(progress) = bar.progress {
        progress.done();
    }
    prepared
}

struct PrepareProgress<'a> {
    out: &'a mut Printer,
    progress: Option<Progress>,
}

impl Watcher for PrepareProgress<'_> {
    fn waiting_for(&mut self, owner: &str) {
        self.out.note(&format!("another `tandem` prepares this corpus ({owner}); waiting for it"));
    }

    fn progress(&mut self, done: usize, rows: usize) {
        let out = &self.out;
        let bar = self.progress.get_or_insert_with(|| out.progress("preparing", rows as u64));
        bar.at(done as u64);
    }
}

/// What a run trains or validates on: rows, the first rejected ones, the cache, the workers.
pub fn note_data(name: &str, prepared: &Prepared, workers: usize, out: &mut Printer) {
    let s = &prepared.summary;
    out.note(&format!("{name}: {}, {}{}", count(s.rows, "row"), rows(s), speakers(s)));
    out.note(&format!("layout: {}", s.recognised));
    if let Some(rejected) = rejected_rows(prepared, FEW) {
        out.note(&rejected);
    }
    out.note(&format!("symbols: {}", symbols(prepared)));
    let cache = match cache_state(s) {
        CacheState::Read => "read".into(),
        CacheState::Updated => format!("updated {} of {} rows", s.rebuilt, s.rows),
        CacheState::Built => format!("built, {} rows", s.rows),
    };
    let workers = if workers == 1 { "1 worker".into() } else { format!("{workers} workers") };
    out.note(&format!("cache: {cache}, in {} with {workers}", s.took));
}

/// `; speakers: ali, bob`: where the manifest names them.
fn speakers(s: &Summary) -> String {
    const SHOWN: usize = 4;
    const LONGEST: usize = 20;
    let short = |name: &String| name.chars().take(LONGEST).collect::<String>();
    let names: Vec<String> = s.speakers.keys().take(SHOWN).map(short).collect();
    match s.speakers.len() {
        0 => String::new(),
        count if count > SHOWN => format!("; {count} speakers: {}, ...", names.join(", ")),
        _ => format!("; speakers: {}", names.join(", ")),
    }
}

/// Says that a run has no row to validate on: no best checkpoint is chosen, and `--patience` cannot end it.
pub fn nothing_validated(training: &Summary, validation: Option<&Prepared>) -> Option<String> {
    let none = training.eval == 0 && validation.is_none();
    none.then(|| {
        format!(
            "nothing is validated: all {} usable rows are trained on, none is held out; no best checkpoint will be \
             chosen. Name other recordings with `--val-data`, or add rows to the corpus",
            training.train
        )
    })
}

/// The same for the record.
pub fn data_event(prepared: &Prepared, workers: usize) -> Data {
    let s = &prepared.summary;
    Data {
        usable: s.train as u64,
        rejected: s.rejected as u64,
        eval: s.eval as u64,
        list: s.rejected_list.as_ref().map(|list| list.display().to_string()),
        cache: cache_state(s),
        rebuilt: s.rebuilt as u64,
        seconds: s.took.0,
        workers: workers as u32,
    }
}

/// `125 usable (119 to train on, 6 held out), 25 rejected; 2 dropped by decisions.tsv`
pub fn rows(s: &Summary) -> String {
    let mut rows = format!(
        "{} usable ({} to train on, {} held out), {} rejected",
        s.usable, s.train, s.eval, s.rejected
    );
    let decided = [(s.dropped, "dropped"), (s.fixed, "with another text")];
    let decided = decided.iter().filter(|(count, _)| *count > 0);
    let decided: Vec<String> = decided.map(|(count, what)| format!("{count} {what}")).collect();
    if !decided.is_empty() {
        rows += &format!("; {} by {DECISIONS}", decided.join(", "));
    }
    rows
}

/// `en built-in phonemes, de characters`: the languages of the corpus.
pub fn symbols(prepared: &Prepared) -> String {
    let found = &prepared.summary.languages;
    let used =
        prepared.front_end.sources().filter(|(language, _)| found.contains_key(language.tag()));
    let used: Vec<_> = used.map(|(language, source)| format!("{language} {source}")).collect();
    used.join(", ") + &uncertain_words(&prepared.summary.words)
}

/// `; 2.1 % of 1200 words guessed, 0.0 % in characters`: of the rows that were read now.
fn uncertain_words(counts: &WordCounts) -> String {
    if counts.guessed + counts.as_characters == 0 {
        return String::new();
    }
    let share = |count: u64| 100.0 * count as f64 / counts.words as f64;
    let (guessed, characters) = (share(counts.guessed), share(counts.as_characters));
    let words = counts.words;
    format!(
        "; of {words} words, {guessed:.1} % guessed and {characters:.1} % in characters (`tandem text` names them)"
    )
}

/// A table of the first rejected rows and the path of the full list; `None` where none is rejected.
pub fn rejected_rows(prepared: &Prepared, most: usize) -> Option<String> {
    let rejected = &prepared.rejected;
    if rejected.is_empty() {
        return None;
    }
    let mut text = table_of(rejected, most);
    if let Some(list) = &prepared.summary.rejected_list {
        let more = match rejected.len().saturating_sub(most) {
            0 => String::new(),
            more => format!("{more} more; "),
        };
        text.push_str(&format!("\n{more}all rejected rows are listed in {}", list.display()));
    }
    Some(text)
}

/// The first of them, with place, reason and fix.
pub fn table_of(rejected: &[RejectedRow], most: usize) -> String {
    let mut table = Printer::table(&["place", "id", "reason", "fix"]);
    for row in rejected.iter().take(most) {
        let place = format!("{}:{}", row.manifest, row.line);
        table.add_row([&place, &row.id, &row.message, &row.fix]);
    }
    table.trim_fmt()
}

fn cache_state(s: &Summary) -> CacheState {
    match s.rebuilt {
        0 => CacheState::Read,
        // A row that has no recording is rejected without being processed.
        rebuilt if rebuilt + s.rejected >= s.rows => CacheState::Built,
        _ => CacheState::Updated,
    }
}

/// Says which rows could not be read while the corpus was measured: its scale is without them.
pub fn unread_rows(failures: &RowFailures) -> Option<Warning> {
    const SHOWN: usize = 3;
    let rows = failures.so_far();
    let shown: Vec<String> =
        rows.iter().take(SHOWN).map(|(id, why)| format!("`{id}`: {why}")).collect();
    let more = rows.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let text = format!(
        "could not be read while the corpus was measured: {}{more}; mean, deviation and level of the mel frames are \
         without these rows: make them readable and start again, or remove them from the manifest",
        shown.join("; ")
    );
    (!rows.is_empty()).then(|| Warning { code: "unread_rows".into(), text })
}
