//! AMD's GPUs: by `amd-smi`, by the older `rocm-smi`, and by the driver's own files.

use std::collections::BTreeSet;
use std::fs;

use inferometer_model::system::{Gpu, Machine};
use inferometer_model::telemetry::{DeviceReading, Throttle};
use inferometer_model::whole::to_u64;
use serde_json::{Map, Value};

use super::{LookError, run_tool, share};
use crate::system::tool;

const AMD_SMI: &str = "amd-smi";
const ROCM_SMI: &str = "rocm-smi";

/// Some versions print warnings before the document.
fn document(text: &str) -> Option<Value> {
    let begin = text.lines().position(|line| line.trim_start().starts_with(['{', '[']))?;
    let lines: Vec<&str> = text.lines().skip(begin).collect();
    serde_json::from_str(&lines.join("\n")).ok()
}

/// A list of GPUs, in newer versions below `gpu_data`.
fn gpus(text: &str) -> Vec<Value> {
    let document = document(text).unwrap_or_default();
    document.get("gpu_data").unwrap_or(&document).as_array().cloned().unwrap_or_default()
}

/// `{"card0": {…}, …, "system": {…}}`, in the order of the cards' numbers.
fn cards(text: &str) -> Vec<(u32, Map<String, Value>)> {
    let Some(Value::Object(document)) = document(text) else { return Vec::new() };
    let card = |(name, card): (String, Value)| {
        let Value::Object(card) = card else { return None };
        Some((name.strip_prefix("card")?.parse().ok()?, card))
    };
    let mut cards: Vec<(u32, Map<String, Value>)> = document.into_iter().filter_map(card).collect();
    cards.sort_by_key(|(number, _)| *number);
    cards
}

/// `{"value": 192, "unit": "GB"}`, a number, or a number as text, with or without a unit; `"N/A"` is
/// none of them.
fn quantity(value: &Value) -> Option<f64> {
    let value = value.get("value").unwrap_or(value);
    let number = value.as_f64().or_else(|| value.as_str()?.split_whitespace().next()?.parse().ok());
    number.filter(|number| number.is_finite() && 0.0 <= *number)
}

/// Bytes. The tool writes `MB` and means mebibytes, which are also meant where it gives no unit.
fn bytes(value: &Value) -> Option<u64> {
    let size = quantity(value).filter(|size| *size <= 1e9)?;
    let after_number = || value.as_str()?.split_whitespace().nth(1);
    let unit = value.get("unit").and_then(Value::as_str).or_else(after_number).unwrap_or("MB");
    let factor = if unit.starts_with('G') { 1_u64 << 30 } else { 1 << 20 };
    Some(to_u64((size * factor as f64).round()))
}

// Which GPUs the machine has.

pub(crate) fn add_to(machine: &mut Machine) {
    let by_amd_smi =
        || tool::run(AMD_SMI, &["static", "--json"]).map(|text| amd_smi_inventory(&text));
    let by_rocm_smi = || {
        let asked = ["--showproductname", "--showmeminfo", "vram", "--showmaxpower", "--json"];
        tool::run(ROCM_SMI, &asked).map(|text| rocm_smi_inventory(&text))
    };
    let found = by_amd_smi().filter(|gpus| !gpus.is_empty()).or_else(by_rocm_smi);
    let Some(gpus) = found.filter(|gpus| !gpus.is_empty()) else { return };
    machine.gpus.extend(gpus);
    let read = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let has_text = |text: &String| !text.is_empty();
    let driver = read("/sys/module/amdgpu/version").filter(has_text);
    let runtime = read("/opt/rocm/.info/version")
        .filter(has_text)
        .map(|version| format!("ROCm {}", version.split('-').next().unwrap_or(&version)));
    // GPUs that are joined directly have a hive in common.
    let cards = fs::read_dir("/sys/class/drm").into_iter().flatten().flatten();
    let hives = cards.filter_map(|card| {
        let path = card.path().join("device/xgmi_hive_info/xgmi_hive_id");
        let number: u64 = fs::read_to_string(path).ok()?.trim().parse().ok()?;
        (0 < number).then(|| format!("{number:#x}"))
    });
    let hives: Vec<String> = hives.collect::<BTreeSet<_>>().into_iter().collect();
    let links = (!hives.is_empty()).then(|| format!("xGMI (hive {})", hives.join(", ")));
    add(&mut machine.gpu_driver, driver);
    add(&mut machine.gpu_runtime, runtime);
    add(&mut machine.interconnect, links);
}

/// Adds to what another vendor's tools reported.
fn add(known: &mut Option<String>, more: Option<String>) {
    *known = match (known.take(), more) {
        (Some(known), Some(more)) => Some(format!("{known}; {more}")),
        (known, more) => known.or(more),
    };
}

fn amd_smi_inventory(json: &str) -> Vec<Gpu> {
    let limits =
        ["/limit/max_power", "/limit/socket_power_limit", "/limit/ppt0/socket_power_limit"];
    let installed = |gpu: &Value| {
        let text = |pointer: &str| gpu.pointer(pointer).and_then(Value::as_str).and_then(known);
        Some(Gpu {
            // The market name is that of the chip; the board has the one on the box.
            name: text("/board/product_name").or_else(|| text("/asic/market_name"))?,
            architecture: text("/asic/target_graphics_version").filter(|it| it.starts_with("gfx")),
            memory_bytes: gpu.pointer("/vram/size").and_then(bytes),
            power_limit_w: limits.iter().find_map(|limit| quantity(gpu.pointer(limit)?)),
        })
    };
    gpus(json).iter().filter_map(installed).collect()
}

/// The names of the fields changed their case over time.
fn rocm_smi_inventory(json: &str) -> Vec<Gpu> {
    let installed = |(_, card): &(u32, Map<String, Value>)| {
        let text = |name: &str| {
            let found = card.iter().find(|(key, _)| key.eq_ignore_ascii_case(name))?;
            known(found.1.as_str()?)
        };
        let power = text("Max Graphics Package Power (W)");
        Some(Gpu {
            name: text("Card Series").or_else(|| text("Device Name"))?,
            architecture: text("GFX Version").filter(|name| name.starts_with("gfx")),
            memory_bytes: text("VRAM Total Memory (B)").and_then(|bytes| bytes.parse().ok()),
            power_limit_w: power.and_then(|watts| watts.parse().ok()),
        })
    };
    cards(json).iter().filter_map(installed).collect()
}

fn known(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty() && text != "N/A").then(|| text.to_owned())
}

// What the GPUs do.

pub(super) fn look_amd_smi() -> Result<Vec<DeviceReading>, LookError> {
    let mut found = amd_smi_readings(&run_tool(AMD_SMI, &["metric", "--json"])?);
    if found.is_empty() {
        return Err(LookError::Nothing(AMD_SMI));
    }
    if let Ok(list) = run_tool(AMD_SMI, &["process", "--json"]) {
        add_processes(&mut found, &list);
    }
    Ok(found)
}

pub(super) fn look_rocm_smi() -> Result<Vec<DeviceReading>, LookError> {
    let flags = "--showuse --showmeminfo vram --showpower --showclocks --showtemp \
                 --showenergycounter --json";
    let flags: Vec<&str> = flags.split(' ').collect();
    let found = rocm_smi_readings(&run_tool(ROCM_SMI, &flags)?);
    if found.is_empty() { Err(LookError::Nothing(ROCM_SMI)) } else { Ok(found) }
}

fn amd_smi_readings(json: &str) -> Vec<DeviceReading> {
    let of_gpu = |gpu: &Value| {
        let get = |pointer: &str| quantity(gpu.pointer(pointer)?);
        let first = |pointers: &[&str]| pointers.iter().find_map(|pointer| get(pointer));
        Some(DeviceReading {
            index: index(gpu)?,
            use_share: get("/usage/gfx_activity").and_then(share),
            memory_used_bytes: gpu.pointer("/mem_usage/used_vram").and_then(bytes),
            memory_total_bytes: gpu.pointer("/mem_usage/total_vram").and_then(bytes),
            power_w: first(&["/power/socket_power", "/power/average_socket_power"]),
            energy_j: get("/energy/total_energy_consumption"),
            core_clock_mhz: first(&["/clock/gfx_0/clk", "/clock/gfx_0/cur_clk"]),
            memory_clock_mhz: first(&["/clock/mem_0/clk", "/clock/mem_0/cur_clk"]),
            // The hottest point of the chip; some have no sensor at its edge.
            temperature_c: first(&["/temperature/hotspot", "/temperature/edge"]),
            throttle: throttle(gpu),
            processes: None,
        })
    };
    gpus(json).iter().filter_map(of_gpu).collect()
}

fn index(gpu: &Value) -> Option<u32> {
    u32::try_from(gpu.get("gpu")?.as_u64()?).ok()
}

/// Newer versions name the limits that are violated now; older ones only report that none is.
fn throttle(gpu: &Value) -> Option<Throttle> {
    const THERMAL: [&str; 3] = ["socket_thermal", "vr_thermal", "hbm_thermal"];
    let state = |name: &str| gpu.pointer(&format!("/throttle/{name}_violation_status"))?.as_str();
    let is_active = |name: &str| state(name) == Some("ACTIVE");
    let is_reported = |name: &&str| state(name).is_some_and(|state| state != "N/A");
    if ["ppt", "prochot"].iter().chain(&THERMAL).any(is_reported) {
        return Some(Throttle {
            power: is_active("ppt"),
            thermal: THERMAL.into_iter().any(is_active),
            hardware: is_active("prochot"),
        });
    }
    let status = gpu.pointer("/power/throttle_status")?.as_str()?;
    (status == "UNTHROTTLED").then(Throttle::default)
}

/// For a GPU without processes the list has a sentence in their place.
fn add_processes(found: &mut [DeviceReading], json: &str) {
    for gpu in gpus(json) {
        let device = index(&gpu).and_then(|index| found.iter_mut().find(|it| it.index == index));
        let (Some(device), Some(list)) =
            (device, gpu.get("process_list").and_then(Value::as_array))
        else {
            continue;
        };
        let process = |entry: &Value| {
            let id = entry.get("process_info").unwrap_or(entry).get("pid")?.as_u64()?;
            u32::try_from(id).ok()
        };
        let mut processes: Vec<u32> = list.iter().filter_map(process).collect();
        processes.sort_unstable();
        device.processes = Some(processes);
    }
}

fn rocm_smi_readings(json: &str) -> Vec<DeviceReading> {
    let power = ["Current Socket Graphics Package Power (W)", "Average Graphics Package Power (W)"];
    let heat = ["Temperature (Sensor junction) (C)", "Temperature (Sensor edge) (C)"];
    let reading = |(index, card): &(u32, Map<String, Value>)| {
        let get = |name: &str| quantity(card.get(name)?);
        // Written `(1700Mhz)`.
        let clock = |name: &str| {
            let text = card.get(name)?.as_str()?.trim_matches(['(', ')']).to_ascii_lowercase();
            text.strip_suffix("mhz")?.trim().parse().ok()
        };
        DeviceReading {
            index: *index,
            use_share: get("GPU use (%)").and_then(share),
            memory_used_bytes: card_bytes(card, VRAM_USED),
            memory_total_bytes: card_bytes(card, "VRAM Total Memory (B)"),
            power_w: power.into_iter().find_map(get),
            energy_j: get("Accumulated Energy (uJ)").map(|microjoules| microjoules / 1e6),
            core_clock_mhz: clock("sclk clock speed:"),
            memory_clock_mhz: clock("mclk clock speed:"),
            temperature_c: heat.into_iter().find_map(get),
            ..DeviceReading::default()
        }
    };
    cards(json).iter().map(reading).collect()
}

const VRAM_USED: &str = "VRAM Total Used Memory (B)";

fn card_bytes(card: &Map<String, Value>, name: &str) -> Option<u64> {
    let value = card.get(name)?;
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
}

/// GPU memory in use over all GPUs, in bytes.
pub(crate) fn memory_in_use() -> Option<u64> {
    parse_memory(&tool::run(ROCM_SMI, &["--showmeminfo", "vram", "--json"])?)
}

fn parse_memory(text: &str) -> Option<u64> {
    let cards = cards(text);
    let used: Vec<u64> = cards.iter().filter_map(|(_, card)| card_bytes(card, VRAM_USED)).collect();
    (!used.is_empty()).then(|| used.iter().sum())
}

#[cfg(test)]
mod live_tests {
    use super::*;

    #[test]
    fn memory_is_summed_over_gpus_and_silence_is_none() {
        let rocm = r#"WARNING: x
            {"card0": {"VRAM Total Memory (B)": "9", "VRAM Total Used Memory (B)": "7"},
             "card1": {"VRAM Total Used Memory (B)": 5}, "system": {}}"#;
        assert_eq!(parse_memory(rocm), Some(12));
        assert_eq!(parse_memory("no GPU"), None);
    }

    const MI300X: &str = r#"{"gpu": 0,
        "usage": {"gfx_activity": {"value": 87, "unit": "%"}, "umc_activity": {"value": 41, "unit": "%"}},
        "power": {"socket_power": {"value": 542, "unit": "W"}, "throttle_status": "N/A"},
        "clock": {"gfx_0": {"clk": {"value": 2103, "unit": "MHz"}, "max_clk": {"value": 2100, "unit": "MHz"}},
                  "mem_0": {"clk": {"value": 1300, "unit": "MHz"}}},
        "temperature": {"edge": "N/A", "hotspot": {"value": 71, "unit": "C"}, "mem": {"value": 58, "unit": "C"}},
        "energy": {"total_energy_consumption": {"value": 123456.789, "unit": "J"}},
        "mem_usage": {"total_vram": {"value": 196592, "unit": "MB"}, "used_vram": {"value": 121344, "unit": "MB"}},
        "throttle": {"ppt_violation_status": "ACTIVE", "socket_thermal_violation_status": "NOT ACTIVE",
                     "prochot_violation_status": "NOT ACTIVE", "hbm_thermal_violation_status": "N/A"}}"#;

    #[test]
    fn both_forms_of_amd_smi_are_read() {
        let forms = [
            format!("WARNING: User is missing a group\n[{MI300X}]"),
            format!("{{\"gpu_data\": [{MI300X}]}}"),
        ];
        for text in forms {
            let [found] = amd_smi_readings(&text).try_into().unwrap();
            assert_eq!((found.use_share, found.power_w), (Some(0.87), Some(542.0)));
            assert_eq!(found.memory_used_bytes, Some(121_344 << 20));
            assert_eq!(found.memory_total_bytes, Some(196_592 << 20));
            assert_eq!(
                (found.core_clock_mhz, found.memory_clock_mhz),
                (Some(2103.0), Some(1300.0))
            );
            assert_eq!((found.temperature_c, found.energy_j), (Some(71.0), Some(123_456.789)));
            assert_eq!(found.throttle, Some(Throttle { power: true, ..Throttle::default() }));
        }
    }

    #[test]
    fn what_amd_smi_does_not_tell_stays_unknown() {
        let bare = r#"[{"gpu": 3, "usage": "N/A", "power": {"socket_power": "N/A",
            "throttle_status": "UNTHROTTLED"}, "mem_usage": {"used_vram": {"value": -1}}}]"#;
        let [found] = amd_smi_readings(bare).try_into().unwrap();
        let nothing = DeviceReading { index: 3, ..DeviceReading::default() };
        assert_eq!(found, DeviceReading { throttle: Some(Throttle::default()), ..nothing });
        assert!(amd_smi_readings("ERROR: no device").is_empty());
        assert!(amd_smi_readings("[1, \"x\", {}]").is_empty());
    }

    #[test]
    fn processes_are_those_of_each_gpu() {
        let reading = |index| DeviceReading { index, ..DeviceReading::default() };
        let mut found = [reading(0), reading(1), reading(2)];
        let list = r#"[{"gpu": 0, "process_list": [{"process_info": {"name": "python3", "pid": 4242}},
            {"process_info": {"pid": 7}}]},
            {"gpu": 1, "process_list": [{"process_info": "No running processes detected"}]}]"#;
        add_processes(&mut found, list);
        let [first, second, third] = found.map(|device| device.processes);
        assert_eq!((first, second, third), (Some(vec![7, 4242]), Some(vec![]), None));
    }

    #[test]
    fn cards_of_rocm_smi_are_read() {
        let text = r#"WARNING: AMD GPU device(s) is/are in a low-power state.
{"card1": {"GPU use (%)": "37", "VRAM Total Memory (B)": "68702699520",
  "VRAM Total Used Memory (B)": "34351349760", "Average Graphics Package Power (W)": "210.0",
  "Temperature (Sensor edge) (C)": "44.0", "Temperature (Sensor junction) (C)": "61.0",
  "sclk clock speed:": "(1700Mhz)", "sclk clock level:": "1", "mclk clock speed:": "(1600Mhz)",
  "Energy counter": "12", "Accumulated Energy (uJ)": "5000000.0"},
 "system": {"Driver version": "6.8"}}"#;
        let [found] = rocm_smi_readings(text).try_into().unwrap();
        assert_eq!((found.index, found.use_share, found.power_w), (1, Some(0.37), Some(210.0)));
        assert_eq!(found.memory_used_bytes, Some(34_351_349_760));
        assert_eq!((found.core_clock_mhz, found.memory_clock_mhz), (Some(1700.0), Some(1600.0)));
        assert_eq!((found.temperature_c, found.energy_j), (Some(61.0), Some(5.0)));
        assert!(rocm_smi_readings("not json").is_empty());
    }
}

#[cfg(test)]
mod inventory_tests {
    use super::*;

    #[test]
    fn both_forms_of_amd_smi_are_read() {
        let gpu = r#"{"gpu": 0, "asic": {"market_name": "Aqua Vanjaram", "target_graphics_version":
            "gfx942"}, "board": {"product_name": "AMD Instinct MI300X"}, "vram": {"size": {"value":
            196592, "unit": "MB"}}, "limit": {"max_power": {"value": 750, "unit": "W"}}}"#;
        for document in [format!("[{gpu}]"), format!("{{\"gpu_data\": [{gpu}]}}")] {
            let [found] = amd_smi_inventory(&document).try_into().unwrap();
            let Gpu { name, architecture, memory_bytes, power_limit_w } = found;
            assert_eq!(
                (name.as_str(), architecture.as_deref()),
                ("AMD Instinct MI300X", Some("gfx942"))
            );
            assert_eq!((memory_bytes, power_limit_w), (Some(196_592 << 20), Some(750.0)));
        }
        let bare = r#"[{"asic": {"market_name": "N/A"}}, {"asic": {"market_name": "X"}, "vram": {"size": "N/A"}}]"#;
        let found = amd_smi_inventory(bare);
        assert_eq!((found.len(), found[0].memory_bytes), (1, None));
        assert!(amd_smi_inventory("not json").is_empty());
        assert_eq!(bytes(&"192 GB".into()), Some(192 << 30));
        assert_eq!(bytes(&"196592".into()), Some(196_592 << 20));
    }

    #[test]
    fn what_another_vendor_said_stays() {
        let mut driver = Some("570.86".to_owned());
        add(&mut driver, None);
        assert_eq!(driver.as_deref(), Some("570.86"));
        add(&mut driver, Some("6.16".to_owned()));
        assert_eq!(driver.as_deref(), Some("570.86; 6.16"));
    }

    #[test]
    fn cards_of_rocm_smi_come_by_their_numbers() {
        let document = r#"WARNING: old
            {"card10": {"Card series": "B"}, "card2": {"Card Series": "AMD Instinct MI100",
             "VRAM Total Memory (B)": "34342961152", "GFX Version": "gfx908",
             "Max Graphics Package Power (W)": "290.0"}, "system": {"Driver version": "6.16.6"}}"#;
        let found = rocm_smi_inventory(document);
        assert_eq!((found[0].name.as_str(), found[1].name.as_str()), ("AMD Instinct MI100", "B"));
        assert_eq!(found[0].memory_bytes, Some(34_342_961_152));
        assert_eq!(found[0].architecture.as_deref(), Some("gfx908"));
        assert_eq!((found[0].power_limit_w, found[1].power_limit_w), (Some(290.0), None));
        assert!(rocm_smi_inventory("ERROR: no GPUs").is_empty());
    }
}
