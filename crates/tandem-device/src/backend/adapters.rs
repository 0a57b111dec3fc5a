//! Graphics adapters: GPUs with a Vulkan, Metal or DirectX driver, and software adapters.
//!
//! In: a graphics API. Out: [`FoundDevice`]s, hardware first, and open devices. Adapters are listed without
//! opening them. Part of [`super`], which has the feature checks.

use super::{Backend, DeviceError, DeviceId};
use crate::inventory::{DeviceClass, FoundDevice, Processor};
use burn::tensor::wgpu::{WgpuBackend, WgpuSetup, wgpu};
use burn::tensor::{Device, DeviceKind};
use std::sync::LazyLock;
use tandem_units::Bytes;

/// One list for the whole process: loaders of graphics drivers do not support repeated loading well, and
/// some print a line each time.
static ADAPTERS: LazyLock<Vec<wgpu::Adapter>> =
    LazyLock::new(|| pollster::block_on(INSTANCE.enumerate_adapters(wgpu::Backends::PRIMARY)));

static INSTANCE: LazyLock<wgpu::Instance> = LazyLock::new(|| {
    wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends: wgpu::Backends::PRIMARY,
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    })
});

/// An adapter, and how Burn opens it.
struct Listed {
    adapter: wgpu::Adapter,
    info: wgpu::AdapterInfo,
    open_by: OpenBy,
}

/// How Burn opens an adapter.
enum OpenBy {
    /// By kind and index.
    Selector(DeviceKind),
    /// Burn cannot select it, so this crate opens the adapter itself.
    Adapter,
}

/// The adapters of a backend, in the order of their indices.
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

/// Opens an adapter by its index in [`enumerate`].
pub(super) fn open(id: DeviceId) -> Result<Device, DeviceError> {
    let mut listed = list(id.backend);
    if id.index >= listed.len() {
        return Err(DeviceError::NoSuchDevice { id, found: listed.len() });
    }
    let Listed { adapter, info, open_by } = listed.swap_remove(id.index);
    let refused = |why: String| DeviceError::Open { id, why };
    match open_by {
        OpenBy::Selector(kind) => Device::wgpu_options()
            .device_kind(kind)
            .graphics_api(interface_of(info.backend))
            .init()
            .map_err(|error| refused(error.to_string())),
        OpenBy::Adapter => {
            let setup = set_up(adapter, info.backend).map_err(refused)?;
            let device = Device::wgpu_options().setup(setup).init();
            device.map_err(|error| refused(error.to_string()))
        }
    }
}

/// Hardware first, then software; otherwise in the order of the drivers.
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
        let open_by = open_by(info.device_type, &mut count);
        listed.push(Listed { adapter: adapter.clone(), info, open_by });
    }
    listed.sort_by_key(|listed| class_of(listed.info.device_type) == DeviceClass::Software);
    listed
}

/// Burn counts each kind separately, and supports only one software adapter.
fn open_by(kind: wgpu::DeviceType, count: &mut [usize; 4]) -> OpenBy {
    let mut next = |place: usize| {
        count[place] += 1;
        count[place] - 1
    };
    match kind {
        wgpu::DeviceType::DiscreteGpu => OpenBy::Selector(DeviceKind::DiscreteGpu(next(0))),
        wgpu::DeviceType::IntegratedGpu => OpenBy::Selector(DeviceKind::IntegratedGpu(next(1))),
        wgpu::DeviceType::VirtualGpu => OpenBy::Selector(DeviceKind::VirtualGpu(next(2))),
        wgpu::DeviceType::Cpu => match next(3) {
            0 => OpenBy::Selector(DeviceKind::Cpu),
            _ => OpenBy::Adapter,
        },
        wgpu::DeviceType::Other => OpenBy::Adapter,
    }
}

/// The device request of Burn: for kernels in SPIR-V where they are in the build and the driver has what they
/// need, otherwise for kernels in WGSL.
fn set_up(adapter: wgpu::Adapter, backend: wgpu::Backend) -> Result<WgpuSetup, String> {
    #[cfg(feature = "vulkan")]
    if backend == wgpu::Backend::Vulkan {
        let opened = cubecl_wgpu::vulkan::try_request_vulkan_device(&adapter);
        let opened = pollster::block_on(opened).map_err(|error| error.to_string())?;
        if let Some((device, queue)) = opened {
            return Ok(WgpuSetup { instance: INSTANCE.clone(), adapter, device, queue, backend });
        }
    }
    let features = adapter.features().difference(wgpu::Features::MAPPABLE_PRIMARY_BUFFERS);
    let request = wgpu::DeviceDescriptor {
        label: None,
        required_features: features,
        required_limits: adapter.limits(),
        memory_hints: wgpu::MemoryHints::MemoryUsage,
        trace: wgpu::Trace::Off,
        // SAFETY: kernels come only from Burn, which makes the same request.
        experimental_features: unsafe { wgpu::ExperimentalFeatures::enabled() },
    };
    let opened = pollster::block_on(adapter.request_device(&request));
    let (device, queue) = opened.map_err(|error| error.to_string())?;
    Ok(WgpuSetup { instance: INSTANCE.clone(), adapter, device, queue, backend })
}

/// The graphics API that listed an adapter, so that it is opened through the same one.
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

/// The largest device-local heap; the memory of the machine for software adapters.
fn memory_of(listed: &Listed) -> Option<Bytes> {
    if listed.info.device_type == wgpu::DeviceType::Cpu {
        return Processor::here().memory;
    }
    // SAFETY: the handles are only read while the guard is alive.
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
