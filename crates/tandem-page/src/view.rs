//! The data of a page: the summary of a run, and the history of everything that is drawn.
//!
//! In: events, one by one, from a finished record or one that is still written. Out: [`RunView`], of
//! a size that does not grow with the length of the run: long series are thinned. A resumed run
//! continues in the same view ([`RunView::next_part`]). Next: [`mod@crate::run_page`].

pub mod series; // a curve that never grows too long
pub mod tracks; // stages, slots and devices over time

use series::{Series, Thinned};
use std::path::Path;
use tandem_telemetry::event::{Event, Name, Stamped, Step};
use tandem_telemetry::reader::visit;
use tandem_telemetry::run_parts::{main_part, parts};
use tandem_telemetry::{ReadNotes, Report, Rules, Summary, TelemetryError};
use tracks::{DeviceTrack, SlotTracks, StageTrack};

/// The data of a run's page.
#[derive(Clone, Debug, Default)]
pub struct RunView {
    /// Summary of the newest part.
    pub summary: Summary,
    /// What the reader ignored, where a file was read.
    pub notes: Option<ReadNotes>,
    /// Losses and other numbers of steps, by name, in the order they first came.
    pub losses: Vec<(Name, Series)>,
    /// Values on held-out rows, by name.
    pub held_out: Vec<(String, Series)>,
    /// Seconds of steps, without the first of each part.
    pub step_times: Thinned,
    /// Steps a second over time.
    pub pace: Series,
    /// Stages in path order.
    pub stages: Vec<StageTrack>,
    pub slots: SlotTracks,
    /// Devices, in the order of their first sample.
    pub devices: Vec<DeviceTrack>,
    /// Number of earlier parts.
    pub earlier_parts: u64,
}

impl RunView {
    /// Reads a whole record; `path` is the file or the run's directory. Of a directory, curves cover all parts up to the
    /// main part.
    pub fn read(path: &Path) -> Result<RunView, TelemetryError> {
        let mut view = RunView::default();
        let main = main_part(path)?;
        if path.is_dir() {
            let unreadable = |source| TelemetryError::Read { path: path.to_path_buf(), source };
            let parts = parts(path).map_err(unreadable)?;
            for part in parts.iter().take_while(|part| part.path != main) {
                visit(&part.path, |stamped| view.add(&stamped))?;
                view.next_part();
            }
        }
        let (_, notes) = visit(&main, |stamped| view.add(&stamped))?;
        view.notes = Some(notes);
        if path.is_dir() {
            view.summary.read_ranks(path);
        }
        Ok(view)
    }

    /// The report of the view.
    pub fn report(&self) -> Report {
        Report::from_summary(&self.summary, self.notes.clone(), &Rules::default())
    }

    /// Adds one event.
    pub fn add(&mut self, stamped: &Stamped) {
        let first_step = self.summary.steps.first.is_none();
        self.summary.add(stamped);
        let at = stamped.at.seconds().0;
        match &stamped.event {
            Event::Step(step) => self.add_step(step, at, first_step),
            Event::Validation(validation) => {
                for (name, value) in &validation.values {
                    let new = || (name.clone(), Series::default());
                    let (_, series) = entry(&mut self.held_out, |(found, _)| found == name, new);
                    series.add(validation.step as f64, *value);
                }
            }
            Event::Stage(interval) => {
                let new = || StageTrack::new(interval.stage.clone());
                entry(&mut self.stages, |track| track.stage == interval.stage, new)
                    .add(at, interval);
            }
            Event::Slot(change) => self.slots.add(at, change),
            Event::Device(sample) => {
                let is_it = |track: &DeviceTrack| {
                    track.role == sample.role && track.device == sample.device
                };
                let new = || DeviceTrack::new(sample.device.clone(), sample.role);
                entry(&mut self.devices, is_it, new).add(at, sample);
            }
            _ => {}
        }
        self.slots.advance(at);
    }

    fn add_step(&mut self, step: &Step, at: f64, first: bool) {
        let took = step.took.seconds().0;
        if first {
            // A resumed part repeats the steps after its checkpoint: the newest values count.
            let from = step.step as f64;
            self.losses.iter_mut().for_each(|(_, series)| series.cut_from(from));
            self.held_out.iter_mut().for_each(|(_, series)| series.cut_from(from));
        } else {
            self.step_times.add(took as f32);
        }
        if took > 0.0 {
            self.pace.add(at, 1.0 / took);
        }
        for loss in &step.losses {
            let Some(value) = loss.value.value() else { continue };
            let new = || (loss.name.clone(), Series::default());
            let (_, series) = entry(&mut self.losses, |(name, _)| *name == loss.name, new);
            series.add(step.step as f64, f64::from(value));
        }
    }

    /// The run continues in another record: curves over steps stay, everything over time restarts.
    pub fn next_part(&mut self) {
        let held_out = std::mem::take(&mut self.held_out);
        let losses = std::mem::take(&mut self.losses);
        let earlier_parts = self.earlier_parts + 1;
        *self = RunView { losses, held_out, earlier_parts, ..RunView::default() };
    }
}

/// The matching element, added at the end where there is none: lists stay in the order of first use.
fn entry<T>(list: &mut Vec<T>, is_it: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> &mut T {
    let place = list.iter().position(is_it).unwrap_or_else(|| {
        list.push(new());
        list.len() - 1
    });
    &mut list[place]
}

#[cfg(test)]
mod tests;
