//! What kind of storage a path is on: solid-state, rotating, network, memory.
//!
//! In: a path. Out: [`Storage`], from the kernel's lists of mounts and block devices. What the kernel does not report
//! is "not known". Reads small files of `/proc` and `/sys` only; other systems than Linux report nothing.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// The storage of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    pub kind: StorageKind,
    /// As the kernel names it, such as `ext4`; none where unknown.
    pub file_system: Option<String>,
    /// The block device, such as `nvme0n1`; none for a network or memory.
    pub device: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageKind {
    Nvme,
    SolidState,
    Rotating,
    /// A disk of a virtual machine: what is behind it is not visible.
    Virtual,
    Network,
    Memory,
    Unknown,
}

impl Storage {
    /// The storage of an existing path, or of the nearest directory above it that exists.
    pub fn of(path: &Path) -> Storage {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let existing = path.ancestors().find_map(|part| fs::canonicalize(part).ok());
        let existing = existing.or_else(|| std::env::current_dir().ok()).unwrap_or_default();
        Storage::find(&existing, &mounts, Path::new("/sys/dev/block"))
    }

    /// The same with the kernel's lists as they are given.
    fn find(path: &Path, mounts: &str, blocks: &Path) -> Storage {
        let below = mounts.lines().filter_map(Mount::parse).filter(|m| path.starts_with(&m.point));
        // Of two mounts at the same place the later one hides the earlier one.
        let Some(mount) = below.max_by_key(|mount| mount.point.components().count()) else {
            return Storage { kind: StorageKind::Unknown, file_system: None, device: None };
        };
        let (kind, device) = match by_file_system(&mount.file_system) {
            Some(kind) => (kind, None),
            None => block_device(&blocks.join(&mount.number)),
        };
        Storage { kind, file_system: Some(mount.file_system), device }
    }
}

struct Mount {
    /// `259:1`
    number: String,
    point: PathBuf,
    file_system: String,
}

impl Mount {
    /// `36 35 259:1 / /data rw,noatime shared:1 - ext4 /dev/nvme0n1p1 rw`
    fn parse(line: &str) -> Option<Mount> {
        let (before, after) = line.split_once(" - ")?;
        let mut words = before.split(' ').skip(2);
        let number = words.next()?.to_string();
        let point = words.nth(1)?.replace("\\040", " ");
        let file_system = after.split(' ').next()?.to_string();
        Some(Mount { number, point: PathBuf::from(point), file_system })
    }
}

fn by_file_system(name: &str) -> Option<StorageKind> {
    const NETWORK: [&str; 11] = [
        "nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "lustre", "gpfs", "beegfs", "afs", "virtiofs",
    ];
    match name {
        "tmpfs" | "ramfs" => Some(StorageKind::Memory),
        "fuse.sshfs" | "fuse.glusterfs" | "fuse.s3fs" | "fuse.gcsfuse" | "fuse.rclone" => {
            Some(StorageKind::Network)
        }
        name if NETWORK.contains(&name) => Some(StorageKind::Network),
        _ => None,
    }
}

/// Kind and name of a block device; a partition is part of the device above it.
fn block_device(entry: &Path) -> (StorageKind, Option<String>) {
    let Ok(place) = fs::canonicalize(entry) else { return (StorageKind::Unknown, None) };
    let whole = match place.join("partition").exists() {
        true => place.parent().map(Path::to_path_buf).unwrap_or(place),
        false => place,
    };
    let name = whole.file_name().map(|name| name.to_string_lossy().into_owned());
    let starts = |prefix: &str| name.as_deref().is_some_and(|name| name.starts_with(prefix));
    let rotates = fs::read_to_string(whole.join("queue/rotational"));
    let kind = match rotates.ok().as_deref().map(str::trim) {
        _ if starts("nvme") => StorageKind::Nvme,
        _ if starts("vd") || starts("xvd") => StorageKind::Virtual,
        Some("0") => StorageKind::SolidState,
        Some("1") => StorageKind::Rotating,
        _ => StorageKind::Unknown,
    };
    (kind, name)
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            StorageKind::Nvme => "NVMe SSD",
            StorageKind::SolidState => "SSD",
            StorageKind::Rotating => "rotating disk (HDD)",
            StorageKind::Virtual => "virtual disk, type not visible",
            StorageKind::Network => "network",
            StorageKind::Memory => "memory",
            StorageKind::Unknown => "type not known",
        })?;
        let facts: Vec<&str> =
            [self.file_system.as_deref(), self.device.as_deref()].into_iter().flatten().collect();
        if facts.is_empty() { Ok(()) } else { write!(f, " ({})", facts.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 27 0:21 / /proc rw - proc proc rw
27 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw
30 27 8:1 / /mnt/old\\040disk rw - xfs /dev/sda1 rw
31 27 8:17 / /fast rw - ext4 /dev/sdb1 rw
32 27 254:0 / /vm rw - ext4 /dev/vda rw
33 27 0:44 / /net rw - nfs4 server:/voices rw
34 27 0:45 / /dev/shm rw - tmpfs tmpfs rw
";

    fn machine() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (number, device, part, rotates) in [
            ("259:2", "nvme0n1", Some("nvme0n1p2"), "0"),
            ("8:1", "sda", Some("sda1"), "1"),
            ("8:17", "sdb", Some("sdb1"), "0"),
            ("254:0", "vda", None, "1"),
        ] {
            let whole = folder.path().join("devices").join(device);
            fs::create_dir_all(whole.join("queue")).unwrap();
            fs::write(whole.join("queue/rotational"), format!("{rotates}\n")).unwrap();
            let entry = part.map_or(whole.clone(), |part| whole.join(part));
            if part.is_some() {
                fs::create_dir_all(&entry).unwrap();
                fs::write(entry.join("partition"), "1\n").unwrap();
            }
            std::os::unix::fs::symlink(entry, folder.path().join(number)).unwrap();
        }
        folder
    }

    #[test]
    fn the_kind_follows_from_the_mount_and_its_device() {
        let machine = machine();
        for (path, said) in [
            ("/home/user/voices", "NVMe SSD (ext4, nvme0n1)"),
            ("/mnt/old disk/voices", "rotating disk (HDD) (xfs, sda)"),
            ("/fast", "SSD (ext4, sdb)"),
            ("/vm/voices", "virtual disk, type not visible (ext4, vda)"),
            ("/net/voices", "network (nfs4)"),
            ("/dev/shm/voices", "memory (tmpfs)"),
            ("/faster/voices", "NVMe SSD (ext4, nvme0n1)"),
        ] {
            let found = Storage::find(Path::new(path), MOUNTS, machine.path());
            assert_eq!(found.to_string(), said, "{path}");
        }
        let none = Storage::find(Path::new("/data"), "", machine.path());
        assert_eq!(none.to_string(), "type not known");
    }

    #[test]
    fn a_path_that_does_not_exist_yet_is_on_the_storage_of_its_parent() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Storage::of(&folder.path().join("new/run")), Storage::of(folder.path()));
    }
}
