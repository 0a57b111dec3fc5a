//! Standard normal values from a counter-based generator.
//!
//! In: a generator at some place of its stream. Out: values, and the generator after them. The values of a long array are
//! drawn by all threads of the caller's pool: the place of each in the stream is known beforehand, so they have the same
//! bits with any number of threads.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// Values that one thread draws at a time; even, since they come in pairs.
const CHUNK: usize = 1 << 14;

/// So many values (Box-Muller).
pub fn normal(rng: &mut ChaCha8Rng, count: usize) -> Vec<f32> {
    let mut values = vec![0.0; count];
    fill_normal(rng, &mut values);
    values
}

/// Fills an array.
pub fn fill_normal(rng: &mut ChaCha8Rng, values: &mut [f32]) {
    if values.len() <= CHUNK {
        return fill(rng, values);
    }
    // A pair of values takes two words of the stream.
    let (begin, words) = (rng.get_word_pos(), values.len().next_multiple_of(2));
    let chunks = values.par_chunks_mut(CHUNK).enumerate();
    chunks.for_each(|(number, values)| {
        let mut own = rng.clone();
        own.set_word_pos(begin + (number * CHUNK) as u128);
        fill(&mut own, values);
    });
    rng.set_word_pos(begin + words as u128);
}

fn fill(rng: &mut ChaCha8Rng, values: &mut [f32]) {
    for pair in values.chunks_mut(2) {
        let (radius, angle): (f32, f32) = (rng.random(), rng.random());
        let radius = (-2.0 * (1.0 - radius).ln()).sqrt();
        let (sin, cos) = (std::f32::consts::TAU * angle).sin_cos();
        for (value, new) in pair.iter_mut().zip([radius * cos, radius * sin]) {
            *value = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn threads_draw_the_values_of_one_thread_and_leave_the_generator_where_it_does() {
        for count in [CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 5 * CHUNK + 7] {
            // From an odd place in the middle of a block.
            let mut many = ChaCha8Rng::seed_from_u64(count as u64);
            many.set_word_pos(4 * 64 + 13);
            let (mut one, mut serial) = (many.clone(), vec![0.0; count]);
            fill(&mut one, &mut serial);
            let parallel = normal(&mut many, count);
            let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<_>>();
            assert!(bits(parallel) == bits(serial), "{count} values");
            assert_eq!(many.get_word_pos(), one.get_word_pos(), "{count} values");
        }
    }

    #[test]
    fn values_have_mean_zero_and_variance_one() {
        let values = normal(&mut ChaCha8Rng::seed_from_u64(1), 100_001);
        let mean = values.iter().sum::<f32>() / values.len() as f32;
        let square = values.iter().map(|value| value * value).sum::<f32>() / values.len() as f32;
        assert!(mean.abs() < 0.015 && (square - 1.0).abs() < 0.02, "{mean} {square}");
    }
}
