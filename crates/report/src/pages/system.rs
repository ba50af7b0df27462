//! The table of the server's and the client's machine.

use inferometer_model::deployment::DeploymentFacts;
use inferometer_model::system::{KnownBy, Machine, ServerFacts};

use super::frame::Server;
use super::prelude::*;
use crate::machine::{self, gpus};

const NOT_DESCRIBED: &str = "the server's machine is not known; describe it with --server-info";
const NOT_RECORDED: &str = "not recorded by the version that made this run";
const NOT_REPORTED: &str = "not reported by the machine";
const ENVIRONMENT_CHARS_MAX: usize = 60;

/// The hardware of the server, or of each where they differ.
pub(super) fn hardware(servers: &[Server<'_>]) -> String {
    let found: Vec<String> = servers.iter().map(|(_, run)| hardware_of(run)).collect();
    match distinct(found.clone()).as_slice() {
        [] => NOTHING.to_owned(),
        [same] => same.clone(),
        _ => servers.iter().zip(found).map(|((name, _), it)| format!("{name}: {it}")).join("; "),
    }
}

/// The software of the servers, and where they were; a dash for an engine of ours.
pub(super) fn software(servers: &[Server<'_>]) -> String {
    let found = servers.iter().filter(|(_, run)| !run.run.embedded && run.run.simulated.is_none());
    let found = found.map(|(_, run)| {
        let known = run.system.server.as_ref().and_then(software_of);
        let at = if known.is_none() { "" } else { " at " };
        format!("{}{at}{}", known.unwrap_or_default(), run.run.target)
    });
    distinct(found).iter().try_join("; ").unwrap_or_else(|| NOTHING.to_owned())
}

/// `vLLM 0.11.0`; `None` where the server names neither.
fn software_of(server: &ServerFacts) -> Option<String> {
    [&server.software, &server.version].into_iter().flatten().try_join(" ")
}

/// The GPUs of the server, or the hardware that an engine simulates; a dash where it is not known.
fn hardware_of(run: &Summary) -> String {
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

/// Each server has a column; one alone has no name there.
pub(super) fn system(servers: &[Server<'_>]) -> Section {
    let own = servers.iter().map(|(_, run)| {
        engine_row(run).into_iter().chain(machines(run)).collect::<Vec<Vec<Cell>>>()
    });
    let own: Vec<Vec<Vec<Cell>>> = own.collect();
    let components = distinct(own.iter().flatten().map(|row| row[0].clone()));
    let row = |component: Cell| {
        let values = own.iter().map(|rows| {
            let found = rows.iter().find(|row| row[0] == component).map(|row| row[1].clone());
            found.unwrap_or_else(|| missing("it does not apply to this server"))
        });
        let values: Vec<Cell> = values.collect();
        [component].into_iter().chain(values).collect()
    };
    let rows: Vec<Vec<Cell>> = components.into_iter().map(row).collect();
    let is_known = |row: &Vec<Cell>| row[1..].iter().any(|cell| cell.text != NOTHING);
    let (rows, unknown): (Vec<_>, Vec<_>) = rows.into_iter().partition(is_known);
    let names: Vec<String> = unknown.iter().map(|row| row[0].text.clone()).collect();
    let reasons = distinct(unknown.iter().filter_map(|row| row[1].detail.clone()));
    let unknown = (!names.is_empty()).then(|| {
        let reasons =
            if reasons.is_empty() { String::new() } else { format!(" ({})", list(&reasons)) };
        format!("Not known: {}{reasons}.", list(&names))
    });
    let has_dash = rows.iter().flatten().any(|cell| cell.text == NOTHING);
    let names = match servers {
        [_] => vec!["Value"],
        several => several.iter().map(|(name, _)| *name).collect(),
    };
    let columns = ["Component"].into_iter().chain(names).map(Column::left).collect();
    let table = Table::new("system-configuration", "Hardware and software", columns, rows);
    let table = table.noted(has_dash.then_some("– is not known; it is never guessed."));
    let table = table.noted(unknown.clone());
    let found = (!table.rows.is_empty()).then_some(Block::from(table));
    let found = found.or_else(|| unknown.map(Block::paragraph));
    section("system", "System Configuration", found)
}

fn row(component: &str, text: impl Into<String>) -> Vec<Cell> {
    vec![Cell::text(component), Cell::text(text)]
}

fn engine_row(run: &Summary) -> Option<Vec<Cell>> {
    let server = run.system.server.as_ref();
    let engine = match (&run.run.simulated, server.and_then(|server| server.pretended.clone())) {
        (Some(simulated), _) => format!("{} ({})", simulated.profile, simulated.engine),
        (None, Some(pretended)) => pretended,
        (None, None) if run.run.embedded => "the embedded engine".to_owned(),
        (None, None) => return None,
    };
    Some(row("Engine (simulated hardware)", engine))
}

/// The server's machine, and the client's where it is another.
fn machines(run: &Summary) -> Vec<Vec<Cell>> {
    let server = run.system.server.as_ref();
    let client = run.system.client.as_ref();
    let machine = server.and_then(|server| server.machine.as_ref());
    if run.run.embedded || run.run.simulated.is_some() {
        // The engine runs on the client's machine.
        return machine_rows("Client: ", client.or(machine), false, NOT_RECORDED);
    }
    let reason = if server.is_none() && client.is_none() { NOT_RECORDED } else { NOT_DESCRIBED };
    let mut rows = machine_rows("", machine, true, reason);
    rows.extend(server.map(software_rows).into_iter().flatten());
    if server.and_then(|server| server.known_by) == Some(KnownBy::Loopback) {
        rows.push(row("Client", "on the same machine"));
    } else {
        rows.extend(machine_rows("Client: ", client, false, NOT_RECORDED));
    }
    rows
}

fn machine_rows(
    prefix: &str,
    machine: Option<&Machine>,
    with_gpus: bool,
    unknown: &str,
) -> Vec<Vec<Cell>> {
    let reason = if machine.is_some() { NOT_REPORTED } else { unknown };
    let row = |(name, is_of_gpus, get): machine::Fact| {
        let value = machine.and_then(get);
        // Most machines are no containers.
        let is_shown = name != "Architecture" && (name != "Container" || value.is_some());
        let row = || vec![Cell::text(format!("{prefix}{name}")), known(value.as_deref(), reason)];
        (is_shown && (with_gpus || !is_of_gpus)).then(row)
    };
    machine::FACTS.into_iter().filter_map(row).collect()
}

fn software_rows(server: &ServerFacts) -> Vec<Vec<Cell>> {
    let software = known(software_of(server).as_deref(), "not reported by the server");
    let mut rows = vec![vec![Cell::text("Server"), software]];
    let facts = [
        ("GPUs used", server.gpus_used.map(|gpus| count(gpus.into()))),
        ("Model revision", server.model_revision.clone()),
        ("Context length", server.context_tokens.map(|tokens| counted(tokens, "token"))),
    ];
    rows.extend(facts.into_iter().filter_map(|(name, value)| Some(row(name, value?))));
    rows.extend(server.deployment.iter().flat_map(deployment_rows));
    rows.extend(server.other.iter().map(|(name, value)| row(name, value.clone())));
    rows
}

/// How we deployed the server. The head of the page has its command.
fn deployment_rows(deployment: &DeploymentFacts) -> Vec<Vec<Cell>> {
    let how = match deployment.kind.as_str() {
        "process" => "by us, as a process",
        "container" => "by us, as a container",
        _ => "by us, with commands of the user",
    };
    let ready = fmt::seconds(deployment.ready_after.as_secs_f64());
    let restarts = u64::from(deployment.restarts);
    // The search path is of no interest, and values of images may be whole lists.
    let shown = deployment.environment.iter().filter(|(name, _)| name != "PATH");
    let shown = shown.map(|(name, value)| {
        let cut = value.char_indices().nth(ENVIRONMENT_CHARS_MAX).map(|(end, _)| &value[..end]);
        format!("{name}={}{}", cut.unwrap_or(value), if cut.is_some() { "…" } else { "" })
    });
    let facts = [
        ("Deployed", Some(how.to_owned())),
        ("From start to first token", Some(ready)),
        ("Servers deployed before it", (0 < restarts).then(|| count(restarts))),
        ("Image", deployment.image.clone()),
        ("Environment of the server", shown.try_join(" ")),
    ];
    facts.into_iter().filter_map(|(name, value)| Some(row(name, value?))).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_server_of_ours_says_how_it_was_deployed() {
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
        let rows: Vec<[String; 2]> = software_rows(&server)
            .into_iter()
            .map(|row| [row[0].text.clone(), row[1].text.clone()])
            .collect();
        for wanted in [
            ["Deployed", "by us, as a container"],
            ["From start to first token", "41.25 s"],
            ["Servers deployed before it", "4"],
            ["Image", "vllm@sha256:1"],
            ["Environment of the server", &format!("A=1 LONG={}…", "x".repeat(60))],
        ] {
            assert!(rows.contains(&wanted.map(str::to_owned)), "{wanted:?} in {rows:?}");
        }
    }

    #[test]
    fn what_is_not_known_is_a_dash_with_its_reason() {
        let rows = machine_rows("", None, true, NOT_DESCRIBED);
        assert_eq!(rows.len(), 8);
        assert!(rows.iter().all(|row| row[1].text == NOTHING && row[1].detail.is_some()));
    }
}
