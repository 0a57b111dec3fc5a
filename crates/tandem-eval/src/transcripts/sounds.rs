//! What symbols sound like in all the other rows of a corpus.
//!
//! In: rows, with the path that the voice found through each. Out: for one row, the mean frame of
//! each symbol beside its neighbours, that row left out: a voice may have learned a wrong
//! transcript by heart, these means cannot. Frames are taken less their own row's mean, so that
//! speakers and microphones count little.

use std::collections::HashMap;

/// As many frames as this of the whole language stand beside those of a symbol.
const OF_LANGUAGE: f64 = 20.0;
/// As many frames as this of the symbol stand beside those with the same neighbour.
const OF_SYMBOL: f64 = 15.0;

/// A symbol of a language, alone or beside a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Sound {
    Any,
    Of(i32),
    After(i32, Option<i32>),
    Before(i32, Option<i32>),
}

#[derive(Clone, Debug, Default)]
struct Sum {
    frames: f64,
    values: Vec<f64>,
}

/// Sums of frames by sound.
#[derive(Debug)]
pub struct Sounds {
    bands: usize,
    sums: HashMap<(usize, Sound), Sum>,
}

/// One row's part in them.
#[derive(Debug)]
pub struct Part {
    language: usize,
    sums: HashMap<Sound, Sum>,
}

impl Sounds {
    /// Nothing heard yet.
    pub fn new(bands: usize) -> Sounds {
        Sounds { bands, sums: HashMap::new() }
    }

    /// Adds a row.
    pub fn add(&mut self, part: &Part) {
        for (sound, sum) in &part.sums {
            let place = self.sums.entry((part.language, *sound)).or_default();
            place.frames += sum.frames;
            place.values.resize(self.bands, 0.0);
            place.values.iter_mut().zip(&sum.values).for_each(|(all, own)| *all += own);
        }
    }

    /// What a text should sound like by all rows but this one: `[symbols, bands]`.
    pub fn without(&self, part: &Part, text: &[i32]) -> Vec<f32> {
        let none = vec![0.0; self.bands];
        let any = self.mean(part, Sound::Any, &none, 0.0);
        let mut means = Vec::with_capacity(text.len() * self.bands);
        for at in 0..text.len() {
            let [_, symbol, after, before] = sounds(text, at);
            let symbol = self.mean(part, symbol, &any, OF_LANGUAGE);
            let after = self.mean(part, after, &symbol, OF_SYMBOL);
            let before = self.mean(part, before, &symbol, OF_SYMBOL);
            means.extend(after.iter().zip(before).map(|(a, b)| ((a + b) / 2.0) as f32));
        }
        means
    }

    /// The mean of a sound less the row's own frames, drawn towards another mean by the weight of
    /// so many frames.
    fn mean(&self, part: &Part, sound: Sound, towards: &[f64], weight: f64) -> Vec<f64> {
        let all = self.sums.get(&(part.language, sound));
        let own = part.sums.get(&sound);
        let frames = all.map_or(0.0, |sum| sum.frames) - own.map_or(0.0, |sum| sum.frames);
        let value = |band: usize| {
            let of = |sum: Option<&Sum>| sum.map_or(0.0, |sum| sum.values[band]);
            of(all) - of(own)
        };
        let whole = (frames + weight).max(1.0);
        (0..self.bands).map(|band| (value(band) + weight * towards[band]) / whole).collect()
    }
}

impl Part {
    /// Of centred frames `[frames, bands]`, and how many of them each symbol of the text has.
    pub fn of(
        language: usize,
        text: &[i32],
        durations: &[u32],
        frames: &[f32],
        bands: usize,
    ) -> Part {
        let mut sums: HashMap<Sound, Sum> = HashMap::new();
        let mut rest = frames.chunks_exact(bands);
        for (at, &count) in durations.iter().enumerate() {
            let mut symbol = vec![0.0; bands];
            for frame in rest.by_ref().take(count as usize) {
                symbol.iter_mut().zip(frame).for_each(|(sum, &value)| *sum += f64::from(value));
            }
            for sound in sounds(text, at) {
                let sum = sums.entry(sound).or_default();
                sum.frames += f64::from(count);
                sum.values.resize(bands, 0.0);
                sum.values.iter_mut().zip(&symbol).for_each(|(sum, value)| *sum += value);
            }
        }
        Part { language, sums }
    }
}

/// Frames less their mean.
pub fn centred(frames: &[f32], bands: usize) -> Vec<f32> {
    let count = (frames.len() / bands).max(1) as f32;
    let mut mean = vec![0.0f32; bands];
    for frame in frames.chunks_exact(bands) {
        mean.iter_mut().zip(frame).for_each(|(sum, value)| *sum += value / count);
    }
    let less = frames.chunks_exact(bands).flat_map(|frame| frame.iter().zip(&mean));
    less.map(|(value, mean)| value - mean).collect()
}

/// Under what a symbol's frames are counted.
fn sounds(text: &[i32], at: usize) -> [Sound; 4] {
    let (symbol, after) = (text[at], text.get(at + 1).copied());
    let before = at.checked_sub(1).map(|at| text[at]);
    [Sound::Any, Sound::Of(symbol), Sound::After(symbol, before), Sound::Before(symbol, after)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rows_own_frames_have_no_say_in_what_its_text_sounds_like() {
        // In the first row symbol 1 is at 5 and 2 at -5; the second row says the opposite.
        let right = Part::of(0, &[1, 2], &[40, 40], &[[5.0; 40], [-5.0; 40]].concat(), 1);
        let wrong = Part::of(0, &[1, 2], &[40, 40], &[[-5.0; 40], [5.0; 40]].concat(), 1);
        let other = Part::of(0, &[1, 2], &[40, 40], &[[5.0; 40], [-5.0; 40]].concat(), 1);
        let alone = Part::of(1, &[1], &[2], &[3.0, 3.0], 1);
        let mut sounds = Sounds::new(1);
        [&right, &wrong, &other, &alone].into_iter().for_each(|part| sounds.add(part));
        let means = sounds.without(&wrong, &[1, 2]);
        // 80 frames of the two others at 5, 20 of the language's mean at 0; then 15 of that.
        let symbol = 80.0 * 5.0 / 100.0;
        let beside = (80.0 * 5.0 + 15.0 * symbol) / 95.0;
        assert!((f64::from(means[0]) - beside).abs() < 1e-5, "{means:?}");
        assert!((f64::from(means[1]) + beside).abs() < 1e-5, "{means:?}");
        // The only row of a language has nobody to be compared with.
        assert_eq!(sounds.without(&alone, &[1]), [0.0]);
    }

    #[test]
    fn frames_are_centred_band_by_band() {
        assert_eq!(centred(&[1.0, 10.0, 3.0, 20.0], 2), [-1.0, -5.0, 1.0, 5.0]);
    }
}
