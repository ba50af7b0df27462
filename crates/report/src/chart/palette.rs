//! The colours of charts and pages, by what they are for, on light and on dark ground.
//!
//! Colours of series follow those of Okabe and Ito, darkened or lightened until each stands out
//! from its ground. Nothing is told by colour alone: shapes, dashes and hatching tell it too.

use super::Theme;

/// What a colour is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paint {
    /// Of the series at this place; there are eight, and then they begin again.
    Series(usize),
    Ink,
    InkSoft,
    Grid,
    Frame,
    Surface,
    Good,
    Bad,
    Doubt,
    /// How many there are, from 0 (few) to 5 (most).
    Heat(usize),
}

/// The name of a CSS variable with its value on light and on dark ground.
type Row = (&'static str, &'static str, &'static str);

const SERIES: usize = 8;
/// First the colours of series, then those of texts and lines, and last those of heat: on dark ground more is
/// brighter, on light ground darker.
const ROWS: [Row; 22] = [
    ("--series-1", "#0072b2", "#56b4e9"),
    ("--series-2", "#d55e00", "#f08a4b"),
    ("--series-3", "#00906a", "#2fc49a"),
    ("--series-4", "#b0528e", "#e394c4"),
    ("--series-5", "#3d2f8f", "#a99bf2"),
    ("--series-6", "#9a7200", "#efc648"),
    ("--series-7", "#5c6470", "#b4bac4"),
    ("--series-8", "#8a1f52", "#ee6c8c"),
    ("--ink", "#1b1f24", "#e8ebef"),
    ("--ink-soft", "#545b64", "#aab2bd"),
    ("--grid", "#e3e6ea", "#2c333d"),
    ("--frame", "#868e98", "#737d8a"),
    ("--surface", "#ffffff", "#161b22"),
    ("--good", "#0b7a5c", "#3ecf9a"),
    ("--bad", "#b3261e", "#ff7f71"),
    ("--doubt", "#8a5a00", "#f0b429"),
    ("--heat-0", "#d3e3f4", "#1f3a5a"),
    ("--heat-1", "#a6c8e8", "#265588"),
    ("--heat-2", "#6fa4d6", "#3177b8"),
    ("--heat-3", "#3e7dbd", "#5b9ddb"),
    ("--heat-4", "#1f5595", "#97c6f1"),
    ("--heat-5", "#0c2f63", "#e0f1ff"),
];

/// Every colour with the name of its CSS variable. A page has no colours of its own to ask for, so
/// [`Theme::Page`] and [`Theme::Site`] have those of light ground.
pub fn variables(theme: Theme) -> [(&'static str, &'static str); 22] {
    ROWS.map(|(name, light, dark)| (name, if theme == Theme::Dark { dark } else { light }))
}

impl Paint {
    /// As the value of an attribute.
    pub(super) fn value(self, theme: Theme) -> String {
        let index = match self {
            Self::Series(index) => index % SERIES,
            Self::Ink => 8,
            Self::InkSoft => 9,
            Self::Grid => 10,
            Self::Frame => 11,
            Self::Surface => 12,
            Self::Good => 13,
            Self::Bad => 14,
            Self::Doubt => 15,
            Self::Heat(level) => 16 + level.min(5),
        };
        match theme {
            Theme::Page | Theme::Site => format!("var({})", ROWS[index].0),
            Theme::Light => ROWS[index].1.to_owned(),
            Theme::Dark => ROWS[index].2.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance as WCAG defines it.
    fn luminance(colour: &str) -> f64 {
        let channel = |from: usize| {
            let byte = u8::from_str_radix(&colour[from..from + 2], 16).unwrap();
            let share = f64::from(byte) / 255.0;
            if share <= 0.040_45 { share / 12.92 } else { libm::pow((share + 0.055) / 1.055, 2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    const GROUNDS: [Theme; 2] = [Theme::Light, Theme::Dark];

    #[test]
    fn text_and_marks_stand_out_from_both_grounds() {
        for theme in GROUNDS {
            let ground = Paint::Surface.value(theme);
            for text in [Paint::Ink, Paint::InkSoft, Paint::Good, Paint::Bad, Paint::Doubt] {
                let found = contrast(&text.value(theme), &ground);
                assert!(4.5 <= found, "{text:?} {theme:?} {found:.2}");
            }
            for mark in (0..SERIES).map(Paint::Series).chain([Paint::Frame]) {
                let found = contrast(&mark.value(theme), &ground);
                assert!(3.0 <= found, "{mark:?} {theme:?} {found:.2}");
            }
        }
    }

    #[test]
    fn more_heat_is_further_from_the_ground() {
        for theme in GROUNDS {
            let ground = Paint::Surface.value(theme);
            let found: Vec<f64> =
                (0..6).map(|level| contrast(&Paint::Heat(level).value(theme), &ground)).collect();
            assert!(1.2 <= found[0], "{found:?}");
            assert!(found.windows(2).all(|pair| pair[0] * 1.2 < pair[1]), "{theme:?} {found:?}");
        }
    }

    /// What is left of a colour for somebody without red or green cones, by the matrices that
    /// Viénot, Brettel and Mollon gave for linear light.
    fn seen_without(matrix: [[f64; 3]; 3], colour: &str) -> [f64; 3] {
        let channel = |from: usize| {
            let byte = u8::from_str_radix(&colour[from..from + 2], 16).unwrap();
            libm::pow(f64::from(byte) / 255.0, 2.2)
        };
        let light = [channel(1), channel(3), channel(5)];
        matrix.map(|row| {
            let sum: f64 = row.iter().zip(light).map(|(factor, part)| factor * part).sum();
            libm::pow(sum.clamp(0.0, 1.0), 1.0 / 2.2)
        })
    }

    #[test]
    fn the_first_four_series_are_told_apart_without_red_or_green() {
        const NO_RED: [[f64; 3]; 3] =
            [[0.112_38, 0.887_62, 0.0], [0.112_38, 0.887_62, 0.0], [0.004_01, -0.004_01, 1.0]];
        const NO_GREEN: [[f64; 3]; 3] =
            [[0.292_75, 0.707_25, 0.0], [0.292_75, 0.707_25, 0.0], [-0.022_34, 0.022_34, 1.0]];
        for (theme, matrix) in GROUNDS.iter().flat_map(|theme| [(theme, NO_RED), (theme, NO_GREEN)])
        {
            for (one, other) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
                let seen = |place: usize| seen_without(matrix, &Paint::Series(place).value(*theme));
                let far: f64 =
                    seen(one).iter().zip(seen(other)).map(|(a, b)| (a - b) * (a - b)).sum();
                assert!(0.12 <= far.sqrt(), "{theme:?} {one} {other} {:.3}", far.sqrt());
            }
        }
    }

    #[test]
    fn a_page_asks_for_variables_that_exist() {
        assert_eq!(Paint::Series(9).value(Theme::Page), "var(--series-2)");
        assert_eq!(Paint::Heat(9).value(Theme::Dark), "#e0f1ff");
        assert_eq!(variables(Theme::Light).len(), variables(Theme::Dark).len());
        assert!(variables(Theme::Dark).contains(&("--surface", "#161b22")));
    }
}
