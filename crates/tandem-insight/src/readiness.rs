//! Checks whether settings keep the device busy.
//!
//! In: values of a configuration ([`Requested`]), each with its place in the file. Out: one
//! [`Check`] for each promise, with the reason and the line to change. Thresholds are in
//! [`ReadyRules`]; a row of the configuration matrix and the cores of the machine lower them. Opens no device and reads no file: the caller adds checks of the machine and
//! the corpus.

use crate::presets::{PRESETS, Preset};
use serde::Serialize;
pub use tandem_telemetry::rules::ReadyRules;

/// What came of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Ok,
    /// It runs, but could be faster.
    Warn,
    /// It does not run with these settings.
    MustFix,
}

/// One line of the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    pub name: &'static str,
    pub level: Level,
    pub reason: String,
    /// What to change, where something is to be changed.
    pub change: Option<String>,
    /// The key that decides it.
    pub key: Option<String>,
    /// Its line in the file, counted from one; none where the file does not set it.
    pub line: Option<usize>,
}

impl Check {
    /// All is well.
    pub fn ok(name: &'static str, reason: impl Into<String>) -> Check {
        let reason = reason.into();
        Check { name, level: Level::Ok, reason, change: None, key: None, line: None }
    }

    /// It could be better.
    pub fn warn(name: &'static str, reason: impl Into<String>, change: impl Into<String>) -> Check {
        Check { level: Level::Warn, change: Some(change.into()), ..Check::ok(name, reason) }
    }

    /// It will not run.
    pub fn must_fix(
        name: &'static str,
        reason: impl Into<String>,
        change: impl Into<String>,
    ) -> Check {
        Check { level: Level::MustFix, change: Some(change.into()), ..Check::ok(name, reason) }
    }

    /// With the place that decides it.
    #[must_use]
    pub fn at(self, place: &Place) -> Check {
        Check { key: Some(place.key.clone()), line: place.line, ..self }
    }
}

/// Where a value is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The key, tables joined by dots.
    pub key: String,
    /// Its line, counted from one; none where the file does not set it.
    pub line: Option<usize>,
}

/// A value and where it is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The effective value.
    pub value: T,
    /// Where it comes from.
    pub place: Place,
}

/// Float precision of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrecisionKind {
    /// 32 bits throughout.
    Full,
    /// 32 bits with matrix products in TF32.
    Tf32,
    /// 16 bits where that is enough.
    Mixed,
}

/// Values of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requested {
    /// `false`: loading through an interpreter, which only other programs have.
    pub native_loading: Option<Sourced<bool>>,
    /// Workers that read the corpus.
    pub workers: Sourced<usize>,
    /// Batches that may wait for the model.
    pub prefetch: Sourced<usize>,
    /// Where that number comes from, as a clause.
    pub prefetch_source: String,
    pub batch: Sourced<usize>,
    /// Whether batches are padded to a few shapes.
    pub static_shapes: Sourced<bool>,
    /// `false`: one kernel per operation, which only other programs have.
    pub fusion: Option<Sourced<bool>>,
    /// Float precision of the model.
    pub precision: Sourced<PrecisionKind>,
}

/// Facts about the machine, where known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Cores this process may use.
    pub cores: usize,
    /// Whether the model would train on a GPU.
    pub gpu: bool,
    /// Why the model's device cannot compute in the requested precision.
    pub precision_refused: Option<String>,
}

/// The checks that settings alone decide, in the order of the promise.
pub fn check(requested: &Requested, machine: &Machine, rules: &ReadyRules) -> Vec<Check> {
    vec![
        native_loading(requested),
        workers(requested, machine, rules),
        prefetch(requested, rules),
        batch(requested, rules),
        static_shapes(requested, machine),
        fusion(requested, machine),
        precision(requested, machine),
    ]
}

fn native_loading(requested: &Requested) -> Check {
    let name = "native loading";
    match &requested.native_loading {
        Some(sourced) if !sourced.value => Check::warn(
            name,
            "requests loading through an interpreter; loading is always native here",
            "set it to true, or remove the line",
        )
        .at(&sourced.place),
        Some(sourced) => Check::ok(name, "always, with this program").at(&sourced.place),
        None => Check::ok(name, "always, with this program"),
    }
}

fn workers(requested: &Requested, machine: &Machine, rules: &ReadyRules) -> Check {
    let Sourced { value, place } = &requested.workers;
    let reason = format!("{value} workers read the corpus");
    if *value >= rules.workers {
        return Check::ok("workers", reason).at(place);
    }
    // More workers than cores only take turns.
    let (wanted, cores) = (rules.workers, machine.cores);
    if (1..=*value).contains(&cores) {
        let reason = format!("{reason}, at least one for each of the {cores} cores");
        return Check::ok("workers", reason).at(place);
    }
    let (wanted, why) = match cores {
        1.. if cores < wanted => (cores, format!("below the {cores} cores of this machine")),
        _ => (wanted, format!("below {wanted}")),
    };
    let reason = format!("{reason}, {why}");
    Check::warn("workers", reason, set(place, &format!("{wanted}"))).at(place)
}

fn prefetch(requested: &Requested, rules: &ReadyRules) -> Check {
    let Sourced { value, place } = &requested.prefetch;
    let source = &requested.prefetch_source;
    let reason = format!("{value} batches may wait for the model ({source})");
    if *value >= rules.prefetch {
        return Check::ok("prefetch", reason).at(place);
    }
    // What a row of the configuration matrix recommends for this batch size is enough, unless a limit was typed.
    let batch = requested.batch.value;
    let in_row = |row: &Preset| (row.batch.0..=row.batch.1).contains(&batch);
    let usual = rules.prefetch == ReadyRules::default().prefetch;
    let row = PRESETS.into_iter().find(|row| usual && in_row(row));
    if let Some(row) = row.filter(|row| *value >= row.prefetch.0) {
        let (low, high) = row.prefetch;
        let reason =
            format!("{reason}; {low} to {high} are usual with batches of {batch} (`tandem plan`)");
        return Check::ok("prefetch", reason).at(place);
    }
    let wanted = row.map_or(rules.prefetch, |row| row.prefetch.1.min(rules.prefetch));
    let reason = format!("{reason}, below {wanted}");
    Check::warn("prefetch", reason, set(place, &format!("{wanted}"))).at(place)
}

fn batch(requested: &Requested, rules: &ReadyRules) -> Check {
    let Sourced { value, place } = &requested.batch;
    let reason = format!("{value} utterances per batch");
    if *value >= rules.batch {
        return Check::ok("batch", reason).at(place);
    }
    let wanted = rules.batch;
    let reason = format!("{reason}, below {wanted}: a GPU idles between such small steps");
    Check::warn("batch", reason, set(place, &format!("{wanted}"))).at(place)
}

fn static_shapes(requested: &Requested, machine: &Machine) -> Check {
    let Sourced { value, place } = &requested.static_shapes;
    if *value {
        let reason = "batches are padded to a few shapes, each compiled once";
        return Check::ok("fixed shapes", reason).at(place);
    }
    if !machine.gpu {
        let reason = "every batch has its own shape: nothing is compiled on the CPU";
        return Check::ok("fixed shapes", reason).at(place);
    }
    let reason =
        "every batch has its own shape: a GPU compiles and tunes kernels for every new one";
    Check::warn("fixed shapes", reason, set(place, "true")).at(place)
}

fn fusion(requested: &Requested, machine: &Machine) -> Check {
    let name = "kernel fusion";
    let how = if machine.gpu { "by the GPU's backend" } else { "by kernels of our own" };
    match &requested.fusion {
        Some(sourced) if !sourced.value => Check::warn(
            name,
            format!("requests none; operations are always fused here, {how}"),
            "set it to true, or remove the line",
        )
        .at(&sourced.place),
        Some(sourced) => Check::ok(name, format!("always, {how}")).at(&sourced.place),
        None => Check::ok(name, format!("always, {how}")),
    }
}

fn precision(requested: &Requested, machine: &Machine) -> Check {
    let name = "mixed precision";
    let Sourced { value, place } = &requested.precision;
    // A file of the other program has a switch there.
    let is_switch = place.key.ends_with("mixed_precision");
    let (wide, narrow) = if is_switch { ("false", "true") } else { ("f32", "bf16") };
    let check = match (value, machine.gpu, &machine.precision_refused) {
        (PrecisionKind::Mixed | PrecisionKind::Tf32, _, Some(why)) => {
            Check::must_fix(name, why, set(place, wide))
        }
        (PrecisionKind::Mixed, true, None) => Check::ok(name, "16 bits where that is enough"),
        (PrecisionKind::Tf32, _, None) => Check::ok(name, "32 bits, matrix products in TF32"),
        (PrecisionKind::Mixed, false, None) => Check::warn(
            name,
            "16 bits on the CPU: its fused kernels are 32-bit and are not used then",
            set(place, wide),
        ),
        (PrecisionKind::Full, true, _) => {
            Check::warn(name, "32 bits throughout: most GPUs are faster in 16", set(place, narrow))
        }
        (PrecisionKind::Full, false, _) => Check::ok(name, "32 bits, the fastest on a CPU"),
    };
    check.at(place)
}

/// What to write, and where.
fn set(place: &Place, value: &str) -> String {
    let Place { key, line } = place;
    match line {
        Some(line) => format!("line {line}: set `{key}` to {value}"),
        None => format!("add `{key}`: {value}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sourced<T>(key: &str, value: T) -> Sourced<T> {
        Sourced { value, place: Place { key: key.into(), line: Some(3) } }
    }

    fn requested() -> Requested {
        Requested {
            native_loading: None,
            workers: sourced("num_workers", 8),
            prefetch: sourced("prefetch_buffer_size", 8),
            prefetch_source: "as typed".into(),
            batch: sourced("batch.batch_size", 16),
            static_shapes: sourced("devices.enable_static_shapes", true),
            fusion: None,
            precision: sourced("train.precision", PrecisionKind::Full),
        }
    }

    #[track_caller]
    fn check_one(change: impl FnOnce(&mut Requested), machine: Machine, name: &str, level: Level) {
        let mut requested = requested();
        change(&mut requested);
        let checks = check(&requested, &machine, &ReadyRules::default());
        assert_eq!(checks.len(), 7);
        for check in checks {
            let wanted = if check.name == name { level } else { Level::Ok };
            assert_eq!(check.level, wanted, "{check:?}");
            assert_eq!(check.level == Level::Ok, check.change.is_none(), "{check:?}");
        }
    }

    fn cpu() -> Machine {
        Machine { cores: 16, ..Machine::default() }
    }

    #[test]
    fn thresholds_are_those_that_were_promised() {
        check_one(|_| {}, cpu(), "", Level::Ok);
        check_one(|requested| requested.workers.value = 7, cpu(), "workers", Level::Warn);
        check_one(|requested| requested.prefetch.value = 1, cpu(), "prefetch", Level::Warn);
        check_one(|requested| requested.batch.value = 15, cpu(), "batch", Level::Warn);
        check_one(|requested| requested.batch.value = 64, cpu(), "batch", Level::Ok);
    }

    #[test]
    fn what_a_run_ignores_or_pays_for_is_a_warning() {
        let off = |key| Some(sourced(key, false));
        check_one(
            |requested| requested.static_shapes.value = false,
            cpu(),
            "fixed shapes",
            Level::Ok,
        );
        let gpu = Machine { gpu: true, ..cpu() };
        let tight_and_mixed = |requested: &mut Requested| {
            (requested.static_shapes.value, requested.precision.value) =
                (false, PrecisionKind::Mixed);
        };
        check_one(tight_and_mixed, gpu, "fixed shapes", Level::Warn);
        check_one(|a| a.native_loading = off("x"), cpu(), "native loading", Level::Warn);
        check_one(|a| a.fusion = off("x"), cpu(), "kernel fusion", Level::Warn);
    }

    #[test]
    fn precision_is_judged_by_the_device() {
        let gpu = || Machine { gpu: true, ..cpu() };
        let mixed = |requested: &mut Requested| requested.precision.value = PrecisionKind::Mixed;
        check_one(mixed, gpu(), "mixed precision", Level::Ok);
        check_one(|_| {}, gpu(), "mixed precision", Level::Warn);
        let tf32 = |requested: &mut Requested| requested.precision.value = PrecisionKind::Tf32;
        check_one(tf32, gpu(), "mixed precision", Level::Ok);
        check_one(mixed, cpu(), "mixed precision", Level::Warn);
        let theirs = Requested {
            precision: sourced("data.mixed_precision", PrecisionKind::Mixed),
            ..requested()
        };
        let change = precision(&theirs, &cpu()).change;
        assert_eq!(change.as_deref(), Some("line 3: set `data.mixed_precision` to false"));
        let refused = Machine { precision_refused: Some("no bf16".into()), ..gpu() };
        check_one(mixed, refused, "mixed precision", Level::MustFix);
    }

    #[test]
    fn a_change_names_the_line_or_says_to_add_it() {
        let few = Requested { workers: sourced("data.num_workers", 2), ..requested() };
        let found = workers(&few, &Machine { cores: 2, ..cpu() }, &ReadyRules::default());
        assert_eq!(found.change, None, "two workers on two cores: {}", found.reason);
        let found = workers(&few, &Machine { cores: 6, ..cpu() }, &ReadyRules::default());
        assert_eq!(found.change.as_deref(), Some("line 3: set `data.num_workers` to 6"));
        assert!(found.reason.ends_with("below the 6 cores of this machine"), "{}", found.reason);
        let mut unset = requested();
        unset.batch.value = 4;
        unset.prefetch = Sourced { value: 4, place: Place { key: "prefetch".into(), line: None } };
        let found = prefetch(&unset, &ReadyRules::default());
        assert_eq!(found.change.as_deref(), Some("add `prefetch`: 8"));
    }

    /// What the matrix recommends is never called too little.
    #[test]
    fn every_row_of_the_configuration_matrix_passes_without_a_warning_about_prefetch() {
        for row in PRESETS {
            for batch in [row.batch.0, row.batch.1] {
                for waiting in [row.prefetch.0, row.prefetch.1] {
                    let mut requested = requested();
                    (requested.batch.value, requested.prefetch.value) = (batch, waiting);
                    let found = prefetch(&requested, &ReadyRules::default());
                    assert_eq!(found.level, Level::Ok, "{found:?}");
                }
            }
        }
        // One less than the row has is too little, and the change is within the row.
        let mut few = requested();
        (few.batch.value, few.prefetch.value) = (12, 3);
        let found = prefetch(&few, &ReadyRules::default());
        assert_eq!(found.change.as_deref(), Some("line 3: set `prefetch_buffer_size` to 6"));
    }
}
