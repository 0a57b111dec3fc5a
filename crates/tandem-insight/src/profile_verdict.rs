//! The bottleneck of a profile.
//!
//! In: the runs and the time each crew needs per batch. Out: a [`Verdict`], as of any run. A stage is named
//! where it needs clearly more time than the next one; two that need the same are balanced, and
//! none is named. The gain of a fix is the measured difference to a run without the bottleneck.

use crate::measured::Phase;
use crate::profile::{Needs, ProfileRuns, Sharing, Subject};
use tandem_telemetry::rules::ProfileRules;
use tandem_telemetry::verdict::{
    Cause, ModelAlone, SharedPart, StageNeed, TRAIN, Verdict, VerdictFacts,
};

/// Judges the run as it is, by what each crew needs at least.
pub(crate) fn profile_verdict(
    runs: &ProfileRuns,
    needs: &Needs,
    subject: &Subject,
    rules: &ProfileRules,
) -> Verdict {
    let [top, next] = needs.top_two();
    let stall = runs.as_is.stall();
    let alone = runs.model_alone_step();
    let working = runs.as_is.mean(Phase::Train);
    let contention = (1.0 - alone / working.max(1e-12)).max(0.0);
    let step = needs.step;
    // Two stages before the model that take equally long both starve it; balanced is a run
    // whose model takes as long as what feeds it.
    let even = next.1 >= rules.balance * top.1;
    let train = needs.of_phase(Phase::Train);
    let balanced = even && train >= rules.balance * top.1;
    // Limited only by the slowest stage, a step would take `top`.
    let uneven = stall > rules.uneven && top.1 < (1.0 - rules.uneven) * step;
    let feed: Vec<StageNeed> = needs.feed().map(|need| subject.need(need)).collect();
    let slowest = feed.first().cloned();
    let slack = slowest.as_ref().map(|need| (1.0 - need.per_step / step.max(1e-12)).max(0.0));
    let (cause, stage, cost) = match top.0 {
        // A stage that is clearly the slowest explains the waiting, however much its times vary.
        phase if uneven && (balanced || phase == Phase::Train) => {
            let named = slowest.as_ref().map(|need| need.stage.clone());
            (Cause::Variation, named, (1.0 - top.1 / step).clamp(0.0, stall))
        }
        _ if balanced => (Cause::Balanced, None, 0.0),
        Phase::Train => (Cause::Model, Some(TRAIN.into()), 0.0),
        // A fix cannot make a step shorter than the model alone. Of two that are equally slow, both are fixed.
        phase => {
            let left = if even { alone } else { next.1.max(alone) };
            (Cause::Feed, Some(phase.name().into()), (1.0 - left / step).clamp(0.0, 1.0))
        }
    };
    let shared = match subject.sharing {
        Sharing::Cpu => SharedPart::Cpu,
        Sharing::OneGpu => SharedPart::Gpu,
        Sharing::TwoGpus => SharedPart::Host,
    };
    let as_slow = feed.get(1).filter(|_| cause == Cause::Feed && even).cloned();
    let alone = Some(ModelAlone { step: alone, contention, shared });
    let facts = VerdictFacts { step, stall, slowest, as_slow, alone, ranks: None };
    Verdict::new(cause, stage, [Some(cost), slack], facts)
}

impl Subject {
    fn need(&self, (phase, per_step): (Phase, f64)) -> StageNeed {
        let workers = if phase.shares_workers() { self.setting.workers.max(1) as u32 } else { 1 };
        StageNeed { stage: phase.name().into(), workers, per_step }
    }
}
