//! Detects memory growth over a baseline, and which owner causes it.
//!
//! In: the memory in use at the baseline and now. Out: [`Growth`], once for every multiple of the
//! limit that is exceeded, with the owner that grew most. Has no clock: the caller decides when to
//! check.

use super::{DeviceMemory, MemoryFigures, OwnerShare, Side};
use std::fmt;
use tandem_units::Bytes;

/// Growth on the data device that is worth a warning.
pub const DATA_GROWTH: Bytes = Bytes::mib(200);
/// Growth on the model device that is worth a warning.
pub const MODEL_GROWTH: Bytes = Bytes::mib(500);

/// Watches one device.
#[derive(Clone, Debug)]
pub struct GrowthWatch {
    side: Side,
    limit: Bytes,
    baseline: Usage,
    /// Multiples of the limit that were already reported.
    reported: u64,
}

/// Memory in use on a device: in total, and by owner.
#[derive(Clone, Debug)]
struct Usage {
    total: Bytes,
    owners: Vec<OwnerShare>,
}

/// Memory has grown. Displays as a sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Growth {
    pub side: Side,
    /// Over the baseline.
    pub by: Bytes,
    /// In use now.
    pub now: Bytes,
    /// The owner that grew most, and by how much; `None` if no owner explains the growth.
    pub owner: Option<OwnerShare>,
    /// The budget, if it is exceeded.
    pub past_budget: Option<Bytes>,
}

impl GrowthWatch {
    /// Takes the baseline. Call it after the first steps, when every batch shape was seen.
    pub fn start(memory: &DeviceMemory, figures: Option<MemoryFigures>) -> GrowthWatch {
        let limit = match memory.side() {
            Side::Data => DATA_GROWTH,
            Side::Model => MODEL_GROWTH,
        };
        let baseline = Usage::of(memory, figures);
        GrowthWatch { side: memory.side(), limit, baseline, reported: 0 }
    }

    /// Returns growth once for each further multiple of the limit that is exceeded.
    pub fn check(
        &mut self,
        memory: &DeviceMemory,
        figures: Option<MemoryFigures>,
    ) -> Option<Growth> {
        let now = Usage::of(memory, figures);
        let by = Bytes(now.total.0.saturating_sub(self.baseline.total.0));
        let passed = by.0 / self.limit.0;
        // Growth after a shrink is reported again.
        self.reported = self.reported.min(passed);
        if passed <= self.reported {
            return None;
        }
        self.reported = passed;
        let owner = now.owners.iter().map(|share| self.grown(share)).max_by_key(|s| s.in_use);
        let owner = owner.filter(|share| share.in_use.0 * 2 >= by.0);
        let past_budget = memory.budget().filter(|budget| now.total > *budget);
        Some(Growth { side: self.side, by, now: now.total, owner, past_budget })
    }

    fn grown(&self, now: &OwnerShare) -> OwnerShare {
        let before = self.baseline.owners.iter().find(|share| share.owner == now.owner);
        let before = before.map_or(0, |share| share.in_use.0);
        OwnerShare { owner: now.owner.clone(), in_use: Bytes(now.in_use.0.saturating_sub(before)) }
    }
}

impl Usage {
    /// The allocator's figure includes memory outside of the accounting, so it is preferred.
    fn of(memory: &DeviceMemory, figures: Option<MemoryFigures>) -> Usage {
        let total = figures.map_or(memory.in_use(), |figures| figures.in_use);
        Usage { total, owners: memory.owners() }
    }
}

impl Growth {
    /// The warning code in the run record.
    pub const CODE: &'static str = "memory_growth";
}

impl fmt::Display for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (side, by, now) = (self.side.name(), self.by, self.now);
        write!(f, "{now} are in use on the {side} device, {by} more than at the start: ")?;
        match &self.owner {
            Some(share) => write!(f, "{} grew by {}", share.owner, share.in_use)?,
            None => {
                f.write_str("not the pipeline's batches, so tensors that the model keeps alive")?
            }
        }
        match self.past_budget {
            Some(budget) => write!(f, "; that exceeds its budget of {budget}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(mib: u64) -> Option<MemoryFigures> {
        Some(MemoryFigures { in_use: Bytes::mib(mib), reserved: Bytes::mib(mib) })
    }

    #[test]
    fn growth_names_its_owner_and_is_reported_once() {
        let memory = DeviceMemory::new(Side::Data, None);
        let _base = memory.charge("batches", Bytes::mib(50)).unwrap();
        let mut watch = GrowthWatch::start(&memory, None);
        let _more = memory.charge("batches", Bytes::mib(199)).unwrap();
        assert_eq!(watch.check(&memory, None), None, "under 200 MB");
        let _past = memory.charge("batches", Bytes::mib(2)).unwrap();
        let growth = watch.check(&memory, None).expect("over 200 MB");
        let text = "251.0 MiB are in use on the data device, 201.0 MiB more than at the start: \
                    batches grew by 201.0 MiB";
        assert_eq!(growth.to_string(), text);
        assert_eq!(watch.check(&memory, None), None, "already reported");
    }

    #[test]
    fn the_limit_of_the_model_is_500_and_is_reported_again_at_1000() {
        let memory = DeviceMemory::new(Side::Model, Some(Bytes::mib(1500)));
        let mut watch = GrowthWatch::start(&memory, figures(1000));
        assert_eq!(watch.check(&memory, figures(1499)), None);
        let growth = watch.check(&memory, figures(1501)).expect("500 more");
        assert_eq!(growth.owner, None);
        assert_eq!(growth.past_budget, Some(Bytes::mib(1500)));
        assert!(growth.to_string().ends_with("exceeds its budget of 1.5 GiB"), "{growth}");
        assert_eq!(watch.check(&memory, figures(1900)), None);
        assert!(watch.check(&memory, figures(2000)).is_some(), "1000 more");
        assert_eq!(watch.check(&memory, figures(1000)), None);
        assert!(watch.check(&memory, figures(1600)).is_some(), "reported again");
    }
}
