//! What is known of the hardware and the software that answered: by the machine itself, by whoever
//! was asked with `--server-info`, or by a note with `--metadata`.

use inferometer_model::system::ServerFacts;

use super::Side;
use super::objection::{Objection, Weight, objection};
use crate::summary::Summary;

/// Keys under which people write down what a server runs on.
const KEYS: [&str; 8] =
    ["accelerator", "gpu", "gpus", "gpu_count", "hardware", "instance", "instance_type", "node"];

pub(super) fn hardware(first: &Summary, side: &Side, run: &Summary) -> Vec<Objection> {
    let mut found = stated_otherwise(first, side, run);
    found.extend(known_otherwise(first, side, run));
    let measures = |summary: &Summary| summary.run.simulated.is_none();
    if !measures(first) || !measures(run) {
        return found;
    }
    match (first.run.embedded, run.run.embedded) {
        (true, true) => {}
        (false, false) => found.extend(unknown(first, side, run)),
        (base, _) => {
            let [engine, server] =
                if base { ["the base", &side.name] } else { [&side.name, "the base"] };
            let text = format!(
                "{engine} is the embedded engine, which only pretends to have hardware, and \
                 {server} is a server"
            );
            let remedy = "nothing to do if how well the engine resembles it is the question";
            found.push(objection("embedded", Weight::Warning, side, text, remedy));
        }
    }
    found
}

/// Values that both sides give, and that differ.
fn stated_otherwise(first: &Summary, side: &Side, run: &Summary) -> Vec<Objection> {
    let both = first.run.metadata.iter().filter_map(|(key, base)| {
        let other = run.run.metadata.get(key)?;
        (base != other).then_some((key, base, other))
    });
    both.map(|(key, base, other)| {
        let is_hardware = is_about_hardware(key);
        let weight = if is_hardware { Weight::Warning } else { Weight::Note };
        let what = if is_hardware { "the hardware" } else { "what was noted" };
        let text =
            format!("{what} differs (`{key}`): {base} in the base, {other} in {}", side.name);
        let remedy = "nothing to do if that is the question; else the change may be its doing";
        objection(&format!("metadata.{key}"), weight, side, text, remedy)
    })
    .collect()
}

/// What both servers or their machines tell, and that differs.
fn known_otherwise(first: &Summary, side: &Side, run: &Summary) -> Vec<Objection> {
    let (Some(base), Some(other)) = (&first.system.server, &run.system.server) else {
        return Vec::new();
    };
    let found = FACTS.iter().filter_map(|(key, weight, what, of)| {
        let (base, other) = (of(base)?, of(other)?);
        if base == other {
            return None;
        }
        let text = format!("{what} differs: {base} in the base, {other} in {}", side.name);
        let remedy = "nothing to do if that is the question; else the change may be its doing";
        Some(objection(key, *weight, side, text, remedy))
    });
    found.collect()
}

type FactOf = fn(&ServerFacts) -> Option<String>;

const FACTS: [(&str, Weight, &str, FactOf); 6] = [
    ("system.gpus", Weight::Warning, "the hardware", gpus),
    ("system.gpus_used", Weight::Warning, "the number of GPUs in use", |server| {
        server.gpus_used.map(|gpus| gpus.to_string())
    }),
    ("system.gpu_driver", Weight::Note, "the GPU driver", |server| {
        server.machine.as_ref()?.gpu_driver.clone()
    }),
    ("system.gpu_runtime", Weight::Note, "the GPU runtime", |server| {
        server.machine.as_ref()?.gpu_runtime.clone()
    }),
    ("system.version", Weight::Note, "the server's version", |server| {
        Some(format!("{} {}", server.software.as_deref().unwrap_or("it"), server.version.as_ref()?))
    }),
    ("system.start_command", Weight::Note, "the start command", |server| {
        server.start_command.clone()
    }),
];

/// Names in the order of the machine; what an engine pretends is compared by its profile.
fn gpus(server: &ServerFacts) -> Option<String> {
    let gpus = &server.machine.as_ref()?.gpus;
    let names: Vec<&str> = gpus.iter().map(|gpu| gpu.name.as_str()).collect();
    match names.as_slice() {
        [] => None,
        [first, rest @ ..] if rest.iter().all(|name| name == first) => {
            Some(format!("{} × {first}", names.len()))
        }
        several => Some(several.join(", ")),
    }
}

fn unknown(first: &Summary, side: &Side, run: &Summary) -> Option<Objection> {
    let states = |summary: &Summary| {
        let told = summary.system.server.as_ref().and_then(gpus);
        told.is_some() || summary.run.metadata.keys().any(|key| is_about_hardware(key))
    };
    let silent = match (states(first), states(run)) {
        (true, true) => return None,
        (false, false) => format!("the base and {}", side.name),
        (true, false) => side.name.clone(),
        (false, true) => "the base".to_owned(),
    };
    let text = format!(
        "the hardware of {silent} is not known, and servers do not tell it: other hardware would \
         pass for a change of the software"
    );
    let remedy = "tell it with --server-info, or note it with every run: --metadata gpu=H100";
    Some(objection("hardware_unknown", Weight::Note, side, text, remedy))
}

fn is_about_hardware(key: &str) -> bool {
    KEYS.iter().any(|known| known.eq_ignore_ascii_case(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::calm;
    use crate::summary::summarize;

    fn server(metadata: &[(&str, &str)]) -> Summary {
        let mut summary = summarize(&calm());
        summary.run.embedded = false;
        summary.run.simulated = None;
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        summary.run.metadata = metadata.iter().map(owned).collect();
        summary
    }

    fn found(base: &Summary, other: &Summary) -> Vec<(String, Weight, String)> {
        let side = Side {
            name: "B".to_owned(),
            source: "run".to_owned(),
            runs: Vec::new(),
            rows: None,
            suite: None,
        };
        let told = hardware(base, &side, other).into_iter();
        told.map(|objection| (objection.key, objection.weight, objection.text)).collect()
    }

    #[test]
    fn hardware_that_nobody_states_is_said_to_be_unknown() {
        let (silent, stated) = (server(&[("site", "lab")]), server(&[("gpu", "H100")]));
        for (base, other, who) in [
            (&silent, &silent, "of the base and B is"),
            (&silent, &stated, "of the base is"),
            (&stated, &silent, "of B is"),
        ] {
            let told = found(base, other);
            let [(key, weight, text)] = told.as_slice() else { panic!("{told:?}") };
            assert_eq!((key.as_str(), *weight), ("hardware_unknown", Weight::Note));
            assert!(text.contains(who), "{text}");
        }
        assert_eq!(found(&stated, &stated), []);
    }

    #[test]
    fn other_hardware_is_a_warning_and_other_notes_are_notes() {
        let base = server(&[("GPU", "H100"), ("driver", "560"), ("site", "lab")]);
        let other = server(&[("GPU", "A100"), ("driver", "570"), ("site", "lab")]);
        let told = found(&base, &other);
        let keys: Vec<_> = told.iter().map(|(key, weight, _)| (key.as_str(), *weight)).collect();
        assert_eq!(keys, [("metadata.GPU", Weight::Warning), ("metadata.driver", Weight::Note)]);
        assert!(told[0].2.contains("H100 in the base, A100 in B"), "{}", told[0].2);
    }

    #[test]
    fn machines_that_differ_are_told_apart() {
        use inferometer_model::system::{Gpu, Machine};
        let with = |name: &str, count: usize, driver: &str| {
            let gpu = Gpu { name: name.to_owned(), ..Gpu::default() };
            let machine = Machine {
                gpus: vec![gpu; count],
                gpu_driver: Some(driver.to_owned()),
                ..Machine::default()
            };
            let mut summary = server(&[]);
            summary.system.server =
                Some(ServerFacts { machine: Some(machine), ..ServerFacts::default() });
            summary
        };
        let (four, eight) = (with("MI100", 4, "6.16"), with("MI100", 8, "6.16"));
        assert_eq!(found(&four, &four), []);
        let told = found(&four, &eight);
        let [(key, Weight::Warning, text)] = told.as_slice() else { panic!("{told:?}") };
        assert_eq!(key, "system.gpus");
        assert!(text.contains("4 × MI100 in the base, 8 × MI100 in B"), "{text}");
        let told = found(&four, &with("MI100", 4, "6.17"));
        assert_eq!(
            (told.len(), told[0].0.as_str(), told[0].1),
            (1, "system.gpu_driver", Weight::Note)
        );
    }

    #[test]
    fn an_engine_beside_a_server_is_a_warning_and_beside_another_none() {
        let (mut engine, server) = (server(&[]), server(&[]));
        engine.run.embedded = true;
        let told = found(&server, &engine);
        assert_eq!((told.len(), told[0].0.as_str(), told[0].1), (1, "embedded", Weight::Warning));
        assert!(told[0].2.starts_with("B is the embedded engine"), "{}", told[0].2);
        assert!(found(&engine, &server)[0].2.starts_with("the base is the embedded"));
        assert_eq!(found(&engine, &engine), []);
    }
}
