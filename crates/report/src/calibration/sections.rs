//! What every page of a calibration shows, in words and tables.

use inferometer_analysis::calibration::{Calibration, FidelityRow, Level, LevelLatency, PacingRow};

use crate::fmt::{NOTHING, count, number, percent, whole};
use crate::table::Table;

pub(super) fn title(calibration: &Calibration) -> String {
    let quick = if calibration.method.quick { ", quick" } else { "" };
    format!(
        "Inferometer {}  ·  calibration of {}{quick}",
        calibration.tool_version, calibration.when
    )
}

pub(super) fn machine(calibration: &Calibration) -> String {
    const GIB: f64 = (1_u64 << 30) as f64;
    let machine = &calibration.machine;
    let cpu = machine.cpu_model.as_deref().unwrap_or("unknown CPU");
    let cpus = machine.cpus.map_or_else(|| NOTHING.to_owned(), |cpus| cpus.to_string());
    let memory = number(machine.memory_bytes.map(|bytes| bytes as f64 / GIB));
    let kernel = machine.kernel.as_deref().unwrap_or("unknown kernel");
    format!("{cpu}, {cpus} CPUs, {memory} GiB, {} {kernel} ({})", machine.os, machine.architecture)
}

pub(super) fn capacity(calibration: &Calibration) -> String {
    let capacity = calibration.capacity;
    format!(
        "{} requests/s one-shot, {} events/s streamed",
        whole(capacity.requests_per_s),
        whole(capacity.events_per_s),
    )
}

pub(super) fn tables(calibration: &Calibration) -> [Table; 4] {
    let tokens = calibration.method.ladder_tokens;
    let ladder = &calibration.ladder;
    let mut one_shot = levels("One-shot", tokens, &ladder.one_shot);
    one_shot.remove_column("events/s");
    let streamed = levels("Streamed", tokens, &ladder.streamed);
    [one_shot, streamed, fidelity(calibration), pacing(&calibration.pacing)]
}

fn levels(kind: &str, tokens: u32, levels: &[Level]) -> Table {
    let heads = vec![
        "in flight",
        "requests/s",
        "tokens/s",
        "events/s",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "success",
    ];
    let row = |level: &Level| {
        let latency = |of: fn(&LevelLatency) -> f64| number(level.latency_ms.as_ref().map(of));
        vec![
            count(level.concurrency.into()),
            whole(level.requests_per_s),
            whole(level.tokens_per_s),
            whole(level.events_per_s),
            latency(|latency| latency.p50),
            latency(|latency| latency.p95),
            latency(|latency| latency.p99),
            percent(level.success),
        ]
    };
    Table {
        title: format!("{kind} answers of {tokens} tokens, as fast as they go"),
        heads,
        rows: levels.iter().map(row).collect(),
        remarks: Vec::new(),
    }
}

fn fidelity(calibration: &Calibration) -> Table {
    let method = calibration.method;
    let rows = &calibration.fidelity;
    let unsound = rows.iter().any(|row| !row.is_sound());
    let mut remarks = vec![
        "width: what the records admit at worst; unseen: gaps hidden by tokens that came together; \
         late: the engine's own p99"
            .to_owned(),
    ];
    if unsound {
        remarks.push(
            "~ proves nothing: the engine itself was late, or tokens came in heaps; this machine \
             has no room for both at this pace"
                .to_owned(),
        );
    }
    Table {
        title: format!(
            "Error of what is reported, in ms: TTFT {} ms, then a token every gap",
            whole(method.ttft_ms),
        ),
        heads: vec![
            "streams",
            "gap",
            "in flight",
            "stamps",
            "TTFT p50",
            "TTFT p99",
            "ITL p50",
            "ITL p99",
            "width",
            "unseen",
            "late",
        ],
        rows: rows.iter().map(fidelity_row).collect(),
        remarks,
    }
}

fn fidelity_row(row: &FidelityRow) -> Vec<String> {
    let mark = if row.is_sound() { "" } else { "~" };
    let error = |value: Option<f64>| match value {
        Some(_) => format!("{mark}{}", small(value)),
        None => NOTHING.to_owned(),
    };
    let seen_or_not = row.gaps + row.gaps_unseen;
    let unseen = (0 < seen_or_not).then(|| row.gaps_unseen as f64 / seen_or_not as f64);
    vec![
        count(row.streams.into()),
        whole(row.gap_ms),
        row.in_flight.map_or_else(|| NOTHING.to_owned(), count),
        if row.kernel_stamps { "kernel" } else { "read" }.to_owned(),
        error(row.error.map(|error| error.ttft_ms.p50)),
        error(row.error.map(|error| error.ttft_ms.p99)),
        error(row.error.map(|error| error.itl_ms.p50)),
        error(row.error.map(|error| error.itl_ms.p99)),
        number(row.width_ms_max),
        percent(unseen),
        small(row.engine_late_ms_p99),
    ]
}

fn pacing(rows: &[PacingRow]) -> Table {
    let row = |row: &PacingRow| {
        vec![
            whole(row.rate_per_s),
            number(row.planned_per_s),
            number(row.sent_per_s),
            small(row.delay_ms.map(|delay| delay.p50)),
            small(row.delay_ms.map(|delay| delay.p99)),
            small(row.delay_ms.map(|delay| delay.max)),
            number(row.planned_gap_cv),
            number(row.sent_gap_cv),
            percent(row.success),
        ]
    };
    Table {
        title: "Pacing of an open loop, Poisson arrivals: sent less intended".to_owned(),
        heads: vec![
            "asked/s",
            "planned/s",
            "sent/s",
            "p50 ms",
            "p99 ms",
            "max ms",
            "planned gap CV",
            "sent gap CV",
            "success",
        ],
        rows: rows.iter().map(row).collect(),
        remarks: Vec::new(),
    }
}

pub(super) fn memory(calibration: &Calibration) -> String {
    const KIB: f64 = 1_024.0;
    let memory = calibration.memory;
    let Some(bytes_per_stream) = memory.bytes_per_stream else {
        return format!("{NOTHING} for {} streams: this system does not say", memory.streams);
    };
    let asked = u64::from(memory.streams);
    let short = if memory.in_flight < asked {
        format!(" ({} were asked for)", count(asked))
    } else {
        String::new()
    };
    format!(
        "{} KiB for each of {} streams in flight{short}",
        number(bytes_per_stream / KIB),
        count(memory.in_flight),
    )
}

/// Milliseconds that may be less than a microsecond, which is not nothing.
fn small(value: Option<f64>) -> String {
    match value {
        Some(value) if 0.0 < value && value < 0.000_5 => "<0.001".to_owned(),
        Some(_) | None => number(value),
    }
}
