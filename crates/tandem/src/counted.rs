//! Numbers with their nouns, as people write them.

/// `1 row`, `2 rows`.
pub fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// `2.2 million parameters`, `48 thousand parameters`.
pub fn parameters(number: usize) -> String {
    match number {
        100_000.. => format!("{:.1} million parameters", number as f64 / 1e6),
        _ => format!("{} thousand parameters", number.div_ceil(1000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_keep_their_digits_and_one_is_singular() {
        assert_eq!(parameters(48_210), "49 thousand parameters");
        assert_eq!(parameters(2_249_000), "2.2 million parameters");
        assert_eq!([count(1, "row"), count(0, "row")], ["1 row", "0 rows"]);
    }
}
