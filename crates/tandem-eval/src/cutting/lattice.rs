//! The best path of a long recording through its whole text.
//!
//! In: a score of each frame for each kind of symbol, the symbols of the text in order, and about where each of them is
//! said. Out: frames of each symbol. Sound may be missing in the text, and a sentence of the text in the sound.
//! Only symbols near the place that is expected at a frame are looked at, so time and memory grow with the length alone.
//! Next: [`super::verify`].

use super::Cancelled;
use tandem_pipeline::CancelToken;

/// One symbol of the text, or a place between symbols.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// Which column of the scores.
    pub kind: u16,
    pub role: Role,
    /// The states before it, besides itself.
    from: [u32; WAYS],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Always said.
    Symbol,
    /// A pause between two words; may be left out.
    WordGap,
    /// A pause between two sentences; may be left out.
    SentenceGap,
    /// Sound that is not in the text, behind a pause: instead of a sentence, or before it.
    Foreign,
}

/// Ways to a state besides staying in it: with that, two bits say which one a path took.
const WAYS: usize = 3;
/// No state. Larger than any index, as [`START`] is.
const NONE: u32 = u32::MAX;
/// The start of the recording.
const START: u32 = u32::MAX - 1;

/// The states of a text, in order.
pub struct States {
    pub states: Vec<State>,
    last_symbol: u32,
    last_foreign: u32,
    /// The ways to the next symbol.
    next: [u32; WAYS],
}

/// Whether there may be sound that is not in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignSound {
    Possible,
    Never,
}

impl Default for States {
    fn default() -> States {
        States { states: Vec::new(), last_symbol: START, last_foreign: NONE, next: [NONE; WAYS] }
    }
}

impl States {
    /// Before a sentence, and behind the last one.
    pub fn sentence_gap(&mut self, pause: u16, foreign: ForeignSound) {
        let gap = self.states.len() as u32;
        let own = if foreign == ForeignSound::Possible { gap + 1 } else { NONE };
        self.push(pause, Role::SentenceGap, [self.last_symbol, own, self.last_foreign]);
        if foreign == ForeignSound::Possible {
            self.push(pause, Role::Foreign, [gap, NONE, NONE]);
        }
        self.last_foreign = own;
        self.next = [gap, self.last_symbol, NONE];
    }

    pub fn word_gap(&mut self, pause: u16) {
        let gap = self.states.len() as u32;
        self.push(pause, Role::WordGap, [self.last_symbol, NONE, NONE]);
        self.next = [gap, self.last_symbol, NONE];
    }

    pub fn symbol(&mut self, kind: u16) {
        self.last_symbol = self.states.len() as u32;
        self.push(kind, Role::Symbol, self.next);
        self.next = [self.last_symbol, NONE, NONE];
    }

    fn push(&mut self, kind: u16, role: Role, from: [u32; WAYS]) {
        self.states.push(State { kind, role, from });
    }
}

/// Log-likelihoods of a recording, each minus the largest one of its frame.
pub struct FrameScores {
    /// `[frames, kinds]`.
    pub values: Vec<f32>,
    pub kinds: usize,
}

impl FrameScores {
    pub fn of(&self, frame: usize, kind: u16) -> f64 {
        f64::from(self.values[frame * self.kinds + usize::from(kind)])
    }
}

/// What it costs to leave the text.
#[derive(Clone, Copy, Debug)]
pub struct Penalties {
    /// A frame of sound that is not in the text.
    pub sound: f32,
    /// Each time that such sound begins.
    pub start: f32,
}

/// The symbols that are looked at in each frame: `width` from the first one on.
pub struct Band {
    first: Vec<u32>,
    width: usize,
}

impl Band {
    /// Around a line through `anchors`: frame and state, both rising.
    pub fn around(
        anchors: impl Iterator<Item = (usize, usize)>,
        frames: usize,
        states: usize,
        half: usize,
    ) -> Band {
        let width = (2 * half).min(states).next_multiple_of(4);
        let last = states.saturating_sub(width);
        let mut first = Vec::with_capacity(frames);
        let (mut from, mut next) = ((0, 0), anchors.chain([(frames, states)]));
        let mut to = next.next().unwrap_or((frames, states));
        let mut lowest = 0;
        for frame in 0..frames {
            while frame >= to.0 && to.0 < frames {
                from = to;
                to = next.next().unwrap_or((frames, states));
            }
            let share = (frame - from.0) as f64 / (to.0 - from.0).max(1) as f64;
            let centre = from.1 as f64 + share * to.1.saturating_sub(from.1) as f64;
            lowest = (centre as usize).saturating_sub(half).clamp(lowest, last.max(lowest));
            first.push(lowest as u32);
        }
        Band { first, width }
    }
}

/// Frames between two looks at whether the search is still wanted, and between two corrections of the sums' size.
const ROUND: usize = 256;

/// Frames of each state on the best path; none where no path stays inside the band.
pub fn search(
    states: &[State],
    scores: &FrameScores,
    band: &Band,
    penalties: Penalties,
    cancel: &CancelToken,
) -> Result<Option<Vec<u32>>, Cancelled> {
    let frames = scores.values.len() / scores.kinds;
    let count = states.len();
    let mut steps = vec![0u8; (frames * band.width).div_ceil(4)];
    let empty = || vec![f32::NEG_INFINITY; count];
    let (mut now, mut before) = (empty(), empty());
    let mut cleared = [0usize; 2];
    for frame in 0..frames {
        let row = &scores.values[frame * scores.kinds..][..scores.kinds];
        let first = band.first[frame] as usize;
        let end = (first + band.width).min(count);
        now[cleared[frame % 2]..first].fill(f32::NEG_INFINITY);
        cleared[frame % 2] = first;
        for (cell, state) in states[first..end].iter().enumerate() {
            let (mut best, mut step) = (before[first + cell], 0);
            if frame == 0 && state.from.contains(&START) {
                best = 0.0;
            }
            let cost = if state.role == Role::Foreign { penalties.start } else { 0.0 };
            for (way, from) in state.from.iter().enumerate() {
                let value = before.get(*from as usize).map(|value| value - cost);
                if let Some(value) = value.filter(|value| *value > best) {
                    (best, step) = (value, way as u8 + 1);
                }
            }
            let score = match state.role {
                Role::Foreign => -penalties.sound,
                _ => row[usize::from(state.kind)],
            };
            now[first + cell] = best + score;
            let cell = frame * band.width + cell;
            steps[cell / 4] |= step << (2 * (cell % 4));
        }
        if frame % ROUND == ROUND - 1 {
            if cancel.is_cancelled() {
                return Err(Cancelled);
            }
            let reached = &mut now[first..end];
            let best = reached.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            if best.is_finite() {
                reached.iter_mut().for_each(|sum| *sum -= best);
            }
        }
        std::mem::swap(&mut now, &mut before);
    }
    // The pause at the end may be left out.
    let last = states.iter().rposition(|state| state.role == Role::SentenceGap).unwrap_or(0);
    let ends = [last, states[last].from[0] as usize];
    let reached = |state: usize| before.get(state).copied().unwrap_or(f32::NEG_INFINITY);
    let end = ends.into_iter().max_by(|a, b| reached(*a).total_cmp(&reached(*b)));
    let Some(mut state) = end.filter(|state| reached(*state).is_finite()) else {
        return Ok(None);
    };
    let mut durations = vec![0u32; count];
    for frame in (0..frames).rev() {
        durations[state] += 1;
        let cell = frame * band.width + state - band.first[frame] as usize;
        let step = (steps[cell / 4] >> (2 * (cell % 4))) & 3;
        if frame > 0 && step > 0 {
            state = states[state].from[usize::from(step) - 1] as usize;
        }
    }
    Ok(Some(durations))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(sentences: &[&[u16]]) -> Vec<State> {
        let mut states = States::default();
        for sentence in sentences {
            states.sentence_gap(0, ForeignSound::Possible);
            sentence.iter().for_each(|kind| states.symbol(*kind));
        }
        states.sentence_gap(0, ForeignSound::Never);
        states.states
    }

    /// Frames that are clearly of one kind; kind 0 is silence.
    fn path(states: &[State], kinds: &[u16], half: usize) -> Option<Vec<u32>> {
        let score = |said: u16, kind: u16| if kind == said { 0.0 } else { -5.0 };
        let values = kinds.iter().flat_map(|said| (0..9).map(move |kind| score(*said, kind)));
        let scores = FrameScores { values: values.collect(), kinds: 9 };
        let band = Band::around(std::iter::empty(), kinds.len(), states.len(), half);
        let penalties = Penalties { sound: 3.0, start: 4.0 };
        search(states, &scores, &band, penalties, &CancelToken::new()).unwrap()
    }

    #[test]
    fn symbols_get_their_frames_and_gaps_only_silence() {
        let states = states(&[&[1, 2], &[3]]);
        let found = path(&states, &[0, 1, 1, 2, 0, 0, 3, 3, 3], 8);
        assert_eq!(found, Some(vec![1, 0, 2, 1, 2, 0, 3, 0]));
        assert_eq!(path(&states, &[1, 2, 2, 3], 8), Some(vec![0, 0, 1, 2, 0, 0, 1, 0]));
    }

    #[test]
    fn sound_that_is_not_in_the_text_takes_the_place_of_a_sentence_or_is_between_two() {
        let words = [1, 2, 1];
        let three = states(&[&words, &[5, 6, 7], &words]);
        let found = path(&three, &[1, 2, 1, 0, 8, 8, 8, 8, 8, 0, 1, 2, 1], 16).unwrap();
        assert_eq!(found, [0, 0, 1, 1, 1, 1, 5, 0, 0, 0, 1, 0, 1, 1, 1, 0]);
        let two = states(&[&words, &words]);
        let found = path(&two, &[1, 2, 1, 0, 8, 8, 8, 8, 8, 0, 1, 2, 1], 16).unwrap();
        assert_eq!((found[6], found.iter().sum::<u32>()), (5, 13), "{found:?}");
    }

    #[test]
    fn a_narrow_band_that_follows_the_text_finds_the_same_path() {
        let mut text = States::default();
        let mut said = Vec::new();
        for number in 0..200u16 {
            let kinds = [1 + number % 8, 1 + (number * 3) % 8];
            text.sentence_gap(0, ForeignSound::Possible);
            kinds.iter().for_each(|kind| text.symbol(*kind));
            said.extend([0, kinds[0], kinds[0], kinds[1]]);
        }
        text.sentence_gap(0, ForeignSound::Never);
        let wide = path(&text.states, &said, text.states.len()).unwrap();
        assert_eq!(path(&text.states, &said, 12).unwrap(), wide);
        assert_eq!((wide.iter().sum::<u32>() as usize, wide[6]), (said.len(), 2));
    }
}
