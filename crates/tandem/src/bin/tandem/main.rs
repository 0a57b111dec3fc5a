//! The program `tandem`: everything but the allocator is in the library of the same name.

mod allocator; // the global allocator and its settings

use std::process::ExitCode;

fn main() -> ExitCode {
    allocator::keep_freed_memory();
    tandem::main()
}
