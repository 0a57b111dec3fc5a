//! A corpus becomes a cache: all rows, on all workers, in order. The cache is replaced whole or not
//! at all.
//!
//! In: a corpus directory and [`DataSettings`]. Out: [`Prepared`], an open cache and a
//! [`Summary`]. A warm start only reads the cache and compares the stamps of the recordings.
//! Memory does not grow with the length of the recordings, nor with the texts: of a row of the manifest
//! sixteen bytes stay.
//! Next: [`mod@crate::feed`].

mod warm; // 0. a cache that is still fresh
pub mod row; // 1. one row: unchanged in the cache, or processed
mod ranks; // 1. rows that other ranks process
mod writer; // 2. the thread that writes, in corpus order
pub mod too_long; // 3. rows beyond the length limits
pub mod summary; // 3. counts and times

use crate::file_config::FileConfig;
use crate::prepare::ranks::{RowWorkers, decode_leftovers, encode_leftovers, end_service, serve};
use crate::prepare::row::{
    ChangeCheck, Features, OldRows, PrepareContext, ProcessedRows, RowChunk, open_root,
};
use crate::prepare::summary::{Summary, peak_memory, rejected_as_tsv};
use crate::prepare::warm::{CountedRows, WarmCache};
use crate::prepare::writer::{CacheWriter, PrepareCounts};
use crate::{DataSettings, TrainError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tandem_audio::mel::MelExtractor;
use tandem_cluster::Cluster;
use tandem_data::DataError;
use tandem_data::cache::index::Source;
use tandem_data::cache::{Cache, CacheLocation, Draft, Found, Leftovers, Meta, RowBuffer};
use tandem_data::corpus::{Corpus, CorpusRow, CorpusRows, LocatedCorpus, RejectedRow};
use tandem_disk::Fingerprint;
use tandem_disk::directory_lock::{self, Attempt, DirectoryLock};
use tandem_disk::replace_file::replace_file;
use tandem_pipeline::{CancelToken, Crew, PipelineError, QueueLimits, Route, Setup, Watch};
use tandem_text::FrontEnd;
use tandem_units::{Bytes, Seconds};

/// Rows a worker takes at once: enough to start a phonemizer rarely, few enough to balance workers.
const ROWS_PER_CHUNK: usize = 32;
/// Limit of the queue between the workers and the writer.
const QUEUE_SIZE: Bytes = Bytes::mib(64);
/// Time between two attempts to take a lock that another process holds.
const LOCK_RETRY: Duration = Duration::from_millis(20);

/// How to prepare; none of it changes the result.
#[derive(Clone, Debug)]
pub struct PrepareOptions {
    /// Threads that process rows.
    pub workers: usize,
    pub features: Features,
    pub change_check: ChangeCheck,
    /// Directory of the cache; none: next to the corpus.
    pub cache_dir: Option<PathBuf>,
    /// Share of unusable rows above which preparing fails.
    pub max_rejected: f64,
    /// Time without progress after which preparing ends with an error; `None`: never.
    pub stall_timeout: Option<Duration>,
    /// The ranks that share the work; none: this process does it alone.
    pub cluster: Option<Cluster>,
}

impl Default for PrepareOptions {
    fn default() -> Self {
        Self {
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            features: Features::OnTheFly,
            change_check: ChangeCheck::Stamps,
            cache_dir: None,
            max_rejected: FileConfig::default().max_rejected,
            stall_timeout: Watch::default().stall_timeout,
            cluster: None,
        }
    }
}

/// More workers than this never help, and each needs a thread and memory for a batch. Machines with many cores may
/// use four for each core.
const MOST_WORKERS: usize = 256;

/// Refuses a number of workers that no machine can use.
pub fn check_workers(workers: usize) -> Result<(), TrainError> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let most = MOST_WORKERS.max(4 * cores);
    if workers <= most {
        return Ok(());
    }
    Err(TrainError::TooManyWorkers { workers, most, cores })
}

/// Receives the progress of a preparation.
pub trait Watcher {
    /// Another process builds the same cache; this one waits for it.
    fn waiting_for(&mut self, owner: &str);
    fn progress(&mut self, done: usize, rows: usize);
}

/// A corpus, ready to be fed.
pub struct Prepared {
    /// The corpus directory.
    pub root: PathBuf,
    pub cache: Arc<Cache>,
    pub front_end: Arc<FrontEnd>,
    pub settings: DataSettings,
    pub summary: Summary,
    /// Rows that cannot be used.
    pub rejected: Vec<RejectedRow>,
}

/// Prepares a corpus, or opens its cache if nothing changed. When stopped by `cancel`, it saves the
/// finished rows for the next preparation and fails with [`PipelineError::Cancelled`].
pub fn prepare(
    corpus: &Path,
    settings: &DataSettings,
    options: &PrepareOptions,
    watcher: &mut dyn Watcher,
    cancel: &CancelToken,
) -> Result<Prepared, TrainError> {
    check_workers(options.workers)?;
    let start = Instant::now();
    let front_end = Arc::new(FrontEnd::new(&settings.text)?);
    MelExtractor::new(settings.mel.clone())?;
    let located = Corpus::locate(corpus, &settings.corpus)?;
    let root = located.root.clone();
    let place = CacheLocation::find(&root, options.cache_dir.as_deref())?;
    let fingerprint = settings.fingerprint(&front_end)?;
    let preparation = Preparation {
        corpus,
        root: &root,
        located,
        directory: place.for_settings(fingerprint),
        place,
        fingerprint,
        settings,
        options,
        front_end,
    };
    let ((cache, rows), counts) = match &options.cluster {
        Some(cluster) if !cluster.is_first() => preparation.help(cluster, watcher, cancel)?,
        Some(cluster) => preparation.lead(cluster, watcher, cancel)?,
        None => match preparation.open_warm()? {
            Ok(warm) => (warm, PrepareCounts::default()),
            Err(_) => preparation.build(None, watcher, cancel)?,
        },
    };
    let mut prepared = preparation.describe(cache, rows, counts)?;
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
        let too_long = self.summary.too_long;
        Err(match usable {
            0 => TrainError::NothingUsable { rejected, rows, list, too_long },
            _ => TrainError::TooManyRejected { rejected, rows, limit, list, too_long },
        })
    }
}

struct Preparation<'a> {
    corpus: &'a Path,
    root: &'a Path,
    located: LocatedCorpus,
    place: CacheLocation,
    directory: PathBuf,
    fingerprint: Fingerprint,
    settings: &'a DataSettings,
    options: &'a PrepareOptions,
    front_end: Arc<FrontEnd>,
}

impl Preparation<'_> {
    /// Rank 0: opens the cache, or builds it with the other ranks. Tells them when they can open it.
    fn lead(
        &self,
        cluster: &Cluster,
        watcher: &mut dyn Watcher,
        cancel: &CancelToken,
    ) -> Result<(WarmCache, PrepareCounts), TrainError> {
        self.check_shared(cluster)?;
        let done = match self.open_warm()? {
            Ok(warm) => (warm, PrepareCounts::default()),
            Err(_) => self.build(Some(cluster), watcher, cancel)?,
        };
        cluster.broadcast(0, Vec::new())?;
        Ok(done)
    }

    /// Every other rank: processes rows for rank 0 if there are any, then opens the cache.
    fn help(
        &self,
        cluster: &Cluster,
        watcher: &mut dyn Watcher,
        cancel: &CancelToken,
    ) -> Result<(WarmCache, PrepareCounts), TrainError> {
        self.check_shared(cluster)?;
        let left = cluster.broadcast(0, Vec::new())?;
        if !left.is_empty() {
            let old = match Cache::open(&self.directory, self.fingerprint) {
                Found::Ready(cache) => Some(Arc::<Cache>::from(cache)),
                Found::Nothing | Found::Unusable(_) => None,
            };
            let context = Arc::new(self.context(decode_leftovers(&left)?, old)?);
            let served = serve(cluster, &context, self.options.workers, cancel);
            served.and_then(|()| Ok(cluster.broadcast(0, Vec::new())?)).map_err(|error| {
                if cancel.is_cancelled() { PipelineError::Cancelled.into() } else { error }
            })?;
        }
        match self.open_warm()? {
            Ok(warm) => Ok((warm, PrepareCounts::default())),
            // A recording changed meanwhile.
            Err(_) => self.build(None, watcher, cancel),
        }
    }

    /// Fails where a rank sees other files: records hold stamps of files, which only one file system has.
    fn check_shared(&self, cluster: &Cluster) -> Result<(), TrainError> {
        let sources =
            serde_json::to_string(&self.stamp_sources()?).map_err(TrainError::Settings)?;
        Ok(cluster.check_equal(&sources, "another corpus directory")?)
    }

    fn build(
        &self,
        cluster: Option<&Cluster>,
        watcher: &mut dyn Watcher,
        cancel: &CancelToken,
    ) -> Result<(WarmCache, PrepareCounts), TrainError> {
        let lock = self.take_lock(watcher, cancel)?;
        // The process that held the lock may have built the same cache.
        let stale = match self.open_warm()? {
            Ok(warm) => return Ok((warm, PrepareCounts::default())),
            Err(stale) => stale,
        };
        let sources = self.stamp_sources()?;
        let rows = Corpus::rows(self.corpus, &self.settings.corpus)?;
        let old = stale.old;
        let draft = Draft::begin(&self.directory, self.fingerprint, lock, old.as_deref())?;
        let leftovers = draft.leftovers(old.as_deref())?;
        if let Some(cluster) = cluster {
            cluster.broadcast(0, encode_leftovers(&leftovers)?)?;
        }
        let context = Arc::new(self.context(leftovers, old.clone())?);
        let mut writer = CacheWriter::new(draft, old);
        let workers = RowWorkers::new(context.clone(), cluster.cloned());
        let written = self.write_rows(rows, workers, &mut writer, watcher, cancel);
        let written = written.and_then(|()| Ok(cluster.map_or(Ok(()), end_service)?));
        match written {
            Ok(()) => {}
            Err(error) => {
                // Report the first error. Rows already written are recovered by their checksums next
                // time, synced or not.
                let _ = writer.suspend();
                return Err(error);
            }
        }
        let meta = Meta {
            sources,
            features: self.options.features == Features::Cached,
            bands: self.settings.mel.bands as u32,
            ..Meta::default()
        };
        let (cache, mut counts) = writer.commit(meta)?;
        counts.damage = match context.damaged.load(Ordering::Relaxed) {
            0 => stale.damage,
            rows => stale.damage.or(Some(format!("{rows} rows of the cache were damaged"))),
        };
        let mut rows = CountedRows::none_of(&cache, self.settings);
        let mut buffer = RowBuffer::default();
        for row in 0..cache.len() {
            cache.read_row(row, &mut buffer).iter().for_each(|row| rows.add(&cache, row));
        }
        Ok(((Arc::new(cache), rows), counts))
    }

    fn take_lock(
        &self,
        watcher: &mut dyn Watcher,
        cancel: &CancelToken,
    ) -> Result<DirectoryLock, TrainError> {
        let mut announced = false;
        loop {
            let root = &self.place.root;
            let failed =
                |source| DataError::Write { path: directory_lock::lock_path(root), source };
            match DirectoryLock::try_take(root).map_err(failed)? {
                Attempt::Held(lock) => return Ok(lock),
                Attempt::Busy(_) if cancel.is_cancelled() => {
                    return Err(PipelineError::Cancelled.into());
                }
                Attempt::Busy(owner) if !announced => watcher.waiting_for(&owner),
                Attempt::Busy(_) => std::thread::sleep(LOCK_RETRY),
            }
            announced = true;
        }
    }

    /// Called before the manifests are read, so that a change during reading makes the cache stale.
    fn stamp_sources(&self) -> Result<Vec<Source>, TrainError> {
        let stamped = self.located.files.iter().map(|path| {
            let stamp = Corpus::stamp(&self.root.join(path))?;
            Ok(Source { path: path.to_string_lossy().into_owned(), stamp })
        });
        stamped.collect()
    }

    fn context(
        &self,
        leftovers: Leftovers,
        old: Option<Arc<Cache>>,
    ) -> Result<PrepareContext, TrainError> {
        let old = old.map(OldRows::of);
        Ok(PrepareContext {
            root: open_root(self.root)?,
            root_path: self.root.to_path_buf(),
            front_end: self.front_end.clone(),
            settings: self.settings.clone(),
            old,
            leftovers,
            change_check: self.options.change_check,
            features: self.options.features,
            damaged: AtomicUsize::new(0),
        })
    }

    fn write_rows(
        &self,
        rows: CorpusRows,
        row_workers: RowWorkers,
        writer: &mut CacheWriter,
        watcher: &mut dyn Watcher,
        cancel: &CancelToken,
    ) -> Result<(), TrainError> {
        let (most, manifests) = (rows.most(), rows.manifests());
        let unread = Arc::new(Mutex::new(Unread::default()));
        let chunks = RowChunks { rows, unread: unread.clone() };
        let mut done = 0;
        let workers = self.options.workers.max(1) + row_workers.elsewhere();
        let hold = QueueLimits::bytes(QUEUE_SIZE).items(4 * workers);
        let crew = Crew::of(workers);
        let process = move || row_workers.next();
        let stall_timeout = self.options.stall_timeout;
        let setup = Setup {
            consumer: "write",
            cancel: cancel.clone(),
            watch: Watch { stall_timeout, ..Watch::default() },
            ..Setup::default()
        };
        let mut feed =
            Route::from(chunks, hold.clone()).then_by(crew, process, hold).start(setup)?;
        while let Some(ProcessedRows(processed)) = feed.next()? {
            done += processed.len();
            for (row, outcome) in processed {
                writer.push(&row, outcome)?;
            }
            watcher.progress(done, most);
        }
        let unread = std::mem::take(&mut *unread.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(error) = unread.error {
            return Err(error.into());
        }
        for row in &unread.rejected {
            writer.push_unread(row, &manifests)?;
        }
        done += unread.rejected.len();
        watcher.progress(done, done);
        Ok(())
    }

    fn describe(
        &self,
        cache: Arc<Cache>,
        rows: CountedRows,
        counts: PrepareCounts,
    ) -> Result<Prepared, TrainError> {
        let mel = &self.settings.mel;
        let CountedRows { counts: row_counts, mut rejected } = rows;
        rejected.sort_by(|a, b| (&a.manifest, a.line).cmp(&(&b.manifest, b.line)));
        let root = self.root.to_path_buf();
        let mut summary = Summary::of(&cache, row_counts, root, mel.rate, mel.hop);
        summary.layout = self.located.layout.name();
        summary.recognised = self.located.description.clone();
        summary.dropped = self.located.dropped;
        summary.fixed = self.located.fixed;
        summary.rebuilt = counts.rebuilt;
        summary.recovered = counts.recovered;
        summary.touched = counts.touched;
        summary.words = counts.words;
        summary.damage = counts.damage;
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

/// Writes the list of unusable rows; removes it where there are none.
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
        // Another process may have removed it first.
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(DataError::Write { path, source }.into())
        }
        _ => Ok((!rejected.is_empty()).then_some(path)),
    }
}

/// Splits rows into chunks. Runs on its own thread, a few chunks ahead of the workers.
struct RowChunks {
    rows: CorpusRows,
    unread: Arc<Mutex<Unread>>,
}

/// What the manifests have besides rows to process.
#[derive(Default)]
struct Unread {
    /// Rows whose manifest line cannot be used.
    rejected: Vec<RejectedRow>,
    /// Why the manifests could not be read to their end.
    error: Option<DataError>,
}

impl Iterator for RowChunks {
    type Item = RowChunk;

    fn next(&mut self) -> Option<RowChunk> {
        let mut chunk = Vec::with_capacity(ROWS_PER_CHUNK);
        while chunk.len() < ROWS_PER_CHUNK
            && let Some(row) = self.rows.next()
        {
            let unread = || self.unread.lock().unwrap_or_else(PoisonError::into_inner);
            match row {
                Ok(CorpusRow::Usable(row)) => chunk.push(row),
                Ok(CorpusRow::Rejected(row)) => unread().rejected.push(row),
                Err(error) => unread().error = Some(error),
            }
        }
        (!chunk.is_empty()).then_some(RowChunk(chunk))
    }
}
