//! Where a long recording is cut, and which rows are kept.
//!
//! In: an [`Alignment`]. Out: [`CutRows`]: parts of the recording with their texts, and the sentences that are left out, with
//! the reason. Every cut is inside a pause, so no word is lost at one. Sentences without a pause between them stay together;
//! one that is too long is divided at a pause behind a mark.

use super::{Alignment, Found, FoundPhrase, Pause};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use tandem_units::SampleRate;

/// A pause belongs to the end of a phrase if it is at most so many frames away: 140 ms.
const NEAR: usize = 12;
/// Two phrases that are nearer have one pause between them, and no other sound: 0.7 s.
const TOGETHER: usize = 60;
/// A frame more of a pause counts as so many frames nearer, up to a pause of so many frames. Chosen on the corpus Kathleen,
/// where 97.5 % of the boundaries are then within 80 ms, and 96.2 % with the nearest pause.
const LONGER: i64 = 6;
const LONG: usize = 20;
/// A sentence that fits worse than the median by more standard deviations is left out.
const MOST_EXCESS: f64 = 4.5;
/// So much slower or faster than the median of the recording is another text.
const PACE: f64 = 2.0;

/// How rows are cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CutSettings {
    /// The longest and the shortest row, in seconds.
    pub longest: f64,
    pub shortest: f64,
    /// What stays of a pause at each end, at most half of it, in seconds.
    pub margin: f64,
}

impl Default for CutSettings {
    /// A row fits into 800 mel frames.
    fn default() -> CutSettings {
        CutSettings { longest: 9.2, shortest: 0.5, margin: 0.15 }
    }
}

/// A part of the recording, in seconds, and its text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CutRow {
    /// Number of its first sentence, from 0.
    pub sentence: usize,
    pub start: f64,
    pub end: f64,
    pub text: String,
    /// By how many standard deviations its text fits worse than the median; none where it was heard by a judge.
    pub excess: Option<f64>,
    /// From where to where someone speaks.
    pub speech: (f64, f64),
}

/// A sentence that is left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeftOut {
    pub sentence: usize,
    pub why: WhyNot,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhyNot {
    /// Its text fits worse than the median, by so many standard deviations.
    DoesNotFit {
        excess: f64,
    },
    /// Spoken so many times as fast as the median.
    Pace {
        times: f64,
    },
    NotSaid,
    /// No pause where it could be cut.
    NoPause,
    /// It has so many seconds, and no pause behind a mark where it could be divided.
    TooLong {
        seconds: f64,
    },
    TooShort {
        seconds: f64,
    },
    Unreadable {
        message: String,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CutRows {
    pub rows: Vec<CutRow>,
    pub left_out: Vec<LeftOut>,
    /// The text, sentence by sentence.
    pub sentences: Vec<String>,
    /// Length of the recording, in seconds.
    pub length: f64,
}

/// A cut between two phrases.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// The frame at which speech ends or begins.
    speech: usize,
    /// The frame in the pause where a row may end or begin at the furthest.
    limit: usize,
}

impl Alignment {
    /// `texts` are the sentences.
    pub fn rows(&self, texts: &[&str], settings: &CutSettings, rate: SampleRate) -> CutRows {
        let frame = self.hop.0 as f64 / f64::from(rate.0);
        let cutter = Cutter { found: self, settings, frame };
        let mut out = CutRows {
            sentences: texts.iter().map(|text| (*text).to_owned()).collect(),
            length: self.levels.frames.len() as f64 * frame,
            ..CutRows::default()
        };
        let judged = self.judged();
        let mut number = 0;
        while number < texts.len() {
            let phrases = match &judged[number] {
                Ok(phrases) => phrases.clone(),
                Err(why) => {
                    out.left_out.push(LeftOut { sentence: number, why: why.clone() });
                    number += 1;
                    continue;
                }
            };
            // Sentences without a pause between them stay together.
            let (mut last, mut end) = (number, phrases.end);
            while cutter.end_of(end - 1).is_none()
                && let Some(Ok(next)) = judged.get(last + 1)
            {
                (last, end) = (last + 1, next.end);
            }
            match cutter.divide(phrases.start..end) {
                Ok(pieces) => out.rows.extend(pieces),
                Err(why) => {
                    let whole = number..=last;
                    out.left_out
                        .extend(whole.map(|sentence| LeftOut { sentence, why: why.clone() }));
                }
            }
            number = last + 1;
        }
        out
    }

    /// The phrases of each sentence whose text fits.
    fn judged(&self) -> Vec<Result<Range<usize>, WhyNot>> {
        let pace = |phrases: &Range<usize>| {
            let inside = &self.phrases[phrases.clone()];
            let frames: usize = inside.iter().map(|one| one.end - one.start).sum();
            let symbols: usize = inside.iter().map(|one| one.phrase.symbols().count()).sum();
            symbols as f64 / frames.max(1) as f64
        };
        let mut paces: Vec<f64> = self
            .sentences
            .iter()
            .filter_map(|one| match one {
                Found::Said { phrases, .. } => Some(pace(phrases)),
                _ => None,
            })
            .collect();
        paces.sort_by(f64::total_cmp);
        let median = paces.get(paces.len() / 2).copied().unwrap_or(1.0);
        let judge = |one: &Found| match one {
            Found::Unreadable(message) => Err(WhyNot::Unreadable { message: message.clone() }),
            Found::NotSaid => Err(WhyNot::NotSaid),
            Found::Said { excess, .. } if *excess > MOST_EXCESS => {
                Err(WhyNot::DoesNotFit { excess: *excess })
            }
            Found::Said { phrases, .. } => match pace(phrases) / median {
                times if !(1.0 / PACE..PACE).contains(&times) => Err(WhyNot::Pace { times }),
                _ => Ok(phrases.clone()),
            },
        };
        self.sentences.iter().map(judge).collect()
    }
}

struct Cutter<'a> {
    found: &'a Alignment,
    settings: &'a CutSettings,
    /// Seconds of a frame.
    frame: f64,
}

impl Cutter<'_> {
    /// The pause behind a phrase.
    fn end_of(&self, phrase: usize) -> Option<Cut> {
        let end = self.found.phrases[phrase].end;
        let next = self.found.phrases.get(phrase + 1).map(|next| next.start);
        let pause =
            self.pause(Some(end), next.filter(|next| next.saturating_sub(end) < TOGETHER))?;
        let limit = pause.start.midpoint(pause.end).max(self.last_frame(pause.end));
        Some(Cut { speech: pause.start, limit })
    }

    /// The pause before a phrase.
    fn start_of(&self, phrase: usize) -> Option<Cut> {
        let start = self.found.phrases[phrase].start;
        let last = phrase.checked_sub(1).map(|last| self.found.phrases[last].end);
        let pause =
            self.pause(last.filter(|last| start.saturating_sub(*last) < TOGETHER), Some(start))?;
        let limit = if pause.start == 0 { 0 } else { pause.start.midpoint(pause.end) };
        Some(Cut { speech: pause.end, limit })
    }

    /// The pause between the end of a phrase and the start of the next one, as far as they are known: near both, and rather a
    /// long one than that of a plosive.
    fn pause(&self, end: Option<usize>, start: Option<usize>) -> Option<&Pause> {
        let (from, to) = (end.or(start)?, start.or(end)?);
        let pauses = &self.found.pauses;
        let first = pauses.partition_point(|pause| pause.end + NEAR < from);
        let near = pauses[first..].iter().take_while(|pause| pause.start <= to + NEAR);
        near.min_by_key(|pause| {
            let before = end.map_or(0, |end| pause.start.abs_diff(end));
            let after = start.map_or(0, |start| pause.end.abs_diff(start));
            (before + after) as i64 - LONGER * pause.frames().min(LONG) as i64
        })
    }

    /// The silence at the end of the recording belongs to the last row.
    fn last_frame(&self, end: usize) -> usize {
        if end == self.found.levels.frames.len() { end } else { 0 }
    }

    /// Phrases as rows, as few as possible.
    fn divide(&self, phrases: Range<usize>) -> Result<Vec<CutRow>, WhyNot> {
        let start = self.start_of(phrases.start).ok_or(WhyNot::NoPause)?;
        let end = self.end_of(phrases.end - 1).ok_or(WhyNot::NoPause)?;
        let row = self.row(phrases.clone(), start, end);
        let seconds = row.end - row.start;
        if seconds < self.settings.shortest {
            return Err(WhyNot::TooShort { seconds });
        }
        if seconds <= self.settings.longest {
            return Ok(vec![row]);
        }
        // At the longest pause that leaves two pieces of which the larger one is at most three quarters.
        let between = (phrases.start + 1..phrases.end).filter_map(|next| {
            let (end, start) = (self.end_of(next - 1)?, self.start_of(next)?);
            let share =
                (end.speech as f64 * self.frame - row.speech.0) / (row.speech.1 - row.speech.0);
            let even = (0.25..=0.75).contains(&share);
            Some((even, start.speech.saturating_sub(end.speech), next))
        });
        let (_, _, next) = between.max().ok_or(WhyNot::TooLong { seconds })?;
        let mut pieces = self.divide(phrases.start..next)?;
        pieces.extend(self.divide(next..phrases.end)?);
        Ok(pieces)
    }

    fn row(&self, phrases: Range<usize>, start: Cut, end: Cut) -> CutRow {
        let inside: &[FoundPhrase] = &self.found.phrases[phrases];
        let margin = (self.settings.margin / self.frame).round() as usize;
        let seconds = |frame: usize| frame as f64 * self.frame;
        let texts: Vec<&str> = inside.iter().map(|one| &one.phrase.text[..]).collect();
        let sentence = inside[0].phrase.sentence;
        let of_sentence = |number: usize| match &self.found.sentences[number] {
            Found::Said { excess, .. } => *excess,
            _ => 0.0,
        };
        let excesses = inside.iter().map(|one| of_sentence(one.phrase.sentence));
        CutRow {
            sentence,
            start: seconds(start.speech.saturating_sub(margin).max(start.limit.min(start.speech))),
            end: seconds((end.speech + margin).min(end.limit.max(end.speech))),
            text: texts.join(" "),
            excess: excesses.max_by(f64::total_cmp),
            speech: (seconds(start.speech), seconds(end.speech)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cutting::{Levels, Phrase};
    use tandem_units::Hop;

    /// A frame is 10 ms.
    const RATE: SampleRate = SampleRate(1000);

    /// Phrases of so many frames: sentence, first frame, last frame. Pauses; the excess of each sentence.
    fn cut(
        phrases: &[(usize, usize, usize)],
        pauses: &[(usize, usize)],
        excess: &[f64],
    ) -> CutRows {
        let found = |(sentence, start, end): &(usize, usize, usize)| FoundPhrase {
            phrase: Phrase {
                sentence: *sentence,
                text: format!("{start}"),
                words: vec![vec![(0, 1); (end - start) / 10]],
            },
            start: *start,
            end: *end,
        };
        let said = |(number, excess): (usize, &f64)| {
            let of = |phrase: &(usize, usize, usize)| phrase.0 == number;
            let first = phrases.iter().position(of).unwrap();
            let count = phrases.iter().filter(|phrase| of(phrase)).count();
            Found::Said { phrases: first..first + count, excess: *excess }
        };
        let all = pauses[pauses.len() - 1].1;
        let alignment = Alignment {
            hop: Hop(10),
            levels: Levels { frames: vec![0.0; all], threshold: 0.0, noise: 0.0, loud: 0.0 },
            pauses: pauses.iter().map(|(start, end)| Pause { start: *start, end: *end }).collect(),
            phrases: phrases.iter().map(found).collect(),
            sentences: excess.iter().enumerate().map(said).collect(),
        };
        alignment.rows(&vec!["x"; excess.len()], &CutSettings::default(), RATE)
    }

    #[test]
    fn rows_begin_and_end_inside_pauses() {
        let found =
            cut(&[(0, 52, 198), (1, 222, 400)], &[(0, 50), (200, 220), (402, 500)], &[0.0, 0.0]);
        let frames = |seconds: f64| (100.0 * seconds).round() as usize;
        let times = found.rows.iter().map(|row| (frames(row.start), frames(row.end)));
        assert_eq!(times.collect::<Vec<_>>(), [(35, 210), (210, 417)]);
        assert_eq!(found.rows[0].speech, (0.5, 2.0));
    }

    #[test]
    fn sentences_without_a_pause_stay_together_and_share_their_fate() {
        let phrases = [(0, 50, 200), (1, 200, 400), (2, 430, 600)];
        let pauses = [(0, 50), (400, 430), (600, 650)];
        let texts = |excess: &[f64]| -> Vec<String> {
            cut(&phrases, &pauses, excess).rows.into_iter().map(|row| row.text).collect()
        };
        assert_eq!(texts(&[0.0, 0.0, 0.0]), ["50 200", "430"]);
        assert_eq!(texts(&[0.0, 9.0, 0.0]), ["430"]);
        assert_eq!(texts(&[0.0, 0.0, 9.0]), ["50 200"]);
    }

    #[test]
    fn a_long_sentence_is_divided_at_a_pause_between_phrases_or_left_out() {
        let phrases = [(0, 50, 550), (0, 600, 1100)];
        let found = cut(&phrases, &[(0, 50), (550, 600), (1100, 1150)], &[0.0]);
        assert_eq!(found.rows.len(), 2);
        assert_eq!((&found.rows[0].text[..], found.rows[1].sentence), ("50", 0));
        let found = cut(&[(0, 50, 1100)], &[(0, 50), (1100, 1150)], &[0.0]);
        assert!(matches!(found.left_out[0].why, WhyNot::TooLong { .. }), "{found:?}");
    }
}
