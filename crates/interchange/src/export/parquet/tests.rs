//! What was written is read back: every row, nulls as nulls.

use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::{Field, Row};
use inferometer_analysis::tool_result::{ResultRequest, Tool};

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
