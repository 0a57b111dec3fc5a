use super::*;
use tandem_units::Hint;

/// A backend that this build does not have, whichever features it has.
fn not_built() -> Option<Backend> {
    Backend::ALL.into_iter().find(|backend| !backend.is_built())
}

#[test]
fn a_backend_parses_as_it_is_displayed() {
    for backend in Backend::ALL {
        assert_eq!(backend.to_string().parse(), Ok(BackendChoice::Only(backend)));
    }
    assert_eq!("auto".parse(), Ok(BackendChoice::Auto));
    let refused = "cudas".parse::<BackendChoice>().unwrap_err();
    assert!(refused.contains("cuda, rocm, metal, vulkan, wgpu, cpu"), "{refused}");
}

#[test]
fn the_cpu_is_always_available_and_opens_to_the_same_device() {
    assert!(Backend::Cpu.is_built());
    assert_eq!(enumerate(Backend::Cpu).map(|found| found.len()), Ok(1));
    assert_eq!(open(DeviceId::CPU).unwrap(), open(DeviceId::CPU).unwrap());
}

#[test]
fn a_backend_that_is_not_built_is_an_error_with_the_build_command() {
    let Some(backend) = not_built() else { return };
    let error = open(DeviceId { backend, index: 0 }).unwrap_err();
    assert_eq!(error, DeviceError::NotBuilt { backend });
    assert!(error.hint().unwrap().contains(&format!("--features {backend}")), "{error:?}");
    assert_eq!(enumerate(backend), Err(DeviceError::NotBuilt { backend }));
}

#[test]
fn an_invalid_index_is_an_error_and_no_panic() {
    for backend in Backend::ALL.into_iter().filter(|b| b.is_built() && *b != Backend::Cpu) {
        let error = open(DeviceId { backend, index: 4000 }).unwrap_err();
        assert!(
            matches!(error, DeviceError::NoSuchDevice { .. } | DeviceError::NoDriver { .. }),
            "{error:?}"
        );
    }
}

#[test]
fn a_device_id_displays_backend_and_index() {
    assert_eq!(DeviceId::CPU.to_string(), "cpu");
    assert_eq!(DeviceId { backend: Backend::Cuda, index: 3 }.to_string(), "cuda:3");
}

#[test]
fn a_panic_of_a_device_library_names_the_operation() {
    let error = guarded("copying", || -> () { panic!("lost device {}", 1) }).unwrap_err();
    assert_eq!(error.to_string(), "the device failed while copying: lost device 1");
    assert_eq!(guarded("copying", || 5), Ok(5));
}

#[test]
fn what_an_nvidia_machine_lacks_is_named_with_the_way_to_get_it() {
    let searched = vec!["/opt/cuda/nvvm/libdevice/libdevice.10.bc".into()];
    let missing = DeviceError::NoLibdevice { searched };
    let hint = missing.hint().unwrap();
    assert!(missing.to_string().contains("libdevice.10.bc"));
    assert!(hint.contains("pip install nvidia-cuda-nvcc-cu12") && hint.contains("/opt/cuda"));
    let old = DeviceError::OldDriver { found: "11.8".into() };
    assert!(old.to_string().contains("11.8") && old.to_string().contains(OLDEST_CUDA));
    assert!(old.hint().unwrap().contains("525"));
}
