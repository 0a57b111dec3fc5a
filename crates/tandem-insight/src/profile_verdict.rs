//! The bottleneck of a profile, in one sentence.
//!
//! In: the runs and the time each crew needs per batch. Out: [`ProfileVerdict`]. A stage is named
//! where it needs clearly more time than the next one; two that need the same are balanced, and
//! none is named. The gain of a fix is the measured difference to a run without the bottleneck.

use crate::measured::Phase;
use crate::profile::{Needs, ProfileRules, ProfileRuns, Sharing, Subject};
use serde::{Deserialize, Serialize};
use tandem_units::Seconds;

/// The bottleneck of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProfileVerdict {
    pub cause: ProfileCause,
    /// The stage that limits the run; `None` for a balanced run.
    pub stage: Option<Phase>,
    /// Share of the step that would be saved if it were as fast as the next slowest.
    pub cost: f64,
    /// Share by which the data work slows down the model, waiting not counted.
    pub contention: f64,
    pub sentence: String,
    pub(crate) workers: usize,
}

/// Kinds of bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProfileCause {
    /// The model itself.
    Model,
    /// A stage before it.
    Feed,
    /// Two stages take equally long.
    Balanced,
    /// No stage is too slow on average, but times vary too much for the buffer.
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
        // Limited only by the slowest stage, a step would take `top`.
        let uneven = stall > rules.uneven && top.1 < (1.0 - rules.uneven) * step;
        let (cause, stage, cost) = match top.0 {
            // A stage that is clearly the slowest explains the waiting, however much its times vary.
            phase if uneven && (balanced || phase == Phase::Train) => {
                (ProfileCause::Uneven, None, 1.0 - top.1 / step)
            }
            _ if balanced => (ProfileCause::Balanced, None, (1.0 - top.1 / step).max(0.0)),
            Phase::Train => (ProfileCause::Model, Some(Phase::Train), 1.0 - next.1 / step),
            // A fix cannot make a step shorter than the model alone.
            phase => (ProfileCause::Feed, Some(phase), 1.0 - next.1.max(alone) / step),
        };
        let cost = cost.clamp(0.0, 1.0);
        let facts = Facts { top, next, even, stall, alone, step, cost, contention };
        let sentence = facts.sentence(cause, subject);
        let workers = subject.setting.workers.max(1);
        ProfileVerdict { cause, stage, cost, contention, sentence, workers }
    }

    /// Whether the run has a bottleneck that a setting can fix.
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

/// The sentence mentions contention above this share.
const CONTENTION: f64 = 0.10;

impl Facts {
    fn sentence(&self, cause: ProfileCause, subject: &Subject) -> String {
        let (top, next) = (self.top.0.name(), self.next.0.name());
        let step = Seconds(self.step);
        match cause {
            ProfileCause::Model => format!(
                "training is the bottleneck: it works {} of every step of {step} and waits {} for \
                 data; `{next}`, the next slowest, needs {}{}",
                percent(1.0 - self.stall),
                percent(self.stall),
                percent(self.next.1 / self.step),
                self.contention(subject),
            ),
            ProfileCause::Feed if self.even => format!(
                "`{top}` and `{next}` are the bottleneck: they need {} and {} of every step of \
                 {step}, and the model, which takes {} alone, waits {} of the time; a faster \
                 `{top}` saves {}",
                Seconds(self.top.1),
                Seconds(self.next.1),
                Seconds(self.alone),
                percent(self.stall),
                percent(self.cost),
            ),
            ProfileCause::Feed => format!(
                "`{top}` is the bottleneck: it needs {} of every step of {step}, the model waits {} \
                 of the time, and without this bottleneck a step would be {} shorter (the model \
                 alone takes {})",
                Seconds(self.top.1),
                percent(self.stall),
                percent(self.cost),
                Seconds(self.alone),
            ),
            ProfileCause::Balanced => format!(
                "there is no bottleneck: `{top}` ({}) and `{next}` ({}) take equally long, and the \
                 model waits {} of a step of {step}",
                Seconds(self.top.1),
                Seconds(self.next.1),
                percent(self.stall),
            ),
            ProfileCause::Uneven => format!(
                "stage times vary too much for the buffer: no stage needs more than {} of a step of \
                 {step} (`{top}`), yet the model waits {} of the time; a deeper buffer would save \
                 up to {}",
                Seconds(self.top.1),
                percent(self.stall),
                percent(self.cost),
            ),
        }
    }

    fn contention(&self, subject: &Subject) -> String {
        if self.contention < CONTENTION {
            return format!("; alone it takes {}", Seconds(self.alone));
        }
        let place = match subject.sharing {
            Sharing::Cpu => "the same CPU",
            Sharing::OneGpu => "the same GPU",
            Sharing::TwoGpus => "the same host",
        };
        format!(
            "; alone it takes {}, together with the data work on {place} it was {} slower",
            Seconds(self.alone),
            percent(self.contention / (1.0 - self.contention).max(0.01)),
        )
    }
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
