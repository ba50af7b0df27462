//! Memory: what this process needs for each stream in flight.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use inferometer_analysis::calibration::{MemorySample, StreamMemory};
use inferometer_load::SystemClock;
use inferometer_model::Clock;

use super::drive::{Ask, Load};
use super::scope::Scope;
use super::server::Server;
use super::{Client, truth};
use crate::failure::Failure;

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// To be measured first: what an earlier drive has freed is not given back to the system, and
/// would be used again without being seen.
pub fn measure(
    client: &Client,
    scope: &Scope,
    talk: impl Fn(&str),
) -> Result<StreamMemory, Failure> {
    let streams = streams(client, scope);
    talk(&format!("memory: {streams} streams in flight …"));
    let server = Server::paced(&[("--ttft", format!("{:?}", scope.memory_ttft))])?;
    // What every drive needs, however many streams it has, is there before the first look.
    client.drive(&server, ask(1))?;
    let clock = SystemClock::new();
    let before = resident_bytes().unwrap_or(0);
    let (stop, stopped) = channel::<()>();
    let looking = std::thread::spawn(move || {
        let mut looks = Vec::new();
        while stopped.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
            let look = |resident_bytes| MemorySample { at: clock.now(), resident_bytes };
            looks.extend(resident_bytes().map(look));
        }
        looks
    });
    let driven = client.drive_on(clock, &server, ask(streams));
    drop(stop);
    let looks = looking.join().map_err(|_| Failure::internal("the look at memory failed"))?;
    let truths = truth::answers(&server.truth()?, driven?.clock);
    Ok(StreamMemory::of(streams, before, &looks, &truths))
}

/// As many as asked for, or as many as there are descriptors for.
fn streams(client: &Client, scope: &Scope) -> u32 {
    u32::try_from(client.ceiling).unwrap_or(u32::MAX).clamp(1, scope.memory_streams)
}

pub fn note(client: &Client, scope: &Scope) -> Option<String> {
    let streams = streams(client, scope);
    (streams < scope.memory_streams).then(|| {
        format!(
            "file descriptors allow {streams} streams in flight instead of {} for the memory of a \
             stream; raise the limit with `ulimit -n`",
            scope.memory_streams
        )
    })
}

fn ask(streams: u32) -> Ask {
    let load = Load::Closed { slots: streams, requests: streams.into() };
    Ask { streaming: true, output_tokens: 1, load }
}

/// What this process occupies, where the system says so.
fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    let page_bytes = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok()??;
    Some(pages * u64::try_from(page_bytes).ok()?)
}
