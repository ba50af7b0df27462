//! What it ran on: the table of the machines.

use inferometer_analysis::Summary;
use inferometer_model::deployment::DeploymentFacts;
use inferometer_model::system::{KnownBy, Machine, ServerFacts};

use super::cells::{known, missing};
use super::frame::section;
use crate::document::{Block, Cell, Column, Section, Table, plain};
use crate::fmt::{NOTHING, count, counted, memory};
use crate::machine::{cpu, gpus};

const NOT_TOLD: &str = "where the server runs is not known, and nobody told; see --server-info";
const NOT_LOOKED: &str = "this run does not say: it was made by a version that did not look";
const NOT_FOUND: &str = "the machine does not say";

/// The GPUs of the server, or what the engine pretends to be; a dash where nobody knows.
pub(super) fn hardware(run: Option<&Summary>) -> String {
    let Some(run) = run else { return NOTHING.to_owned() };
    let server = run.system.server.as_ref();
    if let Some(simulated) = &run.run.simulated {
        return format!("simulated: {}", simulated.profile);
    }
    if let Some(pretended) = server.and_then(|server| server.pretended.as_ref()) {
        return format!("embedded engine: {pretended}");
    }
    let machine = server.and_then(|server| server.machine.as_ref());
    match machine {
        Some(machine) if !machine.gpus.is_empty() => gpus(&machine.gpus),
        Some(machine) => machine.cpu_model.clone().unwrap_or_else(|| NOTHING.to_owned()),
        None if run.run.embedded => "embedded engine".to_owned(),
        None => NOTHING.to_owned(),
    }
}

pub(super) fn system(run: Option<&Summary>) -> Section {
    let mut rows = Vec::new();
    if let Some(run) = run {
        rows.extend(pretended(run));
        rows.extend(server_rows(run));
    }
    let has_dash = rows.iter().flatten().any(|cell: &Cell| cell.text == NOTHING);
    let table = Table {
        id: "system-configuration".to_owned(),
        caption: "What it ran on".to_owned(),
        columns: vec![Column::left("Component"), Column::left("Value")],
        rows,
        notes: has_dash
            .then(|| plain("– is not known; it is never guessed."))
            .into_iter()
            .collect(),
    };
    section("system", "System Configuration", vec![Block::Table(table)])
}

fn line(component: &str, cell: Cell) -> Vec<Cell> {
    vec![Cell::text(component), cell]
}

fn pretended(run: &Summary) -> Option<Vec<Cell>> {
    let facts = &run.run;
    let server = run.system.server.as_ref();
    let told = server.and_then(|server| server.pretended.clone());
    let words = match (&facts.simulated, told) {
        (Some(simulated), _) => format!("{} ({})", simulated.profile, simulated.engine),
        (None, Some(pretended)) => pretended,
        (None, None) if facts.embedded => "the embedded engine".to_owned(),
        (None, None) => return None,
    };
    Some(line("Engine (simulated hardware)", Cell::text(words)))
}

/// The server's machine, and the client's where it is another.
fn server_rows(run: &Summary) -> Vec<Vec<Cell>> {
    let server = run.system.server.as_ref();
    let client = run.system.client.as_ref();
    let machine = server.and_then(|server| server.machine.as_ref());
    let shares = server.and_then(|server| server.known_by) == Some(KnownBy::Loopback);
    let is_engine = run.run.embedded || run.run.simulated.is_some();
    let mut rows = Vec::new();
    if is_engine {
        // The engine has no machine of its own but the client's.
        rows.extend(machine_rows("Client: ", client.or(machine), false, NOT_LOOKED));
        return rows;
    }
    let reason = if server.is_none() && client.is_none() { NOT_LOOKED } else { NOT_TOLD };
    rows.extend(machine_rows("", machine, true, reason));
    rows.extend(software_rows(server));
    if shares {
        rows.push(line("Client", Cell::text("on the same machine")));
    } else {
        rows.extend(machine_rows("Client: ", client, false, NOT_LOOKED));
    }
    rows
}

fn machine_rows(
    prefix: &str,
    machine: Option<&Machine>,
    with_gpus: bool,
    unknown: &str,
) -> Vec<Vec<Cell>> {
    let reason = if machine.is_some() { NOT_FOUND } else { unknown };
    let text = |of: fn(&Machine) -> Option<String>| machine.and_then(of);
    let cell = |value: Option<String>| known(value.as_deref(), reason);
    let mut rows = Vec::new();
    let mut push = |name: &str, value: Cell| rows.push(line(&format!("{prefix}{name}"), value));
    if with_gpus {
        let found = machine.filter(|machine| !machine.gpus.is_empty());
        push(
            "GPU(s)",
            found.map_or_else(|| missing(reason), |found| Cell::text(gpus(&found.gpus))),
        );
    }
    push("OS", cell(text(|machine| machine.os.clone())));
    push("Kernel", cell(text(|machine| machine.kernel.clone())));
    push("CPU", cell(text(cpu)));
    push("System RAM", cell(text(|machine| machine.memory_bytes.map(memory))));
    if let Some(container) = text(|machine| machine.container.clone()) {
        push("Container", Cell::text(container));
    }
    if with_gpus {
        push("GPU driver", cell(text(|machine| machine.gpu_driver.clone())));
        push("GPU runtime", cell(text(|machine| machine.gpu_runtime.clone())));
        push("Interconnect", cell(text(|machine| machine.interconnect.clone())));
    }
    rows
}

fn software_rows(server: Option<&ServerFacts>) -> Vec<Vec<Cell>> {
    let Some(server) = server else { return Vec::new() };
    let software = match (&server.software, &server.version) {
        (Some(name), Some(version)) => Some(format!("{name} {version}")),
        (Some(one), None) | (None, Some(one)) => Some(one.clone()),
        (None, None) => None,
    };
    let mut rows = vec![line("Server", known(software.as_deref(), "the server does not say"))];
    let context = server.context_tokens.map(|tokens| counted(tokens, "token"));
    let gpus = server.gpus_used.map(|gpus| count(gpus.into()));
    for (name, value) in [
        ("GPUs used", gpus),
        ("Model revision", server.model_revision.clone()),
        ("Context length", context),
    ] {
        rows.extend(value.map(|value| line(name, Cell::text(value))));
    }
    rows.extend(server.deployment.as_ref().map(deployment_rows).into_iter().flatten());
    rows.extend(server.told.iter().map(|(name, value)| line(name, Cell::text(value.clone()))));
    rows
}

/// How we put the server up. Its command stands in the head of the page.
fn deployment_rows(deployment: &DeploymentFacts) -> Vec<Vec<Cell>> {
    let how = match deployment.kind.as_str() {
        "process" => "by us, as a process",
        "container" => "by us, as a container",
        _ => "by us, with commands of the user",
    };
    let ready = crate::fmt::seconds(deployment.ready_after.as_secs_f64());
    let mut rows =
        vec![line("Put up", Cell::text(how)), line("From start to first token", Cell::text(ready))];
    let restarts = u64::from(deployment.restarts);
    if 0 < restarts {
        rows.push(line("Servers put up before it", Cell::text(count(restarts))));
    }
    rows.extend(deployment.image.clone().map(|image| line("Image", Cell::text(image))));
    // Where programs are found is of interest to nobody who reads a page.
    let told = deployment.environment.iter().filter(|(name, _)| name != "PATH");
    let told: Vec<String> = told.map(|(name, value)| format!("{name}={}", short(value))).collect();
    if !told.is_empty() {
        rows.push(line("Environment of the server", Cell::text(told.join(" "))));
    }
    rows
}

/// Some images carry whole lists in a variable; the stored run has all of it.
fn short(value: &str) -> String {
    const CHARS_MAX: usize = 60;
    match value.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_server_of_ours_says_how_it_was_put_up() {
        let deployment = DeploymentFacts {
            kind: "container".to_owned(),
            command: Vec::new(),
            image: Some("vllm@sha256:1".to_owned()),
            environment: [("A", "1"), ("PATH", "/bin"), ("LONG", &"x".repeat(99))]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            ready_after: Duration::from_millis(41_250),
            restarts: 4,
        };
        let server = ServerFacts { deployment: Some(deployment), ..ServerFacts::default() };
        let rows: Vec<[String; 2]> = software_rows(Some(&server))
            .into_iter()
            .map(|row| [row[0].text.clone(), row[1].text.clone()])
            .collect();
        for wanted in [
            ["Put up", "by us, as a container"],
            ["From start to first token", "41.25 s"],
            ["Servers put up before it", "4"],
            ["Image", "vllm@sha256:1"],
            ["Environment of the server", &format!("A=1 LONG={}…", "x".repeat(60))],
        ] {
            assert!(rows.contains(&wanted.map(str::to_owned)), "{wanted:?} in {rows:?}");
        }
    }

    #[test]
    fn what_is_not_known_is_a_dash_with_its_reason() {
        let rows = machine_rows("", None, true, NOT_TOLD);
        assert_eq!(rows.len(), 8);
        assert!(rows.iter().all(|row| row[1].text == NOTHING && row[1].detail.is_some()));
    }
}
