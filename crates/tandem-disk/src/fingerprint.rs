//! Identifies content by its hash.
//!
//! In: bytes. Out: [`Fingerprint`]. Reads no file.

use bytemuck::{Pod, Zeroable};
use std::fmt;

/// 128 bits of BLAKE3: equal fingerprints mean equal content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Pod, Zeroable)]
#[repr(transparent)]
pub struct Fingerprint(pub [u8; 16]);

impl Fingerprint {
    pub fn of(content: &[u8]) -> Fingerprint {
        Fingerprint::truncate(blake3::hash(content))
    }

    /// The fingerprint of several parts. Each part's length is hashed too, so that moving a boundary
    /// between two parts changes the result.
    pub fn of_parts(parts: &[&[u8]]) -> Fingerprint {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Fingerprint::truncate(hasher.finalize())
    }

    fn truncate(hash: blake3::Hash) -> Fingerprint {
        let mut short = [0; 16];
        short.copy_from_slice(&hash.as_bytes()[..16]);
        Fingerprint(short)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moving_a_boundary_between_parts_changes_the_fingerprint() {
        assert_ne!(Fingerprint::of_parts(&[b"ab", b"c"]), Fingerprint::of_parts(&[b"a", b"bc"]));
        assert_ne!(Fingerprint::of_parts(&[b"ab"]), Fingerprint::of_parts(&[b"ab", b""]));
    }
}
