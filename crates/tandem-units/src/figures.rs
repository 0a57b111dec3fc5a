//! Figures for people and the median, in one way everywhere.

/// A share in percent: `12.3 %`.
pub fn percent(share: f64) -> String {
    let number = format!("{:.1}", 100.0 * share);
    // What rounds to zero has no sign.
    format!("{} %", if number == "-0.0" { "0.0" } else { &number })
}

/// A change in percent, with its sign: `+12.3 %`.
pub fn signed_percent(share: f64) -> String {
    let number = format!("{:+.1}", 100.0 * share);
    format!("{} %", if number == "-0.0" { "+0.0" } else { &number })
}

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
    fn what_rounds_to_zero_has_no_minus() {
        assert_eq!([percent(0.1234), percent(-0.0001)], ["12.3 %", "0.0 %"]);
        assert_eq!([signed_percent(0.1), signed_percent(-0.0001)], ["+10.0 %", "+0.0 %"]);
        assert_eq!(signed_percent(-0.25), "-25.0 %");
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
