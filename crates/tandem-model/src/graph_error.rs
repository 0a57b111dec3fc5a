//! Why a training step cannot be a CUDA graph. Part of every build, as all errors are; graphs are part of GPU builds only.

use tandem_units::Hint;

/// Why there is no graph, in the words of the driver or the library.
#[derive(Clone, Debug, thiserror::Error)]
#[error("no CUDA graph of a training step: {0}")]
pub struct GraphError(pub String);

impl Hint for GraphError {}
