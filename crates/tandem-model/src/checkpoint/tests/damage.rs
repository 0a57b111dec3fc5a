//! Damaged files: what is loaded is either what was saved, or the checkpoint before it.

use super::*;
use crate::checkpoint::{manifest, sealed};
use proptest::prelude::*;
use std::fs::OpenOptions;
use std::sync::LazyLock;

const FILES: [&str; 4] =
    ["manifest.json", "optimizer.safetensors", "state.json", "weights.safetensors"];

/// Two checkpoints; tests damage the newer one.
fn two() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let mut checkpoints = open(dir.path(), 2);
    save(&mut checkpoints, 100);
    let newest = save(&mut checkpoints, 200).path;
    (dir, newest)
}

/// A copy of the same two: saving them for each of hundreds of cases would take too long.
fn copy_of_two() -> (tempfile::TempDir, PathBuf) {
    static TWO: LazyLock<(tempfile::TempDir, PathBuf)> = LazyLock::new(two);
    let dir = tempfile::tempdir().unwrap();
    for name in ["step-00000100", "step-00000200"] {
        fs::create_dir(dir.path().join(name)).unwrap();
        for file in FILES {
            let place = Path::new(name).join(file);
            fs::copy(TWO.0.path().join(&place), dir.path().join(&place)).unwrap();
        }
    }
    let newest = dir.path().join("step-00000200");
    (dir, newest)
}

/// After this damage the older checkpoint is loaded, and the message gives the reason.
#[track_caller]
fn check(damage: impl FnOnce(&Path), why: &str) {
    let (dir, newest) = two();
    damage(&newest);
    let loaded = load_newest(dir.path(), Parts::All).unwrap().expect("the older one");
    assert_same(&loaded.contents, &contents(100));
    let [broken] = &loaded.passed_over[..] else { panic!("{:?}", loaded.passed_over) };
    assert_eq!(broken.path, newest);
    assert!(broken.to_string().contains(why), "{broken}");
    let error = load(&newest, Parts::All).unwrap_err();
    assert!(matches!(error, CheckpointError::Broken { .. }), "{error}");
    assert!(error.hint().is_some());
}

fn rewrite(path: PathBuf, change: impl FnOnce(String) -> String) {
    let text = fs::read_to_string(&path).unwrap();
    fs::write(path, change(text)).unwrap();
}

#[test]
fn each_kind_of_damage_is_named() {
    check(|path| fs::remove_file(path.join("manifest.json")).unwrap(), "is missing");
    check(|path| fs::remove_file(path.join("state.json")).unwrap(), "`state.json` is missing");
    check(|path| fs::write(path.join("manifest.json"), "").unwrap(), "is invalid");
    let cut = |path: &Path| {
        let file = OpenOptions::new().write(true).open(path.join("weights.safetensors")).unwrap();
        file.set_len(1000).unwrap();
    };
    check(cut, "`weights.safetensors` has 1000 bytes instead of ");
    let other_version = |path: &Path| {
        rewrite(path.join("manifest.json"), |s| s.replace("\"version\": 1", "\"version\": 2"))
    };
    check(other_version, "format version 2, this program reads version 1");
    let other_step = |path: &Path| {
        rewrite(path.join("manifest.json"), |s| s.replace("\"step\":200", "\"step\":300"))
    };
    check(other_step, "`manifest.json` was changed or damaged");
    let edited = |path: &Path| rewrite(path.join("state.json"), |s| s.replace("200", "201"));
    check(edited, "`state.json` was changed or damaged");
    let replaced = |path: &Path| {
        fs::remove_file(path.join("weights.safetensors")).unwrap();
        fs::create_dir(path.join("weights.safetensors")).unwrap();
    };
    check(replaced, "is not a file");
    let huge = |path: &Path| {
        let file = OpenOptions::new().write(true).open(path.join("manifest.json")).unwrap();
        file.set_len(1 << 40).unwrap();
    };
    check(huge, "`manifest.json` is larger than 1.0 MiB");
}

#[test]
fn a_checkpoint_under_the_name_of_another_step_is_skipped() {
    let (dir, newest) = two();
    fs::rename(&newest, dir.path().join("step-00000300")).unwrap();
    let loaded = load_newest(dir.path(), Parts::All).unwrap().unwrap();
    assert_eq!(loaded.contents.step, 100);
    assert!(loaded.passed_over[0].to_string().contains("named after step 300"));
}

#[test]
fn a_manifest_with_a_valid_checksum_cannot_name_files_outside() {
    let entry = |name: &str| {
        let bytes = fs::read("/etc/hostname").unwrap_or_default();
        let blake3 = blake3::hash(&bytes).to_hex().to_string();
        manifest::FileEntry { name: name.into(), bytes: bytes.len() as u64, blake3 }
    };
    for name in ["../../../etc/hostname", "/etc/hostname", "../x.json", "a/b.json", ".json"] {
        let list = manifest::Manifest { program: "x".into(), step: 200, files: vec![entry(name)] };
        let text = sealed::seal(&list).unwrap();
        check(|path| fs::write(path.join("manifest.json"), &text).unwrap(), "it lists a file");
    }
}

#[test]
fn tensors_of_unsupported_types_are_refused() {
    let view = safetensors::tensor::TensorView::new(safetensors::Dtype::F16, vec![1], &[0, 0]);
    let bytes = safetensors::serialize([("half", view.unwrap())], None).unwrap();
    let list = manifest::Manifest {
        program: "x".into(),
        step: 200,
        files: vec![manifest::FileEntry {
            name: "weights.safetensors".into(),
            bytes: bytes.len() as u64,
            blake3: blake3::hash(&bytes).to_hex().to_string(),
        }],
    };
    let damage = |path: &Path| {
        fs::write(path.join("weights.safetensors"), &bytes).unwrap();
        fs::write(path.join("manifest.json"), sealed::seal(&list).unwrap()).unwrap();
    };
    check(damage, "tensor `half` has the unsupported type F16");
}

#[test]
fn a_damaged_best_mark_is_reported_and_nothing_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let mut checkpoints = open(dir.path(), 1);
    checkpoints.save(&contents(100), Mark::Best { score: 0.5 }).unwrap();
    rewrite(dir.path().join("best.json"), |text| text.replace("0.5", "0.1"));
    let error = checkpoints.best().unwrap_err();
    assert!(matches!(error, CheckpointError::BestUnreadable { .. }), "{error}");
    let saved = save(&mut checkpoints, 200);
    assert_eq!((saved.tidied.removed.len(), saved.tidied.failed.len()), (0, 1));
    let loaded = load_best(dir.path(), Parts::All).unwrap().unwrap();
    assert_eq!((loaded.contents.step, loaded.passed_over.len()), (200, 1));
    assert_eq!(checkpoints.mark_best(200, 0.4).unwrap(), Marked::Yes, "the next mark repairs it");
    assert_eq!(checkpoints.best().unwrap().unwrap().score, 0.4);
}

#[test]
fn the_newest_is_loaded_instead_of_a_damaged_best() {
    let dir = tempfile::tempdir().unwrap();
    let mut checkpoints = open(dir.path(), 1);
    let best = checkpoints.save(&contents(100), Mark::Best { score: 0.5 }).unwrap().path;
    save(&mut checkpoints, 200);
    fs::write(best.join("state.json"), "{}").unwrap();
    let loaded = load_best(dir.path(), Parts::All).unwrap().unwrap();
    assert_eq!((loaded.contents.step, &loaded.passed_over[0].path), (200, &best));
}

/// One kind of damage to a file.
#[derive(Clone, Debug)]
enum Damage {
    Cut(f64),
    Flip(f64, u8),
    Zero(f64, usize),
    Append(Vec<u8>),
    Remove,
    Swap(usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        (0.0..1.0).prop_map(Damage::Cut),
        ((0.0..1.0), 0u8..8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        ((0.0..1.0), 1usize..600).prop_map(|(at, length)| Damage::Zero(at, length)),
        prop::collection::vec(any::<u8>(), 1..20).prop_map(Damage::Append),
        Just(Damage::Remove),
        (0usize..4).prop_map(Damage::Swap),
    ]
}

fn apply(damage: &Damage, path: &Path, file: &str) {
    let target = path.join(file);
    let mut bytes = fs::read(&target).unwrap_or_default();
    let place = |at: &f64, length: usize| ((*at * length as f64) as usize).min(length);
    match damage {
        Damage::Cut(at) => bytes.truncate(place(at, bytes.len())),
        Damage::Flip(at, bit) => {
            let at = place(at, bytes.len());
            bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << bit);
        }
        Damage::Zero(at, length) => {
            let at = place(at, bytes.len());
            bytes.iter_mut().skip(at).take(*length).for_each(|byte| *byte = 0);
        }
        Damage::Append(more) => bytes.extend(more),
        Damage::Remove => {
            let _ = fs::remove_file(&target);
            return;
        }
        Damage::Swap(other) => bytes = fs::read(path.join(FILES[*other])).unwrap_or_default(),
    }
    fs::write(target, bytes).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn damaged_bytes_are_never_loaded(
        harm in prop::collection::vec((0usize..4, damage()), 1..3)
    ) {
        let (dir, newest) = copy_of_two();
        for (file, damage) in &harm {
            apply(damage, &newest, FILES[*file]);
        }
        let loaded = load_newest(dir.path(), Parts::All).unwrap().expect("one of the two");
        let step = loaded.contents.step;
        // Damage without effect, such as a blank in the manifest, does not count.
        let passed_over = if step == 200 { 0 } else { 1 };
        prop_assert_eq!(loaded.passed_over.len(), passed_over);
        assert_same(&loaded.contents, &contents(if step == 200 { 200 } else { 100 }));
    }
}
