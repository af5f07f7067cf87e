//! Runs Schemathesis, which generates requests from the server's OpenAPI document and checks every response.

use std::{path::Path, process::Command};

use testkit::external_tools;

use crate::{python_client::python_in_environment, server_process::ServerProcess};

/// The maximum number of random requests that Schemathesis sends per endpoint of the API.
const FUZZ_EXAMPLES_MAX: &str = "10";
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
    // Schemathesis stores failures in its current directory.
    run.current_dir(server.directory.path());
    let printed = external_tools::run_program(run).unwrap();
    assert_eq!(printed.code, Some(0), "{}", printed.full_text());
    server.terminate();
}
