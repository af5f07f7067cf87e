//! Tests of administration: which commands and protocols have the right to it, and when the approver's secret is asked.

use serde_json::{Value, json};

use crate::cli_fixture::CliFixture;

fn error_kind(answer: &Value) -> &str {
    let result = &answer["result"];
    let error = [&answer["error"]["data"]["error"], &result["structuredContent"]["error"], &answer["error"]["data"]];
    error.iter().find_map(|error| error["kind"].as_str()).unwrap_or_default()
}

/// A secret in a file, which the commands of the fixture name as `../secret`.
fn set_secret(fixture: &CliFixture) {
    std::fs::write(fixture.directory.path().join("secret"), "correct horse\n").unwrap();
    std::fs::write(fixture.directory.path().join("wrong"), "incorrect horse\n").unwrap();
    fixture.run_successfully(&["approvals", "setup", "--secret-file", "../secret"]);
}

#[test]
fn no_principal_on_stdio_gives_the_right_to_administer() {
    let fixture = CliFixture::new();
    for protocol in ["mcp", "rpc"] {
        for principal in ["user:tester", "agent:a"] {
            let mut session = fixture.connect(&[protocol, "--principal", principal]);
            if protocol == "mcp" {
                session.initialize(&json!({}));
            }
            for (operation, arguments) in [("trash.list", json!({})), ("trash.purge", json!({ "all": true }))] {
                let answer = match protocol {
                    "mcp" => session.call_tool(operation, &arguments),
                    _ => session.request(operation, &arguments),
                };
                assert_eq!(error_kind(&answer), "not_owner", "{protocol} {principal} {operation}: {answer}");
            }
            session.close();
        }
    }
}

#[test]
fn purge_asks_for_the_secret_where_one_is_set() {
    let fixture = CliFixture::new();
    std::fs::write(fixture.workspace().join("a"), "one\n").unwrap();
    fixture.run_successfully(&["remove", "a"]);
    set_secret(&fixture);
    let refused = fixture.run(&["trash", "purge", "--all"]);
    assert_eq!(refused.code, 2, "there is no terminal to ask: {}", refused.stderr);
    assert_eq!(fixture.run(&["trash", "purge", "--all", "--secret-file", "../wrong"]).code, 3);
    assert_eq!(fixture.run_successfully(&["trash", "list"]).text().lines().count(), 1);
    let purged = fixture.run_successfully(&["trash", "purge", "--all", "--secret-file", "../secret"]);
    assert_eq!(purged.text(), "permanently deleted 1 items\n");
}
