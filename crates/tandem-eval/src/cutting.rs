//! Lays a text over a long recording, sentence by sentence.
//!
//! In: the samples of a recording and the sentences that are said in it. Out: [`Alignment`]: where each sentence is, and how
//! well its text fits. Needs no trained voice: the sound of each symbol is learned on the recording itself, from a first
//! placement by the lengths of the sentences. Time and memory grow with the length alone. Writes nothing, starts no thread.
//! Next: [`rows`], which decides where it is cut.

mod script; // sentences to phrases, words and symbols
mod pauses; // where the recording is quiet
mod placement; // about where each sentence is, by its length
mod lattice; // the best path through the whole text
mod learn; // the sound of each symbol, from its frames
mod verify; // whether a sentence fits as the others do
pub mod rows; // where it is cut, and which rows are kept
pub mod untranscribed; // the same without a text

use pauses::SHORT;
pub use pauses::{CLEAR, Levels, Pause};
pub use script::Phrase;

use lattice::{Band, ForeignSound, FrameScores, Role, State, States, search};
use learn::Sounds;
use script::Script;
use std::ops::Range;
use tandem_audio::Sound;
use tandem_audio::mel::{MelConfig, MelError, MelExtractor};
use tandem_data::long_text::LongSentence;
use tandem_pipeline::CancelToken;
use tandem_text::{FrontEnd, Language};
use tandem_units::{Hint, Hop};
use verify::Places;

/// Half of the symbols that are looked at in each frame, in each round: a minute of speech at first.
const BANDS: [usize; 4] = [800, 500, 300, 300];
/// So many frames of foreign sound are more than a breath: a second.
const MUCH_FOREIGN: u32 = 86;
/// Fewer sentences than this say too little about the sound of each symbol.
pub const LEAST_SENTENCES: usize = 8;

/// The search was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

#[derive(Debug, thiserror::Error)]
pub enum CutError {
    #[error("the text has {found} sentences that can be read; {LEAST_SENTENCES} are needed")]
    FewSentences { found: usize },
    #[error("{found} sentences could not be placed between the pauses of the recording")]
    NotPlaced { found: usize },
    #[error("no path leads through the text: it is not the text of this recording")]
    NoPath,
    #[error(transparent)]
    Mel(#[from] MelError),
    #[error("cancelled")]
    Cancelled,
}

impl Hint for CutError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::FewSentences { .. } => {
                Some("join the recording with others of the same speaker, or cut it by hand".into())
            }
            Self::NotPlaced { .. } | Self::NoPath => Some(
                "see that the text is what is read in this recording, in the same order".into(),
            ),
            Self::Mel(error) => error.hint(),
            Self::Cancelled => None,
        }
    }
}

impl From<Cancelled> for CutError {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// Where a phrase was found.
#[derive(Clone, Debug)]
pub struct FoundPhrase {
    pub phrase: Phrase,
    /// Frames from `start` to before `end`.
    pub start: usize,
    pub end: usize,
}

/// What became of a sentence.
#[derive(Clone, Debug)]
pub enum Found {
    /// Its phrases, and by how many standard deviations it fits worse than the median.
    Said {
        phrases: Range<usize>,
        excess: f64,
    },
    NotSaid,
    Unreadable(String),
}

/// Where each sentence of a text is in its recording.
pub struct Alignment {
    pub hop: Hop,
    pub levels: Levels,
    pub pauses: Vec<Pause>,
    /// All that are said, in order.
    pub phrases: Vec<FoundPhrase>,
    /// By number of the sentence.
    pub sentences: Vec<Found>,
}

/// `progress` receives what is done of [`STEPS`].
pub fn align(
    samples: &[f32],
    mel: &MelConfig,
    front_end: &FrontEnd,
    sentences: &[LongSentence],
    language: Option<Language>,
    progress: &mut dyn FnMut(usize),
    cancel: &CancelToken,
) -> Result<Alignment, CutError> {
    let texts: Vec<String> = sentences.iter().map(|sentence| sentence.text.clone()).collect();
    let Script { phrases, unreadable } = Script::read(front_end, &texts, language);
    let mut found: Vec<Found> = vec![Found::NotSaid; sentences.len()];
    for one in unreadable {
        found[one.sentence] = Found::Unreadable(one.why);
    }
    let ranges = learn::sentence_ranges(&phrases);
    if ranges.len() < LEAST_SENTENCES {
        return Err(CutError::FewSentences { found: ranges.len() });
    }
    let frames = MelExtractor::new(mel.clone())?.extract(Sound::F32(samples))?;
    let (bands, count) = (frames.bands(), frames.frames().0);
    let values = frames.into_values();
    let levels = Levels::of(samples, count, mel.hop);
    let pauses = levels.pauses(CLEAR);
    progress(1);
    let lengths: Vec<usize> = ranges
        .iter()
        .map(|range| phrases[range.clone()].iter().map(|p| p.symbols().count()).sum())
        .collect();
    let places = match placement::given(sentences, &phrases, &ranges, mel, count) {
        Some(places) => places,
        None => placement::place(&lengths, &pauses),
    };
    let mut sounds = Sounds::start(values, bands, &phrases, &ranges, &places, &pauses)
        .ok_or(CutError::NotPlaced { found: ranges.len() })?;
    progress(2);
    // The first frame of each phrase that is placed.
    let mut anchors: Vec<(usize, usize)> = ranges
        .iter()
        .zip(&places)
        .filter_map(|(range, place)| Some(((*place)?.0, range.start)))
        .collect();
    let mut plan = Plan::whole(ranges.len(), ForeignSound::Never);
    let mut costs = Vec::new();
    let (mut text, mut path);
    let mut round = 0;
    loop {
        text = TextStates::of(&phrases, &ranges, &plan, &sounds);
        let anchored = anchors.iter().map(|(frame, phrase)| (*frame, text.first[*phrase]));
        let band = Band::around(anchored, count, text.states.len(), BANDS[round]);
        let penalties =
            verify::penalties(&costs, if round == 1 { Places::Anywhere } else { Places::Known });
        let found = search(&text.states, &sounds.scores(), &band, penalties, cancel)?;
        path = Path::new(found.ok_or(CutError::NoPath)?);
        progress(3 + round);
        round += 1;
        if round == BANDS.len() {
            break;
        }
        sounds.learn(&text.states, &path.durations);
        costs = path.costs(&sounds.scores(), &text, &ranges);
        anchors = path.anchors(&text);
        plan = match round {
            1 => Plan::whole(ranges.len(), ForeignSound::Possible),
            _ => Plan::after(&path, &text, &costs),
        };
    }
    let costs = path.costs(&sounds.scores(), &text, &ranges);
    let excess = verify::excess(&costs);
    let mut placed: Vec<FoundPhrase> = Vec::new();
    for (range, excess) in ranges.iter().zip(excess) {
        // Every symbol of a sentence has frames, or none has.
        let Some(excess) = excess else { continue };
        let from = placed.len();
        placed.extend(range.clone().map(|at| {
            let Range { start, end } = path.frames(&(text.first[at]..text.end[at]));
            FoundPhrase { phrase: phrases[at].clone(), start, end }
        }));
        let said = Found::Said { phrases: from..placed.len(), excess };
        found[phrases[range.start].sentence] = said;
    }
    progress(STEPS);
    let pauses = levels.pauses(SHORT);
    Ok(Alignment { hop: mel.hop, levels, pauses, phrases: placed, sentences: found })
}

/// A path through the states of a text.
#[derive(Default)]
struct Path {
    /// Frames of each state.
    durations: Vec<u32>,
    /// The first frame of each state, and the end.
    starts: Vec<usize>,
}

impl Path {
    fn new(durations: Vec<u32>) -> Path {
        let mut starts = Vec::with_capacity(durations.len() + 1);
        let mut at = 0;
        starts.push(at);
        for frames in &durations {
            at += *frames as usize;
            starts.push(at);
        }
        Path { durations, starts }
    }

    /// The frames of some states.
    fn frames(&self, states: &Range<usize>) -> Range<usize> {
        self.starts[states.start]..self.starts[states.end]
    }

    /// The first frame of each phrase that is said.
    fn anchors(&self, text: &TextStates) -> Vec<(usize, usize)> {
        let said = (0..text.first.len()).filter(|phrase| text.first[*phrase] < text.end[*phrase]);
        let said = said.filter(|phrase| self.durations[text.first[*phrase]] > 0);
        said.map(|phrase| (self.starts[text.first[phrase]], phrase)).collect()
    }

    /// What each sentence costs per frame; none where it is not said.
    fn costs(
        &self,
        scores: &FrameScores,
        states: &TextStates,
        sentences: &[Range<usize>],
    ) -> Vec<Option<f64>> {
        let cost = |phrases: &Range<usize>| {
            let (mut sum, mut frames) = (0f64, 0);
            for state in states.range(phrases) {
                let State { kind, role, .. } = states.states[state];
                if role == Role::Symbol {
                    let inside = self.frames(&(state..state + 1));
                    frames += inside.len();
                    sum -= inside.map(|frame| scores.of(frame, kind)).sum::<f64>();
                }
            }
            (frames > 0).then(|| sum / frames as f64)
        };
        sentences.iter().map(cost).collect()
    }
}

/// Steps of [`align`].
pub const STEPS: usize = 3 + BANDS.len();

/// The states of a text, and those of each phrase.
struct TextStates {
    states: Vec<State>,
    /// By phrase; both are the same where its sentence is left out.
    first: Vec<usize>,
    end: Vec<usize>,
    /// The place of foreign sound before each sentence, and behind the last one.
    foreign: Vec<Option<usize>>,
}

/// Which sentences are in the states, and before which there may be foreign sound.
struct Plan {
    said: Vec<bool>,
    foreign: Vec<ForeignSound>,
}

impl Plan {
    fn whole(sentences: usize, foreign: ForeignSound) -> Plan {
        Plan { said: vec![true; sentences], foreign: vec![foreign; sentences + 1] }
    }

    /// Foreign sound is only where a sentence was not said, or where there was much of it.
    fn after(path: &Path, text: &TextStates, costs: &[Option<f64>]) -> Plan {
        let mut plan = Plan::whole(costs.len(), ForeignSound::Never);
        let much = |sentence: usize| {
            text.foreign[sentence].is_some_and(|state| path.durations[state] >= MUCH_FOREIGN)
        };
        let mut open = false;
        for (sentence, cost) in costs.iter().enumerate() {
            open |= cost.is_none() || much(sentence);
            plan.said[sentence] = cost.is_some();
            if cost.is_some() && std::mem::take(&mut open) {
                plan.foreign[sentence] = ForeignSound::Possible;
            }
        }
        if open || much(costs.len()) {
            plan.foreign[costs.len()] = ForeignSound::Possible;
        }
        plan
    }
}

impl TextStates {
    fn of(phrases: &[Phrase], ranges: &[Range<usize>], plan: &Plan, sounds: &Sounds) -> TextStates {
        let mut states = States::default();
        let (mut first, mut end) = (Vec::new(), Vec::new());
        let mut foreign = vec![None; ranges.len() + 1];
        let mut gap = |states: &mut States, sentence: usize| {
            states.sentence_gap(Sounds::PAUSE, plan.foreign[sentence]);
            let last = states.states.len() - 1;
            foreign[sentence] = (states.states[last].role == Role::Foreign).then_some(last);
        };
        for (sentence, range) in ranges.iter().enumerate() {
            for at in range.clone() {
                if plan.said[sentence] {
                    match at == range.start {
                        true => gap(&mut states, sentence),
                        false => states.word_gap(Sounds::PAUSE),
                    }
                }
                first.push(states.states.len());
                if plan.said[sentence] {
                    for (number, word) in phrases[at].words.iter().enumerate() {
                        if number > 0 {
                            states.word_gap(Sounds::PAUSE);
                        }
                        word.iter().for_each(|key| states.symbol(sounds.kind(*key)));
                    }
                }
                end.push(states.states.len());
            }
        }
        gap(&mut states, ranges.len());
        TextStates { states: states.states, first, end, foreign }
    }

    /// The states of some phrases.
    fn range(&self, phrases: &Range<usize>) -> Range<usize> {
        self.first[phrases.start]..self.end[phrases.end - 1]
    }
}
