//! Values that are text on the command line and in an experiment file: one grammar for both.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};
use strum::VariantArray;

use super::{
    AbortOn, AdapterChoice, ArrivalsKind, Counting, DatasetKind, DevicesAsked, EngineGeneration,
    History, Hook, Lengths, PinOutput, Price, RampCurve, RampSegment, SchedulingPolicy,
    SessionKind, SourceName, Switch, ThinkKind, Ticks, TraceKind, Until, WarmUp,
};
use crate::deployment::{DeployKind, Renewal};
use crate::endpoint::Api;
use crate::observations::Connections;
use crate::study::{Prompts, RunOrder, StopAt, Strategy};
use crate::variant_name;
use crate::whole::to_u64;

/// How a kind of value is written as text.
pub trait Grammar: Clone + Send + Sync + Sized + 'static {
    fn read(text: &str) -> Result<Self, String>;
    /// Text that `read` turns into the same value again.
    fn write(&self) -> String;

    /// The name of its schema in `schemas.json`, unless `schema` gives another.
    const SCHEMA: &'static str = "";

    fn schema() -> Schema {
        let schemas: Result<BTreeMap<String, Schema>, _> =
            serde_json::from_str(include_str!("schemas.json"));
        schemas.ok().and_then(|mut all| all.remove(Self::SCHEMA)).unwrap_or_default()
    }
}

/// A value that is read and written as its text, where its own serialized form is another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Written<T>(pub T);

/// A duration that is written as text, such as `30s`.
pub type Time = Written<Duration>;

impl<T> From<T> for Written<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<T: Grammar> Grammar for Written<T> {
    fn read(text: &str) -> Result<Self, String> {
        T::read(text).map(Self)
    }

    fn write(&self) -> String {
        self.0.write()
    }

    fn schema() -> Schema {
        T::schema()
    }
}

/// Reads a value from text, or from a number or list that is written without quotes: a list is its
/// items joined with commas. Whether these are allowed is decided by the schema.
pub(super) fn read_any<'de, T: Grammar, D: Deserializer<'de>>(source: D) -> Result<T, D::Error> {
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let value = Value::deserialize(source)?;
    let text = match value.as_array() {
        Some(items) => items.iter().map(plain).collect::<Vec<_>>().join(","),
        None => plain(&value),
    };
    T::read(&text).map_err(de::Error::custom)
}

/// The schema of a type is that of its grammar.
macro_rules! schema_of_grammar {
    ([$($bound:tt)*] $kind:ty) => {
        impl<$($bound)*> JsonSchema for $kind {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                "Text".into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                <Self as Grammar>::schema()
            }
        }
    };
}

/// Types whose only form, on the command line and in files, is their text.
macro_rules! written_as_text {
    ($([$($bound:tt)*] $kind:ty),+ $(,)?) => {$(
        impl<$($bound)*> std::str::FromStr for $kind {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                Self::read(text)
            }
        }

        impl<$($bound)*> Serialize for $kind {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.write())
            }
        }

        impl<'de, $($bound)*> Deserialize<'de> for $kind {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                read_any(deserializer)
            }
        }

        schema_of_grammar!([$($bound)*] $kind);
    )+};
}

written_as_text!([T: Grammar] Written<T>, [] PerSecond, [] Ramp, [] CoreList, [] ImageSizes, [] Share);
written_as_text!([] DevicesAsked, [] Price, [] AbortOn, [] Hook, [] WarmUp);
schema_of_grammar!([] Lengths);

/// A number as people write it: `0.5`, `1_000`, `1,000`, `2k` or `1.5m`, where k is a thousand, m a
/// million and g a thousand million.
pub fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let (digits, factor) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1e3),
        b'm' | b'M' => (&text[..text.len() - 1], 1e6),
        b'g' | b'G' => (&text[..text.len() - 1], 1e9),
        _ => (text, 1.0),
    };
    let mut groups = digits.split('.').next()?.split(',');
    let first = groups.next()?;
    // Commas separate thousands, and nothing else.
    let is_grouped = groups.all(|group| group.len() == 3 && (1..4).contains(&first.len()));
    let plain = digits.replace(['_', ','], "");
    plain.parse::<f64>().ok().filter(|_| is_grouped).map(|number| number * factor)
}

/// A whole number as people write it: `8`, `1_000`, `1,000`, `2k` or `1.5m`.
///
/// # Errors
/// The message says how a whole number is written, or what is the highest one.
pub fn count<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    /// From here on, not every whole number is exact in a float.
    const EXACT_MAX: f64 = 9e15;
    let is_whole = |number: &f64| (0.0..=EXACT_MAX).contains(number) && number.fract() == 0.0;
    let plain = text.trim().replace('_', "");
    let short = || number(text).filter(is_whole).map(to_u64);
    let found = plain.parse::<u64>().ok().or_else(short).ok_or_else(|| {
        format!("`{text}` is not a whole number; write it as 8, 1000, 1_000, 2k or 1.5m")
    })?;
    T::try_from(found).map_err(|_| format!("`{text}` is too large"))
}

impl Grammar for Duration {
    const SCHEMA: &'static str = "duration";

    fn read(text: &str) -> Result<Self, String> {
        let wanted =
            || format!("`{text}` is not a duration; write it as 500ms, 30s, 1.5m, 1h or 1h30m");
        let (mut rest, mut seconds) = (text.trim(), 0.0);
        while !rest.is_empty() {
            let unit_at = rest.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(wanted)?;
            let (number, behind) = rest.split_at(unit_at);
            let ends_at = behind.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(behind.len());
            let (unit, behind) = behind.split_at(ends_at);
            let number: f64 = number.trim().parse().map_err(|_| wanted())?;
            if number < 0.0 {
                return Err(format!("`{text}` is negative; a duration must not be negative"));
            }
            seconds += number
                * match unit {
                    "us" => 1e-6,
                    "ms" => 1e-3,
                    "s" | "sec" => 1.0,
                    "m" | "min" => 60.0,
                    "h" => 3_600.0,
                    "d" => 86_400.0,
                    _ => return Err(wanted()),
                };
            rest = behind.trim_start();
        }
        if text.trim().is_empty() {
            return Err(wanted());
        }
        Duration::try_from_secs_f64(seconds).map_err(|_| wanted())
    }

    fn write(&self) -> String {
        format!("{}s", self.as_secs_f64())
    }
}

/// Requests per second, such as `20` or `inf`; infinite sends everything at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PerSecond(pub f64);

impl Grammar for PerSecond {
    const SCHEMA: &'static str = "rate";

    fn read(text: &str) -> Result<Self, String> {
        match text.trim().to_ascii_lowercase().as_str() {
            "inf" | "unlimited" => Ok(Self(f64::INFINITY)),
            rate => number(rate).map(Self).ok_or_else(|| {
                let how = "write requests per second, such as 20 or 0.5, or inf";
                format!("`{text}` is not a rate; {how}")
            }),
        }
    }

    fn write(&self) -> String {
        self.0.to_string()
    }
}

/// Segments of a ramp, such as `2..20:60s,20..5:30s`.
#[derive(Clone, Debug, PartialEq)]
pub struct Ramp(pub Vec<RampSegment>);

impl Grammar for Ramp {
    const SCHEMA: &'static str = "ramp";

    fn read(text: &str) -> Result<Self, String> {
        let segment = |text: &str| {
            let wanted = || {
                format!(
                    "`{text}` is not a segment of a ramp; write FROM..TO:TIME in requests per \
                     second, such as 2..20:60s, and separate segments with commas"
                )
            };
            let (rates, time) = text.split_once(':').ok_or_else(wanted)?;
            let (from, to) = rates.split_once("..").ok_or_else(wanted)?;
            let rate = |number: &str| number.trim().parse::<f64>().map_err(|_| wanted());
            let over = Duration::read(time.trim())?;
            Ok(RampSegment { from_per_s: rate(from)?, to_per_s: rate(to)?, over })
        };
        text.split(',').map(segment).collect::<Result<_, _>>().map(Self)
    }

    fn write(&self) -> String {
        let segments = self.0.iter().map(|segment| {
            format!("{}..{}:{}", segment.from_per_s, segment.to_per_s, segment.over.write())
        });
        segments.collect::<Vec<_>>().join(",")
    }
}

/// CPU cores such as `2,4-6`, in the order in which they were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreList(pub Vec<u32>);

impl Grammar for CoreList {
    const SCHEMA: &'static str = "cores";

    fn read(text: &str) -> Result<Self, String> {
        let mut cores = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number =
                // More cores than any machine has: a typing error.
                |text: &str| text.trim().parse::<u32>().ok().filter(|core| *core < 65_536);
            let range = number(first).zip(number(last)).filter(|(first, last)| first <= last);
            let (first, last) = range.ok_or_else(|| {
                format!("`{part}` is not a core or a range of cores, such as 2 or 4-6")
            })?;
            for core in first..=last {
                if cores.contains(&core) {
                    return Err(format!("core {core} is named twice"));
                }
                cores.push(core);
            }
        }
        Ok(Self(cores))
    }

    fn write(&self) -> String {
        self.0.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
    }
}

/// Width and height in pixels, such as `512x512`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageSize(pub u32, pub u32);

/// Sizes with their weights, such as `512x512=3,1024x768`; without one a weight is 1.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageSizes(pub Vec<(ImageSize, f64)>);

impl From<ImageSize> for ImageSizes {
    fn from(size: ImageSize) -> Self {
        Self(vec![(size, 1.0)])
    }
}

impl Grammar for ImageSizes {
    const SCHEMA: &'static str = "image_size";

    fn read(text: &str) -> Result<Self, String> {
        let side = |text: &str| text.trim().parse::<u32>().ok();
        let sizes = text.split(',').map(|item| {
            let (pixels, weight) = item.split_once('=').unwrap_or((item, "1"));
            let sides = pixels.split_once(['x', '×']).and_then(|(w, h)| side(w).zip(side(h)));
            let weight = weight.trim().parse::<f64>().ok().filter(|it| it.is_finite() && 0.0 < *it);
            let ((width, height), weight) = sides.zip(weight).ok_or_else(|| {
                format!(
                    "`{item}` is not a size; write width and height in pixels, such as 512x512, or \
                     several with their weights, such as 512x512=3,1024x768=1"
                )
            })?;
            Ok((ImageSize(width, height), weight))
        });
        sizes.collect::<Result<_, _>>().map(Self)
    }

    fn write(&self) -> String {
        let sizes = self.0.iter().map(|(ImageSize(width, height), weight)| {
            let is_usual = (weight - 1.0).abs() < f64::EPSILON;
            if is_usual {
                format!("{width}x{height}")
            } else {
                format!("{width}x{height}={weight}")
            }
        });
        sizes.collect::<Vec<_>>().join(",")
    }
}

impl Grammar for AdapterChoice {
    const SCHEMA: &'static str = "adapter_choice";

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
}

/// A share, written as a percentage or as a number from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(pub f64);

impl Grammar for Share {
    const SCHEMA: &'static str = "share";

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
        // Rounded so that 0.07 is written as 7 % and not as 7.000000000000001 %.
        format!("{}%", (self.0 * 100.0 * 1e9).round() / 1e9)
    }
}

impl Grammar for StopAt {
    const SCHEMA: &'static str = "stop_at";

    fn read(text: &str) -> Result<Self, String> {
        let wanted =
            || format!("`{text}` is not known; write it as output_throughput=2% or ttft.p99=5%");
        let (quantity, share) = text.split_once('=').ok_or_else(wanted)?;
        let Share(half_width) = Share::read(share).map_err(|_| wanted())?;
        Ok(Self { quantity: quantity.trim().to_owned(), half_width })
    }

    fn write(&self) -> String {
        format!("{}={}", self.quantity, Share(self.half_width).write())
    }
}

/// A closed set of names, which are those of its stored form.
pub trait Named: Copy + PartialEq + Send + Sync + VariantArray + 'static {
    fn name(&self) -> &'static str;

    /// Another name under which it is read.
    fn alias(&self) -> Option<&'static str> {
        (self.name() == "new").then_some("fresh")
    }

    fn names() -> Vec<&'static str> {
        Self::VARIANTS.iter().map(Self::name).collect()
    }
}

impl<T: Named> Grammar for T {
    fn read(text: &str) -> Result<Self, String> {
        let is_meant = |value: &&T| value.name() == text || value.alias() == Some(text);
        T::VARIANTS
            .iter()
            .find(is_meant)
            .copied()
            .ok_or_else(|| format!("`{text}` is not known; write one of {}", T::names().join(", ")))
    }

    fn write(&self) -> String {
        self.name().to_owned()
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "enum": T::names() })
    }
}

/// Enums whose names are values of flags (whose help lists them), of files and of the schema.
macro_rules! named {
    ($($kind:ident),+ $(,)?) => {$(
        impl Named for $kind {
            fn name(&self) -> &'static str {
                match variant_name(self) {
                    // Stored with an underscore, and typed with a dash.
                    "each_repetition" => "each-repetition",
                    "each_run" => "each-run",
                    name => name,
                }
            }
        }

        impl clap::ValueEnum for $kind {
            fn value_variants<'a>() -> &'a [Self] {
                Self::VARIANTS
            }

            fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
                let value = clap::builder::PossibleValue::new(Named::name(self));
                Some(value.aliases(self.alias()))
            }
        }

        schema_of_grammar!([] $kind);
    )+};
}

named!(
    Api,
    ArrivalsKind,
    Connections,
    Counting,
    DatasetKind,
    DeployKind,
    EngineGeneration,
    RunOrder
);
named!(PinOutput, Prompts, RampCurve, Renewal, SchedulingPolicy, SourceName, Strategy, Switch);
named!(History, SessionKind, ThinkKind, Ticks, TraceKind, Until);

/// The keys of a table that are set, with their values.
pub(super) fn set_keys(table: &impl Serialize) -> Map<String, Value> {
    let Ok(Value::Object(table)) = serde_json::to_value(table) else { return Map::new() };
    table.into_iter().filter(|(_, value)| !value.is_null()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_survives<T: Grammar>(text: &str) {
        let once: Written<T> = text.parse().unwrap();
        let written = once.0.write();
        let again: Written<T> = serde_json::from_value(serde_json::json!(written)).unwrap();
        assert_eq!(again.0.write(), written, "typed {text}");
    }

    #[test]
    fn numbers_and_times_are_read_as_people_write_them() {
        for (text, wanted) in [
            ("8", 8),
            ("1_000", 1_000),
            ("1,000", 1_000),
            ("12,345,678", 12_345_678),
            ("2k", 2_000),
            ("1.5m", 1_500_000),
            ("2M", 2_000_000),
            ("1e3", 1_000),
            (" 7 ", 7),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(count::<u64>(text), Ok(wanted), "{text}");
        }
        for wrong in ["", "k", "1.5", "-1", "1,00", "1,0000", ",5", "ten", "0.5k5", "inf", "nan"] {
            assert!(count::<u64>(wrong).unwrap_err().contains("2k"), "{wrong}");
        }
        assert_eq!(count::<u16>("70k"), Err("`70k` is too large".to_owned()));
        assert_eq!(PerSecond::read("1.5k").map(|rate| rate.write()), Ok("1500".to_owned()));
        for (text, seconds) in [
            ("90s", 90.0),
            ("1.5m", 90.0),
            ("1h30m", 5_400.0),
            ("2 min 5 sec", 125.0),
            ("1d", 86_400.0),
        ] {
            assert_eq!(Duration::read(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
        }
        for wrong in ["", "30", "s", "1h30", "-1s", "5x", "1e3s"] {
            assert!(Duration::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn written_values_are_read_again() {
        for time in ["500ms", "30s", "0.1s", "1.5h", "37us", "744h"] {
            assert_survives::<Duration>(time);
            let typed: Time = time.parse().unwrap();
            assert_eq!(Duration::read(&typed.0.write()), Ok(typed.0), "{time}");
        }
        for lengths in ["512", "512±20%", "zipf:1.2,16..4096"] {
            assert_survives::<Lengths>(lengths);
        }
        for name in Api::names() {
            assert_survives::<Api>(name);
        }
    }

    #[test]
    fn a_name_is_the_same_in_flags_files_and_stored_specs() {
        fn assert_named<T: Named + Serialize + clap::ValueEnum>() {
            for (name, value) in T::names().into_iter().zip(T::VARIANTS) {
                assert_eq!(serde_json::to_value(value).unwrap(), name);
                assert_eq!(value.to_possible_value().unwrap().get_name(), name);
                assert_eq!(T::read(name).unwrap().write(), name);
            }
        }
        assert_named::<Api>();
        assert_named::<Switch>();
        assert_named::<DatasetKind>();
        assert_named::<TraceKind>();
        assert_named::<SessionKind>();
        assert_named::<Ticks>();
        assert_named::<Connections>();
        assert_named::<DeployKind>();
        assert_eq!(Renewal::names(), ["each-repetition", "each-run", "never"]);
        assert_eq!(Connections::read("fresh"), Ok(Connections::New));
        assert_eq!(serde_json::from_str::<Connections>("\"fresh\"").unwrap(), Connections::New);
        let new = clap::ValueEnum::to_possible_value(&Connections::New).unwrap();
        assert!(new.matches("fresh", false));
    }

    #[test]
    fn a_number_needs_no_quotes() {
        let lengths: Lengths = serde_json::from_value(serde_json::json!(512)).unwrap();
        assert_eq!(lengths, Lengths::Fixed(512));
    }

    #[test]
    fn durations_are_read_with_their_units() {
        let parse = Duration::read;
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(parse("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(parse("1h"), Ok(Duration::from_hours(1)));
        for wrong in ["", "30", "s", "-1s", "1 fortnight", "1e400s", "nans"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rates_are_numbers_or_unlimited() {
        assert_eq!(PerSecond::read("20"), Ok(PerSecond(20.0)));
        assert_eq!(PerSecond::read("0.5"), Ok(PerSecond(0.5)));
        for unlimited in ["inf", "INF", "unlimited"] {
            assert_eq!(PerSecond::read(unlimited), Ok(PerSecond(f64::INFINITY)));
        }
        for wrong in ["", "fast", "1,5", "3/s"] {
            assert!(PerSecond::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ramps_are_segments_separated_by_commas() {
        let segment = |from_per_s, to_per_s, seconds| RampSegment {
            from_per_s,
            to_per_s,
            over: Duration::from_secs(seconds),
        };
        assert_eq!(Ramp::read("2..20:60s"), Ok(Ramp(vec![segment(2.0, 20.0, 60)])));
        assert_eq!(
            Ramp::read("0.5..20:1m, 20..5:30s"),
            Ok(Ramp(vec![segment(0.5, 20.0, 60), segment(20.0, 5.0, 30)]))
        );
        for wrong in ["", "2..20", "2:60s", "2..:60s", "2..20:60", "2..20:60s,", "a..b:1s"] {
            assert!(Ramp::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn cores_are_numbers_and_ranges() {
        assert_eq!(CoreList::read("2,4-6"), Ok(CoreList(vec![2, 4, 5, 6])));
        assert_eq!(CoreList::read(" 0 "), Ok(CoreList(vec![0])));
        for wrong in ["", "a", "3-1", "1,,2", "-1", "1,1", "0-99999999"] {
            assert!(CoreList::read(wrong).is_err(), "{wrong}");
        }
    }
}
