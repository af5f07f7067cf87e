//! The OpenAPI document against the server it describes: requests made up from it, fitting and not, and every answer held
//! against it.

use std::{path::Path, process::Command};

use testkit::instruments;

use crate::{python::python_with, served::Server};

/// Requests made up for each operation, besides those that follow from its schema alone.
const EXAMPLES_MAX: &str = "10";
/// The same requests every time.
const SEED: &str = "1";

#[test]
fn nothing_is_found_in_what_the_document_says() {
    let server = Server::start(&["--listen", "127.0.0.1:0"]);
    let token = server.say(&["token", "create", "--principal", "agent:schemathesis"]);
    let program = python_with("py-openapi").with_file_name("schemathesis");
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python");
    let mut run = Command::new(program);
    run.env("PYTHONPATH", &scripts).env("SCHEMATHESIS_HOOKS", "short_waits");
    run.env("PYTHONDONTWRITEBYTECODE", "1");
    run.arg("--config-file").arg(scripts.join("schemathesis.toml")).arg("run");
    run.arg(format!("http://{}/v1/openapi.json", server.address));
    run.args(["--header", &format!("Authorization: Bearer {}", token.trim())]);
    run.args(["--max-examples", EXAMPLES_MAX, "--seed", SEED, "--continue-on-failure", "--no-color"]);
    // What it remembers of failures is nobody else's.
    run.current_dir(server.place.path());
    let said = instruments::run(run).unwrap();
    assert_eq!(said.code, Some(0), "{}", said.whole());
    server.end();
}
