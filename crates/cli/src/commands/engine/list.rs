//! `inferometer engine --list`: the profiles, GPUs and models to choose from.

use inferometer_engine::profile::{Gpu, Model, ProfileRow, list};
use inferometer_report::document::terminal::table;
use inferometer_report::document::{Cell, Columns, Table, plain};
use inferometer_report::terminal::Style;

pub(super) fn tables() -> String {
    let known = list();
    let billions = |parameters: f64| format!("{:.1} B", parameters / 1e9);
    let teraflops =
        |flops: Option<f64>| flops.map_or_else(|| "-".to_owned(), |flops| tera(flops, "FLOP/s"));
    let profiles = Columns::new("--profile", |row: &&ProfileRow| Cell::text(row.name))
        .left("hardware", |row| Cell::text(row.hardware))
        .left("model", |row| Cell::text(row.model))
        .left("tp", |row| Cell::text(row.tp.to_string()))
        .left("pp", |row| Cell::text(row.pp.to_string()))
        .left("coefficients", |row| {
            let fitted = row.fitted.map(|source| format!("fitted to {source}"));
            Cell::text(fitted.unwrap_or_else(|| "generic".to_owned()))
        })
        .table("", "", &known.profiles);
    let note = "a GPU and a model joined are a profile too, as in mi300x-qwen3-32b-tp2 or \
                h100-llama-3.1-70b-tp4-fp8";
    let hardware = Columns::new("--hardware", |gpu: &&Gpu| Cell::text(&gpu.name))
        .left("GPU", |gpu| Cell::text(&gpu.title))
        .left("memory", |gpu| Cell::text(format!("{:.0} GiB", gpu.memory_gib)))
        .left("bandwidth", |gpu| Cell::text(tera(gpu.bandwidth, "B/s")))
        .left("FP16", |gpu| Cell::text(teraflops(Some(gpu.flops.fp16))))
        .left("FP8", |gpu| Cell::text(teraflops(gpu.flops.fp8)))
        .left("link", |gpu| Cell::text(&gpu.link.kind))
        .table("", "", known.hardware);
    let models = Columns::new("--model", |model: &&Model| Cell::text(&model.name))
        .left("id", |model| Cell::text(&model.id))
        .left("parameters", |model| Cell::text(billions(model.parameters)))
        .left("active", |model| {
            let active = model.active_parameters;
            Cell::text(active.map_or_else(|| "all".to_owned(), billions))
        })
        .left("layers", |model| Cell::text(model.layers.to_string()))
        .left("context", |model| Cell::text(model.max_position_embeddings.to_string()))
        .table("", "", known.models);
    let tables = [Table { notes: vec![plain(note)], ..profiles }, hardware, models];
    tables.map(|shown| table(&shown, Style::Plain)).join("\n")
}

fn tera(value: f64, unit: &str) -> String {
    let value = value / 1e12;
    if value < 10.0 { format!("{value:.2} T{unit}") } else { format!("{value:.0} T{unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_can_be_chosen_is_listed() {
        let text = tables();
        for flag in ["--profile", "--hardware", "--model"] {
            assert!(text.contains(flag), "{text}");
        }
        assert!(text.contains("h100"), "{text}");
    }
}
