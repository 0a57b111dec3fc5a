//! The real program on a disk that fills up: a tmpfs of a few megabytes. Needs the right to mount one;
//! without it the tests check nothing, and are counted as such.

mod support;

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use support::runs::{CHECKPOINT_SKIPPED, newest};
use support::{TestDir, not_tested};

/// A mounted file system, until dropped.
struct SmallDisk {
    at: PathBuf,
}

impl SmallDisk {
    fn mount(dir: &TestDir, size: &str) -> Option<SmallDisk> {
        let at = dir.path("disk");
        fs::create_dir(&at).unwrap();
        let mounted = mount(&["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"], &at);
        if !mounted {
            not_tested("a full disk: no file system may be mounted here");
            return None;
        }
        Some(SmallDisk { at })
    }

    fn grow(&self, size: &str) {
        assert!(mount(&["-o", &format!("remount,size={size}"), "tmpfs"], &self.at));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.at).status();
    }
}

fn mount(args: &[&str], at: &PathBuf) -> bool {
    let mounted = Command::new("mount").args(args).arg(at).output();
    mounted.is_ok_and(|mounted| mounted.status.success())
}

#[test]
fn a_run_on_a_full_disk_keeps_its_checkpoints_and_resumes_when_there_is_space() {
    let dir = TestDir::new();
    dir.run(&["prepare", "demo", "--cache-dataset", "--json"]).json();
    let Some(disk) = SmallDisk::mount(&dir, "3m") else { return };
    let train = |more: &[&str]| {
        let args = [
            &["train", "--train-data", "demo", "--cache-dataset", "--model-size", "micro"][..],
            &["--batch-size", "2", "--frame-budget", "800", "--checkpoint-every", "1"],
            &["--keep", "100", "--sample-every", "1000", "--max-steps", "30"],
            &["--checkpoint-dir", "disk/run"],
            more,
        ];
        dir.run(&args.concat())
    };
    let output = train(&[]);
    output.assert_failed(&["No space left", "disk/run/", "are intact", "disk space"]);
    let last = newest(&dir.path("disk/run")).expect("the first checkpoints fit");
    assert!(last < 30, "the disk was too large: {last}");
    disk.grow("200m");
    let output = train(&["--resume"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.err.contains(&format!("resumed at step {last}")), "{output:?}");
    assert!(!output.err.contains(CHECKPOINT_SKIPPED), "{output:?}");
    assert_eq!(newest(&dir.path("disk/run")), Some(30));
}

#[test]
fn preparing_on_a_full_disk_fails_and_continues_when_there_is_space() {
    let dir = TestDir::new();
    let Some(disk) = SmallDisk::mount(&dir, "4m") else { return };
    let prepare = ["prepare", "demo", "--cache-dataset", "--cache-dir", "disk", "--json"];
    let output = dir.run(&prepare);
    output.assert_failed(&["cannot write", "No space left", "disk/"]);
    disk.grow("200m");
    let summary = dir.run(&prepare).json();
    let number = |name: &str| summary[name].as_u64().unwrap();
    assert_eq!(number("rebuilt") + number("recovered"), 150, "{summary}");
    assert!(number("recovered") > 10, "{summary}");
}
