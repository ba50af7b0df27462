//! Pacing: do the requests of an open loop leave when they should?

use inferometer_analysis::calibration::PacingRow;

use super::Client;
use super::drive::{Ask, Load};
use super::scope::{LADDER_TOKENS, Scope};
use super::server::Server;
use crate::failure::Failure;

pub fn measure(
    client: &Client,
    scope: &Scope,
    talk: impl Fn(&str),
) -> Result<Vec<PacingRow>, Failure> {
    let server = Server::echo()?;
    let rates = scope.pacing_rates_per_s.iter().copied();
    rates
        .map(|rate_per_s| {
            talk(&format!("pacing: {rate_per_s} requests/s …"));
            let load = Load::OpenFor { rate_per_s, time: scope.pacing_time };
            let ask = Ask { streaming: false, output_tokens: LADDER_TOKENS, load };
            let driven = client.drive(&server, ask)?;
            Ok(PacingRow::of(rate_per_s, &driven.records, driven.not_sent))
        })
        .collect()
}
