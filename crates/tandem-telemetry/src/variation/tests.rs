//! Constructed runs: mixed lengths are no alarm, real disturbances are, and the named cause is the
//! one that was put in.

use super::*;
use crate::expected_time::OFTEN;
use crate::step_sample::StepSize;
use crate::variation_cause::VariationSource;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const LIMIT: f64 = 0.30;

/// Lengths of utterances in mel frames.
#[derive(Clone, Copy, Debug)]
enum Lengths {
    /// One sentence of a few seconds.
    Demo,
    /// A broad hump up to the limit of 800 frames.
    LjSpeech,
    /// Mostly single words, some whole sentences.
    Prompts,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Disturbance {
    None,
    SlowStage(&'static str),
    SlowModel,
    OtherPrograms,
    OwnWork,
}

/// Seconds that a disturbance costs a step or a stage.
const LOST: f64 = 0.35;

/// The stage is slow on the batches of this step, and the model waits for them.
fn wait_for(step: &mut StepTime, stage: &str) {
    step.work.iter_mut().filter(|(name, _)| name == stage).for_each(|work| work.1 += LOST);
    step.waited = 0.9 * LOST;
    step.took += step.waited;
}

struct Machine {
    random: ChaCha8Rng,
    /// Relative noise of an undisturbed step.
    noise: f64,
}

impl Machine {
    fn around(&mut self, value: f64) -> f64 {
        let throw: f64 = (0..12).map(|_| self.random.random::<f64>()).sum::<f64>() - 6.0;
        (value * (1.0 + self.noise * throw)).max(0.1 * value)
    }

    fn frames(&mut self, lengths: Lengths) -> u32 {
        let share = self.random.random::<f64>();
        let frames = match lengths {
            Lengths::Demo => 150.0 + 250.0 * share,
            Lengths::LjSpeech => 100.0 + 700.0 * share.sqrt(),
            Lengths::Prompts if share < 0.9 => 30.0 + 60.0 * share,
            Lengths::Prompts => 800.0 * share,
        };
        // Static shapes: a small set of paddings, and now and then the short last batch.
        (frames / 48.0).ceil() as u32 * 48
    }

    fn step(&mut self, lengths: Lengths, hit: bool, disturbance: Disturbance) -> StepTime {
        let rows = if self.random.random::<f64>() < 0.05 { 3 } else { 16 };
        let frames = self.frames(lengths);
        let size = StepSize::of([rows, frames / 6, frames]);
        let cost = 0.008 + 8e-6 * size.frames as f64 + 4e-9 * size.squared;
        let train = self.around(cost);
        let work = vec![
            ("load".into(), self.around(0.3 * cost)),
            ("preprocess".into(), self.around(0.2 * cost)),
            ("align".into(), self.around(0.1 * cost)),
            ("transfer".into(), self.around(0.001)),
        ];
        let mut took = train;
        let mut cpu = self.around(1.8 * train);
        // Rates as measured on two cores: the threads of a run take turns, other programs come on top.
        let mut preempted = self.around(150.0 * train).round();
        match disturbance {
            Disturbance::SlowModel if hit => {
                took += LOST;
                preempted += 100.0 * LOST;
            }
            Disturbance::OtherPrograms if hit => {
                took += LOST;
                preempted += 300.0 * LOST;
                cpu *= 1.02;
            }
            Disturbance::OwnWork if hit => {
                took += LOST;
                preempted += 150.0 * LOST;
                cpu += 1.9 * LOST;
            }
            _ => {}
        }
        let (cpu, preempted) = (Some(cpu), Some(preempted));
        let mut step = StepTime { took, waited: 0.0, size: Some(size), cpu, preempted, work };
        if let Disturbance::SlowStage(name) = disturbance
            && hit
        {
            wait_for(&mut step, name);
        }
        step
    }

    fn run(&mut self, lengths: Lengths, disturbance: Disturbance, every: usize) -> Vec<StepTime> {
        (0..100).map(|n| self.step(lengths, n % every == 0, disturbance)).collect()
    }
}

fn machine(seed: u64, noise: f64) -> Machine {
    Machine { random: ChaCha8Rng::seed_from_u64(seed), noise }
}

fn lengths() -> impl Strategy<Value = Lengths> {
    prop_oneof![Just(Lengths::Demo), Just(Lengths::LjSpeech), Just(Lengths::Prompts)]
}

fn stages() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("load"), Just("preprocess"), Just("align"), Just("transfer")]
}

#[track_caller]
fn check_stage(found: &Variation, stage: &str) {
    let cause = found.cause.as_ref().unwrap();
    assert_eq!(
        (cause.source, cause.stage.as_deref()),
        (VariationSource::Stage, Some(stage)),
        "{found:?}"
    );
    assert!(cause.share > 0.5 && cause.agreement > 0.4, "{found:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn mixed_lengths_alone_are_silent(lengths in lengths(), seed: u64, noise in 0.0..0.12f64) {
        let found = variation(&machine(seed, noise).run(lengths, Disturbance::None, 1)).unwrap();
        prop_assert!(found.by_shape <= LIMIT, "{found:?}");
        prop_assert!(found.by_shape <= found.raw + 0.05, "{found:?}");
    }

    #[test]
    fn a_slow_stage_is_found_and_named(
        lengths in lengths(),
        seed: u64,
        stage in stages(),
        every in 5usize..20,
    ) {
        let steps = machine(seed, 0.05).run(lengths, Disturbance::SlowStage(stage), every);
        let found = variation(&steps).unwrap();
        prop_assert!(found.by_shape > LIMIT, "{found:?}");
        check_stage(&found, stage);
    }

    /// The expected time of that size contains a wait. Prompts are left out: a size that is seen often
    /// is a third of such a run or more. Its waits bend the curves from which rare sizes have their
    /// expected waits and work, each curve in its own way. Then no stage may be named.
    #[test]
    fn a_stage_that_is_slow_on_most_batches_of_one_size_is_named(
        lengths in prop_oneof![Just(Lengths::Demo), Just(Lengths::LjSpeech)],
        seed: u64,
        stage in stages(),
        spared in 3usize..5,
    ) {
        let mut steps = machine(seed, 0.05).run(lengths, Disturbance::None, 1);
        let count = |size| steps.iter().filter(|step| step.size == size).count();
        let often = steps.iter().map(|step| step.size).filter(|size| count(*size) >= OFTEN);
        let slow = often.min_by_key(|size| count(*size)).unwrap();
        let of_size = steps.iter_mut().filter(|step| step.size == slow).enumerate();
        for (_, step) in of_size.filter(|(n, _)| n % spared != 0) {
            wait_for(step, stage);
        }
        check_stage(&variation(&steps).unwrap(), stage);
    }

    #[test]
    fn what_slows_the_step_itself_is_told_apart(
        lengths in lengths(),
        seed: u64,
        every in 3usize..15,
        which in 0usize..3,
    ) {
        let (disturbance, source) = [
            (Disturbance::SlowModel, VariationSource::Model),
            (Disturbance::OtherPrograms, VariationSource::OtherPrograms),
            (Disturbance::OwnWork, VariationSource::OwnWork),
        ][which];
        let found = variation(&machine(seed, 0.05).run(lengths, disturbance, every)).unwrap();
        prop_assert!(found.by_shape > LIMIT, "{found:?}");
        let cause = found.cause.unwrap();
        prop_assert_eq!(cause.source, source, "{}", cause.evidence);
    }

    #[test]
    fn any_times_give_finite_figures_or_none(
        times in prop::collection::vec((0.0..10.0f64, 0.0..1.0f64, 0u32..40, 0u32..900), 0..60),
    ) {
        let steps: Vec<StepTime> = times
            .iter()
            .map(|&(took, wait, rows, frames)| StepTime {
                took,
                waited: took * wait,
                size: (rows > 0).then(|| StepSize::of([rows, frames / 4, frames])),
                ..StepTime::default()
            })
            .collect();
        if let Some(found) = variation(&steps) {
            for figure in [found.raw, found.by_shape, found.excess] {
                prop_assert!(figure.is_finite() && figure >= 0.0, "{found:?}");
            }
            if let Some(cause) = &found.cause {
                prop_assert!((0.0..=1.0).contains(&cause.share), "{found:?}");
                prop_assert!(cause.agreement.is_finite(), "{found:?}");
            }
        }
    }

    #[test]
    fn times_of_one_shape_vary_as_the_raw_figure_says(
        times in prop::collection::vec(0.01..1.0f64, 2..49),
    ) {
        let steps: Vec<StepTime> =
            times.iter().map(|&took| StepTime { took, ..StepTime::default() }).collect();
        let found = variation(&steps).unwrap();
        prop_assert!((found.by_shape - found.raw).abs() < 1e-9, "{found:?}");
    }
}

/// Of the ten steps with 16 rows of 768 frames, six waited.
#[test]
fn a_slow_stage_is_named_where_most_steps_of_a_size_waited() {
    let slow = Disturbance::SlowStage("load");
    let steps = machine(4141094952494727404, 0.05).run(Lengths::LjSpeech, slow, 12);
    let found = variation(&steps).unwrap();
    check_stage(&found, "load");
    assert_eq!(
        found.cause.unwrap().evidence,
        "`load` took 33.39 ms for a usual batch and 394.69 ms for the late ones"
    );
}

#[test]
fn one_pause_in_a_hundred_steps_is_no_instability() {
    let mut steps = machine(1, 0.05).run(Lengths::Demo, Disturbance::None, 1);
    steps[40].took += 5.0;
    let found = variation(&steps).unwrap();
    assert!(found.by_shape < 0.1 && found.raw > 1.0, "{found:?}");
    steps[70].took += 5.0;
    assert!(variation(&steps).unwrap().by_shape > LIMIT, "two are");
}

#[test]
fn waiting_without_a_slow_stage_names_none() {
    let mut steps = machine(2, 0.05).run(Lengths::Demo, Disturbance::None, 1);
    for step in steps.iter_mut().step_by(10) {
        step.waited = 0.4;
        step.took += 0.4;
    }
    let cause = variation(&steps).unwrap().cause.unwrap();
    assert_eq!((cause.source, cause.stage), (VariationSource::Waiting, None));
}

/// Workers that have no CPU deliver late without working longer on a batch.
#[test]
fn waiting_while_the_system_takes_the_cpu_away_names_other_programs() {
    let mut steps = machine(2, 0.05).run(Lengths::Demo, Disturbance::None, 1);
    for step in steps.iter_mut().step_by(10) {
        step.waited = 0.4;
        step.took += 0.4;
        step.preempted = step.preempted.map(|count| count + 120.0);
    }
    let cause = variation(&steps).unwrap().cause.unwrap();
    assert_eq!((cause.source, cause.stage), (VariationSource::OtherPrograms, None));
    assert!(cause.evidence.contains("took a CPU from this run"), "{}", cause.evidence);
}

#[test]
fn too_few_steps_of_many_shapes_are_not_judged() {
    let steps = machine(3, 0.05).run(Lengths::LjSpeech, Disturbance::None, 1);
    assert_eq!(variation(&steps[..1]), None);
    assert_eq!(variation(&steps[..6]), None);
    assert!(variation(&steps[..40]).is_some());
}
