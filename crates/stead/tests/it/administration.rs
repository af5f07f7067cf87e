//! Tests of administration: which commands and protocols have the right to it, and when the approver's secret is asked.

use serde_json::{Value, json};
use stead_protocols::definition::DialectDefinition;
use testkit::http_client::TestHttpClient;

use crate::{cli_fixture::CliFixture, multi_workspace::WorkspaceRegistryTestServer, server_process::ServerProcess};

fn error_kind(answer: &Value) -> &str {
    let result = &answer["result"];
    let errors = [&answer["error"]["data"]["error"], &result["structuredContent"]["error"], &answer["error"]];
    errors.iter().find_map(|error| error["kind"].as_str()).unwrap_or_default()
}

/// The operations that administer, with the arguments of their examples.
fn administration_examples() -> Vec<(String, Value)> {
    let definition = DialectDefinition::native().unwrap();
    let generated: Value = serde_json::from_str(include_str!("../../../protocols/tests/generated/stead.json")).unwrap();
    let examples = generated["examples"].as_array().unwrap().iter();
    let named = examples.map(|example| (example["operation"].as_str().unwrap(), &example["arguments"]));
    let administers = |name: &str| definition.find_tool(name).unwrap().authority.is_some();
    named.filter(|(name, _)| administers(name)).map(|(name, arguments)| (name.to_owned(), arguments.clone())).collect()
}

/// Writes a right and a wrong secret beside the workspace.
fn write_secrets(directory: &std::path::Path) {
    std::fs::write(directory.join("secret"), "correct horse\n").unwrap();
    std::fs::write(directory.join("wrong"), "incorrect horse\n").unwrap();
}

#[test]
fn no_principal_on_stdio_gives_the_right_to_administer() {
    let fixture = CliFixture::new();
    let examples = administration_examples();
    assert!(examples.len() > 20);
    for protocol in ["mcp", "rpc"] {
        for principal in ["user:tester", "agent:a"] {
            let mut session = fixture.connect(&[protocol, "--principal", principal]);
            if protocol == "mcp" {
                session.initialize(&json!({}));
            }
            for (operation, arguments) in &examples {
                let answer = match protocol {
                    "mcp" => session.call_tool(operation, arguments),
                    _ => session.request(operation, arguments),
                };
                assert_eq!(error_kind(&answer), "not_owner", "{protocol} {principal} {operation}: {answer}");
            }
            session.close();
        }
    }
}

#[test]
fn agents_cannot_administer_on_the_command_line() {
    let fixture = CliFixture::new();
    for command in [&["trash", "list"][..], &["trash", "purge", "--all"], &["log", "verify"], &["token", "list"]] {
        assert_eq!(fixture.run(&[command, &["--principal", "agent:a"]].concat()).code, 3, "{command:?}");
    }
    let refused = fixture.run(&["token", "create", "--principal", "agent:a", "--administer"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    let refused = fixture.run(&["token", "create", "--principal", "user:a", "--export"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
}

#[test]
fn changes_ask_for_the_secret_where_one_is_set() {
    let fixture = CliFixture::new();
    std::fs::write(fixture.workspace().join("a"), "one\n").unwrap();
    std::fs::write(fixture.directory.path().join("policy"), "[system]\ndefault = \"notify\"\n").unwrap();
    fixture.run_successfully(&["remove", "a"]);
    write_secrets(fixture.directory.path());
    assert_eq!(fixture.run_successfully(&["approvals", "status"]).text(), "no approver's secret is set\n");
    fixture.run_successfully(&["approvals", "setup", "--secret-file", "../secret"]);
    assert_eq!(fixture.run_successfully(&["approvals", "status"]).text(), "an approver's secret is set\n");
    for command in [
        &["trash", "purge", "--all"][..],
        &["policy", "apply", "../policy"],
        &["log", "rotate-key"],
        &["token", "create", "--principal", "user:a", "--administer"],
        &["token", "rotate", "0000000000000000"],
    ] {
        assert_eq!(fixture.run(command).code, 2, "there is no terminal to ask: {command:?}");
        let wrong = fixture.run(&[command, &["--secret-file", "../wrong"]].concat());
        assert_eq!(wrong.code, 3, "{command:?}: {}", wrong.stderr);
        // A right secret resets the delay that wrong secrets cause.
        let right = fixture.run(&[command, &["--secret-file", "../secret"]].concat());
        let expected = i32::from(command[1] == "rotate");
        assert_eq!(right.code, expected, "{command:?}: {}", right.stderr);
    }
    for command in [&["trash", "list"][..], &["token", "list"], &["log"], &["log", "verify"], &["log", "checkpoint"]] {
        fixture.run_successfully(command);
    }
    assert_eq!(
        fixture.run(&["approvals", "setup", "--secret-file", "../secret", "--old-secret-file", "../wrong"]).code,
        3
    );
}

#[test]
fn journal_names_the_person_who_administers_and_no_secret() {
    let fixture = CliFixture::new();
    write_secrets(fixture.directory.path());
    fixture.run_successfully(&["approvals", "setup", "--secret-file", "../secret"]);
    let token = ["token", "create", "--principal", "agent:ci", "--secret-file", "../secret"];
    let secret = fixture.run_successfully(&token).text().trim().to_owned();
    let log = fixture.run_successfully(&["log", "--json", "--limit", "0"]).text();
    for word in [&secret, secret.rsplit('_').next().unwrap(), "correct horse"] {
        assert!(!log.contains(word), "{log}");
    }
    let entries: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for operation in ["approver.set", "token.create"] {
        let of_operation = |row: &&Value| row["entry"]["operation"] == operation;
        let found: Vec<&Value> = entries.iter().filter(of_operation).collect();
        assert_eq!(found.len(), 1, "{operation}: {log}");
        assert_eq!(found[0]["entry"]["caller"]["principal"], "user:tester");
    }
}

#[test]
fn policy_is_applied_at_the_expected_version() {
    let fixture = CliFixture::new();
    let file = fixture.directory.path().join("policy");
    std::fs::write(&file, "[system]\ndefault = \"notify\"\n").unwrap();
    let applied = fixture.run_successfully(&["policy", "apply", "../policy", "--json"]).json();
    assert_eq!(fixture.run_successfully(&["policy", "list", "--json"]).json()["version"], applied["version"]);
    assert_eq!(fixture.run(&["policy", "apply", "../policy", "--version", "0000000000000000"]).code, 4);
    std::fs::write(&file, "[").unwrap();
    assert_eq!(fixture.run(&["policy", "apply", "../policy"]).code, 3);
    assert_eq!(fixture.run_successfully(&["policy", "list", "--json"]).json()["version"], applied["version"]);
}

#[test]
fn administration_token_administers_on_every_protocol_and_opens_no_file() {
    let server = ServerProcess::start(&["--listen", "127.0.0.1:0"]);
    let create = |flags: &[&str]| server.run_cli(&[&["token", "create"], flags].concat()).trim().to_owned();
    let (admin, agent) = (create(&["--principal", "user:ann", "--administer"]), create(&["--principal", "agent:ci"]));
    let client = TestHttpClient::new(&server.address);
    let send = |token: &str, line: &str, body: &Value| {
        let (status, answer) = client.send_request(token, line, &[], body.to_string().as_bytes()).unwrap();
        (status, serde_json::from_slice::<Value>(&answer).unwrap_or_default())
    };
    let rpc = |method: &str, params: &Value| {
        send(&admin, "POST /rpc", &json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })).1
    };
    for operation in ["trash.list", "log.show", "log.verify", "token.list"] {
        assert_eq!(send(&admin, &format!("POST /v1/{operation}"), &json!({})).0, 200, "{operation}");
        assert!(rpc(operation, &json!({})).get("error").is_none(), "{operation}");
        assert_eq!(send(&agent, &format!("POST /v1/{operation}"), &json!({})).0, 403, "{operation}");
    }
    assert_eq!(send(&admin, "POST /v1/read", &json!({ "path": "a.txt" })).0, 403);
    assert_eq!(send(&admin, "GET /v1/files/a.txt", &Value::Null).0, 403);
    assert_eq!(send(&admin, "GET /events", &Value::Null).0, 403);
    assert_eq!(error_kind(&rpc("read", &json!({ "path": "a.txt" }))), "out_of_scope");
    // A new token is a secret, which HTTP returns and JSON-RPC does not; nobody sets the approver's secret from afar.
    let arguments = json!({ "principal": "agent:other" });
    assert!(send(&admin, "POST /v1/token.create", &arguments).1["token"].is_string());
    assert_eq!(error_kind(&rpc("token.create", &arguments)), "unknown_operation");
    for operation in ["approver.set", "approver.status"] {
        assert_eq!(send(&admin, &format!("POST /v1/{operation}"), &json!({})).0, 404, "{operation}");
    }
    let (status, journal) = client.send_request(&admin, "POST /v1/log.export", &[], b"{}").unwrap();
    assert!(status == 200 && journal.ends_with(b"}\n"), "{status}");
    assert_eq!(error_kind(&rpc("log.export", &json!({}))), "bad_request");
    server.terminate();
}

#[test]
fn export_needs_its_own_right_and_owner_of_a_registry_the_secret() {
    let server = WorkspaceRegistryTestServer::start(&["--listen", "127.0.0.1:0"]);
    server.create_workspace("one");
    let create = |flags: &[&str]| {
        server
            .run_cli(&[&["token", "create", "--principal", "user:ann", "--administer"], flags].concat())
            .trim()
            .to_owned()
    };
    let (admin, exporter) = (create(&[]), create(&["--export"]));
    let export = |token: &str| server.send_request(token, "GET /v1/workspaces/one/export", b"").0;
    assert_eq!([export(&admin), export(&exporter), export(&server.token)], [403, 200, 200]);
    write_secrets(server.directory.path());
    server.run_cli(&["approvals", "setup", "--secret-file", "secret"]);
    assert_eq!([export(&exporter), export(&server.token)], [200, 403], "no protocol carries the secret");
    assert_eq!(server.send_request(&server.token, "DELETE /v1/workspaces/one", b"").0, 403);
    assert_eq!(server.send_request(&server.token, "GET /v1/workspaces", b"").0, 200);
    server.run_cli(&["workspace", "destroy", "one", "--secret-file", "secret"]);
    server.terminate();
}
