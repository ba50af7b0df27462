//! The built-in matrix beside the published one that it stands for.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use support::{output, text};

/// A preset, the label of a model, and a context.
type Cell = (String, String, u64);

struct Published {
    cell: Cell,
    /// Tokens per second of a request.
    tps: f64,
    errors: u32,
}

fn published() -> Vec<Published> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/published/matrix.csv");
    let whole = fs::read_to_string(file).unwrap();
    let row = |line: &str| {
        let columns: Vec<&str> = line.split(',').collect();
        let [preset, model, context, _, tps, errors] = columns[..] else { panic!("{line}") };
        Published {
            cell: (preset.to_owned(), model.to_owned(), context.parse().unwrap()),
            tps: tps.parse().unwrap(),
            errors: errors.parse().unwrap(),
        }
    };
    whole.lines().skip(1).map(row).collect()
}

/// The same in virtual time; as many requests as are in flight, so that it is quick.
fn simulated(only: &str, folder: &Path) -> HashMap<Cell, f64> {
    let few = ["--set", "load.requests=10"];
    let ran = output(
        &[&["matrix", "r3", "--virtual", "--json", "--only", only], &few[..]].concat(),
        folder,
    );
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    let document: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let matrix = &document["matrix"];
    let of = |list: &str, row: &Value, axis: &str, name: &str| {
        let place = usize::try_from(row[axis].as_u64().unwrap()).unwrap();
        matrix[list][place][name].as_str().unwrap().to_owned()
    };
    let row = |row: &Value| {
        let (preset, model) =
            (of("presets", row, "preset", "name"), of("models", row, "model", "label"));
        let cell = (preset, model, row["context"].as_u64().unwrap());
        Some((cell, row["request_generation_tps"]["mean"].as_f64()?))
    };
    matrix["rows"].as_array().unwrap().iter().filter_map(row).collect()
}

/// Servers without graphs wait for their launches, on old GPUs as on new ones.
#[test]
fn r3_answers_as_fast_as_the_published_matrix_and_fits_where_that_one_did() {
    let folder = tempfile::tempdir().unwrap();
    let (published, simulated) = (published(), simulated("strategy=tensor", folder.path()));
    assert_eq!(published.len(), 74);
    for row in &published {
        assert!(simulated.contains_key(&row.cell), "{:?} does not fit", row.cell);
    }
    let clean = published.iter().filter(|row| row.errors == 0);
    let ratios: Vec<f64> = clean.map(|row| simulated[&row.cell] / row.tps).collect();
    let near = ratios.iter().filter(|ratio| (0.9..=1.1).contains(*ratio)).count();
    assert!(45 <= near && ratios.len() == 57, "{near} of {}: {ratios:?}", ratios.len());
    let mut sorted = ratios;
    sorted.sort_by(f64::total_cmp);
    assert!((1.0..1.06).contains(&sorted[28]), "the one in the middle: {}", sorted[28]);
}

/// Published of the 3B model on two GPUs: 11.4, 14.9 and 25.4 %.
#[test]
fn tensor_is_as_far_ahead_of_pipeline_as_in_the_published_matrix() {
    let folder = tempfile::tempdir().unwrap();
    let of = |strategy: &str| {
        let only = format!("model=Llama-3B,context=2048,strategy={strategy}");
        simulated(&only, folder.path())
    };
    let (tensor, pipeline) = (of("tensor"), of("pipeline"));
    for preset in ["gpu-medium", "mi210x2", "H100X2"] {
        let cell = (preset.to_owned(), "Llama-3B".to_owned(), 2048);
        let ahead = tensor[&cell] / pipeline[&cell] - 1.0;
        assert!((0.11..0.26).contains(&ahead), "{preset}: {ahead}");
    }
}

/// Current hardware, with recorded graphs: nothing waits for the host, so faster GPUs are faster.
#[test]
fn current_hardware_is_told_apart_and_nothing_fails() {
    let folder = tempfile::tempdir().unwrap();
    let few = ["--set", "load.requests=640", "--only", "model=Llama-70B,concurrency=64"];
    let matrix = ["matrix", "current", "--virtual", "--json", "-q"];
    let ran = output(&[&matrix[..], &few].concat(), folder.path());
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    let document: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(document["verdict"], "simulated");
    let rows = document["matrix"]["rows"].as_array().unwrap();
    let speed = |row: &Value| row["request_generation_tps"]["mean"].as_f64().unwrap();
    let mut speeds: Vec<f64> = rows.iter().map(speed).collect();
    assert_eq!(speeds.len(), 5);
    speeds.sort_by(f64::total_cmp);
    assert!(1.5 * speeds[0] < speeds[4], "{speeds:?}");
}

/// Cells that do not fit are no good news, however valid the others are.
#[test]
fn a_matrix_with_failed_cells_says_so_and_why_its_hardware_is_alike() {
    let folder = tempfile::tempdir().unwrap();
    let only = ["--only", "preset=gpu-small,context=2048,strategy=tensor"];
    let few = ["--set", "load.requests=100"];
    let ran = output(&[&["matrix", "r3", "--virtual"], &only[..], &few].concat(), folder.path());
    let page = text(&ran.stdout);
    assert!(page.contains("SIMULATED, 2 OF 4 WITHOUT A RESULT"), "{page}");
    assert!(page.replace('\n', " ").contains("a step waits until the host"), "{page}");
}
