//! The text output of `tandem train`, redirected to a file.
//!
//! In: the lines that a run printed: its banner, a line every hundred steps, its report, and the line that names
//! its record. Out: [`LoggedRun`]: the figures of these lines, rounded as they were printed. Of several runs in one file
//! it is the last one. Lines of other programs are ignored. Opens no record: [`crate::run_source`] does.

use std::path::{Path, PathBuf};
use tandem_telemetry::Rules;
use tandem_telemetry::event::DeviceRole;

/// What a run printed about itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoggedRun {
    /// The file, as it was named.
    pub path: PathBuf,
    /// The record, as the run named it.
    pub record: Option<PathBuf>,
    /// Utterances of a batch.
    pub batch_size: Option<u32>,
    pub steps: u64,
    /// Mean seconds of a step.
    pub mean: f64,
    /// Standard deviation of a step, in seconds.
    pub std: f64,
    /// Mean seconds of a step in each hundred steps.
    pub windows: Vec<f64>,
    pub samples_per_second: f64,
    /// Real mel frames per second; of finished runs only.
    pub frames_per_second: Option<f64>,
    /// Variation of the step time beyond the shapes of the batches.
    pub by_shape: Option<f64>,
    pub devices: Vec<LoggedDevice>,
    /// Seconds from start to end; of finished runs only.
    pub lasted: Option<f64>,
}

/// A row of the report's table of devices.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedDevice {
    pub device: String,
    pub role: DeviceRole,
    /// Mean share of time it was busy.
    pub busy: Option<f64>,
    /// The most memory in use, in bytes.
    pub peak_memory: Option<f64>,
}

impl LoggedRun {
    /// Reads the output of a run; `None` where no line is one of `tandem train`.
    pub fn parse(text: &str, path: &Path) -> Option<LoggedRun> {
        let mut found = Lines::default();
        let mut known = false;
        for line in text.lines() {
            known |= found.add(line);
        }
        known.then(|| found.finish(path))
    }
}

#[derive(Default)]
struct Lines {
    record: Option<PathBuf>,
    batch_size: Option<u32>,
    windows: Vec<PrintedSteps>,
    whole: Option<PrintedSteps>,
    /// Without the first step, which is printed where it was much slower.
    steady: Option<PrintedSteps>,
    steps: Option<u64>,
    lasted: Option<f64>,
    rates: Option<(f64, Option<f64>)>,
    by_shape: Option<f64>,
    devices: Vec<LoggedDevice>,
    in_devices: bool,
}

#[derive(Clone, Copy, Default)]
struct PrintedSteps {
    mean: f64,
    std: f64,
    samples_per_second: f64,
    by_shape: Option<f64>,
}

impl Lines {
    /// Whether the line is one of ours.
    fn add(&mut self, line: &str) -> bool {
        if line.starts_with("voice: ") && line.contains(" parameters; batch ") {
            // A second run in the same file.
            let batch_size = line.split("; ").find_map(|part| part.strip_prefix("batch "));
            *self = Lines::default();
            self.batch_size = batch_size.and_then(|size| size.parse().ok());
            return true;
        }
        if let Some(path) = line.strip_prefix("record: ") {
            self.record = Some(PathBuf::from(path.trim()));
            return true;
        }
        let reported = self.report_line(line);
        reported.or_else(|| self.periodic_line(line)).is_some()
    }

    /// `step 100: mean 20.00 ms, std 1.00 ms, ...`
    fn periodic_line(&mut self, line: &str) -> Option<()> {
        let (number, rest) = line.strip_prefix("step ")?.split_once(": mean ")?;
        number.parse::<u64>().ok()?;
        let mut parts = rest.split(", ");
        let mean = seconds(parts.next()?)?;
        let std = seconds(parts.next()?.strip_prefix("std ")?)?;
        let rate = rest.split(", ").find_map(|part| part.strip_suffix(" samples/s"));
        let samples_per_second = rate?.parse().ok()?;
        let by_shape = by_shape(rest);
        self.windows.push(PrintedSteps { mean, std, samples_per_second, by_shape });
        Some(())
    }

    /// A line of the report at the end.
    fn report_line(&mut self, line: &str) -> Option<()> {
        if let Some(rest) = line.strip_prefix("run       tandem ") {
            let (_, rest) = rest.split_once(", ")?;
            let (steps, rest) = rest.split_once(" in ")?;
            self.steps = steps.split(' ').next()?.parse().ok();
            self.lasted = seconds(rest.split(',').next()?);
        } else if let Some(rest) = line.strip_prefix("batch     ") {
            self.batch_size = rest.split(' ').next()?.parse().ok().or(self.batch_size);
        } else if let Some(rest) = line.strip_prefix("steps     mean ") {
            self.whole = Some(times(rest)?);
        } else if let Some(rest) = line.strip_prefix("  after the first (") {
            self.steady = Some(times(rest.split_once("): mean ")?.1)?);
        } else if let Some((_, rest)) = line.split_once(" steps/s, ")
            && line.starts_with("  ")
        {
            let (samples, rest) = rest.split_once(" samples/s, ")?;
            let frames = rest.split_once(" frames/s")?.0;
            self.rates = Some((samples.parse().ok()?, frames.parse().ok()));
        } else if line.starts_with("  variation ") {
            self.by_shape = by_shape(line.trim_start());
        } else if line.starts_with("device  ") {
            self.in_devices = true;
        } else if self.in_devices && line.starts_with("  ") {
            self.devices.extend(device(line));
        } else {
            self.in_devices = false;
            return None;
        }
        Some(())
    }

    fn finish(self, path: &Path) -> LoggedRun {
        let every = Rules::default().every;
        let pooled = pooled(&self.windows);
        let (steps, times) = match (self.steady.or(self.whole), self.steps) {
            (Some(times), Some(steps)) => {
                (steps - u64::from(self.steady.is_some()).min(steps), times)
            }
            _ => (every * self.windows.len() as u64, pooled),
        };
        let (samples_per_second, frames_per_second) =
            self.rates.unwrap_or((pooled.samples_per_second, None));
        LoggedRun {
            path: path.to_path_buf(),
            record: self.record,
            batch_size: self.batch_size,
            steps,
            mean: times.mean,
            std: times.std,
            windows: self.windows.iter().map(|window| window.mean).collect(),
            samples_per_second,
            frames_per_second,
            by_shape: self.by_shape.or(pooled.by_shape),
            devices: self.devices,
            lasted: self.lasted,
        }
    }
}

/// All windows as one: they have the same number of steps.
fn pooled(windows: &[PrintedSteps]) -> PrintedSteps {
    let count = windows.len().max(1) as f64;
    let mean_of = |value: fn(&PrintedSteps) -> f64| windows.iter().map(value).sum::<f64>() / count;
    let mean = mean_of(|window| window.mean);
    let squares = mean_of(|window| window.std.powi(2) + window.mean.powi(2));
    // Utterances over time: windows with slow steps took more of it.
    let took = windows.iter().map(|window| window.mean).sum::<f64>();
    let items = windows.iter().map(|window| window.samples_per_second * window.mean).sum::<f64>();
    let shapes: Vec<f64> = windows.iter().filter_map(|window| window.by_shape).collect();
    PrintedSteps {
        mean,
        std: (squares - mean.powi(2)).max(0.0).sqrt(),
        samples_per_second: if took > 0.0 { items / took } else { 0.0 },
        by_shape: (!shapes.is_empty()).then(|| shapes.iter().sum::<f64>() / shapes.len() as f64),
    }
}

/// `20.00 ms, std 1.00 ms, min ...`
fn times(text: &str) -> Option<PrintedSteps> {
    let mut parts = text.split(", ");
    let mean = seconds(parts.next()?)?;
    let std = seconds(parts.next()?.strip_prefix("std ")?)?;
    Some(PrintedSteps { mean, std, ..PrintedSteps::default() })
}

/// `... variation 3.1 % by shape ...`
fn by_shape(text: &str) -> Option<f64> {
    let (_, rest) = text.split_once("variation ")?;
    percent(rest.split_once(" by shape")?.0)
}

/// `  cuda:0    model    87.1 %, 3.0 %    2.1 GiB, 10.0 MiB; 2.2 GiB of 24.0 GiB`
fn device(line: &str) -> Option<LoggedDevice> {
    const ROLES: [DeviceRole; 3] = [DeviceRole::Data, DeviceRole::Model, DeviceRole::Host];
    let (role, device, rest) = ROLES.into_iter().find_map(|role| {
        let (device, rest) = line.split_once(&format!(" {} ", role.name()))?;
        Some((role, device.trim(), rest.trim()))
    })?;
    let busy = rest.split_once(" %, ").and_then(|(busy, _)| busy.parse::<f64>().ok());
    let peak = rest.split_once("; ").map(|(_, peak)| peak);
    let peak = peak.and_then(|peak| bytes(peak.split([';', ' ']).take(2).collect::<Vec<_>>()));
    Some(LoggedDevice {
        device: device.to_string(),
        role,
        busy: busy.map(|percent| percent / 100.0),
        peak_memory: peak,
    })
}

/// As `Seconds` prints it.
fn seconds(text: &str) -> Option<f64> {
    let (number, unit) = text.trim().split_once(' ')?;
    let scale = match unit.trim() {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Some(number.parse::<f64>().ok().filter(|value| value.is_finite())? * scale)
}

/// As `Bytes` prints it: number and unit.
fn bytes(words: Vec<&str>) -> Option<f64> {
    let [number, unit] = words.try_into().ok()?;
    let power = ["B", "KiB", "MiB", "GiB", "TiB"].iter().position(|name| *name == unit)?;
    Some(number.parse::<f64>().ok()? * 1024f64.powi(power as i32))
}

fn percent(text: &str) -> Option<f64> {
    Some(text.trim().strip_suffix(" %")?.parse::<f64>().ok()? / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_telemetry::event::{Event, RunHeader, Step};
    use tandem_telemetry::{Nanos, Report, Stamped, Summary};

    fn steps(count: u64) -> Vec<Stamped> {
        let header = RunHeader::now("tandem", "0.1.0", serde_json::json!({}));
        let mut events = vec![Stamped { at: Nanos(0), event: Event::Run(Box::new(header)) }];
        for number in 1..=count {
            let took = Nanos::millis(if number % 2 == 0 { 30 } else { 10 });
            let step = Step { step: number, took, items: 8, frames: 900, ..Step::default() };
            events.push(Stamped { at: Nanos::millis(20 * number), event: step.into() });
        }
        events
    }

    /// The report and the periodic lines are those of the telemetry crate, so that both change together.
    fn printed(count: u64) -> String {
        let (mut summary, rules) = (Summary::default(), Rules::default());
        let mut window = tandem_telemetry::periodic::Window::default();
        let mut text = String::from(
            "prefetch: 4 batches\nvoice: micro, 0.1 million parameters; batch 8; new run in runs/a\n",
        );
        for event in steps(count) {
            summary.add(&event);
            if let Some(line) = window.add(&event, &summary, &rules) {
                text += &format!("epoch 1, step 100 of 250: mel 0.1\n{line}\n");
            }
        }
        let report = Report::from_summary(&summary, None, &rules).to_string();
        text + &report + "\nbatch     8 utterances\nrecord: runs/a/run.jsonl\n"
    }

    #[test]
    fn the_report_of_a_finished_run_is_read_back() {
        let found = LoggedRun::parse(&printed(250), Path::new("a.log")).unwrap();
        assert_eq!(found.record.as_deref(), Some(Path::new("runs/a/run.jsonl")));
        assert_eq!((found.steps, found.batch_size), (250, Some(8)));
        assert!((found.mean - 0.020).abs() < 1e-5 && (found.std - 0.010).abs() < 1e-5);
        assert!((found.samples_per_second - 400.0).abs() < 1.0, "{found:?}");
        assert!((found.frames_per_second.unwrap() - 45_000.0).abs() < 100.0, "{found:?}");
        assert_eq!(found.windows.len(), 2);
        assert_eq!(found.lasted, Some(5.0));
        assert!(found.by_shape.is_some());
    }

    #[test]
    fn a_killed_run_has_its_periodic_lines() {
        let text = printed(250);
        let cut = text.split("run       tandem").next().unwrap();
        let found = LoggedRun::parse(cut, Path::new("a.log")).unwrap();
        assert_eq!((found.steps, found.batch_size, found.record), (200, Some(8), None));
        assert!((found.mean - 0.020).abs() < 1e-5 && (found.std - 0.010).abs() < 1e-4);
        assert!((found.samples_per_second - 400.0).abs() < 1.0);
        assert_eq!(found.lasted, None);
    }

    #[test]
    fn devices_are_read_from_their_table() {
        let text = "device            used for    busy (mean, std)   memory (mean, std; peak of total)\n  \
             cuda:0          model       87.1 %, 3.0 %      2.1 GiB, 10.0 MiB; 2.5 GiB of 24.0 GiB; 60 W\n  \
             process         host        not measured       not measured\n";
        let found = LoggedRun::parse(text, Path::new("a.log")).unwrap();
        let cuda = &found.devices[0];
        assert_eq!((cuda.device.as_str(), cuda.role), ("cuda:0", DeviceRole::Model));
        assert!((cuda.busy.unwrap() - 0.871).abs() < 1e-9);
        assert_eq!(cuda.peak_memory, Some(2.5 * 1024f64.powi(3)));
        assert_eq!((found.devices[1].busy, found.devices[1].peak_memory), (None, None));
    }

    #[test]
    fn of_two_runs_in_a_file_the_last_counts_and_other_texts_are_none() {
        let second = printed(250).replace("runs/a", "runs/b").replace("batch 8", "batch 4");
        let both = printed(100) + &second;
        let found = LoggedRun::parse(&both, Path::new("a.log")).unwrap();
        assert_eq!(found.record.as_deref(), Some(Path::new("runs/b/run.jsonl")));
        assert_eq!((found.steps, found.windows.len()), (250, 2));
        assert_eq!(LoggedRun::parse("Epoch 1/10\nloss: 2.7\n", Path::new("other.log")), None);
    }
}
