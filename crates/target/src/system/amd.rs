//! GPUs of AMD: by `amd-smi`, else by the older `rocm-smi`, and by the driver's own files.

use std::fs;

use inferometer_model::system::{Gpu, Machine};
use serde_json::Value;

use super::tool::said;

pub(super) fn add_to(machine: &mut Machine) {
    let by_amd_smi = || said("amd-smi", &["static", "--json"]).map(|text| amd_smi(&text));
    let by_rocm_smi = || {
        let asked = ["--showproductname", "--showmeminfo", "vram", "--showmaxpower", "--json"];
        said("rocm-smi", &asked).map(|text| rocm_smi(&text))
    };
    let found = by_amd_smi().filter(|gpus| !gpus.is_empty()).or_else(by_rocm_smi);
    let Some(gpus) = found.filter(|gpus| !gpus.is_empty()) else { return };
    machine.gpus.extend(gpus);
    let read = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let known = |text: &String| !text.is_empty();
    let driver = read("/sys/module/amdgpu/version").filter(known);
    let runtime = read("/opt/rocm/.info/version")
        .filter(known)
        .map(|version| format!("ROCm {}", version.split('-').next().unwrap_or(&version)));
    let links = match hives().as_slice() {
        [] => None,
        hives => Some(format!("xGMI (hive {})", hives.join(", "))),
    };
    add(&mut machine.gpu_driver, driver);
    add(&mut machine.gpu_runtime, runtime);
    add(&mut machine.interconnect, links);
}

/// Beside what another vendor's tools have said.
fn add(said: &mut Option<String>, more: Option<String>) {
    *said = match (said.take(), more) {
        (Some(said), Some(more)) => Some(format!("{said}; {more}")),
        (said, more) => said.or(more),
    };
}

/// GPUs that are joined directly have a hive in common.
fn hives() -> Vec<String> {
    let cards = fs::read_dir("/sys/class/drm").into_iter().flatten().flatten();
    let mut hives: Vec<String> = cards
        .filter_map(|card| {
            let path = card.path().join("device/xgmi_hive_info/xgmi_hive_id");
            let number: u64 = fs::read_to_string(path).ok()?.trim().parse().ok()?;
            (0 < number).then(|| format!("{number:#x}"))
        })
        .collect();
    hives.sort_unstable();
    hives.dedup();
    hives
}

/// A list of GPUs, in newer versions below `gpu_data`.
fn amd_smi(json: &str) -> Vec<Gpu> {
    let Ok(document) = serde_json::from_str::<Value>(json) else { return Vec::new() };
    let list = document.get("gpu_data").unwrap_or(&document).as_array().cloned();
    list.unwrap_or_default().iter().filter_map(amd_smi_gpu).collect()
}

fn amd_smi_gpu(gpu: &Value) -> Option<Gpu> {
    let text = |pointer: &str| gpu.pointer(pointer).and_then(Value::as_str).and_then(known);
    // The market name is that of the chip; the board has the one on the box.
    let name = text("/board/product_name").or_else(|| text("/asic/market_name"))?;
    Some(Gpu {
        name,
        architecture: text("/asic/target_graphics_version").and_then(|name| architecture(&name)),
        memory_bytes: gpu.pointer("/vram/size").and_then(mebibytes),
        power_limit_w: [
            "/limit/max_power",
            "/limit/socket_power_limit",
            "/limit/ppt0/socket_power_limit",
        ]
        .into_iter()
        .find_map(|pointer| gpu.pointer(pointer).and_then(quantity)),
    })
}

/// `{"value": 192, "unit": "GB"}`, or a plain number in later words of the same tool.
fn quantity(value: &Value) -> Option<f64> {
    let number = value.get("value").unwrap_or(value);
    number.as_f64().or_else(|| number.as_str()?.split_whitespace().next()?.parse().ok())
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes of memory")]
fn mebibytes(value: &Value) -> Option<u64> {
    let size = quantity(value).filter(|size| (0.0..1e9).contains(size))?;
    let in_words = || value.as_str()?.split_whitespace().nth(1);
    let unit = value.get("unit").and_then(Value::as_str).or_else(in_words).unwrap_or("MB");
    let factor = if unit.starts_with('G') { 1_u64 << 30 } else { 1 << 20 };
    Some((size * factor as f64) as u64)
}

/// `{"card0": {"Card Series": …}, …, "system": {…}}`; the words changed their case over time.
fn rocm_smi(json: &str) -> Vec<Gpu> {
    // Some versions print warnings before the document.
    let json = json.find('{').map_or("", |start| &json[start..]);
    let Ok(Value::Object(cards)) = serde_json::from_str(json) else { return Vec::new() };
    let mut numbered: Vec<(u32, Gpu)> = cards
        .iter()
        .filter_map(|(key, card)| {
            let number = key.strip_prefix("card")?.parse().ok()?;
            Some((number, rocm_smi_gpu(card)?))
        })
        .collect();
    numbered.sort_by_key(|(number, _)| *number);
    numbered.into_iter().map(|(_, gpu)| gpu).collect()
}

fn rocm_smi_gpu(card: &Value) -> Option<Gpu> {
    let text = |name: &str| {
        let fields = card.as_object()?;
        let found = fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(name))?;
        known(found.1.as_str()?)
    };
    Some(Gpu {
        name: text("Card Series").or_else(|| text("Device Name"))?,
        architecture: text("GFX Version").and_then(|name| architecture(&name)),
        memory_bytes: text("VRAM Total Memory (B)").and_then(|bytes| bytes.parse().ok()),
        power_limit_w: text("Max Graphics Package Power (W)").and_then(|watts| watts.parse().ok()),
    })
}

fn architecture(name: &str) -> Option<String> {
    name.starts_with("gfx").then(|| name.to_owned())
}

fn known(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty() && text != "N/A").then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_amd_smi_are_read() {
        let gpu = r#"{"gpu": 0, "asic": {"market_name": "Aqua Vanjaram", "target_graphics_version":
            "gfx942"}, "board": {"product_name": "AMD Instinct MI300X"}, "vram": {"size": {"value":
            196592, "unit": "MB"}}, "limit": {"max_power": {"value": 750, "unit": "W"}}}"#;
        for document in [format!("[{gpu}]"), format!("{{\"gpu_data\": [{gpu}]}}")] {
            let [found] = amd_smi(&document).try_into().unwrap();
            let Gpu { name, architecture, memory_bytes, power_limit_w } = found;
            assert_eq!(
                (name.as_str(), architecture.as_deref()),
                ("AMD Instinct MI300X", Some("gfx942"))
            );
            assert_eq!((memory_bytes, power_limit_w), (Some(196_592 << 20), Some(750.0)));
        }
        let bare = r#"[{"asic": {"market_name": "N/A"}}, {"asic": {"market_name": "X"}, "vram": {"size": "N/A"}}]"#;
        let found = amd_smi(bare);
        assert_eq!((found.len(), found[0].memory_bytes), (1, None));
        assert!(amd_smi("not json").is_empty());
        assert_eq!(mebibytes(&"192 GB".into()), Some(192 << 30));
        assert_eq!(mebibytes(&"196592".into()), Some(196_592 << 20));
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
        let found = rocm_smi(document);
        assert_eq!((found[0].name.as_str(), found[1].name.as_str()), ("AMD Instinct MI100", "B"));
        assert_eq!(found[0].memory_bytes, Some(34_342_961_152));
        assert_eq!(found[0].architecture.as_deref(), Some("gfx908"));
        assert_eq!((found[0].power_limit_w, found[1].power_limit_w), (Some(290.0), None));
        assert!(rocm_smi("ERROR: no GPUs").is_empty());
    }
}
