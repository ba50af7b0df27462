//! Every kind of chart with made-up numbers, in all its colours, on one page to look at.
//!
//! `cargo run -p inferometer-report --example charts -- FOLDER` writes `charts.html` and the SVG
//! files there.

mod of_runs;
mod of_sets;

use std::fmt::Write;
use std::path::PathBuf;

use inferometer_report::chart::variables;
use inferometer_report::chart::{Chart, Measure, Plot, ScaleKind, Theme};

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "charts".to_owned()));
    std::fs::create_dir_all(&folder)?;
    let mut page = "<!doctype html><meta charset=utf-8><style>\
         body{margin:0;background:#888}svg{display:block;width:100%;margin-bottom:12px}\
         div{background:var(--surface);padding:8px}</style>"
        .to_owned();
    for (theme, name) in [(Theme::Light, "light"), (Theme::Dark, "dark")] {
        let _ = write!(page, "<style>.{name}{{");
        for (variable, value) in variables(theme) {
            let _ = write!(page, "{variable}:{value};");
        }
        let _ = write!(page, "}}</style><div class={name}>");
        for mut chart in charts() {
            let file = folder.join(format!("{}-{name}.svg", chart.id));
            std::fs::write(file, chart.to_svg(theme))?;
            // Both grounds are on one page here.
            chart.id = format!("{}-{name}", chart.id);
            page.push_str(&chart.to_svg(Theme::Page));
        }
        page.push_str("</div>");
    }
    std::fs::write(folder.join("charts.html"), page)
}

fn charts() -> Vec<Chart> {
    [of_sets::charts(), of_runs::charts()].concat()
}

fn chart(id: &str, title: &str, finding: &str, n: &str, plot: Plot) -> Chart {
    let [id, title, finding, n] = [id, title, finding, n].map(str::to_owned);
    Chart { id, title, finding, n, plot }
}

fn measure(label: &str, unit: &str, scale: ScaleKind) -> Measure {
    Measure { label: label.to_owned(), unit: unit.to_owned(), scale }
}
