//! NVIDIA's GPUs by the driver's own library: no process, and the only one that counts energy.

use inferometer_model::telemetry::DeviceReading;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use super::nvidia::throttle;
use super::reading::{DEVICES_MAX, LookError, share};

/// Opens the library; the look itself finds the devices, for one may fall off the bus.
pub(super) fn open() -> Result<Nvml, LookError> {
    Nvml::init().map_err(|error| {
        // Images of containers have the library where the machine has no GPU.
        let is_absence = matches!(
            error,
            NvmlError::LibloadingError(_) | NvmlError::LibraryNotFound | NvmlError::DriverNotLoaded
        );
        let words = error.to_string();
        if is_absence { LookError::NotThere(words) } else { LookError::Driver(words) }
    })
}

pub(super) fn look(nvml: &Nvml) -> Result<Vec<DeviceReading>, LookError> {
    let failed = |error: NvmlError| LookError::Driver(error.to_string());
    let count = nvml.device_count().map_err(failed)?.min(DEVICES_MAX);
    if count == 0 {
        return Err(LookError::Nothing("NVML"));
    }
    (0..count)
        .map(|index| nvml.device_by_index(index).map(|gpu| reading(index, &gpu)))
        .collect::<Result<_, _>>()
        .map_err(failed)
}

/// What a device does not support is absent.
fn reading(index: u32, device: &Device<'_>) -> DeviceReading {
    let memory = device.memory_info().ok();
    let clock = |of| device.clock_info(of).ok().map(f64::from);
    DeviceReading {
        index,
        use_share: device.utilization_rates().ok().and_then(|rates| share(rates.gpu.into())),
        memory_used_bytes: memory.as_ref().map(|memory| memory.used),
        memory_total_bytes: memory.as_ref().map(|memory| memory.total),
        power_w: device.power_usage().ok().map(|milliwatts| f64::from(milliwatts) / 1e3),
        energy_j: device
            .total_energy_consumption()
            .ok()
            .map(|millijoules| millijoules as f64 / 1e3),
        core_clock_mhz: clock(Clock::SM),
        memory_clock_mhz: clock(Clock::Memory),
        temperature_c: device.temperature(TemperatureSensor::Gpu).ok().map(f64::from),
        throttle: device.current_throttle_reasons().ok().map(|reasons| throttle(reasons.bits())),
        processes: processes(device),
    }
}

fn processes(device: &Device<'_>) -> Option<Vec<u32>> {
    let running = device.running_compute_processes().ok()?;
    let mut processes: Vec<u32> = running.iter().map(|process| process.pid).collect();
    processes.sort_unstable();
    Some(processes)
}
