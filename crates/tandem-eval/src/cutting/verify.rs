//! Whether a sentence is what is heard, or only the best that the text offers there.
//!
//! In: what each sentence costs per frame on the best path, against the best symbol of each frame. Out: how much more that is
//! than for the other sentences of the recording, in robust standard deviations; and what it costs to leave the text. Next:
//! [`super::rows`].

use super::lattice::Penalties;

/// A frame of foreign sound costs so many standard deviations more than one of the median sentence.
const FOREIGN: f64 = 2.5;
/// Its start costs as much as so many frames of the median sentence: much where it is looked for, so that the end of a
/// sentence is not taken for it, and little where it is known to be.
const START: f64 = 60.0;
const KNOWN_START: f64 = 30.0;
/// In a recording in which all sentences fit equally well, none is wrong: share of the median.
const LEAST_DEVIATION: f64 = 0.05;

pub fn penalties(costs: &[Option<f64>], places: Places) -> Penalties {
    let (median, deviation) = typical(costs);
    let start = match places {
        Places::Anywhere => START,
        Places::Known => KNOWN_START,
    };
    Penalties { sound: (median + FOREIGN * deviation) as f32, start: (start * median) as f32 }
}

/// Where foreign sound may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Places {
    Anywhere,
    Known,
}

/// None where a sentence is not said.
pub fn excess(costs: &[Option<f64>]) -> Vec<Option<f64>> {
    let (median, deviation) = typical(costs);
    costs.iter().map(|cost| Some(((*cost)? - median) / deviation)).collect()
}

/// Median and robust standard deviation.
fn typical(costs: &[Option<f64>]) -> (f64, f64) {
    let said: Vec<f64> = costs.iter().flatten().copied().collect();
    let middle = median(said.clone());
    let deviation = 1.4826 * median(said.iter().map(|cost| (cost - middle).abs()).collect());
    (middle, deviation.max(LEAST_DEVIATION * middle).max(1e-6))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_that_costs_more_than_the_others_stands_out() {
        let costs = [2.0, 2.1, 1.9, 2.2, 1.8, 4.0].map(Some);
        let found = excess(&[&costs[..], &[None]].concat());
        assert!(found[5].unwrap() > 6.0 && found[6].is_none(), "{found:?}");
        assert!(found[..5].iter().all(|one| one.unwrap() < 2.0), "{found:?}");
        let penalties = penalties(&costs, Places::Anywhere);
        assert!(penalties.sound > 2.1 && penalties.sound < 3.0, "{penalties:?}");
    }
}
