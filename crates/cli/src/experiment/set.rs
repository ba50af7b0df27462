//! `--set KEY=VALUE`: any value of the file, in the file's own words.

use serde_json::Value;
use toml::de::DeTable;

use super::check::Lists;
use super::file::plain_table;
use super::layer::Layer;
use super::origins::Origin;
use super::overlay::merge;
use crate::failure::Failure;

/// All of them as one layer over an experiment.
pub(super) fn read(sets: &[String]) -> Result<Layer, Failure> {
    together(sets, |one| one.checked(Lists::ByPlace))
}

/// The same over a file of another schema, such as that of a matrix.
pub(crate) fn read_by(sets: &[String], schema: &Value) -> Result<Layer, Failure> {
    together(sets, |one| one.check_by(schema, Lists::ByPlace).map(|()| one))
}

fn together(
    sets: &[String],
    check: impl Fn(Layer) -> Result<Layer, Failure>,
) -> Result<Layer, Failure> {
    let mut all = Layer::default();
    for typed in sets {
        let one = check(one(typed)?)?;
        merge(&mut all.tree, one.tree.clone(), "").map_err(Failure::usage)?;
        all.origins.lay(&all.tree, &one.tree, one.origins);
    }
    Ok(all)
}

fn one(typed: &str) -> Result<Layer, Failure> {
    let (path, value) = typed.split_once('=').unwrap_or((typed, ""));
    let (path, value) = (path.trim(), value.trim());
    // Only the key is repeated: a value may hold what should not be shown.
    let wanted = |why: &str| {
        Failure::usage(format!("--set {path}: {why}"))
            .hint("write it as TABLE.KEY=VALUE, such as --set load.rate=5")
    };
    if !typed.contains('=') {
        return Err(wanted("there is no `=`"));
    }
    // What is not a value of TOML is text without its quotes: most shells eat them.
    let quoted = Value::from(value).to_string();
    let (tree, keys) = parse(path, value)
        .or_else(|| parse(path, &quoted))
        .ok_or_else(|| wanted("this is not a key"))?;
    let origins = keys.into_iter().map(|key| (key, Origin::Set(path.to_owned())));
    Ok(Layer { tree, origins: origins.collect() })
}

fn parse(key: &str, value: &str) -> Option<(Value, Vec<String>)> {
    // A line break would begin another key.
    if value.is_empty() || key.contains('\n') {
        return None;
    }
    let text = format!("{key} = {value}");
    let table = DeTable::parse(&text).ok()?;
    if table.get_ref().len() != 1 {
        return None;
    }
    let mut keys = Vec::new();
    let tree = plain_table(table.get_ref(), "", &mut |key, _| keys.push(key));
    Some((tree, keys))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn assert_reads(typed: &str, wanted: &Value) {
        assert_eq!(&one(typed).unwrap().tree, wanted, "{typed}");
    }

    #[test]
    fn values_are_those_of_toml_or_bare_text() {
        assert_reads("load.rate=5", &json!({ "load": { "rate": 5 } }));
        assert_reads("load.duration = 30s", &json!({ "load": { "duration": "30s" } }));
        assert_reads("target.model=\"a b\"", &json!({ "target": { "model": "a b" } }));
        assert_reads("target.model=", &json!({ "target": { "model": "" } }));
        let lora = json!({ "workload": { "body": { "lora": ["a", "b"] } } });
        assert_reads("workload.body.lora=[\"a\", \"b\"]", &lora);
        let weight = json!({ "workload": { "mix": { "0": { "weight": 2 } } } });
        assert_reads("workload.mix.0.weight=2", &weight);
        assert_reads("slo.ttft.p99=500ms", &json!({ "slo": { "ttft": { "p99": "500ms" } } }));
        let url = json!({ "target": { "url": "http://h:1/?a=b" } });
        assert_reads("target.url=http://h:1/?a=b", &url);
    }

    #[test]
    fn what_has_no_key_is_refused() {
        for wrong in ["load.rate", "=5", "a b=5", "load..rate=5"] {
            assert!(one(wrong).is_err(), "{wrong}");
        }
    }
}
