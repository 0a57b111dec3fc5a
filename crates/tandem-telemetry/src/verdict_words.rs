//! Verdicts in sentences: every verdict of a run or a profile, in each language.
//!
//! In: a [`Verdict`]. Out: one sentence; the English one begins with a small letter and has no full stop, as the
//! report shows it. Nothing is decided here, and no remedy is named: see [`crate::advice`].

use crate::rules::CONTENTION;
use crate::verdict::{Cause, ModelAlone, RankFacts, SharedPart, StageNeed, Verdict, VerdictFacts};
use tandem_units::{Lang, Seconds, percent};

impl Verdict {
    /// The sentence in this language. Names of stages are in backticks.
    pub fn words(&self, lang: Lang) -> String {
        match lang {
            Lang::En => english(self),
            Lang::Fa => persian(self),
        }
    }
}

fn english(verdict: &Verdict) -> String {
    let VerdictFacts { stall, slowest, as_slow, alone, ranks, .. } = &verdict.facts;
    let stage = slowest.as_ref().map_or("?", |need| &*need.stage);
    let (stall, cost) = (percent(*stall), percent(verdict.cost));
    let slack = percent(verdict.slack.unwrap_or(0.0));
    let alone = alone.as_ref().map(alone_in_english).unwrap_or_default();
    match verdict.cause {
        Cause::NoSteps => "no step was finished: there is nothing to judge".into(),
        Cause::Unknown => format!(
            "the model waits {stall} of the time; the record has no stages, so the cause is unknown"
        ),
        Cause::Model if verdict.slack.is_none() => format!(
            "the model is the bottleneck: it waits {stall} of the time; the record has no stages before it, so \
             their slack is unknown"
        ),
        Cause::Model => format!(
            "the model is the bottleneck, as intended: it waits {stall} of the time, and `{stage}`, the slowest \
             stage before it, has {slack} slack{alone}"
        ),
        Cause::Balanced => format!(
            "balanced: there is no bottleneck; the model waits {stall} of the time, and `{stage}` needs nearly as \
             long as a step (slack {slack}){alone}"
        ),
        Cause::Feed => {
            let need = |need: &StageNeed| percent(verdict.share_of_step(need));
            let worst = slowest.as_ref();
            let worst_need = worst.map(need).unwrap_or_default();
            match as_slow {
                Some(other) => format!(
                    "`{stage}` and `{}` are the bottleneck: they need {worst_need} and {} of every step, the model \
                     waits {stall} of the time, and without both the run would be up to {cost} shorter{alone}",
                    other.stage,
                    need(other)
                ),
                None => format!(
                    "`{stage}` is the bottleneck: with {} it needs {worst_need} of every step, the model waits \
                     {stall} of the time, and without this bottleneck the run would be up to {cost} shorter{alone}",
                    workers(worst.map_or(1, |need| need.workers))
                ),
            }
        }
        Cause::Variation => format!(
            "stage times vary too much for the buffer: the model waits {stall} of the time although no stage is \
             too slow on average (the slowest, `{stage}`, has {slack} slack){alone}"
        ),
        Cause::Communication => format!(
            "communication is the bottleneck: summing the gradients of {} ranks takes {cost} of the time",
            ranks.as_ref().map_or(0, |ranks| ranks.ranks)
        ),
        Cause::Rank => {
            let RankFacts { slow, host, per_step, next, waits, stage, .. } =
                &ranks.clone().unwrap_or_default();
            let why = match (waits, stage) {
                (true, Some(need)) => format!(
                    ", most of it waiting for data (its `{}` needs {:.3} s)",
                    need.stage, need.per_step
                ),
                (true, None) => ", most of it waiting for data".to_string(),
                (false, _) => String::new(),
            };
            format!(
                "rank {slow} on host {host} is the bottleneck: it needs {per_step:.3} s per step{why}, the next \
                 slowest rank {next:.3} s; without it the run would be up to {cost} shorter"
            )
        }
    }
}

fn workers(count: u32) -> String {
    if count == 1 { "1 worker".into() } else { format!("{count} workers") }
}

fn alone_in_english(alone: &ModelAlone) -> String {
    let step = Seconds(alone.step);
    if alone.contention < CONTENTION {
        return format!("; alone the model takes {step} a step");
    }
    let place = match alone.shared {
        SharedPart::Cpu => "the same CPU",
        SharedPart::Gpu => "the same GPU",
        SharedPart::Host => "the same host",
    };
    format!(
        "; alone the model takes {step} a step, and together with the data work on {place} it was {} slower",
        percent(alone.slower())
    )
}

fn persian(verdict: &Verdict) -> String {
    let fa = Lang::Fa;
    let VerdictFacts { stall, slowest, as_slow, alone, ranks, .. } = &verdict.facts;
    let stage = slowest.as_ref().map_or("?", |need| &*need.stage);
    let (stall, cost) = (fa.percent(*stall), fa.percent(verdict.cost));
    let slack = fa.percent(verdict.slack.unwrap_or(0.0));
    let alone = alone.as_ref().map(alone_in_persian).unwrap_or_default();
    match verdict.cause {
        Cause::NoSteps => "هنوز هیچ گامی کامل نشده است و چیزی برای قضاوت وجود ندارد.".into(),
        Cause::Unknown => format!(
            "مدل {stall} از زمان را منتظر داده می‌ماند؛ در پروندهٔ اجرا مرحله‌ای ثبت نشده، پس علت معلوم نیست."
        ),
        Cause::Model if verdict.slack.is_none() => format!(
            "گلوگاه اجرا خود مدل است و فقط {stall} از زمان منتظر می‌ماند؛ در پروندهٔ اجرا مرحله‌ای پیش از مدل ثبت نشده، پس ظرفیت خالی آن‌ها معلوم نیست."
        ),
        Cause::Model => format!(
            "گلوگاه اجرا، همان‌طور که باید، خود مدل است: فقط {stall} از زمان منتظر می‌ماند و کندترین مرحلهٔ پیش از آن، `{stage}`، هنوز {slack} ظرفیت خالی دارد.{alone}"
        ),
        Cause::Balanced => format!(
            "خط لوله متعادل است و گلوگاهی ندارد: مدل {stall} از زمان منتظر می‌ماند و مرحلهٔ `{stage}` تقریباً به‌اندازهٔ یک گام زمان می‌برد (ظرفیت خالی: {slack}).{alone}"
        ),
        Cause::Feed => match as_slow {
            Some(other) => format!(
                "گلوگاه اجرا دو مرحلهٔ `{stage}` و `{}` هستند: مدل {stall} از زمان را منتظر می‌ماند و بدون این دو گلوگاه، اجرا تا {cost} کوتاه‌تر می‌شد.{alone}",
                other.stage
            ),
            None => format!(
                "گلوگاه اجرا مرحلهٔ `{stage}` است: مدل {stall} از زمان را منتظر می‌ماند و بدون این گلوگاه، اجرا تا {cost} کوتاه‌تر می‌شد.{alone}"
            ),
        },
        Cause::Variation => format!(
            "زمان مرحله‌ها بیش از ظرفیت بافر نوسان دارد: هیچ مرحله‌ای به‌طور میانگین کند نیست، ولی مدل {stall} از زمان را منتظر می‌ماند. کندترین مرحله `{stage}` است با {slack} ظرفیت خالی.{alone}"
        ),
        Cause::Communication => format!(
            "گلوگاه اجرا ارتباط میان پردازه‌هاست: جمع‌کردن گرادیان‌های {} پردازه {cost} از زمان را می‌گیرد.",
            fa.count(ranks.as_ref().map_or(0, |ranks| ranks.ranks as u64))
        ),
        Cause::Rank => format!(
            "گلوگاه اجرا `{}` است که از همهٔ پردازه‌های دیگر کندتر است؛ بدون آن، اجرا تا {cost} کوتاه‌تر می‌شد.",
            verdict.stage.as_deref().unwrap_or("?")
        ),
    }
}

fn alone_in_persian(alone: &ModelAlone) -> String {
    let step = Lang::Fa.seconds(alone.step);
    if alone.contention < CONTENTION {
        return format!(" مدل به‌تنهایی برای هر گام {step} زمان می‌برد.");
    }
    let place = match alone.shared {
        SharedPart::Cpu => "همان CPU",
        SharedPart::Gpu => "همان پردازندهٔ گرافیکی",
        SharedPart::Host => "همان ماشین",
    };
    let slower = Lang::Fa.percent(alone.slower());
    format!(
        " مدل به‌تنهایی برای هر گام {step} زمان می‌برد و در کنار کار داده روی {place}، {slower} کندتر بود."
    )
}

impl Verdict {
    /// What a stage needs of every step, at most all of it: more is the noise of the edges of a run.
    pub fn share_of_step(&self, need: &StageNeed) -> f64 {
        (need.per_step / self.facts.step.max(f64::MIN_POSITIVE)).min(1.0)
    }
}

impl ModelAlone {
    /// By which share the model was slower beside the data work than alone.
    fn slower(&self) -> f64 {
        self.contention / (1.0 - self.contention).max(0.01)
    }
}
