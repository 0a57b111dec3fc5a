//! Rows to skip on purpose: a run that skips the same rows as a disturbed one must reach the same weights.
//! For tests and the fault campaign.
//!
//! In: a file with a line per row: batch number, row id and role (`utterance` or `reference`), separated
//! by tabs. Out: a set. The file is read once, before the run.

use crate::TrainError;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

/// What a row was to the batch that skipped it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The utterance itself.
    Utterance,
    /// The reference segment for the utterance of this id.
    Reference,
}

/// Clones share the set. The default skips nothing.
#[derive(Clone, Debug, Default)]
pub struct SkipList(Arc<HashSet<(u64, String, Role)>>);

impl SkipList {
    pub fn read(path: &Path) -> Result<SkipList, TrainError> {
        let bad = |line: usize| TrainError::SkipList { path: path.to_path_buf(), line };
        let text = std::fs::read_to_string(path).map_err(|_| bad(0))?;
        let rows = text
            .lines()
            .enumerate()
            .map(|(number, line)| parse(line).ok_or_else(|| bad(number + 1)));
        rows.collect::<Result<_, _>>().map(|rows| SkipList(Arc::new(rows)))
    }

    pub fn contains(&self, batch: u64, id: &str, role: Role) -> bool {
        !self.0.is_empty() && self.0.contains(&(batch, id.to_string(), role))
    }
}

fn parse(line: &str) -> Option<(u64, String, Role)> {
    let mut columns = line.split('\t');
    let batch = columns.next()?.parse().ok()?;
    let id = columns.next()?.to_string();
    let role = match columns.next()? {
        "utterance" => Role::Utterance,
        "reference" => Role::Reference,
        _ => return None,
    };
    columns.next().is_none().then_some((batch, id, role))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_batch_a_row_and_its_role() {
        assert_eq!(parse("12\ten_01\tutterance"), Some((12, "en_01".into(), Role::Utterance)));
        assert_eq!(parse("12\ten_01\treference"), Some((12, "en_01".into(), Role::Reference)));
        for bad in ["", "12\ten_01", "x\ten_01\tutterance", "12\ten_01\tother", "1\ta\tutterance\t"]
        {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }
}
