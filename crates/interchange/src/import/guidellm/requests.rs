//! What `guidellm` says of each request.

use inferometer_analysis::sheet::{Sheet, SheetRequest};

use crate::import::mapping::{self, Mapping};
use crate::import::tree::Node;
use crate::import::value::shown;

/// Nothing where the file keeps only some of the requests.
pub(super) fn read(found: &mut Mapping<'_>, sheet: &Sheet) -> Option<Vec<SheetRequest>> {
    let listed = found.find("requests")?;
    let mut requests = Vec::new();
    for status in ["successful", "errored", "incomplete"] {
        let all = listed.get(status).map_or(&[][..], Node::items);
        requests.extend(all.iter().map(|node| request(node, status)));
    }
    let good = listed.get("successful").map_or(0, |all| all.items().len()) as u64;
    if requests.is_empty() {
        return None;
    }
    if sheet.completed != Some(good) {
        found.note("requests", "is a sample of the requests, not all of them");
        return None;
    }
    Some(requests)
}

fn request(node: &Node, status: &str) -> SheetRequest {
    let figure = |keys: &[&str]| keys.iter().find_map(|key| mapping::figure(node.at(key)?).ok());
    let count = |key: &str| node.at(key).and_then(|value| mapping::count(value).ok());
    let error = node.at("info.error").or_else(|| node.at("error")).and_then(Node::text);
    SheetRequest {
        queued_s: None,
        start_s: figure(&["request_start_time", "start_time"]),
        input_tokens: count("prompt_tokens"),
        output_tokens: count("output_tokens"),
        ttft_s: figure(&["time_to_first_token_ms"]).map(|ms| ms / 1e3),
        e2e_s: figure(&["request_latency"]),
        gaps_s: Vec::new(),
        text: node.at("output").and_then(Node::text).map(str::to_owned),
        error: Some(match (status, error) {
            ("successful", _) => String::new(),
            (_, Some(error)) => shown(error),
            (status, None) => status.to_owned(),
        }),
    }
}
