//! The median of measurements.

/// The middle value, or the mean of the two in the middle; none of nothing. Changes the order.
pub fn median(values: &mut [f64]) -> Option<f64> {
    let middle = values.len().checked_sub(1)? / 2;
    let (_, &mut low, above) = values.select_nth_unstable_by(middle, f64::total_cmp);
    // As many values above the middle as up to it: the median lies between two.
    let is_between = above.len() == middle + 1;
    let high = above.iter().copied().reduce(f64::min).filter(|_| is_between);
    Some(high.map_or(low, |high| (low + high) / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(mut values: Vec<f64>, expected: Option<f64>) {
        assert_eq!(median(&mut values), expected, "{values:?}");
    }

    #[test]
    fn an_even_number_of_values_has_its_median_between_two() {
        check(vec![], None);
        check(vec![3.0], Some(3.0));
        check(vec![9.0, 1.0], Some(5.0));
        check(vec![9.0, 1.0, 2.0], Some(2.0));
        check(vec![9.0, 1.0, 4.0, 2.0], Some(3.0));
    }
}
