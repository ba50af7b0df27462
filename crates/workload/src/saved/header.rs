//! The first line of a saved plan: what it is, and the load that a run must know before all else.

use inferometer_model::Moment;
use inferometer_model::endpoint::Api;
use inferometer_model::observations::Materials;
use inferometer_model::plan::{Bounds, Fingerprints};
use inferometer_model::spec::{Extent, Load, LoadShape, SavedSpec, Workload};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::data_file::reason_of;

pub const SCHEMA: &str = "inferometer.plan/1";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    pub schema: String,
    pub api: Api,
    pub workload: Workload,
    pub load: Load,
    pub seed: u64,
    pub bounds: Bounds,
    pub fingerprints: Fingerprints,
    pub materials: Materials,
}

impl Header {
    /// What was asked when the plan was saved.
    pub fn spec(&self) -> SavedSpec {
        SavedSpec {
            api: self.api,
            workload: self.workload.clone(),
            load: self.load.clone(),
            seed: self.seed,
        }
    }

    pub(super) fn read(line: &[u8]) -> Result<Self, String> {
        let named: Value = serde_json::from_slice(line)
            .map_err(|error| format!("not the JSON of a saved plan ({})", reason_of(&error)))?;
        if named["schema"] != SCHEMA {
            return Err(format!("its schema is {}, and this reads `{SCHEMA}`", named["schema"]));
        }
        let header: Self = serde_json::from_value(named).map_err(|error| error.to_string())?;
        header.load.check().map_err(|error| error.to_string())?;
        header.check_bounds()?;
        Ok(header)
    }

    /// Bounds follow from the load; a file that says two things says nothing.
    fn check_bounds(&self) -> Result<(), String> {
        let slots = match &self.load.shape {
            LoadShape::Closed { concurrency, .. } => Some(*concurrency),
            LoadShape::Open { cap, .. } => *cap,
        };
        if self.bounds.slots != slots {
            let written = |slots: Option<_>| slots.map_or("null".to_owned(), |s| format!("{s}"));
            return Err(format!(
                "`bounds.slots` is {}, and `load.shape` makes it {}",
                written(self.bounds.slots),
                written(slots)
            ));
        }
        let Bounds { release_before, requests_min, .. } = self.bounds;
        let (ends_in_time, least) = match self.load.extent {
            Extent::Whole | Extent::Requests(_) => (release_before.is_none(), 0..=0),
            Extent::Duration(duration) | Extent::UntilFirst { duration, .. } => {
                (release_before == Some(Moment::ZERO + duration), 0..=0)
            }
            // A schedule may reach beyond the time, and whole conversations beyond the number.
            Extent::UntilBoth { requests, duration } => (
                release_before.is_some_and(|end| Moment::ZERO + duration <= end),
                requests.get()..=u64::MAX,
            ),
        };
        if !ends_in_time {
            return Err("`bounds.release_before` does not fit `load.extent`".to_owned());
        }
        if !least.contains(&requests_min) {
            return Err("`bounds.requests_min` does not fit `load.extent`".to_owned());
        }
        Ok(())
    }
}
