//! `inferometer engine --list`: what there is to choose from.

use std::fmt::Write as _;

use inferometer_engine::profile::{Gpu, Model, ProfileRow, list};

pub(super) fn tables() -> String {
    let known = list();
    let profiles = known.profiles.iter().map(profile).collect();
    let hardware = known.hardware.iter().map(gpu).collect();
    let models = known.models.iter().map(model).collect();
    [
        table("--profile", &["hardware", "model", "tp", "pp", "coefficients"], profiles)
            + "a GPU and a model joined are a profile too, as in mi300x-qwen3-32b-tp2 or \
               h100-llama-3.1-70b-tp4-fp8\n",
        table("--hardware", &["GPU", "memory", "bandwidth", "FP16", "FP8", "link"], hardware),
        table("--model", &["id", "parameters", "active", "layers", "context"], models),
    ]
    .join("\n")
}

fn profile(row: &ProfileRow) -> Vec<String> {
    vec![
        row.name.to_owned(),
        row.hardware.to_owned(),
        row.model.to_owned(),
        row.tp.to_string(),
        row.pp.to_string(),
        row.fitted.map_or_else(|| "generic".to_owned(), |source| format!("fitted to {source}")),
    ]
}

fn gpu(gpu: &Gpu) -> Vec<String> {
    let teraflops =
        |flops: Option<f64>| flops.map_or_else(|| "-".to_owned(), |flops| tera(flops, "FLOP/s"));
    vec![
        gpu.name.clone(),
        gpu.title.clone(),
        format!("{:.0} GiB", gpu.memory_gib),
        tera(gpu.bandwidth, "B/s"),
        teraflops(Some(gpu.flops.fp16)),
        teraflops(gpu.flops.fp8),
        gpu.link.kind.clone(),
    ]
}

fn model(model: &Model) -> Vec<String> {
    let billions = |parameters: f64| format!("{:.1} B", parameters / 1e9);
    vec![
        model.name.clone(),
        model.id.clone(),
        billions(model.parameters),
        model.active_parameters.map_or_else(|| "all".to_owned(), billions),
        model.layers.to_string(),
        model.max_position_embeddings.to_string(),
    ]
}

fn tera(value: f64, unit: &str) -> String {
    let value = value / 1e12;
    if value < 10.0 { format!("{value:.2} T{unit}") } else { format!("{value:.0} T{unit}") }
}

/// Columns as wide as their widest cell; the first is what the flag takes.
fn table(flag: &str, columns: &[&str], rows: Vec<Vec<String>>) -> String {
    let head = std::iter::once(flag).chain(columns.iter().copied()).map(str::to_owned).collect();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..=columns.len()).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            // Writing to a string cannot fail.
            let _ = write!(line, "{cell:width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows =
            vec![vec!["a".to_owned(), "1".to_owned()], vec!["long".to_owned(), "2".to_owned()]];
        assert_eq!(table("--x", &["n"], rows), "--x   n\na     1\nlong  2\n");
    }

    #[test]
    fn everything_that_can_be_chosen_is_listed() {
        let text = tables();
        for flag in ["--profile", "--hardware", "--model"] {
            assert!(text.contains(flag), "{text}");
        }
        assert!(text.contains("h100"), "{text}");
    }
}
