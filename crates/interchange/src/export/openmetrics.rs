//! The text of `OpenMetrics`, which Prometheus and its kin read: each figure is a gauge of its result.
//!
//! Latencies are in seconds, as that world has it. The ends of an interval are a family of their own:
//! a sum over a family must not add bounds to values.

use std::collections::BTreeMap;
use std::fmt::Write;

use inferometer_analysis::tool_result::ToolResult;

use super::figure::{self, Figure, Unit};

/// The whole exposition, with the mark of its end.
pub fn render(sheets: &[ToolResult]) -> String {
    let mut families = Families::default();
    for (sheet, repeat) in sheets.iter().zip(figure::repeats(sheets)) {
        let identity = identity(sheet, repeat);
        families.add_facts(sheet, &identity);
        for figure in figure::figures(sheet) {
            families.add_figure(&identity, &figure);
        }
    }
    families.written()
}

/// Samples by family: a family must stand in one piece, whichever result they come from.
#[derive(Default)]
struct Families {
    by_name: BTreeMap<String, Family>,
}

struct Family {
    kind: &'static str,
    unit: Option<&'static str>,
    help: String,
    samples: String,
}

impl Families {
    fn add_facts(&mut self, sheet: &ToolResult, identity: &Labels) {
        let source = &sheet.source;
        let mut labels = identity.clone();
        let optional = [
            ("tool", Some(source.tool.key().to_owned())),
            ("tool_version", source.version.clone()),
            ("model", sheet.model.clone()),
            ("started", sheet.started.clone()),
            ("verdict", sheet.verdict.map(|verdict| verdict.to_string())),
        ];
        let known = optional.into_iter().filter_map(|(name, value)| Some((name, value?)));
        labels.extend(known);
        let info = self.family("inferometer_result", "info", None, || "what was measured".into());
        sample(&mut info.samples, "inferometer_result_info", &labels, 1.0);
        for mark in &sheet.marks {
            let mut labels = identity.clone();
            labels.push(("mark", mark.key().to_owned()));
            let name = "inferometer_result_mark";
            let help = || "why the result is not that of a clean run".into();
            sample(&mut self.family(name, "gauge", None, help).samples, name, &labels, 1.0);
        }
    }

    fn add_figure(&mut self, identity: &Labels, figure: &Figure) {
        let Unit { openmetrics: unit, scale, .. } = figure.unit;
        let suffix = unit.map_or_else(String::new, |unit| format!("_{unit}"));
        let mut labels = identity.clone();
        labels.extend(figure.statistic.clone().map(|statistic| ("statistic", statistic)));
        let name = format!("inferometer_{}{suffix}", figure.name);
        let help = || format!("{} of the result", figure.name);
        let family = self.family(&name, "gauge", unit, help);
        sample(&mut family.samples, &name, &labels, figure.value * scale);
        let Some(interval) = figure.interval else { return };
        let name = format!("inferometer_{}_interval{suffix}", figure.name);
        let help = || format!("95 % interval of {}, from within the run", figure.name);
        let family = self.family(&name, "gauge", unit, help);
        for (bound, value) in [("low", interval.low), ("high", interval.high)] {
            let labels = [labels.clone(), vec![("bound", bound.to_owned())]].concat();
            sample(&mut family.samples, &name, &labels, value * scale);
        }
    }

    fn family(
        &mut self,
        name: &str,
        kind: &'static str,
        unit: Option<&'static str>,
        help: impl FnOnce() -> String,
    ) -> &mut Family {
        self.by_name.entry(name.to_owned()).or_insert_with(|| Family {
            kind,
            unit,
            help: help(),
            samples: String::new(),
        })
    }

    fn written(self) -> String {
        let mut text = String::new();
        for (name, Family { kind, unit, help, samples }) in self.by_name {
            let _ = writeln!(text, "# TYPE {name} {kind}");
            if let Some(unit) = unit {
                let _ = writeln!(text, "# UNIT {name} {unit}");
            }
            let _ = writeln!(text, "# HELP {name} {help}");
            text += &samples;
        }
        text + "# EOF\n"
    }
}

type Labels = Vec<(&'static str, String)>;

/// What tells the series of one result from those of another.
fn identity(sheet: &ToolResult, repeat: u32) -> Labels {
    let optional = [
        ("configuration", Some(sheet.configuration.clone()).filter(|name| !name.is_empty())),
        ("load", figure::load(sheet)),
        ("repeat", (1 < repeat).then(|| repeat.to_string())),
    ];
    let known = optional.into_iter().filter_map(|(name, value)| Some((name, value?)));
    std::iter::once(("result", sheet.source.name.clone())).chain(known).collect()
}

fn sample(text: &mut String, name: &str, labels: &[(&str, String)], value: f64) {
    let labels: Vec<String> =
        labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    let _ = writeln!(text, "{name}{{{}}} {value}", labels.join(","));
}

/// A carriage return may end a line for a reader, and the format has no sign for it.
fn escaped(value: &str) -> String {
    let plain = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    plain.replace('\r', " ")
}

#[cfg(test)]
mod tests {
    use inferometer_analysis::Interval;
    use inferometer_analysis::tool_result::{CountsFrom, Grain, LatencyKind};

    use super::*;

    fn sheet(name: &str) -> ToolResult {
        let mut sheet = ToolResult::default();
        name.clone_into(&mut sheet.source.name);
        let latency = sheet.latency_mut(LatencyKind::Ttft, CountsFrom::Send, Grain::Request);
        latency.mean_ms = Some(250.0);
        latency.intervals_ms.insert("mean".to_owned(), Interval { low: 200.0, high: 300.0 });
        sheet
    }

    #[test]
    fn a_family_stands_in_one_piece_and_its_interval_apart() {
        let text = render(&[sheet("a"), sheet("b\"\\\n")]);
        let family = "# TYPE inferometer_ttft_seconds gauge\n\
                      # UNIT inferometer_ttft_seconds seconds\n\
                      # HELP inferometer_ttft_seconds ttft of the result\n\
                      inferometer_ttft_seconds{result=\"a\",statistic=\"mean\"} 0.25\n\
                      inferometer_ttft_seconds{result=\"b\\\"\\\\\\n\",statistic=\"mean\"} 0.25\n";
        assert!(text.contains(family), "{text}");
        let low = "inferometer_ttft_interval_seconds{result=\"a\",statistic=\"mean\",bound=\"low\"} 0.2\n";
        assert!(text.contains(low), "{text}");
        assert!(text.ends_with("# EOF\n"));
        assert_eq!(text.matches("# TYPE ").count(), 3, "{text}");
    }

    #[test]
    fn repeats_of_a_result_are_numbered() {
        let text = render(&[sheet("a"), sheet("a")]);
        assert!(text.contains("{result=\"a\",repeat=\"2\",statistic=\"mean\"} 0.25\n"), "{text}");
        assert!(text.contains("{result=\"a\",statistic=\"mean\"} 0.25\n"), "{text}");
    }
}
