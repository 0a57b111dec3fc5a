//! The guarantees of batch order for arbitrary corpora: every utterance exactly once, resumable at any
//! batch, within the budget, in few shapes; and one fixed plan that never changes.

use proptest::prelude::*;
use std::collections::HashSet;
use tandem_data::batch::{BatchConfig, BatchError, Batches, Lengths, Position, Unfit};
use tandem_text::Transcript;
use tandem_units::{Epoch, Seed};

/// Lengths as in a speech corpus: mean near 400 frames, a long tail, spread by a hash.
fn corpus(rows: u32) -> (Vec<u32>, Vec<u32>) {
    let spread = |row: u32| (Seed(3).derive(u64::from(row)).0 >> 32) as f64 / 4_294_967_296.0;
    let frames = (0..rows).map(|row| 60 + (700.0 * spread(row).powf(0.8)) as u32);
    let frames: Vec<u32> = frames.collect();
    let symbols = frames.iter().map(|frames| frames / 6 + 3).collect();
    (frames, symbols)
}

fn batches(frames: &[u32], symbols: &[u32], config: &BatchConfig) -> Result<Batches, BatchError> {
    Batches::new(Lengths { frames, symbols }, config)
}

/// Every batch of an epoch as its rows.
fn order(batches: &Batches, epoch: u32, from: usize) -> Vec<Vec<u32>> {
    batches.epoch(Epoch(epoch)).batches_from(from).map(|batch| batch.rows.to_vec()).collect()
}

fn config() -> impl Strategy<Value = BatchConfig> {
    let edges = prop_oneof![Just(None), Just(Some(vec![100, 250, 600])), Just(Some(vec![600]))];
    let budget = prop::option::of(600..20_000usize);
    (1..40usize, budget, 1..10usize, edges, any::<u64>()).prop_map(
        |(batch_size, frame_budget, max_buckets, bucket_edges, seed)| BatchConfig {
            batch_size,
            frame_budget,
            max_mel_frames: 600,
            max_text_length: 90,
            max_buckets,
            bucket_edges,
            seed: Seed(seed),
        },
    )
}

fn lengths() -> impl Strategy<Value = (Vec<u32>, Vec<u32>)> {
    prop::collection::vec((0..700u32, 0..100u32), 1..400).prop_map(|rows| rows.into_iter().unzip())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn every_utterance_that_fits_occurs_exactly_once(
        (frames, symbols) in lengths(), config in config(), epoch in 0..5u32,
    ) {
        let fits = |row: u32| {
            let (frames, symbols) = (frames[row as usize], symbols[row as usize]);
            (1..=600).contains(&frames) && (1..=90 + Transcript::EDGES as u32).contains(&symbols)
        };
        let expected: Vec<u32> = (0..frames.len() as u32).filter(|&row| fits(row)).collect();
        let Ok(batches) = batches(&frames, &symbols, &config) else {
            prop_assert!(expected.is_empty());
            return Ok(());
        };
        let mut seen = order(&batches, epoch, 0).concat();
        seen.sort_unstable();
        prop_assert_eq!(seen, expected);
        let left: Vec<u32> = batches.left_out().iter().map(|out| out.row).collect();
        prop_assert_eq!(left, (0..frames.len() as u32).filter(|&r| !fits(r)).collect::<Vec<_>>());
    }

    #[test]
    fn batches_respect_the_limits_the_budget_and_a_few_shapes(
        (frames, symbols) in lengths(), config in config(), epoch in 0..5u32,
    ) {
        let Ok(batches) = batches(&frames, &symbols, &config) else { return Ok(()) };
        let plan = batches.epoch(Epoch(epoch));
        let budget = config.frame_budget.unwrap_or(config.batch_size * config.max_mel_frames);
        let mut shapes = HashSet::new();
        for batch in plan.batches_from(0) {
            let shape = batch.shape;
            shapes.insert(shape);
            prop_assert!(!batch.rows.is_empty() && batch.rows.len() <= shape.rows);
            prop_assert!(shape.rows <= config.batch_size && shape.rows * shape.frames <= budget);
            prop_assert!(shape.frames <= 600 && shape.symbols <= 90 + Transcript::EDGES);
            for &row in batch.rows {
                prop_assert!(frames[row as usize] as usize <= shape.frames);
                prop_assert!(symbols[row as usize] as usize <= shape.symbols);
            }
        }
        let most = config.bucket_edges.as_ref().map_or(config.max_buckets, Vec::len);
        prop_assert!(shapes.len() <= most);
        prop_assert_eq!(shapes, batches.shapes().collect::<HashSet<_>>());
        let padding = plan.padding();
        prop_assert!(padding.real_frames <= padding.padded_frames && padding.waste() < 1.0);
    }

    #[test]
    fn tight_batches_have_the_same_rows_and_the_smallest_shape(
        (frames, symbols) in lengths(), config in config(), epoch in 0..5u32,
    ) {
        let Ok(fixed) = batches(&frames, &symbols, &config) else { return Ok(()) };
        let tight = fixed.clone().tight(Lengths { frames: &frames, symbols: &symbols });
        let (fixed, tight) = (fixed.epoch(Epoch(epoch)), tight.epoch(Epoch(epoch)));
        prop_assert_eq!(fixed.len(), tight.len());
        for (fixed, tight) in fixed.batches_from(0).zip(tight.batches_from(0)) {
            prop_assert_eq!(fixed.rows, tight.rows);
            let longest = |list: &[u32]| tight.rows.iter().map(|&row| list[row as usize]).max();
            let shape = tight.shape;
            prop_assert_eq!(shape.rows, tight.rows.len());
            prop_assert_eq!(Some(shape.frames as u32), longest(&frames));
            prop_assert_eq!(Some(shape.symbols as u32), longest(&symbols));
            prop_assert!(shape.frames <= fixed.shape.frames && shape.symbols <= fixed.shape.symbols);
        }
        prop_assert!(tight.padding().padded_frames <= fixed.padding().padded_frames);
    }

    #[test]
    fn resuming_at_any_batch_gives_the_uninterrupted_order(
        (frames, symbols) in lengths(), config in config(), stop in 0..200usize,
    ) {
        let Ok(first) = batches(&frames, &symbols, &config) else { return Ok(()) };
        let whole = [order(&first, 0, 0), order(&first, 1, 0), order(&first, 2, 0)].concat();
        // The run stops; its position is saved to a file; another process continues.
        let mut position = Position::start(config.seed);
        let stop = stop % order(&first, 0, 0).len().max(1) * 2;
        for _ in 0..stop {
            position = position.after_batch(&first.epoch(position.epoch));
        }
        let saved = serde_json::to_string(&position).unwrap();
        let position: Position = serde_json::from_str(&saved).unwrap();
        let again = BatchConfig { seed: position.seed, ..config };
        let second = batches(&frames, &symbols, &again).unwrap();
        let mut rest = order(&second, position.epoch.0, position.batch as usize);
        for epoch in position.epoch.0 + 1..3 {
            rest.extend(order(&second, epoch, 0));
        }
        prop_assert_eq!(&whole[stop..], &rest[..]);
    }
}

#[test]
fn a_small_plan_never_changes() {
    // After a change here, earlier runs cannot be resumed: increment the checkpoint version too.
    let (frames, symbols) = corpus(20);
    let config = BatchConfig {
        batch_size: 4,
        bucket_edges: Some(vec![300, 800]),
        seed: Seed(42),
        ..BatchConfig::default()
    };
    let found = order(&batches(&frames, &symbols, &config).unwrap(), 1, 0);
    let pinned: [&[u32]; 6] =
        [&[6], &[12, 11, 13], &[2, 0, 4, 7], &[18, 10, 15, 1], &[5, 3, 14, 8], &[9, 17, 16, 19]];
    assert_eq!(found, pinned);
}

#[test]
fn epochs_differ_and_seeds_differ() {
    let (frames, symbols) = corpus(500);
    let one = batches(&frames, &symbols, &BatchConfig::default()).unwrap();
    let other = BatchConfig { seed: Seed(1), ..BatchConfig::default() };
    let other = batches(&frames, &symbols, &other).unwrap();
    assert_ne!(order(&one, 0, 0), order(&one, 1, 0));
    assert_ne!(order(&one, 0, 0), order(&other, 0, 0));
    assert_eq!(order(&one, 3, 0), order(&one.clone(), 3, 0));
}

#[test]
fn long_batches_are_not_consecutive() {
    // Within an epoch the buckets are mixed, or the loss would swing with length.
    let (frames, symbols) = corpus(5_000);
    let plan = batches(&frames, &symbols, &BatchConfig::default()).unwrap().epoch(Epoch(0));
    let lengths: Vec<usize> = plan.batches_from(0).map(|batch| batch.shape.frames).collect();
    let changes = lengths.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!(changes * 2 > lengths.len(), "{changes} of {}", lengths.len());
}

#[test]
fn fitted_lengths_waste_less_than_a_tenth() {
    let (frames, symbols) = corpus(13_100);
    let fitted = batches(&frames, &symbols, &BatchConfig::default()).unwrap();
    let waste = fitted.epoch(Epoch(0)).padding().waste();
    let geometric = Some(vec![168, 208, 264, 328, 408, 512, 640, 800]);
    let by_hand = BatchConfig { bucket_edges: geometric, ..BatchConfig::default() };
    let by_hand = batches(&frames, &symbols, &by_hand).unwrap().epoch(Epoch(0)).padding().waste();
    assert!(waste < 0.1 && waste < by_hand, "fitted {waste:.3}, geometric {by_hand:.3}");
}

#[test]
fn utterances_outside_the_limits_are_listed_with_their_reason() {
    let config = BatchConfig::default();
    let found = batches(&[0, 5, 801, 5, 5], &[5, 0, 5, 203, 202], &config).unwrap();
    let why: Vec<Unfit> = found.left_out().iter().map(|out| out.why).collect();
    use Unfit::{NoFrames, NoSymbols, TooManyFrames, TooManySymbols};
    assert_eq!(why, [NoFrames, NoSymbols, TooManyFrames(801), TooManySymbols(203)]);
    assert_eq!(order(&found, 0, 0), [[4]]);
    let nothing = batches(&[801], &[5], &config).unwrap_err();
    assert_eq!(nothing.to_string(), "none of 1 utterances fits the limits");
    let uneven = batches(&[1, 2], &[5], &config).unwrap_err();
    assert_eq!(uneven.to_string(), "2 frame counts, but 1 symbol counts");
}
