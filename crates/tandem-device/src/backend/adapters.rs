//! Graphics adapters: every GPU with a driver, and software that stands in for one.
//!
//! In: which graphics interface. Out: [`FoundDevice`]s, hardware first, and open devices. An
//! adapter is asked for its facts without being opened. Part of [`super`], which knows when it
//! is built.

use super::{Backend, DeviceError, DeviceId, MANY_SOFTWARE_ADAPTERS};
use crate::inventory::{DeviceClass, FoundDevice, Processor};
use burn::tensor::wgpu::{WgpuBackend, WgpuSetup, wgpu};
use burn::tensor::{Device, DeviceKind};
use std::sync::LazyLock;
use tandem_units::Bytes;

/// One for the whole program: loaders of graphics drivers do not like them to come and go, and
/// some write a line to the terminal each time they are asked.
static ADAPTERS: LazyLock<Vec<wgpu::Adapter>> =
    LazyLock::new(|| pollster::block_on(INSTANCE.enumerate_adapters(wgpu::Backends::PRIMARY)));

static INSTANCE: LazyLock<wgpu::Instance> = LazyLock::new(|| {
    wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends: wgpu::Backends::PRIMARY,
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    })
});

/// An adapter, and how the tensor library asks for it.
struct Listed {
    adapter: wgpu::Adapter,
    info: wgpu::AdapterInfo,
    way_in: WayIn,
}

/// How the tensor library gets at an adapter.
enum WayIn {
    /// It can ask for it by kind and number.
    Selector(DeviceKind),
    /// It cannot tell it from another one: the adapter itself is handed over.
    Handed,
}

/// The adapters of a backend, in the order of their numbers.
pub(super) fn enumerate(backend: Backend) -> Result<Vec<FoundDevice>, DeviceError> {
    let listed = list(backend);
    if listed.is_empty() {
        let why = "no driver lists a device".to_owned();
        return Err(DeviceError::NoDriver { backend, why });
    }
    let found = listed.iter().enumerate().map(|(index, listed)| FoundDevice {
        id: DeviceId { backend, index },
        name: listed.info.name.clone(),
        kind: class_of(listed.info.device_type),
        memory: memory_of(listed),
        driver: driver_of(&listed.info),
        pci: listed.info.device_pci_bus_id.parse().ok(),
    });
    Ok(found.collect())
}

/// Opens an adapter by its number in [`enumerate`].
pub(super) fn open(id: DeviceId) -> Result<Device, DeviceError> {
    let mut listed = list(id.backend);
    if id.index >= listed.len() {
        return Err(DeviceError::NoSuchDevice { id, found: listed.len() });
    }
    let Listed { adapter, info, way_in } = listed.swap_remove(id.index);
    let refused = |why: String| DeviceError::Open { id, why };
    match way_in {
        WayIn::Selector(kind) => Device::wgpu_options()
            .device_kind(kind)
            .graphics_api(interface_of(info.backend))
            .init()
            .map_err(|error| refused(error.to_string())),
        WayIn::Handed => {
            let setup = set_up(adapter, info.backend).map_err(refused)?;
            let device = Device::wgpu_options().setup(setup).init();
            device.map_err(|error| refused(error.to_string()))
        }
    }
}

/// Hardware first, then software; otherwise as the drivers list them.
fn list(backend: Backend) -> Vec<Listed> {
    let wanted = match backend {
        Backend::Vulkan => wgpu::Backends::VULKAN,
        Backend::Metal => wgpu::Backends::METAL,
        _ => wgpu::Backends::PRIMARY,
    };
    let mut count = [0; 4];
    let mut listed = Vec::new();
    for adapter in ADAPTERS.iter() {
        let info = adapter.get_info();
        if !wanted.contains(info.backend.into()) {
            continue;
        }
        let Some(way_in) = way_into(info.device_type, &mut count) else { continue };
        listed.push(Listed { adapter: adapter.clone(), info, way_in });
    }
    listed.sort_by_key(|listed| class_of(listed.info.device_type) == DeviceClass::Software);
    listed
}

/// The library counts each kind by itself, and knows one software adapter only.
fn way_into(kind: wgpu::DeviceType, count: &mut [usize; 4]) -> Option<WayIn> {
    let mut next = |place: usize| {
        count[place] += 1;
        count[place] - 1
    };
    Some(match kind {
        wgpu::DeviceType::DiscreteGpu => WayIn::Selector(DeviceKind::DiscreteGpu(next(0))),
        wgpu::DeviceType::IntegratedGpu => WayIn::Selector(DeviceKind::IntegratedGpu(next(1))),
        wgpu::DeviceType::VirtualGpu => WayIn::Selector(DeviceKind::VirtualGpu(next(2))),
        wgpu::DeviceType::Cpu => match next(3) {
            0 => WayIn::Selector(DeviceKind::Cpu),
            _ if MANY_SOFTWARE_ADAPTERS => WayIn::Handed,
            _ => return None,
        },
        wgpu::DeviceType::Other if MANY_SOFTWARE_ADAPTERS => WayIn::Handed,
        wgpu::DeviceType::Other => return None,
    })
}

/// The library's own request for a device with kernels in WGSL.
fn set_up(adapter: wgpu::Adapter, backend: wgpu::Backend) -> Result<WgpuSetup, String> {
    let features = adapter.features().difference(wgpu::Features::MAPPABLE_PRIMARY_BUFFERS);
    let request = wgpu::DeviceDescriptor {
        label: None,
        required_features: features,
        required_limits: adapter.limits(),
        memory_hints: wgpu::MemoryHints::MemoryUsage,
        trace: wgpu::Trace::Off,
        // SAFETY: kernels come from the tensor library alone, which asks for the same.
        experimental_features: unsafe { wgpu::ExperimentalFeatures::enabled() },
    };
    let opened = pollster::block_on(adapter.request_device(&request));
    let (device, queue) = opened.map_err(|error| error.to_string())?;
    Ok(WgpuSetup { instance: INSTANCE.clone(), adapter, device, queue, backend })
}

/// The interface an adapter was found through, so that it is opened through the same.
fn interface_of(backend: wgpu::Backend) -> WgpuBackend {
    match backend {
        wgpu::Backend::Vulkan => WgpuBackend::Vulkan,
        wgpu::Backend::Metal => WgpuBackend::Metal,
        wgpu::Backend::Dx12 => WgpuBackend::Dx12,
        wgpu::Backend::Gl => WgpuBackend::Gl,
        _ => WgpuBackend::Auto,
    }
}

fn class_of(kind: wgpu::DeviceType) -> DeviceClass {
    match kind {
        wgpu::DeviceType::DiscreteGpu => DeviceClass::Discrete,
        wgpu::DeviceType::IntegratedGpu => DeviceClass::Integrated,
        wgpu::DeviceType::VirtualGpu => DeviceClass::Virtual,
        wgpu::DeviceType::Cpu => DeviceClass::Software,
        wgpu::DeviceType::Other => DeviceClass::Unknown,
    }
}

fn driver_of(info: &wgpu::AdapterInfo) -> Option<String> {
    let text = format!("{} {}", info.driver, info.driver_info);
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The largest heap that is the device's own. Software has the machine's memory.
fn memory_of(listed: &Listed) -> Option<Bytes> {
    if listed.info.device_type == wgpu::DeviceType::Cpu {
        return Processor::here().memory;
    }
    // SAFETY: the handles are read while the guard lives, and nothing is destroyed.
    unsafe {
        let adapter = listed.adapter.as_hal::<wgpu::hal::api::Vulkan>()?;
        let instance = adapter.shared_instance().raw_instance();
        let memory = instance.get_physical_device_memory_properties(adapter.raw_physical_device());
        let heaps = memory.memory_heaps_as_slice().iter();
        // Bit 0 is VK_MEMORY_HEAP_DEVICE_LOCAL_BIT.
        let own = heaps.filter(|heap| heap.flags.as_raw() & 1 == 1).map(|heap| heap.size);
        own.max().map(Bytes)
    }
}
