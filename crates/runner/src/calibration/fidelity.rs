//! Fidelity: what the client reports of paced streams, against what the engine did.

use std::time::Duration;

use inferometer_analysis::calibration::{EngineTruth, FidelityAsk, FidelityRow};

use super::drive::{Ask, Load};
use super::scope::{Scope, TTFT};
use super::server::Server;
use super::{Client, truth};
use crate::failure::Failure;

/// Requests of each slot. The first opens its connection while others do too; it is left out.
pub const WAVES: u32 = 2;

pub fn measure(
    client: &Client,
    scope: &Scope,
    talk: impl Fn(&str),
) -> Result<Vec<FidelityRow>, Failure> {
    let mut rows = Vec::new();
    for kernel_stamps in [true, false] {
        let mut client = client.clone();
        client.options.kernel_stamps = kernel_stamps;
        let fitting = |streams: &&u32| **streams as usize <= client.ceiling;
        for streams in scope.fidelity_streams.iter().copied().filter(|streams| fitting(&streams)) {
            let stamps = if kernel_stamps { "with" } else { "without" };
            talk(&format!("fidelity: {streams} streams, {stamps} kernel stamps …"));
            let tokens = scope.fidelity_tokens(streams);
            let gap = Scope::fidelity_gap(streams);
            let gap_ms = gap.as_secs_f64() * 1e3;
            let ask = FidelityAsk { streams, gap_ms, tokens, kernel_stamps };
            rows.push(measure_row(&client, ask, gap)?);
        }
    }
    Ok(rows)
}

/// A fresh engine for every row, so that its truth is of this row alone.
fn measure_row(client: &Client, asked: FidelityAsk, gap: Duration) -> Result<FidelityRow, Failure> {
    let server = Server::paced(&[("--ttft", format!("{TTFT:?}")), ("--gap", format!("{gap:?}"))])?;
    let requests = u64::from(asked.streams) * u64::from(WAVES);
    let load = Load::Closed { slots: asked.streams, requests };
    let ask = Ask { streaming: true, output_tokens: asked.tokens, load };
    let driven = client.drive(&server, ask)?;
    let truth = server.truth()?;
    let answers = truth::answers(&truth, driven.clock);
    let late_ms_p99 = truth.lateness.p99_ns.map(|ns| ns as f64 / 1e6);
    let truth = EngineTruth { answers: &answers, late_ms_p99 };
    Ok(FidelityRow::of(asked, &driven.records, truth))
}
