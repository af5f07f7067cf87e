//! Golden files for stored or published words. A test writes the words as the code spells them and compares them with a
//! checked-in file, so that renaming a Rust item cannot change such a word unnoticed. `UPDATE_PINS=1` writes the files
//! instead; changing one changes a format and needs a reason.

use std::path::Path;

/// Set to write the golden files instead of comparing.
const UPDATE: &str = "UPDATE_PINS";

/// Compares a text with the golden file `tests/pins/<name>` of the crate whose manifest is in `manifest_directory`.
///
/// # Panics
///
/// When they differ, or when the file cannot be read or written.
#[track_caller]
#[expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
pub fn check(manifest_directory: &str, name: &str, text: &str) {
    let file = Path::new(manifest_directory).join("tests/pins").join(name);
    if std::env::var_os(UPDATE).is_some() {
        return std::fs::write(&file, text).expect("the golden file can be written");
    }
    let golden = std::fs::read_to_string(&file).expect("the golden file can be read");
    if golden == text {
        return;
    }
    let missing = golden.lines().filter(|line| !text.lines().any(|other| other == *line));
    let added = text.lines().filter(|line| !golden.lines().any(|other| other == *line));
    let shown: Vec<String> =
        missing.map(|line| format!("- {line}")).chain(added.map(|line| format!("+ {line}"))).collect();
    panic!("stored or published words differ from {name}:\n{}", shown.join("\n"));
}
