//! Guesses the encoding of a manifest that is not UTF-8, for the command that converts it.
//!
//! In: bytes. Out: a name that `iconv` knows. Decodes nothing: a wrong guess must not change a text.

/// The likely encoding of text that is not UTF-8.
///
/// Letters of Arabic and Cyrillic code pages stand next to each other, those of Western ones between letters of ASCII.
/// The most frequent letter of Arabic and Persian is alef (0xC7), in Cyrillic text that byte is rare.
pub(super) fn likely_encoding(bytes: &[u8]) -> &'static str {
    let high = |byte: &u8| *byte >= 0x80;
    let all = bytes.iter().filter(|byte| high(byte)).count();
    let paired = bytes.windows(2).filter(|pair| pair.iter().all(high)).count();
    let alef = bytes.iter().filter(|byte| **byte == 0xC7).count();
    match () {
        () if 2 * paired < all => "WINDOWS-1252",
        () if 20 * alef >= all => "WINDOWS-1256",
        () => "WINDOWS-1251",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn persian_russian_and_german_code_pages_are_told_apart() {
        // «سلام دنیا، این یک متن است» in Windows-1256.
        let persian = b"\xd3\xe1\xc7\xe3 \xcf\xe4\xed\xc7\xa1 \xc7\xed\xe4 \xed\x98 \xe3\xca\xe4 \xc7\xd3\xca";
        assert_eq!(likely_encoding(persian), "WINDOWS-1256");
        let russian = b"\xcf\xf0\xe8\xe2\xe5\xf2, \xea\xe0\xea \xe4\xe5\xeb\xe0";
        assert_eq!(likely_encoding(russian), "WINDOWS-1251");
        assert_eq!(likely_encoding(b"gr\xfc\xdfe aus K\xf6ln und M\xfcnchen"), "WINDOWS-1252");
    }
}
