//! Why a speech server does not start, with hints.

use std::io;
use std::path::PathBuf;
use tandem_http::HttpError;
use tandem_model::synthesis::text::SynthesisError;
use tandem_units::Hint;

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("cannot load the voice")]
    Synthesis(#[from] SynthesisError),
    #[error("the voice `{name}` is given twice")]
    VoiceTwice { name: String },
    #[error("`{name}` is not a name for a voice")]
    VoiceName { name: String },
    #[error("cannot read the token file `{}`", path.display())]
    TokenFile {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the token in `{}` {fault}", path.display())]
    Token { path: PathBuf, fault: &'static str },
    #[error("cannot start a thread that synthesizes")]
    Thread(#[source] io::Error),
}

impl Hint for ServeError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Http(error) => error.hint(),
            Self::Synthesis(error) => error.hint(),
            Self::VoiceTwice { .. } => Some(
                "use a name that no speaker of the checkpoint has; `default` is taken too".into(),
            ),
            Self::VoiceName { .. } => {
                Some("use up to 64 letters, digits, `-`, `_`, `.` and spaces".into())
            }
            Self::TokenFile { .. } | Self::Token { .. } => {
                Some("write one line of 16 or more characters: openssl rand -hex 32 > token".into())
            }
            Self::Thread(_) => None,
        }
    }
}
