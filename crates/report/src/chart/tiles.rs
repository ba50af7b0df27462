//! Values of pairs as tiles, each with its number. Shades say where the high ones are; what is not to
//! be relied on has no shade, and what failed is a cross.

use super::frame::{Canvas, Entry, MARGIN, RIGHT, Swatch};
use super::lettering::{LABEL, NAME, TICK};
use super::marks::draw_cross;
use super::palette::Paint;
use super::plot::{Tile, TileRow, Tiles};
use super::scale::Spacing;
use super::svg::{Anchor, Drawing, Place};
use crate::fmt;

const LABEL_WIDTH_MAX: f64 = 210.0;
const HEIGHT: f64 = 27.0;
/// Between tiles.
const GAP: f64 = 1.0;
const WIDTH_MAX: f64 = 130.0;

/// Shades on which letters can be read, on light and on dark ground; those in the middle are neither
/// light nor dark.
const SHADES: [Paint; 4] = [Paint::Heat(0), Paint::Heat(1), Paint::Heat(4), Paint::Heat(5)];

/// What a value must reach for each shade, from the lowest.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Range {
    spacing: Spacing,
    low: f64,
    high: f64,
}

impl Tiles {
    pub(super) fn draw(&self, canvas: &mut Canvas) {
        if self.rows.is_empty() || self.columns.is_empty() {
            return canvas.nothing("Nothing was measured.");
        }
        let range = self.range();
        if let Some(range) = range {
            self.draw_legend(canvas, range);
        }
        let labels = self.rows.iter().map(|row| NAME.width(&row.label)).fold(0.0, f64::max);
        let left = MARGIN + labels.min(LABEL_WIDTH_MAX) + 10.0;
        let width = ((RIGHT - left) / self.columns.len() as f64).min(WIDTH_MAX);
        self.draw_heads(canvas, (left, width));
        let area = canvas.area((left, RIGHT), HEIGHT * self.rows.len() as f64);
        canvas.top += 8.0;
        for (place, row) in self.rows.iter().enumerate() {
            let top = area.top + place as f64 * HEIGHT;
            draw_label(&mut canvas.drawing, row, Place { x: left, y: top });
            for (column, tile) in row.tiles.iter().take(self.columns.len()).enumerate() {
                let Some(tile) = tile else { continue };
                let at = Place { x: left + column as f64 * width, y: top };
                let tip = self.tip(row, column, tile);
                draw_tile(&mut canvas.drawing, (tile, range), (at, width), &tip);
            }
        }
    }

    /// Of what is to be relied on; without any there are no shades.
    fn range(&self) -> Option<Range> {
        let spacing = self.value.spacing();
        let tiles = self.rows.iter().flat_map(|row| row.tiles.iter().flatten());
        let shaded = tiles.filter(|tile| !tile.hollow).filter_map(Tile::known);
        let values: Vec<f64> = shaded.collect();
        let low = values.iter().copied().reduce(f64::min)?;
        let high = values.iter().copied().reduce(f64::max)?;
        Some(Range { spacing, low, high })
    }

    fn draw_legend(&self, canvas: &mut Canvas, range: Range) {
        let surface = |paint| Swatch::Surface { paint, strength: 1.0, hatching: None };
        if range.low.to_bits() == range.high.to_bits() {
            let name = self.value.show(range.low);
            return canvas.legend(&[Entry::key(name, surface(SHADES[SHADES.len() - 1]))]);
        }
        let entries = SHADES.iter().enumerate().map(|(level, paint)| {
            let (from, to) = (range.bound(level), range.bound(level + 1));
            let name = format!("{} to {}", fmt::compact(from), self.value.show(to));
            Entry::key(name, surface(*paint))
        });
        canvas.legend(&entries.collect::<Vec<_>>());
    }

    fn draw_heads(&self, canvas: &mut Canvas, (left, width): (f64, f64)) {
        canvas.top += LABEL.size;
        let at = Place { x: MARGIN, y: canvas.top + 15.0 };
        let room = (left - MARGIN - 10.0).max(60.0);
        let letters = LABEL.anchored(Anchor::Start);
        let short = letters.shortened(&self.across, room);
        canvas.drawing.short_text(at, letters, (&short, &self.across));
        canvas.top += 15.0;
        for (place, column) in self.columns.iter().enumerate() {
            let short = TICK.shortened(column, width - 4.0);
            let at = Place { x: left + (place as f64 + 0.5) * width, y: canvas.top };
            canvas.drawing.short_text(at, TICK, (&short, column));
        }
        canvas.top += 8.0;
    }

    fn tip(&self, row: &TileRow, column: usize, tile: &Tile) -> String {
        let value =
            tile.known().map_or_else(|| "not known".to_owned(), |value| self.value.show(value));
        let value = if tile.failed { "failed".to_owned() } else { value };
        let place = self.columns.get(column).cloned().unwrap_or_default();
        let note = tile.note.clone().unwrap_or_default();
        fmt::joined(&[row.label.clone(), place, value, note])
    }
}

impl Range {
    /// Where a shade begins.
    fn bound(self, level: usize) -> f64 {
        let share = level as f64 / SHADES.len() as f64;
        if self.spacing == Spacing::Log && 0.0 < self.low {
            self.low * libm::pow(self.high / self.low, share)
        } else {
            self.low + share * (self.high - self.low)
        }
    }

    fn shade(self, value: f64) -> usize {
        (1..SHADES.len()).rev().find(|level| self.bound(*level) <= value).unwrap_or_default()
    }
}

impl Tile {
    pub(super) fn known(&self) -> Option<f64> {
        self.value.filter(|value| value.is_finite() && !self.failed)
    }
}

fn draw_label(drawing: &mut Drawing, row: &TileRow, at: Place) {
    let letters = NAME.anchored(Anchor::End);
    let short = letters.shortened(&row.label, LABEL_WIDTH_MAX);
    let at = Place { x: at.x - 8.0, y: at.y + HEIGHT / 2.0 + 4.5 };
    drawing.short_text(at, letters, (&short, &row.label));
}

fn draw_tile(
    drawing: &mut Drawing,
    (tile, range): (&Tile, Option<Range>),
    (at, width): (Place, f64),
    tip: &str,
) {
    let corners = (
        Place { x: at.x + GAP, y: at.y + GAP },
        Place { x: at.x + width - GAP, y: at.y + HEIGHT - GAP },
    );
    let middle = Place { x: at.x + width / 2.0, y: at.y + HEIGHT / 2.0 };
    let shade = tile.known().filter(|_| !tile.hollow).zip(range).map(|(known, it)| it.shade(known));
    let rect = drawing.element("rect").corners(corners.0, corners.1).tip(tip);
    match shade {
        Some(shade) => rect.paint("fill", SHADES[shade]).end(),
        None if tile.hollow => {
            let outline = rect.paint("fill", Paint::Surface).paint("stroke", Paint::Doubt);
            outline.word("stroke-dasharray", "4 2").end();
        }
        None => rect.paint("fill", Paint::Surface).paint("stroke", Paint::Grid).end(),
    }
    if tile.failed {
        return draw_cross(drawing, middle);
    }
    let is_dark = shade.is_some_and(|shade| SHADES.len() / 2 <= shade);
    let paint = if is_dark { Paint::Surface } else { Paint::Ink };
    let text = fmt::number(tile.known());
    let letters = TICK.painted(paint);
    let short = letters.shortened(&text, width - 2.0 * GAP);
    drawing.text(Place { y: middle.y + 4.0, ..middle }, letters, &short);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_are_equal_steps_and_hold_both_ends() {
        let even = Range { spacing: Spacing::Even, low: 100.0, high: 500.0 };
        let shades = [100.0, 199.9, 200.0, 399.0, 400.0, 500.0].map(|value| even.shade(value));
        assert_eq!(shades, [0, 0, 1, 2, 3, 3]);
        let ratios = Range { spacing: Spacing::Log, low: 1.0, high: 10_000.0 };
        assert_eq!(
            [1.0, 9.0, 11.0, 101.0, 10_000.0].map(|value| ratios.shade(value)),
            [0, 0, 1, 2, 3]
        );
    }
}
