//! Axes: from values to pixels, the round values that are named, and how both are drawn.

use super::canvas::{Anchor, Area, Canvas, LABEL, TICK, xy};
use super::palette::Paint;
use super::{Measure, ScaleKind};
use crate::fmt::{self, number, power_of_ten};

/// The height of the labels below an area.
pub(super) const BELOW: f64 = 46.0;
/// Marks stand this far inside the ends of their axis.
pub(super) const INSET: f64 = 12.0;
/// More steps than this would be a grid to count.
const STEPS: f64 = 6.0;
/// Smaller numbers than this one, and larger ones than the next, are written as powers.
const PLAIN_LEAST: f64 = 1e-3;
const PLAIN_MOST: f64 = 1e7;

impl ScaleKind {
    /// Where a value is, in a measure of equal distances.
    fn position(self, value: f64) -> f64 {
        /// Shares nearer to one than this are all of it.
        const REST_LEAST: f64 = 1e-9;
        match self {
            Self::Linear => value,
            Self::Log => libm::log10(value.max(f64::MIN_POSITIVE)),
            Self::Tail => -libm::log10((1.0 - value).clamp(REST_LEAST, 1.0)),
        }
    }

    /// Whether a value has a place: on a logarithmic axis zero has none.
    fn holds(self, value: f64) -> bool {
        value.is_finite() && (self != Self::Log || 0.0 < value)
    }
}

impl Measure {
    /// Such as `time to first token (ms)`.
    pub(super) fn title(&self) -> String {
        if self.unit.is_empty() || self.label.is_empty() {
            format!("{}{}", self.label, self.unit)
        } else {
            format!("{} ({})", self.label, self.unit)
        }
    }
}

/// The values of an axis and where they are drawn.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    kind: ScaleKind,
    /// The values at both ends.
    ends: (f64, f64),
    /// The values that have a label, rising.
    pub(super) named: Vec<(f64, String)>,
    /// Where the ends are drawn.
    pixels: (f64, f64),
}

impl Axis {
    pub(super) const fn new(kind: ScaleKind, ends: (f64, f64), named: Vec<(f64, String)>) -> Self {
        Self { kind, ends, named, pixels: (0.0, 1.0) }
    }

    /// From zero, or, where nothing is below it, from the round value below all others.
    pub(super) fn round(kind: ScaleKind, values: &[f64]) -> Self {
        if kind == ScaleKind::Log {
            return Self::logarithmic(values);
        }
        let highest = Some(highest(values)).filter(|it| 0.0 < *it).unwrap_or(1.0);
        let step = round_step(highest / STEPS);
        // A value that is a round one must not need a step more for the sake of its last digit.
        let count = (highest / step - 1e-9).ceil();
        Self::new(ScaleKind::Linear, (0.0, count * step), stepped(step, 0.0, count))
    }

    /// From the round value below the least to the one above the greatest, zero among them.
    pub(super) fn on_both_sides(kind: ScaleKind, values: &[f64]) -> Self {
        let finite = || values.iter().copied().filter(|value| value.is_finite());
        let (low, high) = (finite().fold(0.0, f64::min), finite().fold(0.0, f64::max));
        let width = high - low;
        if kind != ScaleKind::Linear || 0.0 <= low || !width.is_finite() {
            return Self::round(kind, values);
        }
        let step = round_step(width / STEPS);
        let (first, last) = ((low / step + 1e-9).floor(), (high / step - 1e-9).ceil());
        Self::new(kind, (first * step, last * step), stepped(step, first, last - first))
    }

    /// From zero to the greatest value and no further.
    pub(super) fn up_to(kind: ScaleKind, values: &[f64]) -> Self {
        if kind == ScaleKind::Log {
            return Self::logarithmic(values);
        }
        Self::between(0.0, highest(values))
    }

    /// With a label at each of the values.
    pub(super) fn at_values(kind: ScaleKind, values: &[f64]) -> Self {
        let mut values: Vec<f64> =
            values.iter().copied().filter(|value| kind.holds(*value)).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let (Some(first), Some(last)) = (values.first().copied(), values.last().copied()) else {
            return Self::round(kind, &[]);
        };
        let ends = match kind {
            ScaleKind::Log if first < last => (first, last),
            ScaleKind::Log => (first / 2.0, last * 2.0),
            ScaleKind::Linear | ScaleKind::Tail => (0.0, last),
        };
        Self::new(kind, ends, values.into_iter().map(|value| (value, measured(value))).collect())
    }

    /// Between two moments, with round ones between.
    pub(super) fn between(from: f64, to: f64) -> Self {
        let to = if from < to { to } else { from + 1.0 };
        let step = round_step((to - from) / STEPS);
        let first = (from / step).ceil();
        let count = ((to / step).floor() - first).clamp(0.0, 2.0 * STEPS);
        Self::new(ScaleKind::Linear, (from, to), stepped(step, first, count))
    }

    /// Between two moments, and from zero where the first of them is near it.
    pub(super) fn of_time(from: f64, to: f64) -> Self {
        /// As a share of what is drawn.
        const NEAR: f64 = 0.2;
        let is_near = 0.0 < from && from < NEAR * (to - from);
        Self::between(if is_near { 0.0 } else { from }, to)
    }

    /// From the lowest to the highest of these values and no further, with round ones between.
    pub(super) fn within(kind: ScaleKind, values: &[f64]) -> Self {
        /// Fewer than these say too little about an axis.
        const NAMED_MIN: usize = 3;
        let on_axis = || values.iter().copied().filter(|value| kind.holds(*value));
        let ends = on_axis().reduce(f64::min).zip(on_axis().reduce(f64::max));
        let Some(ends) = ends.filter(|(low, high)| low < high) else {
            return Self::round(kind, values);
        };
        let mut named = match kind {
            ScaleKind::Log => Self::logarithmic(values).named,
            ScaleKind::Linear | ScaleKind::Tail => Vec::new(),
        };
        named.retain(|(value, _)| (ends.0..=ends.1).contains(value));
        if named.len() < NAMED_MIN {
            named = Self::between(ends.0, ends.1).named;
        }
        Self::new(kind, ends, named)
    }

    /// Percentiles up to the first round one that holds all shares below one.
    pub(super) fn percentiles(shares: &[f64]) -> Self {
        const ROUND: [f64; 9] = [0.0, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999];
        /// Above the last percentile, for the greatest value of all.
        const HEAD_ROOM: f64 = 0.25;
        let below_one = shares.iter().copied().filter(|share| *share < 1.0);
        let highest = below_one.fold(0.99, f64::max);
        let last = ROUND.iter().position(|tick| highest <= tick + 1e-12).unwrap_or(ROUND.len() - 1);
        let label = |share: &f64| (*share, format!("{} %", fmt::setting(share * 100.0)));
        let mut named: Vec<(f64, String)> = ROUND[..=last].iter().map(label).collect();
        let mut end = ROUND[last];
        if shares.iter().any(|share| 1.0 <= *share) {
            end = 1.0 - (1.0 - end) * libm::pow(10.0, -HEAD_ROOM);
            named.push((1.0, "max".to_owned()));
        }
        Self::new(ScaleKind::Tail, (0.0, end), named)
    }

    /// From the round value below all others to the one above them. Where many powers of ten lie
    /// between, only powers are named.
    fn logarithmic(values: &[f64]) -> Self {
        const FACTORS: [f64; 3] = [1.0, 2.0, 5.0];
        /// Powers of ten between which 2 and 5 are named too.
        const FEW: f64 = 2.8;
        let positive = || values.iter().copied().filter(|value| ScaleKind::Log.holds(*value));
        let low = positive().reduce(f64::min).unwrap_or(1.0);
        let high = positive().reduce(f64::max).unwrap_or(10.0);
        let (lowest, highest) = (libm::log10(low), libm::log10(high));
        let first_power = lowest.floor() - 1.0;
        let round: Vec<(f64, f64)> = whole_numbers(highest.ceil() - first_power + 1.0)
            .map(|n| first_power + n)
            .flat_map(|power| FACTORS.map(|factor| (factor * libm::exp10(power), power)))
            .collect();
        let near = 1.0 + 1e-9;
        let first = round.iter().rposition(|(value, _)| *value <= low * near).unwrap_or(0);
        let last = round.iter().position(|(value, _)| high <= *value * near);
        let last = last.unwrap_or(round.len() - 1);
        // All values equal: a step to each side, so that they stand in the middle.
        let (first, last) =
            if first < last { (first, last) } else { (first.saturating_sub(1), last + 1) };
        let kept = &round[first..=last.min(round.len() - 1)];
        let stride = ((highest - lowest) / STEPS).ceil().max(1.0);
        let is_named = |index: usize, power: f64| {
            highest - lowest <= FEW || ((first + index).is_multiple_of(3) && power % stride == 0.0)
        };
        let named = kept
            .iter()
            .enumerate()
            .filter(|(index, (_, power))| is_named(*index, *power))
            .map(|(_, (value, _))| (*value, measured(*value)))
            .collect();
        let ends = (kept.first().map_or(1.0, |end| end.0), kept.last().map_or(10.0, |end| end.0));
        Self::new(ScaleKind::Log, ends, named)
    }

    /// The same axis between these pixels.
    pub(super) fn across(self, pixels: (f64, f64)) -> Self {
        Self { pixels, ..self }
    }

    /// The same axis from the bottom of an area to its top. A mark at the beginning of a logarithmic
    /// axis would lie on the ticks below it, and says nothing by that: only zero belongs there.
    pub(super) fn upwards(self, area: Area, log_inset: f64) -> Self {
        let inset = if self.kind == ScaleKind::Log { log_inset } else { 0.0 };
        self.across((area.bottom - inset, area.top))
    }

    /// Where a value is drawn: what lies beyond the ends at them, and all in one place where the ends
    /// are equal.
    pub(super) fn place(&self, value: f64) -> f64 {
        let [low, high, at] = [self.ends.0, self.ends.1, value].map(|it| self.kind.position(it));
        let high = if low < high { high } else { low + 1.0 };
        let share = (at - low) / (high - low);
        let share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
        self.pixels.0 + share * (self.pixels.1 - self.pixels.0)
    }

    /// The room that the labels need left of an area.
    pub(super) fn label_width(&self) -> f64 {
        TICK.widest(self.named.iter().map(|(_, label)| label.as_str())) + 10.0
    }

    /// Ticks below the area, with their labels and what is measured.
    pub(super) fn draw_below(&self, canvas: &mut Canvas, area: Area, label: &str) {
        const BETWEEN_LABELS: f64 = 9.0;
        draw_base(canvas, area);
        let mut free_from = f64::NEG_INFINITY;
        let last = self.named.last().map(|(value, text)| (self.place(*value), TICK.width(text)));
        for (number, (value, text)) in self.named.iter().enumerate() {
            let x = self.place(*value);
            let half_width = TICK.width(text) / 2.0;
            // A label that would touch its neighbour is left out with its tick, which would only ask
            // what it stands for; but not the last, which says where the axis ends.
            let is_last = number + 1 == self.named.len();
            let leaves_last = last.is_none_or(|(end, width)| {
                is_last || x + half_width + BETWEEN_LABELS <= end - width / 2.0
            });
            if free_from <= x - half_width && leaves_last {
                draw_tick(canvas, x, area, text);
                free_from = x + half_width + BETWEEN_LABELS;
            }
        }
        let label_width = (2.0 * (area.right - area.left)).min(700.0);
        canvas.fitted_text(xy(area.middle().x, area.bottom + 38.0), LABEL, label, label_width);
    }

    /// Labels left of the area, and lines across it.
    pub(super) fn draw_left(&self, canvas: &mut Canvas, area: Area) {
        /// Labels on the left stand at least this far apart.
        const LABEL_HEIGHT: f64 = 15.0;
        let mut free_below = f64::INFINITY;
        for (value, text) in &self.named {
            let y = self.place(*value);
            canvas.stroke(xy(area.left, y), xy(area.right, y), Paint::Grid).end();
            if y <= free_below {
                canvas.text(xy(area.left - 8.0, y + 4.0), TICK.anchored(Anchor::End), text);
                free_below = y - LABEL_HEIGHT;
            }
        }
    }

    /// Lines from top to bottom, where values lie beside each other.
    pub(super) fn draw_upright_grid(&self, canvas: &mut Canvas, area: Area) {
        for (value, _) in &self.named {
            let x = self.place(*value);
            canvas.stroke(xy(x, area.top), xy(x, area.bottom), Paint::Grid).end();
        }
    }
}

/// The line at the bottom of an area.
pub(super) fn draw_base(canvas: &mut Canvas, area: Area) {
    let (from, to) = (xy(area.left, area.bottom), xy(area.right, area.bottom));
    canvas.stroke(from, to, Paint::Frame).end();
}

/// A tick below an area, with its label.
pub(super) fn draw_tick(canvas: &mut Canvas, x: f64, area: Area, label: &str) {
    canvas.stroke(xy(x, area.bottom), xy(x, area.bottom + 5.0), Paint::Frame).end();
    canvas.text(xy(x, area.bottom + 19.0), TICK, label);
}

fn highest(values: &[f64]) -> f64 {
    values.iter().copied().filter(|value| value.is_finite()).fold(0.0, f64::max)
}

/// 0, 1, 2 up to `last`, which is small.
fn whole_numbers(last: f64) -> impl Iterator<Item = f64> {
    std::iter::successors(Some(0.0), |n| Some(n + 1.0)).take_while(move |n| *n <= last)
}

/// Labelled values: `count` steps from the step `first`, with as many decimals as the step needs.
fn stepped(step: f64, first: f64, count: f64) -> Vec<(f64, String)> {
    let is_whole = |decimals: &usize| {
        let shifted = step * libm::exp10(*decimals as f64);
        (shifted - shifted.round()).abs() < 1e-6
    };
    let decimals = (0..5_usize).find(is_whole).unwrap_or(5);
    let label = |value: f64| match value {
        0.0 => "0".to_owned(),
        _ if step < PLAIN_LEAST / 10.0 || PLAIN_MOST <= value.abs() => power_of_ten(value),
        _ => fmt::decimals(value, decimals),
    };
    whole_numbers(count).map(|n| (first + n) * step).map(|value| (value, label(value))).collect()
}

/// The first of 1, 2, 2.5 and 5 times a power of ten that is not below `least`.
fn round_step(least: f64) -> f64 {
    let power = libm::exp10(libm::log10(least).floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power);
    steps.into_iter().find(|step| least <= *step * (1.0 + 1e-9)).unwrap_or(10.0 * power)
}

/// A measured value without zeros at its end.
fn measured(value: f64) -> String {
    let text = number(value);
    if text.contains('.') && !text.contains('×') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(kind: ScaleKind, ends: (f64, f64), values: &[f64]) -> Vec<f64> {
        let axis = Axis::new(kind, ends, Vec::new()).across((100.0, 400.0));
        values.iter().map(|value| (axis.place(*value) * 1e6).round() / 1e6).collect()
    }

    #[test]
    fn even_places_are_in_proportion() {
        assert_eq!(
            places(ScaleKind::Linear, (0.0, 10.0), &[0.0, 2.5, 10.0]),
            [100.0, 175.0, 400.0]
        );
        let upside_down =
            Axis::new(ScaleKind::Linear, (0.0, 10.0), Vec::new()).across((200.0, 100.0));
        assert!((upside_down.place(10.0) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn equal_ratios_are_equally_far() {
        let found = places(ScaleKind::Log, (1.0, 1_000.0), &[1.0, 10.0, 100.0, 1_000.0]);
        assert_eq!(found, [100.0, 200.0, 300.0, 400.0]);
    }

    #[test]
    fn each_nine_of_the_tail_is_equally_far() {
        let found = places(ScaleKind::Tail, (0.0, 0.999), &[0.0, 0.9, 0.99, 0.999, 1.0]);
        assert_eq!(found, [100.0, 200.0, 300.0, 400.0, 400.0]);
    }

    #[test]
    fn nothing_leaves_the_axis() {
        let beyond = [-5.0, 0.0, 1e300, f64::INFINITY, f64::NAN];
        for kind in [ScaleKind::Linear, ScaleKind::Log, ScaleKind::Tail] {
            for ends in [(0.1, 0.9), (0.5, 0.5), (0.0, 0.0)] {
                let found = places(kind, ends, &beyond);
                assert!(found.iter().all(|at| (100.0..=400.0).contains(at)), "{found:?}");
            }
        }
    }

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.named.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_and_hold_the_highest_value() {
        let even = |highest: f64| Axis::round(ScaleKind::Linear, &[highest]);
        assert_eq!(
            labels(&even(25_879.0)),
            ["0", "5,000", "10,000", "15,000", "20,000", "25,000", "30,000"]
        );
        assert_eq!(labels(&even(1_006.0)), ["0", "200", "400", "600", "800", "1,000", "1,200"]);
        assert_eq!(labels(&even(0.9)), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(&even(10.0)), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(labels(&even(13.0)), ["0", "2.5", "5.0", "7.5", "10.0", "12.5", "15.0"]);
        assert_eq!(
            labels(&even(6e-9)),
            ["0", "10⁻⁹", "2×10⁻⁹", "3×10⁻⁹", "4×10⁻⁹", "5×10⁻⁹", "6×10⁻⁹"]
        );
    }

    #[test]
    fn logarithmic_ticks_hold_all_values() {
        let log = |values: &[f64]| Axis::round(ScaleKind::Log, values);
        assert_eq!(labels(&log(&[12.0, 90.0])), ["10", "20", "50", "100"]);
        let far = log(&[1.0, 40_000.0]);
        assert_eq!(labels(&far), ["1", "10", "100", "1,000", "10,000"]);
        assert!((far.ends.1 - 50_000.0).abs() < 1.0);
        assert_eq!(labels(&log(&[5.0, 5.0])), ["2", "5", "10"]);
        assert_eq!(labels(&log(&[0.0])), ["1", "2", "5", "10"]);
        let wide = log(&[1e-9, 1e12]);
        assert!(wide.ends.0 <= 1e-9 * 1.001 && 0.999e12 <= wide.ends.1, "{wide:?}");
        assert!(wide.named.len() <= 8, "{wide:?}");
    }

    #[test]
    fn nothing_to_show_still_has_an_axis() {
        for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Axis::round(ScaleKind::Linear, &[value]).ends, (0.0, 1.0));
            assert_eq!(Axis::round(ScaleKind::Log, &[value]).ends, (1.0, 10.0));
        }
        assert_eq!(Axis::between(3.0, 3.0).ends, (3.0, 4.0));
    }

    #[test]
    fn an_axis_within_its_values_has_no_empty_ends() {
        let narrow = Axis::within(ScaleKind::Log, &[20.0, 21.3, 0.0]);
        assert_eq!(narrow.ends, (20.0, 21.3));
        assert_eq!(labels(&narrow), ["20.00", "20.25", "20.50", "20.75", "21.00", "21.25"]);
        let wide = Axis::within(ScaleKind::Log, &[7.0, 170.0]);
        assert_eq!(labels(&wide), ["10", "20", "50", "100"]);
        assert_eq!(Axis::within(ScaleKind::Log, &[5.0, 5.0]).ends, (2.0, 10.0));
    }

    #[test]
    fn percentiles_end_where_the_values_do() {
        assert_eq!(
            labels(&Axis::percentiles(&[0.5])),
            ["0 %", "50 %", "75 %", "90 %", "95 %", "99 %"]
        );
        let ticks = Axis::percentiles(&[0.5, 0.9985, 1.0]);
        assert_eq!(labels(&ticks).last(), Some(&"max"));
        assert!(ticks.named.iter().any(|(_, label)| label == "99.9 %"));
        assert!(ticks.ends.1 < 1.0);
    }

    #[test]
    fn times_begin_where_the_run_does() {
        let ticks = Axis::between(12.5, 42.0);
        assert_eq!(labels(&ticks), ["15", "20", "25", "30", "35", "40"]);
        assert_eq!(ticks.ends, (12.5, 42.0));
    }

    #[test]
    fn measured_values_have_the_digits_that_they_have() {
        for (value, text) in
            [(1.0, "1"), (0.5, "0.5"), (12.345, "12.35"), (1_024.0, "1,024"), (2.5e9, "2.5×10⁹")]
        {
            assert_eq!(measured(value), text);
        }
    }
}
