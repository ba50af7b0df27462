//! What each check finds when nothing is wrong, and why it may have nothing to look at.

use inferometer_model::observations::HttpVersion;
use inferometer_model::{Observations, Outcome};

use super::CheckKind;
use crate::client::{ClientHealth, share};
use crate::delivered::Delivered;
use crate::measured::{Measured, Series};
use crate::metric::{NOTHING_OK, NOTHING_SENT};
use crate::sample::Percentile;
use crate::server::ServerSide;
use crate::steady::SteadyKind;
use crate::warning::{cached_share, new_prompts};

/// A finding with the number that was judged, as far as there is one.
pub(super) struct Found {
    pub(super) text: String,
    pub(super) figure: Option<f64>,
}

type Finding = Result<Found, String>;

const NO_CLIENT: &str = "there is no client in virtual time";

impl Found {
    /// The finding, or why there is none.
    pub(super) fn by(kind: CheckKind, run: &Observations, measured: &Measured) -> Finding {
        if kind.is_of_client() {
            return match &run.manifest.simulated {
                Some(_) => Err(NO_CLIENT.to_owned()),
                None => of_client(kind, run, measured),
            };
        }
        match kind {
            CheckKind::CompleteRun => Self::text("the plan was played to its end"),
            CheckKind::Errors => errors(run, measured),
            CheckKind::DeliveredLoad => delivered(measured),
            CheckKind::SteadyState => steady(measured),
            CheckKind::LittlesLaw => littles_law(measured),
            CheckKind::SampleSize => {
                Self::figure(measured.ok as f64, format!("{} requests ended ok", measured.ok))
            }
            _ => of_server(kind, run, measured),
        }
    }

    fn text(text: impl Into<String>) -> Finding {
        Ok(Self { text: text.into(), figure: None })
    }

    fn figure(figure: f64, text: impl Into<String>) -> Finding {
        Ok(Self { text: text.into(), figure: Some(figure) })
    }
}

fn errors(run: &Observations, measured: &Measured) -> Finding {
    let cut =
        |record: &&inferometer_model::RequestRecord| record.ending.outcome == Outcome::Cancelled;
    let cut = run.records.iter().filter(cut).count() as u64;
    let failed = measured.attempted - measured.ok - cut;
    let share = share(failed, measured.attempted).ok_or("no request was attempted")?;
    Found::figure(share, format!("{failed} of {} attempted requests failed", measured.attempted))
}

fn delivered(measured: &Measured) -> Finding {
    match &measured.delivered {
        Delivered::NotChecked { reason } => Err(reason.clone()),
        Delivered::Slots(slots) => Found::figure(
            1.0 - slots.share,
            format!("{:.2} of {} slots were in use", slots.in_use_mean, slots.asked),
        ),
        Delivered::Schedule(schedule) => {
            let rates = schedule.intended_per_s.zip(schedule.sent_per_s);
            let (intended, sent) = rates.ok_or("all requests were due at one moment")?;
            let late = schedule.late_share.unwrap_or(0.0) * 100.0;
            let text = format!(
                "{sent:.2} requests left per second, {intended:.2} were planned; {late:.1} % left \
                 more than {} ms late",
                schedule.late_from_ms
            );
            Ok(Found { text, figure: schedule.rate_apart.map(f64::abs) })
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
            Ok(Found { text, figure: window.duration_s })
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
    Found::figure(apart.abs(), text)
}

fn of_client(kind: CheckKind, run: &Observations, measured: &Measured) -> Finding {
    let health = || ClientHealth::of(run, measured);
    let p99 = |series: &Series, what: &str, missing: &str| {
        let sample = series.sample.as_ref().ok_or(missing)?;
        let p99 = sample.percentile(Percentile::P99);
        Found::figure(p99, format!("{what} {p99:.3} ms (p99)"))
    };
    match kind {
        CheckKind::SendLag if !run.manifest.spec.is_open_loop() => {
            Err("a closed loop plans no moments".to_owned())
        }
        CheckKind::SendLag => p99(&measured.send_lag, "requests left late by", NOTHING_SENT.0),
        CheckKind::ClientLag => {
            p99(&measured.client_lag, "bytes lay unread for", "no read has the kernel's stamp")
        }
        CheckKind::ArrivalWidth => {
            let nothing = "no ok answer came in events";
            p99(&measured.event_width, "events are older than their stamps by", nothing)
        }
        CheckKind::ClientLoop => {
            let late = health().loop_lag_ms.p99_at_most.ok_or("the client noted nothing")?;
            Found::figure(late, format!("the loop woke at most {late:.3} ms late (p99)"))
        }
        CheckKind::ClientCapacity => {
            let is_plain = run.manifest.spec.client.http == HttpVersion::Http1
                && !run.manifest.endpoint.base.tls;
            let missing = if is_plain {
                "the client was not calibrated on this machine (inferometer calibrate)"
            } else {
                "a calibration speaks for plain HTTP/1.1 only"
            };
            let used = health().capacity.ok_or(missing)?.used;
            Found::figure(used, format!("{:.1} % of the client's capacity was used", used * 100.0))
        }
        CheckKind::Clock => {
            let jumps = health().clock_jumps.unwrap_or(0);
            let odd = jumps + measured.out_of_order;
            Found::figure(odd as f64, "no jump, and every moment is in order")
        }
        _ => {
            let oddities = &measured.oddities;
            let stamped =
                share(oddities.reads_stamped, oddities.reads).ok_or("nothing was read")?;
            Found::figure(stamped, "every read has the kernel's stamp")
        }
    }
}

fn of_server(kind: CheckKind, run: &Observations, measured: &Measured) -> Finding {
    let server = || measured.server.as_ref().map_err(Clone::clone);
    match kind {
        CheckKind::ServerRestart => {
            let restarts = server()?.restarts;
            Found::figure(restarts as f64, "no restart in the server's metrics")
        }
        CheckKind::ServerAlone => alone(server()?),
        CheckKind::Cache => cache(run, measured),
        _ if measured.ok == 0 => Err(NOTHING_OK.0.to_owned()),
        CheckKind::Answerer => Found::text("every answer names the model that was asked for"),
        CheckKind::Stream if !run.manifest.spec.workload.streaming => {
            Err("the answers were not asked for as streams".to_owned())
        }
        CheckKind::Stream => Found::text("every stream came in pieces and to its end"),
        CheckKind::TokenCounts if !measured.generates => {
            Err("the answers have no tokens".to_owned())
        }
        CheckKind::TokenCounts => {
            let events = measured.tokens.output_source.events as f64;
            Found::figure(events, "every answer's tokens are the server's own count")
        }
        CheckKind::InputLength => input_length(run, measured),
        _ if !measured.generates => Err("the answers have no tokens".to_owned()),
        _ => {
            let off = share(measured.oddities.output_off, measured.ok).unwrap_or(0.0);
            let percent = off * 100.0;
            Found::figure(off, format!("{percent:.1} % of answers are of another length"))
        }
    }
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
    Found::figure(off.abs(), text)
}

fn cache(run: &Observations, measured: &Measured) -> Finding {
    if new_prompts(&run.manifest.spec.workload.source).is_none() {
        return Err("prompts of this workload need not be new to the server".to_owned());
    }
    let share = cached_share(measured)
        .ok_or("the server does not say what it took from its prefix cache")?;
    let text = format!("{:.1} % of the input came from the prefix cache", share * 100.0);
    Found::figure(share, text)
}

fn alone(server: &ServerSide) -> Finding {
    let apart = server.tokens_apart;
    let worst = [apart.prompt, apart.generation]
        .into_iter()
        .flatten()
        .max_by(|a, b| a.abs().total_cmp(&b.abs()))
        .ok_or("the server's totals cannot be compared with the client's")?;
    let text = format!("the server's tokens are {:.2} % apart from ours", worst.abs() * 100.0);
    Found::figure(worst.abs(), text)
}
