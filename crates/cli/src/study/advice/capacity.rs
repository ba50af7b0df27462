//! `inferometer capacity`: how many replicas of which hardware serve a load within SLOs, and the price.
//! The rate that one replica sustains is searched in virtual time, as `sweep --find` does.

use std::process::ExitCode;

use inferometer_analysis::set::FoundLimit;
use inferometer_model::spec::Written;
use inferometer_model::study::Dimension;
use inferometer_model::{Spec, fmt::whole};
use inferometer_report::document::{Block, Cell, Columns, plain};
use inferometer_report::fmt::{NOTHING, number};
use inferometer_runner::simulation::VirtualEngine;
use inferometer_study::play::Played;
use serde_json::{Value, json};

use super::{advice, compose, not_modelled};
use crate::arguments::{CapacityArguments, PageFormat};
use crate::failure::{Failure, Result};
use crate::output;
use crate::study::Begin;
use crate::study::sweep::{self, Find};

const DAY_S: f64 = 86_400.0;
/// What a user does unless the command says otherwise.
const REQUESTS_PER_DAY: f64 = 10.0;
const PEAK: f64 = 3.0;

/// `inferometer capacity`.
pub(crate) fn capacity(arguments: &CapacityArguments) -> Result<ExitCode> {
    let wanted = wanted(arguments)?;
    let mut experiment = arguments.experiment.clone();
    let goals = std::mem::take(&mut experiment.slos);
    if goals.is_empty() {
        return Err(Failure::usage("a capacity needs SLOs: without them any rate is served")
            .hint("set them with --slo, such as --slo 'ttft.p99<1s'"));
    }
    let table = &mut experiment.tables.sweep;
    table.find = Some(Written(Find { dimension: Dimension::Rate, goals }));
    table.targets.clone_from(&arguments.targets);
    let plan = sweep::plan(&experiment, true)?;
    let begin = Begin::new(true, &arguments.results);
    if arguments.results.dry_run {
        return begin.run(plan);
    }
    let options = begin.measure(plan, |_, played| options(played, wanted))?;
    if arguments.results.page.format() == PageFormat::Json {
        return output::json(&json!({
            "schema": "inferometer.capacity/1",
            "requests_per_second": wanted,
            "options": options.iter().map(Choice::json).collect::<Vec<Value>>(),
        }));
    }
    output::result(&page(&options, wanted))
}

/// Requests per second at the busiest time.
fn wanted(arguments: &CapacityArguments) -> Result<f64> {
    let rate = arguments.serve_rate.or_else(|| {
        let each = arguments.requests_per_day.unwrap_or(REQUESTS_PER_DAY) / DAY_S;
        Some(arguments.users? as f64 * each * arguments.peak.unwrap_or(PEAK))
    });
    match rate.unwrap_or_default() {
        rate if 0.0 < rate && rate.is_finite() => Ok(rate),
        rate => Err(Failure::usage(format!("{rate} requests per second is not a load"))),
    }
}

/// One kind of replica, and how many of it are needed.
struct Choice {
    name: String,
    /// Requests per second that one replica sustains; `None` where it misses the SLOs at any rate.
    rate: Option<f64>,
    /// The rates between which the limit lies, with the error of the model.
    between: Option<(f64, f64)>,
    replicas: Option<f64>,
    /// The fewest and the most that may be needed.
    range: Option<(f64, f64)>,
    gpus: f64,
    /// The price of an hour of all replicas.
    per_hour: Option<f64>,
    words: String,
    limits: Vec<&'static str>,
}

fn options(played: &Played, wanted: f64) -> Result<Vec<Choice>> {
    let limits = &played.summary.limits;
    let conditions = played.manifest.study.conditions.iter().zip(0_u32..);
    let mut found = Vec::new();
    for (condition, index) in conditions {
        let limit = limits.iter().find(|limit| limit.condition == index);
        found.push(choice(condition.name.clone(), &condition.spec, limit, wanted)?);
    }
    let key = |it: &Choice| (it.replicas.is_none(), it.per_hour.unwrap_or(f64::MAX), it.gpus);
    found.sort_by(|a, b| key(a).partial_cmp(&key(b)).unwrap_or(std::cmp::Ordering::Equal));
    Ok(found)
}

fn choice(name: String, spec: &Spec, limit: Option<&FoundLimit>, wanted: f64) -> Result<Choice> {
    let profile = compose(&spec.engine)?;
    let facts = VirtualEngine::new(&spec.engine)?.facts;
    let learned = facts.prediction.and_then(|it| it.half_width.output_throughput);
    let error = learned.or_else(|| facts.model_error?.output_throughput);
    let rate = limit.and_then(|limit| limit.level);
    let most = limit.and_then(|limit| limit.lowest_missed);
    let factor = 1.0 + error.unwrap_or_default();
    let between = rate.map(|rate| (rate / factor, most.unwrap_or(rate) * factor));
    let count = |rate: f64| (wanted / rate).ceil().max(1.0);
    let replicas = rate.map(count);
    let gpus = replicas.unwrap_or(1.0) * f64::from(profile.gpus());
    let price = spec.price.and_then(|price| price.per_server_hour(Some(profile.gpus())));
    Ok(Choice {
        name,
        rate,
        between,
        replicas,
        range: between.map(|(low, high)| (count(high), count(low))),
        gpus,
        per_hour: price.zip(replicas).map(|(price, replicas)| price * replicas),
        words: match (limit, error) {
            (Some(limit), Some(_)) => limit.words.clone(),
            (Some(limit), None) => format!("{}; the error of its model is not known", limit.words),
            (None, _) => "the search gave no answer".to_owned(),
        },
        limits: not_modelled(&profile),
    })
}

impl Choice {
    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "rate_per_replica": self.rate,
            "rate_between": self.between,
            "replicas": self.replicas,
            "replicas_between": self.range,
            "gpus": self.replicas.map(|_| self.gpus),
            "price_per_hour": self.per_hour,
            "finding": self.words,
            "not_modelled": self.limits,
        })
    }
}

fn page(options: &[Choice], wanted: f64) -> String {
    let pair = |range: Option<(f64, f64)>, show: fn(f64) -> String| match range {
        Some((low, high)) => Cell::text(format!("{} to {}", show(low), show(high))),
        None => Cell::text(NOTHING),
    };
    let columns = Columns::new("option", |it: &&Choice| Cell::text(it.name.clone()))
        .right("requests/s each", |it| Cell::text(number(it.rate)))
        .right("between", move |it| pair(it.between, number))
        .right("replicas", |it| Cell::text(it.replicas.map_or(NOTHING.to_owned(), whole)))
        .right("between", move |it| pair(it.range, whole))
        .right("GPUs", |it| Cell::text(it.replicas.map_or(NOTHING.to_owned(), |_| whole(it.gpus))))
        .right("price per hour", |it| Cell::text(number(it.per_hour)));
    let table = columns.table("", "", options);
    let words = options.iter().map(|it| plain(format!("{}: {}", it.name, it.words))).collect();
    let mut limits: Vec<&str> = options.iter().flat_map(|it| it.limits.iter().copied()).collect();
    limits.push(
        "the router: requests are taken to be spread evenly over replicas that do not differ",
    );
    limits.sort_unstable();
    limits.dedup();
    let title = format!("Replicas for {} requests per second", number(wanted));
    advice(title, vec![Block::Table(table), Block::List(words)], limits.into_iter())
}
