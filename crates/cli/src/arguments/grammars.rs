//! How each kind of value is written.

use std::time::Duration;

use inferometer_model::campaign::{Order, Prompts, StopAt, Strategy};
use inferometer_model::endpoint::Api;
use inferometer_model::observations::Connections;
use inferometer_model::spec::{
    AdapterChoice, ArrivalsKind, Counting, DatasetKind, EngineGeneration, EnginePolicy, Lengths,
    PinOutput, RampCurve, ThinkKind, Ticks, TraceKind, Until,
};
use schemars::{Schema, json_schema};

use super::written::{Grammar, Named};
use crate::cores::{self, CoreList};
use crate::duration;
use crate::rates::{self, PerSecond, Ramp};

impl Grammar for Duration {
    const NAME: &'static str = "Time";

    fn read(text: &str) -> Result<Self, String> {
        duration::parse(text)
    }

    fn write(&self) -> String {
        format!("{}s", self.as_secs_f64())
    }

    fn schema() -> Schema {
        json_schema!({
            "type": "string",
            "pattern": r"^ *[0-9.]+ *(us|ms|s|m|min|h)$",
            "examples": ["500ms", "30s", "2m"],
        })
    }
}

impl Grammar for Lengths {
    const NAME: &'static str = "Lengths";

    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: inferometer_model::spec::LengthsError| error.to_string())
    }

    fn write(&self) -> String {
        self.to_string()
    }

    fn schema() -> Schema {
        json_schema!({
            "type": ["integer", "string"],
            "minimum": 1,
            "examples": [
                512, "512±20%", "uniform:256..1024", "normal:512,128", "lognormal:512,0.8",
                "zipf:1.2,16..4096", "histogram:128=3,512=1",
            ],
        })
    }
}

impl Grammar for PerSecond {
    const NAME: &'static str = "Rate";

    fn read(text: &str) -> Result<Self, String> {
        rates::parse(text).map(Self)
    }

    fn write(&self) -> String {
        self.0.to_string()
    }

    fn schema() -> Schema {
        json_schema!({
            "type": ["number", "string"],
            "exclusiveMinimum": 0,
            "examples": [20, 0.5, "inf"],
        })
    }
}

impl Grammar for Ramp {
    const NAME: &'static str = "Ramp";

    fn read(text: &str) -> Result<Self, String> {
        rates::parse_ramp(text)
    }

    fn write(&self) -> String {
        let segments = self.0.iter().map(|segment| {
            format!("{}..{}:{}", segment.from_per_s, segment.to_per_s, segment.over.write())
        });
        segments.collect::<Vec<_>>().join(",")
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "examples": ["2..20:60s", "2..20:60s,20..5:30s"] })
    }
}

impl Grammar for CoreList {
    const NAME: &'static str = "Cores";

    fn read(text: &str) -> Result<Self, String> {
        cores::parse(text)
    }

    fn write(&self) -> String {
        self.0.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "examples": ["2,4-6"] })
    }
}

/// Width and height in pixels, written `512x512`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageSize(pub(crate) u32, pub(crate) u32);

impl Grammar for ImageSize {
    const NAME: &'static str = "ImageSize";

    fn read(text: &str) -> Result<Self, String> {
        let side = |text: &str| text.trim().parse::<u32>().ok();
        let sides = text.split_once(['x', '×']).and_then(|(w, h)| side(w).zip(side(h)));
        let (width, height) = sides.ok_or_else(|| {
            format!("`{text}` is not a size; write width and height in pixels, such as 512x512")
        })?;
        Ok(Self(width, height))
    }

    fn write(&self) -> String {
        format!("{}x{}", self.0, self.1)
    }

    fn schema() -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^ *[0-9]+ *[x×] *[0-9]+ *$",
            "examples": ["512x512"],
        })
    }
}

impl Grammar for AdapterChoice {
    const NAME: &'static str = "AdapterChoice";

    fn read(text: &str) -> Result<Self, String> {
        let zipf = || text.strip_prefix("zipf:")?.trim().parse().ok().map(Self::Zipf);
        match text {
            "round-robin" => Ok(Self::RoundRobin),
            "random" => Ok(Self::Random),
            _ => zipf().ok_or_else(|| {
                format!("`{text}` is not known; write round-robin, random, or zipf:1.1")
            }),
        }
    }

    fn write(&self) -> String {
        match self {
            Self::RoundRobin => "round-robin".to_owned(),
            Self::Random => "random".to_owned(),
            Self::Zipf(exponent) => format!("zipf:{exponent}"),
        }
    }

    fn schema() -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^(round-robin|random|zipf:.+)$",
            "examples": ["round-robin", "random", "zipf:1.1"],
        })
    }
}

/// A share, written as per cent or as a number from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Share(pub(crate) f64);

impl Share {
    fn written(self) -> String {
        // Per cent as they were typed: 0.07 is not 7.000000000000001 %.
        format!("{}%", (self.0 * 100.0 * 1e9).round() / 1e9)
    }
}

impl Grammar for Share {
    const NAME: &'static str = "Share";

    fn read(text: &str) -> Result<Self, String> {
        let (number, whole) = match text.trim().strip_suffix('%') {
            Some(number) => (number, 100.0),
            None => (text, 1.0),
        };
        let share = number.trim().parse::<f64>().ok().map(|number| number / whole);
        share
            .filter(|share| 0.0 < *share && *share < 1.0)
            .map(Self)
            .ok_or_else(|| format!("`{text}` is not a share between 0 and 1; write 5% or 0.05"))
    }

    fn write(&self) -> String {
        self.written()
    }

    fn schema() -> Schema {
        json_schema!({ "type": ["number", "string"], "examples": ["5%", 0.05] })
    }
}

impl Grammar for StopAt {
    const NAME: &'static str = "StopAt";

    fn read(text: &str) -> Result<Self, String> {
        let wanted =
            || format!("`{text}` is not known; write it as output_throughput=2% or ttft.p99=5%");
        let (quantity, share) = text.split_once('=').ok_or_else(wanted)?;
        let Share(half_width) = Share::read(share).map_err(|_| wanted())?;
        Ok(Self { quantity: quantity.trim().to_owned(), half_width })
    }

    fn write(&self) -> String {
        format!("{}={}", self.quantity, Share(self.half_width).written())
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "examples": ["output_throughput=2%", "ttft.p99=5%"] })
    }
}

impl Named for Api {
    const KIND: &'static str = "Api";

    fn names() -> Vec<(&'static str, Self)> {
        Self::ALL.into_iter().map(|api| (api.name(), api)).collect()
    }
}

/// Prompts of our own, or those of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceName {
    Synthetic,
    VllmRandom,
}

/// What is done, or left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Switch {
    On,
    Off,
}

macro_rules! names {
    ($kind:ident: $($name:literal => $variant:ident),+ $(,)?) => {
        impl Named for $kind {
            const KIND: &'static str = stringify!($kind);

            fn names() -> Vec<(&'static str, Self)> {
                vec![$(($name, Self::$variant)),+]
            }
        }
    };
}

names!(Switch: "on" => On, "off" => Off);
names!(SourceName: "synthetic" => Synthetic, "vllm-random" => VllmRandom);
names!(
    DatasetKind:
    "sharegpt" => ShareGpt,
    "jsonl" => Jsonl,
    "csv" => Csv,
    "text" => Text,
    "directory" => Directory,
);
names!(
    TraceKind:
    "mooncake" => Mooncake,
    "azure" => Azure,
    "burstgpt" => BurstGpt,
    "bailian" => Bailian,
);
names!(Counting: "prompt" => Prompt, "with-template" => WithTemplate);
names!(PinOutput: "auto" => Auto, "always" => Always, "never" => Never);
names!(ThinkKind: "fixed" => Fixed, "exponential" => Exponential);
names!(RampCurve: "linear" => Linear, "exponential" => Exponential);
names!(
    ArrivalsKind:
    "constant" => Constant,
    "poisson" => Poisson,
    "gamma" => Gamma,
    "stretched" => Stretched,
);
names!(Until: "both" => Both, "first" => First);
names!(Ticks: "auto" => Auto, "keep" => Keep, "uniform" => Uniform, "poisson" => Poisson);
names!(Connections: "reuse" => Reuse, "new" => New, "per-user" => PerUser);
names!(Prompts: "fresh" => Fresh, "same" => Same);
names!(Strategy: "tensor" => Tensor, "pipeline" => Pipeline);
names!(Order: "interleaved" => Interleaved, "listed" => Listed);
names!(EngineGeneration: "v0" => V0, "v1" => V1);
names!(EnginePolicy: "fcfs" => Fcfs, "priority" => Priority);
