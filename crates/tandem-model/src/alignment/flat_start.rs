//! The first alignment, before the voice is trained (flat start, as in speech recognition): Gaussians of
//! the symbols' frames, re-estimated from uniform durations.
//!
//! In: some utterances with their texts. Out: [`FlatStart`], which aligns a text with its frames. An
//! untrained voice predicts nearly the same frame for every symbol. The search would then follow
//! loudness alone, and training would reinforce that alignment. The model has no context and no
//! speaker: the mean frame of each utterance is subtracted. Next: [`crate::alignment::search`].

use crate::alignment::Aligner;
use crate::alignment::symbol_gaussians::{AlignedFrames, SymbolGaussians, SymbolKey};
use rayon::prelude::*;

/// Iterations of aligning and re-estimating; more change little.
const ITERATIONS: usize = 10;
/// Strength of the diagonal prior relative to the likelihoods.
const DIAGONAL: f32 = 1.0;

/// An utterance for the estimation.
#[derive(Clone, Debug)]
pub struct FlatStartUtterance {
    pub symbols: Vec<i32>,
    pub language: i32,
    /// Normalised frames: `[frames, bands]`.
    pub mel: Vec<f32>,
}

/// A Gaussian for each symbol of each language.
#[derive(Clone, Debug)]
pub struct FlatStart {
    gaussians: SymbolGaussians,
}

impl FlatStart {
    /// Estimates from these utterances. The same utterances in the same order give the same result on
    /// any number of threads. Utterances with more symbols than frames are skipped; `None` if no
    /// utterance is left.
    pub fn learn(utterances: &[FlatStartUtterance], bands: usize) -> Option<FlatStart> {
        let rows: Vec<(&FlatStartUtterance, Vec<f32>)> = utterances
            .iter()
            .filter(|row| !row.symbols.is_empty() && row.mel.len() >= row.symbols.len() * bands)
            .map(|row| (row, subtract_mean(&row.mel, bands)))
            .collect();
        let mut paths: Vec<Vec<u32>> = rows
            .iter()
            .map(|(row, mel)| uniform_durations(row.symbols.len(), mel.len() / bands))
            .collect();
        let mut model = estimate(&rows, &paths, bands)?;
        for _ in 0..ITERATIONS {
            paths = rows
                .par_iter()
                .map_init(Aligner::default, |aligner, (row, mel)| {
                    let scores = model.scores_of(&row.symbols, row.language, mel);
                    search(aligner, scores, row.symbols.len())
                })
                .collect();
            model = estimate(&rows, &paths, bands)?;
        }
        Some(model)
    }

    /// Frames of each symbol; `None` if there are more symbols than frames. `mel` has normalised
    /// frames: `[frames, bands]`.
    pub fn align(
        &self,
        aligner: &mut Aligner,
        symbols: &[i32],
        language: i32,
        mel: &[f32],
    ) -> Option<Vec<u32>> {
        if symbols.is_empty() || mel.len() < symbols.len() * self.gaussians.bands() {
            return None;
        }
        let mel = subtract_mean(mel, self.gaussians.bands());
        Some(search(aligner, self.scores_of(symbols, language, &mel), symbols.len()))
    }

    /// `[frames, symbols]`, frame by frame.
    fn scores_of(&self, symbols: &[i32], language: i32, mel: &[f32]) -> Vec<f32> {
        // A symbol occurs several times in a text and has the same scores each time.
        let mut kinds: Vec<SymbolKey> = symbols.iter().map(|symbol| (language, *symbol)).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let kind_of: Vec<usize> =
            symbols.iter().map(|symbol| kinds.partition_point(|kind| kind.1 < *symbol)).collect();
        let each = self.gaussians.scores(&kinds, mel);
        let mut scores = Vec::with_capacity(each.len() / kinds.len() * symbols.len());
        for each in each.chunks_exact(kinds.len()) {
            scores.extend(kind_of.iter().map(|kind| each[*kind]));
        }
        scores
    }
}

fn estimate(
    rows: &[(&FlatStartUtterance, Vec<f32>)],
    paths: &[Vec<u32>],
    bands: usize,
) -> Option<FlatStart> {
    let rows = rows.iter().zip(paths).map(|((row, mel), durations)| AlignedFrames {
        language: row.language,
        symbols: &row.symbols,
        durations,
        mel,
    });
    Some(FlatStart { gaussians: SymbolGaussians::estimate(rows, bands)? })
}

fn search(aligner: &mut Aligner, mut scores: Vec<f32>, symbols: usize) -> Vec<u32> {
    aligner.add_diagonal_prior(&mut scores, symbols, DIAGONAL);
    aligner.search(&scores, symbols).expect("at least as many frames as symbols: checked before")
}

/// Frames minus their mean frame, which removes most of the speaker and the microphone.
fn subtract_mean(mel: &[f32], bands: usize) -> Vec<f32> {
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

/// The same number of frames for every symbol, as far as whole frames allow.
fn uniform_durations(symbols: usize, frames: usize) -> Vec<u32> {
    let until = |symbol: usize| symbol * frames / symbols;
    (0..symbols).map(|symbol| (until(symbol + 1) - until(symbol)) as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    const BANDS: usize = 12;

    /// Texts of eight letters between two silences, each letter with another mean frame.
    fn speech(rows: usize) -> (Vec<FlatStartUtterance>, Vec<Vec<u32>>) {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let means: Vec<f32> = (0..10 * BANDS).map(|_| rng.random_range(-1.5..1.5)).collect();
        let mut durations = Vec::new();
        let utterances = (0..rows).map(|_| {
            let letters = (0..12).map(|_| rng.random_range(1..9));
            let symbols: Vec<i32> = std::iter::once(0).chain(letters).chain([9]).collect();
            let path: Vec<u32> = symbols.iter().map(|_| rng.random_range(2..14)).collect();
            let mut mel = Vec::new();
            let speaker: f32 = rng.random_range(-1.0..1.0);
            for (symbol, count) in symbols.iter().zip(&path) {
                for _ in 0..*count {
                    let mean = &means[*symbol as usize * BANDS..][..BANDS];
                    mel.extend(mean.iter().map(|x| x + speaker + rng.random_range(-0.6..0.6)));
                }
            }
            durations.push(path);
            FlatStartUtterance { symbols, language: 0, mel }
        });
        (utterances.collect(), durations)
    }

    /// Mean absolute error of symbol starts, in frames.
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
    fn symbols_are_found_from_uniform_durations() {
        let (utterances, truth) = speech(60);
        let model = FlatStart::learn(&utterances, BANDS).unwrap();
        let mut aligner = Aligner::default();
        let (mut found, mut even) = (0.0, 0.0);
        for (row, truth) in utterances.iter().zip(&truth) {
            let path = model.align(&mut aligner, &row.symbols, 0, &row.mel).unwrap();
            assert_eq!(path.iter().sum::<u32>() as usize, row.mel.len() / BANDS);
            found += off(&path, truth) / utterances.len() as f64;
            let pace = uniform_durations(row.symbols.len(), row.mel.len() / BANDS);
            even += off(&pace, truth) / utterances.len() as f64;
        }
        assert!(even > 3.0 && found < 0.5, "even pace {even:.2}, found {found:.2}");
    }

    #[test]
    fn utterances_with_too_few_frames_are_skipped() {
        let short =
            FlatStartUtterance { symbols: vec![1, 2, 3], language: 0, mel: vec![0.0; 2 * BANDS] };
        let empty = FlatStartUtterance { symbols: vec![], language: 0, mel: vec![0.0; 2 * BANDS] };
        assert!(FlatStart::learn(&[short.clone(), empty], BANDS).is_none());
        let (mut utterances, _) = speech(3);
        utterances.push(short.clone());
        let model = FlatStart::learn(&utterances, BANDS).unwrap();
        let mut aligner = Aligner::default();
        assert_eq!(model.align(&mut aligner, &short.symbols, 0, &short.mel), None);
    }

    #[test]
    fn a_symbol_that_was_not_in_the_utterances_still_gets_frames() {
        let (utterances, _) = speech(20);
        let model = FlatStart::learn(&utterances, BANDS).unwrap();
        let symbols = [0, 77, 1, 9];
        let path = model.align(&mut Aligner::default(), &symbols, 3, &utterances[0].mel).unwrap();
        assert!(path.iter().all(|&frames| frames > 0));
    }

    #[test]
    fn uniform_durations_use_every_frame() {
        assert_eq!(uniform_durations(3, 10), [3, 3, 4]);
        assert_eq!(uniform_durations(4, 4), [1, 1, 1, 1]);
    }
}
