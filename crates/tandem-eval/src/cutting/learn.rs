//! The sound of each symbol, learned on the recording itself.
//!
//! In: mel frames, and which of them belong to which symbol: at first by the placement of the sentences and a flat start
//! inside of each, later by the path through the whole text. Out: [`Sounds`], and with it [`FrameScores`]. Next:
//! [`super::lattice`].

use super::lattice::{FrameScores, Role, State};
use super::pauses::Pause;
use super::placement::Place;
use super::script::Phrase;
use std::ops::Range;
use tandem_model::alignment::Aligner;
use tandem_model::alignment::flat_start::{FlatStart, FlatStartUtterance};
use tandem_model::alignment::symbol_gaussians::{AlignedFrames, SymbolGaussians, SymbolKey};

/// Sentences that the flat start learns from: enough for every symbol, and only seconds of work.
const SENTENCES: usize = 400;
/// A pause has no language; it is before all symbols.
const PAUSE_KEY: SymbolKey = (-1, -1);
/// Sound between two sentences: it may be anything.
const UNKNOWN: i32 = -1;

pub struct Sounds {
    /// Normalised frames minus their mean: `[frames, bands]`.
    mel: Vec<f32>,
    bands: usize,
    pauses: Vec<Pause>,
    /// All symbols of the text, sorted; the pause is the first. Their numbers are the kinds of states.
    kinds: Vec<SymbolKey>,
    gaussians: SymbolGaussians,
}

/// The phrases of each sentence that has some.
pub fn sentence_ranges(phrases: &[Phrase]) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (number, phrase) in phrases.iter().enumerate() {
        match ranges.last_mut() {
            Some(last) if phrases[last.start].sentence == phrase.sentence => last.end = number + 1,
            _ => ranges.push(number..number + 1),
        }
    }
    ranges
}

impl Sounds {
    /// The kind of a pause.
    pub const PAUSE: u16 = 0;

    /// From a first placement; none where no sentence is placed. `mel` has normalised frames.
    pub fn start(
        mut mel: Vec<f32>,
        bands: usize,
        phrases: &[Phrase],
        ranges: &[Range<usize>],
        places: &[Place],
        pauses: &[Pause],
    ) -> Option<Sounds> {
        normalise(&mut mel, bands);
        let mut kinds: Vec<SymbolKey> = phrases.iter().flat_map(Phrase::symbols).collect();
        kinds.push(PAUSE_KEY);
        kinds.sort_unstable();
        kinds.dedup();
        let placed =
            ranges.iter().zip(places).filter_map(|(range, place)| Some((range, (*place)?)));
        let utterances: Vec<FlatStartUtterance> = placed
            .map(|(range, (start, end))| {
                let keys = phrases[range.clone()].iter().flat_map(Phrase::symbols);
                FlatStartUtterance {
                    symbols: keys
                        .map(|key| kinds.partition_point(|kind| *kind < key) as i32)
                        .collect(),
                    language: 0,
                    mel: mel[start * bands..end * bands].to_vec(),
                }
            })
            .collect();
        let chosen = utterances.len().min(SENTENCES);
        let chosen: Vec<FlatStartUtterance> =
            (0..chosen).map(|at| utterances[at * utterances.len() / chosen].clone()).collect();
        let flat = FlatStart::learn(&chosen, bands)?;
        let mut aligner = Aligner::default();
        let durations: Vec<Option<Vec<u32>>> = utterances
            .iter()
            .map(|one| flat.align(&mut aligner, &one.symbols, 0, &one.mel))
            .collect();
        let aligned = utterances.iter().zip(&durations).filter_map(|(one, durations)| {
            let (symbols, durations) = (&one.symbols[..], durations.as_deref()?);
            Some(AlignedFrames { language: 0, symbols, durations, mel: &one.mel })
        });
        let gaussians = estimate(aligned, &mel, pauses, bands)?;
        Some(Sounds { mel, bands, pauses: pauses.to_vec(), kinds, gaussians })
    }

    /// Learns again from a path through the text.
    pub fn learn(&mut self, states: &[State], durations: &[u32]) {
        let kind = |state: &State| match state.role {
            Role::SentenceGap | Role::Foreign => UNKNOWN,
            _ => i32::from(state.kind),
        };
        let symbols: Vec<i32> = states.iter().map(kind).collect();
        let path = AlignedFrames { language: 0, symbols: &symbols, durations, mel: &self.mel };
        let learned = estimate([path].into_iter(), &self.mel, &self.pauses, self.bands);
        self.gaussians = learned.unwrap_or_else(|| self.gaussians.clone());
    }

    pub fn kind(&self, key: SymbolKey) -> u16 {
        self.kinds.partition_point(|kind| *kind < key) as u16
    }

    pub fn scores(&self) -> FrameScores {
        let kinds = self.kinds.len();
        let keys: Vec<SymbolKey> = (0..kinds).map(|kind| (0, kind as i32)).collect();
        let mut values = self.gaussians.scores(&keys, &self.mel);
        for frame in values.chunks_exact_mut(kinds) {
            let best = frame.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            frame.iter_mut().for_each(|score| *score -= best);
        }
        FrameScores { values, kinds }
    }
}

/// The pauses of the recording are examples of a pause.
fn estimate<'a>(
    aligned: impl Iterator<Item = AlignedFrames<'a>>,
    mel: &'a [f32],
    pauses: &[Pause],
    bands: usize,
) -> Option<SymbolGaussians> {
    let lengths: Vec<u32> = pauses.iter().map(|pause| pause.frames() as u32).collect();
    let quiet = pauses.iter().zip(&lengths).map(|(pause, length)| AlignedFrames {
        language: 0,
        symbols: &[Sounds::PAUSE as i32],
        durations: std::slice::from_ref(length),
        mel: &mel[pause.start * bands..pause.end * bands],
    });
    SymbolGaussians::estimate(aligned.map(|row| AlignedFrames { ..row }).chain(quiet), bands)
}

/// To deviation 1 over all values, and mean 0 in each band.
fn normalise(mel: &mut [f32], bands: usize) {
    let count = (mel.len() / bands).max(1) as f64;
    let mut means = vec![0f64; bands];
    for frame in mel.chunks_exact(bands) {
        means.iter_mut().zip(frame).for_each(|(mean, value)| *mean += f64::from(*value) / count);
    }
    let mean = means.iter().sum::<f64>() / bands as f64;
    let square = |value: &f32| (f64::from(*value) - mean).powi(2);
    let deviation =
        (mel.iter().map(square).sum::<f64>() / mel.len().max(1) as f64).sqrt().max(1e-6);
    for frame in mel.chunks_exact_mut(bands) {
        for (value, mean) in frame.iter_mut().zip(&means) {
            *value = ((f64::from(*value) - mean) / deviation) as f32;
        }
    }
}
