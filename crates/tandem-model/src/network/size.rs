//! Model sizes.
//!
//! In: a name. Out: [`VoiceConfig`], from which every module takes its widths.

use serde::{Deserialize, Serialize};
use tandem_settings::{SettingValue, ValueKind};
use tandem_units::Bytes;

/// The number of parameters, by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelSize {
    /// About 2 million parameters: learns the demo corpus on a CPU.
    #[default]
    Tiny,
    /// About 18 million.
    Small,
    /// About 60 million.
    Normal,
    /// Above 150 million.
    Big,
    /// About ten thousand: too small to learn speech, for tests with very many steps.
    Micro,
}

impl ModelSize {
    /// All sizes that are useful for training, smallest first.
    pub const ALL: [ModelSize; 4] =
        [ModelSize::Tiny, ModelSize::Small, ModelSize::Normal, ModelSize::Big];

    /// The value of `--model-size`.
    pub fn name(self) -> &'static str {
        match self {
            ModelSize::Tiny => "tiny",
            ModelSize::Small => "small",
            ModelSize::Normal => "normal",
            ModelSize::Big => "big",
            ModelSize::Micro => "micro",
        }
    }
}

impl SettingValue for ModelSize {
    const KIND: ValueKind = ValueKind::Word;
    const WORDS: &'static [&'static str] = &["tiny", "small", "normal", "big"];
    const HIDDEN_WORDS: &'static [&'static str] = &["micro"];

    fn parse(text: &str) -> Result<ModelSize, String> {
        let mut sizes = ModelSize::ALL.into_iter().chain([ModelSize::Micro]);
        let expected = || format!("expected {}", ModelSize::WORDS.join(", "));
        sizes.find(|size| size.name() == text).ok_or_else(expected)
    }

    fn text(&self) -> String {
        self.name().to_string()
    }
}

/// Floats kept for each channel of a block.
const PER_CHANNEL: usize = 14;
/// Floats kept for each band of a mel frame.
const PER_BAND: usize = 12;

/// The dimensions of a voice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VoiceConfig {
    /// Symbols of the table, including padding.
    pub symbols: usize,
    pub languages: usize,
    /// Mel bands.
    pub bands: usize,
    pub text_width: usize,
    pub text_blocks: usize,
    pub decoder_width: usize,
    pub decoder_blocks: usize,
    /// Width of an attention head.
    pub head_width: usize,
    /// Width of the speaker embedding.
    pub voice_width: usize,
    /// Mel frames per position of the decoder.
    pub patch: usize,
}

impl VoiceConfig {
    /// Estimated memory of the activations of one training step, in 32-bit floats: what the backward
    /// pass keeps for each block, position and channel, and for each mel frame. Fitted to peaks of the
    /// CPU's fused kernels, which `tandem train --enable-memory-isolation` prints; backends without
    /// fused attention need more.
    pub fn activations(&self, rows: usize, frames: usize, symbols: usize) -> Bytes {
        let positions = frames.div_ceil(self.patch.max(1));
        let decoder = positions * self.decoder_blocks * self.decoder_width;
        let text = symbols * self.text_blocks * self.text_width;
        let floats = PER_CHANNEL * (decoder + text) + PER_BAND * frames * self.bands;
        Bytes(4 * (rows * floats) as u64)
    }

    /// Estimated number of parameters, without building the voice: never below the real one.
    pub fn parameters(&self) -> usize {
        let block = |width: usize| 12 * width * width + 24 * width;
        let text =
            self.text_blocks * (block(self.text_width) + 2 * self.text_width * self.text_width);
        let decoder = self.decoder_blocks
            * (block(self.decoder_width) + 8 * self.decoder_width * self.decoder_width);
        let tables = (self.symbols + self.languages + 8 * self.bands) * self.text_width;
        let heads = 8 * self.bands * self.decoder_width
            + 20 * self.text_width * self.text_width
            + 4 * self.decoder_width * self.decoder_width;
        text + decoder + tables + heads
    }

    /// The dimensions of a named size.
    pub fn of(size: ModelSize, symbols: usize, languages: usize, bands: usize) -> VoiceConfig {
        let (text_width, text_blocks, decoder_width, decoder_blocks, head_width) = match size {
            ModelSize::Tiny => (96, 3, 128, 4, 32),
            ModelSize::Small => (256, 6, 320, 6, 64),
            ModelSize::Normal => (384, 8, 512, 8, 64),
            ModelSize::Big => (576, 10, 768, 10, 64),
            ModelSize::Micro => (16, 1, 16, 1, 16),
        };
        VoiceConfig {
            symbols,
            languages,
            bands,
            text_width,
            text_blocks,
            decoder_width,
            decoder_blocks,
            head_width,
            voice_width: text_width / 2,
            patch: 2,
        }
    }
}
