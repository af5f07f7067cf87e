//! The OpenAPI document against the server it describes: requests made up from it, fitting and not, and every answer held
//! against it.

use std::{path::Path, process::Command};

use testkit::external_tools;

use crate::{python_client::python_in_environment, server_process::ServerProcess};

/// Requests made up for each operation, besides those that follow from its schema alone.
const FUZZ_EXAMPLES_MAX: &str = "10";
/// The same requests every time.
const FUZZ_SEED: &str = "1";

#[test]
fn server_conforms_to_its_openapi_document() {
    let server = ServerProcess::start(&["--listen", "127.0.0.1:0"]);
    let token = server.run_cli(&["token", "create", "--principal", "agent:schemathesis"]);
    let program = python_in_environment("py-openapi").with_file_name("schemathesis");
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python");
    let mut run = Command::new(program);
    run.env("PYTHONPATH", &scripts).env("SCHEMATHESIS_HOOKS", "short_waits");
    run.env("PYTHONDONTWRITEBYTECODE", "1");
    run.arg("--config-file").arg(scripts.join("schemathesis.toml")).arg("run");
    run.arg(format!("http://{}/v1/openapi.json", server.address));
    run.args(["--header", &format!("Authorization: Bearer {}", token.trim())]);
    run.args(["--max-examples", FUZZ_EXAMPLES_MAX, "--seed", FUZZ_SEED, "--continue-on-failure", "--no-color"]);
    // What it remembers of failures is nobody else's.
    run.current_dir(server.directory.path());
    let said = external_tools::run_program(run).unwrap();
    assert_eq!(said.code, Some(0), "{}", said.full_text());
    server.terminate();
}
