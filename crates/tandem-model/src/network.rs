//! The modules of the voice, from the smallest to the whole. Start reading at [`voice`].

pub mod size; // widths and depths of tiny, small, normal, big
pub mod ops; // fused CPU kernels with their own backward
pub mod layers; // linear, embedding, norm
pub mod block; // attention and feed-forward, modulated by a condition
pub mod text_encoder; // symbols to mean mel frames
pub mod reference_encoder; // reference audio to a speaker embedding
pub mod duration; // frames per symbol
pub mod decoder; // flow matching from mean frames to real ones
pub mod voice; // the whole network, and its losses
