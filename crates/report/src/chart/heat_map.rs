//! Counts over time and value, as colours of a few steps. A cell without counts stays empty.

use super::axis::{BELOW, draw_below, draw_left, left_width};
use super::frame::{Canvas, Entry, MARGIN, RIGHT, Swatch};
use super::lettering::LABEL;
use super::palette::Paint;
use super::plot::HeatMap;
use super::scale::Scale;
use super::svg::{Anchor, Place, pixels};
use super::ticks::Ticks;
use super::timeline::from_zero;
use crate::fmt;

const LEVELS: usize = 6;
const HEIGHT: f64 = 280.0;

impl HeatMap {
    pub(super) fn draw(&self, canvas: &mut Canvas) {
        let most = self.columns.iter().flatten().copied().max().unwrap_or_default();
        if most == 0 || self.edges.len() < 2 {
            return canvas.nothing(&format!("No {} were counted.", self.counted));
        }
        let bounds = bounds(most);
        self.draw_legend(canvas, &bounds);
        canvas.top += LABEL.size;
        let at = Place { x: MARGIN, y: canvas.top };
        canvas.drawing.text(at, LABEL.anchored(Anchor::Start), &self.y.title());
        canvas.top += 15.0;
        let left = self.ticks();
        let below = {
            let to = self.moment(self.columns.len());
            Ticks::between(from_zero(self.from_s, to), to)
        };
        let area = canvas.area((MARGIN + left_width(&left), RIGHT - 12.0), HEIGHT);
        canvas.top += BELOW;
        let scales = (below.scale((area.left, area.right)), left.scale((area.bottom, area.top)));
        draw_left(&mut canvas.drawing, &left, (area, scales.1));
        for level in 0..bounds.len() {
            self.draw_level(canvas, (level, &bounds), scales);
        }
        // After the cells, which touch it.
        draw_below(&mut canvas.drawing, &below, (area, scales.0), "time since the run began (s)");
    }

    /// When a column begins.
    fn moment(&self, column: usize) -> f64 {
        self.from_s + column as f64 * self.step_s
    }

    /// From the lowest to the highest edge of a row that has counts.
    fn ticks(&self) -> Ticks {
        let used = self.used_rows();
        let edges: Vec<f64> =
            used.iter().flat_map(|row| [self.edges[*row], self.edges[*row + 1]]).collect();
        Ticks::within(self.y.spacing(), &edges)
    }

    pub(super) fn used_rows(&self) -> Vec<usize> {
        let rows = 0..self.edges.len().saturating_sub(1);
        rows.filter(|row| 0 < self.row_count(*row)).collect()
    }

    /// Over all time.
    pub(super) fn row_count(&self, row: usize) -> u64 {
        self.columns.iter().filter_map(|column| column.get(row)).sum()
    }

    fn draw_legend(&self, canvas: &mut Canvas, bounds: &[u64]) {
        let mut entries = Vec::new();
        for (level, last) in bounds.iter().enumerate() {
            let first = level.checked_sub(1).map_or(1, |before| bounds[before] + 1);
            let range = if first == *last {
                fmt::count(first)
            } else {
                format!("{} to {}", fmt::count(first), fmt::count(*last))
            };
            // The first range says what is counted.
            let name = if level == 0 { format!("{range} {}", self.counted) } else { range };
            let paint = Paint::Heat(shade(level, bounds.len()));
            entries
                .push(Entry::key(name, Swatch::Surface { paint, strength: 1.0, hatching: None }));
        }
        canvas.legend(&entries);
    }

    fn draw_level(
        &self,
        canvas: &mut Canvas,
        (level, bounds): (usize, &[u64]),
        (x, y): (Scale, Scale),
    ) {
        let drawing = &mut canvas.drawing;
        let paint = Paint::Heat(shade(level, bounds.len()));
        let group = drawing.element("g").word("class", "heat").paint("fill", paint);
        group.word("shape-rendering", "crispEdges").open();
        for (place, column) in self.columns.iter().enumerate() {
            let (from, to) = (self.moment(place), self.moment(place + 1));
            for (edges, count) in self.edges.windows(2).zip(column) {
                if level_of(*count, bounds) != Some(level) {
                    continue;
                }
                let tip = fmt::joined(&[
                    format!("{} to {}", fmt::compact(from), fmt::seconds(to)),
                    format!("{} to {}", fmt::compact(edges[0]), self.y.show(edges[1])),
                    format!("{} {}", fmt::count(*count), self.counted),
                ]);
                let (left, right) = (x.place(from), x.place(to));
                let (top, bottom) = (y.place(edges[1]), y.place(edges[0]));
                // A page has thousands of these, and this is the shortest way to say a rectangle.
                let path = format!(
                    "M{} {}H{}V{}H{}Z",
                    pixels(left),
                    pixels(top),
                    pixels(right),
                    pixels(bottom),
                    pixels(left)
                );
                drawing.element("path").word("d", &path).tip(&tip).end();
            }
        }
        drawing.close_group();
    }
}

/// The highest count of each level: one for each count where there are few, else of equal ratios.
fn bounds(most: u64) -> Vec<u64> {
    let mut bounds: Vec<u64> = Vec::new();
    for level in 1..=LEVELS {
        let next = bounds.last().map_or(1, |last| last + 1);
        let share = level as f64 / LEVELS as f64;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 1 and a count"
        )]
        let ratio = libm::pow(most as f64, share).round() as u64;
        let bound = if level == LEVELS { most } else { ratio.max(next) };
        if next <= most {
            bounds.push(bound.min(most));
        }
    }
    bounds
}

fn level_of(count: u64, bounds: &[u64]) -> Option<usize> {
    if count == 0 { None } else { bounds.iter().position(|bound| count <= *bound) }
}

/// Few levels are spread over all colours.
fn shade(level: usize, levels: usize) -> usize {
    if levels < 2 { LEVELS / 2 } else { level * (LEVELS - 1) / (levels - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_hold_every_count_once() {
        assert_eq!(bounds(1), [1]);
        assert_eq!(bounds(4), [1, 2, 3, 4]);
        assert_eq!(bounds(1_000_000), [10, 100, 1_000, 10_000, 100_000, 1_000_000]);
        for most in 1..2_000 {
            let bounds = bounds(most);
            assert_eq!(bounds.last(), Some(&most));
            assert!(bounds.windows(2).all(|pair| pair[0] < pair[1]), "{bounds:?}");
        }
        assert_eq!(level_of(0, &[1, 3]), None);
        assert_eq!(level_of(2, &[1, 3]), Some(1));
    }
}
