//! The ladder: more and more requests in flight, against an engine that answers at once.

use inferometer_analysis::calibration::{Ladder, Level};

use super::Client;
use super::drive::{Ask, Load};
use super::scope::{LADDER_TOKENS, Scope};
use super::server::Server;
use crate::failure::Failure;

/// How often a level that never was steady is measured again, four times as long each time.
const LONGER_TRIES: u32 = 3;

pub fn measure(client: &Client, scope: &Scope, talk: impl Fn(&str)) -> Result<Ladder, Failure> {
    let server = Server::echo()?;
    let levels = |streaming: bool, name: &str| {
        let fitting = scope.levels.iter().filter(|slots| **slots as usize <= client.ceiling);
        fitting
            .map(|slots| {
                talk(&format!("ladder: {name}, {slots} in flight …"));
                measure_level(client, scope, &server, *slots, streaming)
            })
            .collect::<Result<Vec<Level>, Failure>>()
    };
    Ok(Ladder { one_shot: levels(false, "one-shot")?, streamed: levels(true, "streamed")? })
}

fn measure_level(
    client: &Client,
    scope: &Scope,
    server: &Server,
    slots: u32,
    streaming: bool,
) -> Result<Level, Failure> {
    let level = |load: Load| -> Result<Level, Failure> {
        let ask = Ask { streaming, output_tokens: LADDER_TOKENS, load };
        Ok(Level::of(slots, &client.drive(server, ask)?.records))
    };
    let by_time = level(Load::ClosedFor { slots, time: scope.level_time })?;
    if scope.level_requests_min <= by_time.steady_requests {
        return Ok(by_time);
    }
    // Too slow for its time. The first request of each slot is not counted, nor is its last; and
    // one slot that is slow to connect may see the others use up what was planned for all.
    let mut requests = scope.level_requests_min + 2 * u64::from(slots);
    let mut by_number = level(Load::Closed { slots, requests })?;
    for _ in 0..LONGER_TRIES {
        if scope.level_requests_min <= by_number.steady_requests {
            break;
        }
        requests *= 4;
        by_number = level(Load::Closed { slots, requests })?;
    }
    Ok(by_number)
}

/// Levels that this machine cannot hold are left out, and that is said.
pub fn note(client: &Client, scope: &Scope) -> Option<String> {
    let left_out: Vec<String> = scope
        .levels
        .iter()
        .chain(scope.fidelity_streams)
        .filter(|streams| client.ceiling < **streams as usize)
        .map(u32::to_string)
        .collect();
    (!left_out.is_empty()).then(|| {
        format!(
            "file descriptors allow {} requests in flight, so these levels were left out: {}; \
             raise the limit with `ulimit -n`",
            client.ceiling,
            left_out.join(", ")
        )
    })
}
