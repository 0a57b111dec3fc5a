//! The file with what sums of gradients cost: written by `tandem bench reduce`, read by `tandem plan`.

use crate::demo_files::data_dir;
use crate::failure::{Advised, Context, Failure, Result};
use std::path::{Path, PathBuf};
use tandem_disk::replace_file::replace_file;
use tandem_insight::reduce_cost::ReduceCost;

/// In the data directory of the user.
const NAME: &str = "reduce.json";

/// `named`, or the usual place.
pub fn path(named: Option<&Path>) -> Result<PathBuf> {
    match named {
        Some(path) => Ok(path.to_path_buf()),
        None => Ok(data_dir()?.join(NAME)),
    }
}

pub fn save(cost: &ReduceCost, path: &Path) -> Result<()> {
    let cannot = || format!("cannot save the cost of sums in `{}`", path.display());
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).with_context(cannot)?;
    }
    let text = serde_json::to_vec_pretty(cost).map_err(Failure::foreign)?;
    replace_file(path, &text).with_context(cannot)
}

/// The named file, or the usual one if it exists.
pub fn read(named: Option<&Path>) -> Result<Option<(PathBuf, ReduceCost)>> {
    let path = path(named)?;
    if named.is_none() && !path.exists() {
        return Ok(None);
    }
    let again = "measure again: mpirun -np 2 --bind-to none tandem bench reduce";
    let text = std::fs::read(&path).map_err(|error| {
        Advised::new(format!("cannot read `{}`: {error}", path.display()), again)
    })?;
    let cost: ReduceCost = serde_json::from_slice(&text).map_err(|error| {
        let fact =
            format!("`{}` is not an answer of `tandem bench reduce`: {error}", path.display());
        Advised::new(fact, again)
    })?;
    if !cost.is_usable() || cost.ranks != 2 {
        let fact = format!(
            "`{}` was measured with {} ranks and {} sizes, and a plan is for two ranks",
            path.display(),
            cost.ranks,
            cost.sizes.len()
        );
        return Err(Advised::new(fact, again).into());
    }
    Ok(Some((path, cost)))
}
