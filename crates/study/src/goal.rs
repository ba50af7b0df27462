//! A goal of a search: a quantity of a run, and on which side of its limit it shall be.

use inferometer_analysis::{Estimate, Interval, Quantity, Statistic, Threshold, Unit, Zero};
use inferometer_model::spec::{Limit, Relation, Slo};

use crate::error::CampaignError;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Goal(Threshold);

impl Goal {
    pub(crate) fn of(slo: &Slo, zero: Zero) -> Result<Self, CampaignError> {
        let name = match &slo.statistic {
            Some(statistic) => format!("{}.{statistic}", slo.metric),
            None => slo.metric.clone(),
        };
        let quantity = Quantity::named(&name, zero)
            .map_err(|problem| CampaignError::GoalQuantity { goal: slo.to_string(), problem })?;
        let (Limit::Milliseconds(limit) | Limit::Share(limit) | Limit::Plain(limit)) = slo.limit;
        Ok(Self(Threshold { quantity, relation: slo.relation, limit }))
    }

    pub(crate) const fn quantity(&self) -> Quantity {
        self.0.quantity
    }

    pub(crate) fn is_met_by(&self, value: f64) -> bool {
        self.0.is_kept_by(value)
    }

    /// `None` when the limit lies inside.
    pub(crate) fn decided_by(&self, interval: Interval) -> Option<bool> {
        let (low, high) = (self.is_met_by(interval.low), self.is_met_by(interval.high));
        (low == high).then_some(low)
    }

    /// Whether a run has so few values that this percentile of them is hardly more than the largest:
    /// such a percentile lies below the true one far more often than above it.
    pub(crate) fn is_too_few(&self, run: &Estimate) -> bool {
        run.n < self.0.quantity.statistic().map_or(1, Statistic::certified_from)
    }

    /// Whether a value that lies too low can only err on the good side.
    pub(crate) const fn is_from_above(&self) -> bool {
        matches!(self.0.relation, Relation::Below)
    }

    /// A share counts requests, so runs weigh as many as they have.
    pub(crate) fn is_share(&self) -> bool {
        self.0.quantity.metric().unit == Unit::Share
    }
}
