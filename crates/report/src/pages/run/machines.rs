//! The machines of one run: the server's GPUs, their energy, and the client's own machine.

use inferometer_analysis::machines::{ClientFigures, DeviceFigures, GpuFigures};
use inferometer_analysis::{GaugeFigures, Summary};

use crate::document::{Block, Cell, Column, Section, Table, plain};
use crate::fmt::{NOTHING, counted, number, percent, whole};
use crate::gpus;
use crate::pages::cells::missing;
use crate::pages::charts;
use crate::pages::frame::section;

const UNTOLD: &str = "the tool does not tell it";

/// `None` where nobody looked at a machine.
pub(super) fn machines(summary: &Summary) -> Option<Section> {
    let machines = &summary.machines;
    let mut blocks = Vec::new();
    match (&machines.gpus, &machines.gpus_missing) {
        (Some(found), _) => {
            blocks.push(Block::Table(devices(found)));
            blocks.push(Block::Facts(energy(found)));
            blocks.extend(charts::gpus(summary, "").map(charts::figure));
        }
        // Who did not look at all need not read of it.
        (None, Some(reason)) if machines.client.is_some() => {
            blocks.push(Block::Paragraph(plain(format!("GPUs: {NOTHING} {reason}."))));
        }
        (None, _) => {}
    }
    if let Some(client) = &machines.client {
        blocks.push(Block::Table(own(client)));
        blocks.extend(charts::client_machine(summary, "").map(charts::figure));
    }
    (!blocks.is_empty()).then(|| section("machines", "What the machines say", blocks))
}

fn devices(found: &GpuFigures) -> Table {
    let columns = [
        "Use",
        "Memory, highest (GiB)",
        "Power (W)",
        "Power, highest (W)",
        "Core clock (MHz)",
        "Temperature, highest (°C)",
        "Held back",
        "Energy (J)",
    ];
    Table {
        id: "gpus".to_owned(),
        caption: format!(
            "{}; means of {} by {} inside the run{}",
            gpus::how_many(found),
            counted(found.looks, "look"),
            found.source.title(),
            gpus::missed(found)
        ),
        columns: [Column::left("GPU")].into_iter().chain(columns.map(Column::right)).collect(),
        rows: found.devices.iter().map(device).collect(),
        notes: Vec::new(),
    }
}

fn device(device: &DeviceFigures) -> Vec<Cell> {
    let shown = |value: Option<f64>, text: fn(f64) -> String| {
        value.map_or_else(|| missing(UNTOLD), |value| Cell::number(text(value), value))
    };
    let mean = |gauge: Option<GaugeFigures>| gauge.map(|found| found.mean);
    let max = |gauge: Option<GaugeFigures>| gauge.map(|found| found.max);
    let memory = Cell {
        detail: device.memory_total_bytes.map(|total| format!("of {}", crate::fmt::memory(total))),
        ..shown(max(device.memory_used_bytes).map(crate::fmt::gibibytes), |it| number(it))
    };
    let left_out = match (device.idle, device.foreign) {
        (true, _) => Some("it did nothing, and is in no sum".to_owned()),
        (false, true) => Some("it is not the server's, and is in no sum".to_owned()),
        (false, false) => None,
    };
    vec![
        Cell {
            number: Some(f64::from(device.index)),
            doubtful: left_out.is_some(),
            detail: left_out,
            ..Cell::text(device.index.to_string())
        },
        shown(mean(device.use_share), |share| percent(share)),
        memory,
        shown(mean(device.power_w), |it| number(it)),
        shown(max(device.power_w), |it| number(it)),
        shown(mean(device.core_clock_mhz), |it| whole(it)),
        shown(max(device.temperature_c), |it| whole(it)),
        gpus::held_back(device).map_or_else(|| missing(UNTOLD), Cell::text),
        shown(device.energy_j, |it| number(it)),
    ]
}

fn energy(found: &GpuFigures) -> Vec<(String, Vec<crate::document::Span>)> {
    let Some(joules) = found.energy_j else {
        let reason = found.energy_missing.as_deref().unwrap_or("not known");
        return vec![("Energy".to_owned(), plain(format!("{NOTHING} ({reason})")))];
    };
    let unknown = || "– (no output token to divide by)".to_owned();
    let per_token = found.energy_per_output_token_j;
    let facts = [
        (
            "Energy",
            format!(
                "{} from the first request sent to the last one ended, {}",
                crate::fmt::joules(joules),
                gpus::energy_from(found)
            ),
        ),
        (
            "Energy per output token",
            per_token.map_or_else(unknown, |it| format!("{} J", number(it))),
        ),
        (
            "Energy per million output tokens",
            found
                .energy_per_million_tokens_kwh
                .map_or_else(unknown, |it| format!("{} kWh", number(it))),
        ),
        (
            "In it",
            format!(
                "{}; prompts and failed requests are paid for too, the rest of the machine is not",
                gpus::counted(found)
            ),
        ),
    ];
    facts.map(|(key, value)| (key.to_owned(), plain(value))).into()
}

fn own(client: &ClientFigures) -> Table {
    let cells = |gauge: Option<GaugeFigures>, text: fn(f64) -> String| match gauge {
        None => [missing("the system does not tell it"), missing("the system does not tell it")],
        Some(found) => [found.mean, found.max].map(|value| Cell::number(text(value), value)),
    };
    let line = |name: &str, [mean, max]: [Cell; 2]| vec![Cell::text(name), mean, max];
    let alone = |value: Option<f64>, text: fn(f64) -> String| {
        let shown = value.map_or_else(
            || missing("the system does not tell it"),
            |value| Cell::number(text(value), value),
        );
        [shown, Cell::text("")]
    };
    let memory = match client.memory_available_bytes_min {
        None => [missing("the system does not tell it"), Cell::text("")],
        Some(bytes) => [Cell::number(crate::fmt::memory(bytes), bytes as f64), Cell::text("")],
    };
    let shares = |share: f64| percent(share);
    Table {
        id: "client-machine".to_owned(),
        caption: format!(
            "The client's machine, by {} inside the run",
            counted(client.looks, "look")
        ),
        columns: vec![Column::left("Quantity"), Column::right("Mean"), Column::right("Highest")],
        rows: vec![
            line("Processors busy", cells(client.cpu_share, shares)),
            line("Given to others on the host", cells(client.steal_share, shares)),
            line("Threads of this program", cells(client.own_cpus, |it| number(it))),
            line("Received", alone(client.received_bytes_per_s, crate::fmt::megabytes_per_s)),
            line("Sent", alone(client.sent_bytes_per_s, crate::fmt::megabytes_per_s)),
            line("Memory left, least", memory),
        ],
        notes: Vec::new(),
    }
}
