//! The GPUs of the server and the machine of the client while the run went on.

use inferometer_analysis::machines::{ClientFigures, GpuFigures};
use inferometer_analysis::{GaugeFigures, Summary};

use super::style::{Ink, Style};
use crate::escape::terminal;
use crate::fmt::{NOTHING, count, number, percent, whole};
use crate::gpus;
use crate::lines::{hanging, labelled};

/// Nothing where nobody looked at a machine.
pub(super) fn machines(summary: &Summary, style: Style) -> String {
    let machines = &summary.machines;
    let own = machines.client.as_ref().map_or_else(String::new, |client| {
        style.paint(Ink::Bold, "client machine") + "\n" + &client_lines(client)
    });
    let title = style.paint(Ink::Bold, "GPUs") + "\n";
    match (&machines.gpus, &machines.gpus_missing) {
        (Some(gpus), _) => [title, gpu_lines(gpus), own].concat(),
        // Who did not look at all need not hear of it.
        (None, Some(reason)) if !own.is_empty() => {
            let reason = hanging(&format!("  {NOTHING} "), 4, &terminal(reason));
            [title, reason, own].concat()
        }
        (None, _) => own,
    }
}

fn gpu_lines(found: &GpuFigures) -> String {
    let over_time = |gauge: Option<GaugeFigures>, shown: fn(f64) -> String| {
        let gauge = gauge?;
        Some(format!("{} on average, at most {}", shown(gauge.mean), shown(gauge.max)))
    };
    let looks = count(found.looks);
    let (how_many, source) = (gpus::how_many(found), found.source.title());
    let by = format!("{how_many}, {looks} looks by {source}{}", gpus::missed(found));
    let held: Vec<String> = gpus::used(found)
        .filter_map(|device| {
            let words = gpus::held_back(device).filter(|words| words != "never")?;
            Some(format!("GPU {}: {words}", device.index))
        })
        .collect();
    let hottest = gpus::across(found, |device| device.temperature_c);
    let lines = [
        ("found", Some(by)),
        ("power", over_time(found.power_w, |watts| format!("{} W", number(watts)))),
        ("energy", Some(energy(found))),
        ("use", over_time(gpus::across(found, |it| it.use_share), |it| percent(it))),
        ("memory", over_time(found.memory_used_bytes, gibibytes)),
        (
            "clock",
            over_time(gpus::across(found, |it| it.core_clock_mhz), |it| {
                format!("{} MHz", whole(it))
            }),
        ),
        ("heat", hottest.map(|it| format!("at most {} °C", whole(it.max)))),
        ("slowed", (!held.is_empty()).then(|| held.join("; ") + " of the looks")),
    ];
    let known = lines.into_iter().filter_map(|(label, text)| Some(labelled(label, &text?)));
    known.collect()
}

fn gibibytes(bytes: f64) -> String {
    format!("{} GiB", number(crate::fmt::gibibytes(bytes)))
}

fn energy(found: &GpuFigures) -> String {
    let Some(joules) = found.energy_j else {
        let reason = found.energy_missing.as_deref().unwrap_or("not known");
        return format!("{NOTHING} {}", terminal(reason));
    };
    let mut parts = vec![crate::fmt::joules(joules)];
    if let Some(per_token) = found.energy_per_output_token_j {
        parts.push(format!("{} J for each output token", number(per_token)));
    }
    if let Some(kwh) = found.energy_per_million_tokens_kwh {
        parts.push(format!("{} kWh for a million", number(kwh)));
    }
    let whose = match (found.servers_by, gpus::is_one(found)) {
        (None, false) => "; these GPUs may not all be the server's",
        (Some(_), _) | (None, true) => "",
    };
    format!("{}; {}{whose}", parts.join(", "), gpus::energy_from(found))
}

fn client_lines(client: &ClientFigures) -> String {
    let busy = client.cpu_share.map(|cpu| {
        let own = client.own_cpus.map_or_else(String::new, |own| {
            format!("; {} threads of it by this program", number(own.mean))
        });
        format!("{} busy on average, at most {}{own}", percent(cpu.mean), percent(cpu.max))
    });
    let stolen = client.steal_share.filter(|steal| 0.0 < steal.max);
    let stolen = stolen.map(|it| format!("{} went to others on the host", percent(it.mean)));
    let rates = client.received_bytes_per_s.zip(client.sent_bytes_per_s);
    let network = rates.map(|(received, sent)| {
        let [received, sent] = [received, sent].map(crate::fmt::megabytes_per_s);
        format!("{received} in, {sent} out, all interfaces together")
    });
    let memory = client.memory_available_bytes_min.map(|bytes| {
        let left = crate::fmt::memory(bytes);
        format!("{left} left at least")
    });
    let lines = [("CPU", busy), ("steal", stolen), ("network", network), ("memory", memory)];
    let known = lines.into_iter().filter_map(|(label, text)| Some(labelled(label, &text?)));
    known.collect()
}
