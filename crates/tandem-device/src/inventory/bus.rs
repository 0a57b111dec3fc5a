//! GPUs on the PCI bus, whether this build supports them or not.
//!
//! In: `/sys`. Out: GPUs of the vendors that some backend supports, so that a hint can name the missing
//! backend. Reads a few small files.

use super::links::PciAddress;
use crate::backend::{Backend, backend_of_vendor};
use serde::Serialize;
use std::fs;
use std::path::Path;

/// A GPU on the bus.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BusCard {
    pub pci: PciAddress,
    pub vendor: &'static str,
    /// The PCI device id, such as `2684`.
    pub model: String,
    /// The backend that supports it.
    pub backend: Backend,
}

/// All GPUs, by address. `sys` is usually `/sys`.
pub fn cards_on_bus(sys: &Path) -> Vec<BusCard> {
    let Ok(entries) = fs::read_dir(sys.join("bus/pci/devices")) else { return Vec::new() };
    let mut cards: Vec<BusCard> =
        entries.flatten().filter_map(|entry| card(&entry.path())).collect();
    cards.sort_by_key(|card| card.pci.to_string());
    cards
}

fn card(place: &Path) -> Option<BusCard> {
    let fact = |name: &str| {
        let text = fs::read_to_string(place.join(name)).ok()?;
        Some(text.trim().trim_start_matches("0x").to_owned())
    };
    // Class 03 is displays, including accelerators without an output.
    if !fact("class")?.starts_with("03") {
        return None;
    }
    let number = u16::from_str_radix(&fact("vendor")?, 16).ok()?;
    let (vendor, backend) = backend_of_vendor(number)?;
    let pci = place.file_name()?.to_str()?.parse().ok()?;
    Some(BusCard { pci, vendor, model: fact("device")?, backend })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_gpus_of_known_vendors_are_listed() {
        let root = tempfile::tempdir().unwrap();
        let add = |pci: &str, class: &str, vendor: &str| {
            let place = root.path().join("bus/pci/devices").join(pci);
            fs::create_dir_all(&place).unwrap();
            for (name, value) in [("class", class), ("vendor", vendor), ("device", "0x2684")] {
                fs::write(place.join(name), format!("{value}\n")).unwrap();
            }
        };
        add("0000:3b:00.0", "0x030200", "0x10de");
        add("0000:03:00.0", "0x030000", "0x1002");
        add("0000:3b:00.1", "0x040300", "0x10de"); // the card's audio output
        add("0000:04:00.0", "0x030000", "0x1a03"); // a server's console
        let found = cards_on_bus(root.path());
        let short: Vec<_> =
            found.iter().map(|c| (c.pci.to_string(), c.vendor, c.backend)).collect();
        assert_eq!(
            short,
            [
                ("0000:03:00.0".into(), "AMD", Backend::Rocm),
                ("0000:3b:00.0".into(), "NVIDIA", Backend::Cuda)
            ]
        );
        assert_eq!(cards_on_bus(Path::new("/nowhere")), []);
    }
}
