//! The target, the body and the load of the other client, as tables of ours.

use std::time::Duration;

use inferometer_model::BaseUrl;
use inferometer_model::endpoint::{Api, BaseUrlError};
use inferometer_model::spec::{
    AdapterChoice, ArrivalsKind, BodyTable, LoadTable, PerSecond, PinOutput, Ramp, RampCurve,
    RampSegment,
};
use serde_json::{Value, json};

use super::refused::{REFUSALS, Refusal};
use crate::arguments::{
    LoraAssignment, RampStrategy, ServeBenchArguments, ServeLoadArguments, ServeTargetArguments,
};
use crate::failure::Failure;

/// A backend of the other client that can be driven here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Backend {
    /// In its own word, which the result file repeats.
    pub(super) name: String,
    pub(super) api: Api,
}

impl Backend {
    pub(super) fn named(typed: Option<&str>) -> Result<Self, Failure> {
        let name = typed.unwrap_or("openai");
        let api = match name {
            "openai" | "vllm" => Api::Completions,
            "openai-chat" => Api::Chat,
            "openai-embeddings" => Api::Embeddings,
            _ => {
                return Err(match Refusal::find(&REFUSALS.backends, name) {
                    Some(Refusal { why, instead, .. }) => {
                        Failure::usage(format!("--backend {name} cannot be measured: {why}"))
                            .hint(instead)
                    }
                    None => Failure::usage(format!(
                        "--backend {name} is not known; it is openai, vllm, openai-chat or \
                         openai-embeddings"
                    ))
                    .hint("`inferometer run --api` speaks to other servers"),
                });
            }
        };
        Ok(Self { name: name.to_owned(), api })
    }

    /// The endpoint, which must be the API's own below some prefix.
    pub(super) fn url(&self, said: &ServeTargetArguments) -> Result<BaseUrl, Failure> {
        let own = self.api.path(true, "");
        let endpoint = said.endpoint.as_deref().unwrap_or(&own);
        let (host, port) = (said.host.as_deref().unwrap_or("127.0.0.1"), said.port.unwrap_or(8000));
        let base = said.base_url.clone().unwrap_or_else(|| origin(host, &port.to_string()));
        let typed = format!("{base}{endpoint}");
        let base: BaseUrl = typed
            .parse()
            .map_err(|error: BaseUrlError| Failure::usage(format!("--base-url: {error}")))?;
        let asked = format!("{}{own}", base.prefix);
        if typed.trim_end_matches('/').ends_with(&asked) {
            return Ok(base);
        }
        Err(Failure::usage(format!(
            "--endpoint {endpoint}: the backend {} sends its requests to {own}, below any prefix",
            self.name
        ))
        .hint(format!("leave --endpoint out, or end it in {own}; --backend chooses the API")))
    }
}

/// What a host and a port are as a URL.
pub(crate) fn origin(host: &str, port: &str) -> String {
    let is_bare_ipv6 = host.contains(':') && !host.starts_with('[');
    if is_bare_ipv6 { format!("http://[{host}]:{port}") } else { format!("http://{host}:{port}") }
}

/// `goes_on` is whether answers are to have the length that was asked for.
pub(super) fn body_table(
    said: &ServeBenchArguments,
    api: Api,
    goes_on: bool,
) -> Result<BodyTable, Failure> {
    let body = &said.body;
    let mut fields = body.extra_body.clone().unwrap_or_default();
    // What was typed as a whole body wins over single flags.
    let sampling = body.sampling.fields();
    if !api.generates() && !sampling.is_empty() {
        return Err(Failure::usage("sampling flags need a backend that generates text"));
    }
    let of_client = [
        // Sent with every completion, so that the server's own default does not count.
        ("repetition_penalty", (api == Api::Completions).then(|| json!(1.0))),
        ("logprobs", body.logprobs.map(Value::from)),
        ("truncate_prompt_tokens", (api == Api::Embeddings).then(|| json!(-1))),
        ("ignore_eos", (goes_on && api.generates()).then_some(Value::Bool(true))),
    ];
    if body.logprobs.is_some() && api != Api::Completions {
        return Err(Failure::usage("--logprobs is only sent with completions")
            .hint("for chat: --extra-body '{\"logprobs\": true, \"top_logprobs\": 1}'"));
    }
    let of_client =
        of_client.into_iter().filter_map(|(field, value)| Some((field.to_owned(), value?)));
    for (field, value) in sampling.into_iter().chain(of_client) {
        fields.entry(field).or_insert(value);
    }
    let adapters = said.target.lora_modules.clone();
    let choice = match said.target.lora_assignment {
        None | Some(LoraAssignment::Random) => AdapterChoice::Random,
        Some(LoraAssignment::RoundRobin) => AdapterChoice::RoundRobin,
    };
    Ok(BodyTable {
        // The fields above are all that the other client sends.
        pin_output: Some(PinOutput::Never),
        lora_choice: (!adapters.is_empty()).then_some(choice.into()),
        lora: (!adapters.is_empty()).then_some(adapters),
        extra: Some(fields).filter(|fields| !fields.is_empty()),
        ..BodyTable::default()
    })
}

/// Requests that are sent by default.
const REQUESTS: u64 = 1_000;
/// Pieces of a ramp whose rate grows by the same factor with each request: that is no curve over
/// time of ours, but is one closely enough in so many pieces.
const PIECES: u32 = 16;

/// `recorded` is whether the data brings moments of its own.
pub(super) fn load_table(said: &ServeLoadArguments, recorded: bool) -> Result<LoadTable, Failure> {
    check(said)?;
    let requests = requests(said)?;
    let load = LoadTable {
        requests: Some(requests),
        warm_up: said.num_warmups.filter(|requests| 0 < *requests),
        ..LoadTable::default()
    };
    let cap = said.max_concurrency;
    if recorded {
        return Ok(LoadTable { max_concurrency: cap, ..load });
    }
    let rate = said.request_rate.unwrap_or(f64::INFINITY);
    let load = match said.ramp_up_strategy {
        Some(strategy) => ramped(said, strategy, requests, load)?,
        // So many in flight until all are sent is a closed loop.
        None if rate.is_infinite() && cap.is_some() => {
            return Ok(LoadTable { concurrency: cap, ..load });
        }
        None => LoadTable { rate: Some(PerSecond(rate)), ..load },
    };
    let load = LoadTable { max_concurrency: cap, ..load };
    if said.ramp_up_strategy.is_none() && rate.is_infinite() {
        return Ok(load);
    }
    let burstiness = said.burstiness.unwrap_or(1.0);
    // Its schedules end at the number of requests over the rate; its ramps are not stretched.
    if said.ramp_up_strategy.is_none() && burstiness.is_finite() {
        let arrivals = Some(ArrivalsKind::Stretched);
        return Ok(LoadTable { arrivals, burstiness: Some(burstiness), ..load });
    }
    let (arrivals, burstiness) = if burstiness.is_infinite() {
        (ArrivalsKind::Constant, None)
    } else if (burstiness - 1.0).abs() < f64::EPSILON {
        (ArrivalsKind::Poisson, None)
    } else {
        (ArrivalsKind::Gamma, Some(burstiness))
    };
    Ok(LoadTable { arrivals: Some(arrivals), burstiness, ..load })
}

/// The number of requests that will be sent.
pub(super) fn requests(said: &ServeLoadArguments) -> Result<u64, Failure> {
    match said.num_prompts.map(u64::try_from) {
        None => Ok(REQUESTS),
        Some(Ok(requests)) if 0 < requests => Ok(requests),
        Some(_) => Err(Failure::usage("--num-prompts must be above 0")
            .hint("to send all of a file, give the number of its lines")),
    }
}

fn check(said: &ServeLoadArguments) -> Result<(), Failure> {
    if said.probe_request_rate.is_some_and(|rate| rate != 0.0) {
        return Err(Failure::usage(
            "--probe-request-rate cannot be honoured: probes that wait for each other, and for the \
             load's connections, do not show what a user beside the load would see",
        )
        .hint(
            "measure beside it with a second run: inferometer run URL --rate 1 --prompt Hi \
             --output-tokens 1",
        ));
    }
    if said.max_concurrency == Some(0) {
        return Err(Failure::usage("--max-concurrency must be above 0"));
    }
    let rates = [said.request_rate, said.burstiness];
    if rates.into_iter().flatten().any(|value| value.is_nan() || value <= 0.0) {
        return Err(Failure::usage("--request-rate and --burstiness must be above 0"));
    }
    let ends = [said.ramp_up_start_rps, said.ramp_up_end_rps];
    if said.ramp_up_strategy.is_none() && ends.iter().any(Option::is_some) {
        return Err(Failure::usage("a ramp needs --ramp-up-strategy: linear or exponential"));
    }
    Ok(())
}

/// Its ramps go by the number of the request, ours by time.
fn ramped(
    said: &ServeLoadArguments,
    strategy: RampStrategy,
    requests: u64,
    load: LoadTable,
) -> Result<LoadTable, Failure> {
    if said.request_rate.is_some_and(f64::is_finite) {
        return Err(Failure::usage("--ramp-up-strategy sets the rate; leave --request-rate out"));
    }
    let (Some(from), Some(to)) = (said.ramp_up_start_rps, said.ramp_up_end_rps) else {
        return Err(Failure::usage(
            "--ramp-up-strategy needs --ramp-up-start-rps and --ramp-up-end-rps",
        ));
    };
    if from <= 0 || to < from {
        return Err(Failure::usage(format!(
            "a ramp from {from} to {to} requests per second: the first must be above 0, and the \
             last no less"
        ))
        .hint("from 0 no request would ever leave; begin with 1"));
    }
    let (from, to) = (from as f64, to as f64);
    if from.total_cmp(&to).is_eq() {
        return Ok(LoadTable { rate: Some(PerSecond(from)), ..load });
    }
    let pieces = match strategy {
        // A rate that grows with each request by the same amount grows in time by the same factor.
        RampStrategy::Linear => 1,
        RampStrategy::Exponential => PIECES,
    };
    let growth = libm::log(to / from) / f64::from(pieces);
    let rate_at = |piece: u32| from * libm::exp(growth * f64::from(piece));
    let each = requests as f64 / f64::from(pieces);
    let segments = (0..pieces).map(|piece| {
        let (from_per_s, to_per_s) = (rate_at(piece), rate_at(piece + 1));
        let seconds = each * growth / (to_per_s - from_per_s);
        let over = Duration::try_from_secs_f64(seconds).map_err(|_| {
            Failure::usage(format!(
                "a ramp from {from} to {to} requests per second cannot be told from a steady rate"
            ))
            .hint("use --request-rate, or ends that lie further apart")
        })?;
        Ok(RampSegment { from_per_s, to_per_s, over })
    });
    let segments = segments.collect::<Result<_, Failure>>()?;
    Ok(LoadTable { ramp: Some(Ramp(segments)), ramp_curve: Some(RampCurve::Exponential), ..load })
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use inferometer_model::spec::Rate;

    use super::*;

    #[derive(Parser)]
    struct TypedTarget {
        #[command(flatten)]
        target: ServeTargetArguments,
    }

    fn url(typed: &str) -> Result<String, String> {
        let words = std::iter::once("bench").chain(typed.split_whitespace());
        let said = TypedTarget::try_parse_from(words).unwrap().target;
        let backend =
            Backend::named(said.backend.as_deref()).map_err(|error| format!("{error:?}"))?;
        backend.url(&said).map(|base| base.to_string()).map_err(|error| format!("{error:?}"))
    }

    #[test]
    fn a_place_is_put_together_as_the_other_client_does() {
        assert_eq!(url("").unwrap(), "http://127.0.0.1:8000");
        assert_eq!(url("--host ::1 --port 80").unwrap(), "http://[::1]");
        assert_eq!(
            url("--base-url https://h/p --endpoint /v1/completions").unwrap(),
            "https://h/p"
        );
        assert_eq!(url("--base-url http://h/v1 --endpoint /completions").unwrap(), "http://h");
        assert_eq!(url("--backend openai-chat").unwrap(), "http://127.0.0.1:8000");
        let chat = "--backend openai-chat --endpoint /v1/chat/completions";
        assert_eq!(url(chat).unwrap(), "http://127.0.0.1:8000");
    }

    #[test]
    fn another_endpoint_and_another_backend_are_refused() {
        let wrong = url("--backend openai-chat --endpoint /v1/completions").unwrap_err();
        assert!(wrong.contains("/v1/chat/completions"), "{wrong}");
        assert!(url("--endpoint /generate").unwrap_err().contains("/v1/completions"));
        let responses = url("--backend openai-responses").unwrap_err();
        assert!(responses.contains("run --api responses"), "{responses}");
        assert!(url("--backend openai-audio").unwrap_err().contains("audio"));
        assert!(url("--backend tgi").unwrap_err().contains("--api"));
    }

    #[derive(Parser)]
    #[command(allow_negative_numbers = true)]
    struct Typed {
        #[command(flatten)]
        load: ServeLoadArguments,
    }

    fn load(typed: &str) -> Result<LoadTable, String> {
        let words = std::iter::once("bench").chain(typed.split_whitespace());
        let said = Typed::try_parse_from(words).unwrap().load;
        load_table(&said, false).map_err(|failure| format!("{failure:?}"))
    }

    #[test]
    fn an_unlimited_rate_with_a_cap_is_a_closed_loop() {
        let capped = load("--max-concurrency 8 --num-prompts 20").unwrap();
        assert_eq!((capped.concurrency, capped.requests), (Some(8), Some(20)));
        assert!(capped.rate.is_none() && capped.max_concurrency.is_none());
        let all_at_once = load("").unwrap();
        assert_eq!(all_at_once.rate.unwrap(), PerSecond(f64::INFINITY));
        assert_eq!(all_at_once.requests, Some(1000));
        assert!(all_at_once.arrivals.is_none(), "there are no gaps to shape");
    }

    #[test]
    fn burstiness_names_the_gaps() {
        let kind = |typed: &str| load(typed).unwrap().arrivals.unwrap();
        assert_eq!(kind("--request-rate 5"), ArrivalsKind::Stretched);
        assert_eq!(kind("--request-rate 5 --burstiness inf"), ArrivalsKind::Constant);
        let bursty = load("--request-rate 5 --burstiness 0.5 --max-concurrency 9").unwrap();
        assert_eq!((bursty.burstiness, bursty.max_concurrency), (Some(0.5), Some(9)));
        let ramp = "--ramp-up-strategy linear --ramp-up-start-rps 5 --ramp-up-end-rps";
        assert_eq!(kind(&format!("{ramp} 9")), ArrivalsKind::Poisson);
        assert_eq!(kind(&format!("{ramp} 5")), ArrivalsKind::Poisson, "a flat one is one, too");
    }

    #[test]
    fn a_ramp_sends_all_its_requests_by_its_end() {
        for strategy in ["linear", "exponential"] {
            let typed = format!(
                "--ramp-up-strategy {strategy} --ramp-up-start-rps 2 --ramp-up-end-rps 20 \
                 --num-prompts 300"
            );
            let segments = load(&typed).unwrap().ramp.unwrap().0;
            let over = segments.iter().map(|segment| segment.over).sum();
            let rate = Rate::Ramp { segments, curve: RampCurve::Exponential };
            let expected = rate.expected_within(over);
            assert!((expected - 300.0).abs() < 1e-3, "{strategy}: {expected}");
            assert!((rate.per_s_in_the_end() - 20.0).abs() < 1e-9);
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert!(load("--num-prompts 0").unwrap_err().contains("--num-prompts"));
        assert!(load("--num-prompts -1").unwrap_err().contains("--num-prompts"));
        assert!(load("--probe-request-rate 5").unwrap_err().contains("second run"));
        assert!(load("--probe-request-rate 0").is_ok());
        assert!(load("--request-rate 0").is_err() && load("--max-concurrency 0").is_err());
        assert!(load("--ramp-up-start-rps 3").unwrap_err().contains("--ramp-up-strategy"));
        let ramp = "--ramp-up-strategy linear --ramp-up-start-rps 0 --ramp-up-end-rps 5";
        assert!(load(ramp).unwrap_err().contains("begin with 1"));
        let flat = "--ramp-up-strategy exponential --ramp-up-start-rps 1000000000000000 \
                    --ramp-up-end-rps 1000000000000001";
        assert!(load(flat).unwrap_err().contains("--request-rate"));
    }
}
