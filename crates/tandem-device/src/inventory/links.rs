//! The PCIe topology of two GPUs: what a copy between them passes through.
//!
//! In: the PCI addresses of two cards. Out: [`LinkKind`], with the names of `nvidia-smi topo`, read from the
//! directory tree in `/sys`, where each device is inside of its bridge. Uses no driver and does not
//! detect NVLink.

use super::FoundDevice;
use crate::backend::DeviceId;
use serde::{Serialize, Serializer};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A PCI address, such as `0000:3b:00.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PciAddress {
    /// Zero on most machines.
    pub domain: u32,
    pub bus: u8,
    pub device: u8,
    pub function: u8,
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { domain, bus, device, function } = self;
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.{function:x}")
    }
}

impl FromStr for PciAddress {
    type Err = ();

    /// `0000:3b:00.0`, also with a domain of eight digits as NVIDIA writes it.
    fn from_str(text: &str) -> Result<PciAddress, ()> {
        let parse = || {
            let (place, function) = text.trim().rsplit_once('.')?;
            let mut parts = place.split(':');
            let domain = u32::from_str_radix(parts.next()?, 16).ok()?;
            let bus = u8::from_str_radix(parts.next()?, 16).ok()?;
            let device = u8::from_str_radix(parts.next()?, 16).ok()?;
            let function = u8::from_str_radix(function, 16).ok()?;
            parts.next().is_none().then_some(PciAddress { domain, bus, device, function })
        };
        parse().ok_or(())
    }
}

impl Serialize for PciAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What a copy between two cards passes through, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum LinkKind {
    /// One PCIe switch.
    Pix,
    /// Several PCIe switches.
    Pxb,
    /// The PCIe root of the CPU.
    Phb,
    /// The link between the PCIe roots of one NUMA node.
    Node,
    /// The link between CPU sockets.
    Sys,
}

impl LinkKind {
    /// The name in `nvidia-smi topo`.
    pub fn name(self) -> &'static str {
        match self {
            LinkKind::Pix => "PIX",
            LinkKind::Pxb => "PXB",
            LinkKind::Phb => "PHB",
            LinkKind::Node => "NODE",
            LinkKind::Sys => "SYS",
        }
    }

    /// A description for messages.
    pub fn through(self) -> &'static str {
        match self {
            LinkKind::Pix => "through one PCIe switch",
            LinkKind::Pxb => "through several PCIe switches",
            LinkKind::Phb => "through the CPU's PCIe root",
            LinkKind::Node => "between PCIe roots of one NUMA node",
            LinkKind::Sys => "from one CPU socket to the other",
        }
    }

    /// Whether to avoid such a pair for data and model.
    pub fn is_bad(self) -> bool {
        matches!(self, LinkKind::Node | LinkKind::Sys)
    }
}

/// The link of two devices of one backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Link {
    pub one: DeviceId,
    pub other: DeviceId,
    pub kind: LinkKind,
}

impl Link {
    /// A warning for a slow pair.
    pub fn warning(&self) -> Option<String> {
        self.kind.is_bad().then(|| {
            format!(
                "{} and {} are linked {} ({}): a copy between them is slow; choose a PIX, PXB or \
                 PHB pair where there is one, or move a card to another slot",
                self.one,
                self.other,
                self.kind.through(),
                self.kind.name()
            )
        })
    }
}

/// The links of all pairs with PCI addresses. `sys` is usually `/sys`.
pub fn links_between(devices: &[FoundDevice], sys: &Path) -> Vec<Link> {
    let mut links = Vec::new();
    for (at, one) in devices.iter().enumerate() {
        for other in &devices[at + 1..] {
            let Some((first, second)) = one.pci.zip(other.pci) else { continue };
            if let Some(kind) = kind_of(first, second, sys) {
                links.push(Link { one: one.id, other: other.id, kind });
            }
        }
    }
    links
}

fn kind_of(one: PciAddress, other: PciAddress, sys: &Path) -> Option<LinkKind> {
    let (here, there) = (path_of(one, sys)?, path_of(other, sys)?);
    let common = here.iter().zip(&there).take_while(|(a, b)| a == b).count();
    // The first component is the root, the last is the card, the others are bridges.
    if common > 1 {
        let switches = (here.len() - common).max(there.len() - common);
        // Two cards in one switch: root port, two ports of the switch, card.
        return Some(if switches <= 2 { LinkKind::Pix } else { LinkKind::Pxb });
    }
    if common == 1 {
        return Some(LinkKind::Phb);
    }
    let node = |address| numa_node(address, sys);
    match (node(one), node(other)) {
        (Some(a), Some(b)) if a != b => Some(LinkKind::Sys),
        // The same NUMA node, or a machine that does not number its only one.
        _ => Some(LinkKind::Node),
    }
}

/// The path components from the root of the bus to a card, such as `pci0000:3a`, `0000:3a:00.0`,
/// `0000:3b:00.0`.
fn path_of(address: PciAddress, sys: &Path) -> Option<Vec<String>> {
    let card = fs::canonicalize(place_of(address, sys)).ok()?;
    let steps = card.iter().filter_map(|step| step.to_str());
    let path: Vec<String> =
        steps.skip_while(|step| !step.starts_with("pci")).map(str::to_owned).collect();
    (!path.is_empty()).then_some(path)
}

fn place_of(address: PciAddress, sys: &Path) -> PathBuf {
    sys.join("bus/pci/devices").join(address.to_string())
}

/// Negative if the system does not know it.
fn numa_node(address: PciAddress, sys: &Path) -> Option<u32> {
    let text = fs::read_to_string(place_of(address, sys).join("numa_node")).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Backend;
    use crate::inventory::DeviceClass;
    use std::os::unix::fs::symlink;

    /// A tree like `/sys`, with cards at these paths below `devices`, each with a NUMA node.
    fn tree(cards: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let bus = root.path().join("bus/pci/devices");
        fs::create_dir_all(&bus).unwrap();
        for (path, node) in cards {
            let card = root.path().join("devices").join(path);
            fs::create_dir_all(&card).unwrap();
            fs::write(card.join("numa_node"), format!("{node}\n")).unwrap();
            symlink(&card, bus.join(card.file_name().unwrap())).unwrap();
        }
        root
    }

    fn card(index: usize, pci: &str) -> FoundDevice {
        FoundDevice {
            id: DeviceId { backend: Backend::Cuda, index },
            name: "Card".into(),
            kind: DeviceClass::Discrete,
            memory: None,
            driver: None,
            pci: pci.parse().ok(),
        }
    }

    #[track_caller]
    fn check(one: (&str, &str), other: (&str, &str), kind: LinkKind) {
        let root = tree(&[one, other]);
        let place = |path: &str| path.rsplit('/').next().unwrap().to_owned();
        let cards = [card(0, &place(one.0)), card(1, &place(other.0))];
        let links = links_between(&cards, root.path());
        assert_eq!(links.iter().map(|link| link.kind).collect::<Vec<_>>(), [kind]);
        assert_eq!(links[0].warning().is_some(), kind.is_bad());
    }

    // Paths as `readlink -f /sys/bus/pci/devices/*` shows them; names as `nvidia-smi topo -m`.

    #[test]
    fn two_cards_in_one_switch_are_pix() {
        let port = "pci0000:3a/0000:3a:00.0/0000:3b:00.0";
        let one = format!("{port}/0000:3c:08.0/0000:3d:00.0");
        let other = format!("{port}/0000:3c:10.0/0000:3e:00.0");
        check((&one, "0"), (&other, "0"), LinkKind::Pix);
    }

    #[test]
    fn two_cards_behind_a_switch_of_switches_are_pxb() {
        let port = "pci0000:3a/0000:3a:00.0/0000:3b:00.0";
        let one = format!("{port}/0000:3c:08.0/0000:3d:00.0/0000:3e:00.0/0000:3f:00.0");
        let other = format!("{port}/0000:3c:10.0/0000:41:00.0/0000:42:00.0/0000:43:00.0");
        check((&one, "0"), (&other, "0"), LinkKind::Pxb);
    }

    #[test]
    fn two_ports_of_one_root_are_phb() {
        let (one, other) =
            ("pci0000:00/0000:00:01.0/0000:01:00.0", "pci0000:00/0000:00:02.0/0000:02:00.0");
        check((one, "-1"), (other, "-1"), LinkKind::Phb);
    }

    #[test]
    fn two_roots_are_node_within_a_numa_node_and_sys_across() {
        let (one, other) =
            ("pci0000:3a/0000:3a:00.0/0000:3b:00.0", "pci0000:85/0000:85:00.0/0000:86:00.0");
        check((one, "0"), (other, "0"), LinkKind::Node);
        check((one, "0"), (other, "1"), LinkKind::Sys);
    }

    #[test]
    fn an_unknown_card_has_no_link() {
        let root = tree(&[("pci0000:00/0000:00:01.0/0000:01:00.0", "0")]);
        let cards = [card(0, "0000:01:00.0"), card(1, "0000:99:00.0"), card(2, "")];
        assert_eq!(links_between(&cards, root.path()), []);
    }

    #[test]
    fn an_address_parses_as_it_is_displayed() {
        assert_eq!("0000:3B:00.1".parse::<PciAddress>().unwrap().to_string(), "0000:3b:00.1");
        assert_eq!("00000000:3B:00.0".parse::<PciAddress>().unwrap().to_string(), "0000:3b:00.0");
        assert!("3b:00".parse::<PciAddress>().is_err() && "".parse::<PciAddress>().is_err());
    }
}
