//! `tandem export --check` with the symbols that Piper sends: those of espeak-ng.
//!
//! In: the voice, and espeak-ng where it is installed. Out: [`EspeakChecked`]: which symbols of many sentences the voice was
//! not trained on, how far the pronunciation is from that of the voice, and whether the graph rewrites as this program does.

use super::check::{Check, Request, TOLERANCE, largest_difference, sample_text};
use crate::failure::Result;
use serde::Serialize;
use std::collections::BTreeSet;
use tandem_export::ExportedSpeaker;
use tandem_export::symbol_map::SymbolMap;
use tandem_model::synthesis::mel::SamplingOptions;
use tandem_model::synthesis::text::Synthesizer;
use tandem_text::espeak_symbols::{rewrite, trained_symbols};
use tandem_text::{
    FrontEnd, Language, Pronunciation, SymbolTable, TextConfig, TextError, Transcript,
};
use unicode_normalization::UnicodeNormalization;

/// The texts of the demo corpus; its last column is the language.
const TEXTS: &str = include_str!("../../../demo-corpus/metadata.csv");

/// The result for the language that Piper reads.
#[derive(Debug, Serialize)]
pub struct EspeakChecked {
    language: Language,
    sentences: usize,
    symbols: usize,
    /// Symbols without an id, and those that the voice was not trained on.
    unknown: BTreeSet<char>,
    /// The share of symbols that differ from the voice's own phonemes.
    differing: f64,
    /// Largest difference of two mel values, of a text in the symbols of espeak-ng.
    mel: f32,
}

impl EspeakChecked {
    pub fn agrees(&self) -> bool {
        // Written so that NaN fails too.
        self.unknown.is_empty() && self.mel <= TOLERANCE
    }

    pub fn line(&self) -> String {
        let unknown: Vec<String> = self.unknown.iter().map(|c| format!("`{c}`")).collect();
        let known = match unknown.is_empty() {
            true => "all of them trained".into(),
            false => format!("NOT TRAINED: {}", unknown.join(" ")),
        };
        format!(
            "{}: {} symbols of espeak-ng in {} sentences, {known}; {:.1} % differ from the voice's own phonemes; \
             largest difference to `tandem synth` of the same symbols {:.1e} in mel frames: {}",
            self.language.tag(),
            self.symbols,
            self.sentences,
            100.0 * self.differing,
            self.mel,
            if self.agrees() { "agrees" } else { "DIFFERS" },
        )
    }

    fn add(&mut self, espeak: &str, own: &str, map: &SymbolMap, trained: &str) {
        let known = |c: &char| map.ids.contains_key(c);
        self.unknown.extend(espeak.nfd().filter(|c| !known(c)));
        let found: Vec<char> = rewrite(self.language, espeak).chars().collect();
        self.unknown.extend(found.iter().filter(|c| !trained.contains(**c)));
        let own: Vec<char> = own.chars().collect();
        let wrong = strsim::generic_levenshtein(&found, &own) as f64;
        let before = self.differing * self.symbols as f64;
        (self.sentences, self.symbols) = (self.sentences + 1, self.symbols + own.len());
        self.differing = (before + wrong) / self.symbols.max(1) as f64;
    }
}

impl Check<'_> {
    /// None where espeak-ng is not installed.
    pub fn espeak(
        &self,
        synthesizer: &Synthesizer,
        speakers: &[ExportedSpeaker],
        text: Option<&str>,
    ) -> Result<Option<EspeakChecked>> {
        let Some(speaker) = speakers.first() else { return Ok(None) };
        let language = speaker.language;
        let pronunciation = Pronunciation::Espeak;
        let config =
            TextConfig { languages: vec![language], pronunciation, ..TextConfig::default() };
        let espeak = match FrontEnd::new(&config) {
            Ok(front_end) => front_end,
            Err(TextError::EspeakMissing { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let (map, trained) = (SymbolMap::of_espeak(espeak.table()), trained_symbols(language));
        let trained = trained.unwrap_or_default();
        let texts: Vec<_> = texts(language).map(|text| (text, Some(language))).collect();
        let mut checked = EspeakChecked {
            language,
            sentences: 0,
            symbols: 0,
            unknown: BTreeSet::new(),
            differing: 0.0,
            mel: f32::NAN,
        };
        for ((text, _), read) in texts.iter().zip(espeak.read_many(&texts)?) {
            let own = synthesizer.read(text, Some(language))?.phonemes.unwrap_or_default();
            checked.add(&read?.phonemes.unwrap_or_default(), &own, &map, &trained);
        }
        let text = match text {
            Some(text) => text,
            None => sample_text(language)?,
        };
        let read = espeak.read(text, Some(language))?.phonemes.unwrap_or_default();
        let sid = (speakers.len() > 1).then_some(0);
        checked.mel = self.difference(synthesizer, speaker, sid, &read, &map)?;
        Ok(Some(checked))
    }

    /// The graph reads what espeak-ng wrote, the voice what it becomes by the rules.
    fn difference(
        &self,
        synthesizer: &Synthesizer,
        speaker: &ExportedSpeaker,
        sid: Option<usize>,
        espeak: &str,
        map: &SymbolMap,
    ) -> Result<f32> {
        let table = SymbolTable::standard();
        let document = &synthesizer.trained().document;
        let [begin, end] =
            SymbolTable::EDGE_SYMBOLS.map(|edge| table.id(edge).map_or(0, |id| i64::from(id.0)));
        let middle = espeak.nfd().filter_map(|c| map.ids.get(&c)).flatten().copied();
        let ids = [begin].into_iter().chain(middle).chain([end]).collect();
        let sampling = SamplingOptions { temperature: 0.0, ..self.sampling };
        let bands = document.config.bands;
        let scales = [0.0, sampling.speed.recip(), 0.0];
        let request = Request { model: self.model, ids, scales, sid, bands };
        let (_, _, mel) = self.run_graph(&request, &[])?;
        let transcript = Transcript::parse(&rewrite(speaker.language, espeak), &table)?;
        let symbols: Vec<i32> = transcript.ids().iter().map(|id| i32::from(id.0)).collect();
        let mut spoken = synthesizer.synthesize_mel(
            &symbols,
            speaker.language,
            &speaker.reference,
            &sampling,
        )?;
        document.restore(&mut spoken.mel, &speaker.reference);
        Ok(largest_difference(&mel, &spoken.mel))
    }
}

fn texts(language: Language) -> impl Iterator<Item = &'static str> {
    let rows = TEXTS.lines().filter(move |row| row.ends_with(&format!("|{}", language.tag())));
    rows.filter_map(|row| row.split('|').nth(2))
}
