//! Simulates a power cut between any two changes that a run makes to its directory, and checks what is
//! left. [`tandem_disk::power_loss`] defines what a disk may lose.

use super::*;
use std::collections::HashSet;
use tandem_disk::power_loss::{DiskAfterCut, Recorder};

/// What must survive a power cut after this many changes.
struct Promise {
    after: usize,
    newest: u64,
    best: Option<u64>,
    pinned: Option<u64>,
}

/// A run with every kind of change: it creates its directory, saves, marks the best, removes old
/// checkpoints, is started again, and resumes from an earlier step.
fn run(root: &Path, recorder: &Recorder) -> Vec<Promise> {
    let mut promises = Vec::new();
    let mut promise_pinned = |newest, best, pinned| {
        promises.push(Promise { after: recorder.count(), newest, best, pinned });
    };
    let mut promise = |newest, best| promise_pinned(newest, best, None);
    let directory = root.join("runs/first");
    let mut checkpoints = open(&directory, 2);
    save(&mut checkpoints, 100);
    promise(100, None);
    checkpoints.save(&contents(200), Mark::Best { score: 0.5 }).unwrap();
    promise(200, Some(200));
    save(&mut checkpoints, 300);
    promise(300, Some(200));
    assert_eq!(checkpoints.mark_best(300, 0.4).unwrap(), Marked::Yes);
    promise(300, Some(300));
    // Removes 200, which is not the best any more; 300 stays.
    save(&mut checkpoints, 400);
    promise(400, Some(300));
    drop(checkpoints);
    let mut checkpoints = open(&directory, 1);
    // The same step again, then an earlier one: the later are set aside, the best one among them.
    save(&mut checkpoints, 400);
    promise(400, Some(300));
    assert_eq!(checkpoints.mark_best(400, 0.3).unwrap(), Marked::Yes);
    promise(400, Some(400));
    let saved = save(&mut checkpoints, 350);
    assert!(!saved.tidied.set_aside.is_empty());
    promise(350, None);
    // Its validation is still running while newer ones are saved.
    checkpoints.pin(350);
    save(&mut checkpoints, 450);
    promise_pinned(450, None, Some(350));
    save(&mut checkpoints, 460);
    promise_pinned(460, None, Some(350));
    assert_eq!(checkpoints.mark_best(350, 0.2).unwrap(), Marked::Yes);
    checkpoints.unpin(350);
    promise_pinned(460, Some(350), Some(350));
    save(&mut checkpoints, 470);
    promise_pinned(470, Some(350), Some(350));
    assert_eq!(checkpoints.mark_best(470, 0.1).unwrap(), Marked::Yes);
    promise_pinned(470, Some(470), None);
    // Removes 350.
    save(&mut checkpoints, 480);
    promise_pinned(480, Some(470), None);
    assert_names(
        &directory,
        &["aside-step-00000400-2", "best.json", "lock", "step-00000470", "step-00000480"],
    );
    promises
}

#[test]
fn the_last_checkpoint_survives_a_power_cut_at_any_moment() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("recorded");
    fs::create_dir(&root).unwrap();
    let recorder = Recorder::start(&root).unwrap();
    let promises = run(&root, &recorder);
    let changes = recorder.finish();
    let states = changes.states(6);
    let copy = place.path().join("after");
    let mut distinct = HashSet::new();
    for (number, state) in states.iter().enumerate() {
        distinct.insert(state.fingerprint());
        state.put(&copy).unwrap();
        let kept = promises.iter().rfind(|promise| promise.after <= state.after);
        let next = promises.iter().find(|promise| promise.after > state.after);
        let mut checkpoints = check(&copy.join("runs/first"), state, kept, next);
        if number % 10 == 0 {
            can_continue(&mut checkpoints, state);
        }
    }
    assert!(distinct.len() >= 400, "only {} states were checked", distinct.len());
}

/// The promised checkpoint is there, or the one that was being written, complete.
#[track_caller]
fn check(
    directory: &Path,
    state: &DiskAfterCut,
    kept: Option<&Promise>,
    next: Option<&Promise>,
) -> Checkpoints {
    let when = describe(state);
    let checkpoints = open(directory, 2);
    let found = checkpoints.load_newest().unwrap_or_else(|error| panic!("{when}: {error}"));
    let allowed: Vec<u64> = [kept, next].into_iter().flatten().map(|p| p.newest).collect();
    match &found {
        Some(found) => {
            assert!(allowed.contains(&found.contents.step), "{when}: {}", found.contents.step);
            assert_same(&found.contents, &contents(found.contents.step));
            assert!(found.passed_over.is_empty(), "{when}: {:?}", found.passed_over);
        }
        None => assert!(kept.is_none(), "{when}: no checkpoint is left"),
    }
    let best = checkpoints.best().unwrap_or_else(|error| panic!("{when}: {error}"));
    let wanted: Vec<Option<u64>> = [kept, next].into_iter().flatten().map(|p| p.best).collect();
    if let Some(best) = &best {
        assert!(wanted.contains(&Some(best.step)), "{when}: best is {}", best.step);
        let loaded = load(&best.path, Parts::All).unwrap_or_else(|error| panic!("{when}: {error}"));
        assert_same(&loaded.contents, &contents(best.step));
    } else {
        assert!(kept.is_none() || wanted.contains(&None), "{when}: the mark is lost");
    }
    if let (Some(Promise { pinned: Some(before), .. }), Some(Promise { pinned: Some(_), .. })) =
        (kept, next)
    {
        let path = directory.join(format!("step-{before:08}"));
        let loaded = load(&path, Parts::All).unwrap_or_else(|error| panic!("{when}: {error}"));
        assert_same(&loaded.contents, &contents(*before));
    }
    checkpoints
}

#[track_caller]
fn can_continue(checkpoints: &mut Checkpoints, state: &DiskAfterCut) {
    let when = describe(state);
    let saved = save(checkpoints, 500);
    assert!(saved.tidied.failed.is_empty(), "{when}: {:?}", saved.tidied.failed);
    assert_eq!(checkpoints.load_newest().unwrap().unwrap().contents.step, 500, "{when}");
}

fn describe(state: &DiskAfterCut) -> String {
    format!("after {} changes, {}", state.after, state.how)
}
