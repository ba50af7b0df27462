//! The load and the workload in words, for pages and for plans.

use inferometer_analysis::{
    ExtentFacts, LoadFacts, RampSegmentFacts, RateFacts, Summary, ThinkFacts, WarmUpFacts,
    WorkloadFacts,
};
use inferometer_model::endpoint::Api;
use inferometer_model::observations::InputLength;
use inferometer_model::spec::{Arrivals, Lengths, OUTPUT_TOKENS, RampCurve, SourceKind};

use super::{Join, count, counted, seconds, setting};
use crate::escape::{terminal, terminal_line};
use crate::texts::fill;

/// What arrives at a rate, or holds a slot: a request, or a user with several turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Unit {
    Requests,
    Conversations,
    Sessions,
}

impl Unit {
    #[expect(clippy::wildcard_enum_match_arm, reason = "all other sources have single requests")]
    pub fn from_source(source: SourceKind) -> Self {
        match source {
            SourceKind::Conversations => Self::Conversations,
            SourceKind::Sessions | SourceKind::Agents => Self::Sessions,
            _ => Self::Requests,
        }
    }
}

/// Numbers stand as they were typed.
pub fn shape(load: &LoadFacts, unit: Unit) -> String {
    let (rate, arrivals, cap) = match load {
        LoadFacts::Closed { concurrency, think, ramp_up_s } => {
            let held = match unit {
                Unit::Requests => "in flight",
                Unit::Conversations => "users, each in a conversation",
                Unit::Sessions => "users, each in a session",
            };
            let slots = count((*concurrency).into());
            let ramp_up = ramp_up_s.map_or_else(String::new, |seconds| {
                format!(", the first ones spread over {}", set_time(seconds))
            });
            return format!("closed loop, {slots} {held}{}{ramp_up}", thinking(*think));
        }
        LoadFacts::Open { rate, arrivals, max_concurrency } => (rate, *arrivals, max_concurrency),
    };
    let rate = match rate {
        RateFacts::Steady { per_s } => {
            format!("{} {unit}/s, {}", setting(*per_s), spacing(arrivals))
        }
        RateFacts::Ramp { segments, curve } => {
            format!("{}, {}", ramp(segments, *curve, unit), spacing(arrivals))
        }
        RateFacts::Unlimited => "everything at once".to_owned(),
        RateFacts::Recorded { speed: 1.0, .. } => "at the recorded times".to_owned(),
        RateFacts::Recorded { speed, .. } => {
            format!("at the recorded times, {} times as fast", setting(*speed))
        }
    };
    let cap = cap.map_or_else(String::new, |cap| {
        format!(", at most {} in flight (capped-open)", count(cap.into()))
    });
    format!("open loop, {rate}{cap}")
}

/// The load in a column: `c=8`, `20/s`, `2 to 20/s ≤64` with a cap.
pub fn brief(load: &LoadFacts) -> String {
    let (rate, cap) = match load {
        LoadFacts::Closed { concurrency, .. } => {
            return format!("c={}", count((*concurrency).into()));
        }
        LoadFacts::Open { rate, max_concurrency, .. } => (rate, *max_concurrency),
    };
    let rate = match rate {
        RateFacts::Steady { per_s } => format!("{}/s", setting(*per_s)),
        RateFacts::Unlimited => "all at once".to_owned(),
        RateFacts::Recorded { .. } => "as recorded".to_owned(),
        RateFacts::Ramp { segments, .. } => {
            let ends = segments.first().zip(segments.last());
            let [from, to] =
                ends.map_or([0.0; 2], |(first, last)| [first.from_per_s, last.to_per_s]);
            format!("{} to {}/s", setting(from), setting(to))
        }
    };
    rate + &cap.map_or_else(String::new, |cap| format!(" ≤{}", count(cap.into())))
}

/// The load of a run and its extent.
pub fn planned(summary: &Summary) -> String {
    let unit = Unit::from_source(summary.workload.source);
    format!("{}, {}", shape(&summary.run.load, unit), extent(&summary.run.extent))
}

pub fn extent(extent: &ExtentFacts) -> String {
    match extent {
        ExtentFacts::Whole => "to its end".to_owned(),
        ExtentFacts::Requests(requests) => format!("{} requests", count(*requests)),
        ExtentFacts::DurationS(duration_s) => format!("for {}", set_time(*duration_s)),
        ExtentFacts::UntilBoth { requests, duration_s } => {
            let time = set_time(*duration_s);
            format!("until {} requests and {time} are both reached", count(*requests))
        }
        ExtentFacts::UntilFirst { requests, duration_s } => {
            let time = set_time(*duration_s);
            format!("until {} requests or {time}, whichever is first", count(*requests))
        }
    }
}

pub fn warm_up(facts: &WarmUpFacts) -> String {
    let [requests, ok, failed] = [facts.requests, facts.ok, facts.failed].map(count);
    fill("warm-up", &[&requests, &seconds(facts.took_s), &ok, &failed])
}

/// A time that a user set.
fn set_time(seconds: f64) -> String {
    format!("{} s", setting(seconds))
}

fn thinking(think: ThinkFacts) -> String {
    match think {
        ThinkFacts::None => String::new(),
        ThinkFacts::Fixed { time_s } => format!(", think time {}", set_time(time_s)),
        ThinkFacts::Exponential { mean_s } => {
            format!(", think time {} on average (exponential)", set_time(mean_s))
        }
    }
}

fn spacing(arrivals: Arrivals) -> String {
    match arrivals {
        Arrivals::Constant => "evenly spaced".to_owned(),
        Arrivals::Poisson => "Poisson arrivals".to_owned(),
        Arrivals::Gamma { burstiness } => {
            format!("gamma arrivals (burstiness {})", setting(burstiness))
        }
        Arrivals::Stretched { burstiness: 1.0 } => {
            "Poisson arrivals stretched to the rate".to_owned()
        }
        Arrivals::Stretched { burstiness } => {
            let burstiness = setting(burstiness);
            format!("gamma arrivals (burstiness {burstiness}) stretched to the rate")
        }
    }
}

fn ramp(segments: &[RampSegmentFacts], curve: RampCurve, unit: Unit) -> String {
    /// A ramp of more segments is described by its ends.
    const SEGMENTS_MAX: usize = 4;
    let curve = match curve {
        RampCurve::Linear => "linear",
        RampCurve::Exponential => "exponential",
    };
    let described = |segment: &RampSegmentFacts| {
        let RampSegmentFacts { from_per_s, to_per_s, over_s } = segment;
        let [from, to] = [from_per_s, to_per_s].map(|rate| setting(*rate));
        format!("{from} to {to} {unit}/s over {}", set_time(*over_s))
    };
    match segments {
        [first, .., last] if SEGMENTS_MAX < segments.len() => {
            let over_s = segments.iter().map(|segment| segment.over_s).sum();
            let whole = RampSegmentFacts { over_s, to_per_s: last.to_per_s, ..*first };
            format!("{curve} ramp of {} segments from {}", segments.len(), described(&whole))
        }
        _ => format!("{curve} ramp from {}", segments.iter().map(described).join(", then ")),
    }
}

/// The requested lengths of prompts and answers.
pub fn lengths(workload: &WorkloadFacts, api: Api) -> String {
    let about = match workload.input_length {
        InputLength::Exact => "",
        InputLength::Estimated | InputLength::Corrected(_) => "about ",
    };
    let turns = workload.turns.as_ref().map_or_else(String::new, |turns| {
        let think = workload.turn_think.map_or_else(String::new, thinking);
        format!("conversations of {} turns{think}, ", tokens(turns))
    });
    let input = match (&workload.input_tokens, workload.source) {
        (Some(input), SourceKind::Agents) => {
            format!("agents with tasks of {about}{} tokens", tokens(input))
        }
        (Some(input), _) => format!("{about}{} tokens in", tokens(input)),
        (None, SourceKind::Fixed) => "always the same prompt".to_owned(),
        (None, SourceKind::Mix) => "a mix of prompts".to_owned(),
        (None, source) => format!("prompts of the {}", source.name()),
    };
    let output = match (&workload.output_tokens, workload.source) {
        (Some(output), _) => format!(", {} out", tokens(output)),
        // Vectors and scores have no length.
        (None, _) if !api.generates() => String::new(),
        (None, SourceKind::Mix) => String::new(),
        (None, SourceKind::Dataset) => {
            format!(", answers as long as in the data set, else {OUTPUT_TOKENS} tokens")
        }
        (None, _) => ", answers as long as in the source".to_owned(),
    };
    format!("{turns}{input}{output}")
}

/// What else request bodies carried, or nothing.
pub fn extras(workload: &WorkloadFacts) -> Option<String> {
    let prefix = workload.prefix.map(|prefix| {
        let tokens = count(prefix.tokens.into());
        match prefix.count {
            1 => format!("the same first {tokens} tokens"),
            several => format!("one of {} prefixes of {tokens} tokens", count(several.into())),
        }
    });
    let images = workload.images.map(|images| {
        let pictures = counted(images.count.into(), "picture");
        let sizes = workload.media.sizes.iter().map(|(width, height, _)| (*width, *height));
        let alone = workload.media.sizes.is_empty().then_some((images.width, images.height));
        let sizes = sizes.chain(alone).map(|(width, height)| format!("{width}×{height}"));
        match workload.media.image_files {
            Some(_) => format!("{pictures} from files"),
            None => format!("{pictures} of {}", sizes.collect::<Vec<_>>().join(" or ")),
        }
    });
    let audio = workload.media.audio.as_ref().map(|audio| {
        let recordings = counted(audio.count.into(), "recording");
        match audio.files {
            Some(_) => format!("{recordings} from files"),
            None => format!("{recordings} of {} s", audio.seconds),
        }
    });
    let adapters = workload.adapters.as_ref().map(|adapters| {
        format!("adapters {}", adapters.names.iter().map(|name| terminal(name)).join(", "))
    });
    let fields = workload.fields.iter().map(|(name, value)| {
        // A field's value may be a whole schema.
        terminal_line(&format!("{name} {value}"), 60)
    });
    let all = [prefix, images, audio, adapters].into_iter().flatten().chain(fields).try_join("; ");
    all.map(|all| format!("each with {all}"))
}

fn tokens(lengths: &Lengths) -> String {
    lengths.fixed().map_or_else(|| lengths.to_string(), |length| count(length.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(from_per_s: f64, to_per_s: f64, over_s: f64) -> RampSegmentFacts {
        RampSegmentFacts { from_per_s, to_per_s, over_s }
    }

    #[test]
    fn every_closed_loop_has_its_words() {
        let closed = |think, ramp_up_s| LoadFacts::Closed { concurrency: 8, think, ramp_up_s };
        let words = |think| shape(&closed(think, None), Unit::Requests);
        assert_eq!(words(ThinkFacts::None), "closed loop, 8 in flight");
        assert_eq!(
            shape(&closed(ThinkFacts::None, Some(2.0)), Unit::Requests),
            "closed loop, 8 in flight, the first ones spread over 2 s"
        );
        assert_eq!(
            words(ThinkFacts::Fixed { time_s: 2.0 }),
            "closed loop, 8 in flight, think time 2 s"
        );
        assert_eq!(
            words(ThinkFacts::Exponential { mean_s: 0.5 }),
            "closed loop, 8 in flight, think time 0.5 s on average (exponential)"
        );
    }

    #[test]
    fn every_open_loop_has_its_words() {
        let words = |rate, arrivals, max_concurrency| {
            shape(&LoadFacts::Open { rate, arrivals, max_concurrency }, Unit::Requests)
        };
        let steady = || RateFacts::Steady { per_s: 20.0 };
        let gamma = Arrivals::Gamma { burstiness: 0.5 };
        assert_eq!(
            words(steady(), gamma, Some(64)),
            "open loop, 20 requests/s, gamma arrivals (burstiness 0.5), at most 64 in flight \
             (capped-open)"
        );
        assert_eq!(
            words(steady(), Arrivals::Poisson, None),
            "open loop, 20 requests/s, Poisson arrivals"
        );
        assert_eq!(
            words(steady(), Arrivals::Stretched { burstiness: 1.0 }, None),
            "open loop, 20 requests/s, Poisson arrivals stretched to the rate"
        );
        assert_eq!(
            words(steady(), Arrivals::Stretched { burstiness: 0.5 }, None),
            "open loop, 20 requests/s, gamma arrivals (burstiness 0.5) stretched to the rate"
        );
        assert_eq!(
            words(RateFacts::Unlimited, Arrivals::Constant, None),
            "open loop, everything at once"
        );
        let up_and_down = vec![segment(2.0, 20.0, 60.0), segment(20.0, 5.0, 30.0)];
        assert_eq!(
            words(
                RateFacts::Ramp { segments: up_and_down, curve: RampCurve::Linear },
                Arrivals::Constant,
                None
            ),
            "open loop, linear ramp from 2 to 20 requests/s over 60 s, then 20 to 5 requests/s \
             over 30 s, evenly spaced"
        );
        let stairs = vec![segment(1.5, 2.5, 10.0); 12];
        assert_eq!(
            words(
                RateFacts::Ramp { segments: stairs, curve: RampCurve::Exponential },
                Arrivals::Poisson,
                None
            ),
            "open loop, exponential ramp of 12 segments from 1.5 to 2.5 requests/s over 120 s, \
             Poisson arrivals"
        );
    }

    #[test]
    fn every_end_has_its_words() {
        assert_eq!(extent(&ExtentFacts::Requests(1_500)), "1,500 requests");
        assert_eq!(extent(&ExtentFacts::DurationS(1.5)), "for 1.5 s");
        let (requests, duration_s) = (300, 60.0);
        assert_eq!(
            extent(&ExtentFacts::UntilBoth { requests, duration_s }),
            "until 300 requests and 60 s are both reached"
        );
        assert_eq!(
            extent(&ExtentFacts::UntilFirst { requests, duration_s }),
            "until 300 requests or 60 s, whichever is first"
        );
        let facts = WarmUpFacts { requests: 16, ok: 15, failed: 1, took_s: 2.3 };
        assert_eq!(warm_up(&facts), "not counted: 16 requests in 2.30 s, 15 ok, 1 failed");
    }
}
