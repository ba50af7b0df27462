//! One layer over another. A key above wins; and where keys exclude each other, choosing one above
//! drops its rivals below, with all that belongs to them alone.

use serde_json::{Map, Value};

/// A key that decides between kinds, and the keys that go with it.
type Choice = (&'static str, &'static [&'static str]);

const LOOP: &[Choice] = &[
    ("load.concurrency", &["load.think_time", "load.think"]),
    ("load.rate", &["load.max_concurrency", "load.arrivals", "load.burstiness"]),
    ("load.ramp", &["load.ramp_curve", "load.max_concurrency", "load.arrivals", "load.burstiness"]),
    ("load.speed", &["load.ticks", "load.max_concurrency"]),
    ("load.ticks", &["load.speed", "load.max_concurrency"]),
];

const LEVELS: &[Choice] = &[
    ("sweep.rates", &[]),
    ("sweep.concurrencies", &["sweep.waves"]),
    ("sweep.waves", &["sweep.concurrencies"]),
];

const PUT_UP: &[Choice] = &[
    ("deploy.command", &["deploy.folder"]),
    ("deploy.image", &["deploy.engine", "deploy.options", "deploy.arguments", "deploy.port"]),
    ("deploy.up", &["deploy.url", "deploy.logs", "deploy.down"]),
];

/// `--until` speaks of both ends, so it keeps both.
const END: &[Choice] = &[
    ("load.requests", &[]),
    ("load.duration", &[]),
    ("load.until", &["load.requests", "load.duration"]),
];

const OWN_PROMPTS: &[&str] = &[
    "workload.input_tokens",
    "workload.output_tokens",
    "workload.prefix_tokens",
    "workload.prefixes",
    "workload.prefix_zipf",
];

const SOURCE: &[Choice] = &[
    ("workload.source", OWN_PROMPTS),
    (
        "workload.dataset",
        &[
            "workload.dataset_kind",
            "workload.keep_order",
            "workload.input_tokens",
            "workload.output_tokens",
        ],
    ),
    ("workload.prompt", &["workload.output_tokens"]),
    ("workload.prompt_file", &["workload.output_tokens"]),
    ("workload.trace", &["workload.trace_kind", "workload.keep", "load.speed", "load.ticks"]),
    (
        "workload.turns",
        &[
            "workload.turn_think_time",
            "workload.turn_think",
            "workload.input_tokens",
            "workload.output_tokens",
            "workload.prefix_tokens",
            "workload.prefixes",
            "workload.prefix_zipf",
        ],
    ),
    ("workload.plan", &[]),
    ("workload.mix", &[]),
];

pub(super) fn lay(below: &mut Value, above: Value) -> Result<(), String> {
    drop_rivals(below, &above, LOOP);
    drop_rivals(below, &above, LEVELS);
    drop_rivals(below, &above, SOURCE);
    // Both ends anew say nothing of which of them counts: that stays as it was.
    if !["load.requests", "load.duration"].iter().all(|end| at(&above, end).is_some()) {
        drop_rivals(below, &above, END);
    }
    // A list of SLOs is one value: `--slo` replaces the SLOs of the file.
    if at(&above, "slo.promises").is_some() {
        remove(below, "slo");
    }
    lay_server(below, &above);
    // Parts of a mix may be named by their place before there are any.
    if at(&above, "workload.mix").is_some_and(Value::is_object)
        && at(below, "workload.mix").is_none()
    {
        below["workload"]["mix"] = Value::Array(Vec::new());
    }
    merge(below, above, "")
}

/// A URL, the embedded engine and a deployment exclude each other: naming one drops the others.
fn lay_server(below: &mut Value, above: &Value) {
    let is_put_up = PUT_UP.iter().any(|(key, _)| at(above, key).is_some());
    if is_put_up && at(above, "deploy.kind").is_none() {
        remove(below, "deploy.kind");
    }
    drop_rivals(below, above, PUT_UP);
    let is_named = [
        ("target.url", at(above, "target.url").is_some()),
        ("engine", at(above, "engine").is_some()),
        ("deploy", is_put_up),
    ];
    for (chosen, _) in is_named.iter().filter(|(_, is_named)| *is_named) {
        for (rival, _) in is_named.iter().filter(|(server, _)| server != chosen) {
            remove(below, rival);
        }
    }
}

fn drop_rivals(below: &mut Value, above: &Value, group: &[Choice]) {
    let chosen: Vec<&Choice> = group.iter().filter(|(key, _)| at(above, key).is_some()).collect();
    if chosen.is_empty() {
        return;
    }
    let stays =
        |key: &str| chosen.iter().any(|(choice, with)| *choice == key || with.contains(&key));
    for key in
        group.iter().flat_map(|(choice, with)| [*choice].into_iter().chain(with.iter().copied()))
    {
        if !stays(key) {
            remove(below, key);
        }
    }
}

pub(super) fn at<'tree>(tree: &'tree Value, path: &str) -> Option<&'tree Value> {
    let child = |key: &str| match tree.as_array() {
        Some(items) => items.get(key.parse::<usize>().ok()?),
        None => tree.get(key),
    };
    // A key may contain a dot: the SLO `ttft.p99`.
    child(path).or_else(|| {
        let (key, rest) = path.split_once('.')?;
        at(child(key)?, rest)
    })
}

fn remove(tree: &mut Value, path: &str) {
    let (table, key) = match path.split_once('.') {
        Some((table, key)) => (tree.get_mut(table), key),
        None => (Some(tree), path),
    };
    if let Some(table) = table.and_then(Value::as_object_mut) {
        table.remove(key);
    }
}

pub(super) fn merge(below: &mut Value, above: Value, path: &str) -> Result<(), String> {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (key, value) in above {
                let path = format!("{path}{key}");
                match below.get_mut(&key) {
                    Some(under) => merge(under, value, &format!("{path}."))?,
                    None => {
                        below.insert(key, value);
                    }
                }
            }
            Ok(())
        }
        (Value::Array(below), Value::Object(above)) => merge_by_place(below, above, path),
        (below, above) => {
            *below = above;
            Ok(())
        }
    }
}

/// `mix.0.weight`: parts of a list by their place, the one after the last included.
fn merge_by_place(
    below: &mut Vec<Value>,
    above: Map<String, Value>,
    path: &str,
) -> Result<(), String> {
    for (place, value) in above {
        let known = place.parse::<usize>().ok().filter(|place| *place <= below.len());
        let Some(place) = known else {
            let count = below.len();
            return Err(format!(
                "--set {path}{place}: there are {count} parts, counted from 0; write a number up \
                 to {count}"
            ));
        };
        if place == below.len() {
            below.push(Value::Object(Map::new()));
        }
        merge(&mut below[place], value, &format!("{path}{place}."))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn laid(mut below: Value, above: Value) -> Value {
        lay(&mut below, above).unwrap();
        below
    }

    #[test]
    fn a_key_above_wins_and_the_rest_stays() {
        let below = json!({ "load": { "rate": 5, "arrivals": "constant", "warm_up": 3 } });
        let above = json!({ "load": { "rate": 7 } });
        let wanted = json!({ "load": { "rate": 7, "arrivals": "constant", "warm_up": 3 } });
        assert_eq!(laid(below, above), wanted);
    }

    #[test]
    fn another_loop_drops_the_one_below_and_what_belongs_to_it() {
        let below = json!({ "load": { "concurrency": 8, "think_time": "1s", "requests": 9 } });
        let above = json!({ "load": { "rate": 5 } });
        assert_eq!(laid(below, above), json!({ "load": { "rate": 5, "requests": 9 } }));
        let below =
            json!({ "load": { "ramp": "1..2:3s", "ramp_curve": "linear", "burstiness": 2 } });
        let above = json!({ "load": { "rate": 5 } });
        assert_eq!(laid(below, above), json!({ "load": { "rate": 5, "burstiness": 2 } }));
    }

    #[test]
    fn another_end_replaces_the_end_below() {
        let below = || json!({ "load": { "duration": "1m", "until": "first", "requests": 9 } });
        let above = json!({ "load": { "requests": 5 } });
        assert_eq!(laid(below(), above), json!({ "load": { "requests": 5 } }));
        let above = json!({ "load": { "until": "both" } });
        let wanted = json!({ "load": { "duration": "1m", "until": "both", "requests": 9 } });
        assert_eq!(laid(below(), above), wanted);
    }

    #[test]
    fn both_ends_anew_leave_alone_which_of_them_counts() {
        let below = json!({ "load": { "duration": "1m", "until": "first", "requests": 9 } });
        let above = json!({ "load": { "duration": "2m", "requests": 5 } });
        let wanted = json!({ "load": { "duration": "2m", "until": "first", "requests": 5 } });
        assert_eq!(laid(below, above), wanted);
    }

    #[test]
    fn another_source_keeps_only_what_it_can_use() {
        let below = json!({
            "workload": { "trace": "t", "keep": 0.5, "output_tokens": 9, "input_tokens": 3 },
            "load": { "speed": 2 },
        });
        let above = json!({ "workload": { "prompt": "hi" } });
        let wanted = json!({ "workload": { "prompt": "hi", "output_tokens": 9 }, "load": {} });
        assert_eq!(laid(below, above), wanted);
        let below = json!({ "workload": { "mix": [{ "weight": 1 }], "seed": 4 } });
        let above = json!({ "workload": { "turns": 3 } });
        assert_eq!(laid(below, above), json!({ "workload": { "turns": 3, "seed": 4 } }));
    }

    #[test]
    fn a_url_and_the_embedded_engine_exclude_each_other() {
        let below = json!({ "engine": { "profile": "a" }, "load": { "rate": 5 } });
        let url = json!({ "target": { "url": "http://h" } });
        let wanted = json!({ "target": { "url": "http://h" }, "load": { "rate": 5 } });
        assert_eq!(laid(below, url), wanted);
        let below = json!({ "target": { "url": "http://h", "api": "chat" } });
        let above = json!({ "engine": { "tp": 4 } });
        let wanted = json!({ "target": { "api": "chat" }, "engine": { "tp": 4 } });
        assert_eq!(laid(below, above), wanted);
    }

    #[test]
    fn another_way_to_put_a_server_up_drops_the_one_below() {
        let below = || json!({ "deploy": { "kind": "container", "image": "i", "port": 80, "renew": "never" } });
        let serve = json!({ "deploy": { "command": ["s"] } });
        let wanted = json!({ "deploy": { "command": ["s"], "renew": "never" } });
        assert_eq!(laid(below(), serve.clone()), wanted);
        let url = json!({ "target": { "url": "http://h" } });
        assert_eq!(laid(below(), url.clone()), url);
        assert_eq!(
            laid(url, serve.clone()),
            json!({ "target": {}, "deploy": { "command": ["s"] } })
        );
        assert_eq!(laid(json!({ "engine": { "tp": 2 } }), serve.clone()), serve);
        let later = json!({ "deploy": { "renew": "each-run" } });
        assert_eq!(laid(below(), later)["deploy"]["image"], "i");
    }

    #[test]
    fn parts_of_a_mix_are_reached_by_their_place() {
        let part = |place: &str| json!({ "workload": { "mix": { place: { "weight": 2 } } } });
        let below = || json!({ "workload": { "mix": [{ "name": "a", "weight": 1 }] } });
        let wanted = json!({ "workload": { "mix": [{ "name": "a", "weight": 2 }] } });
        assert_eq!(laid(below(), part("0")), wanted);
        assert_eq!(laid(below(), part("1"))["workload"]["mix"][1], json!({ "weight": 2 }));
        let wrong = lay(&mut below(), part("3")).unwrap_err();
        assert!(wrong.contains("workload.mix.3") && wrong.contains("1 parts"), "{wrong}");
    }
}
