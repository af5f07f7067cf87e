//! Runs the scenarios of the official MCP conformance suite that need no special tools against the binary. The crate
//! `stead-protocols` runs the scenarios that need special tools.

use std::path::Path;

use testkit::{external_tools, socket_relay};

use crate::server_process::ServerProcess;

const SCENARIOS_2025_11_25: &[&str] = &[
    "server-initialize",
    "ping",
    "completion-complete",
    "tools-list",
    "server-sse-multiple-streams",
    "resources-list",
    "prompts-list",
    "dns-rebinding-protection",
    "server-session-lifecycle",
    "server-sse-polling",
];

const SCENARIOS_2026_07_28: &[&str] = &[
    "completion-complete",
    "tools-list",
    "server-sse-multiple-streams",
    "resources-list",
    "sep-2164-resource-not-found",
    "prompts-list",
    "dns-rebinding-protection",
    "caching",
    "input-required-result-missing-input-response",
    "input-required-result-unsupported-methods",
    "input-required-result-ignore-extra-params",
    "input-required-result-validate-input",
    "http-header-validation",
];

struct ConformanceServer {
    server: ServerProcess,
    port: u16,
    _directory: tempfile::TempDir,
}

impl ConformanceServer {
    fn start() -> Self {
        let place = tempfile::tempdir().unwrap();
        let socket = place.path().join("socket");
        let server = ServerProcess::start(&["--socket", socket.to_str().unwrap()]);
        std::fs::create_dir(server.directory.path().join("ws/directory")).unwrap();
        let port = socket_relay::open_relay(&socket).unwrap();
        Self { server, port, _directory: place }
    }

    fn run_suite(&self, arguments: &[&str]) -> external_tools::ProgramOutput {
        let mut suite = external_tools::node_program("conformance").unwrap();
        suite.args(["server", "--url", &format!("http://127.0.0.1:{}/mcp", self.port)]).args(arguments);
        external_tools::run_program(suite).unwrap()
    }
}

fn assert_revision_passes(revision: &str, scenarios: &[&str]) {
    let judged = ConformanceServer::start();
    let printed = judged.run_suite(&["--requirements", revision]);
    for scenario in scenarios {
        let passed = format!("✓ {scenario}: ");
        let line = printed.stdout.lines().find(|line| line.contains(&passed));
        assert!(line.is_some_and(|line| line.ends_with(", 0 failed")), "{scenario}: {}", printed.full_text());
    }
    judged.server.terminate();
}

#[test]
fn binary_passes_fixture_free_scenarios_of_2025_11_25() {
    assert_revision_passes("2025-11-25", SCENARIOS_2025_11_25);
}

#[test]
fn binary_passes_fixture_free_scenarios_of_2026_07_28() {
    assert_revision_passes("2026-07-28", SCENARIOS_2026_07_28);
}

#[test]
fn binary_passes_stateless_and_skills_scenarios() {
    let judged = ConformanceServer::start();
    let known = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("node").join("diagnostics.yml");
    let stateless = ["--scenario", "server-stateless", "--spec-version", "2026-07-28", "--expected-failures"];
    let printed = judged.run_suite(&[&stateless[..], &[known.to_str().unwrap()]].concat());
    assert_eq!(printed.code, Some(0), "{}", printed.full_text());
    for scenario in ["sep-2640-skills-directory", "sep-2640-skills-enumeration"] {
        let printed = judged.run_suite(&["--scenario", scenario]);
        assert_eq!(printed.code, Some(0), "{}", printed.full_text());
        assert!(printed.stdout.contains("0 failed, 0 warnings"), "{}", printed.full_text());
    }
    judged.server.terminate();
}
