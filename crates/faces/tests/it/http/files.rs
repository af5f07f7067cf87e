//! Files and operations by their addresses.

use engine::Version;
use serde_json::json;

use super::House;

fn tag(text: &str) -> String {
    format!("\"{}\"", Version::of(text.as_bytes()))
}

#[tokio::test]
async fn a_file_is_read_whole_in_part_or_not_again() {
    let house = House::open().await;
    house.doors.workspaces[0].put_file("d/page.html", "<script>1</script>\n");
    let get = |headers: Vec<String>| {
        let house = &house;
        async move {
            let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
            house.ask("one", "GET /v1/files/d/page.html", &headers, b"").await
        }
    };
    let said = get(vec![]).await;
    assert_eq!((said.status, said.body.as_slice()), (200, b"<script>1</script>\n".as_slice()));
    // HTP-029: nothing that a browser would show from this origin.
    assert_eq!(said.header("content-type"), Some("application/octet-stream"));
    assert_eq!(said.header("content-disposition"), Some("attachment"));
    assert_eq!(said.header("etag"), Some(tag("<script>1</script>\n").as_str()));
    let known = get(vec![format!("If-None-Match: \"x\", {}", tag("<script>1</script>\n"))]).await;
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
        let said = get(vec![format!("Range: {range}")]).await;
        assert_eq!((said.status, String::from_utf8_lossy(&said.body).as_ref()), (status, text), "{range}");
    }
    let beyond = get(vec!["Range: bytes=19-".to_owned()]).await;
    assert_eq!((beyond.status, beyond.header("content-range")), (416, Some("bytes */19")));
    let now = tag("<script>1</script>\n");
    for (begun, status, text) in [
        (now.clone(), 206, "<s"),
        (tag("other"), 200, "<script>1</script>\n"),
        (format!("W/{now}"), 200, "<script>1</script>\n"),
        ("Mon, 16 Nov 2026 15:40:51 GMT".to_owned(), 200, "<script>1</script>\n"),
    ] {
        let said = get(vec!["Range: bytes=0-1".to_owned(), format!("If-Range: {begun}")]).await;
        assert_eq!((said.status, String::from_utf8_lossy(&said.body).as_ref()), (status, text), "{begun}");
    }
    house.close().await;
}

#[tokio::test]
async fn a_file_is_changed_only_by_who_knows_its_version() {
    let house = House::open().await;
    let put = |headers: Vec<String>, text: &'static str| {
        let house = &house;
        async move {
            let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
            house.ask("one", "PUT /v1/files/d/a.bin", &headers, text.as_bytes()).await
        }
    };
    let said = put(vec!["If-None-Match: *".to_owned()], "\u{0}one").await;
    assert_eq!((said.status, said.header("etag")), (201, Some(tag("\u{0}one").as_str())));
    assert_eq!(put(vec!["If-None-Match: *".to_owned()], "two").await.status, 412);
    let bare = put(vec![], "two").await;
    assert_eq!((bare.status, &bare.json()["error"]["kind"]), (428, &json!("base_required")));
    assert_eq!(put(vec![format!("If-Match: {}", tag("none"))], "two").await.status, 412);
    assert_eq!(put(vec!["If-Match: *".to_owned()], "two").await.status, 400);
    assert_eq!(put(vec![format!("If-Match: W/{}", tag("one"))], "two").await.status, 400);
    let said = put(vec![format!("If-Match: {}", tag("\u{0}one"))], "two").await;
    assert_eq!((said.status, said.header("etag")), (200, Some(tag("two").as_str())));
    // The same request again, with its key, is answered and not made again.
    let key = || vec![format!("If-Match: {}", tag("two")), "Idempotency-Key: k1".to_owned()];
    let (first, again) = (put(key(), "three").await, put(key(), "three").await);
    assert_eq!((first.status, again.status), (200, 200));
    assert_eq!(first.json()["entry"], again.json()["entry"]);
    let stale = format!("If-Match: {}", tag("two"));
    assert_eq!(house.ask("one", "DELETE /v1/files/d/a.bin", &[&stale], b"").await.status, 412);
    let removed = house.ask("one", "DELETE /v1/files/d/a.bin", &[], b"").await;
    assert!(removed.status == 200 && removed.json()["trash"].is_string());
    assert_eq!(house.ask("one", "GET /v1/files/d/a.bin", &[], b"").await.status, 404);
    house.close().await;
}

#[tokio::test]
async fn paths_in_addresses_are_paths_and_nothing_else() {
    let house = House::open().await;
    house.doors.workspaces[0].put_file("a b.txt", "x");
    for (path, status) in [
        ("a%20b.txt", 200),
        ("../etc/passwd", 400),
        ("..%2f..%2fetc/passwd", 400),
        ("%2fetc/passwd", 400),
        ("a%00b", 400),
        ("missing", 404),
        ("%ff", 400),
    ] {
        let said = house.ask("one", &format!("GET /v1/files/{path}"), &[], b"").await;
        assert_eq!(said.status, status, "{path}: {}", String::from_utf8_lossy(&said.body));
        if status >= 400 {
            assert!(said.json()["error"]["detail"].is_string(), "{path}");
        }
    }
    house.close().await;
}

#[tokio::test]
async fn every_operation_has_an_address_and_every_failure_its_status() {
    let house = House::open().await;
    house.doors.workspaces[0].put_file("a.txt", "one\n");
    for (operation, arguments, status) in [
        ("read", json!({ "path": "a.txt" }), 200),
        ("search", json!({ "query": "one" }), 200),
        ("read", json!({ "path": "none" }), 404),
        ("read", json!({ "path": "." }), 409),
        ("read", json!({ "no": 1 }), 400),
        ("edit", json!({ "path": "a.txt", "edits": [{ "old": "zwei", "new": "2" }] }), 422),
        ("nothing", json!({}), 404),
    ] {
        let said = house.call("one", operation, &arguments).await;
        assert_eq!(said.status, status, "{operation} {arguments}: {}", String::from_utf8_lossy(&said.body));
    }
    let document = house.ask("one", "GET /v1/openapi.json", &[], b"").await.json();
    let shipped: serde_json::Value =
        serde_json::from_str(include_str!("../../../../../docs/reference/openapi.json")).unwrap();
    assert_eq!(document, shipped);
    house.close().await;
}
