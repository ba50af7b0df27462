//! The page of a simulation without records.

use inferometer_model::observations::Simulated;
use inferometer_report::escape::terminal;
use inferometer_report::fmt::{count, number, percent};
use inferometer_report::lines::hanging;
use inferometer_runner::simulation::{Times, Told};

pub(crate) fn page(told: &Told) -> String {
    let Simulated { profile, engine } = &told.simulated;
    let outcomes = told.outcomes.iter();
    let outcomes: Vec<String> =
        outcomes.map(|(outcome, number)| format!("{} {outcome}", count(*number))).collect();
    let header = ["mean", "p50", "p90", "p95", "p99", "max"].map(|name| format!("{name:>10}"));
    let rates = format!(
        "{:<22}{:>10} requests/s, {} output tokens/s, {} tokens/s in all\n",
        "throughput",
        number(told.request_throughput),
        number(told.output_throughput),
        number(told.total_throughput),
    );
    let server = format!(
        "{:<22}{:>10} of the tokens looked up, {} preemptions, {} steps\n{:<22}{:>10} on \
         average, {} at most; {} running and {} waiting at most\n",
        "prefix cache",
        percent(told.prefix_hit_rate),
        count(told.preemptions),
        count(told.steps),
        "KV blocks in use",
        percent(told.kv_usage_mean),
        percent(told.kv_usage_max),
        count(told.running_max.into()),
        count(told.waiting_max.into()),
    );
    // A profile's file may say anything.
    let title = format!(
        "SIMULATED in virtual time: no server was measured. Profile {}: {}",
        terminal(profile),
        terminal(engine)
    );
    let partial = told.stopped.map(|stop| format!("partial: {}\n", stop.text()));
    [
        hanging("", 0, &title),
        "\n".to_owned(),
        format!("Inferometer simulation without records, seed {}\n", told.seed),
        partial.unwrap_or_default(),
        format!("{} in {} s\n\n", outcomes.join(", "), number(told.duration_s)),
        format!("{:<22}{}{:>12}\n", "latency (ms)", header.concat(), "n"),
        row("TTFT", &told.ttft_ms),
        row("TPOT", &told.tpot_ms),
        row("ITL", &told.itl_ms),
        row("E2E", &told.e2e_ms),
        "\n".to_owned(),
        rates,
        server,
    ]
    .concat()
}

fn row(title: &str, times: &Times) -> String {
    let figures = [times.mean, times.p50, times.p90, times.p95, times.p99, times.max];
    let figures = figures.map(|value| format!("{:>10}", number(value)));
    format!("{title:<22}{}{:>12}\n", figures.concat(), count(times.n))
}
