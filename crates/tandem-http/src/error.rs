//! Errors of servers, with hints.

use std::io;
use std::net::SocketAddr;
use tandem_units::Hint;

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// Another program listens there.
    #[error("port {} on this machine is in use", address.port())]
    PortTaken { address: SocketAddr },
    /// The address cannot be used for another reason.
    #[error("cannot listen at {address}")]
    Listen {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("cannot start the threads of the server")]
    Threads(#[source] io::Error),
}

impl Hint for HttpError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::PortTaken { .. } => Some("choose another port, or 0 for any free port".into()),
            Self::Listen { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => {
                    Some("use a port above 1023, or 0 for any free port".into())
                }
                io::ErrorKind::AddrNotAvailable => {
                    Some("use an address of this machine, such as 127.0.0.1".into())
                }
                _ => None,
            },
            Self::Threads(_) => None,
        }
    }
}
