//! Tests of the HTTP endpoints `/v1/files/{path}` and `/v1/{operation}`.

use serde_json::json;
use stead_engine::Version;

use super::TestHttpServer;

fn etag(text: &str) -> String {
    format!("\"{}\"", Version::hash_bytes(text.as_bytes()))
}

#[tokio::test]
async fn get_supports_ranges_and_etags() {
    let server = TestHttpServer::start().await;
    server.authenticator.workspaces[0].put_file("d/page.html", "<script>1</script>\n");
    let get = |headers: Vec<String>| {
        let server = &server;
        async move {
            let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
            server.request("one", "GET /v1/files/d/page.html", &headers, b"").await
        }
    };
    let response = get(vec![]).await;
    assert_eq!((response.status, response.body.as_slice()), (200, b"<script>1</script>\n".as_slice()));
    // HTP-029: no response is rendered by a browser.
    assert_eq!(response.header("content-type"), Some("application/octet-stream"));
    assert_eq!(response.header("content-disposition"), Some("attachment"));
    assert_eq!(response.header("etag"), Some(etag("<script>1</script>\n").as_str()));
    let known = get(vec![format!("If-None-Match: \"x\", {}", etag("<script>1</script>\n"))]).await;
    assert_eq!(known.status, 304);
    let parts = [
        ("bytes=0-7", 206, "<script>"),
        ("bytes=8-8", 206, "1"),
        ("bytes=18-", 206, "\n"),
        ("bytes=-10", 206, "</script>\n"),
        ("bytes=10-999", 206, "/script>\n"),
        ("bytes=0-0,2-3", 200, "<script>1</script>\n"),
        ("bytes=9-3", 200, "<script>1</script>\n"),
        ("lines=1-2", 200, "<script>1</script>\n"),
    ];
    for (range, status, text) in parts {
        let response = get(vec![format!("Range: {range}")]).await;
        assert_eq!((response.status, String::from_utf8_lossy(&response.body).as_ref()), (status, text), "{range}");
    }
    let beyond = get(vec!["Range: bytes=19-".to_owned()]).await;
    assert_eq!((beyond.status, beyond.header("content-range")), (416, Some("bytes */19")));
    let now = etag("<script>1</script>\n");
    for (begun, status, text) in [
        (now.clone(), 206, "<s"),
        (etag("other"), 200, "<script>1</script>\n"),
        (format!("W/{now}"), 200, "<script>1</script>\n"),
        ("Mon, 16 Nov 2026 15:40:51 GMT".to_owned(), 200, "<script>1</script>\n"),
    ] {
        let response = get(vec!["Range: bytes=0-1".to_owned(), format!("If-Range: {begun}")]).await;
        assert_eq!((response.status, String::from_utf8_lossy(&response.body).as_ref()), (status, text), "{begun}");
    }
    server.shut_down().await;
}

#[tokio::test]
async fn changes_require_matching_version() {
    let server = TestHttpServer::start().await;
    let put = |headers: Vec<String>, text: &'static str| {
        let server = &server;
        async move {
            let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
            server.request("one", "PUT /v1/files/d/a.bin", &headers, text.as_bytes()).await
        }
    };
    let response = put(vec!["If-None-Match: *".to_owned()], "\u{0}one").await;
    assert_eq!((response.status, response.header("etag")), (201, Some(etag("\u{0}one").as_str())));
    assert_eq!(put(vec!["If-None-Match: *".to_owned()], "two").await.status, 412);
    let bare = put(vec![], "two").await;
    assert_eq!((bare.status, &bare.json()["error"]["kind"]), (428, &json!("base_required")));
    assert_eq!(put(vec![format!("If-Match: {}", etag("none"))], "two").await.status, 412);
    assert_eq!(put(vec!["If-Match: *".to_owned()], "two").await.status, 400);
    assert_eq!(put(vec![format!("If-Match: W/{}", etag("one"))], "two").await.status, 400);
    let response = put(vec![format!("If-Match: {}", etag("\u{0}one"))], "two").await;
    assert_eq!((response.status, response.header("etag")), (200, Some(etag("two").as_str())));
    let key = || vec![format!("If-Match: {}", etag("two")), "Idempotency-Key: k1".to_owned()];
    let (first, again) = (put(key(), "three").await, put(key(), "three").await);
    assert_eq!((first.status, again.status), (200, 200));
    assert_eq!(first.json()["entry"], again.json()["entry"]);
    let stale = format!("If-Match: {}", etag("two"));
    assert_eq!(server.request("one", "DELETE /v1/files/d/a.bin", &[&stale], b"").await.status, 412);
    let removed = server.request("one", "DELETE /v1/files/d/a.bin", &[], b"").await;
    assert!(removed.status == 200 && removed.json()["trash"].is_string());
    assert_eq!(server.request("one", "GET /v1/files/d/a.bin", &[], b"").await.status, 404);
    server.shut_down().await;
}

#[tokio::test]
async fn url_paths_are_only_paths() {
    let server = TestHttpServer::start().await;
    server.authenticator.workspaces[0].put_file("a b.txt", "x");
    for (path, status) in [
        ("a%20b.txt", 200),
        ("../etc/passwd", 400),
        ("..%2f..%2fetc/passwd", 400),
        ("%2fetc/passwd", 400),
        ("a%00b", 400),
        ("missing", 404),
        ("%ff", 400),
    ] {
        let response = server.request("one", &format!("GET /v1/files/{path}"), &[], b"").await;
        assert_eq!(response.status, status, "{path}: {}", String::from_utf8_lossy(&response.body));
        if status >= 400 {
            assert!(response.json()["error"]["detail"].is_string(), "{path}");
        }
    }
    server.shut_down().await;
}

#[tokio::test]
async fn every_operation_has_a_route_and_every_error_a_status() {
    let server = TestHttpServer::start().await;
    server.authenticator.workspaces[0].put_file("a.txt", "one\n");
    for (operation, arguments, status) in [
        ("read", json!({ "path": "a.txt" }), 200),
        ("search", json!({ "query": "one" }), 200),
        ("read", json!({ "path": "none" }), 404),
        ("read", json!({ "path": "." }), 409),
        ("read", json!({ "no": 1 }), 400),
        ("edit", json!({ "path": "a.txt", "edits": [{ "old": "zwei", "new": "2" }] }), 422),
        ("nothing", json!({}), 404),
    ] {
        let response = server.call_operation("one", operation, &arguments).await;
        assert_eq!(response.status, status, "{operation} {arguments}: {}", String::from_utf8_lossy(&response.body));
    }
    let document = server.request("one", "GET /v1/openapi.json", &[], b"").await.json();
    let shipped: serde_json::Value =
        serde_json::from_str(include_str!("../../../../../docs/reference/openapi.json")).unwrap();
    assert_eq!(document, shipped);
    server.shut_down().await;
}
