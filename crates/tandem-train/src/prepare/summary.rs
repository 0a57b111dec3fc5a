//! The result of a preparation, for people and scripts, and the list of unusable rows.

use crate::DataSettings;
use crate::prepare::too_long::{TooLong, TooLongCounts};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use tandem_data::cache::{Cache, Record, RowState};
use tandem_data::corpus::RejectedRow;
use tandem_text::WordCounts;
use tandem_units::{Bytes, Hop, SampleRate, Samples, Seconds};

/// Counts and times of one preparation.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The corpus directory.
    pub corpus: PathBuf,
    /// How its files are arranged, as `--layout` names it.
    pub layout: &'static str,
    /// The same in one clause, with columns and what was decided by content.
    pub recognised: String,
    /// The cache directory of these settings.
    pub cache: PathBuf,
    /// Rows in the manifests.
    pub rows: usize,
    /// Rows that can be trained on.
    pub usable: usize,
    /// Rows that cannot.
    pub rejected: usize,
    /// Rows that `decisions.tsv` of the corpus leaves out; they are not among `rows`.
    pub dropped: usize,
    /// Rows whose text it replaces.
    pub fixed: usize,
    /// Rows processed in this run: 0 for a warm start.
    pub rebuilt: usize,
    /// Rows recovered from an interrupted earlier run.
    pub recovered: usize,
    /// Rows whose recording has a new stamp and the same contents.
    pub touched: usize,
    /// Damage found in the previous cache.
    pub damage: Option<String>,
    /// Usable rows of the training split.
    pub train: usize,
    /// Usable held-out rows.
    pub eval: usize,
    /// Usable rows by language.
    pub languages: BTreeMap<String, usize>,
    /// Usable rows by speaker; empty where the corpus names none.
    pub speakers: BTreeMap<String, usize>,
    /// Words of the rows processed in this run that were read with built-in phonemes.
    pub words: WordCounts,
    /// Length of all usable recordings.
    pub sound: Seconds,
    /// Mel frames of the longest usable recording.
    pub longest_frames: usize,
    /// Rows beyond the length limits.
    pub too_long: Vec<TooLong>,
    /// Whether mel frames are cached.
    pub features: bool,
    /// The list of unusable rows, where there are any.
    pub rejected_list: Option<PathBuf>,
    pub took: Seconds,
    /// Peak memory of this process, where the system reports it.
    pub peak_memory: Option<Bytes>,
}

impl Summary {
    /// Describes the rows of a cache. The caller fills in what this run did to it.
    pub fn of(
        cache: &Cache,
        counts: RowCounts,
        corpus: PathBuf,
        rate: SampleRate,
        hop: Hop,
    ) -> Summary {
        let meta = cache.meta();
        let mut summary = Summary {
            corpus,
            layout: "",
            recognised: String::new(),
            cache: cache.directory().to_path_buf(),
            rows: cache.len(),
            usable: counts.usable,
            rejected: counts.rejected,
            dropped: 0,
            fixed: 0,
            rebuilt: 0,
            recovered: 0,
            touched: 0,
            damage: None,
            train: counts.usable - counts.eval,
            eval: counts.eval,
            languages: BTreeMap::new(),
            speakers: BTreeMap::new(),
            words: WordCounts::default(),
            sound: Seconds(0.0),
            longest_frames: counts.longest_frames,
            too_long: counts.too_long.finish(),
            features: meta.features,
            rejected_list: None,
            took: Seconds(0.0),
            peak_memory: None,
        };
        // A recording has one frame more than hops.
        let samples = Samples((counts.frames - summary.usable) * hop.0);
        summary.sound = rate.seconds(samples);
        let named = |names: &[String], counts: Vec<usize>| {
            let pairs = names.iter().cloned().zip(counts);
            pairs.filter(|(name, count)| !name.is_empty() && *count > 0).collect()
        };
        summary.languages = named(&meta.languages, counts.languages);
        summary.speakers = named(&meta.speakers, counts.speakers);
        summary
    }
}

/// Counts of some rows of a cache. Several threads count their own rows.
pub struct RowCounts {
    usable: usize,
    rejected: usize,
    eval: usize,
    frames: usize,
    longest_frames: usize,
    /// By number of the language or speaker.
    languages: Vec<usize>,
    speakers: Vec<usize>,
    too_long: TooLongCounts,
}

impl RowCounts {
    pub fn none_of(cache: &Cache, settings: &DataSettings) -> RowCounts {
        let meta = cache.meta();
        RowCounts {
            usable: 0,
            rejected: 0,
            eval: 0,
            frames: 0,
            longest_frames: 0,
            languages: vec![0; meta.languages.len()],
            speakers: vec![0; meta.speakers.len()],
            too_long: TooLongCounts::new(settings, cache.len()),
        }
    }

    pub fn add(&mut self, record: &Record) {
        if record.state() == RowState::Rejected {
            self.rejected += 1;
            return self.too_long.add(record);
        }
        self.usable += 1;
        self.eval += usize::from(record.split != 0);
        self.languages[usize::from(record.language)] += 1;
        self.speakers[usize::from(record.speaker)] += 1;
        self.frames += record.frames as usize;
        self.longest_frames = self.longest_frames.max(record.frames as usize);
    }

    /// Adds the counts of other rows of the same cache.
    pub fn join(&mut self, other: RowCounts) {
        self.usable += other.usable;
        self.rejected += other.rejected;
        self.eval += other.eval;
        self.frames += other.frames;
        self.longest_frames = self.longest_frames.max(other.longest_frames);
        let sum = |all: &mut Vec<usize>, more: Vec<usize>| {
            all.iter_mut().zip(more).for_each(|(count, more)| *count += more);
        };
        sum(&mut self.languages, other.languages);
        sum(&mut self.speakers, other.speakers);
        self.too_long.join(other.too_long);
    }
}

/// The unusable rows as a tab-separated file with a header line.
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

/// Peak resident memory of this process; none where the system does not report it (only Linux does).
pub fn peak_memory() -> Option<Bytes> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Bytes::kib(kib))
}
