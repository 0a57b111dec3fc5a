//! Checkpoints as the trainer and the commands that read them use them.

mod damage; // damaged files are never loaded
mod kill; // a kill at any moment leaves the last complete checkpoint
mod retention; // which checkpoints stay after any sequence of saves, pins and marks
mod power_loss; // a power cut at any moment leaves the last complete checkpoint

use super::store::memory::MemoryStore;
use super::*;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use tandem_units::Hint;

/// Contents that differ from step to step in every part.
fn contents(step: u64) -> Contents {
    let number = step as f32;
    let mut weights = TensorSet::new();
    let values = (0..600).map(|place| number + place as f32 / 7.0).collect();
    weights.insert("encoder.weight", &[30, 20], Values::F32(values)).unwrap();
    weights.insert("encoder.bias", &[20], Values::F32(vec![-number; 20])).unwrap();
    let mut optimizer = TensorSet::new();
    optimizer.insert("count", &[], Values::I64(vec![step as i64])).unwrap();
    optimizer.insert("odd", &[3], Values::F32(vec![f32::NAN, -0.0, f32::MIN_POSITIVE])).unwrap();
    optimizer.insert("nothing", &[0, 4], Values::F32(Vec::new())).unwrap();
    let mut contents = Contents::new(step);
    contents.tensors.insert("weights".into(), weights);
    contents.tensors.insert("optimizer".into(), optimizer);
    contents.documents.insert("state".into(), json!({"seed": u64::MAX, "at": step, "loss": 0.1}));
    contents
}

/// Compares bits, since `==` treats NaN as different and -0 as equal to 0.
fn assert_same(found: &Contents, wanted: &Contents) {
    let bits = |contents: &Contents| {
        let sets = contents.tensors.iter().flat_map(|(set, tensors)| {
            tensors.iter().map(move |(name, tensor)| {
                let bits: Vec<u64> = match tensor.values() {
                    Values::F32(values) => values.iter().map(|v| v.to_bits().into()).collect(),
                    Values::I64(values) => values.iter().map(|v| *v as u64).collect(),
                };
                (set.clone(), name.to_string(), tensor.shape().to_vec(), bits)
            })
        });
        (contents.step, sets.collect::<Vec<_>>(), contents.documents.clone())
    };
    assert_eq!(bits(found), bits(wanted));
}

fn open(directory: &Path, last: usize) -> Checkpoints {
    Checkpoints::open(directory, Keep { last }).unwrap()
}

fn save(checkpoints: &mut Checkpoints, step: u64) -> Saved {
    checkpoints.save(&contents(step), Mark::Last).unwrap()
}

fn names(directory: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[track_caller]
fn assert_names(directory: &Path, wanted: &[&str]) {
    assert_eq!(names(directory), wanted.iter().map(|name| name.to_string()).collect());
}

#[test]
fn loaded_contents_equal_the_saved_ones_bit_for_bit() {
    let dir = tempfile::tempdir().unwrap();
    let mut checkpoints = open(dir.path(), 3);
    let saved = save(&mut checkpoints, 1200);
    assert_eq!(saved.path, dir.path().join("step-00001200"));
    let on_disk: u64 = fs::read_dir(&saved.path)
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert_eq!(saved.bytes, Bytes(on_disk));
    let loaded = checkpoints.load_newest().unwrap().unwrap();
    assert_same(&loaded.contents, &contents(1200));
    assert_eq!(loaded.path, saved.path);
    assert!(loaded.passed_over.is_empty());
    assert_eq!(loaded.program, env!("CARGO_PKG_VERSION"));
    let files = ["manifest.json", "optimizer.safetensors", "state.json", "weights.safetensors"];
    assert_names(&saved.path, &files);
    assert_names(dir.path(), &["lock", "step-00001200"]);
}

#[test]
fn a_store_in_memory_returns_the_same_contents() {
    let store = MemoryStore::default();
    let mut checkpoints = Checkpoints::in_store(Box::new(store), Keep { last: 2 });
    assert!(checkpoints.load_newest().unwrap().is_none());
    let saved = checkpoints.save(&contents(100), Mark::Best { score: 0.5 }).unwrap();
    let loaded = checkpoints.load_newest().unwrap().unwrap();
    assert_same(&loaded.contents, &contents(100));
    assert_eq!(loaded.path, saved.path);
    let best = Best { path: saved.path, step: 100, score: 0.5, ..Best::default() };
    assert_eq!(checkpoints.best().unwrap(), Some(best));
}

#[test]
fn tensor_files_equal_those_of_the_safetensors_crate() {
    let dir = tempfile::tempdir().unwrap();
    let saved = save(&mut open(dir.path(), 3), 7);
    for (stem, set) in &contents(7).tensors {
        let bytes: Vec<(String, Vec<usize>, safetensors::Dtype, Vec<u8>)> = set
            .iter()
            .map(|(name, tensor)| {
                let (dtype, bytes) = match tensor.values() {
                    Values::F32(values) => (
                        safetensors::Dtype::F32,
                        values.iter().flat_map(|value| value.to_le_bytes()).collect(),
                    ),
                    Values::I64(values) => (
                        safetensors::Dtype::I64,
                        values.iter().flat_map(|value| value.to_le_bytes()).collect(),
                    ),
                };
                (name.to_string(), tensor.shape().to_vec(), dtype, bytes)
            })
            .collect();
        let views = bytes.iter().map(|(name, shape, dtype, bytes)| {
            (name, safetensors::tensor::TensorView::new(*dtype, shape.clone(), bytes).unwrap())
        });
        let theirs = safetensors::serialize(views, None).unwrap();
        assert!(fs::read(saved.path.join(format!("{stem}.safetensors"))).unwrap() == theirs);
    }
}

#[test]
fn the_newest_and_the_best_stay() {
    let dir = tempfile::tempdir().unwrap();
    let mut checkpoints = open(dir.path(), 2);
    save(&mut checkpoints, 100);
    checkpoints.save(&contents(200), Mark::Best { score: 0.1 + 0.2 }).unwrap();
    save(&mut checkpoints, 300);
    save(&mut checkpoints, 400);
    let saved = save(&mut checkpoints, 500);
    assert_eq!(saved.tidied.removed, [dir.path().join("step-00000300")]);
    let stay = ["best.json", "lock", "step-00000200", "step-00000400", "step-00000500"];
    assert_names(dir.path(), &stay);
    let path = dir.path().join("step-00000200");
    let best = Best { path: path.clone(), step: 200, score: 0.1 + 0.2, ..Best::default() };
    assert_eq!(checkpoints.best().unwrap(), Some(best));
    let loaded = load_best(dir.path(), Parts::All).unwrap().unwrap();
    assert_eq!((loaded.contents.step, loaded.path), (200, path));
    // The former best is removed like any other old checkpoint.
    assert_eq!(checkpoints.mark_best(500, 0.2).unwrap(), Marked::Yes);
    save(&mut checkpoints, 600);
    assert_names(dir.path(), &["best.json", "lock", "step-00000500", "step-00000600"]);
    assert_eq!(checkpoints.mark_best(200, 0.1).unwrap(), Marked::Gone);
    assert_eq!(checkpoints.best().unwrap().unwrap().step, 500);
}

#[test]
fn steps_that_are_not_better_are_stored_with_the_mark() {
    let dir = tempfile::tempdir().unwrap();
    let mut checkpoints = open(dir.path(), 9);
    [100, 200, 300].into_iter().for_each(|step| drop(save(&mut checkpoints, step)));
    checkpoints.set_worse(BTreeSet::from([100])).unwrap();
    assert_eq!(checkpoints.best().unwrap(), None, "nothing to compare with");
    checkpoints.set_rows("held-out");
    assert_eq!(checkpoints.mark_best(100, 0.5).unwrap(), Marked::Yes);
    checkpoints.set_worse(BTreeSet::from([200, 300])).unwrap();
    let best = checkpoints.best().unwrap().unwrap();
    assert_eq!((best.step, best.score), (100, 0.5));
    assert_eq!(best.worse, BTreeSet::from([200, 300]));
    assert_eq!(best.rows.as_deref(), Some("held-out"));
    assert_eq!(checkpoints.mark_best(300, 0.4).unwrap(), Marked::Yes);
    assert!(checkpoints.best().unwrap().unwrap().worse.is_empty());
}

#[test]
fn a_mark_of_an_earlier_version_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut checkpoints = open(dir.path(), 2);
    save(&mut checkpoints, 100);
    let contents = serde_json::json!({ "step": 100, "turn": 1, "score": 0.5 });
    fs::write(dir.path().join("best.json"), sealed::seal(&contents).unwrap()).unwrap();
    let best = checkpoints.best().unwrap().unwrap();
    assert_eq!((best.step, best.score, best.rows), (100, 0.5, None));
    assert!(best.worse.is_empty());
}

#[test]
fn a_nan_score_marks_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut checkpoints = open(dir.path(), 2);
    save(&mut checkpoints, 100);
    let error = checkpoints.mark_best(100, f64::NAN).unwrap_err();
    assert!(matches!(error, CheckpointError::Score { .. }), "{error}");
    assert_eq!(checkpoints.best().unwrap(), None);
}

#[test]
fn no_checkpoint_is_not_an_error_but_only_damaged_ones_are() {
    let dir = tempfile::tempdir().unwrap();
    let mut checkpoints = open(dir.path(), 2);
    assert!(checkpoints.load_newest().unwrap().is_none());
    for step in [1, 2] {
        let path = save(&mut checkpoints, step).path;
        fs::remove_file(path.join("state.json")).unwrap();
    }
    match checkpoints.load_newest().unwrap_err() {
        CheckpointError::NoneWhole { broken, .. } => assert_eq!(broken.len(), 2),
        other => panic!("{other}"),
    }
}

#[test]
fn a_second_run_is_refused_with_the_process_of_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path(), 2);
    let draft = dir.path().join(".step-00000100.draft-1");
    fs::create_dir(&draft).unwrap();
    let error = Checkpoints::open(dir.path(), Keep { last: 2 }).unwrap_err();
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    assert!(error.hint().unwrap().contains("--checkpoint-dir"));
    assert!(draft.exists(), "the draft of a living process must stay");
    drop(first);
    open(dir.path(), 2);
    assert!(!draft.exists());
}

#[test]
fn only_drafts_of_killed_runs_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let foreign = [".step-notes", ".draft-3", "x.draft-3", ".step-00000100.draft-me", ".hidden"];
    for name in foreign.iter().chain(&[".best.json.draft-9", "samples"]) {
        fs::write(dir.path().join(name), "x").unwrap();
    }
    fs::create_dir(dir.path().join(".step-00000100.draft-812")).unwrap();
    fs::write(dir.path().join(".step-00000100.draft-812/weights.safetensors"), "half").unwrap();
    open(dir.path(), 2);
    assert_names(dir.path(), &[&foreign[..], &["lock", "samples"]].concat());
}

#[test]
fn a_step_that_is_saved_again_gets_a_new_directory_before_the_old_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let mut checkpoints = open(dir.path(), 2);
    save(&mut checkpoints, 100);
    save(&mut checkpoints, 200);
    let mut again = contents(200);
    again.documents.insert("state".into(), json!("second"));
    let saved = checkpoints.save(&again, Mark::Last).unwrap();
    assert_names(dir.path(), &["lock", "step-00000100", "step-00000200-2"]);
    assert_eq!(saved.path, dir.path().join("step-00000200-2"));
    assert_same(&checkpoints.load_newest().unwrap().unwrap().contents, &again);
}

#[test]
fn checkpoints_newer_than_the_run_are_set_aside() {
    let dir = tempfile::tempdir().unwrap();
    let mut checkpoints = open(dir.path(), 1);
    save(&mut checkpoints, 100);
    let newer = dir.path().join("step-00000900");
    fs::create_dir(&newer).unwrap();
    let loaded = checkpoints.load_newest().unwrap().unwrap();
    assert_eq!((loaded.contents.step, loaded.passed_over.len()), (100, 1));
    let saved = save(&mut checkpoints, 200);
    assert_eq!(saved.tidied.set_aside, [dir.path().join("aside-step-00000900")]);
    assert_names(dir.path(), &["aside-step-00000900", "lock", "step-00000200"]);
    // The first one that was set aside is not overwritten.
    fs::create_dir(&newer).unwrap();
    save(&mut checkpoints, 300);
    assert!(dir.path().join("aside-step-00000900.2").exists());
}

#[test]
fn find_accepts_a_run_or_one_checkpoint_under_any_name() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    let mut checkpoints = open(&run, 3);
    checkpoints.save(&contents(100), Mark::Best { score: 1.0 }).unwrap();
    let newest = save(&mut checkpoints, 200).path;
    let parts = Parts::Only(&["weights"]);
    let best = find(&run, parts).unwrap();
    assert_eq!(best.contents.step, 100);
    assert_eq!(best.contents.tensors.keys().collect::<Vec<_>>(), ["weights"]);
    assert_eq!(find(&newest, parts).unwrap().contents.step, 200);
    let exported = dir.path().join("my voice");
    fs::rename(&newest, &exported).unwrap();
    assert_same(&find(&exported, Parts::All).unwrap().contents, &contents(200));
    for nothing in [dir.path(), &dir.path().join("typo")] {
        let error = find(nothing, parts).unwrap_err();
        assert!(matches!(error, CheckpointError::NotThere { .. }), "{error}");
        assert!(error.hint().is_some());
    }
}

#[test]
fn loading_works_while_another_thread_saves() {
    let dir = tempfile::tempdir().unwrap();
    let mut checkpoints = open(dir.path(), 1);
    save(&mut checkpoints, 1);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for step in 2..60 {
                // Each is the best one, so only one checkpoint exists at a time.
                let score = 1.0 / step as f64;
                let saved = checkpoints.save(&contents(step), Mark::Best { score }).unwrap();
                assert!(saved.tidied.failed.is_empty(), "{:?}", saved.tidied.failed);
            }
        });
        let mut last = 0;
        while !writer.is_finished() {
            for read in [load_newest, load_best] {
                let loaded = read(dir.path(), Parts::All).unwrap().expect("there is always one");
                assert_same(&loaded.contents, &contents(loaded.contents.step));
                assert!(loaded.passed_over.is_empty(), "{:?}", loaded.passed_over);
                // The mark of the best is written after the checkpoint.
                assert!(loaded.contents.step + 1 >= last);
                last = loaded.contents.step;
            }
        }
    });
}

#[test]
fn a_directory_is_empty_only_after_two_equal_listings() {
    let dir = tempfile::tempdir().unwrap();
    save(&mut open(dir.path(), 1), 7);
    let store = LocalStore::read_only(dir.path());
    // Possible listings while one name appears and another disappears: nothing, or a removed one.
    let gone = CheckpointId { step: 6, revision: 1 };
    let mut listings = [vec![], vec![gone], vec![gone], vec![]].into_iter();
    let found = read::newest_of_listings(&store, Parts::All, || match listings.next() {
        Some(ids) => Ok(ids),
        None => store.list(),
    });
    assert_eq!(found.unwrap().expect("it was always there").contents.step, 7);
    let mut listings = 0;
    let always_changing = read::newest_of_listings(&store, Parts::All, || {
        listings += 1;
        Ok(if listings % 2 == 0 { vec![] } else { vec![gone] })
    });
    assert!(matches!(always_changing.unwrap_err(), CheckpointError::Restless { .. }));
    let empty = tempfile::tempdir().unwrap();
    assert!(load_newest(empty.path(), Parts::All).unwrap().is_none());
}

#[test]
fn tensors_are_taken_by_name_and_shape_and_leftovers_are_an_error() {
    let fail = |act: &dyn Fn(&mut TensorSet) -> Result<(), CheckpointError>| {
        let mut set = contents(5).take_tensors("weights").unwrap();
        act(&mut set).unwrap_err()
    };
    let mut set = contents(5).take_tensors("weights").unwrap();
    assert_eq!(set.take_f32("encoder.bias", &[20]).unwrap(), [-5.0; 20]);
    assert_eq!(
        set.finish().unwrap_err().to_string(),
        "the checkpoint has 1 tensors that are not in the model, such as `encoder.weight`"
    );
    let error = fail(&|set| set.take_f32("encoder.weight", &[30, 40]).map(|_| ()));
    assert_eq!(
        error.to_string(),
        "tensor `encoder.weight` has shape [30, 20], the model needs [30, 40]"
    );
    assert!(error.hint().unwrap().contains("--model-size"));
    let error = fail(&|set| set.take_f32("decoder", &[1]).map(|_| ()));
    assert_eq!(error.to_string(), "the checkpoint has no tensor `decoder`");
    let error = fail(&|set| set.take_i64("encoder.bias", &[20]).map(|_| ()));
    assert!(matches!(error, CheckpointError::Kind { .. }), "{error}");
    let error = fail(&|set| set.insert("encoder.bias", &[1], Values::F32(vec![0.0])));
    assert_eq!(error.to_string(), "two tensors are called `encoder.bias`");
    let error = fail(&|set| set.insert("x", &[2, 3], Values::F32(vec![0.0])));
    assert_eq!(error.to_string(), "tensor `x` of shape [2, 3] was given 1 values");
    let error = fail(&|set| set.insert("x", &[usize::MAX, 2], Values::F32(vec![])));
    assert!(matches!(error, CheckpointError::ValueCount { .. }), "{error}");
}

#[test]
fn documents_are_loaded_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let mut checkpoints = open(dir.path(), 1);
    let mut contents = Contents::new(3);
    let numbers = vec![0.1 + 0.2, 5e-324, f64::MAX, -1.0 / 3.0];
    contents.add_document("numbers", &numbers).unwrap();
    checkpoints.save(&contents, Mark::Last).unwrap();
    let loaded = checkpoints.load_newest().unwrap().unwrap().contents;
    assert_eq!(loaded.document::<Vec<f64>>("numbers").unwrap(), numbers);
    let error = loaded.document::<String>("numbers").unwrap_err();
    assert_eq!(error.to_string(), "document `numbers` of a checkpoint has unexpected contents");
    let error = loaded.document::<String>("config").unwrap_err();
    assert_eq!(error.to_string(), "the checkpoint has no `config`");
}

#[test]
fn a_part_name_with_a_path_is_refused_and_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut checkpoints = open(dir.path(), 1);
    for name in ["../evil", "", "Weights", "manifest", "a/b", "a.b"] {
        let mut contents = Contents::new(1);
        contents.add_document(name, &1).unwrap();
        let error = checkpoints.save(&contents, Mark::Last).unwrap_err();
        assert!(matches!(error, CheckpointError::PartName { .. }), "{error}");
    }
    assert_names(dir.path(), &["lock"]);
}
