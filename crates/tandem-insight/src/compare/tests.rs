//! Runs as they are: batches of a few shapes, noise that lasts for a while, a slow step now and
//! then. How often a comparison sees what is there, and what is not.

use super::*;
use crate::measured_run::{DeviceSeries, MeasuredStep};
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use tandem_telemetry::event::DeviceRole;
use tandem_telemetry::step_sample::StepSize;
use tandem_units::Seconds;

/// A run of `steps` steps. Shapes are drawn from five; noise of 8 % that half remembers the step
/// before; one step in fifty takes twice as long.
fn run(steps: usize, slower: f64, seed: u64) -> MeasuredRun {
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    let mut uniform = move || (chance.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let mut noise = 0.0;
    let mut steps: Vec<MeasuredStep> = (0..=steps)
        .map(|_| {
            let place = (uniform() * 5.0) as usize;
            let frames = [200, 320, 480, 640, 800][place];
            let normal = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
            noise = 0.5 * noise + 0.07 * normal;
            let hiccup = if uniform() < 0.02 { 2.0 } else { 1.0 };
            let took = 0.0004 * f64::from(frames) * (1.0 + noise).max(0.2) * hiccup * slower;
            MeasuredStep {
                took,
                items: 16,
                frames: 16 * 300,
                shape: [16, 64, frames],
                size: Some(StepSize::of([16, 64, frames])),
            }
        })
        .collect();
    let warm_up = vec![steps.remove(0)];
    let lasted = steps.iter().map(|step| step.took).sum::<f64>() + 3.0;
    MeasuredRun {
        path: format!("seed-{seed}").into(),
        steps,
        warm_up,
        lasted: Seconds(lasted),
        ..MeasuredRun::default()
    }
}

fn judged(a: &MeasuredRun, b: &MeasuredRun) -> Comparison {
    let rules = CompareRules { draws: 500, ..CompareRules::default() };
    compare(a, b, &rules).unwrap()
}

#[test]
fn two_seeds_of_the_same_run_do_not_differ_in_nineteen_of_twenty() {
    // 100 pairs of each length: at most 5 may be found different.
    for steps in [60, 300] {
        let differs = |seed: u64| {
            let (a, b) = (run(steps, 1.0, 2 * seed), run(steps, 1.0, 2 * seed + 1));
            judged(&a, &b).verdict != Judgement::NoDifference
        };
        let wrong = (0..100).filter(|&seed| differs(seed)).count();
        assert!(wrong <= 5, "{wrong} of 100 with {steps} steps");
    }
}

#[test]
fn a_step_that_is_a_tenth_slower_is_found_every_time() {
    for seed in 0..20 {
        let (a, b) = (run(200, 1.0, 1000 + seed), run(200, 1.1, 2000 + seed));
        let found = judged(&a, &b);
        assert_eq!(found.verdict, Judgement::Worse, "{seed}: {}", found.sentence);
        assert!(found.sentence.contains(", same shapes +"), "{}", found.sentence);
        assert_eq!(judged(&b, &a).verdict, Judgement::Better, "{seed}");
    }
}

#[test]
fn the_interval_holds_the_true_ratio() {
    let holds = |seed: u64| {
        let found = judged(&run(150, 1.0, 3000 + seed), &run(150, 1.3, 4000 + seed));
        let row = found.rows.iter().find(|row| row.measure == Measure::SameShapes).unwrap();
        row.interval.unwrap().holds(1.3)
    };
    let held = (0..100).filter(|&seed| holds(seed)).count();
    assert!(held >= 96, "{held} of 100 at 99 %");
}

#[test]
fn a_run_does_not_differ_from_itself() {
    let a = run(40, 1.0, 7);
    let found = judged(&a, &a);
    assert_eq!(found.verdict, Judgement::NoDifference);
    assert!(found.sentence.starts_with("no difference beyond noise: "), "{}", found.sentence);
    assert!(found.rows.iter().all(|row| row.ratio == Some(1.0)), "{found:?}");
    assert_eq!(found, judged(&a, &a), "the same answer every time");
}

#[test]
fn other_batches_are_not_another_pace() {
    // B had long batches only: its mean step is slower, its work is not.
    let a = run(400, 1.0, 11);
    let mut b = run(400, 1.0, 12);
    b.steps.retain(|step| step.shape[2] > 200);
    b.steps.truncate(250);
    let found = judged(&a, &b);
    let row = |measure| found.rows.iter().find(|row| row.measure == measure).unwrap();
    assert_eq!(row(Measure::MeanStep).judgement, Judgement::Worse);
    assert_eq!(row(Measure::SameShapes).judgement, Judgement::NoDifference);
    assert_eq!(found.verdict, Judgement::NoDifference, "{}", found.sentence);
    assert_eq!(row(Measure::TotalTime).judgement, Judgement::NotComparable);
}

#[test]
fn a_few_slow_steps_alone_must_cost_more_to_count() {
    // Every eighth step of B is disturbed: 7 % in the mean, then 20 %; the usual step is the same.
    let disturbed = |by: f64| {
        let mut b = run(300, 1.0, 21);
        b.steps.iter_mut().step_by(8).for_each(|step| step.took *= by);
        judged(&run(300, 1.0, 21), &b)
    };
    let row = |found: &Comparison| {
        let row = found.rows.iter().find(|row| row.measure == Measure::SameShapes).unwrap();
        (row.interval.unwrap().low > 1.0, row.judgement)
    };
    let little = disturbed(1.6);
    assert_eq!(row(&little), (true, Judgement::NoDifference));
    assert!(little.sentence.contains("other programs may have slowed"), "{}", little.sentence);
    assert_eq!(row(&disturbed(3.0)), (true, Judgement::Worse));
}

#[test]
fn a_median_that_moved_without_being_sure_lets_the_mean_decide() {
    // Four of ten steps are disturbed by a fifth, as on a busy machine: draws of the step in the
    // middle are of either kind. All steps of B are a tenth slower.
    let disturbed = |slower: f64, seed: u64| {
        let mut chance = ChaCha8Rng::seed_from_u64(seed);
        let mut run = run(120, 1.0, 22);
        for step in &mut run.steps {
            let noise = if chance.next_u64() % 100 < 41 { 1.19 } else { 1.0 };
            step.took = 0.02 * noise * slower;
        }
        run
    };
    let mut unsure = 0;
    for seed in 0..20 {
        let found = judged(&disturbed(1.0, 100 + seed), &disturbed(1.1, 200 + seed));
        let row = |measure| found.rows.iter().find(|row| row.measure == measure).unwrap();
        unsure += u32::from(row(Measure::SameShapesMedian).judgement == Judgement::NoDifference);
        assert_eq!(found.verdict, Judgement::Worse, "{seed}: {}", found.sentence);
    }
    assert!(unsure >= 3, "the median was sure of itself but for {unsure} times");
}

#[test]
fn a_jump_from_nearly_nothing_to_little_is_no_regression() {
    let even = |seed| {
        let mut run = run(200, 1.0, seed);
        run.steps.iter_mut().enumerate().for_each(|(at, step)| step.took = 0.1 + 1e-6 * at as f64);
        run
    };
    let mut b = even(1);
    b.steps.iter_mut().step_by(20).for_each(|step| step.took *= 1.2);
    let found = judged(&even(1), &b);
    assert_eq!(found.verdict, Judgement::NoDifference, "{}", found.sentence);
}

#[test]
fn runs_of_other_batch_sizes_are_judged_by_throughput() {
    let a = run(200, 1.0, 13);
    let mut b = run(200, 1.8, 14);
    for step in &mut b.steps {
        step.items = 32;
        step.shape[0] = 32;
    }
    let found = judged(&a, &b);
    assert_eq!(found.verdict, Judgement::Better, "{}", found.sentence);
    assert!(found.sentence.contains("samples/s +"), "{}", found.sentence);
    assert!(found.notes[0].contains("batch sizes differ (16 and 32)"), "{:?}", found.notes);
    assert!(found.rows.iter().all(|row| row.measure != Measure::SameShapes));
}

#[test]
fn steps_that_jump_are_found_although_their_mean_stays() {
    let a = run(300, 1.0, 15);
    let mut b = run(300, 1.0, 16);
    // Beyond their shapes: every other step is slow, and the next one as much faster.
    for (at, step) in b.steps.iter_mut().enumerate() {
        step.took *= if at % 2 == 0 { 1.4 } else { 0.6 };
    }
    let found = judged(&a, &b);
    assert_eq!(found.verdict, Judgement::Worse, "{}", found.sentence);
    assert!(found.sentence.contains("stability (std/mean"), "{}", found.sentence);
}

fn with_gpu(mut run: MeasuredRun, busy: f64, gigabytes: f64) -> MeasuredRun {
    let utilisation = (0..60).map(|at| busy + 0.02 * f64::from(at % 3 - 1)).collect();
    run.devices.push(DeviceSeries {
        device: "cuda:1".into(),
        role: DeviceRole::Model,
        utilisation,
        memory: vec![gigabytes * 1e9; 60],
        memory_total: None,
    });
    run
}

#[test]
fn idle_gpus_and_grown_memory_are_regressions() {
    let a = || with_gpu(run(60, 1.0, 17), 0.9, 8.0);
    let check = |b: MeasuredRun, said: &str| {
        let found = judged(&a(), &b);
        let wanted = if said.is_empty() { Judgement::NoDifference } else { Judgement::Worse };
        assert_eq!(found.verdict, wanted, "{}", found.sentence);
        assert!(found.sentence.contains(said), "{}", found.sentence);
    };
    check(with_gpu(run(60, 1.0, 17), 0.88, 8.4), "");
    check(with_gpu(run(60, 1.0, 17), 0.8, 8.0), "utilisation of cuda:1 -10.0 points");
    check(with_gpu(run(60, 1.0, 17), 0.9, 9.6), "peak memory of cuda:1 +20.0 %");
}

#[test]
fn a_limit_for_failing_moves_what_counts() {
    let (a, b) = (run(300, 1.0, 18), run(300, 1.1, 18));
    let over = |share| {
        let rules = CompareRules { draws: 500, ..CompareRules::default() };
        compare(&a, &b, &rules.failing_over(share)).unwrap().verdict
    };
    assert_eq!((over(0.05), over(0.2)), (Judgement::Worse, Judgement::NoDifference));
}

#[test]
fn too_few_steps_are_refused_with_a_way_out() {
    let error = compare(&run(9, 1.0, 1), &run(50, 1.0, 2), &CompareRules::default()).unwrap_err();
    assert!(error.to_string().contains("has 9 steps after the warm-up"), "{error}");
    assert!(error.hint().is_some());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_run_makes_it_panic_or_say_nonsense(
        times in prop::collection::vec(0.0..10.0f64, 10..40),
        items in 0u32..40,
        shapes in 1u32..6,
    ) {
        let steps = times.iter().enumerate().map(|(at, &took)| MeasuredStep {
            took, items, frames: 1, shape: [items, 1, at as u32 % shapes], size: None,
        });
        let one = MeasuredRun { steps: steps.collect(), ..MeasuredRun::default() };
        let found = judged(&one, &run(20, 1.0, 5));
        for row in &found.rows {
            prop_assert!(row.interval.is_none_or(|i| i.low <= i.high), "{row:?}");
        }
        prop_assert!(serde_json::to_string(&found).is_ok());
    }
}

/// The run of as many ranks, each a tenth of a second at work.
fn with_ranks(run: MeasuredRun, ranks: usize) -> MeasuredRun {
    let sums = tandem_telemetry::ranks::RankSums {
        steps: 10,
        took: 1.5,
        busy: vec![1.0; ranks],
        starved: vec![0.0; ranks],
        slowest: 1.0,
        reduce: 0.2,
        ..Default::default()
    };
    MeasuredRun { ranks: Some(sums), ..run }
}

#[test]
fn ranks_are_compared_side_by_side_and_do_not_decide() {
    let (a, b) = (with_ranks(run(100, 1.0, 1), 2), with_ranks(run(100, 1.0, 2), 2));
    let found = compare(&a, &b, &CompareRules::default()).unwrap();
    let shown: Vec<(&str, f64, bool)> = found
        .rows
        .iter()
        .filter(|row| matches!(row.measure, Measure::RankStep | Measure::Reduce))
        .map(|row| (row.name.as_str(), row.a, row.decides))
        .collect();
    let expected = [
        ("rank 0, per step", 0.1, false),
        ("rank 1, per step", 0.1, false),
        ("sum of gradients, per step", 0.02, false),
    ];
    assert_eq!(shown, expected);
}

#[test]
fn runs_of_other_numbers_of_ranks_are_compared_by_utterances() {
    let (a, b) = (run(100, 1.0, 1), with_ranks(run(100, 1.0, 2), 4));
    let found = compare(&a, &b, &CompareRules::default()).unwrap();
    assert!(found.notes.iter().any(|note| note.starts_with("1 and 4 ranks")), "{:?}", found.notes);
    assert!(found.rows.iter().all(|row| row.measure != Measure::SameShapes));
    let throughput = found.rows.iter().find(|row| row.measure == Measure::Throughput).unwrap();
    assert!(throughput.decides);
}
