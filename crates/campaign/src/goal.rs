//! A goal of a search: a quantity of a run, and on which side of its limit it shall be.

use inferometer_analysis::{Estimate, Interval, Quantity, Statistic, Unit, Zero};
use inferometer_model::spec::{Limit, Relation, Slo};

use crate::error::CampaignError;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Goal {
    pub(crate) quantity: Quantity,
    relation: Relation,
    /// In the unit of the metric.
    limit: f64,
}

impl Goal {
    pub(crate) fn of(slo: &Slo, zero: Zero) -> Result<Self, CampaignError> {
        let name = match &slo.statistic {
            Some(statistic) => format!("{}.{statistic}", slo.metric),
            None => slo.metric.clone(),
        };
        let quantity = Quantity::named(&name, zero)
            .map_err(|problem| CampaignError::GoalQuantity { goal: slo.to_string(), problem })?;
        let (Limit::Milliseconds(limit) | Limit::Share(limit) | Limit::Plain(limit)) = slo.limit;
        Ok(Self { quantity, relation: slo.relation, limit })
    }

    pub(crate) fn is_met_by(&self, value: f64) -> bool {
        match self.relation {
            Relation::Below => value <= self.limit,
            Relation::Above => self.limit <= value,
        }
    }

    /// `None` when the limit lies inside.
    pub(crate) fn decided_by(&self, interval: Interval) -> Option<bool> {
        let (low, high) = (self.is_met_by(interval.low), self.is_met_by(interval.high));
        (low == high).then_some(low)
    }

    /// Whether a run has so few values that this percentile of them is hardly more than the largest:
    /// such a percentile lies below the true one far more often than above it.
    pub(crate) fn is_too_few(&self, run: &Estimate) -> bool {
        run.n < self.quantity.statistic().map_or(1, Statistic::certified_from)
    }

    /// Whether a value that lies too low can only err on the good side.
    pub(crate) const fn is_from_above(&self) -> bool {
        matches!(self.relation, Relation::Below)
    }

    /// A share counts requests, so runs weigh as many as they have.
    pub(crate) fn is_share(&self) -> bool {
        self.quantity.metric().unit == Unit::Share
    }
}
