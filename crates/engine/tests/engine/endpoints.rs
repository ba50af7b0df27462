//! Endpoints, errors, limits, starting and stopping.

use std::net::TcpListener;

use inferometer_engine::{EngineError, EngineOptions, Limits, Mode, Pacing, Stop, serve};

use crate::client::{Client, Engine, request_text};

#[test]
fn health_is_empty_and_models_lists_the_one() {
    let engine = Engine::instant();
    let mut client = engine.client();
    let health = client.get("/health");
    assert_eq!((health.status, health.body.len()), (200, 0));
    let models = client.get("/v1/models").json();
    assert_eq!((&models["object"], models["data"].as_array().unwrap().len()), (&"list".into(), 1));
    let model = &models["data"][0];
    assert_eq!((&model["id"], &model["root"]), (&"paced".into(), &"paced".into()));
    assert_eq!((&model["object"], &model["max_model_len"]), (&"model".into(), &131_072.into()));
    assert!(model["created"].as_u64().unwrap() > 1_700_000_000);
}

#[test]
fn what_is_not_there_is_404_and_the_wrong_method_405() {
    let engine = Engine::instant();
    let mut client = engine.client();
    let unknown = client.get("/v2/models");
    assert_eq!(unknown.status, 404);
    let error = &unknown.json()["error"];
    assert_eq!((&error["type"], &error["code"]), (&"NotFoundError".into(), &404.into()));
    let wrong = client.get("/v1/chat/completions");
    assert_eq!(wrong.status, 405);
    assert!(wrong.head.contains("\r\nallow: POST\r\n"), "{}", wrong.head);
}

#[test]
fn a_body_that_cannot_be_carried_out_is_400_and_the_connection_goes_on() {
    let engine = Engine::instant();
    let mut client = engine.client();
    for (fields, message) in [
        (r#""max_tokens":0"#, "max_tokens must be at least 1"),
        (r#""paced":{"speed":1}"#, "unknown field `speed`"),
        (r#""paced":{"faults":["gremlins"]}"#, "unknown fault `gremlins`; known are byte-wise"),
        (r#""stream":"yes""#, "invalid type: string"),
        (r#""stream":}"#, "expected value"),
    ] {
        let response = client.chat(fields);
        assert_eq!(response.status, 400, "{fields}");
        let error = response.json();
        assert_eq!(error["error"]["type"], "BadRequestError");
        assert_eq!(error["error"]["code"], 400);
        let text = error["error"]["message"].as_str().unwrap();
        assert!(text.contains(message), "{fields}: {text}");
    }
    assert_eq!(client.request("POST", "/v1/completions", "{}").json()["error"]["param"], "prompt");
    assert_eq!(client.get("/health").status, 200);
}

#[test]
fn another_model_is_404_as_vllm_says_it() {
    let options =
        EngineOptions { model: Some("tiny".to_owned()), ..EngineOptions::new(Mode::Paced) };
    let engine = Engine::start(options);
    let response = engine.client().chat(r#""model":"huge""#);
    assert_eq!(response.status, 404);
    assert_eq!(
        response.text(),
        r#"{"error":{"message":"The model `huge` does not exist. Valid aliases: tiny.","type":"NotFoundError","param":"model","code":404}}"#
    );
}

#[test]
fn bytes_that_are_no_request_end_the_connection_with_a_reason() {
    let limits = Limits { body_bytes: 1000, head_bytes: 2000, ..Limits::default() };
    let engine = Engine::start(EngineOptions { limits, ..EngineOptions::new(Mode::Paced) });
    let long_head = format!("GET /health HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(2000));
    for (bytes, status) in [
        ("NOT HTTP AT ALL\r\n\r\n", 400),
        ("GET /health HTTP/1.0\r\n\r\n", 505),
        ("POST /v1/completions HTTP/1.1\r\ncontent-length: 1001\r\n\r\n", 413),
        ("POST /v1/completions HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 411),
        (&long_head, 431),
    ] {
        let mut client = engine.client();
        client.send(bytes.as_bytes());
        let response = client.response();
        assert_eq!(response.status, status, "{bytes:.60}");
        assert_eq!(response.json()["error"]["code"], status);
        assert!(response.head.contains("connection: close"));
        assert_eq!(client.rest(), b"");
    }
}

#[test]
fn a_refused_client_that_goes_on_sending_still_reads_the_reason() {
    let limits = Limits { body_bytes: 10, ..Limits::default() };
    let engine = Engine::start(EngineOptions { limits, ..EngineOptions::new(Mode::Paced) });
    let mut client = engine.client();
    let body = "x".repeat(3 << 20);
    client.send(request_text("POST", "/v1/completions", &body).as_bytes());
    assert_eq!(client.response().status, 413);
}

#[test]
fn one_connection_too_many_is_told_so_and_counted() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let engine = Engine::start(EngineOptions { limits, ..EngineOptions::new(Mode::Paced) });
    let (mut first, mut second) = (engine.client(), engine.client());
    assert_eq!((first.get("/health").status, second.get("/health").status), (200, 200));
    let mut third = Client::connect(engine.address);
    assert_eq!(third.response().status, 503);
    second.leave();
    // The place of the one that left is free, as soon as the engine has seen it leave.
    let truth = first.get("/truth").json();
    assert_eq!(truth["connections_refused"], 1);
}

#[test]
fn a_request_to_close_is_heeded() {
    let engine = Engine::instant();
    let mut client = engine.client();
    client.send(b"GET /health HTTP/1.1\r\nconnection: close\r\n\r\n");
    assert_eq!(client.response().status, 200);
    assert_eq!(client.rest(), b"");
}

#[test]
fn a_port_in_use_is_named_with_the_remedy() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let options = EngineOptions { address, ..EngineOptions::new(Mode::Paced) };
    let error = serve(options, Stop::new().unwrap(), |_| {}).unwrap_err();
    let port = address.port();
    assert_eq!(
        error.to_string(),
        format!(
            "cannot listen on {address}: port {port} is in use; choose another with --port or use \
             --port 0"
        )
    );
}

#[test]
fn options_that_cannot_be_carried_out_are_refused_before_anything_listens() {
    let pacing = Pacing { jitter: -1.0, ..Pacing::default() };
    let options = EngineOptions { pacing, ..EngineOptions::new(Mode::Paced) };
    let error = serve(options, Stop::new().unwrap(), |_| panic!("listens")).unwrap_err();
    assert!(matches!(error, EngineError::Options(_)), "{error}");
}

#[test]
fn a_stop_ends_the_engine_also_with_clients_connected() {
    let engine = Engine::instant();
    let mut client = engine.client();
    client.send(
        request_text(
            "POST",
            "/v1/completions",
            r#"{"prompt":"x","stream":true,"paced":{"ttft_ms":9000}}"#,
        )
        .as_bytes(),
    );
    engine.truth_when(|truth| truth.requests.len() == 1);
    assert!(engine.finish().is_ok());
    assert_eq!(client.rest(), b"");
}
