//! AMD's GPUs: by `amd-smi`, and by the older `rocm-smi`.

use inferometer_model::telemetry::{DeviceReading, Throttle};
use serde_json::{Map, Value};

use super::reading::{LookError, said, share};

const AMD_SMI: &str = "amd-smi";
const ROCM_SMI: &str = "rocm-smi";

pub(super) fn look_amd_smi() -> Result<Vec<DeviceReading>, LookError> {
    let mut found = amd_smi(&said(AMD_SMI, &["metric", "--json"])?);
    if found.is_empty() {
        return Err(LookError::Nothing(AMD_SMI));
    }
    if let Ok(list) = said(AMD_SMI, &["process", "--json"]) {
        add_processes(&mut found, &list);
    }
    Ok(found)
}

pub(super) fn look_rocm_smi() -> Result<Vec<DeviceReading>, LookError> {
    const ASKED: [&str; 8] = [
        "--showuse",
        "--showmeminfo",
        "vram",
        "--showpower",
        "--showclocks",
        "--showtemp",
        "--showenergycounter",
        "--json",
    ];
    let found = rocm_smi(&said(ROCM_SMI, &ASKED)?);
    if found.is_empty() { Err(LookError::Nothing(ROCM_SMI)) } else { Ok(found) }
}

/// Warnings may stand before the document.
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

fn amd_smi(json: &str) -> Vec<DeviceReading> {
    let of_gpu = |gpu: &Value| {
        let get = |pointer: &str| quantity(gpu.pointer(pointer)?);
        let first = |pointers: &[&str]| pointers.iter().find_map(|pointer| get(pointer));
        Some(DeviceReading {
            index: index(gpu)?,
            use_share: get("/usage/gfx_activity").and_then(share),
            memory_used_bytes: get("/mem_usage/used_vram").and_then(mebibytes),
            memory_total_bytes: get("/mem_usage/total_vram").and_then(mebibytes),
            power_w: first(&["/power/socket_power", "/power/average_socket_power"]),
            energy_j: get("/energy/total_energy_consumption"),
            core_clock_mhz: first(&["/clock/gfx_0/clk", "/clock/gfx_0/cur_clk"]),
            memory_clock_mhz: first(&["/clock/mem_0/clk", "/clock/mem_0/cur_clk"]),
            // The hottest place of the chip; some have no sensor at its edge.
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

/// `{"value": 1, "unit": …}`, a number, or a number as text; `"N/A"` is none of them.
fn quantity(value: &Value) -> Option<f64> {
    let value = value.get("value").unwrap_or(value);
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
    number.filter(|number| number.is_finite() && 0.0 <= *number)
}

/// The tool says `MB` and means mebibytes.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number of mebibytes below the bound fits, and it is not negative"
)]
fn mebibytes(number: f64) -> Option<u64> {
    const MAX: f64 = 1e9;
    (number <= MAX).then(|| (number * f64::from(1 << 20)).round() as u64)
}

/// Newer versions name what is violated now; older ones only say that nothing is.
fn throttle(gpu: &Value) -> Option<Throttle> {
    const THERMAL: [&str; 3] = ["socket_thermal", "vr_thermal", "hbm_thermal"];
    let state = |name: &str| gpu.pointer(&format!("/throttle/{name}_violation_status"))?.as_str();
    let is_active = |name: &str| state(name) == Some("ACTIVE");
    let is_told = |name: &&str| state(name).is_some_and(|state| state != "N/A");
    if ["ppt", "prochot"].iter().chain(&THERMAL).any(is_told) {
        return Some(Throttle {
            power: is_active("ppt"),
            thermal: THERMAL.into_iter().any(is_active),
            hardware: is_active("prochot"),
        });
    }
    let status = gpu.pointer("/power/throttle_status")?.as_str()?;
    (status == "UNTHROTTLED").then(Throttle::default)
}

/// Of a GPU without processes the list has a sentence in their place.
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

fn rocm_smi(json: &str) -> Vec<DeviceReading> {
    let Some(Value::Object(document)) = document(json) else { return Vec::new() };
    let of_card = |(name, card): (&String, &Value)| {
        let index = name.strip_prefix("card")?.parse().ok()?;
        Some(card_reading(index, card.as_object()?))
    };
    document.iter().filter_map(of_card).collect()
}

fn card_reading(index: u32, card: &Map<String, Value>) -> DeviceReading {
    let get = |name: &str| quantity(card.get(name)?);
    let bytes = |name: &str| card.get(name)?.as_str()?.trim().parse().ok();
    let power = ["Current Socket Graphics Package Power (W)", "Average Graphics Package Power (W)"];
    let heat = ["Temperature (Sensor junction) (C)", "Temperature (Sensor edge) (C)"];
    DeviceReading {
        index,
        use_share: get("GPU use (%)").and_then(share),
        memory_used_bytes: bytes("VRAM Total Used Memory (B)"),
        memory_total_bytes: bytes("VRAM Total Memory (B)"),
        power_w: power.into_iter().find_map(get),
        energy_j: get("Accumulated Energy (uJ)").map(|microjoules| microjoules / 1e6),
        core_clock_mhz: clock(card, "sclk clock speed:"),
        memory_clock_mhz: clock(card, "mclk clock speed:"),
        temperature_c: heat.into_iter().find_map(get),
        throttle: None,
        processes: None,
    }
}

/// Written `(1700Mhz)`.
fn clock(card: &Map<String, Value>, name: &str) -> Option<f64> {
    let text = card.get(name)?.as_str()?.trim_matches(['(', ')']).to_ascii_lowercase();
    text.strip_suffix("mhz")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let [found] = amd_smi(&text).try_into().unwrap();
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
        let [found] = amd_smi(bare).try_into().unwrap();
        let nothing = DeviceReading { index: 3, ..DeviceReading::default() };
        assert_eq!(found, DeviceReading { throttle: Some(Throttle::default()), ..nothing });
        assert!(amd_smi("ERROR: no device").is_empty());
        assert!(amd_smi("[1, \"x\", {}]").is_empty());
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
        let [found] = rocm_smi(text).try_into().unwrap();
        assert_eq!((found.index, found.use_share, found.power_w), (1, Some(0.37), Some(210.0)));
        assert_eq!(found.memory_used_bytes, Some(34_351_349_760));
        assert_eq!((found.core_clock_mhz, found.memory_clock_mhz), (Some(1700.0), Some(1600.0)));
        assert_eq!((found.temperature_c, found.energy_j), (Some(61.0), Some(5.0)));
        assert!(rocm_smi("not json").is_empty());
    }
}
