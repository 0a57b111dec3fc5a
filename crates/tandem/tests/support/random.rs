//! Random choices that a printed seed repeats.

/// A linear congruential generator; good enough to choose cases.
pub struct SmallRng {
    state: u64,
}

impl SmallRng {
    pub fn new(seed: u64) -> SmallRng {
        SmallRng { state: seed }
    }

    /// A number below `bound`, which is at least 1.
    pub fn below(&mut self, bound: usize) -> usize {
        let (factor, step) = (6_364_136_223_846_793_005, 1_442_695_040_888_963_407);
        self.state = self.state.wrapping_mul(factor).wrapping_add(step);
        (self.state >> 33) as usize % bound
    }
}
