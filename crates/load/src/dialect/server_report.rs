//! What servers report about their own work on a request, beside its answer: times in the queue, of the
//! prefill and of the decoding, reasoning tokens, and speculative decoding. [`PLACES`] is the one table
//! of where each server puts them.
//!
//! Servers send these values once, with the finish reason or with the usage at the end of a stream, so
//! that ordinary events are not searched. A wrong value costs the value and not the answer.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use inferometer_model::record::{ServerReport, Speculation};
use memchr::memmem::Finder;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// What a value means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quantity {
    Queue,
    Prefill,
    Decode,
    CachedTokens,
    ReasoningTokens,
    SpeculationSteps,
    Drafted,
    Accepted,
    AcceptanceHistogram,
}
use Quantity::{
    AcceptanceHistogram, Accepted, CachedTokens, Decode, Drafted, Prefill, Queue, ReasoningTokens,
    SpeculationSteps,
};

const SECONDS: f64 = 1.0;
const MILLISECONDS: f64 = 1e-3;
const NANOSECONDS: f64 = 1e-9;
const COUNT: f64 = 1.0;

/// Where each server puts each quantity: its unit, and JSON pointers with signs between them. The first
/// row of a quantity whose values are all there counts.
static PLACES: &[(Quantity, f64, &str)] = &[
    // vLLM with `--enable-per-request-metrics`; its time to the first token begins after the queue.
    (Queue, MILLISECONDS, "/metrics/queue_time_ms"),
    (Prefill, MILLISECONDS, "/metrics/time_to_first_token_ms"),
    (Decode, MILLISECONDS, "/metrics/generation_time_ms"),
    (ReasoningTokens, COUNT, "/metrics/output_token_metrics/reasoning/token_count"),
    // vLLM with `--per-request-spec-decode-metrics`.
    (SpeculationSteps, COUNT, "/metrics/speculative_decoding/num_spec_steps"),
    (Drafted, COUNT, "/metrics/speculative_decoding/num_draft_tokens"),
    (Accepted, COUNT, "/metrics/speculative_decoding/num_accepted_draft_tokens"),
    (AcceptanceHistogram, COUNT, "/metrics/speculative_decoding/acceptance_histogram"),
    // llama.cpp, with every API.
    (Prefill, MILLISECONDS, "/timings/prompt_ms"),
    (Decode, MILLISECONDS, "/timings/predicted_ms"),
    (CachedTokens, COUNT, "/timings/cache_n"),
    (Drafted, COUNT, "/timings/draft_n"),
    (Accepted, COUNT, "/timings/draft_n_accepted"),
    // SGLang with `--enable-metrics`.
    (Queue, SECONDS, "/meta_info/queue_time"),
    (Prefill, SECONDS, "/meta_info/prefill_launch_delay + /meta_info/prefill_launch_latency"),
    (
        Decode,
        SECONDS,
        "/meta_info/inference_time - /meta_info/prefill_launch_delay \
         - /meta_info/prefill_launch_latency",
    ),
    (ReasoningTokens, COUNT, "/meta_info/reasoning_tokens"),
    (SpeculationSteps, COUNT, "/meta_info/spec_verify_ct"),
    (Drafted, COUNT, "/meta_info/spec_num_proposed_drafts"),
    (Drafted, COUNT, "/meta_info/spec_draft_token_num"),
    (Accepted, COUNT, "/meta_info/spec_num_correct_drafts"),
    (Accepted, COUNT, "/meta_info/spec_accept_token_num"),
    // Ollama.
    (Prefill, NANOSECONDS, "/prompt_eval_duration"),
    (Decode, NANOSECONDS, "/eval_duration"),
    // Dynamo, where a request asks for it.
    (Queue, MILLISECONDS, "/nvext/timing/prefill_wait_time_ms"),
    (Prefill, MILLISECONDS, "/nvext/timing/prefill_time_ms"),
    // Groq.
    (Queue, SECONDS, "/usage/queue_time"),
    (Prefill, SECONDS, "/usage/prompt_time"),
    (Decode, SECONDS, "/usage/completion_time"),
    // OpenAI's chat and Responses, and who serves them; SGLang's chat; DeepSeek.
    (ReasoningTokens, COUNT, "/usage/completion_tokens_details/reasoning_tokens"),
    (ReasoningTokens, COUNT, "/usage/output_tokens_details/reasoning_tokens"),
    (ReasoningTokens, COUNT, "/usage/reasoning_tokens"),
    (CachedTokens, COUNT, "/usage/prompt_cache_hit_tokens"),
];

/// A part of a name in each of the objects above that has something to read.
static MARKS: LazyLock<[Finder<'static>; 8]> = LazyLock::new(|| {
    let marks = [
        "\"metrics\"",
        "\"timings\"",
        "\"meta_info\"",
        "\"nvext\"",
        "eval_duration\"",
        "reasoning_tokens\"",
        "\"queue_time\"",
        "\"prompt_cache_hit_tokens\"",
    ];
    marks.map(Finder::new)
});

/// The report of the last document of an answer, and its cached tokens where usage has no place for
/// them. `None` without either.
pub(crate) fn read(json: &[u8]) -> Option<(ServerReport, Option<u64>)> {
    MARKS.iter().find(|mark| mark.find(json).is_some())?;
    let root = root(json)?;
    let mut reader = Reader { root: &root, dropped: 0 };
    let accepted = reader.count(Accepted);
    let speculation = accepted.map(|accepted| Speculation {
        steps: reader.count(SpeculationSteps),
        drafted: reader.count(Drafted),
        accepted,
        histogram: reader.counts(AcceptanceHistogram),
    });
    let report = ServerReport {
        queue: reader.time(Queue),
        prefill: reader.time(Prefill),
        decode: reader.time(Decode),
        reasoning_tokens: reader.count(ReasoningTokens),
        // A server that drafted nothing says that it does not speculate.
        speculation: speculation.filter(|it| it.steps != Some(0) && it.drafted != Some(0)),
        dropped: 0,
    };
    let cached = reader.count(CachedTokens);
    let report = ServerReport { dropped: reader.dropped, ..report };
    (!report.is_empty() || cached.is_some()).then_some((report, cached))
}

/// What a later document of the same answer adds to an earlier one.
pub(crate) fn completed(report: ServerReport, earlier: ServerReport) -> ServerReport {
    ServerReport {
        queue: report.queue.or(earlier.queue),
        prefill: report.prefill.or(earlier.prefill),
        decode: report.decode.or(earlier.decode),
        reasoning_tokens: report.reasoning_tokens.or(earlier.reasoning_tokens),
        speculation: report.speculation.or(earlier.speculation),
        dropped: report.dropped.max(earlier.dropped),
    }
}

/// The members that the table names, of the document and of the response that an event carries: llama.cpp
/// puts its times beside the response. The text of an answer is passed over.
fn root(json: &[u8]) -> Option<Value> {
    let members: BTreeMap<&str, &RawValue> = serde_json::from_slice(json).ok()?;
    let mut found = named(&members);
    let response = members.get("response").and_then(|raw| serde_json::from_str(raw.get()).ok());
    found.extend(response.iter().flat_map(named));
    Some(Value::Object(found))
}

fn named(members: &BTreeMap<&str, &RawValue>) -> Map<String, Value> {
    let wanted = |name: &str| {
        PLACES.iter().any(|(_, _, places)| {
            places.split_whitespace().any(|place| place.split('/').nth(1) == Some(name))
        })
    };
    let read = members.iter().filter(|(name, _)| wanted(name));
    read.filter_map(|(name, raw)| Some(((*name).to_owned(), serde_json::from_str(raw.get()).ok()?)))
        .collect()
}

struct Reader<'a> {
    root: &'a Value,
    dropped: u32,
}

impl<'a> Reader<'a> {
    /// The number of the first row whose values are all there, in seconds or as a count; a value that is
    /// no number, or a negative result, is dropped.
    fn number(&mut self, wanted: Quantity) -> Option<f64> {
        for (_, unit, places) in PLACES.iter().filter(|(quantity, ..)| *quantity == wanted) {
            let (mut sum, mut sign, mut is_whole) = (0.0, 1.0, true);
            for word in places.split_whitespace() {
                match word {
                    "+" => sign = 1.0,
                    "-" => sign = -1.0,
                    pointer => match self.value(pointer) {
                        None => is_whole = false,
                        Some(value) => sum += sign * value.as_f64().unwrap_or(f64::NAN),
                    },
                }
            }
            if is_whole {
                let found = Some(sum * unit).filter(|value| value.is_finite() && 0.0 <= *value);
                self.dropped += u32::from(found.is_none());
                return found;
            }
        }
        None
    }

    fn time(&mut self, wanted: Quantity) -> Option<Duration> {
        let time = self.number(wanted).map(Duration::try_from_secs_f64)?;
        self.dropped += u32::from(time.is_err());
        time.ok()
    }

    fn count(&mut self, wanted: Quantity) -> Option<u64> {
        /// Above it not every whole number is one of those that JSON's readers keep.
        const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
        let number = self.number(wanted)?;
        let is_count = number.fract() == 0.0 && number <= EXACT_MAX;
        self.dropped += u32::from(!is_count);
        is_count.then(|| inferometer_model::whole::to_u64(number))
    }

    /// A list of counts; empty where there is none, or where one of them is no count.
    fn counts(&mut self, wanted: Quantity) -> Vec<u64> {
        let mut places = PLACES.iter().filter(|(quantity, ..)| *quantity == wanted);
        let found = places.find_map(|(_, _, place)| self.value(place));
        let Some(list) = found else { return Vec::new() };
        let items = list.as_array().map(|items| items.iter().map(Value::as_u64).collect());
        let counts: Option<Vec<u64>> = items.flatten();
        self.dropped += u32::from(counts.is_none());
        counts.unwrap_or_default()
    }

    fn value(&self, pointer: &str) -> Option<&'a Value> {
        self.root.pointer(pointer).filter(|value| !value.is_null())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "as the facts have it")]
    fn ms(ms: f64) -> Option<Duration> {
        Some(Duration::from_secs_f64(ms / 1e3))
    }

    fn report(json: &str) -> ServerReport {
        read(json.as_bytes()).map_or_else(ServerReport::default, |(report, _)| report)
    }

    fn times(json: &str) -> [Option<Duration>; 3] {
        let ServerReport { queue, prefill, decode, .. } = report(json);
        [queue, prefill, decode]
    }

    #[test]
    fn each_server_is_read_from_its_own_places() {
        for (json, expected) in [
            (
                r#"{"choices":[],"usage":{"completion_tokens":9},"metrics":{"time_to_first_token_ms":85.25,"generation_time_ms":1240.5,"queue_time_ms":12.5,"mean_itl_ms":null}}"#,
                [ms(12.5), ms(85.25), ms(1240.5)],
            ),
            (
                r#"{"timings":{"cache_n":60,"prompt_n":8,"prompt_ms":43.25,"predicted_n":25,"predicted_ms":238.5}}"#,
                [None, ms(43.25), ms(238.5)],
            ),
            (
                r#"{"text":"a","meta_info":{"queue_time":0.5,"prefill_launch_delay":0.25,"prefill_launch_latency":0.5,"inference_time":2.0}}"#,
                [ms(500.0), ms(750.0), ms(1250.0)],
            ),
            (
                r#"{"response":"","done":true,"prompt_eval_duration":2000000,"eval_duration":3000000}"#,
                [None, ms(2.0), ms(3.0)],
            ),
            (
                r#"{"usage":{"queue_time":0.125,"prompt_time":0.25,"completion_time":0.5}}"#,
                [ms(125.0), ms(250.0), ms(500.0)],
            ),
            (
                r#"{"nvext":{"timing":{"prefill_wait_time_ms":1.5,"prefill_time_ms":2.5}}}"#,
                [ms(1.5), ms(2.5), None],
            ),
        ] {
            assert_eq!(times(json), expected, "{json}");
            assert_eq!(report(json).dropped, 0, "{json}");
        }
    }

    #[test]
    fn reasoning_cached_and_speculated_tokens_are_read() {
        let response = r#"{"type":"response.completed","response":{"usage":{"output_tokens_details":{"reasoning_tokens":7}}}}"#;
        assert_eq!(report(response).reasoning_tokens, Some(7));
        let beside = r#"{"response":{"usage":{"reasoning_tokens":7}},"timings":{"prompt_ms":2}}"#;
        assert_eq!((report(beside).reasoning_tokens, report(beside).prefill), (Some(7), ms(2.0)));
        let chat = r#"{"usage":{"completion_tokens_details":{"reasoning_tokens":5}}}"#;
        assert_eq!(report(chat).reasoning_tokens, Some(5));
        let cached = |json: &str| read(json.as_bytes()).unwrap().1;
        assert_eq!(cached(r#"{"timings":{"cache_n":60}}"#), Some(60));
        assert_eq!(cached(r#"{"usage":{"prompt_cache_hit_tokens":3}}"#), Some(3));
        let vllm = r#"{"metrics":{"speculative_decoding":{"num_spec_steps":43,"num_accepted_draft_tokens":10,"num_draft_tokens":129,"acceptance_histogram":[39,1,0,3]}}}"#;
        let expected = Speculation {
            steps: Some(43),
            drafted: Some(129),
            accepted: 10,
            histogram: vec![39, 1, 0, 3],
        };
        assert_eq!(report(vllm).speculation, Some(expected));
        let llama = r#"{"timings":{"draft_n":16,"draft_n_accepted":14}}"#;
        let found = report(llama).speculation.unwrap();
        assert_eq!((found.steps, found.drafted, found.accepted), (None, Some(16), 14));
        assert_eq!(report(r#"{"timings":{"draft_n":0,"draft_n_accepted":0}}"#).speculation, None);
    }

    #[test]
    fn hostile_values_are_dropped_and_counted() {
        for (json, dropped) in [
            (r#"{"metrics":{"queue_time_ms":-1}}"#, 1),
            (r#"{"metrics":{"queue_time_ms":"1"}}"#, 1),
            (r#"{"metrics":{"queue_time_ms":1e300}}"#, 1),
            (r#"{"metrics":{"queue_time_ms":[1],"generation_time_ms":{}}}"#, 2),
            (r#"{"usage":{"completion_tokens_details":{"reasoning_tokens":2.5}}}"#, 1),
            (r#"{"usage":{"completion_tokens_details":{"reasoning_tokens":1e18}}}"#, 1),
            (
                r#"{"meta_info":{"prefill_launch_delay":1,"prefill_launch_latency":1,"inference_time":1}}"#,
                1,
            ),
            (r#"{"metrics":null,"timings":[]}"#, 0),
            (r#"{"metrics":{"queue_time_ms":null}}"#, 0),
        ] {
            let ServerReport { queue, decode, reasoning_tokens, dropped: found, .. } = report(json);
            assert_eq!((queue, decode, reasoning_tokens), (None, None, None), "{json}");
            assert_eq!(found, dropped, "{json}");
        }
        assert_eq!(read(br#"{"choices":[{"delta":{"content":"no \"metrics\": here"}}]}"#), None);
        assert_eq!(read(b"\"metrics\""), None);
    }

    #[test]
    fn what_is_longer_than_the_request_or_its_answer_is_dropped_and_counted() {
        let sound = ServerReport {
            queue: ms(10.0),
            prefill: ms(20.0),
            decode: ms(101.0),
            reasoning_tokens: Some(8),
            speculation: Some(Speculation {
                steps: Some(4),
                drafted: Some(8),
                accepted: 4,
                histogram: vec![2, 0, 2],
            }),
            dropped: 1,
        };
        let elapsed = Duration::from_millis(100);
        assert_eq!(sound.clone().checked(elapsed, Some(8)), sound);
        assert_eq!(sound.clone().checked(elapsed, None), sound);
        let found = sound.clone().checked(Duration::from_millis(15), Some(3));
        assert_eq!((found.queue, found.prefill, found.decode), (ms(10.0), None, None));
        assert_eq!((found.reasoning_tokens, &found.speculation, found.dropped), (None, &None, 5));
        for wrong in [
            Speculation { steps: Some(4), drafted: Some(3), accepted: 4, histogram: Vec::new() },
            Speculation { steps: Some(4), drafted: None, accepted: 4, histogram: vec![2, 1, 1] },
            Speculation { steps: Some(4), drafted: None, accepted: 0, histogram: vec![0; 65] },
            Speculation { steps: None, drafted: None, accepted: 0, histogram: vec![u64::MAX, 1] },
        ] {
            let report = ServerReport { speculation: Some(wrong.clone()), ..sound.clone() };
            let found = report.checked(elapsed, Some(8));
            assert_eq!((&found.speculation, found.dropped), (&None, 2), "{wrong:?}");
        }
    }
}
