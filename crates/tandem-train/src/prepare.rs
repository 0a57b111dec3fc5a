//! A corpus becomes a cache: all rows, on all workers, in order, at once or not at all.
//!
//! In: a corpus directory and [`DataSettings`]. Out: [`Prepared`], an open cache and a
//! [`Summary`]. A warm start reads the cache alone and looks at the stamps of the recordings.
//! Memory does not grow with the length of the recordings; a row costs about half a kilobyte.
//! Next: [`mod@crate::feed`].

pub mod row; // 1. one row: unchanged in the cache, or processed
mod writer; // 2. the one thread that writes, in corpus order
pub mod summary; // 3. what preparing did

use crate::prepare::row::{
    Examine, Examined, Fault, Features, Job, OldRows, Surroundings, Trust, open_root,
};
use crate::prepare::summary::{Summary, peak_memory, rejected_as_tsv};
use crate::prepare::writer::{Did, Writing};
use crate::{DataSettings, TrainError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tandem_data::DataError;
use tandem_data::audio::mel::MelExtractor;
use tandem_data::cache::index::Source;
use tandem_data::cache::{
    Cache, CacheLocation, Draft, Fingerprint, Found, Meta, Row, RowState, Stamp,
};
use tandem_data::corpus::{Corpus, RejectReason, RejectedRow, Utterance};
use tandem_data::text::FrontEnd;
use tandem_disk::directory_lock::{self, Attempt, DirectoryLock};
use tandem_disk::replace_file::replace_file;
use tandem_pipeline::{CancelToken, Crew, Hold, PipelineError, Route, Setup, Watch};
use tandem_units::{Bytes, Seconds};

/// Rows a worker takes at once: enough to start a phonemiser seldom, few enough to share out.
const ROWS_PER_JOB: usize = 32;
/// What may wait between the workers and the one who writes.
const WAITING: Bytes = Bytes::mib(64);
/// How long until another builder's lock is tried again.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// How to prepare; none of it changes the result.
#[derive(Clone, Debug)]
pub struct PrepareOptions {
    /// Threads that examine rows.
    pub workers: usize,
    /// Whether mel frames are kept.
    pub features: Features,
    /// Whether unchanged stamps are believed.
    pub trust: Trust,
    /// A place for the cache other than beside the corpus.
    pub cache_dir: Option<PathBuf>,
    /// Share of unusable rows above which preparing fails.
    pub max_rejected: f64,
    /// Time without progress after which preparing ends with an error; `None`: never.
    pub stall_timeout: Option<Duration>,
}

impl Default for PrepareOptions {
    fn default() -> Self {
        Self {
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            features: Features::OnTheFly,
            trust: Trust::Stamps,
            cache_dir: None,
            max_rejected: 0.2,
            stall_timeout: Watch::default().stall_timeout,
        }
    }
}

/// Who is told how far preparing is.
pub trait Watcher {
    /// Another process builds the same cache; we wait for it.
    fn waiting_for(&mut self, owner: &str);
    /// So many of all rows are done.
    fn progress(&mut self, done: usize, rows: usize);
}

/// A corpus, ready to be fed.
pub struct Prepared {
    /// The corpus directory.
    pub root: PathBuf,
    /// Its rows.
    pub cache: Arc<Cache>,
    /// How text becomes symbols.
    pub front_end: Arc<FrontEnd>,
    /// The settings it was prepared with.
    pub settings: DataSettings,
    /// What was done.
    pub summary: Summary,
    /// The rows that cannot be used.
    pub rejected: Vec<RejectedRow>,
}

/// Prepares a corpus, or finds that it is prepared already. Stopped by `cancel`, it keeps what
/// was finished for the next time and fails with [`PipelineError::Cancelled`].
pub fn prepare(
    corpus: &Path,
    settings: &DataSettings,
    options: &PrepareOptions,
    watcher: &mut dyn Watcher,
    cancel: &CancelToken,
) -> Result<Prepared, TrainError> {
    let start = Instant::now();
    let front_end = Arc::new(FrontEnd::new(&settings.text)?);
    MelExtractor::new(settings.mel.clone())?;
    let (root, manifests) = Corpus::locate(corpus)?;
    let place = CacheLocation::find(&root, options.cache_dir.as_deref())?;
    let fingerprint = settings.fingerprint(&front_end)?;
    let work = Work {
        corpus,
        root: &root,
        manifests,
        directory: place.for_settings(fingerprint),
        place,
        fingerprint,
        settings,
        options,
        front_end,
    };
    let (cache, did) = match work.open_warm()? {
        Ok(cache) => (cache, Did::default()),
        Err(_) => work.build(watcher, cancel)?,
    };
    let mut prepared = work.describe(cache, did)?;
    prepared.summary.took = Seconds(start.elapsed().as_secs_f64());
    prepared.summary.peak_memory = peak_memory();
    prepared.check_limit(options.max_rejected)
}

impl Prepared {
    /// Fails when too many rows cannot be used.
    fn check_limit(self, limit: f64) -> Result<Prepared, TrainError> {
        let Summary { rows, usable, rejected, .. } = self.summary;
        if usable > 0 && rejected as f64 <= limit * rows as f64 {
            return Ok(self);
        }
        let (list, rejected) = (self.summary.rejected_list.unwrap_or_default(), self.rejected);
        Err(match usable {
            0 => TrainError::NothingUsable { rejected, rows, list },
            _ => TrainError::TooManyRejected { rejected, rows, limit, list },
        })
    }
}

struct Work<'a> {
    corpus: &'a Path,
    root: &'a Path,
    manifests: Vec<PathBuf>,
    place: CacheLocation,
    directory: PathBuf,
    fingerprint: Fingerprint,
    settings: &'a DataSettings,
    options: &'a PrepareOptions,
    front_end: Arc<FrontEnd>,
}

/// Why a cache cannot be used as it is, with what can still be used of it.
struct Stale {
    old: Option<Arc<Cache>>,
    damage: Option<String>,
}

impl Work<'_> {
    /// The cache, if nothing of the corpus changed since it was made.
    fn open_warm(&self) -> Result<Result<Arc<Cache>, Stale>, TrainError> {
        let cache = match Cache::open(&self.directory, self.fingerprint) {
            Found::Ready(cache) => Arc::<Cache>::from(cache),
            Found::Nothing => return Ok(Err(Stale { old: None, damage: None })),
            Found::Unusable(why) => {
                let damage = Some(format!("the index cannot be used: {why}"));
                return Ok(Err(Stale { old: None, damage }));
            }
        };
        let damage = match cache.damaged_blocks() {
            0 => None,
            blocks => Some(format!("{blocks} blocks of the index were damaged")),
        };
        let features = self.options.features == Features::OnTheFly || cache.meta().features;
        let fresh = features
            && damage.is_none()
            && self.options.trust == Trust::Stamps
            && self.sources_unchanged(&cache)?
            && !may_have_appeared(&cache)
            && self.rows_fresh(&cache)?;
        if fresh { Ok(Ok(cache)) } else { Ok(Err(Stale { old: Some(cache), damage })) }
    }

    fn sources_unchanged(&self, cache: &Cache) -> Result<bool, TrainError> {
        // The reader decides which manifests there are: one may have come or gone.
        Ok(self.stamp_sources()? == cache.meta().sources)
    }

    /// Looks at every recording's stamp and every text's checksum, on all workers: a million
    /// look-ups take the better part of a second on one.
    fn rows_fresh(&self, cache: &Cache) -> Result<bool, TrainError> {
        let root = open_root(self.root)?;
        let share = cache.len().div_ceil(self.options.workers.max(1)).max(1);
        let ranges =
            (0..cache.len()).step_by(share).map(|from| from..cache.len().min(from + share));
        let root = &root;
        std::thread::scope(|scope| {
            let looks: Vec<_> = ranges
                .map(|range| {
                    std::thread::Builder::new()
                        .name("tandem-look".into())
                        .spawn_scoped(scope, move || cache.all_fresh(root, range))
                })
                .collect();
            let mut fresh = true;
            for look in looks {
                let failed = |source| DataError::Read { path: self.root.to_path_buf(), source };
                let look = look.map_err(failed)?.join();
                fresh &= look.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            }
            Ok(fresh)
        })
    }

    fn build(
        &self,
        watcher: &mut dyn Watcher,
        cancel: &CancelToken,
    ) -> Result<(Arc<Cache>, Did), TrainError> {
        let lock = self.take_lock(watcher, cancel)?;
        // Whoever held the lock may have done our work.
        let stale = match self.open_warm()? {
            Ok(cache) => return Ok((cache, Did::default())),
            Err(stale) => stale,
        };
        let sources = self.stamp_sources()?;
        let corpus = Corpus::read(self.corpus, &self.settings.corpus)?;
        let old = stale.old;
        let draft = Draft::begin(&self.directory, self.fingerprint, lock, old.as_deref())?;
        let around = Arc::new(self.surroundings(&draft, old.clone())?);
        let mut writing = Writing::new(draft, old);
        match self.write_rows(corpus, around.clone(), &mut writing, watcher, cancel) {
            Ok(()) => {}
            Err(error) => {
                // The first fault is the one to tell; what was written is found by its
                // checksums next time, synced or not.
                let _ = writing.suspend();
                return Err(error);
            }
        }
        let meta = Meta {
            sources,
            features: self.options.features == Features::Cached,
            bands: self.settings.mel.bands as u32,
            ..Meta::default()
        };
        let (cache, mut did) = writing.commit(meta)?;
        did.damage = match around.damaged.load(Ordering::Relaxed) {
            0 => stale.damage,
            rows => stale.damage.or(Some(format!("{rows} rows of the cache were damaged"))),
        };
        Ok((Arc::new(cache), did))
    }

    fn take_lock(
        &self,
        watcher: &mut dyn Watcher,
        cancel: &CancelToken,
    ) -> Result<DirectoryLock, TrainError> {
        let mut told = false;
        loop {
            let root = &self.place.root;
            let failed =
                |source| DataError::Write { path: directory_lock::lock_path(root), source };
            match DirectoryLock::try_take(root).map_err(failed)? {
                Attempt::Held(lock) => return Ok(lock),
                Attempt::Busy(_) if cancel.is_cancelled() => {
                    return Err(PipelineError::Cancelled.into());
                }
                Attempt::Busy(owner) if !told => watcher.waiting_for(&owner),
                Attempt::Busy(_) => std::thread::sleep(ASK_AGAIN),
            }
            told = true;
        }
    }

    /// Taken before the manifests are read: a change while reading shows as stale next time.
    fn stamp_sources(&self) -> Result<Vec<Source>, TrainError> {
        let stamped = self.manifests.iter().map(|path| {
            let stamp = Stamp::of(&self.root.join(path))?;
            Ok(Source { path: path.to_string_lossy().into_owned(), stamp })
        });
        stamped.collect()
    }

    fn surroundings(
        &self,
        draft: &Draft,
        old: Option<Arc<Cache>>,
    ) -> Result<Surroundings, TrainError> {
        let leftovers = draft.leftovers(old.as_deref())?;
        let old = old.map(OldRows::of);
        Ok(Surroundings {
            root: open_root(self.root)?,
            root_path: self.root.to_path_buf(),
            front_end: self.front_end.clone(),
            settings: self.settings.clone(),
            old,
            leftovers,
            trust: self.options.trust,
            features: self.options.features,
            damaged: AtomicUsize::new(0),
        })
    }

    fn write_rows(
        &self,
        corpus: Corpus,
        around: Arc<Surroundings>,
        writing: &mut Writing,
        watcher: &mut dyn Watcher,
        cancel: &CancelToken,
    ) -> Result<(), TrainError> {
        let rows = corpus.utterances.len() + corpus.rejected.len();
        for row in &corpus.rejected {
            writing.push_unread(row, &corpus.manifests)?;
        }
        let mut done = corpus.rejected.len();
        let jobs = Jobs { rows: corpus.utterances.into_iter() };
        let hold = Hold::bytes(WAITING).items(4 * self.options.workers.max(1));
        let crew = Crew::of(self.options.workers);
        let examine = move || Examine::new(&around);
        let stall_timeout = self.options.stall_timeout;
        let setup = Setup {
            consumer: "write",
            cancel: cancel.clone(),
            watch: Watch { stall_timeout, ..Watch::default() },
            ..Setup::default()
        };
        let mut feed = Route::from(jobs, hold.clone()).then_by(crew, examine, hold).start(setup)?;
        while let Some(Examined(examined)) = feed.next()? {
            done += examined.len();
            for (row, outcome) in examined {
                writing.push(&row, outcome)?;
            }
            watcher.progress(done, rows);
        }
        Ok(())
    }

    fn describe(&self, cache: Arc<Cache>, did: Did) -> Result<Prepared, TrainError> {
        let mel = &self.settings.mel;
        let mut summary = Summary::of(&cache, self.root.to_path_buf(), mel.rate, mel.hop);
        summary.rebuilt = did.rebuilt;
        summary.recovered = did.recovered;
        summary.touched = did.touched;
        summary.damage = did.damage;
        let rejected = rejected_rows(&cache);
        summary.rejected_list = list_rejected(cache.directory(), &rejected)?;
        Ok(Prepared {
            root: self.root.to_path_buf(),
            cache,
            front_end: self.front_end.clone(),
            settings: self.settings.clone(),
            summary,
            rejected,
        })
    }
}

/// Keeps the file that lists unusable rows as it must be: right, or not there.
fn list_rejected(
    directory: &Path,
    rejected: &[RejectedRow],
) -> Result<Option<PathBuf>, TrainError> {
    let path = directory.join("rejected.tsv");
    let there = std::fs::read(&path).ok();
    let text = rejected_as_tsv(rejected);
    let done = match there {
        Some(_) if rejected.is_empty() => tandem_disk::remove_file(&path),
        None if rejected.is_empty() => Ok(()),
        Some(there) if there == text.as_bytes() => Ok(()),
        _ => replace_file(&path, text.as_bytes()),
    };
    match done {
        // Another process at the same work may have removed it first.
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(DataError::Write { path, source }.into())
        }
        _ => Ok((!rejected.is_empty()).then_some(path)),
    }
}

/// Rows in handfuls.
struct Jobs {
    rows: std::vec::IntoIter<Utterance>,
}

impl Iterator for Jobs {
    type Item = Job;

    fn next(&mut self) -> Option<Job> {
        let rows: Vec<_> = self.rows.by_ref().take(ROWS_PER_JOB).collect();
        (!rows.is_empty()).then_some(Job(rows))
    }
}

/// Whether some row had no recording inside the corpus: it may be there by now, and no stamp would
/// tell. Rows that are bad in the manifest alone change with the manifest's stamp.
fn may_have_appeared(cache: &Cache) -> bool {
    use RejectReason::{LeavesCorpus, MissingAudio};
    unusable(cache)
        .filter(|row| row.audio.is_empty())
        .filter_map(|row| fault_in(row.note))
        .any(|fault| matches!(fault.reason, MissingAudio | LeavesCorpus))
}

/// The rows that cannot be used. Names are looked at for these alone, not for a million others.
fn unusable(cache: &Cache) -> impl Iterator<Item = Row<'_>> {
    let rejected =
        |row: &usize| cache.record(*row).is_some_and(|record| record.state() == RowState::Rejected);
    (0..cache.len()).filter(rejected).filter_map(|row| cache.row(row))
}

fn fault_in(note: &str) -> Option<Fault> {
    serde_json::from_str(note).ok()
}

fn rejected_rows(cache: &Cache) -> Vec<RejectedRow> {
    let mut rejected: Vec<_> = unusable(cache)
        .filter_map(|row| {
            let Fault { reason, message, fix } = fault_in(row.note)?;
            let manifest = cache.meta().sources.get(usize::from(row.record.manifest))?;
            Some(RejectedRow {
                manifest: manifest.path.clone(),
                line: row.record.line,
                id: row.id.to_string(),
                reason,
                message,
                fix,
            })
        })
        .collect();
    rejected.sort_by(|a, b| (&a.manifest, a.line).cmp(&(&b.manifest, b.line)));
    rejected
}
