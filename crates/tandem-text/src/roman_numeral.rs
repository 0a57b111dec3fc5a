//! Roman numerals as written. Knows no language and no context.
//!
//! In: a word. Out: its value, if it is written by the rules.

/// The value of a numeral written by the rules, in any case.
pub fn value(word: &str) -> Option<u32> {
    const SIGNS: [(u32, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    // The pronoun and other single letters.
    let letter = word.len() == 1 && word.bytes().all(|b| b.is_ascii_lowercase());
    if word.is_empty() || word.len() > 9 || letter {
        return None;
    }
    let capitals = word.to_ascii_uppercase();
    let (mut rest, mut value) = (capitals.as_str(), 0);
    for (worth, sign) in SIGNS {
        // A sign of two letters or of five is written once, the others up to three times.
        let most = if sign.len() == 2 || matches!(sign, "D" | "L" | "V") { 1 } else { 3 };
        for _ in 0..most {
            let Some(shorter) = rest.strip_prefix(sign) else { break };
            (rest, value) = (shorter, value + worth);
        }
    }
    let whole = rest.is_empty() && written(value, &SIGNS) == capitals;
    (whole && value > 0).then_some(value)
}

fn written(mut value: u32, signs: &[(u32, &str)]) -> String {
    let mut out = String::new();
    for (worth, sign) in signs {
        while value >= *worth {
            out.push_str(sign);
            value -= worth;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numerals_are_read_and_words_are_not() {
        for (word, expected) in [
            ("I", Some(1)),
            ("II", Some(2)),
            ("IV", Some(4)),
            ("VIII", Some(8)),
            ("XIX", Some(19)),
            ("XLIX", Some(49)),
            ("MCMXCIX", Some(1999)),
            ("iv", Some(4)),
            ("MIX", Some(1009)),
            ("IIII", None),
            ("VV", None),
            ("IXI", None),
            ("IVI", None),
            ("Vi", Some(6)),
            ("i", None),
            ("", None),
        ] {
            assert_eq!(value(word), expected, "{word}");
        }
    }

    #[test]
    fn every_numeral_has_the_value_it_is_written_for() {
        const SIGNS: [(u32, &str); 3] = [(10, "X"), (9, "IX"), (1, "I")];
        assert_eq!(written(23, &SIGNS), "XXIII");
        for number in 1..40 {
            let text = ["", "X", "XX", "XXX"][number / 10].to_owned()
                + ["", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"][number % 10];
            assert_eq!(value(&text), Some(number as u32), "{text}");
        }
    }
}
