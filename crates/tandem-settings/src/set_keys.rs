//! Which keys a configuration file sets, whatever their values.
//!
//! In: a file as a tree. Out: [`SetKeys`]. Needed where a default depends on another setting: a value that the file states
//! is not a default, even if it is equal to one.

use serde_json::Value;
use std::collections::BTreeSet;

/// Full names of keys, tables joined by dots.
#[derive(Clone, Debug, Default)]
pub struct SetKeys(BTreeSet<String>);

/// Where a value comes from is no part of the value: settings from two files are equal if their values are.
impl PartialEq for SetKeys {
    fn eq(&self, _other: &SetKeys) -> bool {
        true
    }
}

impl SetKeys {
    pub fn of(tree: &Value) -> SetKeys {
        let mut keys = BTreeSet::new();
        collect("", tree, &mut keys);
        SetKeys(keys)
    }

    /// Whether the file sets this key.
    pub fn contains(&self, key: &str) -> bool {
        self.0.contains(key)
    }

    /// Whether the file sets any key of this table.
    pub fn contains_any_of(&self, table: &str) -> bool {
        let is_in_table =
            |key: &String| key.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'));
        self.0.iter().any(is_in_table)
    }
}

fn collect(table: &str, tree: &Value, keys: &mut BTreeSet<String>) {
    let Value::Object(entries) = tree else {
        keys.insert(table.to_string());
        return;
    };
    for (name, value) in entries {
        let key = if table.is_empty() { name.clone() } else { format!("{table}.{name}") };
        collect(&key, value, keys);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_key_with_the_value_of_its_default_is_set() {
        let tree =
            json!({"train": {"optimizer": {"lr": 0.001}, "from_voice": "a"}, "melody": {"x": 1}});
        let keys = SetKeys::of(&tree);
        assert!(keys.contains("train.optimizer.lr") && keys.contains("train.from_voice"));
        assert!(!keys.contains("train.optimizer.clip") && !keys.contains("train.optimizer"));
        assert!(keys.contains_any_of("train") && !keys.contains_any_of("mel"));
    }
}
