//! A bound port, not yet served. Long work binds it first, so that a port in use is an error at once.

use crate::error::HttpError;
use std::io;
use std::net::{SocketAddr, TcpListener};

/// A port that belongs to this process.
#[derive(Debug)]
pub struct Listening {
    pub(crate) listener: TcpListener,
    address: SocketAddr,
}

impl Listening {
    /// Binds an address; port 0 for any that is free.
    pub fn bind(address: SocketAddr) -> Result<Listening, HttpError> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => HttpError::PortTaken { address },
            _ => HttpError::Listen { address, source },
        };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Listening { listener, address })
    }

    /// The address, with the port that was chosen.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use tandem_units::Hint;

    #[test]
    fn a_port_in_use_and_a_foreign_address_are_errors_with_a_hint() {
        let first = Listening::bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let error = Listening::bind(first.address()).unwrap_err();
        assert!(error.to_string().contains("is in use"), "{error}");
        assert!(error.hint().unwrap().contains("another port"));
        // A documentation address (RFC 5737), which no machine has.
        let error = Listening::bind(([203, 0, 113, 7], 0).into()).unwrap_err();
        assert!(error.hint().unwrap().contains("of this machine"), "{error}");
    }
}
