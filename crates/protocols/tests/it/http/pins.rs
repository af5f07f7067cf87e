//! Compares the responses of every kind of HTTP endpoint with a golden file. The golden file contains the status, the
//! headers, and the keys of JSON bodies.

use std::{collections::BTreeSet, fmt::Write as _};

use serde_json::Value;
use testkit::pin;

use super::{TestHttpResponse, TestHttpServer};
use crate::pins::collect_keys;

/// The headers whose values differ between runs, so that the golden file contains only their names.
const VARIABLE_HEADERS: &[&str] = &["content-length", "date", "etag", "last-modified", "x-request-id"];

fn render_response(request: &str, response: &TestHttpResponse) -> String {
    let mut text = format!("{request}\n  {}\n", response.status);
    let mut headers: Vec<_> = response.headers.iter().collect();
    headers.sort();
    for (name, value) in headers {
        let value = if VARIABLE_HEADERS.contains(&name.as_str()) { "…" } else { value };
        writeln!(text, "  {name}: {value}").unwrap();
    }
    if let Ok(body) = serde_json::from_slice::<Value>(&response.body)
        && !body["openapi"].is_string()
    {
        let mut keys = BTreeSet::new();
        collect_keys(&body, "", &mut keys);
        keys.iter().for_each(|key| writeln!(text, "  body{key}").unwrap());
    }
    text
}

#[tokio::test]
async fn responses_have_the_headers_and_fields_of_0_1_0() {
    let server = TestHttpServer::start().await;
    server.authenticator.workspaces[0].put_file("a.txt", "one\n");
    let json_type = "Content-Type: application/json";
    let mut text = String::new();
    for (token, line, headers, body) in [
        ("", "GET /health", &[][..], ""),
        ("", "GET /v1/openapi.json", &[], ""),
        ("one", "GET /v1/openapi.json", &[], ""),
        ("one", "GET /metrics", &[], ""),
        ("one", "GET /nothing", &[], ""),
        ("one", "GET /mcp/nothing", &[], ""),
        ("one", "GET /v1/workspaces", &[], ""),
        ("one", "GET /v1/files/a.txt", &[], ""),
        ("one", "GET /v1/files/a.txt", &["Range: bytes=0-1"], ""),
        ("one", "GET /v1/files/a.txt", &["Range: bytes=9-"], ""),
        ("one", "GET /v1/files/nothing", &[], ""),
        ("one", "POST /v1/files/a.txt", &[], ""),
        ("one", "PUT /v1/files/new.txt", &["If-None-Match: *"], "new"),
        ("one", "PUT /v1/files/a.txt", &[], "two"),
        ("one", "DELETE /v1/files/new.txt", &[], ""),
        ("one", "POST /v1/list", &[json_type], "{}"),
        ("one", "POST /v1/list", &[], "{}"),
        ("one", "POST /v1/nothing", &[json_type], "{}"),
        ("one", "POST /rpc", &[json_type], r#"{"jsonrpc": "2.0", "id": 1, "method": "list", "params": {}}"#),
        ("one", "POST /mcp", &[json_type], "{}"),
    ] {
        let response = server.request(token, line, headers, body.as_bytes()).await;
        let request: Vec<&str> = [line].into_iter().chain(headers.iter().copied()).collect();
        let token = if token.is_empty() { " (no token)" } else { "" };
        text.push_str(&render_response(&format!("{}{token}", request.join("; ")), &response));
    }
    pin::check(env!("CARGO_MANIFEST_DIR"), "http.txt", &text);
    server.shut_down().await;
}
