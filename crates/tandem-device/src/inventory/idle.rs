//! GPUs that a run on the CPU leaves idle, and what would use them.
//!
//! In: the [`Inventory`] of the machine. Out: one sentence for each GPU, with the flag or the build
//! that would use it. Decides nothing.

use super::{BusCard, Inventory, PciAddress};
use crate::backend::Backend;

impl Inventory {
    /// One sentence for each hardware GPU, for a run that uses none.
    pub fn idle_gpus(&self) -> Vec<String> {
        let mut seen: Vec<PciAddress> = Vec::new();
        let mut sentences = Vec::new();
        let built = self.backends.iter().filter(|report| report.backend != Backend::Cpu);
        for device in built.flat_map(|report| &report.devices) {
            // A card is listed once, by its preferred backend.
            let known = device.pci.is_some_and(|pci| seen.contains(&pci));
            if !device.kind.is_hardware_gpu() || known {
                continue;
            }
            seen.extend(device.pci);
            let backend = device.id.backend;
            sentences.push(format!("{device} is not used: `--backend {backend}` trains on it"));
        }
        sentences.extend(self.unused_cards.iter().map(|card| self.idle_card(card)));
        sentences
    }

    fn idle_card(&self, card: &BusCard) -> String {
        let BusCard { pci, vendor, model, backend } = card;
        let report = self.report(*backend);
        let name = format!("the {vendor} GPU at {pci} (model {model}) is not used");
        if !report.is_some_and(|report| report.built) {
            return format!(
                "{name}: this build has no backend for it; `cargo build --release -p tandem \
                 --features {backend}` makes one that has"
            );
        }
        let why = report.and_then(|report| report.fault.clone());
        let why = why.unwrap_or_else(|| format!("backend {backend} does not list it"));
        format!("{name}: {why}; install {}, then `tandem devices`", backend.driver())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::DeviceId;
    use crate::inventory::{BackendReport, DeviceClass, FoundDevice, Processor};

    fn report(backend: Backend, built: bool, devices: Vec<FoundDevice>) -> BackendReport {
        let fault = devices.is_empty().then(|| "it lists no device".to_string());
        BackendReport { backend, built, devices, fault, hint: None }
    }

    fn device(backend: Backend, kind: DeviceClass) -> FoundDevice {
        FoundDevice {
            id: DeviceId { backend, index: 0 },
            name: "A card".into(),
            kind,
            memory: None,
            driver: None,
            pci: "0000:01:00.0".parse().ok(),
        }
    }

    fn idle(backends: Vec<BackendReport>, unused_cards: Vec<BusCard>) -> Vec<String> {
        let processor =
            Processor { name: "A CPU".into(), threads: 8, memory: None, vector_units: vec![] };
        Inventory { backends, links: vec![], unused_cards, processor }.idle_gpus()
    }

    fn card() -> BusCard {
        let pci = "0000:01:00.0".parse().expect("an address");
        BusCard { pci, vendor: "NVIDIA", model: "2684".into(), backend: Backend::Cuda }
    }

    #[test]
    fn a_card_of_the_build_is_named_once_with_its_flag() {
        let found = vec![
            report(Backend::Cuda, true, vec![device(Backend::Cuda, DeviceClass::Discrete)]),
            report(Backend::Vulkan, true, vec![device(Backend::Vulkan, DeviceClass::Discrete)]),
            report(Backend::Cpu, true, vec![device(Backend::Cpu, DeviceClass::Processor)]),
        ];
        let expected = "cuda:0 (A card) is not used: `--backend cuda` trains on it";
        assert_eq!(idle(found, vec![]), [expected]);
        let software = vec![device(Backend::Wgpu, DeviceClass::Software)];
        assert!(idle(vec![report(Backend::Wgpu, true, software)], vec![]).is_empty());
    }

    #[test]
    fn a_card_that_the_build_cannot_use_is_named_with_what_is_missing() {
        let not_built = idle(vec![report(Backend::Cuda, false, vec![])], vec![card()]);
        assert!(not_built[0].contains("--features cuda"), "{not_built:?}");
        let no_driver = idle(vec![report(Backend::Cuda, true, vec![])], vec![card()]);
        assert!(
            no_driver[0].contains("it lists no device; install NVIDIA's driver"),
            "{no_driver:?}"
        );
    }
}
