//! The real program on a real disk that fills up: a file system in memory of a few megabytes. Needs the
//! right to mount one; where that is missing the tests say so on stderr and prove nothing.

mod kit;

use kit::Place;
use kit::runs::newest;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A mounted file system, until dropped.
struct SmallDisk {
    at: PathBuf,
}

impl SmallDisk {
    fn mount(place: &Place, size: &str) -> Option<SmallDisk> {
        let at = place.inside("disk");
        fs::create_dir(&at).unwrap();
        let mounted = mount(&["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"], &at);
        if !mounted {
            #[allow(clippy::print_stderr, reason = "a test that proves nothing must say so")]
            {
                eprintln!("NOT TESTED: no file system may be mounted here");
            }
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
fn a_run_that_fills_the_disk_keeps_what_it_has_and_goes_on_when_there_is_room() {
    let place = Place::new();
    place.run(&["prepare", "demo", "--cache-dataset", "--json"]).json();
    let Some(disk) = SmallDisk::mount(&place, "3m") else { return };
    let train = |more: &[&str]| {
        let args = [
            &["train", "--train-data", "demo", "--cache-dataset", "--model-size", "micro"][..],
            &["--batch-size", "2", "--frame-budget", "800", "--checkpoint-every", "1"],
            &["--keep", "100", "--sample-every", "1000", "--max-steps", "30"],
            &["--checkpoint-dir", "disk/run"],
            more,
        ];
        place.run(&args.concat())
    };
    let said = train(&[]);
    said.failed(&["No space left", "disk/run/", "older ones are intact", "disk space"]);
    let kept = newest(&place.inside("disk/run")).expect("the first ones had room");
    assert!(kept < 30, "the disk was too large: {kept}");
    disk.grow("200m");
    let said = train(&["--resume"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.err.contains(&format!("goes on after step {kept}")), "{said:?}");
    assert!(!said.err.contains("passed over"), "{said:?}");
    assert_eq!(newest(&place.inside("disk/run")), Some(30));
}

#[test]
fn preparing_on_a_disk_that_is_too_small_says_so_and_goes_on_when_there_is_room() {
    let place = Place::new();
    let Some(disk) = SmallDisk::mount(&place, "4m") else { return };
    let prepare = ["prepare", "demo", "--cache-dataset", "--cache-dir", "disk", "--json"];
    let said = place.run(&prepare);
    said.failed(&["cannot write", "No space left", "disk/"]);
    disk.grow("200m");
    let summary = place.run(&prepare).json();
    let number = |name: &str| summary[name].as_u64().unwrap();
    assert_eq!(number("rebuilt") + number("recovered"), 150, "{summary}");
    assert!(number("recovered") > 10, "{summary}");
}
