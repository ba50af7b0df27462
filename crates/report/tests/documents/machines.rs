//! What pages say of GPUs and of the client's machine, and that they say nothing where nobody looked.

use inferometer_analysis::Summary;
use inferometer_analysis::machines::ServersBy;
use inferometer_analysis::set::{PointResult, SetSummary};
use inferometer_model::study::{Dimension, Question, Sweep};
use inferometer_model::system::{Machine, ServerFacts};
use inferometer_report::document::{Document, markdown};
use inferometer_report::narrative::Narrative;
use inferometer_report::pages::{self, SuiteInput, csv};
use inferometer_report::terminal::set::SetFiles;
use inferometer_report::terminal::{self, Style};
use inferometer_report::{Files, terminal::set};
use serde_json::{Value, json};

use super::made::{manifest, results};

fn gauge(mean: f64, max: f64) -> Value {
    json!({ "mean": mean, "max": max, "n": 12 })
}

fn device(index: u32, idle: bool, watts: f64) -> Value {
    json!({
        "index": index,
        "idle": idle,
        "use_share": gauge(if idle { 0.0 } else { 0.62 }, if idle { 0.0 } else { 0.98 }),
        "memory_used_bytes": gauge(6.0e10, 6.4e10),
        "memory_total_bytes": 85_899_345_920_u64,
        "power_w": gauge(watts, watts + 120.0),
        "core_clock_mhz": gauge(1_650.0, 1_980.0),
        "memory_clock_mhz": null,
        "temperature_c": gauge(61.0, 71.0),
        "energy_j": watts * 30.0,
        "energy_from": "counter",
        "throttled_power": 0.125,
        "throttled_thermal": 0.0,
        "throttled_hardware": null,
        "newcomers": 0,
    })
}

fn machines(watts: f64) -> Value {
    json!({
        "gpus": {
            "source": "nvml",
            "looks": 12,
            "took_ms_max": 4.5,
            "devices": [device(0, false, watts), device(1, true, 70.0)],
            "power_w": gauge(watts, watts + 120.0),
            "memory_used_bytes": gauge(6.0e10, 6.4e10),
            "energy_j": watts * 30.0,
            "energy_missing": null,
            "energy_per_output_token_j": 0.625,
            "energy_per_million_tokens_kwh": 0.173_6,
            "timeline": {
                "from_ms": 0.0,
                "step_ms": 1_000.0,
                "use_share": [0.5, null, 0.9],
                "memory_used_bytes": [6.0e10, 6.0e10, 6.4e10],
                "power_w": [watts, watts, watts + 120.0],
                "core_clock_mhz": [1_600.0, 1_700.0, 1_980.0],
                "temperature_c": [null, null, null],
            },
        },
        "gpus_missing": null,
        "client": {
            "looks": 12,
            "cpu_share": gauge(0.25, 0.5),
            "steal_share": gauge(0.0, 0.0),
            "own_cpus": gauge(0.8, 1.2),
            "received_bytes_per_s": 2_500_000.0,
            "sent_bytes_per_s": 125_000.0,
            "memory_available_bytes_min": 8_589_934_592_u64,
            "timeline": {
                "from_ms": 0.0,
                "step_ms": 1_000.0,
                "cpu_share": [0.2, 0.3, 0.5],
                "own_cpus": [0.7, 0.8, 1.2],
                "received_bytes_per_s": [null, 2.0e6, 3.0e6],
                "sent_bytes_per_s": [null, 1.0e5, 1.5e5],
            },
        },
    })
}

/// The same run on a machine whose GPUs told this power.
fn told(summary: &Summary, watts: f64) -> Summary {
    let mut document = serde_json::to_value(summary).unwrap();
    document["machines"] = machines(watts);
    for (name, value, unit) in [
        ("gpu_power", watts, "W"),
        ("energy_per_output_token", 90.0 / watts, "J/tok"),
        ("output_tokens_per_joule", watts / 90.0, "tok/J"),
    ] {
        document["metrics"][name] = json!({ "value": value, "interval": null, "unit": unit });
    }
    Summary::from_json_bytes(document.to_string().as_bytes()).unwrap()
}

fn sweep(of: impl Fn(&PointResult) -> Summary) -> (SetSummary, Vec<PointResult>) {
    let points: Vec<PointResult> = results(|_| 0).split_off(2);
    let points: Vec<PointResult> =
        points.into_iter().map(|it| PointResult { summary: of(&it), ..it }).collect();
    (SetSummary::summarize(&manifest(question(), &["stock"]), &points), points)
}

fn question() -> Question {
    Question::Sweep(Sweep {
        dimension: Dimension::Concurrency,
        levels: Vec::new(),
        waves: None,
        fine: None,
        find: None,
    })
}

fn run_page(summary: &Summary) -> String {
    markdown::render(&pages::run(summary, &Narrative::default())).text
}

fn set_page((set, points): &(SetSummary, Vec<PointResult>)) -> Document {
    pages::of_set(&SuiteInput { set, points, narrative: &Narrative::default() })
}

fn terminal_page(summary: &Summary) -> String {
    let name = |name: &str| name.to_owned();
    let files = Files {
        run: name("r"),
        manifest: name("m"),
        journal: name("j"),
        summary: name("s"),
        report: None,
    };
    terminal::render(summary, &files, Style::Plain)
}

/// From one heading to the next of its rank.
fn section(page: &str, heading: &str) -> String {
    let from = page.find(heading).unwrap_or_else(|| panic!("{heading} is missing: {page}"));
    let rest = &page[from + heading.len()..];
    let to = rest.find("\n## ").unwrap_or(rest.len());
    format!("{heading}{}", &rest[..to])
}

#[test]
fn a_run_shows_its_gpus_their_energy_and_the_clients_machine() {
    let summary = told(&results(|_| 0)[2].summary, 300.0);
    insta::assert_snapshot!(section(&run_page(&summary), "## Machines"));
}

#[test]
fn the_terminal_has_the_same_in_lines() {
    let page = terminal_page(&told(&results(|_| 0)[2].summary, 300.0));
    let from = page.find("\nMachines\n").unwrap();
    let to = page.find("\nClient\n").unwrap();
    insta::assert_snapshot!(&page[from..to]);
    assert!(page.lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn where_nobody_looked_nothing_is_said() {
    let summary = &results(|_| 0)[2].summary;
    assert!(summary.machines.gpus.is_none() && summary.machines.client.is_none());
    let page = run_page(summary);
    assert!(!page.contains("## Machines") && !page.contains("GPU power"), "{page}");
    assert!(!terminal_page(summary).contains("\nMachines\n"));
}

#[test]
fn gpus_that_could_not_be_read_say_why_beside_the_clients_machine() {
    let mut summary = told(&results(|_| 0)[2].summary, 300.0);
    summary.machines.gpus = None;
    summary.machines.gpus_missing = Some("no GPU was found on this machine".to_owned());
    assert!(run_page(&summary).contains("GPUs: – no GPU was found on this machine"));
    let page = terminal_page(&summary);
    assert!(
        page.contains("\nMachines\n  GPUs: – no GPU was found on this machine\n  client CPU"),
        "{page}"
    );
}

#[test]
fn energy_that_is_not_known_has_its_reason() {
    let mut summary = told(&results(|_| 0)[2].summary, 300.0);
    let gpus = summary.machines.gpus.as_mut().unwrap();
    (gpus.energy_j, gpus.energy_per_output_token_j) = (None, None);
    gpus.energy_missing = Some("their power is told too seldom".to_owned());
    assert!(run_page(&summary).contains("– their power is told too seldom"));
    assert!(terminal_page(&summary).contains("– their power is told too seldom"));
}

#[test]
fn gpus_whose_owner_is_not_known_are_doubted_and_those_of_others_left_out() {
    let mut summary = told(&results(|_| 0)[2].summary, 300.0);
    let gpus = summary.machines.gpus.as_mut().unwrap();
    gpus.missed = 3;
    gpus.devices[1].idle = false;
    let (page, lines) = (run_page(&summary), terminal_page(&summary));
    assert!(page.contains("(3 missed) inside the run"), "{page}");
    assert!(page.contains("all GPUs that were in use, which may not all be the server's"));
    assert!(lines.contains("may not all be the server's"), "{lines}");
    let gpus = summary.machines.gpus.as_mut().unwrap();
    (gpus.servers_by, gpus.devices[1].foreign) = (Some(ServersBy::Processes), true);
    let page = run_page(&summary);
    assert!(page.contains("1 of 2 GPUs, the others are not the server's"), "{page}");
    assert!(page.contains("the GPU with a process of the server"));
}

#[test]
fn throughput_is_that_of_a_gpu_where_it_is_known_which_are_the_servers() {
    let page = |servers_by| {
        let swept = sweep(|it| {
            let mut summary = told(&it.summary, 300.0);
            summary.machines.gpus.as_mut().unwrap().servers_by = servers_by;
            summary
        });
        markdown::render(&set_page(&swept)).text
    };
    assert!(page(None).contains("the number of GPUs is not known"));
    let known = page(Some(ServersBy::Processes));
    assert!(known.contains("Output throughput per GPU against speed for each user"), "{known}");
}

/// N4: the header and the table of the servers showed the first of them only.
#[test]
fn a_page_of_two_servers_has_the_hardware_and_the_context_of_each() {
    let (_, first) = sweep(|it| it.summary.clone());
    let both = [("EPYC 9654", 4_096), ("Xeon 8480", 8_192)];
    let points = (0..).zip(both).flat_map(|(condition, (cpu, context))| {
        first.clone().into_iter().map(move |mut it| {
            it.point.number += 10 * condition;
            it.point.condition = condition;
            let cpu_model = Some(cpu.to_owned());
            it.summary.system.server = Some(ServerFacts {
                context_tokens: Some(context),
                machine: Some(Machine { cpu_model, ..Machine::default() }),
                ..ServerFacts::default()
            });
            it
        })
    });
    let points: Vec<PointResult> = points.collect();
    let manifest = manifest(question(), &["stock", "tuned"]);
    let page = set_page(&(SetSummary::summarize(&manifest, &points), points));
    let page = markdown::render(&page).text;
    for part in ["stock: EPYC 9654; tuned: Xeon 8480", "4,096 tokens", "8,192 tokens"] {
        assert!(page.contains(part), "{part} is missing: {page}");
    }
}

#[test]
fn a_sweep_has_power_and_energy_against_the_load() {
    let watts = |it: &PointResult| 200.0 + 10.0 * f64::from(it.point.number);
    let swept = sweep(|it| told(&it.summary, watts(it)));
    let text = markdown::render(&set_page(&swept)).text;
    for part in [
        "GPU Power (W)",
        "Energy (J/tok)",
        "Output tokens per joule",
        "GPU power and energy against concurrency",
        "An output token takes",
        "The GPUs over time",
        "The GPUs at each level",
        "Core clock (MHz)",
    ] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    let files = SetFiles { set: "s".to_owned(), ..SetFiles::default() };
    let page = set::render(&swept.0, &files, Style::Plain);
    assert!(page.contains("Power and energy at every level\n"), "{page}");
    let table = csv::of_set(&swept.0, &swept.1);
    assert!(table.lines().next().unwrap().contains("\"energy_per_output_token (J/tok)\""));
}

#[test]
fn a_sweep_without_gpus_has_no_columns_of_dashes() {
    let text = markdown::render(&set_page(&sweep(|it| it.summary.clone()))).text;
    for part in ["GPU Power", "tokens per joule", "The GPUs at each level"] {
        assert!(!text.contains(part), "{part} in {text}");
    }
}

#[test]
fn tokens_are_reconciled_or_say_why_not() {
    let mut summary = results(|_| 0)[2].summary.clone();
    let page = run_page(&summary);
    assert!(page.contains("Token counts"), "{page}");
    let server = summary.server.as_mut().unwrap();
    server.tokens_apart.prompt = Some(0.0123);
    server.tokens_apart.generation = None;
    server.tokens_not_compared = Some("a request failed".to_owned());
    let page = run_page(&summary);
    assert!(page.contains("+1.2 %"), "{page}");
}
