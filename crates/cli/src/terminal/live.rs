//! The page of figures that is shown while a run goes on.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::Duration;

use inferometer_model::fmt::{count, duration, number, percent, whole};
use inferometer_model::whole::to_u64;
use inferometer_runner::{LiveFigures, ProgressTick, Spread};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::text::Line;
use ratatui::widgets::{LineGauge, Sparkline, Widget};

use crate::output;

/// What was measured so far in this process, for curves over several runs.
#[derive(Debug, Default)]
pub(super) struct LiveView {
    /// One for each second, the newest at the end.
    history: VecDeque<LiveFigures>,
    /// Time of the runs that have ended.
    earlier: Duration,
    last: Duration,
    /// Whether the runs of this process are a study, which is followed from its start.
    pub(super) is_study: bool,
}

/// From this time on the page is worth its lines.
const LONG: Duration = Duration::from_secs(20);
/// As many seconds as the widest terminal shows.
const HISTORY_MAX: usize = 300;
const LABEL_WIDTH: u16 = 10;
const VALUE_WIDTH: u16 = 34;

/// A row: its label, its value, and the curve of it.
type Row<'a> = (&'a str, String, Option<fn(&LiveFigures) -> Option<f64>>);

impl LiveView {
    pub(super) fn remember(&mut self, tick: &ProgressTick) {
        if self.history.len() == HISTORY_MAX {
            self.history.pop_front();
        }
        self.history.push_back(tick.live.clone());
        self.last = tick.elapsed;
    }

    pub(super) fn end_run(&mut self) {
        self.earlier += std::mem::take(&mut self.last);
    }

    /// Whether all runs of this process together take long, as far as is known.
    pub(super) fn is_long(&self, tick: &ProgressTick) -> bool {
        let left = tick.time_left().unwrap_or_default();
        self.is_study || LONG <= self.earlier + tick.elapsed + left
    }

    /// The whole page.
    pub(super) fn page(&self, tick: &ProgressTick, width: u16) -> Vec<String> {
        let live = &tick.live;
        let mut rows: Vec<Row<'_>> = vec![
            ("requests", requests_text(tick), None),
            ("req/s", number(live.requests_per_s), Some(|live| Some(live.requests_per_s))),
            ("tokens/s", number(live.output_tokens_per_s), Some(|it| Some(it.output_tokens_per_s))),
            ("TTFT", spread_text(live.ttft_ms), Some(|live| Some(live.ttft_ms?.p50))),
            ("ITL", spread_text(live.itl_ms), Some(|live| Some(live.itl_ms?.p50))),
        ];
        rows.extend(server_text(live).map(|text| ("server", text, None)));
        rows.extend(client_text(live).map(|text| ("client", text, None)));
        let height = u16::try_from(rows.len() + 1).unwrap_or(u16::MAX);
        drawn(width, height, |area, buffer| {
            let row_area = |row: u16| Rect { y: row, height: 1, ..area };
            gauge(tick, time_text(tick), row_area(0), buffer);
            for (row, (label, value, curve)) in (1..).zip(rows) {
                self.row(label, value, curve, row_area(row), buffer);
            }
        })
    }

    fn row(
        &self,
        label: &str,
        value: String,
        curve: Option<fn(&LiveFigures) -> Option<f64>>,
        area: Rect,
        buffer: &mut Buffer,
    ) {
        let dim = Style::new().fg(Color::DarkGray);
        Line::styled(label.to_owned(), dim).render(Rect { width: LABEL_WIDTH, ..area }, buffer);
        let value_width = if curve.is_some() { VALUE_WIDTH } else { area.width };
        let value_area = Rect { x: LABEL_WIDTH, width: value_width, ..area };
        Line::raw(value).render(value_area.intersection(area), buffer);
        let Some(curve) = curve else { return };
        let left = LABEL_WIDTH + VALUE_WIDTH;
        let place = Rect { x: left, width: area.width.saturating_sub(left), ..area };
        let shown = self.history.len().min(place.width.into());
        let values = self.history.iter().skip(self.history.len() - shown).map(curve);
        // Thousandths, because a bar has a whole number.
        let values: Vec<Option<u64>> =
            values.map(|value| value.map(|value| to_u64(value * 1e3))).collect();
        Sparkline::default().data(values).style(Style::new().fg(Color::Cyan)).render(place, buffer);
    }
}

/// One line for short runs.
pub(super) fn bar(tick: &ProgressTick, width: u16) -> Vec<String> {
    let label = format!("{}  {}", time_text(tick), requests_text(tick));
    drawn(width, 1, |area, buffer| gauge(tick, label, area, buffer))
}

fn gauge(tick: &ProgressTick, label: String, area: Rect, buffer: &mut Buffer) {
    LineGauge::default()
        .ratio(tick.share())
        .label(label)
        .filled_style(Style::new().fg(Color::Cyan))
        .unfilled_style(Style::new().fg(Color::DarkGray))
        .render(area, buffer);
}

fn time_text(tick: &ProgressTick) -> String {
    let whole = |time: Duration| duration(Duration::from_secs(time.as_secs()));
    let mut text = format!("{}  {}", percent(tick.share()), whole(tick.elapsed));
    if let Some(left) = tick.time_left() {
        let _ = write!(text, ", {} left", whole(left));
    }
    text
}

fn requests_text(tick: &ProgressTick) -> String {
    let mut text =
        format!("{} ok, {} in flight", count(tick.counts.ok), count(tick.counts.in_flight()));
    for (outcome, failed) in &tick.live.failures {
        let _ = write!(text, ", {} {}", count(*failed), outcome);
    }
    text
}

fn spread_text(spread: Option<Spread>) -> String {
    spread.map_or_else(
        || "–".to_owned(),
        |Spread { p50, p99 }| format!("p50 {} ms, p99 {} ms", number(p50), number(p99)),
    )
}

/// What the server's metrics and the GPUs report; `None` where they report nothing.
fn server_text(live: &LiveFigures) -> Option<String> {
    let gauges = &live.server;
    let parts = [
        gauges.running.map(|running| format!("{} running", whole(running))),
        gauges.waiting.map(|waiting| format!("{} waiting", whole(waiting))),
        gauges.kv_usage.map(|share| format!("KV cache {}", percent(share))),
        live.gpu_power_w.map(|power| format!("GPUs {} W", number(power))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Whether the client keeps up: its CPU time, and how late it sends.
fn client_text(live: &LiveFigures) -> Option<String> {
    let parts = [
        live.client_cpus.map(|cpus| format!("{} CPUs", number(cpus))),
        live.send_lag_ms.map(|lag| format!("send lag p99 {} ms", number(lag.p99))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Draws into so many lines, each with its colours and its end.
fn drawn(width: u16, height: u16, draw: impl FnOnce(Rect, &mut Buffer)) -> Vec<String> {
    // The last column is left free: a line that fills a terminal is broken by some.
    let area = Rect { x: 0, y: 0, width: width.clamp(20, 300) - 1, height };
    let mut buffer = Buffer::empty(area);
    draw(area, &mut buffer);
    let is_coloured = output::is_coloured(&std::io::stderr());
    (0..height).map(|row| line(&buffer, row, is_coloured)).collect()
}

/// The colours that are used, as terminals know them.
const COLOURS: [(Color, &str); 2] = [(Color::Cyan, "\x1b[36m"), (Color::DarkGray, "\x1b[90m")];

fn line(buffer: &Buffer, row: u16, is_coloured: bool) -> String {
    let cells = (0..buffer.area.width).filter_map(|column| buffer.cell((column, row)));
    let (mut text, mut colour) = (String::new(), Color::Reset);
    for cell in cells {
        if is_coloured && cell.fg != colour {
            colour = cell.fg;
            let code = COLOURS.iter().find(|(known, _)| *known == colour);
            text += code.map_or("\x1b[0m", |(_, code)| code);
        }
        text += cell.symbol();
    }
    let end = if colour == Color::Reset { "" } else { "\x1b[0m" };
    format!("{}{end}\n", text.trim_end())
}

#[cfg(test)]
mod tests;
