//! The one table of metrics, in the order of the pages.

use super::{Better, Formula, Headline, Metric, Missing, NOTHING_SENT, Unit};
use crate::measured::Measured;

/// Every metric, in the order of the pages.
pub static METRICS: &[Metric] = &[
    Metric {
        name: "ttft",
        title: "TTFT",
        help: "time to first token: first output event − sent",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        headline: Headline::ClosedLoop,
        formula: Formula::Distribution(|m| &m.ttft, NO_OUTPUT),
    },
    Metric {
        name: "ttft_schedule",
        title: "TTFT from schedule",
        help: "first output event − intended: waiting in the client counts",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        headline: Headline::OpenLoop,
        formula: Formula::Distribution(|m| &m.ttft_schedule, NO_OUTPUT),
    },
    Metric {
        name: "ttfc",
        title: "TTFC",
        help: "time to first content: first event with answer text − sent",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        headline: Headline::Never,
        formula: Formula::Distribution(|m| &m.ttfc, Missing("no ok answer carried content")),
    },
    Metric {
        name: "icl",
        title: "ICL",
        help: "inter-chunk latency: gaps between consecutive arrivals, pooled over requests",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        headline: Headline::Never,
        formula: Formula::Distribution(|m| &m.icl, NO_GAPS),
    },
    Metric {
        name: "itl",
        title: "ITL",
        help: "inter-token latency: the same gaps per token, k of gap/k for an arrival of k",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        headline: Headline::Always,
        formula: Formula::Distribution(|m| &m.itl, NO_GAPS),
    },
    Metric {
        name: "tpot",
        title: "TPOT",
        help: "time per output token: (last arrival − first) / tokens after the first arrival",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        headline: Headline::Always,
        formula: Formula::Distribution(
            |m| &m.tpot,
            Missing("no ok answer has tokens after its first arrival"),
        ),
    },
    Metric {
        name: "e2e",
        title: "E2E",
        help: "end to end: last output event − sent",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        headline: Headline::ClosedLoop,
        formula: Formula::Distribution(|m| &m.e2e, NO_OUTPUT),
    },
    Metric {
        name: "e2e_schedule",
        title: "E2E from schedule",
        help: "last output event − intended: waiting in the client counts",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        headline: Headline::OpenLoop,
        formula: Formula::Distribution(|m| &m.e2e_schedule, NO_OUTPUT),
    },
    Metric {
        name: "client_queue",
        title: "Client queue",
        help: "admitted − intended: waiting for a slot of the concurrency cap",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        headline: Headline::Never,
        formula: Formula::Distribution(|m| &m.client_queue, NOTHING_SENT),
    },
    Metric {
        name: "send_lag",
        title: "Send lag",
        help: "sent − admitted: the client's own delay, connecting included",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        headline: Headline::Never,
        formula: Formula::Distribution(|m| &m.send_lag, NOTHING_SENT),
    },
    Metric {
        name: "client_lag",
        title: "Client lag",
        help: "how long bytes lay in the kernel: read returned − kernel receive stamp, per read",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        headline: Headline::Never,
        formula: Formula::Distribution(
            |m| &m.client_lag,
            Missing("no read carries a kernel stamp"),
        ),
    },
    Metric {
        name: "arrival_width",
        title: "Arrival width",
        help: "how far back the events of a coalesced arrival may really lie",
        unit: Unit::Milliseconds,
        better: Better::Lower,
        headline: Headline::Never,
        formula: Formula::Distribution(
            |m| &m.arrival_width,
            Missing("no read brought more than one output event"),
        ),
    },
    Metric {
        name: "request_throughput",
        title: "Request throughput",
        help: "ok requests / window",
        unit: Unit::RequestsPerSecond,
        better: Better::Higher,
        headline: Headline::Always,
        formula: Formula::Estimate(Measured::request_throughput, |m| m.doubt.requests),
    },
    Metric {
        name: "input_throughput",
        title: "Input throughput",
        help: "input tokens of ok requests / window",
        unit: Unit::TokensPerSecond,
        better: Better::Higher,
        headline: Headline::Never,
        formula: Formula::Estimate(Measured::input_throughput, |m| m.doubt.input),
    },
    Metric {
        name: "output_throughput",
        title: "Output throughput",
        help: "output tokens of ok requests / window",
        unit: Unit::TokensPerSecond,
        better: Better::Higher,
        headline: Headline::Always,
        formula: Formula::Estimate(Measured::output_throughput, |m| m.doubt.output),
    },
    Metric {
        name: "total_throughput",
        title: "Total throughput",
        help: "input and output tokens of ok requests / window",
        unit: Unit::TokensPerSecond,
        better: Better::Higher,
        headline: Headline::Always,
        formula: Formula::Estimate(Measured::total_throughput, |m| m.doubt.total),
    },
    Metric {
        name: "per_user_throughput",
        title: "Per-user throughput",
        help: "output throughput / concurrency of the closed loop",
        unit: Unit::TokensPerSecond,
        better: Better::Higher,
        headline: Headline::ClosedLoop,
        formula: Formula::Estimate(Measured::per_user_throughput, Measured::per_user_interval),
    },
    Metric {
        name: "peak_output_throughput",
        title: "Peak output throughput",
        help: "the most output tokens of ok requests in any sliding second",
        unit: Unit::TokensPerSecond,
        better: Better::Higher,
        headline: Headline::Never,
        formula: Formula::Scalar(Measured::peak_output_throughput),
    },
    Metric {
        name: "concurrency_mean",
        title: "Mean concurrency",
        help: "requests in flight, averaged over the window",
        unit: Unit::Requests,
        better: Better::Neither,
        headline: Headline::OpenLoop,
        formula: Formula::Scalar(Measured::concurrency_mean),
    },
    Metric {
        name: "concurrency_peak",
        title: "Peak concurrency",
        help: "the most requests in flight at once",
        unit: Unit::Requests,
        better: Better::Neither,
        headline: Headline::OpenLoop,
        formula: Formula::Scalar(Measured::concurrency_peak),
    },
    Metric {
        name: "error_rate",
        title: "Error rate",
        help: "share of attempted requests that did not end ok",
        unit: Unit::Share,
        better: Better::Lower,
        headline: Headline::Always,
        formula: Formula::Estimate(Measured::error_rate, |m| m.doubt.failed),
    },
    Metric {
        name: "goodput",
        title: "Goodput",
        help: "requests that kept every promise made of each / window",
        unit: Unit::RequestsPerSecond,
        better: Better::Higher,
        headline: Headline::Always,
        formula: Formula::Estimate(Measured::goodput, |m| m.doubt.good),
    },
    Metric {
        name: "attainment",
        title: "Attainment",
        help: "their share of all scheduled requests, turns that the run's end cut off left out",
        unit: Unit::Share,
        better: Better::Higher,
        headline: Headline::Always,
        formula: Formula::Estimate(Measured::attainment, |m| m.doubt.kept),
    },
    Metric {
        name: "fluidity",
        title: "Fluidity index",
        help: "share of all tokens due that met their deadline (promised ttft, then tpot each), time \
               saved carried over",
        unit: Unit::Share,
        better: Better::Higher,
        headline: Headline::Never,
        formula: Formula::Estimate(Measured::fluidity, |m| m.fluidity.interval),
    },
    Metric {
        name: "pp",
        title: "Prefill speed (PP)",
        help: "prefill speed: mean input tokens / mean TTFT",
        unit: Unit::TokensPerSecond,
        better: Better::Higher,
        headline: Headline::Never,
        formula: Formula::Estimate(Measured::prefill_speed, |m| m.doubt.prefill),
    },
    Metric {
        name: "tg",
        title: "Decode speed (TG)",
        help: "decode speed of one stream: 1 / mean TPOT",
        unit: Unit::TokensPerSecond,
        better: Better::Higher,
        headline: Headline::Never,
        formula: Formula::Estimate(Measured::decode_speed, |m| m.doubt.decode),
    },
    Metric {
        name: "server_prompt_throughput",
        title: "Prompt TPS (server)",
        help: "prompt tokens by the server's counter / time between its first and last scrape",
        unit: Unit::TokensPerSecond,
        better: Better::Higher,
        headline: Headline::Never,
        formula: Formula::Telemetry(Measured::server_prompt_throughput),
    },
    Metric {
        name: "server_generation_throughput",
        title: "Generation TPS (server)",
        help: "generated tokens by the server's counter / the same time",
        unit: Unit::TokensPerSecond,
        better: Better::Higher,
        headline: Headline::Never,
        formula: Formula::Telemetry(Measured::server_generation_throughput),
    },
    Metric {
        name: "gpu_power",
        title: "GPU power",
        help: "energy of the server's GPUs / window, all that were in use together",
        unit: Unit::Watts,
        better: Better::Neither,
        headline: Headline::Never,
        formula: Formula::Telemetry(Measured::gpu_power),
    },
    Metric {
        name: "energy_per_output_token",
        title: "Energy per output token",
        help: "energy of the server's GPUs over the window / output tokens of ok requests",
        unit: Unit::JoulesPerToken,
        better: Better::Lower,
        headline: Headline::Never,
        formula: Formula::Telemetry(Measured::energy_per_output_token),
    },
    Metric {
        name: "output_tokens_per_joule",
        title: "Output tokens per joule",
        help: "the inverse: output tokens of ok requests / energy of the server's GPUs",
        unit: Unit::TokensPerJoule,
        better: Better::Higher,
        headline: Headline::Never,
        formula: Formula::Telemetry(Measured::output_tokens_per_joule),
    },
];

const NO_OUTPUT: Missing = Missing("no ok answer carried output");
const NO_GAPS: Missing = Missing("no ok answer came in more than one arrival");

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::metric::Shape;

    #[test]
    fn the_table_is_in_the_documented_order_with_the_documented_keys() {
        let keys: Vec<String> = METRICS.iter().map(Metric::key).collect();
        assert_eq!(
            keys,
            [
                "ttft_ms",
                "ttft_schedule_ms",
                "ttfc_ms",
                "icl_ms",
                "itl_ms",
                "tpot_ms",
                "e2e_ms",
                "e2e_schedule_ms",
                "client_queue_ms",
                "send_lag_ms",
                "client_lag_ms",
                "arrival_width_ms",
                "request_throughput",
                "input_throughput",
                "output_throughput",
                "total_throughput",
                "per_user_throughput",
                "peak_output_throughput",
                "concurrency_mean",
                "concurrency_peak",
                "error_rate",
                "goodput",
                "attainment",
                "fluidity",
                "pp",
                "tg",
                "server_prompt_throughput",
                "server_generation_throughput",
                "gpu_power",
                "energy_per_output_token",
                "output_tokens_per_joule",
            ]
        );
    }

    #[test]
    fn names_titles_and_helps_are_there_and_names_are_unique() {
        let names: BTreeSet<&str> = METRICS.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), METRICS.len());
        for metric in METRICS {
            assert!(!metric.title.is_empty() && !metric.help.is_empty(), "{}", metric.name);
            assert!(!metric.help.ends_with('.'), "{}: a fragment", metric.name);
            assert_eq!(Metric::named(metric.name), Some(metric));
        }
        assert_eq!(Metric::named("none"), None);
    }

    #[test]
    fn distributions_are_latencies_and_latencies_are_distributions() {
        for metric in METRICS {
            let is_distribution = metric.shape() == Shape::Distribution;
            assert_eq!(is_distribution, metric.unit == Unit::Milliseconds, "{}", metric.name);
            assert!(!is_distribution || metric.better == Better::Lower, "{}", metric.name);
        }
    }

    #[test]
    fn an_open_loop_headlines_latency_from_schedule() {
        let open: Vec<&str> = METRICS
            .iter()
            .filter(|metric| metric.headline.on_open_loop())
            .map(|metric| metric.name)
            .collect();
        assert!(open.contains(&"ttft_schedule") && !open.contains(&"ttft"));
        assert!(!Metric::named("ttft_schedule").unwrap().headline.on_closed_loop());
    }
}
