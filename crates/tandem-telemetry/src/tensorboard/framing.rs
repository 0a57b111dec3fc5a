//! TensorFlow's record framing of an event file.
//!
//! In: the bytes of a message. Out: length (8 bytes, little-endian), masked CRC-32C of those 8, the
//! bytes, masked CRC-32C of the bytes. Defined in TensorFlow's `lib/io/record_writer.h`.

/// Appends one framed record to `out`.
pub(crate) fn frame(payload: &[u8], out: &mut Vec<u8>) {
    let length = (payload.len() as u64).to_le_bytes();
    out.extend_from_slice(&length);
    out.extend_from_slice(&masked(&length).to_le_bytes());
    out.extend_from_slice(payload);
    out.extend_from_slice(&masked(payload).to_le_bytes());
}

/// A checksum of data that itself holds checksums is weak, so each is turned and shifted.
pub(crate) fn masked(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xA282_EAD8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_masked_as_the_format_says() {
        // The check value of CRC-32C is 0xE3069283; (sum >> 15 | sum << 17) + 0xA282EAD8, by hand.
        assert_eq!(masked(b"123456789"), 0xC78A_B0E5);
    }

    #[test]
    fn a_record_is_length_checksum_bytes_checksum() {
        let mut out = vec![7];
        frame(b"abc", &mut out);
        assert_eq!(out.len(), 1 + 8 + 4 + 3 + 4);
        assert_eq!(out[1..9], 3u64.to_le_bytes());
        assert_eq!(out[13..16], *b"abc");
        assert_eq!(out[16..], masked(b"abc").to_le_bytes());
    }
}
