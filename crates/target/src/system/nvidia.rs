//! GPUs of NVIDIA, by `nvidia-smi`.

use inferometer_model::system::{Gpu, Machine};

use super::tool::said;

const QUERY: &str = "--query-gpu=name,memory.total,power.limit,compute_cap,driver_version";
/// Drivers before compute capabilities could be asked for refuse the whole query.
const QUERY_OLDER: &str = "--query-gpu=name,memory.total,power.limit,driver_version";
const FORMAT: &str = "--format=csv,noheader,nounits";

pub(super) fn add_to(machine: &mut Machine) {
    let Some(found) = list() else { return };
    machine.gpus.extend(found.iter().map(|row| row.gpu.clone()));
    machine.gpu_driver = found.first().and_then(|row| row.driver.clone());
    machine.gpu_runtime = said("nvidia-smi", &[]).as_deref().and_then(cuda);
    if 1 < found.len() {
        machine.interconnect =
            said("nvidia-smi", &["topo", "--matrix"]).as_deref().and_then(interconnect);
    }
}

struct Row {
    gpu: Gpu,
    driver: Option<String>,
}

fn list() -> Option<Vec<Row>> {
    let found = said("nvidia-smi", &[QUERY, FORMAT])
        .map(|text| rows(&text, true))
        .or_else(|| said("nvidia-smi", &[QUERY_OLDER, FORMAT]).map(|text| rows(&text, false)))?;
    (!found.is_empty()).then_some(found)
}

fn rows(csv: &str, has_capability: bool) -> Vec<Row> {
    csv.lines().filter_map(|line| row(line, has_capability)).collect()
}

/// A field that a GPU does not have reads `[N/A]` or `[Not Supported]`.
fn row(line: &str, has_capability: bool) -> Option<Row> {
    let fields: Vec<Option<&str>> = line
        .split(',')
        .map(str::trim)
        .map(|field| (!field.is_empty() && !field.starts_with('[')).then_some(field))
        .collect();
    let (name, memory, power, capability, driver) = match *fields.as_slice() {
        [name, memory, power, capability, driver] if has_capability => {
            (name?, memory, power, capability, driver)
        }
        [name, memory, power, driver] if !has_capability => (name?, memory, power, None, driver),
        _ => return None,
    };
    let mebibytes = memory.and_then(|memory| memory.parse::<u64>().ok());
    let gpu = Gpu {
        name: name.to_owned(),
        architecture: capability.map(|capability| format!("sm_{}", capability.replace('.', ""))),
        memory_bytes: mebibytes.and_then(|mebibytes| mebibytes.checked_mul(1 << 20)),
        power_limit_w: power.and_then(|power| power.parse().ok()),
    };
    Some(Row { gpu, driver: driver.map(str::to_owned) })
}

/// From the banner. Newer drivers say which CUDA they serve at most under another name.
fn cuda(banner: &str) -> Option<String> {
    let version = |name: &str| {
        let after = banner.split_once(name)?.1.trim_start();
        let number = after.split_whitespace().next()?;
        number.starts_with(|first: char| first.is_ascii_digit()).then(|| format!("CUDA {number}"))
    };
    version("CUDA Version:").or_else(|| version("CUDA UMD Version:"))
}

/// All ways between two GPUs that the matrix knows, the nearest first. Other columns are of network
/// cards.
fn interconnect(matrix: &str) -> Option<String> {
    let is_gpu =
        |name: &&str| name.strip_prefix("GPU").is_some_and(|number| number.parse::<u32>().is_ok());
    // A terminal's marks may stand around the heading.
    let heading = matrix.lines().next()?.replace(['\u{1b}', '[', 'm'], " ");
    let count = heading.split_whitespace().filter(|name| is_gpu(name)).count();
    let rows = matrix
        .lines()
        .skip(1)
        .filter(|line| line.split_whitespace().next().is_some_and(|name| is_gpu(&name)));
    let mut ways: Vec<&str> = rows
        .flat_map(|line| line.split_whitespace().skip(1).take(count))
        .filter(|cell| cell.starts_with("NV") || PCIE.contains(cell))
        .collect();
    ways.sort_unstable_by_key(|way| (rank(way), *way));
    ways.dedup();
    let words = ways.iter().map(|way| match way.strip_prefix("NV") {
        Some(links) => format!("NVLink ({links} links)"),
        None => format!("PCIe ({way})"),
    });
    Some(words.collect::<Vec<_>>().join(" and ")).filter(|words| !words.is_empty())
}

const PCIE: [&str; 5] = ["PIX", "PXB", "PHB", "NODE", "SYS"];

fn rank(cell: &str) -> usize {
    PCIE.iter().position(|known| *known == cell).map_or(0, |place| place + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_gpus_is_read_and_gaps_stay_gaps() {
        let csv = "NVIDIA H200, 143771, 700.00, 9.0, 570.86.15\nOld Card, 4096, [N/A], [N/A], 570.86.15\n";
        let found = rows(csv, true);
        let h200 = &found[0].gpu;
        assert_eq!(
            (h200.name.as_str(), h200.architecture.as_deref()),
            ("NVIDIA H200", Some("sm_90"))
        );
        assert_eq!((h200.memory_bytes, h200.power_limit_w), (Some(143_771 << 20), Some(700.0)));
        assert_eq!(found[0].driver.as_deref(), Some("570.86.15"));
        assert_eq!((found[1].gpu.power_limit_w, found[1].gpu.architecture.as_ref()), (None, None));
        assert!(rows("NVIDIA-SMI has failed because it couldn't communicate", true).is_empty());
        assert_eq!(rows("Tesla K80, 11441, 149.00, 418.87", false).len(), 1);
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
