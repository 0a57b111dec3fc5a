//! A cache that is still fresh: nothing of the corpus changed since it was built.
//!
//! In: the directory of a cache. Out: the cache with the counts of its rows, or what of it can be reused. Every row is
//! read once: its stamp is compared and it is counted in the same pass.

use super::Preparation;
use super::row::{ChangeCheck, Fault, Features, open_root};
use super::summary::RowCounts;
use crate::{DataSettings, TrainError};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tandem_data::DataError;
use tandem_data::cache::{Cache, Found, FoundRow, RowState};
use tandem_data::corpus::{RejectReason, RejectedRow};

/// The most rows that a worker checks at once.
const MOST_ROWS_PER_SHARE: usize = 8192;
/// Shares for each worker, where a corpus is small.
const SHARES_PER_WORKER: usize = 8;

/// A cache whose rows were all read.
pub type WarmCache = (Arc<Cache>, CountedRows);

/// What the summary needs of the rows of a cache: counts, and the unusable ones.
pub struct CountedRows {
    pub counts: RowCounts,
    pub rejected: Vec<RejectedRow>,
}

impl CountedRows {
    pub fn none_of(cache: &Cache, settings: &DataSettings) -> CountedRows {
        CountedRows { counts: RowCounts::none_of(cache, settings), rejected: Vec::new() }
    }

    pub fn add(&mut self, cache: &Cache, row: &FoundRow<'_>) {
        self.counts.add(&row.record);
        if row.record.state() == RowState::Rejected {
            self.rejected.extend(rejected_row(cache, row));
        }
    }

    fn join(mut self, other: CountedRows) -> CountedRows {
        self.counts.join(other.counts);
        self.rejected.extend(other.rejected);
        self
    }
}

/// A cache that must be rebuilt. `old` holds the rows that can be reused.
pub struct StaleCache {
    pub old: Option<Arc<Cache>>,
    pub damage: Option<String>,
}

impl Preparation<'_> {
    /// The cache and its rows, if the corpus did not change since it was built.
    pub fn open_warm(&self) -> Result<Result<WarmCache, StaleCache>, TrainError> {
        let cache = match Cache::open(&self.directory, self.fingerprint) {
            Found::Ready(cache) => Arc::<Cache>::from(cache),
            Found::Nothing => return Ok(Err(StaleCache { old: None, damage: None })),
            Found::Unusable(why) => {
                let damage = Some(format!("the index cannot be used: {why}"));
                return Ok(Err(StaleCache { old: None, damage }));
            }
        };
        let features = self.options.features == Features::OnTheFly || cache.meta().features;
        let may_be_fresh = features
            && self.options.change_check == ChangeCheck::Stamps
            && self.sources_unchanged(&cache)?;
        let rows = if may_be_fresh { self.fresh_rows(&cache)? } else { None };
        if let Some(rows) = rows {
            // Not worth an error: without it, the next start verifies the texts again.
            let _ = cache.remember_texts();
            return Ok(Ok((cache, rows)));
        }
        // A damaged block has damaged rows, so a fresh cache has none.
        let damage = match cache.damaged_blocks() {
            0 => None,
            blocks => Some(format!("{blocks} blocks of the index were damaged")),
        };
        Ok(Err(StaleCache { old: Some(cache), damage }))
    }

    fn sources_unchanged(&self, cache: &Cache) -> Result<bool, TrainError> {
        // A manifest may have been added or removed.
        Ok(self.stamp_sources()? == cache.meta().sources)
    }

    /// Compares the stamp of every recording, and the checksum of every text that no earlier start verified, on all workers:
    /// a million comparisons take most of a second on two. Counts the rows, if nothing changed.
    fn fresh_rows(&self, cache: &Cache) -> Result<Option<CountedRows>, TrainError> {
        let root = &open_root(self.root)?;
        let workers = self.options.workers.clamp(1, cache.len().max(1));
        let size = cache.len().div_ceil(SHARES_PER_WORKER * workers).clamp(1, MOST_ROWS_PER_SHARE);
        let next = &AtomicUsize::new(0);
        let check = &|| {
            let mut shares = Vec::new();
            loop {
                // Small shares: a worker that other programs slow down leaves more to the others.
                let from = next.fetch_add(size, Ordering::Relaxed);
                if from >= cache.len() {
                    return Ok::<_, DataError>(Some(shares));
                }
                let mut rows = CountedRows::none_of(cache, self.settings);
                let fresh = cache.all_fresh(root, from..cache.len().min(from + size), |row| {
                    rows.add(cache, row);
                    is_settled(row)
                });
                if !matches!(fresh, Ok(true)) {
                    // Nothing is left for the others.
                    next.store(cache.len(), Ordering::Relaxed);
                    return fresh.map(|_| None);
                }
                shares.push((from, rows));
            }
        };
        std::thread::scope(|scope| {
            // This thread checks, too, so that the work is done where the system allows no further threads.
            let checks: Vec<_> = (1..workers)
                .map_while(|_| {
                    std::thread::Builder::new()
                        .name("tandem-stamps".into())
                        .spawn_scoped(scope, check)
                        .ok()
                })
                .collect();
            let mut all = check()?;
            for check in checks {
                let shares =
                    check.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
                all = all.zip(shares).map(|(mut all, shares)| {
                    all.extend(shares);
                    all
                });
            }
            // In the order of the rows, whichever worker checked them.
            let in_order = |mut all: Vec<(usize, CountedRows)>| {
                all.sort_by_key(|(from, _)| *from);
                let none = CountedRows::none_of(cache, self.settings);
                all.into_iter().fold(none, |all, (_, rows)| all.join(rows))
            };
            Ok(all.map(in_order))
        })
    }
}

/// False for a row without a recording: it may exist by now, and no stamp would show it. Rows with a bad
/// manifest line change with the stamp of the manifest.
fn is_settled(row: &FoundRow<'_>) -> bool {
    use RejectReason::{LeavesCorpus, MissingAudio};
    let unread = row.record.state() == RowState::Rejected && row.audio.is_empty();
    let fault = if unread { fault_in(row.note) } else { None };
    !fault.is_some_and(|fault| matches!(fault.reason, MissingAudio | LeavesCorpus))
}

fn fault_in(note: &str) -> Option<Fault> {
    serde_json::from_str(note).ok()
}

fn rejected_row(cache: &Cache, row: &FoundRow<'_>) -> Option<RejectedRow> {
    let Fault { reason, message, fix, .. } = fault_in(row.note)?;
    let manifest = cache.meta().sources.get(usize::from(row.record.manifest))?;
    Some(RejectedRow {
        manifest: manifest.path.clone(),
        line: row.record.line,
        id: row.id.to_string(),
        reason,
        message,
        fix,
    })
}
