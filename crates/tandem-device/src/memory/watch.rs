//! Looks whether memory grows past its baseline, and who it is.
//!
//! In: what is held at the baseline and now. Out: [`Growth`], once for every further limit that
//! is passed, with the owner that grew most. Keeps no clock: the caller decides when to look.

use super::{DeviceLedger, MemoryFigures, OwnerShare, Side};
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
    baseline: Holding,
    /// Growth up to here has been reported.
    reported: u64,
}

/// What a device holds: in all, and by owner.
#[derive(Clone, Debug)]
struct Holding {
    total: Bytes,
    owners: Vec<OwnerShare>,
}

/// Memory has grown. Prints as the sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Growth {
    /// On which device.
    pub side: Side,
    /// Above the baseline.
    pub by: Bytes,
    /// Held now.
    pub now: Bytes,
    /// Who grew most, and by how much; none where it is nobody of ours.
    pub owner: Option<OwnerShare>,
    /// The budget, where it is passed.
    pub past_budget: Option<Bytes>,
}

impl GrowthWatch {
    /// Takes the baseline: call it when the first steps are done and every shape was met.
    pub fn start(ledger: &DeviceLedger, figures: Option<MemoryFigures>) -> GrowthWatch {
        let limit = match ledger.side() {
            Side::Data => DATA_GROWTH,
            Side::Model => MODEL_GROWTH,
        };
        let baseline = Holding::of(ledger, figures);
        GrowthWatch { side: ledger.side(), limit, baseline, reported: 0 }
    }

    /// The same with a limit of one's own.
    pub fn with_limit(self, limit: Bytes) -> GrowthWatch {
        GrowthWatch { limit: Bytes(limit.0.max(1)), ..self }
    }

    /// Looks again; speaks once for each further time that the limit is passed.
    pub fn look(
        &mut self,
        ledger: &DeviceLedger,
        figures: Option<MemoryFigures>,
    ) -> Option<Growth> {
        let now = Holding::of(ledger, figures);
        let by = Bytes(now.total.0.saturating_sub(self.baseline.total.0));
        let passed = by.0 / self.limit.0;
        // What shrank and grows again is news again.
        self.reported = self.reported.min(passed);
        if passed <= self.reported {
            return None;
        }
        self.reported = passed;
        let owner = now.owners.iter().map(|share| self.grown(share)).max_by_key(|s| s.held);
        let owner = owner.filter(|share| share.held.0 * 2 >= by.0);
        let past_budget = ledger.budget().filter(|budget| now.total > *budget);
        Some(Growth { side: self.side, by, now: now.total, owner, past_budget })
    }

    fn grown(&self, now: &OwnerShare) -> OwnerShare {
        let before = self.baseline.owners.iter().find(|share| share.owner == now.owner);
        let before = before.map_or(0, |share| share.held.0);
        OwnerShare { owner: now.owner.clone(), held: Bytes(now.held.0.saturating_sub(before)) }
    }
}

impl Holding {
    /// The allocator knows more than the ledger, where it speaks.
    fn of(ledger: &DeviceLedger, figures: Option<MemoryFigures>) -> Holding {
        let total = figures.map_or(ledger.held(), |figures| figures.in_use);
        Holding { total, owners: ledger.owners() }
    }
}

impl Growth {
    /// Short and stable, for the run record.
    pub const CODE: &'static str = "memory_growth";
}

impl fmt::Display for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (side, by, now) = (self.side.name(), self.by, self.now);
        write!(f, "the {side} device holds {now}, {by} more than at the start: ")?;
        match &self.owner {
            Some(share) => write!(f, "{} grew by {}", share.owner, share.held)?,
            None => f.write_str("none of the pipeline's own, so tensors that the model keeps")?,
        }
        match self.past_budget {
            Some(budget) => write!(f, "; that is past its budget of {budget}"),
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
    fn growth_names_its_owner_and_is_said_once() {
        let ledger = DeviceLedger::new(Side::Data, None);
        let _base = ledger.charge("batches", Bytes::mib(50)).unwrap();
        let mut watch = GrowthWatch::start(&ledger, None);
        let _more = ledger.charge("batches", Bytes::mib(199)).unwrap();
        assert_eq!(watch.look(&ledger, None), None, "under 200 MB");
        let _past = ledger.charge("batches", Bytes::mib(2)).unwrap();
        let growth = watch.look(&ledger, None).expect("over 200 MB");
        let text = "the data device holds 251.0 MiB, 201.0 MiB more than at the start: batches \
                    grew by 201.0 MiB";
        assert_eq!(growth.to_string(), text);
        assert_eq!(watch.look(&ledger, None), None, "said already");
    }

    #[test]
    fn the_models_limit_is_500_and_comes_again_at_1000() {
        let ledger = DeviceLedger::new(Side::Model, Some(Bytes::mib(1500)));
        let mut watch = GrowthWatch::start(&ledger, figures(1000));
        assert_eq!(watch.look(&ledger, figures(1499)), None);
        let growth = watch.look(&ledger, figures(1501)).expect("500 more");
        assert_eq!(growth.owner, None);
        assert_eq!(growth.past_budget, Some(Bytes::mib(1500)));
        assert!(growth.to_string().ends_with("past its budget of 1.5 GiB"), "{growth}");
        assert_eq!(watch.look(&ledger, figures(1900)), None);
        assert!(watch.look(&ledger, figures(2000)).is_some(), "1000 more");
        assert_eq!(watch.look(&ledger, figures(1000)), None);
        assert!(watch.look(&ledger, figures(1600)).is_some(), "news again");
    }
}
