//! What preparing did, for people and scripts; and the list of rows that cannot be used.

use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use tandem_data::cache::Cache;
use tandem_data::cache::RowState;
use tandem_data::corpus::RejectedRow;
use tandem_units::{Bytes, Hop, SampleRate, Samples, Seconds};

/// One preparation in numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The corpus directory.
    pub corpus: PathBuf,
    /// The cache directory of these settings.
    pub cache: PathBuf,
    /// Rows in the manifests.
    pub rows: usize,
    /// Rows that can be trained on.
    pub usable: usize,
    /// Rows that cannot.
    pub rejected: usize,
    /// Rows made anew in this run: 0 for a warm start.
    pub rebuilt: usize,
    /// Rows taken over from an unfinished earlier run.
    pub recovered: usize,
    /// Rows whose recording was touched but has the same bytes.
    pub touched: usize,
    /// What was wrong with the cache that was found, if anything.
    pub damage: Option<String>,
    /// Usable rows to learn from.
    pub train: usize,
    /// Usable rows held out.
    pub eval: usize,
    /// Usable rows by language.
    pub languages: BTreeMap<String, usize>,
    /// Usable rows by speaker; empty where the corpus names none.
    pub speakers: BTreeMap<String, usize>,
    /// Length of all usable recordings.
    pub sound: Seconds,
    /// Mel frames of the longest usable recording.
    pub longest_frames: usize,
    /// Whether mel frames are kept.
    pub features: bool,
    /// The list of unusable rows, where there are any.
    pub rejected_list: Option<PathBuf>,
    /// How long it took.
    pub took: Seconds,
    /// The most memory this process has held, where the system tells.
    pub peak_memory: Option<Bytes>,
}

impl Summary {
    /// Counts what a cache holds; what this run did to it is filled in by the caller.
    pub fn of(cache: &Cache, corpus: PathBuf, rate: SampleRate, hop: Hop) -> Summary {
        let meta = cache.meta();
        let mut summary = Summary {
            corpus,
            cache: cache.directory().to_path_buf(),
            rows: cache.len(),
            usable: 0,
            rejected: 0,
            rebuilt: 0,
            recovered: 0,
            touched: 0,
            damage: None,
            train: 0,
            eval: 0,
            languages: BTreeMap::new(),
            speakers: BTreeMap::new(),
            sound: Seconds(0.0),
            longest_frames: 0,
            features: meta.features,
            rejected_list: None,
            took: Seconds(0.0),
            peak_memory: None,
        };
        let mut languages = vec![0; meta.languages.len()];
        let mut speakers = vec![0; meta.speakers.len()];
        let mut frames = 0;
        for record in (0..cache.len()).filter_map(|row| cache.record(row)) {
            if record.state() == RowState::Rejected {
                summary.rejected += 1;
                continue;
            }
            summary.usable += 1;
            *if record.split == 0 { &mut summary.train } else { &mut summary.eval } += 1;
            languages[usize::from(record.language)] += 1;
            speakers[usize::from(record.speaker)] += 1;
            frames += record.frames as usize;
            summary.longest_frames = summary.longest_frames.max(record.frames as usize);
        }
        // A frame per hop begun, and one more: take that one off again.
        let samples = Samples((frames - summary.usable) * hop.0);
        summary.sound = rate.seconds(samples);
        let named = |names: &[String], counts: Vec<usize>| {
            let pairs = names.iter().cloned().zip(counts);
            pairs.filter(|(name, count)| !name.is_empty() && *count > 0).collect()
        };
        summary.languages = named(&meta.languages, languages);
        summary.speakers = named(&meta.speakers, speakers);
        summary
    }
}

/// The unusable rows as a tab-separated file: one line each, columns named in the first.
pub fn rejected_as_tsv(rows: &[RejectedRow]) -> String {
    let mut text = String::from("manifest\tline\tid\treason\tmessage\tfix\n");
    for row in rows {
        let RejectedRow { manifest, line, id, reason, message, fix } = row;
        let reason = serde_json::to_value(reason).ok();
        let reason = reason.as_ref().and_then(|name| name.as_str()).unwrap_or_default();
        let cells = [manifest, id, message, fix].map(|cell| cell.replace(['\t', '\n', '\r'], " "));
        let [manifest, id, message, fix] = cells;
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{manifest}\t{line}\t{id}\t{reason}\t{message}\t{fix}");
    }
    text
}

/// The most memory this process has held at once, where the system tells (Linux).
pub fn peak_memory() -> Option<Bytes> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Bytes::kib(kib))
}
