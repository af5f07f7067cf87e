//! Tests the server with the official TypeScript client of MCP.

use std::{path::Path, process::Command};

use testkit::external_tools;

#[test]
fn official_typescript_client_works_in_every_era() {
    let place = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("node").join("client.mjs");
    let mut driver = Command::new(external_tools::node_binary().unwrap());
    driver.arg(script).arg(external_tools::npm_packages_directory().unwrap());
    driver.arg(env!("CARGO_BIN_EXE_stead")).arg(place.path());
    let printed = external_tools::run_program(driver).unwrap();
    assert_eq!(printed.code, Some(0), "{}", printed.full_text());
    assert_eq!(printed.stdout.lines().count(), 6, "one line for each transport and era: {}", printed.full_text());
}
