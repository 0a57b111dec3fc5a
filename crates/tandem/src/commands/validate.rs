//! `tandem validate`: checks a configuration before a run on this machine.
//!
//! Settings are checked by `tandem_insight::readiness`; devices, memory and the corpus are checked with
//! the code of `tandem train`. Trains nothing; the corpus is prepared as in a run.

use crate::config::tree::Written;
use crate::data_report::prepare_quietly;
use crate::exit::ExitStatus;
use crate::failure::{Failure, Result, is_cancelled};
use crate::interrupt::cancel_on_signals;
use crate::memory_check::fit_to_corpus;
use crate::printer::Printer;
use crate::setting_flags::typed;
use crate::train_advice::advice;
use crate::train_args::plan_of;
use crate::train_plan::TrainPlan;
use owo_colors::OwoColorize;
use serde::Serialize;
use std::path::PathBuf;
use tandem_device::inventory::Inventory;
use tandem_device::placement::{Isolation, Mode, Placement};
use tandem_insight::myxtts::{Became, Conversion, Meaning};
use tandem_insight::readiness::{
    Check, Level, Machine, PrecisionKind, ReadyRules, Requested, Sourced, check,
};
use tandem_train::feed::buffers::{BufferRequest, Buffers};
use tandem_train::train_settings::Precision;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Configuration file of Tandem or MyXTTS, in TOML or YAML
    #[arg(long, value_name = "FILE", env = "TANDEM_CONFIG")]
    config: PathBuf,
    /// Corpus to check, or `demo` [default: `train_data` of the file]
    #[arg(long, value_name = "CORPUS")]
    corpus: Option<PathBuf>,
    /// Print the settings as a Tandem configuration (TOML), without checks
    #[arg(long, conflicts_with = "json")]
    convert: bool,
    /// Warn about fewer workers than this
    #[arg(long, value_name = "N", default_value_t = ReadyRules::default().workers)]
    min_workers: usize,
    /// Warn about fewer prefetched batches than this
    #[arg(long, value_name = "N", default_value_t = ReadyRules::default().prefetch)]
    min_prefetch: usize,
    /// Warn about smaller batches than this
    #[arg(long, value_name = "N", default_value_t = ReadyRules::default().batch)]
    min_batch: usize,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  tandem validate --config run.yaml                       checks, reasons, lines to change
  tandem validate --config run.yaml --corpus my_corpus    also every row of the corpus
  tandem validate --config myxtts.yaml --convert > run.toml
  tandem validate --config run.toml --json

Exit codes: 0 ready, warnings or not; 1 something must be fixed; 2 it could not be checked.";

#[derive(Serialize)]
struct Answer<'a> {
    ready: bool,
    written_for: &'static str,
    checks: &'a [Check],
    #[serde(skip_serializing_if = "Option::is_none")]
    conversion: Option<&'a Conversion>,
}

pub fn run(args: Args, out: &mut Printer) -> Result<ExitStatus> {
    let written = Written::read(&args.config)?;
    if args.convert {
        return print_converted(&written, out);
    }
    let rules = ReadyRules {
        workers: args.min_workers,
        prefetch: args.min_prefetch,
        batch: args.min_batch,
    };
    let checks = Validation { written: &written, corpus: args.corpus, rules }.checks(out)?;
    let ready = checks.iter().all(|check| check.level != Level::MustFix);
    if args.json {
        let conversion = written.conversion.as_ref();
        let written_for = if conversion.is_some() { "myxtts" } else { "tandem" };
        out.json(&Answer { ready, written_for, checks: &checks, conversion })?;
    } else {
        print(&checks, &written, out)?;
    }
    Ok(if ready { ExitStatus::Done } else { ExitStatus::Negative })
}

struct Validation<'a> {
    written: &'a Written,
    corpus: Option<PathBuf>,
    rules: ReadyRules,
}

impl Validation<'_> {
    fn checks(&self, out: &mut Printer) -> Result<Vec<Check>> {
        let plan = self.plan();
        let found = Inventory::detect();
        let placed = plan.as_ref().ok().map(|plan| Placement::decide(&plan.devices, &found));
        let placement = placed.as_ref().and_then(|placed| placed.as_ref().ok());
        let mut checks = check(&self.asked()?, &self.machine(placement), &self.rules);
        match &plan {
            Ok(plan) => {
                checks.push(self.devices(plan, &found));
                checks.push(self.memory(plan, &found, placement));
                let facts =
                    placement.map(|placement| super::train::machine_facts(placement, &found));
                let said = facts.map(|facts| advice(plan, &facts)).unwrap_or_default();
                let change = "change it, or leave it if you meant it";
                checks.extend(said.into_iter().map(|said| Check::warn("advice", said, change)));
                checks.extend(self.rows(plan, placement, out)?);
            }
            // Without valid settings, devices and corpus cannot be checked.
            Err(error) => checks.push(self.refused("settings", error)),
        }
        Ok(checks)
    }

    /// The settings of the run; `.` stands for a missing corpus.
    fn plan(&self) -> Result<TrainPlan> {
        let named = self.corpus.clone().or_else(|| self.written.config.train_data.clone());
        let typed = typed("train_data", named.unwrap_or_else(|| PathBuf::from(".")));
        plan_of(self.written.config.clone(), &typed, false)
    }

    fn asked(&self) -> Result<Requested> {
        let config = &self.written.config;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let batch = config.batch.batch_size;
        let workers = config.num_workers.unwrap_or(cores);
        // The same decision as in a run, also where other settings of the file are refused.
        let buffers = Buffers::decide(&BufferRequest {
            prefetch: config.prefetch_buffer_size,
            samples: config.devices.buffer_size,
            batch_size: batch,
            workers,
        })?;
        let precision = match config.train.precision {
            Precision::F32 => PrecisionKind::Full,
            Precision::Tf32 => PrecisionKind::Tf32,
            Precision::Bf16 | Precision::F16 => PrecisionKind::Mixed,
        };
        Ok(Requested {
            native_loading: self.switch("use_tf_native_loading"),
            workers: self.said("num_workers", workers),
            prefetch: self.said("prefetch_buffer_size", buffers.depth),
            prefetch_source: buffers.why(),
            batch: self.said("batch.batch_size", batch),
            static_shapes: self
                .said("devices.enable_static_shapes", config.devices.enable_static_shapes),
            fusion: self.switch("enable_xla"),
            precision: self.said("train.precision", precision),
        })
    }

    fn said<T>(&self, ours: &str, value: T) -> Sourced<T> {
        Sourced { value, place: self.written.place(ours) }
    }

    fn switch(&self, name: &str) -> Option<Sourced<bool>> {
        let (key, value) = self.written.conversion.as_ref()?.switch(name)?;
        Some(Sourced { value, place: self.written.place_of(key) })
    }

    fn machine(&self, placement: Option<&Placement>) -> Machine {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let gpu = placement.is_some_and(|placement| placement.mode != Mode::Cpu);
        let precision = self.written.config.train.precision;
        // The device is opened only for a precision other than the default.
        let asked = placement.filter(|_| precision != Precision::F32);
        let refused = asked.and_then(|placement| {
            let devices = placement.open().map_err(Failure::from);
            let checked = devices.and_then(|open| Ok(precision.check(&open.model)?));
            checked.err().map(|error| error.facts().join(": "))
        });
        Machine { cores, gpu, precision_refused: refused }
    }

    fn devices(&self, plan: &TrainPlan, found: &Inventory) -> Check {
        let mut asked = plan.devices.clone();
        // Budgets are checked separately.
        asked.isolation = Isolation::Off;
        let place = self.written.place("devices.model_gpu");
        match Placement::decide(&asked, found) {
            Err(error) => self.refused("device pair", &error.into()).at(&place),
            Ok(placement) => {
                let (mode, model) = (placement.mode.name(), &placement.model.name);
                let reason = format!("{mode} on {model}");
                match placement.warning {
                    Some(warning) => {
                        Check::warn("device pair", warning, "choose another pair").at(&place)
                    }
                    None => Check::ok("device pair", reason),
                }
            }
        }
    }

    fn memory(&self, plan: &TrainPlan, found: &Inventory, placed: Option<&Placement>) -> Check {
        if let Some(placement) = placed {
            return Check::ok(
                "memory",
                match &placement.limits {
                    Some(limits) => {
                        format!("budgets: {limits}; the largest batch is tried before step 1")
                    }
                    None => "no budgets; the whole device memory may be used".into(),
                },
            );
        }
        match Placement::decide(&plan.devices, found) {
            Err(error @ tandem_device::placement::PlacementError::BudgetTooLarge { .. }) => self
                .refused("memory", &error.into())
                .at(&self.written.place("devices.model_gpu_memory")),
            _ => Check::warn(
                "memory",
                "not checked: the devices cannot be used",
                "correct the devices first",
            ),
        }
    }

    /// Checks every row with the code of a run.
    fn rows(
        &self,
        plan: &TrainPlan,
        placement: Option<&Placement>,
        out: &mut Printer,
    ) -> Result<Vec<Check>> {
        let name = "corpus rows";
        if self.corpus.is_none() && self.written.config.train_data.is_none() {
            let change = "name one with `--corpus`, or set `train_data`";
            return Ok(vec![Check::warn(
                name,
                "no corpus is named, so no row was checked",
                change,
            )]);
        }
        let cancel = cancel_on_signals()?;
        let prepared = prepare_quietly(&plan.corpus, &plan.data, &plan.prepare, &cancel, out);
        let place = self.written.place("train_data");
        let prepared = match prepared.map_err(Failure::from) {
            Err(error) if is_cancelled(&error) => return Err(error),
            Err(error) => return Ok(vec![self.refused(name, &error).at(&place)]),
            Ok(prepared) => prepared,
        };
        let summary = &prepared.summary;
        let reason = format!(
            "{} of {} rows usable, {} held out, {} of audio",
            summary.usable, summary.rows, summary.eval, summary.sound
        );
        let rows = match summary.rejected {
            0 => Check::ok(name, reason),
            _ => Check::warn(
                name,
                reason,
                "`tandem prepare` lists the rejected rows with line, reason and fix",
            ),
        };
        // The same function as in a run.
        let fitted = placement.map(|on| fit_to_corpus(&mut plan.clone(), &prepared, on, out));
        let refused = fitted.and_then(|fitted| fitted.err());
        let memory = refused.map(|error| {
            self.refused("largest batch", &error).at(&self.written.place("batch.batch_size"))
        });
        Ok(std::iter::once(rows).chain(memory).collect())
    }

    /// A check that failed with an error.
    fn refused(&self, name: &'static str, error: &Failure) -> Check {
        let change = error.hint().unwrap_or_else(|| "correct it, then check again".into());
        let reason = error.facts().join(": ");
        // If the error names a key, its line in the file is shown.
        let quoted = reason.split('`').skip(1).step_by(2).find(|word| word.contains('.'));
        let place = quoted.map(|key| self.written.place(key)).filter(|place| place.line.is_some());
        let check = Check::must_fix(name, reason.clone(), change);
        place.map_or(check.clone(), |place| check.at(&place))
    }
}

fn print(checks: &[Check], written: &Written, out: &mut Printer) -> Result<()> {
    let mut table = Printer::table(&["check", "", "reason", "change"]);
    for check in checks {
        let level = match check.level {
            Level::Ok => "ok",
            Level::Warn => "warn",
            Level::MustFix => "must fix",
        };
        let change = check.change.clone().unwrap_or_default();
        table.add_row([check.name, level, &check.reason, &change]);
    }
    out.line(&table.trim_fmt())?;
    if let Some(conversion) = &written.conversion {
        out.line("")?;
        out.line("a MyXTTS configuration; its keys in Tandem (`--convert` prints them as TOML):")?;
        out.line(&meanings(conversion, written))?;
    }
    let count = |level| checks.iter().filter(|check| check.level == level).count();
    let (warnings, faults) = (count(Level::Warn), count(Level::MustFix));
    let verdict = match (faults, warnings) {
        (0, 0) => "ready".to_string(),
        (0, warnings) => format!("ready, with {warnings} to check"),
        (faults, _) => format!("not ready: {faults} must be fixed"),
    };
    out.line(&format!("\n{:<8} {verdict}", "verdict".bold()))
}

fn meanings(conversion: &Conversion, written: &Written) -> String {
    let mut rows = Vec::new();
    for meaning in &conversion.meanings {
        let became = match meaning.became {
            Became::Set => "is",
            Became::Always | Became::AlwaysDespite => "on",
            Became::LeftOut => "left out",
        };
        rows.push((written.place_of(&meaning.key).line, &meaning.key, became, &*meaning.said));
    }
    // In the order of the file.
    rows.sort();
    let mut table = Printer::table(&["line", "key", "", "here"]);
    for (line, key, became, said) in rows {
        let line = line.map(|line| line.to_string()).unwrap_or_default();
        table.add_row([&line, key.as_str(), became, said]);
    }
    table.trim_fmt()
}

/// Prints the settings as TOML; settings that were left out as comments above them.
fn print_converted(written: &Written, out: &mut Printer) -> Result<ExitStatus> {
    if let Some(conversion) = &written.conversion {
        let left_out = |meaning: &&Meaning| meaning.became == Became::LeftOut;
        let lost: Vec<&Meaning> = conversion.meanings.iter().filter(left_out).collect();
        out.line(match lost.is_empty() {
            true => "# From a MyXTTS configuration; every setting has its equivalent.",
            false => "# From a MyXTTS configuration. Left out, since Tandem has no such setting:",
        })?;
        for meaning in lost {
            out.line(&format!("#   {}: {}", meaning.key, meaning.said))?;
        }
        out.line("")?;
    }
    out.line(written.to_toml()?.trim_end())?;
    Ok(ExitStatus::Done)
}
