//! The secret that requests must carry: `Authorization: Bearer TOKEN`.
//!
//! In: a file with one line. Out: a check that takes the same time for every wrong token.

use crate::error::ServeError;
use std::path::Path;

/// The shortest token that is accepted.
const SHORTEST: usize = 16;

/// A token, kept as its hash: comparing hashes shows nothing about the token by its time.
#[derive(Clone, Copy)]
pub struct Token(blake3::Hash);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// The token in the first line of a file.
    pub fn read(path: &Path) -> Result<Token, ServeError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ServeError::TokenFile { path: path.into(), source })?;
        let fault = |fault| ServeError::Token { path: path.into(), fault };
        let token = text.trim();
        if token.len() < SHORTEST {
            return Err(fault("has fewer than 16 characters"));
        }
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(fault("has spaces, several lines or characters beyond ASCII"));
        }
        Ok(Token(blake3::hash(token.as_bytes())))
    }

    /// Whether the value of an `Authorization` header carries it.
    pub fn is_in(&self, authorization: &str) -> bool {
        let Some((scheme, given)) = authorization.split_once(' ') else { return false };
        // Equality of hashes takes constant time.
        scheme.eq_ignore_ascii_case("bearer") && blake3::hash(given.trim().as_bytes()) == self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_units::Hint;

    fn token(text: &str) -> Result<Token, ServeError> {
        let room = tempfile::tempdir().unwrap();
        std::fs::write(room.path().join("token"), text).unwrap();
        Token::read(&room.path().join("token"))
    }

    #[test]
    fn only_the_token_itself_opens() {
        let token = token("0123456789abcdef\n").unwrap();
        assert!(token.is_in("Bearer 0123456789abcdef"));
        assert!(token.is_in("bearer 0123456789abcdef"));
        for wrong in ["", "Bearer", "Bearer ", "Bearer 0123456789abcde", "Basic 0123456789abcdef"] {
            assert!(!token.is_in(wrong), "{wrong}");
        }
        assert_eq!(format!("{token:?}"), "Token");
    }

    #[test]
    fn weak_and_missing_tokens_are_errors_with_a_hint() {
        for weak in ["", "short", "two words of some length", "0123456789abcdef\nx"] {
            assert!(token(weak).unwrap_err().hint().is_some(), "{weak:?}");
        }
        let missing = Token::read(Path::new("no-such-file")).unwrap_err();
        assert!(missing.to_string().contains("no-such-file"));
    }
}
