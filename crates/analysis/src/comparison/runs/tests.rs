//! Hardware that is known, noted or neither.

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
    let told = hardware(base, "B", other).into_iter();
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
    use inferometer_model::system::{Gpu, Machine, ServerFacts};
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
    assert_eq!((told.len(), told[0].0.as_str(), told[0].1), (1, "system.gpu_driver", Weight::Note));
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
