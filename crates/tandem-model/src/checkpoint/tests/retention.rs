//! Which checkpoints stay: the newest, the pinned and the best, and nothing more.

use super::*;
use proptest::prelude::*;

#[test]
fn a_pinned_checkpoint_stays_until_the_save_after_it_is_unpinned() {
    let dir = tempfile::tempdir().unwrap();
    let mut checkpoints = open(dir.path(), 1);
    save(&mut checkpoints, 100);
    checkpoints.pin(100);
    save(&mut checkpoints, 200);
    save(&mut checkpoints, 300);
    assert_names(dir.path(), &["lock", "step-00000100", "step-00000300"]);
    checkpoints.unpin(100);
    assert_names(dir.path(), &["lock", "step-00000100", "step-00000300"]);
    save(&mut checkpoints, 400);
    assert_names(dir.path(), &["lock", "step-00000400"]);
}

#[test]
fn a_validation_that_ends_after_many_saves_still_marks_its_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let mut checkpoints = open(dir.path(), 1);
    save(&mut checkpoints, 100);
    checkpoints.pin(100);
    for step in [200, 300, 400] {
        save(&mut checkpoints, step);
    }
    assert_eq!(checkpoints.mark_best(100, 0.5).unwrap(), Marked::Yes);
    checkpoints.unpin(100);
    save(&mut checkpoints, 500);
    let best = load_best(dir.path(), Parts::All).unwrap().unwrap();
    assert_same(&best.contents, &contents(100));
    assert!(best.passed_over.is_empty());
}

#[test]
fn a_best_checkpoint_that_is_set_aside_is_not_the_best_any_more() {
    let dir = tempfile::tempdir().unwrap();
    let mut checkpoints = open(dir.path(), 2);
    save(&mut checkpoints, 100);
    checkpoints.save(&contents(200), Mark::Best { score: 0.5 }).unwrap();
    save(&mut checkpoints, 150);
    assert_names(dir.path(), &["aside-step-00000200", "lock", "step-00000100", "step-00000150"]);
    assert_eq!(checkpoints.best().unwrap(), None);
}

/// One thing that a run does with its checkpoints. Steps are small, so that they repeat.
#[derive(Clone, Debug)]
enum Act {
    Advance(u64),
    GoBack(u64),
    Pin(u64),
    Unpin(u64),
    MarkBest(u64),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (0u64..3).prop_map(Act::Advance),
        1 => (1u64..4).prop_map(Act::GoBack),
        3 => (0u64..12).prop_map(Act::Pin),
        2 => (0u64..12).prop_map(Act::Unpin),
        3 => (0u64..12).prop_map(Act::MarkBest),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn retention_removes_neither_pinned_nor_best_and_keeps_no_more(
        keep in 1usize..=4,
        acts in prop::collection::vec(act(), 1..40),
    ) {
        let store = Box::new(MemoryStore::default());
        check_retention(Checkpoints::in_store(store, Keep { last: keep }), acts)?;
    }
}

proptest! {
    // Each save waits for the disk.
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]

    #[test]
    fn retention_is_the_same_on_disk(
        keep in 1usize..=4,
        acts in prop::collection::vec(act(), 1..24),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let store = Box::new(MemoryStore::default());
        let in_memory = Checkpoints::in_store(store, Keep { last: keep });
        let names = check_retention(in_memory, acts.clone())?;
        prop_assert_eq!(check_retention(open(dir.path(), keep), acts)?, names);
    }
}

/// Does all of this, and checks the rules after each act. Returns the names that are left.
fn check_retention(
    mut checkpoints: Checkpoints,
    acts: Vec<Act>,
) -> Result<Vec<String>, TestCaseError> {
    let keep = checkpoints.keep.last;
    let mut step = 0;
    let mut pinned = BTreeSet::new();
    for act in acts {
        let before = steps(&checkpoints);
        match act {
            Act::Advance(by) => step += by,
            Act::GoBack(by) => step = step.saturating_sub(by),
            Act::Pin(step) => {
                checkpoints.pin(step);
                pinned.insert(step);
            }
            Act::Unpin(step) => {
                checkpoints.unpin(step);
                pinned.remove(&step);
            }
            Act::MarkBest(step) => {
                let marked = checkpoints.mark_best(step, 0.5).unwrap();
                let there = if before.contains(&step) { Marked::Yes } else { Marked::Gone };
                prop_assert_eq!(marked, there);
            }
        }
        if matches!(act, Act::Advance(_) | Act::GoBack(_)) {
            let saved = checkpoints.save(&Contents::new(step), Mark::Last).unwrap();
            prop_assert!(saved.tidied.failed.is_empty(), "{:?}", saved.tidied.failed);
            let left = checkpoints.list().unwrap();
            prop_assert!(left.contains(&saved.path));
            prop_assert!(left.len() <= keep + pinned.len() + 1, "{left:?}");
        }
        let after = steps(&checkpoints);
        for step in before.intersection(&pinned) {
            prop_assert!(after.contains(step), "{step} was pinned and is gone");
        }
        if let Some(best) = checkpoints.best().unwrap() {
            prop_assert!(checkpoints.list().unwrap().contains(&best.path), "{best:?}");
        }
    }
    Ok(checkpoints.store.list().unwrap().into_iter().map(CheckpointId::name).collect())
}

fn steps(checkpoints: &Checkpoints) -> BTreeSet<u64> {
    checkpoints.store.list().unwrap().into_iter().map(|id| id.step).collect()
}
