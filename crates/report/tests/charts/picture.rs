//! A chart read back from its file.

use inferometer_report::chart::{Chart, Theme};

/// An element with its attributes and the text that follows its tag.
#[derive(Debug)]
struct Element {
    name: String,
    attributes: Vec<(String, String)>,
    text: String,
}

impl Element {
    fn get(&self, key: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    fn number(&self, key: &str) -> Option<f64> {
        self.get(key).map(|value| value.parse().unwrap())
    }

    fn is_mark(&self) -> bool {
        self.get("class") == Some("mark")
    }
}

/// Reads the little SVG that we write, and fails on anything else.
fn elements(svg: &str) -> Vec<Element> {
    let mut found: Vec<Element> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for piece in svg.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').expect("a tag ends");
        assert!(!text.contains('>'), "{piece}");
        if let Some(name) = tag.strip_prefix('/') {
            let closed = open.pop().expect("it was open");
            assert_eq!(found[closed].name, name);
            if let Some(around) = open.last() {
                found[*around].text.push_str(text.trim());
            }
            continue;
        }
        let (tag, is_empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let name = tag.split(' ').next().unwrap().to_owned();
        let mut rest = &tag[name.len()..];
        let mut attributes = Vec::new();
        while let Some((key, after)) = rest.trim_start().split_once("=\"") {
            let (value, after) = after.split_once('"').expect("a value ends");
            attributes.push((key.to_owned(), value.to_owned()));
            rest = after;
        }
        if !is_empty {
            open.push(found.len());
        }
        found.push(Element { name, attributes, text: text.trim().to_owned() });
    }
    assert!(open.is_empty(), "{open:?}");
    found
}

fn size(elements: &[Element]) -> (f64, f64) {
    let numbers: Vec<f64> = elements[0]
        .get("viewBox")
        .unwrap()
        .split(' ')
        .map(|number| number.parse().unwrap())
        .collect();
    (numbers[2], numbers[3])
}

/// Horizontal and vertical extents of everything that has a place.
fn extents(element: &Element) -> Vec<(f64, f64)> {
    let mut found: Vec<(f64, f64)> = Vec::new();
    let mut pair = |x: &str, y: &str| {
        found.extend(element.number(x).zip(element.number(y)));
    };
    pair("x", "y");
    pair("cx", "cy");
    pair("x1", "y1");
    pair("x2", "y2");
    if let (Some((x, y)), Some(width), Some(height)) = (
        element.number("x").zip(element.number("y")),
        element.number("width"),
        element.number("height"),
    ) {
        assert!(0.0 <= width && 0.0 <= height);
        found.push((x + width, y + height));
    }
    for place in element.get("points").unwrap_or_default().split_whitespace() {
        let (x, y) = place.split_once(',').unwrap();
        found.push((x.parse().unwrap(), y.parse().unwrap()));
    }
    found
}

/// What every chart must keep, whatever it shows.
pub(crate) fn check(chart: &Chart) {
    for theme in [Theme::Light, Theme::Dark, Theme::Page, Theme::Site] {
        let svg = chart.to_svg(theme);
        assert_eq!(svg, chart.to_svg(theme));
        let elements = elements(&svg);
        let known = [
            "svg", "title", "desc", "defs", "pattern", "path", "rect", "g", "text", "tspan",
            "line", "circle", "polyline", "polygon",
        ];
        let (width, height) = size(&elements);
        for element in &elements {
            assert!(known.contains(&element.name.as_str()), "{element:?}");
            assert!(element.get("style").is_none() && element.get("onclick").is_none());
            for (key, value) in &element.attributes {
                let is_words = matches!(key.as_str(), "data-tip" | "data-series");
                let is_number = !value.contains("NaN") && !value.contains("inf");
                assert!(is_words || is_number, "{element:?}");
            }
            if element.name == "path" && !element.is_mark() {
                continue; // of a pattern, in its own square
            }
            for (x, y) in extents(element) {
                let is_inside = (0.0..=width).contains(&x) && (0.0..=height).contains(&y);
                assert!(is_inside, "{element:?} in {width} x {height}");
            }
            if let Some(size) = element.number("font-size") {
                assert!(12.0 <= size, "{element:?}");
            }
        }
        assert_eq!(svg.contains("var(--"), matches!(theme, Theme::Page | Theme::Site));
        // A page that is not ours has no script to show what marks say.
        assert!(theme != Theme::Site || !svg.contains("data-tip"));
        assert_no_texts_overlap(&elements);
    }
    let table = chart.table();
    assert_eq!(table.id, format!("{}-data", chart.id));
    assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
}

/// As narrow as a usual font has it.
fn narrow_width(text: &str, size: f64) -> f64 {
    let plain = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")]
        .iter()
        .fold(text.to_owned(), |text, (escaped, plain)| text.replace(escaped, plain));
    let ems = plain.chars().map(|character| match character {
        'a'..='e' | 'g' | 'h' | 'k' | 'n'..='q' | 's' | 'u'..='z' | '0'..='9' => 0.5,
        _ => 0.25,
    });
    ems.sum::<f64>() * size
}

/// Texts must not touch, and end inside the picture.
fn assert_no_texts_overlap(elements: &[Element]) {
    let (width, _) = size(elements);
    let mut boxes: Vec<(f64, f64, f64, f64, &str)> = Vec::new();
    for text in elements.iter().filter(|element| element.name == "text" && !element.text.is_empty())
    {
        let (x, y) = (text.number("x").unwrap(), text.number("y").unwrap());
        let long = narrow_width(&text.text, text.number("font-size").unwrap());
        let left = match text.get("text-anchor") {
            None => x,
            Some("middle") => x - long / 2.0,
            Some(_) => x - long,
        };
        assert!(-1.0 <= left && left + long <= width + 1.0, "{text:?}");
        let own = (left, left + long, y - 10.0, y, text.text.as_str());
        for other in &boxes {
            let meets = own.0 < other.1 && other.0 < own.1 && own.2 < other.3 && other.2 < own.3;
            assert!(!meets, "{own:?} {other:?}");
        }
        boxes.push(own);
    }
}

pub(crate) fn marks(chart: &Chart, key: &str) -> Vec<f64> {
    let elements = elements(&chart.to_svg(Theme::Light));
    elements
        .iter()
        .filter(|element| element.is_mark())
        .filter_map(|mark| mark.number(key))
        .collect()
}
