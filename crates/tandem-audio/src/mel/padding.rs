//! Maps a position of the padded signal to a sample. One function for all kernels and the reference,
//! so that all pad in the same way.

/// Index into a signal of `length` samples for the place `place` of that signal with `before`
/// places of reflection in front of it: edges are not repeated, a signal shorter than the padding
/// is reflected again and again, and a single sample is repeated (as `numpy.pad` reflects).
pub fn reflected(place: usize, before: usize, length: usize) -> usize {
    if length <= 1 {
        return 0;
    }
    let period = 2 * (length - 1);
    // The distance to sample 0 on either side means the same sample.
    let distance = place.abs_diff(before);
    // Nearly always the first case; a division costs more than all the rest.
    let distance = if distance < period { distance } else { distance % period };
    distance.min(period - distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values from `numpy.pad(range(length), before, mode="reflect")`.
    #[track_caller]
    fn check(length: usize, before: usize, expected: &[usize]) {
        let found: Vec<usize> =
            (0..length + 2 * before).map(|place| reflected(place, before, length)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn padding_reflects_without_repeating_the_edge() {
        check(4, 2, &[2, 1, 0, 1, 2, 3, 2, 1]);
    }

    #[test]
    fn a_signal_shorter_than_the_padding_is_reflected_again() {
        check(3, 5, &[1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1]);
        check(2, 3, &[1, 0, 1, 0, 1, 0, 1, 0]);
    }

    #[test]
    fn one_sample_is_repeated() {
        check(1, 3, &[0; 7]);
    }
}
