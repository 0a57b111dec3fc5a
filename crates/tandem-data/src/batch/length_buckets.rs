//! Chooses the few lengths that batches are padded to.
//!
//! In: the frame counts of a corpus. Out: increasing edges; an utterance belongs to the first edge that
//! is not below its length. Few edges, because kernels are compiled and tuned for every shape. Their
//! positions minimise padding, because padded frames cost as much time as real ones.

use super::BatchConfig;

/// Edges are multiples of this, which suits vector units and fused kernels.
const STEP: usize = 8;
/// The most candidates for edges: limits the search, however long the longest utterance is.
const CANDIDATES: usize = 160;
/// One more edge must save at least this share of all frames to be worth its compiled kernels.
const WORTH: f64 = 0.005;

/// The edges from the configuration, or those with the least padding for these lengths.
///
/// `frames` are the lengths of usable utterances: none is above `max_mel_frames`.
pub(super) fn edges(frames: impl Iterator<Item = u32>, config: &BatchConfig) -> Vec<usize> {
    if let Some(edges) = &config.bucket_edges {
        return edges.clone();
    }
    let step = config.max_mel_frames.div_ceil(CANDIDATES).next_multiple_of(STEP);
    let mut counts = vec![0u64; config.max_mel_frames.div_ceil(step)];
    for length in frames {
        counts[(length as usize).div_ceil(step) - 1] += 1;
    }
    let edge = |bin: usize| ((bin + 1) * step).min(config.max_mel_frames);
    fit(&counts, config, edge).into_iter().map(edge).collect()
}

/// The bins that end a bucket: the exact optimum, by dynamic programming over the last edge.
fn fit(counts: &[u64], config: &BatchConfig, edge: impl Fn(usize) -> usize) -> Vec<usize> {
    let Some(last) = counts.iter().rposition(|&count| count > 0) else { return Vec::new() };
    let bins = last + 1;
    let mut before = vec![0u64; bins + 1];
    for bin in 0..bins {
        before[bin + 1] = before[bin] + counts[bin];
    }
    // Frames computed for the bins from..=to in one bucket, with its partial last batch.
    let cost = |from: usize, to: usize| {
        let rows = config.rows_of(edge(to)) as u64;
        (before[to + 1] - before[from]).div_ceil(rows) * rows * edge(to) as u64
    };
    // best[k][to]: least cost of bins 0..=to in k + 1 buckets, and the first bin of the last one.
    let mut best: Vec<Vec<(u64, usize)>> = vec![(0..bins).map(|to| (cost(0, to), 0)).collect()];
    for k in 1..config.max_buckets.min(bins) {
        let previous = &best[k - 1];
        let row = (0..bins).map(|to| {
            (1..=to)
                .map(|from| (previous[from - 1].0 + cost(from, to), from))
                .min()
                .filter(|option| option.0 < previous[to].0)
                .unwrap_or(previous[to])
        });
        best.push(row.collect());
    }
    trace_back(&best, last)
}

/// The last bins of the fewest buckets whose cost is near the minimum, in increasing order.
fn trace_back(best: &[Vec<(u64, usize)>], last: usize) -> Vec<usize> {
    let least = best[best.len() - 1][last].0 as f64;
    let enough = best.iter().position(|row| row[last].0 as f64 <= least * (1.0 + WORTH));
    let (mut k, mut to) = (enough.unwrap_or(best.len() - 1), last);
    let mut ends = vec![to];
    loop {
        // A row without improvement repeats the row with fewer buckets: use that one.
        while k > 0 && best[k - 1][to] == best[k][to] {
            k -= 1;
        }
        if k == 0 {
            ends.reverse();
            return ends;
        }
        to = best[k][to].1 - 1;
        k -= 1;
        ends.push(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(frames: &[u32], config: &BatchConfig) -> Vec<usize> {
        edges(frames.iter().copied(), config)
    }

    #[test]
    fn edges_increase_up_to_the_longest_utterance() {
        let frames: Vec<u32> = (0..5_000).map(|i| 50 + (i * 7919) % 700).collect();
        let found = fitted(&frames, &BatchConfig::default());
        assert!(found.len() <= 8 && found.windows(2).all(|pair| pair[0] < pair[1]), "{found:?}");
        assert_eq!(found.last(), Some(&752), "{found:?}");
        assert!(found.iter().all(|edge| edge % STEP == 0), "{found:?}");
    }

    #[test]
    fn clear_groups_of_lengths_get_an_edge_each() {
        let frames = [vec![96; 160], vec![400; 160], vec![795; 160]].concat();
        assert_eq!(fitted(&frames, &BatchConfig::default()), [96, 400, 800]);
    }

    #[test]
    fn a_tiny_corpus_is_not_split_into_batches_of_one() {
        // Four rows fit in one batch: every further bucket would add a batch.
        assert_eq!(fitted(&[300, 310, 320, 500], &BatchConfig::default()), [504]);
    }

    #[test]
    fn the_search_finds_the_optimum_of_an_exhaustive_search() {
        let config = BatchConfig { batch_size: 2, max_buckets: 3, ..BatchConfig::default() };
        for seed in 0..50u64 {
            let counts: Vec<u64> = (0..9).map(|bin| (seed * 31 + bin * bin * 17) % 5).collect();
            let edge = |bin: usize| (bin + 1) * STEP;
            let price = |ends: &[usize]| {
                let mut from = 0;
                ends.iter()
                    .map(|&to| {
                        let rows: u64 = counts[from..=to].iter().sum();
                        from = to + 1;
                        rows.div_ceil(2) * 2 * edge(to) as u64
                    })
                    .sum::<u64>()
            };
            let Some(last) = counts.iter().rposition(|&count| count > 0) else { continue };
            let least = (0..1u32 << last)
                .filter(|set| set.count_ones() < 3)
                .map(|set| {
                    let inner = (0..last).filter(|bin| set >> bin & 1 == 1);
                    price(&inner.chain([last]).collect::<Vec<_>>())
                })
                .min();
            let found = price(&fit(&counts, &config, edge)) as f64;
            assert!(found <= least.unwrap() as f64 * (1.0 + WORTH), "{counts:?}");
        }
    }

    #[test]
    fn configured_edges_are_used_unchanged() {
        let config = BatchConfig { bucket_edges: Some(vec![300, 800]), ..BatchConfig::default() };
        assert_eq!(fitted(&[10], &config), [300, 800]);
    }
}
