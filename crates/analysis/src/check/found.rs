//! What each check finds when nothing is wrong, and why it may have nothing to look at.

use inferometer_model::observations::HttpVersion;
use inferometer_model::{Observations, Outcome};

use super::{CheckKind, Limits};
use crate::client::{ClientHealth, share};
use crate::delivered::{Delivered, SLOTS_SHARE};
use crate::machines::GpuFigures;
use crate::measured::{Measured, Series};
use crate::metric::{NOTHING_OK, NOTHING_SENT};
use crate::server::ServerSide;
use crate::steady::SteadyKind;
use crate::tokens::NO_TOKENS;
use crate::warning::{cached_share, new_prompts};

/// A finding with the number that was judged, as far as there is one.
pub(super) struct Found {
    pub(super) text: String,
    pub(super) figure: Option<f64>,
    /// Where they are not those of its kind.
    pub(super) limits: Option<Limits>,
}

type Finding = Result<Found, String>;

const NO_CLIENT: &str = "there is no client in virtual time";

impl Found {
    /// The finding, or why there is none.
    pub(super) fn by(kind: CheckKind, run: &Observations, measured: &Measured) -> Finding {
        if kind.is_of_client() && run.manifest.simulated.is_some() {
            return Err(NO_CLIENT.to_owned());
        }
        let health = || ClientHealth::of(run, measured);
        let server = || measured.server.as_ref().map_err(Clone::clone);
        match kind {
            CheckKind::CompleteRun => Ok(Self::text("the plan was played to its end")),
            CheckKind::Errors => errors(run, measured),
            CheckKind::DeliveredLoad => delivered(measured),
            CheckKind::SteadyState => steady(measured),
            CheckKind::LittlesLaw => littles_law(measured),
            CheckKind::SampleSize => {
                let text = format!("{} requests ended ok", measured.ok);
                Ok(Self::figure(measured.ok as f64, text))
            }
            CheckKind::SendLag => send_lag(run, measured),
            CheckKind::ClientLag => {
                p99(&measured.client_lag, "bytes lay unread for", "no read has the kernel's stamp")
            }
            CheckKind::ArrivalWidth => {
                let nothing = "no ok answer came in events";
                p99(&measured.event_width, "events are older than their stamps by", nothing)
            }
            CheckKind::ClientLoop => client_loop(&health()),
            CheckKind::ClientCapacity => capacity(run, &health()),
            CheckKind::Clock => {
                let odd = health().clock_jumps.unwrap_or(0) + measured.out_of_order;
                Ok(Self::figure(odd as f64, "no jump, and every moment is in order"))
            }
            CheckKind::KernelStamps => stamps(measured),
            CheckKind::Answerer => {
                answered(measured)?;
                Ok(Self::text("every answer names the model that was asked for"))
            }
            CheckKind::Stream => stream(run, measured),
            CheckKind::TokenCounts => token_counts(measured),
            CheckKind::InputLength => input_length(run, measured),
            CheckKind::OutputLength => output_length(measured),
            CheckKind::Cache => cache(run, measured),
            CheckKind::ServerRestart => {
                let restarts = server()?.restarts as f64;
                Ok(Self::figure(restarts, "no restart in the server's metrics"))
            }
            CheckKind::ServerAlone => alone(server()?),
            CheckKind::GpuSpeed => gpu_speed(gpus(measured)?),
            CheckKind::GpuAlone => gpu_alone(gpus(measured)?, run),
            CheckKind::ClientMachine => client_machine(measured),
        }
    }

    fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), figure: None, limits: None }
    }

    fn figure(figure: f64, text: impl Into<String>) -> Self {
        Self { text: text.into(), figure: Some(figure), limits: None }
    }
}

fn errors(run: &Observations, measured: &Measured) -> Finding {
    let cut =
        |record: &&inferometer_model::RequestRecord| record.ending.outcome == Outcome::Cancelled;
    let cut = run.records.iter().filter(cut).count() as u64;
    let failed = measured.attempted - measured.ok - cut;
    let share = share(failed, measured.attempted).ok_or("no request was attempted")?;
    let text = format!("{failed} of {} attempted requests failed", measured.attempted);
    Ok(Found::figure(share, text))
}

fn delivered(measured: &Measured) -> Finding {
    match &measured.delivered {
        Delivered::NotChecked { reason } => Err(reason.clone()),
        Delivered::Slots(slots) => {
            let text = format!("{:.2} of {} slots were in use", slots.in_use_mean, slots.asked);
            let limits = Limits { degraded: Some(1.0 - SLOTS_SHARE), invalid: None };
            Ok(Found { limits: Some(limits), ..Found::figure(1.0 - slots.share, text) })
        }
        Delivered::Schedule(schedule) => {
            let rates = schedule.intended_per_s.zip(schedule.sent_per_s);
            let (intended, sent) = rates.ok_or("all requests were due at one moment")?;
            let late = schedule.late_share.unwrap_or(0.0) * 100.0;
            let unsent = match schedule.unsent {
                0 => String::new(),
                unsent => format!("; {unsent} of those due never left"),
            };
            let text = format!(
                "{sent:.2} requests left per second, {intended:.2} were planned; {late:.1} % left \
                 more than {} ms late{unsent}",
                schedule.late_from_ms
            );
            // With a cap they part by design, and nothing is judged by it.
            let apart = schedule.rate_apart.map(f64::abs).filter(|_| !schedule.capped);
            Ok(Found { figure: apart, ..Found::text(text) })
        }
    }
}

fn steady(measured: &Measured) -> Finding {
    let steady = &measured.steady;
    match (steady.state, &steady.window) {
        (SteadyKind::Settled, Some(window)) => {
            let s = |ms: Option<f64>| ms.unwrap_or(0.0) / 1e3;
            let (from, to) = (s(window.from_ms), s(window.to_ms));
            let text = format!("steady from {from:.2} s to {to:.2} s");
            Ok(Found { figure: window.duration_s, ..Found::text(text) })
        }
        _ => Err(steady.reason.clone().unwrap_or_default()),
    }
}

fn littles_law(measured: &Measured) -> Finding {
    let law = &measured.littles_law;
    let sides = law.in_flight.zip(law.apart).zip(law.arrivals_per_s.zip(law.time_in_flight_s));
    let Some(((in_flight, apart), (per_s, stay_s))) = sides else {
        return Err(law.reason.clone().unwrap_or_else(|| "requests took no time".to_owned()));
    };
    let server = law.server_in_flight.map_or_else(String::new, |server| {
        format!("; {server:.2} running and waiting by the server's gauges")
    });
    let text = format!(
        "{in_flight:.2} in flight, {per_s:.2} per second times {stay_s:.3} s make {:.2}{server}",
        per_s * stay_s
    );
    Ok(Found::figure(apart.abs(), text))
}

fn send_lag(run: &Observations, measured: &Measured) -> Finding {
    if !run.manifest.spec.is_open_loop() {
        return Err("a closed loop plans no moments".to_owned());
    }
    p99(&measured.send_lag, "requests left late by", NOTHING_SENT.0)
}

fn p99(series: &Series, what: &str, missing: &str) -> Finding {
    let p99 = series.found.as_ref().and_then(|found| found.p99).ok_or(missing)?;
    Ok(Found::figure(p99, format!("{what} {p99:.3} ms (p99)")))
}

fn client_loop(health: &ClientHealth) -> Finding {
    let late = health.loop_lag_ms.p99_at_most.ok_or("the client noted nothing")?;
    Ok(Found::figure(late, format!("the loop woke at most {late:.3} ms late (p99)")))
}

fn capacity(run: &Observations, health: &ClientHealth) -> Finding {
    let is_plain =
        run.manifest.spec.client.http == HttpVersion::Http1 && !run.manifest.endpoint.base.tls;
    let missing = if is_plain {
        "the client was not calibrated on this machine (inferometer calibrate)"
    } else {
        "a calibration speaks for plain HTTP/1.1 only"
    };
    let used = health.capacity.as_ref().ok_or(missing)?.used;
    let percent = used * 100.0;
    Ok(Found::figure(used, format!("{percent:.1} % of the client's capacity was used")))
}

fn stamps(measured: &Measured) -> Finding {
    let oddities = &measured.oddities;
    let stamped = share(oddities.reads_stamped, oddities.reads).ok_or("nothing was read")?;
    Ok(Found::figure(stamped, "every read has the kernel's stamp"))
}

fn answered(measured: &Measured) -> Result<(), String> {
    if measured.ok == 0 { Err(NOTHING_OK.0.to_owned()) } else { Ok(()) }
}

fn with_tokens(measured: &Measured) -> Result<(), String> {
    answered(measured)?;
    if measured.generates { Ok(()) } else { Err(NO_TOKENS.0.to_owned()) }
}

fn stream(run: &Observations, measured: &Measured) -> Finding {
    answered(measured)?;
    if !run.manifest.spec.workload.streaming {
        return Err("the answers were not asked for as streams".to_owned());
    }
    Ok(Found::text("every stream came in pieces and to its end"))
}

fn token_counts(measured: &Measured) -> Finding {
    with_tokens(measured)?;
    let events = measured.tokens.output_source.events as f64;
    Ok(Found::figure(events, "every answer's tokens are the server's own count"))
}

fn output_length(measured: &Measured) -> Finding {
    with_tokens(measured)?;
    let off = share(measured.oddities.output_off, measured.ok).unwrap_or(0.0);
    let percent = off * 100.0;
    Ok(Found::figure(off, format!("{percent:.1} % of answers are of another length")))
}

fn input_length(run: &Observations, measured: &Measured) -> Finding {
    if run.manifest.spec.workload.body.images.is_some() {
        return Err("pictures are tokens too, and how many is the server's affair".to_owned());
    }
    let input = &measured.audit.input;
    let tokens = input.planned_tokens.zip(input.actual_tokens).filter(|(planned, _)| 0 < *planned);
    let Some((planned, actual)) = tokens else {
        let nothing_planned = || "no prompt was to have a token".to_owned();
        return Err(input.reason.clone().unwrap_or_else(nothing_planned));
    };
    let off = (actual as f64 - planned as f64) / planned as f64;
    let text = format!("the server counts {actual} tokens where {planned} were asked for");
    Ok(Found::figure(off.abs(), text))
}

fn cache(run: &Observations, measured: &Measured) -> Finding {
    if new_prompts(&run.manifest.spec.workload.source).is_none() {
        return Err("prompts of this workload need not be new to the server".to_owned());
    }
    let share = cached_share(measured)
        .ok_or("the server does not say what it took from its prefix cache")?;
    let text = format!("{:.1} % of the input came from the prefix cache", share * 100.0);
    Ok(Found::figure(share, text))
}

fn alone(server: &ServerSide) -> Finding {
    let apart = server.tokens_apart;
    let worst = [apart.prompt, apart.generation]
        .into_iter()
        .flatten()
        .max_by(|a, b| a.abs().total_cmp(&b.abs()))
        .ok_or("the server's totals cannot be compared with the client's")?;
    let text = format!("the server's tokens are {:.2} % apart from ours", worst.abs() * 100.0);
    Ok(Found::figure(worst.abs(), text))
}

fn gpus(measured: &Measured) -> Result<&GpuFigures, String> {
    let machines = &measured.machines.figures;
    let missing = || machines.gpus_missing.clone().unwrap_or_default();
    let gpus = machines.gpus.as_ref().ok_or_else(missing)?;
    if gpus.looks == 0 {
        Err("no look at the GPUs was inside the run".to_owned())
    } else {
        Ok(gpus)
    }
}

fn gpu_speed(gpus: &GpuFigures) -> Finding {
    let used = gpus.devices.iter().filter(|device| device.counts());
    let shares = used.flat_map(|device| [device.throttled_thermal, device.throttled_hardware]);
    let worst =
        shares.flatten().reduce(f64::max).ok_or("the GPUs do not say what holds them back")?;
    Ok(Found::figure(worst, "neither heat nor a brake of the board held a GPU back"))
}

fn gpu_alone(gpus: &GpuFigures, run: &Observations) -> Finding {
    let looks = run.machines.devices.iter().flat_map(|sample| &sample.devices);
    if looks.filter(|reading| reading.processes.is_some()).count() < 2 {
        return Err("the GPUs do not say which processes use them".to_owned());
    }
    let used = gpus.devices.iter().filter(|device| device.counts());
    let newcomers: u64 = used.map(|device| device.newcomers).sum();
    Ok(Found::figure(newcomers as f64, "no process came to the GPUs during the run"))
}

fn client_machine(measured: &Measured) -> Finding {
    let client = measured.machines.figures.client.as_ref();
    let busy = client.and_then(|client| client.cpu_share).ok_or("nobody looked at it")?.mean;
    let text = format!("its processors were busy for {:.1} % of the run", busy * 100.0);
    Ok(Found::figure(busy, text))
}
