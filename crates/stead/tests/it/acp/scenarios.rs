//! Every scenario of the file methods, and many calls at once, over a real directory.

use std::{fs, os::unix::fs::symlink, path::PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::acp::{Agent, play, suites};

use super::puppet::Puppet;

struct Played {
    puppet: Puppet,
    place: TempDir,
}

impl Played {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("ws");
        fs::create_dir(&directory).unwrap();
        // What lies beside it must look as if it were not there.
        fs::create_dir(place.path().join("ws2")).unwrap();
        fs::write(place.path().join("ws2/a.txt"), "secret").unwrap();
        fs::write(place.path().join("secret.txt"), "secret").unwrap();
        let params = json!({ "cwd": directory, "mcpServers": [] });
        let state = place.path().join("state");
        Self { puppet: Puppet::with_session(&state, &["--durability", "fast"], &params), place }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.place.path().join("ws").join(path)
    }
}

impl Agent for Played {
    fn directory(&self) -> String {
        self.at("").to_str().unwrap().trim_end_matches('/').to_owned()
    }

    fn plant(&mut self, path: &str, bytes: Option<&[u8]>) {
        let path = self.at(path);
        match bytes {
            Some(bytes) => {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, bytes).unwrap();
            }
            None => fs::remove_file(path).unwrap(),
        }
    }

    fn link(&mut self, path: &str, target: &str) {
        symlink(target, self.at(path)).unwrap();
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.puppet.call(method, params)
    }
}

#[test]
fn every_scenario_holds() {
    for scenario in suites().iter().flat_map(|suite| &suite.scenarios) {
        let mut played = Played::new();
        play(scenario, &mut played).unwrap();
        assert_eq!(
            fs::read(played.place.path().join("secret.txt")).unwrap(),
            b"secret",
            "{}",
            scenario.title
        );
        assert_eq!(fs::read(played.place.path().join("ws2/a.txt")).unwrap(), b"secret", "{}", scenario.title);
    }
}

#[test]
fn a_hundred_reads_and_writes_at_once_in_two_sessions() {
    let mut played = Played::new();
    let params = json!({ "cwd": played.at(""), "mcpServers": [] });
    played.puppet.session("s2", &params);
    let mut sent = Vec::new();
    for number in 0..25 {
        for session in ["s1", "s2"] {
            let path = played.at(&format!("{session}-{}.txt", number % 5));
            let content = format!("{session} {number}\n");
            let write = json!({ "sessionId": session, "path": path, "content": content });
            sent.push(played.puppet.send("fs/write_text_file", write));
            sent.push(played.puppet.send("fs/read_text_file", json!({ "sessionId": session, "path": path })));
        }
    }
    let mut answered: Vec<i64> = (0..sent.len())
        .map(|_| {
            let answer = played.puppet.agent_hears();
            assert!(answer.get("result").is_some() || answer["error"]["code"] == -32002, "{answer}");
            answer["id"].as_i64().unwrap()
        })
        .collect();
    answered.sort_unstable();
    assert_eq!(answered, sent);
    for session in ["s1", "s2"] {
        for file in 0..5 {
            let content = fs::read_to_string(played.at(&format!("{session}-{file}.txt"))).unwrap();
            assert_eq!(content, format!("{session} {}\n", 20 + file));
        }
    }
}

#[test]
fn what_an_agent_does_is_recorded_and_can_be_taken_back() {
    let mut played = Played::new();
    let path = played.at("a.txt");
    fs::write(&path, "old\n").unwrap();
    assert_eq!(played.puppet.write(&path, "new\n")["result"], json!({}));
    let stead = |arguments: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_stead"))
            .args(arguments)
            .arg("--workspace")
            .arg(played.at(""))
            .env("XDG_STATE_HOME", played.place.path().join("state"))
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
