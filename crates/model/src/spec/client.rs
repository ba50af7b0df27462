//! The client's own side: its threads and its protocol. Nothing here changes what is asked.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use super::SpecError;
use super::bounds::at_most;
use crate::observations::HttpVersion;

#[derive(Clone, Debug, Default)]
pub struct ClientDraft {
    pub drivers: Option<u32>,
    /// Cores to pin the drivers to, in turn.
    pub cores: Vec<u32>,
    /// The cores that the system lets this process use; empty where it does not say.
    pub cores_allowed: Vec<u32>,
    pub http: Option<HttpVersion>,
    pub insecure: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientSpec {
    /// Threads that drive the load.
    pub drivers: NonZeroU32,
    /// The cores that they are pinned to, in turn; empty leaves them to the scheduler.
    pub cores: Vec<u32>,
    pub http: HttpVersion,
    /// The server's certificate is not checked: anybody may have answered.
    pub insecure: bool,
}

/// One driver carries tens of thousands of requests per second; more of them are for large
/// machines, and most of a machine belongs to whatever else runs on it, often the server.
const CORES_PER_DRIVER: usize = 4;
const DRIVERS_BY_DEFAULT_MAX: usize = 8;
const DRIVERS_MAX: u32 = 256;

impl ClientDraft {
    pub(super) fn resolve(self) -> Result<ClientSpec, SpecError> {
        for core in &self.cores {
            if !self.cores_allowed.is_empty() && !self.cores_allowed.contains(core) {
                return Err(SpecError::NoSuchCore(*core));
            }
        }
        let by_default =
            (self.cores_allowed.len() / CORES_PER_DRIVER).clamp(1, DRIVERS_BY_DEFAULT_MAX);
        let unless_said = if self.cores.is_empty() { by_default } else { self.cores.len() };
        let drivers = self.drivers.unwrap_or(u32::try_from(unless_said).unwrap_or(u32::MAX));
        at_most("--client-cores", drivers.into(), DRIVERS_MAX.into())?;
        if !self.cores.is_empty() && self.cores.len() < drivers as usize {
            return Err(SpecError::FewCores { drivers, cores: self.cores.len() });
        }
        Ok(ClientSpec {
            drivers: NonZeroU32::new(drivers).ok_or(SpecError::Zero("--client-cores"))?,
            cores: self.cores,
            http: self.http.unwrap_or_default(),
            insecure: self.insecure,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drivers(draft: ClientDraft) -> u32 {
        draft.resolve().unwrap().drivers.get()
    }

    #[test]
    fn a_large_machine_gets_more_drivers_and_keeps_most_of_itself() {
        let on = |cores| ClientDraft { cores_allowed: (0..cores).collect(), ..<_>::default() };
        assert_eq!([0, 1, 2, 7, 8, 16, 64].map(|cores| drivers(on(cores))), [1, 1, 1, 1, 2, 4, 8]);
    }

    #[test]
    fn what_is_typed_wins_and_pinned_cores_count() {
        let on_four = || ClientDraft { cores_allowed: vec![0, 1, 2, 3], ..<_>::default() };
        assert_eq!(drivers(ClientDraft { drivers: Some(3), ..on_four() }), 3);
        assert_eq!(drivers(ClientDraft { cores: vec![1, 3], ..on_four() }), 2);
        let elsewhere = ClientDraft { cores: vec![1, 9], ..on_four() };
        assert_eq!(elsewhere.resolve(), Err(SpecError::NoSuchCore(9)));
        let crowded = ClientDraft { drivers: Some(3), cores: vec![1, 3], ..on_four() };
        assert_eq!(crowded.resolve(), Err(SpecError::FewCores { drivers: 3, cores: 2 }));
        let none = ClientDraft { drivers: Some(0), ..on_four() };
        assert_eq!(none.resolve(), Err(SpecError::Zero("--client-cores")));
    }
}
