//! Nothing: this crate exists for its `Cargo.toml`, which says why.
