//! Plots: what is drawn, where its axes are labelled, and drawings of it as SVG and PNG.
//!
//! In: numbers with names. Out: data that a page draws in its own style, or a file. A PNG is the SVG, drawn with a font of its own,
//! so that Latin and Persian letters are there on every system. Writes no file.

pub mod plot; // 1. data of plots
pub mod axis; // 2. round labels
pub mod chart; // 3. points with ranges, as SVG and PNG
pub mod heat_map; // 3. rows over time as colours, as PNG
pub mod picture; // 4. SVG to PNG

pub use picture::{Picture, PictureError};
