//! How large a voice is.
//!
//! In: a name, or single numbers. Out: [`VoiceConfig`], from which every module takes its widths.

use serde::{Deserialize, Serialize};

/// A named size.
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
    /// Some ten thousand: learns nothing to speak of, for tests of very many steps.
    Micro,
}

impl ModelSize {
    /// All that are worth training, smallest first.
    pub const ALL: [ModelSize; 4] =
        [ModelSize::Tiny, ModelSize::Small, ModelSize::Normal, ModelSize::Big];

    /// The name, as it is typed.
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

/// The shape of a voice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VoiceConfig {
    /// Symbols of the table, padding included.
    pub symbols: usize,
    /// Languages it can tell apart.
    pub languages: usize,
    /// Bands of a mel frame.
    pub bands: usize,
    /// Width of the text encoder.
    pub text_width: usize,
    /// Blocks of the text encoder.
    pub text_blocks: usize,
    /// Width of the decoder.
    pub decoder_width: usize,
    /// Blocks of the decoder.
    pub decoder_blocks: usize,
    /// Width of one attention head.
    pub head_width: usize,
    /// Length of the vector that stands for a speaker's voice.
    pub voice_width: usize,
    /// Mel frames that the decoder sees as one.
    pub patch: usize,
}

impl VoiceConfig {
    /// The shape of a named size, for so many symbols, languages and bands.
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
