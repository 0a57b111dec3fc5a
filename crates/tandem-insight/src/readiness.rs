//! Whether settings are ready for a run that keeps its device busy.
//!
//! In: what a configuration says ([`Asked`]), each value with its place in the file. Out: one
//! [`Check`] for each promise, with the reason and the line to change. Thresholds are in
//! [`ReadyRules`]. Opens no device and reads no file: what only the machine or the corpus can
//! tell is added by whoever asked them.

use serde::Serialize;

/// The smallest values that earn no warning; promised: 8, 8, 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ReadyRules {
    /// Workers that read the corpus.
    pub workers: usize,
    /// Batches that may wait for the model.
    pub prefetch: usize,
    /// Utterances in a batch.
    pub batch: usize,
}

impl Default for ReadyRules {
    fn default() -> ReadyRules {
        ReadyRules { workers: 8, prefetch: 8, batch: 16 }
    }
}

/// What came of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As it should be.
    Ok,
    /// It runs, and not as well as it could.
    Warn,
    /// It does not run as asked.
    MustFix,
}

/// One line of the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was checked.
    pub name: &'static str,
    /// What came of it.
    pub level: Level,
    /// Why.
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
pub struct Said<T> {
    /// The value that holds.
    pub value: T,
    /// Where it comes from.
    pub place: Place,
}

/// Numbers that a model computes with, as far as checks care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 32 bits throughout.
    Full,
    /// 16 bits where that is enough.
    Mixed,
}

/// What a configuration asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// `false`: loading through an interpreter, which only other programs have.
    pub native_loading: Option<Said<bool>>,
    /// Workers that read the corpus.
    pub workers: Said<usize>,
    /// Batches that may wait for the model.
    pub prefetch: Said<usize>,
    /// Utterances in a batch.
    pub batch: Said<usize>,
    /// Whether batches are padded to a few shapes.
    pub static_shapes: Said<bool>,
    /// `false`: one kernel per operation, which only other programs have.
    pub fusion: Option<Said<bool>>,
    /// Numbers that the model computes with.
    pub width: Said<Width>,
}

/// What is known of the machine, where somebody looked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Cores this process may use.
    pub cores: usize,
    /// Whether the model would train on a GPU.
    pub gpu: bool,
    /// Why the model's device cannot compute in the width asked for.
    pub width_refused: Option<String>,
}

/// The checks that settings alone decide, in the order of the promise.
pub fn check(asked: &Asked, machine: &Machine, rules: &ReadyRules) -> Vec<Check> {
    vec![
        native_loading(asked),
        workers(asked, machine, rules),
        prefetch(asked, rules),
        batch(asked, rules),
        static_shapes(asked, machine),
        fusion(asked, machine),
        width(asked, machine),
    ]
}

fn native_loading(asked: &Asked) -> Check {
    let name = "native loading";
    match &asked.native_loading {
        Some(said) if !said.value => Check::warn(
            name,
            "asks for loading through an interpreter; loading is always native here",
            "set it to true, or remove the line",
        )
        .at(&said.place),
        Some(said) => Check::ok(name, "always, with this program").at(&said.place),
        None => Check::ok(name, "always, with this program"),
    }
}

fn workers(asked: &Asked, machine: &Machine, rules: &ReadyRules) -> Check {
    let Said { value, place } = &asked.workers;
    let few = *value < rules.workers;
    let reason = format!("{value} workers read the corpus");
    if !few {
        return Check::ok("workers", reason).at(place);
    }
    let (wanted, cores) = (rules.workers, machine.cores);
    let reason = match cores {
        1.. if cores < wanted => {
            format!("{reason}, below {wanted}; this machine has {cores} cores")
        }
        _ => format!("{reason}, below {wanted}"),
    };
    Check::warn("workers", reason, set(place, &format!("{wanted}"))).at(place)
}

fn prefetch(asked: &Asked, rules: &ReadyRules) -> Check {
    let Said { value, place } = &asked.prefetch;
    let source = if place.line.is_none() { ", chosen automatically" } else { "" };
    let reason = format!("{value} batches may wait for the model{source}");
    if *value >= rules.prefetch {
        return Check::ok("prefetch", reason).at(place);
    }
    let wanted = rules.prefetch;
    let reason = format!("{reason}, below {wanted}");
    Check::warn("prefetch", reason, set(place, &format!("{wanted}"))).at(place)
}

fn batch(asked: &Asked, rules: &ReadyRules) -> Check {
    let Said { value, place } = &asked.batch;
    let reason = format!("{value} utterances a batch");
    if *value >= rules.batch {
        return Check::ok("batch", reason).at(place);
    }
    let wanted = rules.batch;
    let reason = format!("{reason}, below {wanted}: a GPU idles between such small steps");
    Check::warn("batch", reason, set(place, &format!("{wanted}"))).at(place)
}

fn static_shapes(asked: &Asked, machine: &Machine) -> Check {
    let Said { value, place } = &asked.static_shapes;
    if *value {
        let reason = "batches are padded to a few shapes, each compiled once";
        return Check::ok("fixed shapes", reason).at(place);
    }
    if !machine.gpu {
        let reason = "each batch has a shape of its own: nothing is compiled on the processor";
        return Check::ok("fixed shapes", reason).at(place);
    }
    let reason =
        "each batch has a shape of its own: a GPU compiles and tunes kernels for every new one";
    Check::warn("fixed shapes", reason, set(place, "true")).at(place)
}

fn fusion(asked: &Asked, machine: &Machine) -> Check {
    let name = "kernel fusion";
    let how = if machine.gpu { "by the GPU's backend" } else { "by kernels of our own" };
    match &asked.fusion {
        Some(said) if !said.value => Check::warn(
            name,
            format!("asks for none; operations are always fused here, {how}"),
            "set it to true, or remove the line",
        )
        .at(&said.place),
        Some(said) => Check::ok(name, format!("always, {how}")).at(&said.place),
        None => Check::ok(name, format!("always, {how}")),
    }
}

fn width(asked: &Asked, machine: &Machine) -> Check {
    let name = "mixed precision";
    let Said { value, place } = &asked.width;
    // A file of the other program has a switch there.
    let is_switch = place.key.ends_with("mixed_precision");
    let (wide, narrow) = if is_switch { ("false", "true") } else { ("f32", "bf16") };
    let check = match (value, machine.gpu, &machine.width_refused) {
        (Width::Mixed, _, Some(why)) => Check::must_fix(name, why, set(place, wide)),
        (Width::Mixed, true, None) => Check::ok(name, "16 bits where that is enough"),
        (Width::Mixed, false, None) => Check::warn(
            name,
            "16 bits on the processor: its fused kernels are for 32 bits and are not used then",
            set(place, wide),
        ),
        (Width::Full, true, _) => {
            Check::warn(name, "32 bits throughout: most GPUs are faster in 16", set(place, narrow))
        }
        (Width::Full, false, _) => Check::ok(name, "32 bits, the fastest on a processor"),
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

    fn said<T>(key: &str, value: T) -> Said<T> {
        Said { value, place: Place { key: key.into(), line: Some(3) } }
    }

    fn asked() -> Asked {
        Asked {
            native_loading: None,
            workers: said("num_workers", 8),
            prefetch: said("prefetch_buffer_size", 8),
            batch: said("batch.batch_size", 16),
            static_shapes: said("devices.enable_static_shapes", true),
            fusion: None,
            width: said("train.precision", Width::Full),
        }
    }

    #[track_caller]
    fn check_one(change: impl FnOnce(&mut Asked), machine: Machine, name: &str, level: Level) {
        let mut asked = asked();
        change(&mut asked);
        let checks = check(&asked, &machine, &ReadyRules::default());
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
        check_one(|asked| asked.workers.value = 7, cpu(), "workers", Level::Warn);
        check_one(|asked| asked.prefetch.value = 7, cpu(), "prefetch", Level::Warn);
        check_one(|asked| asked.batch.value = 15, cpu(), "batch", Level::Warn);
        check_one(|asked| asked.batch.value = 64, cpu(), "batch", Level::Ok);
    }

    #[test]
    fn what_a_run_ignores_or_pays_for_is_a_warning() {
        let off = |key| Some(said(key, false));
        check_one(|asked| asked.static_shapes.value = false, cpu(), "fixed shapes", Level::Ok);
        let gpu = Machine { gpu: true, ..cpu() };
        let tight_and_mixed = |asked: &mut Asked| {
            (asked.static_shapes.value, asked.width.value) = (false, Width::Mixed);
        };
        check_one(tight_and_mixed, gpu, "fixed shapes", Level::Warn);
        check_one(|a| a.native_loading = off("x"), cpu(), "native loading", Level::Warn);
        check_one(|a| a.fusion = off("x"), cpu(), "kernel fusion", Level::Warn);
    }

    #[test]
    fn precision_is_judged_by_the_device() {
        let gpu = || Machine { gpu: true, ..cpu() };
        let mixed = |asked: &mut Asked| asked.width.value = Width::Mixed;
        check_one(mixed, gpu(), "mixed precision", Level::Ok);
        check_one(|_| {}, gpu(), "mixed precision", Level::Warn);
        check_one(mixed, cpu(), "mixed precision", Level::Warn);
        let theirs = Asked { width: said("data.mixed_precision", Width::Mixed), ..asked() };
        let change = width(&theirs, &cpu()).change;
        assert_eq!(change.as_deref(), Some("line 3: set `data.mixed_precision` to false"));
        let refused = Machine { width_refused: Some("no bf16".into()), ..gpu() };
        check_one(mixed, refused, "mixed precision", Level::MustFix);
    }

    #[test]
    fn a_change_names_the_line_or_says_to_add_it() {
        let few = Asked { workers: said("data.num_workers", 2), ..asked() };
        let found = workers(&few, &Machine { cores: 2, ..cpu() }, &ReadyRules::default());
        assert_eq!(found.change.as_deref(), Some("line 3: set `data.num_workers` to 8"));
        assert!(found.reason.ends_with("this machine has 2 cores"), "{}", found.reason);
        let mut unset = asked();
        unset.prefetch = Said { value: 4, place: Place { key: "prefetch".into(), line: None } };
        let found = prefetch(&unset, &ReadyRules::default());
        assert_eq!(found.change.as_deref(), Some("add `prefetch`: 8"));
    }
}
