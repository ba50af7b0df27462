//! Reports of stored runs and sets, made again: their forms, their places, and what is refused.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::collections::BTreeSet;
use std::fs;
#[cfg(target_os = "linux")]
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;
use sha2::{Digest, Sha256};

use support::{output, text};

const HOSTILE: &str = "note=<script>alert(1)</script>";

fn simulate(folder: &Path) -> PathBuf {
    let ran = output(
        &[
            "simulate",
            "--concurrency",
            "4",
            "--requests",
            "60",
            "--input-tokens",
            "64",
            "--output-tokens",
            "32",
            "--engine-step",
            "10ms",
            "--metadata",
            HOSTILE,
            "--quiet",
        ],
        folder,
    );
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    only_folder(folder)
}

fn sweep(folder: &Path) -> PathBuf {
    let ran = output(
        &[
            "sweep",
            "--virtual",
            "--concurrencies",
            "2,4,8",
            "--requests",
            "80",
            "--input-tokens",
            "64",
            "--output-tokens",
            "32",
            "--engine-step",
            "10ms",
            "--quiet",
        ],
        folder,
    );
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    only_folder(folder)
}

fn only_folder(folder: &Path) -> PathBuf {
    let mut entries = fs::read_dir(folder.join("runs")).unwrap();
    let only = entries.next().unwrap().unwrap().path();
    assert!(entries.next().is_none());
    only
}

#[track_caller]
fn made(ran: &Output) -> String {
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    text(&ran.stdout)
}

#[track_caller]
fn refused(ran: &Output, why: &str) {
    assert_eq!(ran.status.code(), Some(2), "{}", text(&ran.stdout));
    let said = text(&ran.stderr);
    assert!(said.contains(why), "{said}");
}

fn report(arguments: &[&str], folder: &Path) -> Output {
    output(&[&["report"], arguments].concat(), folder)
}

/// The width and the height of a PNG.
fn picture_size(path: &Path) -> (u32, u32) {
    let bytes = fs::read(path).unwrap();
    assert_eq!(&bytes[1..4], b"PNG", "{}", path.display());
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

#[test]
fn a_page_has_pictures_a_card_and_downloads() {
    let folder = tempfile::tempdir().unwrap();
    let set = sweep(folder.path());
    made(&report(&["latest"], folder.path()));
    assert_eq!(picture_size(&set.join("card.png")), (1200, 630));
    let svg = fs::read_to_string(set.join("card.svg")).unwrap();
    let hash = Sha256::digest(fs::read(set.join("summary.json")).unwrap());
    let first = format!("{:02x}{:02x}{:02x}{:02x}", hash[0], hash[1], hash[2], hash[3]);
    assert!(svg.contains(&first), "the hash of summary.json: {svg}");
    let page = fs::read_to_string(set.join("report.html")).unwrap();
    for wanted in ["href=\"data:text/csv;base64,", "href=\"./report.md\"", "href=\"./card.png\""] {
        assert!(page.contains(wanted), "{wanted}");
    }
    // The command that repeats it, with the seed that virtual time has by default.
    assert!(page.contains("inferometer sweep --virtual --concurrencies 2,4,8"), "{page}");
    let charts = folder.path().join("pictures");
    made(&report(&["latest", "--format", "png", "--to", charts.to_str().unwrap()], folder.path()));
    let pictures: Vec<PathBuf> = charts.read_dir().unwrap().map(|it| it.unwrap().path()).collect();
    assert!(3 < pictures.len(), "{pictures:?}");
    assert!(pictures.iter().all(|it| picture_size(it).0 == 1600), "twice as wide as a chart");
    refused(&report(&["latest", "--format", "png", "--to", "-"], folder.path()), "makes files");
}

#[test]
fn a_price_is_stored_and_gives_costs_in_every_form() {
    let folder = tempfile::tempdir().unwrap();
    let load = ["--concurrencies", "2,4", "--requests", "80", "--output-tokens", "32"];
    let price = ["sweep", "--virtual", "--quiet", "--price", "3.60/h", "--engine-step", "10ms"];
    let ran = output(&[&price[..], &load].concat(), folder.path());
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    let json = made(&report(&["latest", "--format", "json"], folder.path()));
    let json: Value = serde_json::from_str(&json).unwrap();
    for level in json["conditions"][0]["levels"].as_array().unwrap() {
        let mean = |name: &str| level["quantities"][name]["mean"].as_f64().unwrap();
        let expected = 1_000.0 / mean("output_throughput");
        let found = mean("cost_per_million_output_tokens");
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
    }
    let csv = made(&report(&["latest", "--format", "csv"], folder.path()));
    assert!(csv.contains("cost_per_million_tokens (per M tok)"), "{csv}");
    let page = made(&report(&["latest", "--format", "html", "--to", "-"], folder.path()));
    for wanted in ["Lowest cost", "Cost against concurrency", "Cost of output tokens against speed"]
    {
        assert!(page.contains(wanted), "{wanted}");
    }
}

#[test]
fn a_run_has_a_page_in_every_form_and_twice_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let run = simulate(folder.path());
    let told = made(&report(&["latest"], folder.path()));
    assert!(told.trim_end().ends_with("report.html"), "{told}");
    let page = fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("Content-Security-Policy"), "a page that may load nothing");
    assert!(!page.contains("<script>alert(1)"), "what a user noted is text");
    let markdown = fs::read_to_string(run.join("report.md")).unwrap();
    // The command that repeats it stands in a fence, where nothing has a meaning.
    let prose: String = markdown.split("\n```").step_by(2).collect();
    assert!(prose.len() < markdown.len() && !prose.contains("<script>alert(1)"), "in Markdown too");
    assert!(run.join("charts").read_dir().unwrap().count() > 4, "charts in light and dark");
    assert!(markdown.contains("simulated in virtual time"), "{markdown}");
    made(&report(&["latest"], folder.path()));
    assert_eq!(fs::read_to_string(run.join("report.html")).unwrap(), page);
    assert_eq!(fs::read_to_string(run.join("report.md")).unwrap(), markdown);
    let csv = made(&report(&["latest", "--format", "csv"], folder.path()));
    assert_eq!(csv.lines().count(), 2, "{csv}");
    let json: Value =
        serde_json::from_str(&made(&report(&["latest", "--format", "json"], folder.path())))
            .unwrap();
    assert_eq!(json["schema"], "inferometer.summary/1");
    let printed = made(&report(&["latest", "--format", "html", "--to", "-"], folder.path()));
    let beside = " <a href=\"./report.md\" download=\"report.md\">Markdown</a> \
                  <a href=\"./card.png\" download=\"card.png\">Card</a>";
    assert_eq!(printed, page.replace(beside, ""), "nothing lies beside what is printed");
}

#[test]
fn a_set_has_a_page_and_each_of_its_runs_too() {
    let folder = tempfile::tempdir().unwrap();
    let set = sweep(folder.path());
    made(&report(&["latest"], folder.path()));
    let markdown = fs::read_to_string(set.join("report.md")).unwrap();
    for part in ["## Levels", "## Findings", "xychart-beta", "charts/throughput-by-level-light.svg"]
    {
        assert!(markdown.contains(part), "{part}: {markdown}");
    }
    assert!(set.join("charts/throughput-by-level-dark.svg").is_file());
    let csv = made(&report(&["latest", "--format", "csv", "--to", "-"], folder.path()));
    assert_eq!(csv.lines().count(), 4, "{csv}");
    let point = format!("{}/1", set.file_name().unwrap().to_str().unwrap());
    made(&report(&[&point, "--format", "md", "--to", "elsewhere/page.md"], folder.path()));
    assert!(folder.path().join("elsewhere/page.md").is_file());
    assert!(folder.path().join("elsewhere/page.charts").is_dir());
}

#[test]
fn pages_beside_each_other_have_charts_of_their_own_and_no_old_ones() {
    let folder = tempfile::tempdir().unwrap();
    let set = sweep(folder.path());
    let point = format!("{}/1", set.file_name().unwrap().to_str().unwrap());
    let at = folder.path();
    made(&report(&["latest", "--to", "notes/my set.md"], at));
    made(&report(&[&point, "--format", "md", "--to", "notes/run.md"], at));
    let charts = |name: &str| -> BTreeSet<String> {
        let entries = fs::read_dir(at.join("notes").join(name)).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let (of_set, of_run) = (charts("my set.charts"), charts("run.charts"));
    assert!(of_set.contains("throughput-by-level-dark.svg"), "{of_set:?}");
    let page = fs::read_to_string(at.join("notes/my set.md")).unwrap();
    assert!(page.contains("src=\"my%20set.charts/throughput-by-level-light.svg\""), "{page}");
    fs::write(at.join("notes/my set.charts/own-light.svg"), "drawn by somebody else").unwrap();
    made(&report(&[&point, "--format", "md", "--to", "notes/my set.md"], at));
    let mut replaced = charts("my set.charts");
    assert!(replaced.remove("own-light.svg"), "what the page did not show stays");
    assert_eq!(replaced, of_run);
}

#[test]
fn a_summary_that_is_damaged_or_without_figures_is_computed_again() {
    let folder = tempfile::tempdir().unwrap();
    let run = simulate(folder.path());
    let whole = made(&report(&["latest", "--format", "html", "--to", "-"], folder.path()));
    let stored = run.join("summary.json");
    let mut older: Value = serde_json::from_slice(&fs::read(&stored).unwrap()).unwrap();
    older.as_object_mut().unwrap().remove("figures").unwrap();
    for bytes in [older.to_string(), "{ damaged".to_owned()] {
        fs::write(&stored, bytes).unwrap();
        let again = made(&report(&["latest", "--format", "html", "--to", "-"], folder.path()));
        assert!(again == whole, "the page is what the records give");
    }
}

#[test]
fn a_set_that_is_not_finished_is_told_as_far_as_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let set = sweep(folder.path());
    fs::remove_dir_all(set.join("points/2")).unwrap();
    let ran = report(&["latest", "--format", "md", "--to", "-"], folder.path());
    assert!(text(&ran.stderr).contains("is not finished"), "{}", text(&ran.stderr));
    let page = made(&ran);
    assert!(page.contains("2 runs are stored"), "{page}");
    fs::remove_dir_all(set.join("points")).unwrap();
    refused(&report(&["latest"], folder.path()), "has no finished run yet");
}

#[test]
fn what_contradicts_itself_is_refused_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    simulate(folder.path());
    let at = folder.path();
    refused(&report(&["nothing-like-it"], at), "nothing-like-it");
    refused(&report(&["latest", "--to", "-"], at), "prints one form");
    refused(&report(&["latest", "--to", "/dev/null"], at), "/dev/null is not a folder");
    refused(&report(&["latest", "--format", "csv", "--open"], at), "--open shows the HTML page");
    refused(&report(&["latest", "--format", "html", "--to", "-", "--open"], at), "needs a file");
    refused(&report(&["latest", "latest", "--to", "x"], at), "--to names one file or folder");
    let narrated = ["--narrator", "http://127.0.0.1:9"];
    for form in ["csv", "json"] {
        let asked = [&["latest", "--format", form], &narrated[..]].concat();
        refused(&report(&asked, at), "--narrator writes prose");
    }
    refused(&report(&["latest", "--narrator", "nonsense"], at), "nonsense");
    refused(&report(&["latest", "--narrator", "target"], at), "no model was measured");
    fs::write(at.join("file"), "x").unwrap();
    refused(&report(&["latest", "--to", "file/below"], at), "--to");
}

#[cfg(target_os = "linux")]
#[test]
fn where_nothing_can_be_opened_the_page_is_there_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let run = simulate(folder.path());
    let broken = folder.path().join("bin");
    fs::create_dir(&broken).unwrap();
    let opener = broken.join("xdg-open");
    support::write_program(&opener, "#!/bin/sh\nexit 3\n");
    let nowhere = Path::new("/nonexistent");
    for (path, display, why) in [
        (nowhere, ":0", "no program that opens pages"),
        (broken.as_path(), ":0", "xdg-open failed"),
        (broken.as_path(), "", "there is no desktop"),
    ] {
        let _ = fs::remove_file(run.join("report.html"));
        let ran = support::inferometer()
            .args(["report", "latest", "--open"])
            .env("PATH", path)
            .env("DISPLAY", display)
            .env_remove("WAYLAND_DISPLAY")
            .env_remove("BROWSER")
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = text(&ran.stderr);
        assert!(ran.status.success() && text(&ran.stdout).contains("report.html"), "{said}");
        assert!(said.contains(&format!("no browser was opened: {why}")), "{said}");
        assert!(run.join("report.html").is_file());
    }
}
