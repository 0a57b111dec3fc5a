//! Tuning results and compiled kernels, stored between processes by the device library.
//!
//! In: a directory, and the devices of a backend. Out: a database file for exactly these devices, their driver, this
//! version and this kind of products; [`report`] says what was in it and what is new. The library reads and writes
//! it. A file that cannot be read is moved aside and started again: nothing here fails a run. Without a directory
//! nothing is stored.

use super::{DeviceId, F32Products, KernelReport};
use crate::inventory::FoundDevice;
use cubecl_environment::environment;
use cubecl_environment::persistence::{Access, CacheConfig, Database};
use cubecl_environment::records::{Record, RecordLevel, Records, Stamped};
use cubecl_runtime::config::{CubeClRuntimeConfig, RuntimeConfig};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tandem_telemetry::event::Kernels;
use tandem_units::panic_guard::catch_panic;

static CACHE: Mutex<Cache> = Mutex::new(Cache { directory: None, active: None, tf32: Vec::new() });

struct Cache {
    /// Where files are; nothing is stored without one.
    directory: Option<PathBuf>,
    active: Option<Active>,
    /// Indices of the devices that were opened with TF32.
    tf32: Vec<usize>,
}

/// The file in use.
struct Active {
    name: String,
    path: PathBuf,
    stored: Stored,
    fault: Option<String>,
}

fn cache() -> MutexGuard<'static, Cache> {
    CACHE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stores kernels in this directory from now on. Before the first device is opened.
pub(super) fn store_in(directory: &Path) {
    cache().directory = Some(directory.to_path_buf());
}

/// Before a device is opened: makes the library use the file for all devices of this backend. Which kernel is the
/// fastest depends on the kind of products, and the library does not ask for it: a tuned TF32 kernel must not be
/// used where full products are wanted.
pub(super) fn use_for(id: DeviceId, products: F32Products, found: &[FoundDevice]) {
    let mut cache = cache();
    let Some(directory) = cache.directory.clone() else { return store_nothing() };
    if products == F32Products::Tf32 {
        cache.tf32.push(id.index);
    }
    let name = name_of(found, &cache.tf32);
    if cache.active.as_ref().is_some_and(|active| active.name == name) {
        return;
    }
    let path = directory.join(environment::file_name(&name));
    let (stored, fault) = match fs::create_dir_all(&directory) {
        Ok(()) => inspect(&path),
        Err(error) => {
            let fault = format!("kernels cannot be stored in `{}`: {error}", directory.display());
            (Stored::default(), Some(fault))
        }
    };
    set_library(|config| {
        config.environment.path = CacheConfig::Directory(directory.clone());
        config.environment.name.clone_from(&name);
        // Without a build id the library cannot tell the kernels of one build from those of another.
        config.compilation.cache = buildid::build_id().is_some();
    });
    environment::set_root(directory);
    environment::activate(&name);
    cache.active = Some(Active { name, path, stored, fault });
}

/// The kernels of this process and of earlier ones; `None` if no device that compiles kernels was opened.
pub(super) fn report() -> Option<KernelReport> {
    let cache = cache();
    let Active { path, stored, fault, .. } = cache.active.as_ref()?;
    let read = || Database::open_at(path, Access::ReadWrite).map(|file| Stored::in_file(&file));
    let now = catch_panic(read).unwrap_or_else(Err).unwrap_or(*stored);
    let kernels = Kernels {
        cached_tuned: stored.tuned,
        cached_compiled: stored.compiled,
        saved: stored.took.into(),
        tuned: now.tuned.saturating_sub(stored.tuned),
        compiled: now.compiled.saturating_sub(stored.compiled),
        took: now.took.saturating_sub(stored.took).into(),
    };
    Some(KernelReport { kernels, fault: fault.clone() })
}

/// Backend, cards, driver, version of Tandem, and the devices with TF32, as the name of a file.
fn name_of(found: &[FoundDevice], tf32: &[usize]) -> String {
    let backend = found.first().map_or("none", |device| device.id.backend.name());
    let mut parts = vec![backend.to_string()];
    parts.extend(found.iter().map(|device| device.name.clone()));
    parts.extend(found.first().and_then(|device| device.driver.clone()));
    parts.push(format!("tandem {}", env!("CARGO_PKG_VERSION")));
    let mut tf32 = tf32.to_vec();
    tf32.sort_unstable();
    tf32.dedup();
    parts.extend(tf32.iter().map(|index| format!("tf32 {index}")));
    let whole = parts.join("_");
    let name: String = whole
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' })
        .collect();
    // File systems end at 255 bytes, and the library adds endings.
    if name.len() <= 160 {
        return name;
    }
    let mut hasher = DefaultHasher::new();
    whole.hash(&mut hasher);
    format!("{}-{:016x}", &name[..140], hasher.finish())
}

/// Nothing is read or written: the library would otherwise choose a directory of its own. What it measured of a card stays
/// in memory, where it falls back to if its file cannot be opened: without that cache it measures the card again for
/// every operation that it tunes.
fn store_nothing() {
    let nowhere = PathBuf::from("/dev/null");
    set_library(|config| {
        config.autotune.disable_cache = true;
        config.environment.path = CacheConfig::Directory(nowhere.clone());
        config.compilation.cache = false;
        config.environment.records.level = RecordLevel::Off;
    });
    environment::set_root(nowhere);
}

/// Changes the library's settings, unless it has read them already.
fn set_library(change: impl FnOnce(&mut CubeClRuntimeConfig)) {
    let mut config = CubeClRuntimeConfig::from_current_dir().override_from_env();
    change(&mut config);
    CubeClRuntimeConfig::try_set(config);
}

/// What a file holds. One that cannot be read to its end is moved aside, unless another process holds it.
fn inspect(path: &Path) -> (Stored, Option<String>) {
    let why = match read_all(path) {
        Ok(stored) => return (stored, None),
        Err(why) => why,
    };
    let file = path.display();
    if ["busy", "lock"].iter().any(|word| why.to_lowercase().contains(word)) {
        let fault = format!("the kernels in `{file}` are not used: {why}");
        return (Stored::default(), Some(fault));
    }
    let fault = match move_aside(path) {
        Ok(()) => format!(
            "the kernels in `{file}` are unreadable and were moved to `{file}.damaged`: {why}"
        ),
        Err(error) => {
            format!("the kernels in `{file}` are unreadable ({why}) and cannot be moved: {error}")
        }
    };
    (Stored::default(), Some(fault))
}

/// The file under another name, and without the journals beside it.
fn move_aside(path: &Path) -> std::io::Result<()> {
    let beside = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    fs::rename(path, beside(".damaged"))?;
    let journal = beside("-").into_os_string();
    let siblings = fs::read_dir(path.parent().unwrap_or(Path::new(".")))?.flatten();
    for sibling in siblings.map(|entry| entry.path()) {
        if sibling.as_os_str().as_encoded_bytes().starts_with(journal.as_encoded_bytes()) {
            fs::remove_file(sibling)?;
        }
    }
    Ok(())
}

fn read_all(path: &Path) -> Result<Stored, String> {
    let read = || {
        let file = Database::open_at(path, Access::ReadWrite)?;
        for namespace in file.summary() {
            let mut entries = 0;
            file.scan(&namespace.namespace, &mut |_, _| entries += 1);
            if entries != namespace.entries {
                let all = namespace.entries;
                return Err(format!(
                    "{entries} of {all} entries of {} are readable",
                    namespace.namespace
                ));
            }
        }
        Ok(Stored::in_file(&file))
    };
    catch_panic(read).unwrap_or_else(Err)
}

/// Tuning results and kernels in a file, and what they cost.
#[derive(Clone, Copy, Default)]
struct Stored {
    tuned: u64,
    compiled: u64,
    took: Duration,
}

impl Stored {
    fn in_file(file: &Database) -> Stored {
        let records = Records::new(file);
        let tuned: Vec<Stamped<Tuned>> = records.read();
        let compiled: Vec<Stamped<Compiled>> = records.read();
        let tuned = tuned.into_iter().filter(|tune| tune.record.stored);
        let tuned: Vec<_> = tuned.map(|tune| (tune.stamp, tune.record.wall)).collect();
        let compiled = compiled.into_iter().filter(|kernel| kernel.record.outcome != "Loaded");
        let compiled: Vec<_> = compiled.map(|one| (one.stamp, one.record.duration)).collect();
        // Tuning an operation compiles its candidates: overlapping times count once.
        let mut sessions: BTreeMap<_, Vec<(Duration, Duration)>> = BTreeMap::new();
        for (stamp, took) in tuned.iter().chain(&compiled) {
            sessions.entry(stamp.session).or_default().push((stamp.offset, stamp.offset + *took));
        }
        let took = sessions.into_values().map(covered).sum();
        Stored { tuned: tuned.len() as u64, compiled: compiled.len() as u64, took }
    }
}

/// The time that these intervals cover together.
fn covered(mut intervals: Vec<(Duration, Duration)>) -> Duration {
    intervals.sort_unstable();
    let (mut covered, mut end) = (Duration::ZERO, Duration::ZERO);
    for (from, to) in intervals {
        covered += to.saturating_sub(from.max(end));
        end = end.max(to);
    }
    covered
}

/// What is read of the library's record of a tuned operation.
#[derive(Deserialize)]
struct Tuned {
    wall: Duration,
    /// Whether the result is in the file.
    stored: bool,
}

impl Record for Tuned {
    const KIND: &'static str = "autotune";
}

/// What is read of the library's record of a kernel.
#[derive(Deserialize)]
struct Compiled {
    outcome: String,
    duration: Duration,
}

impl Record for Compiled {
    const KIND: &'static str = "compilation";
}
