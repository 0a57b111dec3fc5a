//! Whether other programs used the machine during a run.
//!
//! In: how busy the machine and the process were. Out: [`Crowd`], where the machine was full and the run had
//! only a part of it. Step times, waits and gains are then those of a shared machine, and this is said first.

use crate::event::DeviceRole;
use crate::rules::{FULL_MACHINE, WHOLE_MACHINE};
use crate::summary::Summary;
use serde::{Deserialize, Serialize};
use tandem_units::Lang;

/// How full the machine was, and how much of it the run had.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Crowd {
    /// Share of all CPU cores in use.
    pub machine: f64,
    /// Share of the cores it may use that the run itself used.
    pub run: f64,
}

impl Crowd {
    /// From the mean shares of all CPU cores that the run and everything together used.
    pub fn of_shares(run: f64, machine: f64) -> Option<Crowd> {
        (machine >= FULL_MACHINE && run <= WHOLE_MACHINE).then_some(Crowd { machine, run })
    }

    pub fn of(summary: &Summary) -> Option<Crowd> {
        let busy = |name: &str| {
            let device = summary.devices.get(&(DeviceRole::Host, name.into()))?;
            device.utilisation.figures().map(|share| share.mean)
        };
        Crowd::of_shares(busy("process")?, busy("machine")?)
    }

    /// The fact in a sentence without a full stop.
    pub fn words(&self, lang: Lang) -> String {
        let whole = |share: f64| lang.number(100.0 * share, 0);
        let (machine, run) = (whole(self.machine), whole(self.run));
        match lang {
            Lang::En => format!(
                "the machine was {machine} % busy and this run had {run} % of the CPU cores it may use: other \
                 programs used the rest, and made steps slower and less even"
            ),
            Lang::Fa => format!(
                "ماشین {machine}٪ مشغول بود و این اجرا فقط {run}٪ از هسته‌های CPU خود را داشت: برنامه‌های دیگر از بقیه استفاده می‌کردند و گام‌ها را کندتر و نامنظم‌تر کردند"
            ),
        }
    }
}
