//! Tests of `diff`: every notation of a version, and files that cannot be compared.

use serde_json::json;
use stead_engine::{ErrorKind, Version, limits};
use testkit::{ErrorDetailsJson, engine_fixture::EngineFixture, hint_text};

fn write_and_get_rev(fixture: &EngineFixture, content: &str, base: &str) -> String {
    let outcome = fixture.call_ok("write", json!({ "path": "a", "content": content, "base": base }));
    outcome["version"].as_str().unwrap().to_owned()
}

#[test]
fn versions_are_accepted_in_every_notation() {
    let fixture = EngineFixture::new();
    let first = write_and_get_rev(&fixture, "one\ntwo\n", "");
    let second = write_and_get_rev(&fixture, "one\n2\n", &first);
    let expected = |old: &str, new: &str| format!("--- a {old}\n+++ a {new}\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n");
    let short = format!("sha:{}", &first[..12]);
    for (from, label) in [("r1", "r1"), (first.as_str(), short.as_str()), (short.as_str(), short.as_str())] {
        let outcome = fixture.call("diff", json!({ "path": "a", "from": from })).unwrap();
        assert_eq!(outcome.json["diff"], expected(label, "now"), "{from}");
        assert_eq!((&outcome.json["added"], &outcome.json["removed"]), (&json!(1), &json!(1)));
        assert_eq!((&outcome.json["from"], &outcome.json["to"]), (&json!(first), &json!(second)));
        assert!(outcome.text.ends_with("[+1 -1 lines]"));
    }
    let both = fixture.call_ok("diff", json!({ "path": "a", "from": "r1", "to": "r2" }));
    assert_eq!(both["diff"], expected("r1", "r2"));
    let same = fixture.call("diff", json!({ "path": "a", "from": "r2" })).unwrap();
    assert_eq!((&same.json["diff"], same.text.as_str()), (&json!(""), "no differences"));
    let new = fixture.call_ok("diff", json!({ "path": "a", "from": "" }));
    assert_eq!((&new["added"], &new["from"]), (&json!(2), &json!("absent")));
}

#[test]
fn external_edit_is_diffed_against_our_version() {
    let fixture = EngineFixture::new();
    write_and_get_rev(&fixture, "one\n", "");
    fixture.workspace.put_file("a", "1\r\n");
    let outcome = fixture.call("diff", json!({ "path": "a", "from": "r1" })).unwrap();
    assert_eq!(outcome.json["diff"], "--- a r1\n+++ a now\n@@ -1 +1 @@\n-one\n+1\r\n");
    assert!(outcome.text.contains("+1\\u{d}\n"), "endings are visible in the twin");
}

#[test]
fn removed_file_diffs_as_absent() {
    let fixture = EngineFixture::new();
    write_and_get_rev(&fixture, "one\n", "");
    fixture.call_ok("remove", json!({ "path": "a" }));
    for arguments in [json!({ "path": "a", "from": "r1" }), json!({ "path": "a", "from": "r1", "to": "r2" })] {
        let outcome = fixture.call_ok("diff", arguments);
        assert_eq!((&outcome["removed"], &outcome["to"]), (&json!(1), &json!("absent")));
    }
}

#[test]
fn uncomparable_files_are_reported() {
    let fixture = EngineFixture::new();
    let first = write_and_get_rev(&fixture, "one\n", "");
    write_and_get_rev(&fixture, "two\n", &first);
    fixture.call_err("diff", json!({ "path": "a", "from": "r9" }), ErrorKind::BadRequest);
    fixture.call_err("diff", json!({ "path": "a", "from": "yesterday" }), ErrorKind::BadRequest);
    fixture.workspace.forget_version(&Version::hash_bytes(b"one\n"));
    let expired = fixture.call_err("diff", json!({ "path": "a", "from": "r1" }), ErrorKind::Expired);
    assert!(hint_text(&expired).contains("history"));
    fixture.workspace.put_file("a", [0, 1, 2]);
    let binary = fixture.call_err("diff", json!({ "path": "a", "from": "r2" }), ErrorKind::NotText);
    assert_eq!((&binary.details_json()["from_size"], &binary.details_json()["to_size"]), (&json!(4), &json!(3)));
    fixture.workspace.put_file("a", vec![b'x'; limits::DIFF_BYTES_MAX as usize + 1]);
    fixture.call_err("diff", json!({ "path": "a", "from": "r2" }), ErrorKind::TooLarge);
    fixture.workspace.put_directory("d");
    fixture.call_err("diff", json!({ "path": "d", "from": "r1" }), ErrorKind::IsDirectory);
}

#[test]
fn retained_bytes_of_other_paths_are_inaccessible() {
    let fixture = EngineFixture::new();
    fixture.call_ok("write", json!({ "path": "secret", "content": "password\n" }));
    write_and_get_rev(&fixture, "one\n", "");
    let guessed = Version::hash_bytes(b"password\n").to_string();
    fixture.call_err("diff", json!({ "path": "a", "from": guessed }), ErrorKind::Expired);
}

#[test]
fn long_diff_is_truncated_visibly() {
    let fixture = EngineFixture::new();
    let first = write_and_get_rev(&fixture, "", "");
    let long: String = (0..2 * limits::DIFF_LINES_MAX).map(|line| format!("{line}\n")).collect();
    write_and_get_rev(&fixture, &long, &first);
    let outcome = fixture.call("diff", json!({ "path": "a", "from": "r1" })).unwrap();
    assert_eq!((&outcome.json["truncated"], &outcome.json["added"]), (&json!(true), &json!(800)));
    assert!(outcome.text.contains("… truncated"));
    let version = fixture.call_ok("stat", json!({ "path": "a" }))["version"].as_str().unwrap().to_owned();
    write_and_get_rev(&fixture, &"x".repeat(3 * limits::OUTCOME_PAGE_CHARS), &version);
    let wide = fixture.call_ok("diff", json!({ "path": "a", "from": "r1" }));
    assert!(wide["diff"].as_str().unwrap().chars().count() <= limits::OUTCOME_PAGE_CHARS);
    assert_eq!(wide["truncated"], true);
}
