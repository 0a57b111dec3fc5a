//! The first alignment, before the voice knows anything: what each symbol sounds like on average,
//! found by turns from an even pace, as recognisers are started from nothing (flat start).
//!
//! In: some utterances with their texts. Out: [`FlatStart`], which says how well each symbol of a
//! text explains each frame. A voice that is asked too early gives every symbol nearly the same
//! frame, the search then follows loudness alone, and what it finds is learned and stays. Knows
//! symbols without their neighbours and no speaker: each utterance is measured against its own
//! mean frame. Next: [`crate::alignment`] searches with it.

use crate::alignment::Aligner;
use crate::alignment::distance::{Precision, Sounds};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Turns of aligning and measuring; more change little.
const TURNS: usize = 10;
/// Bands are far from independent: their likelihoods together count for so much.
const TRUST: f32 = 0.2;
/// A symbol's spread is mixed with this one, as if it had been heard in that many frames more.
const USUAL_SPREAD: (f64, f64) = (0.3, 5.0);
/// How much the even pace of speech counts beside the sounds.
const DIAGONAL: f32 = 1.0;

/// An utterance to learn from.
#[derive(Clone, Debug)]
pub struct Heard {
    /// Its text.
    pub symbols: Vec<i32>,
    /// Its language.
    pub language: i32,
    /// Its normalised frames: `[frames, bands]`.
    pub mel: Vec<f32>,
}

/// What each symbol of each language sounds like.
#[derive(Clone, Debug)]
pub struct FlatStart {
    bands: usize,
    sounds: BTreeMap<(i32, i32), Sound>,
    /// Of a symbol that was never heard.
    any: Sound,
}

/// The frames of a symbol: their mean, and one over their spread.
#[derive(Clone, Debug)]
struct Sound {
    mean: Vec<f32>,
    precision: Vec<f32>,
    log_spread: f32,
}

/// Frames that were given to a symbol, summed.
#[derive(Clone)]
struct Pile {
    count: f64,
    sum: Vec<f64>,
    squares: Vec<f64>,
}

impl FlatStart {
    /// Learns from these utterances; the same ones in the same order give the same result on any
    /// number of threads. Utterances with more symbols than frames are left out; `None` where no
    /// other is there.
    pub fn learn(heard: &[Heard], bands: usize) -> Option<FlatStart> {
        let rows: Vec<(&Heard, Vec<f32>)> = heard
            .iter()
            .filter(|row| !row.symbols.is_empty() && row.mel.len() >= row.symbols.len() * bands)
            .map(|row| (row, against_own_mean(&row.mel, bands)))
            .collect();
        let mut paths: Vec<Vec<u32>> =
            rows.iter().map(|(row, mel)| even_pace(row.symbols.len(), mel.len() / bands)).collect();
        let mut known = FlatStart::measure(&rows, &paths, bands)?;
        for _ in 0..TURNS {
            paths = rows
                .par_iter()
                .map_init(Aligner::default, |aligner, (row, mel)| {
                    let scores = known.scores_of(&row.symbols, row.language, mel);
                    search(aligner, scores, row.symbols.len())
                })
                .collect();
            known = FlatStart::measure(&rows, &paths, bands)?;
        }
        Some(known)
    }

    /// Frames of each symbol; `None` where there are more symbols than frames. Takes normalised
    /// frames: `[frames, bands]`.
    pub fn align(
        &self,
        aligner: &mut Aligner,
        symbols: &[i32],
        language: i32,
        mel: &[f32],
    ) -> Option<Vec<u32>> {
        if symbols.is_empty() || mel.len() < symbols.len() * self.bands {
            return None;
        }
        let mel = against_own_mean(mel, self.bands);
        Some(search(aligner, self.scores_of(symbols, language, &mel), symbols.len()))
    }

    fn measure(rows: &[(&Heard, Vec<f32>)], paths: &[Vec<u32>], bands: usize) -> Option<FlatStart> {
        let mut piles: BTreeMap<(i32, i32), Pile> = BTreeMap::new();
        let mut all = Pile::new(bands);
        for ((row, mel), path) in rows.iter().zip(paths) {
            let mut frames = mel.chunks_exact(bands);
            for (symbol, &count) in row.symbols.iter().zip(path) {
                let key = (row.language, *symbol);
                let pile = piles.entry(key).or_insert_with(|| Pile::new(bands));
                frames.by_ref().take(count as usize).for_each(|frame| pile.add(frame));
            }
        }
        piles.values().for_each(|pile| all.join(pile));
        let sounds = piles.iter().map(|(key, pile)| (*key, pile.sound())).collect();
        (all.count > 0.0).then(|| FlatStart { bands, sounds, any: all.sound() })
    }

    /// `[frames, symbols]`, frame by frame.
    fn scores_of(&self, symbols: &[i32], language: i32, mel: &[f32]) -> Vec<f32> {
        // A letter stands in a text several times and sounds the same each time here.
        let mut kinds: Vec<i32> = symbols.to_vec();
        kinds.sort_unstable();
        kinds.dedup();
        let sounds: Vec<&Sound> = kinds
            .iter()
            .map(|kind| self.sounds.get(&(language, *kind)).unwrap_or(&self.any))
            .collect();
        let kind_of: Vec<usize> =
            symbols.iter().map(|symbol| kinds.partition_point(|kind| kind < symbol)).collect();
        let pairs = sounds.iter().map(|sound| (&sound.mean[..], Precision::Each(&sound.precision)));
        let distances = Sounds::new(pairs, self.bands).distances(mel);
        let mut each = vec![0.0; kinds.len()];
        let mut scores = Vec::with_capacity(mel.len() / self.bands * symbols.len());
        for distances in distances.chunks_exact(kinds.len()) {
            for ((score, off), sound) in each.iter_mut().zip(distances).zip(&sounds) {
                *score = -0.5 * TRUST * (off + sound.log_spread);
            }
            scores.extend(kind_of.iter().map(|kind| each[*kind]));
        }
        scores
    }
}

impl Pile {
    fn new(bands: usize) -> Pile {
        Pile { count: 0.0, sum: vec![0.0; bands], squares: vec![0.0; bands] }
    }

    fn add(&mut self, frame: &[f32]) {
        self.count += 1.0;
        for ((sum, square), &x) in self.sum.iter_mut().zip(&mut self.squares).zip(frame) {
            *sum += f64::from(x);
            *square += f64::from(x) * f64::from(x);
        }
    }

    fn join(&mut self, other: &Pile) {
        self.count += other.count;
        self.sum.iter_mut().zip(&other.sum).for_each(|(sum, more)| *sum += more);
        self.squares.iter_mut().zip(&other.squares).for_each(|(sum, more)| *sum += more);
    }

    fn sound(&self) -> Sound {
        let count = self.count.max(1.0);
        let (usual, weight) = USUAL_SPREAD;
        let mean: Vec<f64> = self.sum.iter().map(|sum| sum / count).collect();
        let spread = |(mean, squares): (&f64, &f64)| {
            let own = (squares / count - mean * mean).max(0.0) * count;
            (own + usual * weight) / (count + weight)
        };
        let spreads: Vec<f64> = mean.iter().zip(&self.squares).map(spread).collect();
        Sound {
            log_spread: spreads.iter().map(|spread| spread.ln()).sum::<f64>() as f32,
            precision: spreads.iter().map(|spread| (1.0 / spread) as f32).collect(),
            mean: mean.iter().map(|mean| *mean as f32).collect(),
        }
    }
}

fn search(aligner: &mut Aligner, mut scores: Vec<f32>, symbols: usize) -> Vec<u32> {
    aligner.add_diagonal_prior(&mut scores, symbols, DIAGONAL);
    aligner.search(&scores, symbols).expect("as many frames as symbols: looked at before")
}

/// Frames less their mean frame: who speaks, and into which microphone, is taken out of them.
fn against_own_mean(mel: &[f32], bands: usize) -> Vec<f32> {
    let frames = (mel.len() / bands).max(1) as f64;
    let mut mean = vec![0f64; bands];
    for frame in mel.chunks_exact(bands) {
        mean.iter_mut().zip(frame).for_each(|(sum, x)| *sum += f64::from(*x));
    }
    let mean: Vec<f32> = mean.iter().map(|sum| (sum / frames) as f32).collect();
    let mut less = mel.to_vec();
    for frame in less.chunks_exact_mut(bands) {
        frame.iter_mut().zip(&mean).for_each(|(x, mean)| *x -= mean);
    }
    less
}

/// Every symbol the same number of frames, as nearly as whole frames allow.
fn even_pace(symbols: usize, frames: usize) -> Vec<u32> {
    let until = |symbol: usize| symbol * frames / symbols;
    (0..symbols).map(|symbol| (until(symbol + 1) - until(symbol)) as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    const BANDS: usize = 12;

    /// Texts of eight letters between two silences, every letter with a sound of its own.
    fn speech(rows: usize) -> (Vec<Heard>, Vec<Vec<u32>>) {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let sounds: Vec<f32> = (0..10 * BANDS).map(|_| rng.random_range(-1.5..1.5)).collect();
        let mut durations = Vec::new();
        let heard = (0..rows).map(|_| {
            let letters = (0..12).map(|_| rng.random_range(1..9));
            let symbols: Vec<i32> = std::iter::once(0).chain(letters).chain([9]).collect();
            let path: Vec<u32> = symbols.iter().map(|_| rng.random_range(2..14)).collect();
            let mut mel = Vec::new();
            let who: f32 = rng.random_range(-1.0..1.0);
            for (symbol, count) in symbols.iter().zip(&path) {
                for _ in 0..*count {
                    let sound = &sounds[*symbol as usize * BANDS..][..BANDS];
                    mel.extend(sound.iter().map(|x| x + who + rng.random_range(-0.6..0.6)));
                }
            }
            durations.push(path);
            Heard { symbols, language: 0, mel }
        });
        (heard.collect(), durations)
    }

    /// Mean distance of symbol starts, in frames.
    fn off(found: &[u32], truth: &[u32]) -> f64 {
        let (mut a, mut b, mut sum) = (0i64, 0i64, 0i64);
        for (found, truth) in found.iter().zip(truth) {
            sum += (a - b).abs();
            a += i64::from(*found);
            b += i64::from(*truth);
        }
        sum as f64 / found.len() as f64
    }

    #[test]
    fn sounds_are_found_from_an_even_pace() {
        let (heard, truth) = speech(60);
        let known = FlatStart::learn(&heard, BANDS).unwrap();
        let mut aligner = Aligner::default();
        let (mut found, mut even) = (0.0, 0.0);
        for (row, truth) in heard.iter().zip(&truth) {
            let path = known.align(&mut aligner, &row.symbols, 0, &row.mel).unwrap();
            assert_eq!(path.iter().sum::<u32>() as usize, row.mel.len() / BANDS);
            found += off(&path, truth) / heard.len() as f64;
            let pace = even_pace(row.symbols.len(), row.mel.len() / BANDS);
            even += off(&pace, truth) / heard.len() as f64;
        }
        assert!(even > 3.0 && found < 0.5, "even pace {even:.2}, found {found:.2}");
    }

    #[test]
    fn what_cannot_be_spoken_is_left_out() {
        let short = Heard { symbols: vec![1, 2, 3], language: 0, mel: vec![0.0; 2 * BANDS] };
        let silent = Heard { symbols: vec![], language: 0, mel: vec![0.0; 2 * BANDS] };
        assert!(FlatStart::learn(&[short.clone(), silent], BANDS).is_none());
        let (mut heard, _) = speech(3);
        heard.push(short.clone());
        let known = FlatStart::learn(&heard, BANDS).unwrap();
        let mut aligner = Aligner::default();
        assert_eq!(known.align(&mut aligner, &short.symbols, 0, &short.mel), None);
    }

    #[test]
    fn a_symbol_that_was_never_heard_still_gets_its_place() {
        let (heard, _) = speech(20);
        let known = FlatStart::learn(&heard, BANDS).unwrap();
        let symbols = [0, 77, 1, 9];
        let path = known.align(&mut Aligner::default(), &symbols, 3, &heard[0].mel).unwrap();
        assert!(path.iter().all(|&frames| frames > 0));
    }

    #[test]
    fn an_even_pace_uses_every_frame() {
        assert_eq!(even_pace(3, 10), [3, 3, 4]);
        assert_eq!(even_pace(4, 4), [1, 1, 1, 1]);
    }
}
