//! The control group of this process: what a container may use, and what it uses.
//!
//! In: `/proc/self/cgroup` and `/sys/fs/cgroup` under a root, version 1 or 2. Out: one device
//! `cgroup`: utilisation of the CPUs it may use, memory in use (including the page cache, as the kernel
//! counts it) and the limit. The smallest limit from the group up to the root of the tree counts. A
//! system without control groups gives no sample, which is not an error.

use super::host::processors;
use super::processor_share::ProcessorShare;
use super::system_file::{number, text};
use super::{SampleError, Source};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tandem_telemetry::event::{DeviceRole, DeviceSample};
use tandem_units::Bytes;

/// Larger limits mean no limit: version 1 writes a number near 2^63.
const NO_LIMIT: u64 = 1 << 60;

/// The control group of this process.
pub struct Cgroup {
    root: PathBuf,
    share: ProcessorShare,
}

/// The directories of one controller: that of this group and those above it, innermost first.
type Lineage = Vec<PathBuf>;

/// The directories of the controllers. A container may see only part of the tree.
enum Tree {
    One(Lineage),
    PerController { processor: Lineage, account: Lineage, memory: Lineage },
}

impl Cgroup {
    /// `root` is usually `/`.
    pub fn new(root: &Path) -> Cgroup {
        Cgroup { root: root.to_path_buf(), share: ProcessorShare::default() }
    }

    /// What the group and those above it may still allocate, with the page cache that the kernel gives back; `None` without
    /// a limit.
    pub fn memory_left(&self) -> Option<Bytes> {
        let tree = self.tree().ok()??;
        let limit = tree.memory_limit().ok()??;
        let used = tree.memory_used().ok()?.unwrap_or(0);
        let used = used.saturating_sub(tree.page_cache());
        Some(Bytes(limit.saturating_sub(used)))
    }

    fn tree(&self) -> Result<Option<Tree>, SampleError> {
        let Some(groups) = text(&self.root.join("proc/self/cgroup"))? else { return Ok(None) };
        let top = self.root.join("sys/fs/cgroup");
        let groups: Vec<(&str, &str)> = groups.lines().filter_map(group).collect();
        let of = |name: &str| {
            let named =
                |(controllers, _): &&(&str, &str)| controllers.split(',').any(|c| c == name);
            groups.iter().find(named).map_or("/", |(_, path)| path)
        };
        if top.join("cgroup.controllers").exists() {
            return Ok(Some(Tree::One(lineage(&top, of("")))));
        }
        let under = |name: &str| lineage(&top.join(name), of(name));
        Ok(Some(Tree::PerController {
            processor: under("cpu"),
            account: under("cpuacct"),
            memory: under("memory"),
        }))
    }
}

impl Source for Cgroup {
    fn name(&self) -> &str {
        "cgroup"
    }

    fn sample(&mut self) -> Result<Option<DeviceSample>, SampleError> {
        let Some(tree) = self.tree()? else { return Ok(None) };
        let all = processors();
        let processors = tree.processors()?.map_or(all, |limit| limit.min(all));
        let sample = DeviceSample {
            utilisation: tree
                .processor_time()?
                .and_then(|used| self.share.since_last(Instant::now(), used, processors)),
            memory_used: tree.memory_used()?.map(Bytes),
            memory_total: tree.memory_limit()?.map(Bytes),
            ..DeviceSample::new("cgroup".into(), DeviceRole::Host)
        };
        Ok((!sample.is_empty()).then_some(sample))
    }
}

impl Tree {
    /// CPUs that the group may use in parallel, if limited.
    fn processors(&self) -> Result<Option<f64>, SampleError> {
        match self {
            Tree::One(lineage) => lowest(lineage, |group| {
                let limit = text(&group.join("cpu.max"))?;
                Ok(limit.and_then(|line| {
                    let (quota, period) = line.split_once(' ')?;
                    Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
                }))
            }),
            Tree::PerController { processor, .. } => lowest(processor, |group| {
                // Minus one means no limit.
                let quota = text(&group.join("cpu.cfs_quota_us"))?;
                let quota = quota.and_then(|quota| quota.parse::<f64>().ok()).filter(|q| *q > 0.0);
                let period = number(&group.join("cpu.cfs_period_us"))?;
                Ok(quota.zip(period).map(|(quota, period)| quota / period as f64))
            }),
        }
    }

    /// CPU time of the group.
    fn processor_time(&self) -> Result<Option<Duration>, SampleError> {
        match self {
            Tree::One(lineage) => {
                let Some(group) = lineage.first() else { return Ok(None) };
                let figures = text(&group.join("cpu.stat"))?.unwrap_or_default();
                let used = figures.lines().find_map(|line| line.strip_prefix("usage_usec "));
                Ok(used.and_then(|used| used.parse().ok()).map(Duration::from_micros))
            }
            Tree::PerController { account, .. } => {
                Ok(first(account, "cpuacct.usage")?.map(Duration::from_nanos))
            }
        }
    }

    fn memory_used(&self) -> Result<Option<u64>, SampleError> {
        match self {
            Tree::One(lineage) => first(lineage, "memory.current"),
            Tree::PerController { memory, .. } => first(memory, "memory.usage_in_bytes"),
        }
    }

    /// File pages of the group, which the kernel gives back under pressure.
    fn page_cache(&self) -> u64 {
        let (Tree::One(lineage) | Tree::PerController { memory: lineage, .. }) = self;
        let stat =
            lineage.first().and_then(|group| text(&group.join("memory.stat")).ok().flatten());
        let stat = stat.unwrap_or_default();
        let of =
            |key| stat.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok());
        ["inactive_file ", "active_file "].into_iter().filter_map(of).sum::<u64>()
    }

    fn memory_limit(&self) -> Result<Option<u64>, SampleError> {
        let (lineage, name) = match self {
            Tree::One(lineage) => (lineage, "memory.max"),
            Tree::PerController { memory, .. } => (memory, "memory.limit_in_bytes"),
        };
        lowest(lineage, |group| {
            let limit = text(&group.join(name))?;
            Ok(limit.and_then(|limit| limit.parse::<u64>().ok()).filter(|limit| *limit < NO_LIMIT))
        })
    }
}

/// Controllers and path of a line such as `4:memory:/user` or `0::/user`.
fn group(line: &str) -> Option<(&str, &str)> {
    let (_number, rest) = line.split_once(':')?;
    rest.split_once(':')
}

/// The visible directories of a group and those above it, innermost first.
fn lineage(top: &Path, path: &str) -> Lineage {
    let inner = top.join(path.trim_start_matches('/'));
    let up = inner.ancestors().take_while(|group| group.starts_with(top));
    up.filter(|group| group.is_dir()).map(Path::to_path_buf).collect()
}

/// The figure of the innermost group.
fn first(lineage: &Lineage, name: &str) -> Result<Option<u64>, SampleError> {
    lineage.first().map_or(Ok(None), |group| number(&group.join(name)))
}

/// The smallest limit of the group and those above it.
fn lowest<T: PartialOrd>(
    lineage: &Lineage,
    limit: impl Fn(&Path) -> Result<Option<T>, SampleError>,
) -> Result<Option<T>, SampleError> {
    let mut lowest = None;
    for group in lineage {
        let found = limit(group)?;
        if let Some(found) = found
            && lowest.as_ref().is_none_or(|lowest| found < *lowest)
        {
            lowest = Some(found);
        }
    }
    Ok(lowest)
}
