//! Runs every scenario of the ACP file methods, and many concurrent calls, on a real directory.

use std::{fs, os::unix::fs::symlink, path::PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::acp_scenario::{AcpScenarioAgent, load_suites, play_scenario};

use super::harness::AcpProxyTestProcess;

struct AcpScenarioAgentViaProxyProcess {
    process: AcpProxyTestProcess,
    directory: TempDir,
}

impl AcpScenarioAgentViaProxyProcess {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let workspace = directory.path().join("ws");
        fs::create_dir(&workspace).unwrap();
        // The agent must not be able to see that files next to the workspace exist.
        fs::create_dir(directory.path().join("ws2")).unwrap();
        fs::write(directory.path().join("ws2/a.txt"), "secret").unwrap();
        fs::write(directory.path().join("secret.txt"), "secret").unwrap();
        let params = json!({ "cwd": workspace, "mcpServers": [] });
        let state = directory.path().join("state");
        Self { process: AcpProxyTestProcess::with_session(&state, &["--durability", "fast"], &params), directory }
    }

    fn path_in_directory(&self, path: &str) -> PathBuf {
        self.directory.path().join("ws").join(path)
    }
}

impl AcpScenarioAgent for AcpScenarioAgentViaProxyProcess {
    fn directory(&self) -> String {
        self.path_in_directory("").to_str().unwrap().trim_end_matches('/').to_owned()
    }

    fn set_file(&mut self, path: &str, bytes: Option<&[u8]>) {
        let path = self.path_in_directory(path);
        match bytes {
            Some(bytes) => {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, bytes).unwrap();
            }
            None => fs::remove_file(path).unwrap(),
        }
    }

    fn create_symlink(&mut self, path: &str, target: &str) {
        symlink(target, self.path_in_directory(path)).unwrap();
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.process.call_from_agent(method, params)
    }
}

#[test]
fn all_acp_scenarios_pass() {
    for scenario in load_suites().iter().flat_map(|suite| &suite.scenarios) {
        let mut played = AcpScenarioAgentViaProxyProcess::new();
        play_scenario(scenario, &mut played).unwrap();
        assert_eq!(fs::read(played.directory.path().join("secret.txt")).unwrap(), b"secret", "{}", scenario.title);
        assert_eq!(fs::read(played.directory.path().join("ws2/a.txt")).unwrap(), b"secret", "{}", scenario.title);
    }
}

#[test]
fn hundred_concurrent_reads_and_writes_in_two_sessions() {
    let mut played = AcpScenarioAgentViaProxyProcess::new();
    let params = json!({ "cwd": played.path_in_directory(""), "mcpServers": [] });
    played.process.new_session("s2", &params);
    let mut sent = Vec::new();
    for number in 0..25 {
        for session in ["s1", "s2"] {
            let path = played.path_in_directory(&format!("{session}-{}.txt", number % 5));
            let content = format!("{session} {number}\n");
            let write = json!({ "sessionId": session, "path": path, "content": content });
            sent.push(played.process.send_agent_request("fs/write_text_file", write));
            sent.push(
                played.process.send_agent_request("fs/read_text_file", json!({ "sessionId": session, "path": path })),
            );
        }
    }
    let mut answered: Vec<i64> = (0..sent.len())
        .map(|_| {
            let answer = played.process.receive_at_agent();
            assert!(answer.get("result").is_some() || answer["error"]["code"] == -32002, "{answer}");
            answer["id"].as_i64().unwrap()
        })
        .collect();
    answered.sort_unstable();
    assert_eq!(answered, sent);
    for session in ["s1", "s2"] {
        for file in 0..5 {
            let content = fs::read_to_string(played.path_in_directory(&format!("{session}-{file}.txt"))).unwrap();
            assert_eq!(content, format!("{session} {}\n", 20 + file));
        }
    }
}

#[test]
fn agent_writes_are_journaled_and_undoable() {
    let mut played = AcpScenarioAgentViaProxyProcess::new();
    let path = played.path_in_directory("a.txt");
    fs::write(&path, "old\n").unwrap();
    assert_eq!(played.process.write_text_file(&path, "new\n")["result"], json!({}));
    let stead = |arguments: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_stead"))
            .args(arguments)
            .arg("--workspace")
            .arg(played.path_in_directory(""))
            .env("XDG_STATE_HOME", played.directory.path().join("state"))
            .env("USER", "tester")
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let log = stead(&["log"]);
    assert!(log.contains("agent:acp  write  a.txt"), "{log}");
    stead(&["undo"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "old\n");
}
