//! What was written is read back: every row, nulls as nulls.

use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::{Field, Row};
use inferometer_analysis::tool_result::{ResultRequest, Tool};
use inferometer_model::telemetry::Throttle;

use super::*;

fn written(results: &[ToolResult]) -> Result<[Vec<Row>; 2], ParquetError> {
    let [requests, tokens, telemetry] = [(); 3].map(|()| tempfile::NamedTempFile::new().unwrap());
    let open = |file: &tempfile::NamedTempFile| file.reopen().unwrap();
    let mut tables = Tables::new([open(&requests), open(&tokens), open(&telemetry)])?;
    for result in results {
        tables.add_result(result)?;
    }
    let rows = tables.finish()?;
    let read = |file: &tempfile::NamedTempFile| -> Vec<Row> {
        let reader = SerializedFileReader::new(open(file)).unwrap();
        reader.get_row_iter(None).unwrap().map(Result::unwrap).collect()
    };
    let found = [read(&requests), read(&tokens)];
    assert_eq!(rows[..2], [&found[0], &found[1]].map(|rows| rows.len() as u64));
    assert_eq!((rows[2], read(&telemetry).len()), (0, 0), "a table without rows is one");
    Ok(found)
}

fn cell(row: &Row, name: &str) -> Field {
    row.get_column_iter().find(|(found, _)| *found == name).unwrap().1.clone()
}

fn result(requests: Option<Vec<ResultRequest>>) -> ToolResult {
    let mut result = ToolResult { requests, ..ToolResult::default() };
    result.source.tool = Tool::Vllm;
    "record 1".clone_into(&mut result.source.name);
    result
}

#[test]
fn a_foreign_request_has_what_its_file_says_and_nulls_besides() {
    let answered = ResultRequest {
        start_s: Some(1.5),
        output_tokens: Some(3),
        ttft_s: Some(0.25),
        gaps_s: vec![0.5, 0.125],
        error: Some(String::new()),
        ..ResultRequest::default()
    };
    // vLLM writes a zero for the latency of a failure.
    let failed = ResultRequest {
        queued_s: Some(0.125),
        ttft_s: Some(0.0),
        error: Some("refused".to_owned()),
        ..ResultRequest::default()
    };
    let [requests, tokens] = written(&[result(Some(vec![answered, failed]))]).unwrap();
    assert_eq!(cell(&requests[0], "result"), Field::Str("record 1".to_owned()));
    assert_eq!(cell(&requests[0], "outcome"), Field::Str("ok".to_owned()));
    assert_eq!(cell(&requests[0], "sent_ns"), Field::Long(1_500_000_000));
    assert_eq!(cell(&requests[0], "ttft_ms"), Field::Double(250.0));
    assert_eq!(cell(&requests[0], "input_tokens"), Field::Null);
    assert_eq!(cell(&requests[0], "client_queue_ms"), Field::Null);
    assert_eq!(cell(&requests[1], "client_queue_ms"), Field::Double(125.0));
    assert_eq!(cell(&requests[1], "ttft_ms"), Field::Null);
    assert_eq!(cell(&requests[1], "error"), Field::Str("refused".to_owned()));
    let gaps: Vec<Field> = tokens.iter().map(|row| cell(row, "icl_ms")).collect();
    assert_eq!(gaps, [Field::Double(500.0), Field::Double(125.0)]);
    assert_eq!(cell(&tokens[1], "arrival"), Field::Long(2));
}

#[test]
fn rows_beyond_one_group_are_all_there() {
    let many = 70_000;
    let [requests, _] = written(&[result(Some(vec![ResultRequest::default(); many]))]).unwrap();
    assert_eq!(requests.len(), many);
    assert_eq!(cell(&requests[many - 1], "request"), Field::Long(69_999));
}

#[test]
fn a_result_without_requests_is_refused_by_name() {
    let refused = written(&[result(None)]).unwrap_err().to_string();
    assert!(refused.starts_with("record 1 has no single requests"), "{refused}");
}

/// Rows of telemetry, written and read back.
fn telemetry(rows: &[TelemetryRow<'_>]) -> Vec<Row> {
    let file = tempfile::NamedTempFile::new().unwrap();
    let empty = TelemetryRow::default();
    let mut table = Table::new(file.reopen().unwrap(), empty.cells()).unwrap();
    for row in rows {
        table.push(row.cells()).unwrap();
    }
    table.finish().unwrap();
    let reader = SerializedFileReader::new(file.reopen().unwrap()).unwrap();
    reader.get_row_iter(None).unwrap().map(Result::unwrap).collect()
}

#[test]
fn a_gpu_and_the_client_have_rows_of_their_own_and_nulls_besides() {
    let reading = DeviceReading {
        index: 3,
        power_w: Some(412.5),
        memory_used_bytes: Some(1 << 40),
        throttle: Some(Throttle { power: true, ..Throttle::default() }),
        processes: Some(vec![7, 8]),
        ..DeviceReading::default()
    };
    let client = ClientSample {
        at: Moment::ZERO,
        cpu_share: Some(0.5),
        steal_share: None,
        own_cpus: None,
        received_bytes: Some(9),
        sent_bytes: None,
        memory_available_bytes: None,
    };
    let row = |about| TelemetryRow { result: "r", about, ..TelemetryRow::default() };
    let took = Some(Duration::from_millis(2));
    let rows = telemetry(&[
        TelemetryRow { took, gpu: Some(("NVML", &reading)), ..row("gpu") },
        TelemetryRow { client: Some(&client), ..row("client") },
        TelemetryRow { missed: Some("timeout"), ..row("server") },
    ]);
    let about: Vec<Field> = rows.iter().map(|row| cell(row, "about")).collect();
    assert_eq!(about, ["gpu", "client", "server"].map(|text| Field::Str(text.to_owned())));
    assert_eq!(cell(&rows[0], "gpu"), Field::Long(3));
    assert_eq!(cell(&rows[0], "gpu_source"), Field::Str("NVML".to_owned()));
    assert_eq!(cell(&rows[0], "gpu_power_w"), Field::Double(412.5));
    assert_eq!(cell(&rows[0], "gpu_memory_used_bytes"), Field::Long(1 << 40));
    assert_eq!(cell(&rows[0], "gpu_throttled_power"), Field::Bool(true));
    assert_eq!(cell(&rows[0], "gpu_processes"), Field::Long(2));
    assert_eq!(cell(&rows[0], "took_ms"), Field::Double(2.0));
    for unknown in ["gpu_energy_total_j", "client_cpu_share", "running_requests", "missed"] {
        assert_eq!(cell(&rows[0], unknown), Field::Null, "{unknown}");
    }
    assert_eq!(cell(&rows[1], "client_cpu_share"), Field::Double(0.5));
    assert_eq!(cell(&rows[1], "gpu"), Field::Null);
    assert_eq!(cell(&rows[2], "missed"), Field::Str("timeout".to_owned()));
}
