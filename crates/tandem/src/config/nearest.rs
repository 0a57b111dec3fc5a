//! The nearest known name for a misspelt key, value or variable.

/// The candidate that was probably meant. Upper case, `-` and `_` make no difference.
pub fn nearest<'a>(wrong: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = plain(wrong);
    let measured = candidates.map(|name| (strsim::damerau_levenshtein(&wrong, &plain(name)), name));
    let (distance, name) = measured.min()?;
    // Allowed errors: one in a short name, two in a usual one, a quarter of a long one.
    let length = wrong.chars().count();
    let most = if length < 4 { 1 } else { (length / 4).max(2) };
    (distance <= most && distance < length).then_some(name)
}

fn plain(name: &str) -> String {
    name.to_lowercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(wrong: &str, right: Option<&str>) {
        let names = ["batch_size", "lr", "lag", "every", "max_steps", "seed"];
        assert_eq!(nearest(wrong, names.into_iter()), right);
    }

    #[test]
    fn misspelt_names_are_found_and_other_words_are_not() {
        check("batch_sise", Some("batch_size"));
        check("batchsize", Some("batch_size"));
        check("Batch-Size", Some("batch_size"));
        check("lrr", Some("lr"));
        check("evrey", Some("every"));
        check("max_step", Some("max_steps"));
        check("x", None);
        check("dropout", None);
        check("seat", Some("seed"));
    }
}
