//! A view follows a run, however long, and across its parts.

use super::*;
use tandem_telemetry::Nanos;
use tandem_telemetry::event::{Loss, SlotChange, SlotState, StageInterval, Validation};
use tandem_units::Ticket;

fn step(number: u64, loss: f32) -> Event {
    let value = Some(loss).into();
    Step {
        step: number,
        ticket: Ticket::default(),
        took: Nanos::millis(100),
        waited: Nanos(0),
        items: 8,
        frames: 800,
        shape: None,
        losses: vec![Loss { name: "total".into(), value }],
        ..Step::default()
    }
    .into()
}

fn add(view: &mut RunView, millis: u64, event: impl Into<Event>) {
    view.add(&Stamped { at: Nanos::millis(millis), event: event.into() });
}

#[test]
fn a_resumed_run_continues_the_same_curve() {
    let mut view = RunView::default();
    (1..=10).for_each(|number| add(&mut view, number * 100, step(number, 5.0)));
    let values = [("total".to_string(), 4.0)].into();
    add(&mut view, 1000, Validation { step: 10, took: Nanos(1), best: true, values });
    view.next_part();
    // The checkpoint was that of step 8: steps 9 and 10 are made again.
    (9..=12).for_each(|number| add(&mut view, number * 100, step(number, 3.0)));
    let points = view.losses[0].1.points();
    assert_eq!(points.len(), 12);
    assert_eq!((points[7], points[8]), ((8.0, 5.0), (9.0, 3.0)));
    assert_eq!(view.held_out[0].1.points(), []);
    assert_eq!((view.summary.steps.all.count(), view.earlier_parts), (4, 1));
}

#[test]
fn slots_count_the_time_in_each_state_up_to_now() {
    let mut view = RunView::default();
    let change = |state| SlotChange { slot: 0, state, ticket: None };
    add(&mut view, 1000, change(SlotState::Ready));
    add(&mut view, 3000, change(SlotState::Training));
    add(&mut view, 4000, change(SlotState::Preparing));
    // No event of the slot, but time passes.
    add(&mut view, 5000, step(1, 1.0));
    assert_eq!(view.slots.shares(0), Some([0.25, 0.5, 0.25]));
    assert_eq!(view.slots.newest.len(), 2);
    assert_eq!(view.slots.shares(1), None);
}

#[test]
fn long_runs_keep_few_columns_and_the_right_shares() {
    let mut view = RunView::default();
    for second in 1..=1000u64 {
        add(
            &mut view,
            second * 1000,
            StageInterval {
                stage: "load".into(),
                workers: 2,
                interval: Nanos::millis(1000),
                busy: Nanos::millis(if second % 2 == 0 { 2000 } else { 0 }),
                starved: Nanos(0),
                blocked: Nanos::millis(if second % 2 == 0 { 0 } else { 2000 }),
                items: 1,
            },
        );
    }
    let columns = &view.stages[0].columns;
    assert!(columns.len() <= tracks::StageTrack::LIMIT);
    assert_eq!(columns[0].begin, 0.0);
    assert!((columns.last().unwrap().end - 1000.0).abs() < 1e-6);
    // Old and new intervals are drawn equally wide.
    assert!(columns.windows(2).take(100).all(|two| two[0].end - two[0].begin > 7.0), "{columns:?}");
    assert_eq!(columns[3].shares(), [0.5, 0.0, 0.5]);
}

#[test]
fn a_slot_number_from_a_damaged_record_takes_no_memory() {
    let mut view = RunView::default();
    add(&mut view, 1, SlotChange { slot: u32::MAX, state: SlotState::Ready, ticket: None });
    assert!(view.slots.slots.is_empty());
}
