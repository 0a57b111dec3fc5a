//! The bounds of a numeric key, with every other key at its default.
//!
//! In: a key. Out: its bounds in words, found by running the checks of a run on trial values, so that
//! there is no second list of bounds that could become outdated.

use super::only;
use crate::config::FileConfig;
use crate::config::set_keys::SetKeys;
use crate::train_args::TrainArgs;
use serde_json::{Value, json};

/// Larger than any setting.
const HUGE: f64 = 1e15;

/// The bounds of a number; empty if they are not a simple range.
pub fn of(key: &str, kind: &str) -> String {
    let whole = kind == "whole number";
    let yes = |number: f64| accepts(key, if whole { json!(number as u64) } else { json!(number) });
    let least = if whole {
        match (yes(0.0), yes(1.0)) {
            (true, _) => "0",
            (false, true) => "1",
            _ => return String::new(),
        }
    } else {
        match (yes(-1.0), yes(0.0), yes(1e-6)) {
            (true, _, _) => return String::new(),
            (false, true, _) => "0",
            (false, false, true) => "above 0",
            _ => return String::new(),
        }
    };
    match most(&yes, whole) {
        None => format!("{least} or more").replace("above 0 or more", "above 0"),
        Some(most) => format!("{least} {most}"),
    }
}

/// The largest accepted number, in words; `None` if there is no limit.
fn most(yes: &dyn Fn(f64) -> bool, whole: bool) -> Option<String> {
    if yes(HUGE) || (whole && yes(f64::from(u32::MAX))) {
        return None;
    }
    if !whole && yes(0.5) && !yes(1.0 + 1e-6) {
        return Some(if yes(1.0) { "to 1" } else { "up to, not including, 1" }.to_string());
    }
    let (mut good, mut bad) = (1.0, HUGE);
    while bad - good > 1.0 {
        let middle = f64::floor(good / 2.0 + bad / 2.0);
        if yes(middle) { good = middle } else { bad = middle }
    }
    yes(good).then(|| format!("to {good}"))
}

/// Whether a run could be planned with this value.
fn accepts(key: &str, value: Value) -> bool {
    let mut settings = only(key, value);
    settings["train_data"] = json!("corpus");
    // Memory budgets are refused without memory isolation.
    settings["devices"]["enable_memory_isolation"] = json!(true);
    // A key that is set is not replaced by what is usual for a size.
    let set_keys = SetKeys::of(&settings);
    let Ok(config) = serde_json::from_value::<FileConfig>(settings) else { return false };
    let Ok(config) = (FileConfig { set_keys, ..config }).checked() else { return false };
    TrainArgs::default().resolve_over(config).is_ok()
}
