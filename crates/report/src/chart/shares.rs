//! How wholes are divided: one bar for each, as long as any other, its parts in proportion.

use super::axis::{BELOW, draw_below};
use super::frame::{Area, Canvas, Entry, MARGIN, RIGHT, Swatch, draw_surface};
use super::lettering::{NAME, TICK};
use super::palette::Paint;
use super::plot::{ShareRow, Shares};
use super::scale::{Scale, Spacing};
use super::svg::{Anchor, Drawing, Hatching, Place};
use super::ticks::Ticks;
use crate::fmt;

const LABEL_WIDTH_MAX: f64 = 190.0;
const BAR: f64 = 22.0;
/// With the line of counts below the bar.
const ROW: f64 = 50.0;

/// The colour of a class and its hatching.
type Look = (Paint, Option<Hatching>);

impl Shares {
    pub(super) fn draw(&self, canvas: &mut Canvas) {
        if self.rows.is_empty() || self.classes.is_empty() {
            return canvas.nothing(&format!("No {} were counted.", self.counted));
        }
        let looks = self.looks();
        self.draw_legend(canvas, &looks);
        let labels = self.rows.iter().map(|row| NAME.width(&row.label)).fold(0.0, f64::max);
        let left = MARGIN + labels.min(LABEL_WIDTH_MAX) + 10.0;
        let area = canvas.area((left, RIGHT - 16.0), ROW * self.rows.len() as f64);
        canvas.top += BELOW;
        let ticks = per_cent();
        let x = ticks.scale((area.left, area.right));
        for (place, row) in self.rows.iter().enumerate() {
            let top = area.top + place as f64 * ROW + 4.0;
            self.draw_label(&mut canvas.drawing, row, (area, top));
            self.draw_row(&mut canvas.drawing, row, &looks, (x, top));
            self.draw_counts(&mut canvas.drawing, row, (area, top));
        }
        draw_below(&mut canvas.drawing, &ticks, (area, x), &format!("share of {}", self.counted));
    }

    /// Good classes are calm and plain, bad ones loud and hatched.
    fn looks(&self) -> Vec<Look> {
        const GOOD: [Paint; 4] =
            [Paint::Good, Paint::Series(0), Paint::Series(6), Paint::Series(4)];
        const BAD: [Paint; 4] = [Paint::Bad, Paint::Doubt, Paint::Series(3), Paint::Series(1)];
        let (mut good, mut bad) = (0, 0);
        let mut looks = Vec::new();
        for class in &self.classes {
            if class.is_good {
                looks.push((GOOD[good % GOOD.len()], None));
                good += 1;
            } else {
                let hatching = Hatching::ALL[bad % Hatching::ALL.len()];
                looks.push((BAD[bad % BAD.len()], Some(hatching)));
                bad += 1;
            }
        }
        looks
    }

    /// Only classes that occur.
    fn draw_legend(&self, canvas: &mut Canvas, looks: &[Look]) {
        let mut entries = Vec::new();
        for (place, (class, (paint, hatching))) in self.classes.iter().zip(looks).enumerate() {
            if self.rows.iter().any(|row| 0 < row.count(place)) {
                let swatch = Swatch::Surface { paint: *paint, strength: 1.0, hatching: *hatching };
                entries.push(Entry::series(class.name.clone(), swatch));
            }
        }
        canvas.legend(&entries);
    }

    fn draw_label(&self, drawing: &mut Drawing, row: &ShareRow, (area, top): (Area, f64)) {
        let letters = NAME.anchored(Anchor::End);
        let short = letters.shortened(&row.label, LABEL_WIDTH_MAX);
        let at = Place { x: area.left - 8.0, y: top + BAR / 2.0 + 4.5 };
        drawing.short_text(at, letters, (&short, &row.label));
        if row.total() == 0 {
            let letters = TICK.anchored(Anchor::Start);
            let words = format!("{} no {}", fmt::NOTHING, self.counted);
            drawing.text(Place { x: area.left + 7.0, ..at }, letters, &words);
        }
    }

    fn draw_row(
        &self,
        drawing: &mut Drawing,
        row: &ShareRow,
        looks: &[Look],
        (x, top): (Scale, f64),
    ) {
        let total = row.total() as f64;
        let mut before = 0;
        for (place, (class, look)) in self.classes.iter().zip(looks).enumerate() {
            let count = row.count(place);
            if count == 0 {
                continue;
            }
            let from = x.place(before as f64 / total * 100.0);
            before += count;
            let to = x.place(before as f64 / total * 100.0);
            let share = fmt::percent(Some(count as f64 / total));
            let tip = fmt::joined(&[
                row.label.clone(),
                class.name.clone(),
                format!("{} {} ({share})", fmt::count(count), self.counted),
            ]);
            drawing.open_series(&class.name);
            let corners = (Place { x: from, y: top }, Place { x: to, y: top + BAR });
            draw_surface(drawing, corners, (look.0, 1.0, look.1), Some(&tip));
            drawing.close_group();
        }
    }

    /// How many there are of each, because a thin part is easily overlooked.
    fn draw_counts(&self, drawing: &mut Drawing, row: &ShareRow, (area, top): (Area, f64)) {
        let counts = self.classes.iter().enumerate().filter(|(place, _)| 0 < row.count(*place));
        let parts: Vec<String> = counts
            .map(|(place, class)| format!("{} {}", fmt::count(row.count(place)), class.name))
            .collect();
        let whole = fmt::joined(&parts);
        let letters = TICK.anchored(Anchor::Start);
        let short = letters.shortened(&whole, area.right - area.left);
        drawing.short_text(Place { x: area.left, y: top + BAR + 15.0 }, letters, (&short, &whole));
    }
}

impl ShareRow {
    pub(super) fn count(&self, class: usize) -> u64 {
        self.counts.get(class).copied().unwrap_or_default()
    }

    pub(super) fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

fn per_cent() -> Ticks {
    let named = [0.0, 25.0, 50.0, 75.0, 100.0].map(|share| (share, format!("{share} %")));
    Ticks { spacing: Spacing::Even, ends: (0.0, 100.0), named: named.to_vec() }
}
