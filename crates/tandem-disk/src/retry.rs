//! Repeats a read that failed for a reason that may pass, such as a hiccup of a network file system.
//!
//! In: an operation. Out: its result, or the last error with the number of tries. An error that
//! will not pass (no such file, no permission, a directory) is returned at once.

use std::fmt;
use std::io;
use std::time::Duration;

/// How often an operation is tried in all.
pub const TRIES: u32 = 4;
/// The wait before the second try; each later wait is twice as long. 350 ms in all.
pub const FIRST_WAIT: Duration = Duration::from_millis(50);

/// What a user can do about an error that [`retry`] gave up on.
pub const HINT: &str =
    "check the disk or the network file system (`dmesg`), then run the same command again";

/// Runs `operation` until it succeeds, fails for good, or has been tried [`TRIES`] times.
pub fn retry<T>(operation: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    retry_with(std::thread::sleep, operation)
}

/// [`retry`] with another way to wait, for tests.
pub fn retry_with<T>(
    mut sleep: impl FnMut(Duration),
    mut operation: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    let mut wait = FIRST_WAIT;
    for _ in 1..TRIES {
        match operation() {
            Err(error) if is_transient(&error) => sleep(wait),
            result => return result,
        }
        wait *= 2;
    }
    operation().map_err(|error| match is_transient(&error) {
        true => io::Error::new(error.kind(), GaveUp(error)),
        false => error,
    })
}

/// Retries each `read` at the same position; for files that are too long to read whole again.
#[derive(Debug)]
pub struct RetryRead<R>(pub R);

impl<R: io::Read> io::Read for RetryRead<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        retry(|| self.0.read(bytes))
    }
}

/// Whether the same operation may succeed a moment later.
pub fn is_transient(error: &io::Error) -> bool {
    use io::ErrorKind::*;
    // `io::ErrorKind` has no stable name for these two.
    const EIO: i32 = 5;
    const EHOSTDOWN: i32 = if cfg!(target_os = "macos") { 64 } else { 112 };
    matches!(error.raw_os_error(), Some(EIO | EHOSTDOWN))
        || matches!(
            error.kind(),
            Interrupted
                | WouldBlock
                | TimedOut
                | StaleNetworkFileHandle
                | NetworkDown
                | NetworkUnreachable
                | HostUnreachable
                | ConnectionReset
                | ConnectionAborted
                | NotConnected
        )
}

/// Whether [`retry`] gave up on a transient error.
pub fn gave_up(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<GaveUp>())
}

/// The last error, with the number of tries.
#[derive(Debug)]
struct GaveUp(io::Error);

impl fmt::Display for GaveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (tried {TRIES} times)", self.0)
    }
}

impl std::error::Error for GaveUp {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails with the errors in turn, then succeeds; returns the waits in milliseconds too.
    fn run(errors: &[io::ErrorKind]) -> (io::Result<usize>, Vec<u128>) {
        let (mut waits, mut calls) = (Vec::new(), 0);
        let result = retry_with(
            |wait| waits.push(wait.as_millis()),
            || {
                calls += 1;
                errors.get(calls - 1).map_or(Ok(calls), |kind| Err((*kind).into()))
            },
        );
        (result, waits)
    }

    #[test]
    fn two_transient_errors_are_recovered_from() {
        let (result, waits) =
            run(&[io::ErrorKind::StaleNetworkFileHandle, io::ErrorKind::TimedOut]);
        assert_eq!(result.unwrap(), 3);
        assert_eq!(waits, [50, 100]);
    }

    #[test]
    fn the_fourth_transient_error_is_returned_with_the_number_of_tries() {
        let (result, waits) = run(&[io::ErrorKind::TimedOut; 4]);
        let error = result.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.to_string().ends_with("(tried 4 times)"), "{error}");
        assert!(gave_up(&error));
        assert_eq!(waits, [50, 100, 200]);
    }

    #[test]
    fn a_permanent_error_is_returned_at_once() {
        use io::ErrorKind::*;
        for kind in [NotFound, PermissionDenied, IsADirectory, NotADirectory, InvalidInput] {
            let (result, waits) = run(&[kind]);
            let error = result.unwrap_err();
            assert_eq!((error.kind(), gave_up(&error), waits.len()), (kind, false, 0));
        }
        let (result, waits) = run(&[TimedOut, NotFound]);
        assert_eq!((result.unwrap_err().kind(), waits.len()), (NotFound, 1));
    }

    #[test]
    fn the_errors_of_a_network_file_system_are_transient() {
        use rustix::io::Errno;
        for errno in [
            Errno::IO,
            Errno::STALE,
            Errno::AGAIN,
            Errno::INTR,
            Errno::TIMEDOUT,
            Errno::NETUNREACH,
            Errno::HOSTDOWN,
            Errno::HOSTUNREACH,
            Errno::NOTCONN,
        ] {
            assert!(is_transient(&errno.into()), "{errno}");
        }
        for errno in [Errno::NOENT, Errno::ACCESS, Errno::ISDIR, Errno::LOOP, Errno::MFILE] {
            assert!(!is_transient(&errno.into()), "{errno}");
        }
    }
}
