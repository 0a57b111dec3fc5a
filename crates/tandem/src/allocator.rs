//! Where the program's memory comes from, and that it stays.
//!
//! Every step of training takes and gives back the same blocks. The system's allocator returns large ones at once and
//! takes them again for the next step, page fault by page fault; mimalloc does so after a second. Told never to, a step
//! of the small voice has no page faults instead of 23,000 and takes a quarter less time on two cores.

use std::ffi::c_long;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of mimalloc 3, which the bindings have no name for.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;
const NEVER: c_long = -1;

/// Keeps freed memory for the next step. `MIMALLOC_PURGE_DELAY` in the environment goes before.
pub fn keep_memory() {
    // SAFETY: sets a number in a table that mimalloc checks the index of; no other thread runs yet.
    unsafe { libmimalloc_sys::mi_option_set_default(PURGE_DELAY, NEVER) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_is_the_one_that_is_meant() {
        // SAFETY: reads a number from a table that mimalloc checks the index of.
        let delay = || unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
        assert_eq!(delay(), 1000, "its default in milliseconds: another option has another");
        keep_memory();
        assert_eq!(delay(), NEVER);
    }
}
