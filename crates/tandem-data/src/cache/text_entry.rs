//! The text of one row as bytes: lengths, symbols, normalised text, phonemes.
//!
//! In and out: [`CachedText`]. Knows no file; [`super::segment`] stores the bytes.

use bytemuck::{Pod, Zeroable};

/// The stored text of a row, and the length of its recording, which is needed if the index must be
/// rebuilt from the segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachedText<'a> {
    /// Mel frames of the recording.
    pub frames: u32,
    /// Language tag, such as `fa`.
    pub language: &'a str,
    /// Symbol ids of the transcript, two little-endian bytes each; see [`CachedText::symbols`].
    symbol_bytes: &'a [u8],
    /// The normalised text.
    pub normalized: &'a str,
    /// The phonemes; empty in character mode.
    pub phonemes: &'a str,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Head {
    frames: u32,
    symbols: u32,
    language: u32,
    normalized: u32,
    phonemes: u32,
}

impl<'a> CachedText<'a> {
    /// `symbols` are the symbol ids of the transcript.
    pub fn new(
        frames: u32,
        language: &'a str,
        symbols: &'a [u16],
        normalized: &'a str,
        phonemes: &'a str,
    ) -> CachedText<'a> {
        let symbol_bytes = bytemuck::cast_slice(symbols);
        CachedText { frames, language, symbol_bytes, normalized, phonemes }
    }

    pub fn symbol_count(&self) -> usize {
        self.symbol_bytes.len() / 2
    }

    /// The symbol ids of the transcript.
    pub fn symbols(&self) -> impl ExactSizeIterator<Item = u16> + 'a {
        self.symbol_bytes.as_chunks::<2>().0.iter().map(|pair| u16::from_le_bytes(*pair))
    }

    /// The bytes to store, as parts. `head` receives the lengths.
    pub fn encode(&self, head: &'a mut Vec<u8>) -> [&'a [u8]; 5] {
        let lengths = Head {
            frames: self.frames,
            symbols: self.symbol_count() as u32,
            language: self.language.len() as u32,
            normalized: self.normalized.len() as u32,
            phonemes: self.phonemes.len() as u32,
        };
        head.clear();
        head.extend_from_slice(bytemuck::bytes_of(&lengths));
        [
            head,
            self.symbol_bytes,
            self.language.as_bytes(),
            self.normalized.as_bytes(),
            self.phonemes.as_bytes(),
        ]
    }

    /// The text in a verified payload; `None` if it was written by another program.
    pub fn decode(payload: &'a [u8]) -> Option<CachedText<'a>> {
        let (head, rest) = payload.split_at_checked(size_of::<Head>())?;
        let head: Head = bytemuck::pod_read_unaligned(head);
        let (symbol_bytes, rest) =
            rest.split_at_checked((head.symbols as usize).checked_mul(2)?)?;
        let (language, rest) = rest.split_at_checked(head.language as usize)?;
        let (normalized, phonemes) = rest.split_at_checked(head.normalized as usize)?;
        if phonemes.len() != head.phonemes as usize {
            return None;
        }
        Some(CachedText {
            frames: head.frames,
            language: std::str::from_utf8(language).ok()?,
            symbol_bytes,
            normalized: std::str::from_utf8(normalized).ok()?,
            phonemes: std::str::from_utf8(phonemes).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn encoding_and_decoding_a_text_changes_nothing(
            frames: u32,
            symbols in prop::collection::vec(any::<u16>(), 0..50),
            language in "[a-z]{2}",
            normalized in ".{0,40}",
            phonemes in ".{0,40}",
        ) {
            let text = CachedText::new(frames, &language, &symbols, &normalized, &phonemes);
            let mut head = Vec::new();
            let bytes = text.encode(&mut head).concat();
            let back = CachedText::decode(&bytes).unwrap();
            prop_assert_eq!(back, text);
            prop_assert_eq!(back.symbols().collect::<Vec<_>>(), symbols);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = CachedText::decode(&bytes);
        }
    }
}
