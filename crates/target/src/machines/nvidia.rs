//! NVIDIA's GPUs by `nvidia-smi`: a process a look, where the driver's library cannot be loaded.

use std::collections::BTreeMap;

use inferometer_model::telemetry::{DeviceReading, Throttle};

use super::reading::{LookError, said, share};

pub(super) const PROGRAM: &str = "nvidia-smi";
const FORMAT: &str = "--format=csv,noheader,nounits";
const FIELDS: &str = "index,uuid,utilization.gpu,memory.used,memory.total,power.draw,clocks.sm,\
                      clocks.mem,temperature.gpu";
/// What holds a GPU back, by the older name and the newer one. A driver refuses a query of which it
/// does not know a field.
const REASONS: [&str; 2] = ["clocks_throttle_reasons.active", "clocks_event_reasons.active"];
const PROCESSES: &str = "--query-compute-apps=gpu_uuid,pid";

/// Asks in the words that this driver understood the last time.
#[derive(Debug, Default)]
pub(super) struct NvidiaSmi {
    query: Option<String>,
}

impl NvidiaSmi {
    pub(super) fn look(&mut self) -> Result<Vec<DeviceReading>, LookError> {
        let table = match &self.query {
            Some(query) => said(PROGRAM, &[query, FORMAT])?,
            None => self.find_words()?,
        };
        let mut rows = rows(&table);
        if rows.is_empty() {
            return Err(LookError::Nothing(PROGRAM));
        }
        if let Ok(list) = said(PROGRAM, &[PROCESSES, FORMAT]) {
            add_processes(&mut rows, &list);
        }
        Ok(rows.into_values().collect())
    }

    fn find_words(&mut self) -> Result<String, LookError> {
        let asked = REASONS.iter().map(|reasons| format!("--query-gpu={FIELDS},{reasons}"));
        let mut last = Err(LookError::Nothing(PROGRAM));
        for query in asked.chain([format!("--query-gpu={FIELDS}")]) {
            last = said(PROGRAM, &[&query, FORMAT]);
            match &last {
                Ok(_) => {
                    self.query = Some(query);
                    break;
                }
                // One that is not there or hangs is not asked in other words.
                Err(error) if !error.is_refusal() => break,
                Err(_) => {}
            }
        }
        last
    }
}

/// By the identifiers of the devices, which are all that the list of processes has.
type Rows = BTreeMap<(u32, String), DeviceReading>;

fn rows(table: &str) -> Rows {
    table.lines().filter_map(row).collect()
}

/// A field that a GPU does not have reads `[N/A]`, `N/A` or `[Not Supported]`.
fn row(line: &str) -> Option<((u32, String), DeviceReading)> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let [index, uuid, busy, used, total, power, core, memory, temperature, ..] = *fields.as_slice()
    else {
        return None;
    };
    let index = index.parse().ok()?;
    let mebibytes = |text: &str| text.parse::<u64>().ok()?.checked_mul(1 << 20);
    let reading = DeviceReading {
        index,
        use_share: number(busy).and_then(share),
        memory_used_bytes: mebibytes(used),
        memory_total_bytes: mebibytes(total),
        power_w: number(power),
        energy_j: None,
        core_clock_mhz: number(core),
        memory_clock_mhz: number(memory),
        temperature_c: number(temperature),
        throttle: fields.get(9).and_then(|mask| hexadecimal(mask)).map(throttle),
        processes: None,
    };
    Some(((index, uuid.to_owned()), reading))
}

/// A list that could be asked for is known to be empty where a device has no line in it.
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

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite() && 0.0 <= *number)
}

fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// The driver's bits. Idle, set clocks and boost in step with another GPU are nobody's fault.
pub(super) fn throttle(reasons: u64) -> Throttle {
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

#[cfg(test)]
mod tests {
    use super::*;

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
