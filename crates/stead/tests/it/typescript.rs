//! The server met by the official client of another language.

use std::{path::Path, process::Command};

use testkit::instruments;

#[test]
fn the_official_typescript_client_is_served_in_every_era() {
    let place = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("node").join("client.mjs");
    let mut driver = Command::new(instruments::node().unwrap());
    driver.arg(script).arg(instruments::node_home().unwrap());
    driver.arg(env!("CARGO_BIN_EXE_stead")).arg(place.path());
    let said = instruments::run(driver).unwrap();
    assert_eq!(said.code, Some(0), "{}", said.whole());
    assert_eq!(said.output.lines().count(), 6, "one line for each way and era: {}", said.whole());
}
