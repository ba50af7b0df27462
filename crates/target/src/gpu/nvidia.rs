//! NVIDIA's GPUs: by `nvidia-smi`, by the driver's own library, and by a DCGM exporter.

use std::collections::BTreeMap;

use inferometer_model::fetch::{Fetch, FetchRequest};
use inferometer_model::system::{Gpu, Machine};
use inferometer_model::telemetry::{DeviceReading, Throttle};
use inferometer_model::whole::to_u64;

use super::{LOOK_LIMIT, Look, LookError, run_tool, share};
use crate::metrics::BODY_BYTES_MAX;
use crate::metrics::reading::{Line, lines};
use crate::system::tool;

const PROGRAM: &str = "nvidia-smi";
const FORMAT: &str = "--format=csv,noheader,nounits";

// Which GPUs the machine has.

const INVENTORY: &str = "--query-gpu=name,memory.total,power.limit,compute_cap,driver_version";
/// Drivers that do not know compute capabilities refuse the whole query.
const INVENTORY_OLDER: &str = "--query-gpu=name,memory.total,power.limit,driver_version";

pub(crate) fn add_to(machine: &mut Machine) {
    let list = |query, has_capability| {
        let table = tool::run(PROGRAM, &[query, FORMAT])?;
        Some(installed_gpus(&table, has_capability))
    };
    let found = list(INVENTORY, true).or_else(|| list(INVENTORY_OLDER, false));
    let found = found.unwrap_or_default();
    let Some((_, driver)) = found.first() else { return };
    machine.gpu_driver.clone_from(driver);
    machine.gpu_runtime = tool::run(PROGRAM, &[]).as_deref().and_then(cuda);
    if 1 < found.len() {
        machine.interconnect =
            tool::run(PROGRAM, &["topo", "--matrix"]).as_deref().and_then(interconnect);
    }
    machine.gpus.extend(found.into_iter().map(|(gpu, _)| gpu));
}

/// The GPUs with their drivers. A field that a GPU does not have reads `[N/A]` or
/// `[Not Supported]`.
fn installed_gpus(csv: &str, has_capability: bool) -> Vec<(Gpu, Option<String>)> {
    let installed = |line: &str| {
        let fields = line.split(',').map(str::trim);
        let fields: Vec<Option<&str>> = fields
            .map(|field| (!field.is_empty() && !field.starts_with('[')).then_some(field))
            .collect();
        let (name, memory, power, capability, driver) = match *fields.as_slice() {
            [name, memory, power, capability, driver] if has_capability => {
                (name?, memory, power, capability, driver)
            }
            [name, memory, power, driver] if !has_capability => {
                (name?, memory, power, None, driver)
            }
            _ => return None,
        };
        let gpu = Gpu {
            name: name.to_owned(),
            architecture: capability.map(|number| format!("sm_{}", number.replace('.', ""))),
            memory_bytes: memory.and_then(|it| it.parse::<u64>().ok()?.checked_mul(1 << 20)),
            power_limit_w: power.and_then(|power| power.parse().ok()),
        };
        Some((gpu, driver.map(str::to_owned)))
    };
    csv.lines().filter_map(installed).collect()
}

/// From the banner. Newer drivers have another name for the highest CUDA version they support.
fn cuda(banner: &str) -> Option<String> {
    let version = |name: &str| {
        let after = banner.split_once(name)?.1.trim_start();
        let number = after.split_whitespace().next()?;
        number.starts_with(|first: char| first.is_ascii_digit()).then(|| format!("CUDA {number}"))
    };
    version("CUDA Version:").or_else(|| version("CUDA UMD Version:"))
}

/// All links between two GPUs in the matrix, the nearest first. The other columns are network cards.
fn interconnect(matrix: &str) -> Option<String> {
    let is_gpu =
        |name: &&str| name.strip_prefix("GPU").is_some_and(|number| number.parse::<u32>().is_ok());
    // The heading may contain terminal escapes.
    let heading = matrix.lines().next()?.replace(['\u{1b}', '[', 'm'], " ");
    let count = heading.split_whitespace().filter(|name| is_gpu(name)).count();
    let rows = matrix
        .lines()
        .skip(1)
        .filter(|line| line.split_whitespace().next().is_some_and(|name| is_gpu(&name)));
    let mut links: Vec<&str> = rows
        .flat_map(|line| line.split_whitespace().skip(1).take(count))
        .filter(|cell| cell.starts_with("NV") || PCIE.contains(cell))
        .collect();
    let rank = |link: &str| PCIE.iter().position(|known| *known == link).map_or(0, |at| at + 1);
    links.sort_unstable_by_key(|link| (rank(link), *link));
    links.dedup();
    let words = links.iter().map(|link| match link.strip_prefix("NV") {
        Some(links) => format!("NVLink ({links} links)"),
        None => format!("PCIe ({link})"),
    });
    Some(words.collect::<Vec<_>>().join(" and ")).filter(|words| !words.is_empty())
}

const PCIE: [&str; 5] = ["PIX", "PXB", "PHB", "NODE", "SYS"];

// What the GPUs do, by `nvidia-smi`: one process per look, where the library cannot be loaded.

const FIELDS: &str = "index,uuid,utilization.gpu,memory.used,memory.total,power.draw,clocks.sm,\
                      clocks.mem,temperature.gpu";
/// The throttle reasons, by the older name and the newer one. A driver refuses a query with a field that
/// it does not know.
const REASONS: [&str; 2] = ["clocks_throttle_reasons.active", "clocks_event_reasons.active"];
const PROCESSES: &str = "--query-compute-apps=gpu_uuid,pid";

/// Repeats the query that this driver accepted.
#[derive(Debug, Default)]
pub(crate) struct NvidiaSmi {
    query: Option<String>,
}

impl NvidiaSmi {
    pub(crate) fn look(&mut self) -> Result<Vec<DeviceReading>, LookError> {
        let table = match &self.query {
            Some(query) => run_tool(PROGRAM, &[query, FORMAT])?,
            None => self.find_query()?,
        };
        let mut rows = rows(&table);
        if rows.is_empty() {
            return Err(LookError::Nothing(PROGRAM));
        }
        if let Ok(list) = run_tool(PROGRAM, &[PROCESSES, FORMAT]) {
            add_processes(&mut rows, &list);
        }
        Ok(rows.into_values().collect())
    }

    fn find_query(&mut self) -> Result<String, LookError> {
        let queries = REASONS.iter().map(|reasons| format!("--query-gpu={FIELDS},{reasons}"));
        let mut last = Err(LookError::Nothing(PROGRAM));
        for query in queries.chain([format!("--query-gpu={FIELDS}")]) {
            last = run_tool(PROGRAM, &[&query, FORMAT]);
            match &last {
                Ok(_) => {
                    self.query = Some(query);
                    break;
                }
                // One that is missing or hangs is not asked again.
                Err(error) if !error.is_refusal() => break,
                Err(_) => {}
            }
        }
        last
    }
}

/// By the identifiers of the devices, which are all that the list of processes has.
type Rows = BTreeMap<(u32, String), DeviceReading>;

/// A field that a GPU does not have reads `[N/A]`, `N/A` or `[Not Supported]`.
fn rows(table: &str) -> Rows {
    let mebibytes = |text: &str| text.parse::<u64>().ok()?.checked_mul(1 << 20);
    let number = |text: &str| text.parse().ok().filter(|it: &f64| it.is_finite() && 0.0 <= *it);
    let hexadecimal = |text: &&str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let [index, uuid, busy, used, total, power, core, memory, heat, ..] = *fields.as_slice()
        else {
            return None;
        };
        let index = index.parse().ok()?;
        let reading = DeviceReading {
            index,
            use_share: number(busy).and_then(share),
            memory_used_bytes: mebibytes(used),
            memory_total_bytes: mebibytes(total),
            power_w: number(power),
            core_clock_mhz: number(core),
            memory_clock_mhz: number(memory),
            temperature_c: number(heat),
            throttle: fields.get(9).and_then(hexadecimal).map(throttle),
            ..DeviceReading::default()
        };
        Some(((index, uuid.to_owned()), reading))
    };
    table.lines().filter_map(row).collect()
}

/// Where there is a list, a device without a line in it has no processes.
fn add_processes(rows: &mut Rows, list: &str) {
    for ((_, uuid), reading) in rows {
        let of_device = |line: &str| {
            let (found, process) = line.split_once(',')?;
            (found.trim() == uuid).then(|| process.trim().parse().ok())?
        };
        let mut processes: Vec<u32> = list.lines().filter_map(of_device).collect();
        processes.sort_unstable();
        reading.processes = Some(processes);
    }
}

/// The driver's bits. Idle, fixed clocks and boost in step with another GPU are not throttling.
pub(crate) fn throttle(reasons: u64) -> Throttle {
    const POWER_CAP: u64 = 0x4;
    const SLOWDOWN: u64 = 0x8;
    const THERMAL: u64 = 0x20 | 0x40;
    const POWER_BRAKE: u64 = 0x80;
    Throttle {
        power: reasons & POWER_CAP != 0,
        thermal: reasons & THERMAL != 0,
        hardware: reasons & (SLOWDOWN | POWER_BRAKE) != 0,
    }
}

/// GPU memory in use over all GPUs, in bytes. The tool prints one line per GPU, in MiB.
pub(crate) fn memory_in_use() -> Option<u64> {
    parse_memory(&tool::run(PROGRAM, &["--query-gpu=memory.used", FORMAT])?)
}

fn parse_memory(text: &str) -> Option<u64> {
    let used: Vec<u64> = text.lines().filter_map(|line| line.trim().parse().ok()).collect();
    (!used.is_empty()).then(|| used.iter().sum::<u64>() << 20)
}

/// The driver's own library: no process, and the only one that counts energy.
#[cfg(feature = "nvml")]
pub(super) mod nvml {
    use inferometer_model::telemetry::DeviceReading;
    use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
    use nvml_wrapper::error::NvmlError;
    use nvml_wrapper::{Device, Nvml};

    use super::super::{DEVICES_MAX, LookError, share};
    use super::throttle;

    /// Opens the library; each look finds the devices again, because one may fail.
    pub(crate) fn open() -> Result<Nvml, LookError> {
        Nvml::init().map_err(|error| {
            // Images of containers have the library where the machine has no GPU.
            let is_absence = matches!(
                error,
                NvmlError::LibloadingError(_)
                    | NvmlError::LibraryNotFound
                    | NvmlError::DriverNotLoaded
            );
            let message = error.to_string();
            if is_absence { LookError::NotThere(message) } else { LookError::Driver(message) }
        })
    }

    pub(crate) fn look(nvml: &Nvml) -> Result<Vec<DeviceReading>, LookError> {
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
        let energy = device.total_energy_consumption().ok();
        let reasons = device.current_throttle_reasons().ok();
        let running = device.running_compute_processes().ok();
        DeviceReading {
            index,
            use_share: device.utilization_rates().ok().and_then(|rates| share(rates.gpu.into())),
            memory_used_bytes: memory.as_ref().map(|memory| memory.used),
            memory_total_bytes: memory.as_ref().map(|memory| memory.total),
            power_w: device.power_usage().ok().map(|milliwatts| f64::from(milliwatts) / 1e3),
            energy_j: energy.map(|millijoules| millijoules as f64 / 1e3),
            core_clock_mhz: clock(Clock::SM),
            memory_clock_mhz: clock(Clock::Memory),
            temperature_c: device.temperature(TemperatureSensor::Gpu).ok().map(f64::from),
            throttle: reasons.map(|reasons| throttle(reasons.bits())),
            processes: running.map(|running| {
                let mut processes: Vec<u32> = running.iter().map(|it| it.pid).collect();
                processes.sort_unstable();
                processes
            }),
        }
    }
}

/// A DCGM exporter, for servers on other machines. A look asks once, on a runtime of its own.
pub(super) fn open_exporter<F: Fetch + 'static>(fetch: F) -> Result<Look, LookError> {
    let failed = |error: std::io::Error| LookError::Exporter(error.to_string());
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let tasks = tokio::task::LocalSet::new();
    Ok(Box::new(move || {
        let request = FetchRequest { path: "/metrics", body_limit: BODY_BYTES_MAX };
        #[expect(
            clippy::disallowed_methods,
            reason = "nothing is measured here, and the module for time-outs is the client's own"
        )]
        let within = async { tokio::time::timeout(LOOK_LIMIT, fetch.fetch(request)).await };
        let failed = LookError::Exporter;
        let reply = tasks
            .block_on(&runtime, within)
            .map_err(|_elapsed| failed(format!("no whole answer within {LOOK_LIMIT:?}")))?
            .map_err(|error| failed(error.to_string()))?;
        if !(200..300).contains(&reply.status) {
            return Err(failed(format!("HTTP {}", reply.status)));
        }
        let found = exporter_devices(&String::from_utf8_lossy(&reply.body));
        if found.is_empty() { Err(LookError::Nothing("the exporter")) } else { Ok(found) }
    }))
}

/// In the order of their numbers. Slices of a GPU and the containers on it repeat what the whole GPU
/// reports, in any order, so the largest value is taken.
fn exporter_devices(text: &str) -> Vec<DeviceReading> {
    let mut values: BTreeMap<u32, BTreeMap<&str, f64>> = BTreeMap::new();
    for line in lines(text) {
        let Line::Series(series) = line else { continue };
        let name = series.name.strip_prefix("DCGM_FI_DEV_");
        let index = series.label("gpu").and_then(|gpu| gpu.parse().ok());
        let Some((index, name)) = index.zip(name) else { continue };
        // Series of a slice are ignored: its use and memory are not the GPU's.
        let is_slice = series.label("GPU_I_ID").is_some_and(|slice| !slice.is_empty());
        if is_slice || !series.value.is_finite() || series.value < 0.0 {
            continue;
        }
        let value = values.entry(index).or_default().entry(name).or_insert(series.value);
        *value = value.max(series.value);
    }
    values.into_iter().map(|(index, values)| exporter_reading(index, &values)).collect()
}

/// A device's reading from its metrics, by their names without the common prefix.
fn exporter_reading(index: u32, values: &BTreeMap<&str, f64>) -> DeviceReading {
    let get = |name| values.get(name).copied();
    let used = get("FB_USED");
    let sum = || Some(used? + get("FB_FREE")? + get("FB_RESERVED").unwrap_or(0.0));
    let reasons = [get("CLOCK_THROTTLE_REASONS"), get("CLOCKS_EVENT_REASONS")];
    DeviceReading {
        index,
        use_share: get("GPU_UTIL").and_then(share),
        memory_used_bytes: used.and_then(mebibytes),
        memory_total_bytes: get("FB_TOTAL").or_else(sum).and_then(mebibytes),
        power_w: get("POWER_USAGE"),
        energy_j: get("TOTAL_ENERGY_CONSUMPTION").map(|millijoules| millijoules / 1e3),
        core_clock_mhz: get("SM_CLOCK"),
        memory_clock_mhz: get("MEM_CLOCK"),
        temperature_c: get("GPU_TEMP"),
        throttle: reasons.into_iter().flatten().reduce(f64::max).and_then(whole).map(throttle),
        processes: None,
    }
}

fn mebibytes(number: f64) -> Option<u64> {
    whole(number)?.checked_mul(1 << 20)
}

fn whole(number: f64) -> Option<u64> {
    const MAX: f64 = 1e15;
    (0.0..=MAX).contains(&number).then(|| to_u64(number.round()))
}

#[cfg(test)]
mod live_tests {
    use super::*;

    #[test]
    fn memory_is_summed_over_gpus_and_silence_is_none() {
        assert_eq!(parse_memory("1024\n 2\n"), Some(1026 << 20));
        assert_eq!(parse_memory("[N/A]\n"), None);
    }

    const TABLE: &str = "\
0, GPU-aa, 97, 81000, 143771, 688.52, 1755, 3201, 64, 0x0000000000000004
1, GPU-bb, 0, 4, 143771, 75.10, 345, 3201, 31, 0x0000000000000001
";

    #[test]
    fn a_table_is_read_with_its_processes() {
        let mut found = rows(TABLE);
        add_processes(&mut found, "GPU-aa, 4242\nGPU-aa, 17\nGPU-cc, 5\n[N/A]\n");
        let [busy, idle]: [DeviceReading; 2] =
            found.into_values().collect::<Vec<_>>().try_into().unwrap();
        assert_eq!((busy.index, busy.use_share, busy.power_w), (0, Some(0.97), Some(688.52)));
        assert_eq!(busy.memory_used_bytes, Some(81_000 << 20));
        assert_eq!((busy.core_clock_mhz, busy.memory_clock_mhz), (Some(1755.0), Some(3201.0)));
        assert_eq!((busy.temperature_c, busy.energy_j), (Some(64.0), None));
        let held = Throttle { power: true, ..Throttle::default() };
        assert_eq!((busy.throttle, busy.processes), (Some(held), Some(vec![17, 4242])));
        assert_eq!((idle.throttle, idle.processes), (Some(Throttle::default()), Some(vec![])));
    }

    #[test]
    fn what_a_card_does_not_tell_stays_unknown() {
        let old = "0, GPU-aa, [N/A], 900, 4096, [Not Supported], 540, N/A, 51\n";
        let found = rows(old).into_values().next().unwrap();
        assert_eq!((found.use_share, found.power_w, found.memory_clock_mhz), (None, None, None));
        assert_eq!((found.throttle, found.processes), (None, None));
        assert_eq!(found.temperature_c, Some(51.0));
        assert!(rows("No devices were found\n").is_empty());
        let odd = rows("0, u, 250, 99999999999999999999, 1, -5, NaN, inf, 1, 0xzz\n");
        let odd = odd.into_values().next().unwrap();
        assert_eq!((odd.use_share, odd.memory_used_bytes), (None, None));
        assert_eq!((odd.power_w, odd.core_clock_mhz, odd.throttle), (None, None, None));
    }

    #[test]
    fn the_drivers_bits_are_told_apart() {
        assert_eq!(throttle(0x1 | 0x2 | 0x10 | 0x100), Throttle::default());
        let hot = throttle(0x40 | 0x8);
        assert!(hot.thermal && hot.hardware && !hot.power);
        assert!(throttle(0x20).thermal && throttle(0x80).hardware);
    }
}

#[cfg(test)]
mod inventory_tests {
    use super::*;

    #[test]
    fn a_list_of_gpus_is_read_and_gaps_stay_gaps() {
        let csv = "NVIDIA H200, 143771, 700.00, 9.0, 570.86.15\nOld Card, 4096, [N/A], [N/A], 570.86.15\n";
        let found = installed_gpus(csv, true);
        let h200 = &found[0].0;
        assert_eq!(
            (h200.name.as_str(), h200.architecture.as_deref()),
            ("NVIDIA H200", Some("sm_90"))
        );
        assert_eq!((h200.memory_bytes, h200.power_limit_w), (Some(143_771 << 20), Some(700.0)));
        assert_eq!(found[0].1.as_deref(), Some("570.86.15"));
        assert_eq!((found[1].0.power_limit_w, found[1].0.architecture.as_ref()), (None, None));
        assert!(
            installed_gpus("NVIDIA-SMI has failed because it couldn't communicate", true)
                .is_empty()
        );
        assert_eq!(installed_gpus("Tesla K80, 11441, 149.00, 418.87", false).len(), 1);
    }

    #[test]
    fn cuda_is_what_the_banner_says() {
        let banner = "| NVIDIA-SMI 570.86.15  Driver Version: 570.86.15  CUDA Version: 12.8 |";
        assert_eq!(cuda(banner).as_deref(), Some("CUDA 12.8"));
        assert_eq!(cuda("| CUDA Version: N/A |"), None);
    }

    #[test]
    fn the_ways_between_gpus_are_named() {
        let linked = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV18\t0-15\nGPU1\tNV18\t X \t0-15\n";
        assert_eq!(interconnect(linked).as_deref(), Some("NVLink (18 links)"));
        let board = "\tGPU0\tGPU1\nGPU0\tX\tPHB\t0-7\nGPU1\tPHB\tX\t0-7\n";
        assert_eq!(interconnect(board).as_deref(), Some("PCIe (PHB)"));
        let pairs = "\u{1b}[4mGPU0\tGPU1\tGPU2\tNIC0\u{1b}[0m\nGPU0\tX\tNV4\tSYS\tPIX\nGPU1\tNV4\tX\tSYS\tSYS\n";
        assert_eq!(interconnect(pairs).as_deref(), Some("NVLink (4 links) and PCIe (SYS)"));
        assert_eq!(interconnect("no GPUs"), None);
    }
}

#[cfg(test)]
mod exporter_tests {
    use inferometer_model::fetch::{FetchError, FetchReply};
    use inferometer_model::telemetry::Throttle;

    use super::*;

    const TEXT: &str = r#"# HELP DCGM_FI_DEV_SM_CLOCK SM clock frequency (in MHz).
# TYPE DCGM_FI_DEV_SM_CLOCK gauge
DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-aa",device="nvidia0",modelName="NVIDIA H200",Hostname="n1"} 1755
DCGM_FI_DEV_MEM_CLOCK{gpu="0",UUID="GPU-aa",device="nvidia0"} 3201
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-aa"} 64
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-aa"} 688.5
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="0",UUID="GPU-aa"} 123456
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-aa",pod="a"} 97
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-aa",pod="b"} 97
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-aa",GPU_I_PROFILE="1g.18gb",GPU_I_ID="7"} 99
DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-aa"} 62000
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-aa"} 81000
DCGM_FI_DEV_FB_RESERVED{gpu="0",UUID="GPU-aa"} 771
DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{gpu="0",UUID="GPU-aa"} 4
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-bb"} NaN
DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="GPU-bb"} 30
"#;

    #[test]
    fn an_exporters_devices_are_read() {
        let [busy, idle]: [DeviceReading; 2] = exporter_devices(TEXT).try_into().unwrap();
        assert_eq!((busy.index, busy.use_share, busy.power_w), (0, Some(0.97), Some(688.5)));
        assert_eq!(busy.memory_used_bytes, Some(81_000 << 20));
        assert_eq!(busy.memory_total_bytes, Some(143_771 << 20));
        assert_eq!((busy.energy_j, busy.temperature_c), (Some(123.456), Some(64.0)));
        assert_eq!(busy.throttle, Some(Throttle { power: true, ..Throttle::default() }));
        assert_eq!((idle.use_share, idle.temperature_c), (None, Some(30.0)));
        assert!(exporter_devices("go_goroutines 12\n").is_empty());
    }

    struct Canned(u16, &'static str);

    impl Fetch for Canned {
        async fn fetch(&self, _request: FetchRequest<'_>) -> Result<FetchReply, FetchError> {
            Ok(FetchReply { status: self.0, content_type: None, body: self.1.as_bytes().to_vec() })
        }
    }

    #[test]
    fn an_exporter_that_does_not_tell_says_why() {
        assert_eq!(open_exporter(Canned(200, TEXT)).unwrap()().unwrap().len(), 2);
        let error =
            |status, body| open_exporter(Canned(status, body)).unwrap()().unwrap_err().to_string();
        assert_eq!(error(404, ""), "the exporter: HTTP 404");
        assert_eq!(error(200, "<html>"), "the exporter names no GPU that can be read");
    }
}
