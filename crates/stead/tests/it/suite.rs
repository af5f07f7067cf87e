//! The protocol's own suite against the program as it is shipped: every scenario that needs nothing but what any server has.
//! The others, which want tools of the suite's own, are passed by the same face in `faces`.

use std::path::Path;

use testkit::{instruments, relay};

use crate::served::Server;

/// Scenarios of 2025-11-25, and those that came after its release.
const EARLIER: &[&str] = &[
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

/// Scenarios of 2026-07-28, and those that came after its release.
const LATER: &[&str] = &[
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

/// A server that the suite can reach.
struct Judged {
    server: Server,
    port: u16,
    _place: tempfile::TempDir,
}

impl Judged {
    fn start() -> Self {
        let place = tempfile::tempdir().unwrap();
        let socket = place.path().join("socket");
        let server = Server::start(&["--socket", socket.to_str().unwrap()]);
        std::fs::create_dir(server.place.path().join("ws/directory")).unwrap();
        let port = relay::open(&socket).unwrap();
        Self { server, port, _place: place }
    }

    fn by(&self, arguments: &[&str]) -> instruments::Said {
        let mut suite = instruments::node_program("conformance").unwrap();
        suite.args(["server", "--url", &format!("http://127.0.0.1:{}/mcp", self.port)]).args(arguments);
        instruments::run(suite).unwrap()
    }
}

/// Everything of a revision is run; what needs no fixtures must pass without a failed check.
fn hold(revision: &str, scenarios: &[&str]) {
    let judged = Judged::start();
    let said = judged.by(&["--requirements", revision]);
    for scenario in scenarios {
        let passed = format!("✓ {scenario}: ");
        let line = said.output.lines().find(|line| line.contains(&passed));
        assert!(line.is_some_and(|line| line.ends_with(", 0 failed")), "{scenario}: {}", said.whole());
    }
    judged.server.end();
}

#[test]
fn the_shipped_program_passes_what_needs_no_fixtures_of_2025_11_25() {
    hold("2025-11-25", EARLIER);
}

#[test]
fn the_shipped_program_passes_what_needs_no_fixtures_of_2026_07_28() {
    hold("2026-07-28", LATER);
}

#[test]
fn the_shipped_program_passes_alone() {
    let judged = Judged::start();
    let known = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("node").join("diagnostics.yml");
    let stateless = ["--scenario", "server-stateless", "--spec-version", "2026-07-28", "--expected-failures"];
    let said = judged.by(&[&stateless[..], &[known.to_str().unwrap()]].concat());
    assert_eq!(said.code, Some(0), "{}", said.whole());
    for scenario in ["sep-2640-skills-directory", "sep-2640-skills-enumeration"] {
        let said = judged.by(&["--scenario", scenario]);
        assert_eq!(said.code, Some(0), "{}", said.whole());
        assert!(said.output.contains("0 failed, 0 warnings"), "{}", said.whole());
    }
    judged.server.end();
}
