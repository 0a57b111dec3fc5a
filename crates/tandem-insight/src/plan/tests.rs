use super::*;
use crate::profile::tests::{runs, subject};
use crate::profile::{BatchShapes, ProfileRules, Subject};
use crate::reduce_cost::ReduceCost;
use tandem_units::Hint;

fn profile(costs: [f64; 5], sharing: Sharing) -> ProfileAnswer {
    let subject = Subject { sharing, ..subject() };
    let shapes = [(2, 100), (4, 100)]
        .map(|(batch_size, frames)| BatchShapes {
            batch_size,
            shapes: vec![([batch_size as u32, 8, frames], 10)],
        })
        .to_vec();
    ProfileAnswer::judge(subject, runs(costs), shapes, &ProfileRules::default())
}

fn question() -> PlanQuestion {
    PlanQuestion {
        modes: PlanMode::ALL.to_vec(),
        named: false,
        workers: Vec::new(),
        depths: Vec::new(),
        batches: Vec::new(),
        reduce: None,
        gpus: None,
    }
}

#[test]
fn a_second_device_is_not_worth_it_where_the_model_is_the_pace() {
    let found =
        plan(&[profile([5.0, 5.0, 10.0, 2.0, 90.0], Sharing::OneGpu)], &question()).unwrap();
    assert_eq!(found.rows[found.choice].mode, PlanMode::Single);
    let said = "a second GPU is not worth it: as data device it gives no more utterances a second";
    assert!(
        found.advice.contains(said) && found.advice.contains("below the 10.0 %"),
        "{}",
        found.advice
    );
    assert!(found.own_error.abs() < 0.01, "{}", found.own_error);
    assert_eq!(found.missing.len(), 1, "data-parallel needs the cost of sums");
    assert!(found.missing[0].command.contains("tandem bench reduce"));
}

#[test]
fn a_second_device_is_worth_it_where_data_work_slows_the_model() {
    let mut slowed = profile([5.0, 5.0, 30.0, 2.0, 40.0], Sharing::OneGpu);
    let batches = slowed.measured.as_is.batches.iter_mut();
    batches.for_each(|batch| batch.train = 0.070);
    let found = plan(&[slowed], &question()).unwrap();
    assert_eq!(found.rows[found.choice].mode, PlanMode::Dual);
    assert!((found.rows[found.choice].gain - 0.75).abs() < 0.02, "{}", found.advice);
}

/// What the machine cannot do is shown, and never recommended.
#[test]
fn a_second_device_that_does_not_exist_is_not_recommended() {
    let slowed = |sharing| {
        let mut slowed = profile([5.0, 5.0, 30.0, 2.0, 40.0], sharing);
        slowed.measured.as_is.batches.iter_mut().for_each(|batch| batch.train = 0.070);
        slowed
    };
    for (sharing, gpus, words) in [
        (Sharing::Cpu, None, "this profile is of a CPU"),
        (Sharing::Cpu, Some(2), "this profile is of a CPU"),
        (Sharing::OneGpu, Some(1), "this machine has one GPU"),
    ] {
        let found = plan(&[slowed(sharing)], &PlanQuestion { gpus, ..question() }).unwrap();
        assert_eq!(found.rows[found.choice].mode, PlanMode::Single, "{}", found.advice);
        assert!(found.advice.starts_with("use single: `--batch"), "{}", found.advice);
        assert!(found.advice.contains(words), "{}", found.advice);
        assert!(found.advice.contains("would give 75.0 % more"), "{}", found.advice);
    }
    let two = PlanQuestion { gpus: Some(2), ..question() };
    let found = plan(&[slowed(Sharing::OneGpu)], &two).unwrap();
    assert_eq!(found.rows[found.choice].mode, PlanMode::Dual, "{}", found.advice);
}

#[test]
fn the_profiled_setting_has_no_gain_whatever_limits_it() {
    for costs in [[5.0, 5.0, 10.0, 2.0, 90.0], [90.0, 5.0, 10.0, 2.0, 40.0]] {
        // Waiting makes the measured step longer than the predicted one.
        let mut waited = profile(costs, Sharing::OneGpu);
        waited.measured.as_is.batches.iter_mut().for_each(|batch| batch.waited += 0.030);
        let here = waited.subject.setting;
        let found = plan(&[waited], &question()).unwrap();
        let single = |row: &&PlanRow| row.mode == PlanMode::Single && row.setting == here;
        let own = found.rows.iter().find(single).expect("the profiled setting");
        assert_eq!(own.gain, 0.0);
        let limit = if costs[4] > 80.0 { "the model" } else { "loading" };
        assert_eq!(own.limit, limit);
    }
}

#[test]
fn data_parallel_adds_the_sum_of_gradients_to_the_slower_batch_of_two() {
    let base = profile([5.0, 5.0, 10.0, 2.0, 90.0], Sharing::OneGpu);
    // 2 million parameters of 4 bytes over 80 MB/s: 100 ms.
    let slow = Some(ReduceCost::of_link(80e6));
    let asked = PlanQuestion { reduce: slow, modes: vec![PlanMode::DataParallel], ..question() };
    let found = plan(std::slice::from_ref(&base), &asked).unwrap();
    assert!((found.rows[0].predicted.step - 0.190).abs() < 2e-3, "{:?}", found.rows[0]);
    let fast = PlanQuestion { reduce: Some(ReduceCost::of_link(80e9)), ..asked };
    let found = plan(std::slice::from_ref(&base), &fast).unwrap();
    assert!((found.rows[0].gain - 1.0).abs() < 0.02, "{:?}", found.rows[0]);
    // Every second batch takes 30 ms longer: ranks wait for it.
    let mut uneven = base.clone();
    for (n, batch) in uneven.measured.model_alone.batches.iter_mut().enumerate() {
        batch.train += if n % 2 == 1 { 0.030 } else { 0.0 };
    }
    let found = plan(&[uneven], &fast).unwrap();
    assert!((found.rows[0].predicted.step - 0.120).abs() < 2e-3, "{:?}", found.rows[0]);
    // 8 workers of two ranks on 4 cores: loading takes twice as long.
    let loading = profile([300.0, 0.0, 10.0, 2.0, 90.0], Sharing::OneGpu);
    let crowded = PlanQuestion { workers: vec![4], ..fast };
    let found = plan(&[loading], &crowded).unwrap();
    assert!((found.rows[0].predicted.step - 0.150).abs() < 3e-3, "{:?}", found.rows[0]);
}

#[test]
fn the_advice_says_what_a_second_gpu_is_good_for() {
    let fast = PlanQuestion { reduce: Some(ReduceCost::of_link(80e9)), ..question() };
    let slow = PlanQuestion { reduce: Some(ReduceCost::of_link(40e6)), ..question() };
    let model_bound = profile([5.0, 5.0, 10.0, 2.0, 90.0], Sharing::OneGpu);
    let found = plan(std::slice::from_ref(&model_bound), &fast).unwrap();
    assert_eq!(found.rows[found.choice].mode, PlanMode::DataParallel);
    for words in [
        "a second GPU as second model device gives",
        "as data device it gives no more",
        "mpirun -np 2",
    ] {
        assert!(found.advice.contains(words), "no `{words}` in {}", found.advice);
    }
    // Sums take longer than they save.
    let found = plan(&[model_bound], &slow).unwrap();
    assert_eq!(found.rows[found.choice].mode, PlanMode::Single);
    assert!(found.advice.contains("is not worth it"), "{}", found.advice);
    let mut fed = profile([5.0, 5.0, 30.0, 2.0, 40.0], Sharing::OneGpu);
    fed.measured.as_is.batches.iter_mut().for_each(|batch| batch.train = 0.070);
    let found = plan(&[fed], &slow).unwrap();
    assert_eq!(found.rows[found.choice].mode, PlanMode::Dual);
    assert!(found.advice.contains("a second GPU as data device gives"), "{}", found.advice);
}

#[test]
fn what_was_not_measured_is_refused_with_the_command_that_measures_it() {
    let base = profile([5.0, 5.0, 10.0, 2.0, 90.0], Sharing::OneGpu);
    let asked = PlanQuestion { batches: vec![4], ..question() };
    let error = plan(std::slice::from_ref(&base), &asked).unwrap_err();
    assert!(error.to_string().contains("batch"), "{error}");
    assert!(error.hint().unwrap().contains("tandem profile --batch-size 4"), "{:?}", error.hint());
    let asked = PlanQuestion { modes: vec![PlanMode::DataParallel], named: true, ..question() };
    assert!(plan(&[base], &asked).unwrap_err().hint().unwrap().contains("tandem bench reduce"));
    let two = profile([5.0, 5.0, 10.0, 2.0, 90.0], Sharing::TwoGpus);
    let asked = PlanQuestion { modes: vec![PlanMode::Single], named: true, ..question() };
    let error = plan(&[two], &asked).unwrap_err();
    assert!(error.hint().unwrap().contains("tandem profile"), "{error}");
    assert!(matches!(plan(&[], &question()), Err(PlanError::NoProfile)));
}

#[test]
fn another_batch_size_follows_from_batches_of_many_sizes() {
    let mut base = profile([6.0, 0.0, 10.0, 2.0, 90.0], Sharing::Cpu);
    // Costs that grow with the padded frames: 10 ms and 0.4 ms each.
    for run in
        [&mut base.measured.as_is, &mut base.measured.data_alone, &mut base.measured.model_alone]
    {
        for (n, batch) in run.batches.iter_mut().enumerate() {
            let padded = 100 + 100 * (n as u64 % 4);
            batch.padded = Some(padded);
            batch.train = 0.010 + 0.0004 * padded as f64;
            batch.waited = 0.0;
        }
    }
    let asked = PlanQuestion { batches: vec![4], modes: vec![PlanMode::Single], ..question() };
    let found = plan(&[base], &asked).unwrap();
    // 4 rows of 100 frames: 10 + 160 ms.
    assert!((found.rows[0].predicted.step - 0.170).abs() < 2e-3, "{:?}", found.rows[0]);
}

#[test]
fn a_run_that_is_over_is_predicted_and_the_error_said() {
    use crate::measured_run::{MeasuredRun, MeasuredStep};
    use crate::plan_past::{PastRun, median_error};
    let base = profile([5.0, 5.0, 10.0, 2.0, 90.0], Sharing::OneGpu);
    let subject = &base.subject;
    let step = MeasuredStep { took: 0.1, items: 2, frames: 100, shape: [2, 8, 100], size: None };
    let mut run = MeasuredRun {
        path: "past".into(),
        settings: serde_json::json!({ "config": {
            "num_workers": subject.setting.workers,
            "prefetch_buffer_size": subject.setting.depth,
            "batch": { "batch_size": subject.batch_size },
            "train": { "model_size": subject.model_size },
        }}),
        steps: vec![step; 20],
        ..MeasuredRun::default()
    };
    let past = PastRun::of(std::slice::from_ref(&base), &run).unwrap();
    assert!((past.error + 0.1).abs() < 0.02, "90 ms predicted, 100 ms measured: {past:?}");
    assert_eq!(median_error(std::slice::from_ref(&past)), Some(past.error.abs()));
    run.settings["config"]["train"]["model_size"] = "big".into();
    let refused = PastRun::of(std::slice::from_ref(&base), &run).unwrap_err().to_string();
    assert!(refused.contains("trained model size big"), "{refused}");
    run.settings = serde_json::Value::Null;
    assert!(PastRun::of(&[base], &run).is_err(), "a record without settings");
}
