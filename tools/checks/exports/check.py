"""Real readers on our exports: DuckDB and pandas on Parquet, Prometheus and OpenTelemetry on metrics.

Called with the folder of the exports. What each reader finds must be what the summaries say.
"""

import json
import math
import sys
from pathlib import Path

import duckdb
import pandas
from google.protobuf import json_format
from importlib.metadata import version
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

folder = Path(sys.argv[1])
summaries = [json.loads(path.read_text()) for path in sorted(folder.glob("summary-*.json"))]
table = {name: str(folder / "tables" / f"{name}.parquet") for name in ("requests", "tokens", "telemetry")}
LATENCIES = ["ttft_ms", "ttft_schedule_ms", "tpot_ms", "e2e_ms", "e2e_schedule_ms", "send_lag_ms"]
checks = 0


def same(what, found, expected):
    global checks
    checks += 1
    if isinstance(expected, float):
        alike = found is not None and math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9)
    else:
        alike = found == expected
    if not alike:
        sys.exit(f"{what}: {found!r}, and the summary says {expected!r}")


def of_duckdb():
    def one(query, *values):
        return duckdb.execute(query, values).fetchone()

    requests, tokens = f"'{table['requests']}'", f"'{table['tokens']}'"
    same("DuckDB, results", one(f"select count(distinct result) from {requests}")[0], len(summaries))
    for summary in summaries:
        run, metrics = summary["run"]["id"], summary["metrics"]
        where = f"from {requests} where result = ?"
        same(f"DuckDB {run} rows", one(f"select count(*) {where}", run)[0], summary["scheduled"])
        ended = dict(duckdb.execute(f"select outcome, count(*) {where} group by 1", [run]).fetchall())
        same(f"DuckDB {run} outcomes", ended, {k: n for k, n in summary["outcomes"].items() if n})
        totals = one(
            f"select sum(output_tokens)::bigint, sum(input_tokens)::bigint {where} and outcome = 'ok'", run
        )
        known = summary["tokens"]
        same(f"DuckDB {run} tokens", totals, (known["output_total"], known["input_total"]))
        for column in LATENCIES:
            n, mean, most = one(f"select count({column}), avg({column}), max({column}) {where}", run)
            same(f"DuckDB {run} {column} n", n, metrics[column]["n"])
            same(f"DuckDB {run} {column} mean", mean, metrics[column]["mean"])
            same(f"DuckDB {run} {column} max", most, metrics[column]["max"])
            p99 = one(f"select quantile_cont({column}, 0.99) {where}", run)[0]
            same(f"DuckDB {run} {column} p99", p99, metrics[column]["p99"])
        gaps = one(
            f"select count(icl_ms), avg(icl_ms), sum(itl_ms * tokens) / sum(tokens) filter (itl_ms is not null)"
            f" from {tokens} where result = ?",
            run,
        )
        same(f"DuckDB {run} icl n", gaps[0], metrics["icl_ms"]["n"])
        same(f"DuckDB {run} icl mean", gaps[1], metrics["icl_ms"]["mean"])
        same(f"DuckDB {run} itl mean", gaps[2], metrics["itl_ms"]["mean"])
    orphans = one(f"select count(*) from {tokens} t anti join {requests} r using (result, request)")
    same("DuckDB, tokens without a request", orphans[0], 0)
    scrapes = one(f"select count(*), count(generation_total_tokens) from '{table['telemetry']}' where missed is null")
    if not scrapes[0] or not scrapes[1]:
        sys.exit(f"DuckDB: no telemetry: {scrapes}")


def of_pandas():
    requests = pandas.read_parquet(table["requests"])
    tokens = pandas.read_parquet(table["tokens"])
    same("pandas, sent_time", str(requests["sent_time"].dtype), "datetime64[ns, UTC]")
    for summary in summaries:
        run, metrics = summary["run"]["id"], summary["metrics"]
        rows = requests[requests["result"] == run]
        same(f"pandas {run} rows", len(rows), summary["scheduled"])
        for column in LATENCIES:
            same(f"pandas {run} {column} n", int(rows[column].count()), metrics[column]["n"])
            same(f"pandas {run} {column} mean", float(rows[column].mean()), metrics[column]["mean"])
            same(f"pandas {run} {column} p50", float(rows[column].quantile(0.5)), metrics[column]["p50"])
        gaps = tokens[tokens["result"] == run]["icl_ms"]
        same(f"pandas {run} icl", (int(gaps.count()), float(gaps.max())), (metrics["icl_ms"]["n"], metrics["icl_ms"]["max"]))


def of_prometheus():
    text = (folder / "metrics.txt").read_text()
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = sample.labels
            found[(sample.name, labels["result"], labels.get("statistic"), labels.get("bound"))] = sample.value
    for summary in summaries:
        run, metrics = summary["run"]["id"], summary["metrics"]
        for word in ("ttft", "tpot", "itl", "icl", "e2e_schedule"):
            value = found[(f"inferometer_{word}_seconds", run, "mean", None)]
            same(f"Prometheus {run} {word}", value, metrics[f"{word}_ms"]["mean"] / 1e3)
        low = found[("inferometer_ttft_interval_seconds", run, "mean", "low")]
        same(f"Prometheus {run} ttft low", low, metrics["ttft_ms"]["intervals"]["mean"]["low"] / 1e3)
        rate = found[("inferometer_request_throughput_requests_per_second", run, None, None)]
        same(f"Prometheus {run} throughput", rate, metrics["request_throughput"]["value"])


def of_opentelemetry():
    request = json_format.Parse((folder / "otlp.json").read_text(), ExportMetricsServiceRequest())
    same("OTLP, resources", len(request.resource_metrics), len(summaries))
    for resource in request.resource_metrics:
        named = {a.key: a.value.string_value for a in resource.resource.attributes}
        run = named["inferometer.result"]
        (summary,) = [summary for summary in summaries if summary["run"]["id"] == run]
        for metric in resource.scope_metrics[0].metrics:
            if metric.name != "inferometer.ttft":
                continue
            points = {p.attributes[0].value.string_value: p for p in metric.gauge.data_points}
            same(f"OTLP {run} ttft", points["p99"].as_double, summary["metrics"]["ttft_ms"]["p99"] / 1e3)
            same(f"OTLP {run} window", 0 < points["p99"].start_time_unix_nano < points["p99"].time_unix_nano, True)


for reader, check in (
    (f"DuckDB {duckdb.__version__}", of_duckdb),
    (f"pandas {pandas.__version__}", of_pandas),
    (f"prometheus_client {version('prometheus_client')}", of_prometheus),
    (f"opentelemetry-proto {version('opentelemetry-proto')}", of_opentelemetry),
):
    before = checks
    check()
    print(f"{reader}: {checks - before} values as in the summaries")
