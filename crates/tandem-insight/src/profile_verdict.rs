//! What holds a run back, in one sentence, by what its runs measured.
//!
//! In: the runs and what each crew needs per batch. Out: [`ProfileVerdict`]. A stage is named
//! where it needs clearly more time than the next one; two that need the same are balanced, and
//! none is named. What a cure would bring is the difference to a run that had it.

use crate::measured::Phase;
use crate::profile::{Needs, ProfileRules, ProfileRuns, Sharing, Subject};
use serde::{Deserialize, Serialize};
use tandem_units::Seconds;

/// What holds a run back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProfileVerdict {
    /// In one word.
    pub cause: ProfileCause,
    /// The stage that sets the pace; none of a balanced run.
    pub stage: Option<Phase>,
    /// Share of the step that would be saved were it as fast as the next slowest.
    pub cost: f64,
    /// Share by which the model is slower beside the data work than alone, waiting not counted.
    pub contention: f64,
    /// In one sentence.
    pub sentence: String,
    /// Workers that load.
    pub(crate) workers: usize,
}

/// What holds a run back, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProfileCause {
    /// The model itself.
    Model,
    /// A stage before it.
    Feed,
    /// Two stages take equally long.
    Balanced,
    /// No stage is too slow in the mean, but times vary too much for the buffer.
    Uneven,
}

impl ProfileVerdict {
    pub(crate) fn of(
        runs: &ProfileRuns,
        needs: &Needs,
        subject: &Subject,
        rules: &ProfileRules,
    ) -> ProfileVerdict {
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
        // With the pace of the slowest stage and no more, a step would take `top`.
        let uneven = stall > rules.uneven && top.1 < (1.0 - rules.uneven) * step;
        let (cause, stage, cost) = match top.0 {
            // A stage that is clearly the slowest explains the waiting, however uneven it is.
            phase if uneven && (balanced || phase == Phase::Train) => {
                (ProfileCause::Uneven, None, 1.0 - top.1 / step)
            }
            _ if balanced => (ProfileCause::Balanced, None, (1.0 - top.1 / step).max(0.0)),
            Phase::Train => (ProfileCause::Model, Some(Phase::Train), 1.0 - next.1 / step),
            // The cure cannot make a step shorter than the model alone.
            phase => (ProfileCause::Feed, Some(phase), 1.0 - next.1.max(alone) / step),
        };
        let cost = cost.clamp(0.0, 1.0);
        let facts = Facts { top, next, even, stall, alone, step, cost, contention };
        let sentence = facts.sentence(cause, subject);
        let workers = subject.setting.workers.max(1);
        ProfileVerdict { cause, stage, cost, contention, sentence, workers }
    }

    /// Whether something can be changed about it.
    pub fn is_held_back(&self) -> bool {
        matches!(self.cause, ProfileCause::Feed | ProfileCause::Uneven)
    }
}

struct Facts {
    top: (Phase, f64),
    next: (Phase, f64),
    even: bool,
    stall: f64,
    alone: f64,
    step: f64,
    cost: f64,
    contention: f64,
}

/// Slower than alone by this much is worth a word.
const CONTENTION: f64 = 0.10;

impl Facts {
    fn sentence(&self, cause: ProfileCause, subject: &Subject) -> String {
        let (top, next) = (self.top.0.name(), self.next.0.name());
        let step = Seconds(self.step);
        match cause {
            ProfileCause::Model => format!(
                "training itself sets the pace: it works {} of every step of {step} and waits {} \
                 for data; `{next}`, the next slowest, needs {}{}",
                percent(1.0 - self.stall),
                percent(self.stall),
                percent(self.next.1 / self.step),
                self.beside(subject),
            ),
            ProfileCause::Feed if self.even => format!(
                "`{top}` and `{next}` hold the run back: they need {} and {} of every step of \
                 {step}, and the model, which takes {} alone, waits {} of the time; curing one of \
                 them saves {}",
                Seconds(self.top.1),
                Seconds(self.next.1),
                Seconds(self.alone),
                percent(self.stall),
                percent(self.cost),
            ),
            ProfileCause::Feed => format!(
                "`{top}` holds the run back: it needs {} of every step of {step}, the model waits \
                 {} of the time, and without it a step would be {} shorter (the model alone takes \
                 {})",
                Seconds(self.top.1),
                percent(self.stall),
                percent(self.cost),
                Seconds(self.alone),
            ),
            ProfileCause::Balanced => format!(
                "nothing holds the run back: `{top}` ({}) and `{next}` ({}) take equally long, and \
                 the model waits {} of a step of {step}",
                Seconds(self.top.1),
                Seconds(self.next.1),
                percent(self.stall),
            ),
            ProfileCause::Uneven => format!(
                "uneven times hold the run back: no stage needs more than {} of a step of {step} \
                 (`{top}`), yet the model waits {} of the time; a deeper buffer would save up to {}",
                Seconds(self.top.1),
                percent(self.stall),
                percent(self.cost),
            ),
        }
    }

    fn beside(&self, subject: &Subject) -> String {
        if self.contention < CONTENTION {
            return format!("; alone it takes {}", Seconds(self.alone));
        }
        let place = match subject.sharing {
            Sharing::Cpu => "the same processor",
            Sharing::OneGpu => "the same GPU",
            Sharing::TwoGpus => "the same host",
        };
        format!(
            "; alone it takes {}, beside the data work on {place} it was {} slower",
            Seconds(self.alone),
            percent(self.contention / (1.0 - self.contention).max(0.01)),
        )
    }
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
