//! Detects the format of a file by its first bytes; the extension is used only if they are ambiguous.
//!
//! In: bytes and an extension. Out: the format, and the bytes after leading tags. Signatures are from the formats' own specifications (RIFF, RFC 9639, RFC 3533, ID3v2,
//! ISO/IEC 11172-3 and 14496-12).

use super::AudioError;

/// The detected format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AudioFormat {
    /// RIFF or RF64 with a WAVE form.
    Wav,
    Flac,
    Mp3,
    /// An Ogg stream; its codec is checked later.
    Ogg,
}

/// The format, and the bytes from its start. Leading tags are skipped, so that a picture in them is
/// never parsed.
pub fn sniff<'a>(
    bytes: &'a [u8],
    hint: Option<&str>,
) -> Result<(AudioFormat, &'a [u8]), AudioError> {
    if bytes.is_empty() {
        return Err(AudioError::EmptyFile);
    }
    let body = after_tags(bytes);
    let kind = match body {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => AudioFormat::Wav,
        [b'R', b'F', b'6', b'4', _, _, _, _, b'W', b'A', b'V', b'E', ..] => AudioFormat::Wav,
        [b'f', b'L', b'a', b'C', ..] => AudioFormat::Flac,
        [b'O', b'g', b'g', b'S', ..] => AudioFormat::Ogg,
        _ if known_but_unread(body).is_none() && starts_mpeg_frame(body) => AudioFormat::Mp3,
        _ => return other(body, hint),
    };
    Ok((kind, body))
}

/// The extension matters only for an MP3 stream with junk before its first frame.
fn other<'a>(body: &'a [u8], hint: Option<&str>) -> Result<(AudioFormat, &'a [u8]), AudioError> {
    if let Some(format) = known_but_unread(body) {
        return Err(AudioError::Unsupported { format: format.into() });
    }
    match hint {
        Some(name) if name.eq_ignore_ascii_case("mp3") => Ok((AudioFormat::Mp3, body)),
        _ => Err(AudioError::NotAudio),
    }
}

fn known_but_unread(body: &[u8]) -> Option<&'static str> {
    match body {
        [b'R', b'I', b'F', b'X', ..] => Some("big-endian WAV (RIFX)"),
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => Some("MP4/M4A"),
        [b'F', b'O', b'R', b'M', _, _, _, _, b'A', b'I', b'F', ..] => Some("AIFF"),
        [0x1A, 0x45, 0xDF, 0xA3, ..] => Some("Matroska/WebM"),
        [0xFF, 0xF0 | 0xF1 | 0xF8 | 0xF9, ..] => Some("AAC (ADTS)"),
        [b'#', b'!', b'A', b'M', b'R', ..] => Some("AMR"),
        [b'N', b'I', b'S', b'T', b'_', b'1', b'A', ..] => Some("NIST SPHERE"),
        [b'c', b'a', b'f', b'f', ..] => Some("Core Audio Format"),
        [b'.', b's', b'n', b'd', ..] => Some("Sun/NeXT audio"),
        _ => None,
    }
}

/// Skips ID3v2 tags: ten bytes of header with a length of four times seven bits.
fn after_tags(mut bytes: &[u8]) -> &[u8] {
    // A file has one such tag, or two if a program added its own.
    for _ in 0..4 {
        let [b'I', b'D', b'3', _, _, flags, a, b, c, d, ..] = *bytes else { break };
        if (a | b | c | d) & 0x80 != 0 {
            break;
        }
        let length = [a, b, c, d].iter().fold(0usize, |sum, &part| sum << 7 | usize::from(part));
        let footer = if flags & 0x10 != 0 { 10 } else { 0 };
        bytes = bytes.get(10 + length + footer..).unwrap_or(&[]);
    }
    bytes
}

/// Eleven sync bits, then a valid version, layer, bit rate and sample rate.
fn starts_mpeg_frame(bytes: &[u8]) -> bool {
    let [0xFF, second, third, _, ..] = *bytes else { return false };
    second & 0xE0 == 0xE0
        && second & 0x18 != 0x08 // reserved version
        && second & 0x06 == 0x02 // layer III
        && third & 0xF0 != 0xF0 // forbidden bit rate
        && third & 0x0C != 0x0C // reserved rate
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], hint: Option<&str>, expected: Result<AudioFormat, &str>) {
        let found = sniff(bytes, hint).map(|(kind, _)| kind).map_err(|error| error.to_string());
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    #[test]
    fn content_decides_despite_a_wrong_extension() {
        check(b"fLaC....", Some("wav"), Ok(AudioFormat::Flac));
        check(b"RIFF....WAVEfmt ", Some("mp3"), Ok(AudioFormat::Wav));
        check(b"OggS....", None, Ok(AudioFormat::Ogg));
        check(&[0xFF, 0xFB, 0x90, 0x64], Some("ogg"), Ok(AudioFormat::Mp3));
        check(b"RIFF....AVI LIST", Some("wav"), Err("the content is not audio in a known format"));
        check(b"<html>", Some("wav"), Err("the content is not audio in a known format"));
        check(b"\0\0\0\x20ftypM4A ", Some("mp3"), Err("MP4/M4A is not supported"));
        check(b"", None, Err("the file is empty"));
    }

    #[test]
    fn leading_tags_are_skipped() {
        let mut bytes = b"ID3\x04\0\0\0\0\x01\x02".to_vec();
        bytes.extend([0xAA; 130]);
        bytes.extend(b"fLaC");
        let (kind, body) = sniff(&bytes, None).unwrap();
        assert_eq!((kind, body), (AudioFormat::Flac, &b"fLaC"[..]));
        check(
            b"ID3\x04\0\0\x7f\x7f\x7f\x7f",
            None,
            Err("the content is not audio in a known format"),
        );
    }
}
