//! What a client wrote of its run.

use serde_json::Value;

#[derive(Clone, Debug)]
pub(super) struct Figures(pub(super) Value);

impl Figures {
    /// A key of the file; `None` where it is missing or no number.
    pub(super) fn get(&self, key: &str) -> Option<f64> {
        self.0.get(key)?.as_f64()
    }
}

/// The mean over rounds; `None` where one has nothing.
pub(super) fn mean(rounds: &[Figures], key: &str) -> Option<f64> {
    let values: Option<Vec<f64>> = rounds.iter().map(|figures| figures.get(key)).collect();
    let values = values.filter(|values| !values.is_empty())?;
    Some(values.iter().sum::<f64>() / values.len() as f64)
}
