//! Machines over time: the server's GPUs, and the client's own machine.

use inferometer_analysis::Summary;
use inferometer_analysis::machines::GpuFigures;

use super::{id, measure};
use crate::chart::{Chart, Plot, ScaleKind, Timeline, TimelinePanel, TimelineSeries};
use crate::fmt::{counted, gibibytes, number, percent};
use crate::gpus;

/// A page has a chart for each row, and readers tell no more steps apart.
const STEPS_MAX: usize = 100;

/// What a panel draws: its heading, unit, and lines with their names.
type Wanted<'a> = (&'a str, &'a str, Vec<(&'a str, &'a [Option<f64>], f64)>);

pub(in crate::pages) fn gpus(summary: &Summary, of: &str) -> Option<Chart> {
    let found = summary.machines.gpus.as_ref()?;
    let line = &found.timeline;
    let several = 1 < gpus::used(found).count();
    let named =
        |alone: &'static str, together: &'static str| if several { together } else { alone };
    let gib = 1.0 / f64::from(1_u32 << 30);
    let wanted: [Wanted<'_>; 5] = [
        ("Power", "W", vec![(named("power", "power, all GPUs"), &line.power_w, 1.0)]),
        ("Use", "%", vec![(named("use", "use, mean of GPUs"), &line.use_share, 100.0)]),
        (
            "Memory",
            "GiB",
            vec![(named("memory", "memory, all GPUs"), &line.memory_used_bytes, gib)],
        ),
        (
            "Core clock",
            "MHz",
            vec![(named("core clock", "core clock, mean"), &line.core_clock_mhz, 1.0)],
        ),
        (
            "Temperature",
            "°C",
            vec![(named("temperature", "temperature, highest"), &line.temperature_c, 1.0)],
        ),
    ];
    let plot = timeline((line.from_ms, line.step_ms), &wanted)?;
    Some(Chart {
        id: id(of, "gpus-over-time"),
        title: "The GPUs over time".to_owned(),
        finding: finding(found),
        n: format!(
            "{} by {} inside the run, {}",
            counted(found.looks, "look"),
            found.source.title(),
            gpus::how_many(found)
        ),
        plot: Plot::Timeline(plot),
    })
}

pub(in crate::pages) fn client_machine(summary: &Summary, of: &str) -> Option<Chart> {
    let client = summary.machines.client.as_ref()?;
    let line = &client.timeline;
    let wanted: [Wanted<'_>; 3] = [
        ("Processors busy", "%", vec![("all processors", &line.cpu_share, 100.0)]),
        ("This program", "threads", vec![("this program", &line.own_cpus, 1.0)]),
        (
            "Network",
            "MB/s",
            vec![
                ("received", &line.received_bytes_per_s, 1e-6),
                ("sent", &line.sent_bytes_per_s, 1e-6),
            ],
        ),
    ];
    let plot = timeline((line.from_ms, line.step_ms), &wanted)?;
    let finding = client.cpu_share.map_or_else(
        || "What the client's machine did, step by step.".to_owned(),
        |cpu| {
            format!(
                "The processors of the client's machine were {} busy on average and {} at most.",
                percent(cpu.mean),
                percent(cpu.max)
            )
        },
    );
    Some(Chart {
        id: id(of, "client-machine-over-time"),
        title: "The client's machine over time".to_owned(),
        finding,
        n: format!("{} inside the run", counted(client.looks, "look")),
        plot: Plot::Timeline(plot),
    })
}

/// `None` where nothing is known of any step. Panels without a value are left out.
fn timeline((from_ms, step_ms): (f64, f64), wanted: &[Wanted<'_>]) -> Option<Timeline> {
    let lines = || wanted.iter().flat_map(|(_, _, lines)| lines).map(|(_, values, _)| *values);
    // The first look has none before it, and so tells no rate.
    let unknown = lines().filter_map(|values| values.iter().position(Option::is_some)).min()?;
    let joined =
        lines().map(|it| it.len().saturating_sub(unknown)).max()?.div_ceil(STEPS_MAX).max(1);
    let panel = |(heading, unit, lines): &Wanted<'_>| {
        let told = lines.iter().filter(|(_, values, _)| values.iter().any(Option::is_some));
        let series: Vec<TimelineSeries> = told
            .map(|(name, values, times)| TimelineSeries {
                name: (*name).to_owned(),
                points: coarse(values.get(unknown..).unwrap_or_default(), joined, *times),
            })
            .collect();
        let y = measure("", unit, ScaleKind::Linear);
        (!series.is_empty()).then(|| TimelinePanel { heading: (*heading).to_owned(), y, series })
    };
    let panels: Vec<TimelinePanel> = wanted.iter().filter_map(panel).collect();
    let seconds = step_ms / 1e3 * joined as f64;
    (!panels.is_empty() && 0.0 < seconds).then(|| Timeline {
        from_s: (from_ms + step_ms * unknown as f64) / 1e3,
        step_s: seconds,
        panels,
    })
}

/// Steps joined to their means, as far as they are known, in the unit of the panel.
fn coarse(values: &[Option<f64>], joined: usize, times: f64) -> Vec<Option<f64>> {
    let mean = |part: &[Option<f64>]| {
        let known: Vec<f64> = part.iter().flatten().copied().collect();
        (!known.is_empty()).then(|| times * known.iter().sum::<f64>() / known.len() as f64)
    };
    values.chunks(joined).map(mean).collect()
}

fn finding(found: &GpuFigures) -> String {
    let (all, they) = if gpus::is_one(found) { ("The GPU", "it") } else { ("The GPUs", "they") };
    let mut parts = Vec::new();
    if let Some(power) = found.power_w {
        let [mean, max] = [power.mean, power.max].map(number);
        parts.push(format!("{all} drew {mean} W on average and {max} W at most"));
    }
    if let Some(memory) = found.memory_used_bytes {
        let most = number(gibibytes(memory.max));
        let who = if parts.is_empty() { all } else { they };
        parts.push(format!("{who} held {most} GiB at most"));
    }
    if let Some(joules) = found.energy_per_output_token_j {
        let who = if parts.is_empty() { "Each" } else { "each" };
        parts.push(format!("{who} output token took {} J", number(joules)));
    }
    if parts.is_empty() {
        return "What the GPUs did, step by step.".to_owned();
    }
    parts.join("; ") + "."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_steps_are_means_of_what_is_known() {
        let values = [Some(1.0), None, Some(3.0), None, None];
        assert_eq!(coarse(&values, 2, 10.0), [Some(10.0), Some(30.0), None]);
    }

    #[test]
    fn what_nobody_tells_has_no_panel() {
        let (known, unknown) = ([Some(1.0); 250], [None; 250]);
        let wanted: [Wanted<'_>; 2] = [
            ("Power", "W", vec![("power", &known, 1.0)]),
            ("Use", "%", vec![("use", &unknown, 100.0)]),
        ];
        let found = timeline((0.0, 1_000.0), &wanted);
        let panels =
            found.as_ref().map(|it| (it.panels.len(), it.panels[0].series[0].points.len()));
        assert_eq!(panels, Some((1, 84)));
        assert!(found.is_some_and(|it| (it.step_s - 3.0).abs() < 1e-9));
        assert!(timeline((0.0, 1_000.0), &wanted[1..]).is_none());
        let late = [None, None, Some(1.0), None];
        let found = timeline((500.0, 1_000.0), &[("Network", "B", vec![("sent", &late, 1.0)])]);
        let found = found.map(|it| (it.from_s, it.panels[0].series[0].points.clone()));
        assert_eq!(found, Some((2.5, vec![Some(1.0), None])), "begins where something is known");
    }
}
