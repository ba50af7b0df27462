//! A requirement against results of other tools, of which only figures are known.

use super::judging::Doubt;
use super::{Requirement, RequirementOutcome};
use crate::estimate::Estimate;
use crate::judge::ERRORS_SHARE;
use crate::sheet::{Sheet, SheetLatency};
use crate::threshold::Evidence;

impl Requirement {
    /// Of results of one configuration and load. One decides by its value where it has no interval;
    /// several by the interval between them.
    pub fn judge_sheets(&self, sheets: &[Sheet]) -> RequirementOutcome {
        let quantity = self.quantity();
        let estimates: Result<Vec<Estimate>, String> =
            sheets.iter().map(|sheet| sheet.figure(&quantity)).collect();
        let runs = sheets.len() as u64;
        let doubt = sheets.iter().find_map(|sheet| self.doubt_of(sheet));
        let estimates = match estimates {
            Ok(estimates) => estimates,
            Err(missing) => {
                return self.outcome(None, None, Some(Doubt::Nothing(missing)), None, runs);
            }
        };
        let requests = sheets.iter().filter_map(|sheet| sheet.completed).sum();
        let found = match estimates.as_slice() {
            [only] => Some(Evidence { estimate: *only, certified: Vec::new(), requests, runs: 1 }),
            several => Evidence::across_estimates(&quantity, several, requests),
        };
        let ruling = found.as_ref().map(|found| match found.estimate {
            Estimate { interval: None, certified: true, value, .. } if runs == 1 => {
                self.threshold.judge_value(value)
            }
            _ => self.threshold.judge(found),
        });
        let n = match found.as_ref() {
            Some(found) if runs == 1 => Some(found.estimate.n),
            found => found.map(|_| runs),
        };
        self.outcome(found, ruling, doubt, n, runs)
    }

    /// A result that lost a part of its requests may break a limit, and keeps none: those that are
    /// gone were not the quick ones. What counts failures may be asked of it.
    fn doubt_of(&self, sheet: &Sheet) -> Option<Doubt> {
        let metric = self.quantity().metric();
        if let Some(latency) = sheet.latency_of(metric).filter(|latency| !latency.is_defined()) {
            return Some(Doubt::Nothing(undefined(sheet, latency)));
        }
        let completed = sheet.completed?;
        let planned = sheet.requests_planned.or_else(|| completed.checked_add(sheet.failed?))?;
        let lost = planned.saturating_sub(completed);
        let is_cut = ERRORS_SHARE * (planned as f64) < lost as f64;
        (is_cut && metric.name != "error_rate")
            .then(|| Doubt::Keeps(format!("only {completed} of {planned} requests completed")))
    }
}

fn undefined(sheet: &Sheet, latency: &SheetLatency) -> String {
    format!(
        "{} does not say what its {} counts, so it is held against no limit",
        sheet.source.tool.told(),
        latency.kind.told()
    )
}

#[cfg(test)]
mod tests {
    use inferometer_model::spec::Slo;

    use super::*;
    use crate::quantity::LatencyOrigin;
    use crate::requirement::RequirementVerdict;
    use crate::sheet::{CountsFrom, Grain, LatencyKind, SheetSource, Tool};

    fn result(completed: u64, p99: f64) -> Sheet {
        let source = SheetSource { tool: Tool::Vllm, ..SheetSource::default() };
        let mut sheet = Sheet {
            source,
            completed: Some(completed),
            output_throughput: Some(2_000.0),
            ..Sheet::default()
        };
        let ttft = sheet.latency_mut(LatencyKind::Ttft, CountsFrom::Send, Grain::Request);
        ttft.percentiles_ms.insert("99".to_owned(), p99);
        sheet
    }

    fn judge(limit: &str, sheets: &[Sheet]) -> RequirementOutcome {
        let slo: Slo = limit.parse().unwrap();
        Requirement::of(&slo, LatencyOrigin::Sent).unwrap().judge_sheets(sheets)
    }

    #[test]
    fn one_result_decides_by_its_value_and_says_so() {
        for (p99, verdict) in [(499.0, RequirementVerdict::Pass), (501.0, RequirementVerdict::Fail)]
        {
            let found = judge("ttft.p99<500ms", &[result(1_024, p99)]);
            assert_eq!((found.verdict, found.value), (verdict, Some(p99)));
            assert!(found.interval.is_none() && found.n == Some(1_024));
            assert!(found.reason.unwrap().contains("no interval"));
        }
        let found = judge("output_throughput>1000", &[result(1_024, 1.0)]);
        assert_eq!(found.verdict, RequirementVerdict::Pass);
    }

    #[test]
    fn too_few_requests_show_no_tail() {
        let found = judge("ttft.p99<500ms", &[result(300, 100.0)]);
        assert_eq!(found.verdict, RequirementVerdict::Undecided);
        assert!(found.reason.unwrap().contains("662"));
    }

    #[test]
    fn repeats_decide_by_the_interval_between_them() {
        let repeats = [400.0, 410.0, 390.0].map(|p99| result(1_000, p99));
        let found = judge("ttft.p99<500ms", &repeats);
        assert_eq!((found.verdict, found.runs), (RequirementVerdict::Pass, 3));
        assert!(found.interval.is_some());
        let wide = [400.0, 600.0].map(|p99| result(1_000, p99));
        assert_eq!(judge("ttft.p99<550ms", &wide).verdict, RequirementVerdict::Undecided);
    }

    #[test]
    fn a_cut_result_may_break_a_limit_and_keeps_none() {
        let mut cut = result(1_015, 400.0);
        cut.requests_planned = Some(2_000);
        let kept = judge("ttft.p99<500ms", &[cut.clone()]);
        assert_eq!(kept.verdict, RequirementVerdict::Undecided);
        assert!(kept.reason.unwrap().contains("1015 of 2000"));
        assert_eq!(judge("ttft.p99<300ms", &[cut]).verdict, RequirementVerdict::Fail);
    }

    #[test]
    fn what_is_not_there_is_undecided_with_the_reason() {
        let missing = judge("tpot.p99<50ms", &[result(1_000, 1.0)]);
        assert_eq!((missing.verdict, missing.value), (RequirementVerdict::Undecided, None));
        assert!(missing.reason.unwrap().contains("has no TPOT"));
        let mut open = result(1_000, 1.0);
        open.latencies[0].from = CountsFrom::Unknown;
        let open = judge("ttft.p99<500ms", &[open]);
        assert_eq!(open.verdict, RequirementVerdict::Undecided);
        assert!(open.reason.unwrap().contains("does not say what its TTFT counts"));
    }
}
