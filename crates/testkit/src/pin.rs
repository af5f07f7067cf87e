//! Golden files list words that are stored or published, such as JSON keys. The comparison with a golden file shows
//! when renaming a Rust item changes a published word. Tests rewrite the golden files if the environment variable
//! `UPDATE_PINS` is set.

use std::{collections::BTreeSet, path::Path};

const UPDATE: &str = "UPDATE_PINS";

/// Compares a text with the golden file `tests/pins/<name>` of the crate whose manifest is in `manifest_directory`.
///
/// # Panics
///
/// Panics if the text and the golden file differ, or if the file cannot be read or written.
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

/// The methods whose first argument is a JSON key of a call result.
const KEY_METHODS: [&str; 2] = ["serialize_entry(", "insert("];

/// Collects the JSON keys in the sources of a crate, sorted, one per line. JSON keys in unit tests at the end of a
/// source file are left out.
///
/// # Panics
///
/// Panics if a source file cannot be read.
#[expect(clippy::expect_used, reason = "a test fails by panicking")]
pub fn json_keys(manifest_directory: &str) -> String {
    let mut keys = BTreeSet::new();
    let mut directories = vec![Path::new(manifest_directory).join("src")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).expect("the sources can be listed") {
            let path = entry.expect("the sources can be listed").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let source = std::fs::read_to_string(&path).expect("a source file can be read");
                let source = source.split("#[cfg(test)]").next().unwrap_or_default();
                keys.extend(keys_in_source(source));
                keys.extend(serialized_fields(source));
            }
        }
    }
    keys.into_iter().map(|key| key + "\n").collect()
}

fn keys_in_source(source: &str) -> Vec<String> {
    let code: Vec<&str> = source.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = code.join("\n");
    let mut keys = Vec::new();
    let mut rest = code.as_str();
    while let Some(start) = rest.find('"') {
        let before = rest[..start].trim_end();
        let Some(length) = literal_length(before, &rest[start + 1..]) else { break };
        let (text, after) = (&rest[start + 1..start + 1 + length], &rest[start + length + 2..]);
        let is_word = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-./$".contains(c));
        let is_object_key = after.trim_start().starts_with(':') && !after.trim_start().starts_with("::");
        if is_word && (is_object_key || KEY_METHODS.iter().any(|method| before.ends_with(method))) {
            keys.push(text.to_owned());
        }
        rest = after;
    }
    keys
}

fn serialized_fields(source: &str) -> Vec<String> {
    let (mut keys, mut attribute, mut is_serialized) = (Vec::new(), "", false);
    for line in source.lines().map(str::trim_end) {
        let code = line.trim_start();
        if code.starts_with("#[derive(") {
            is_serialized = code.contains("Serialize");
        } else if code == "error_details! {" {
            is_serialized = true;
        } else if line.starts_with('}') || line.ends_with(';') {
            is_serialized = false;
        } else if code.starts_with("#[serde(") {
            attribute = code;
        } else if !code.starts_with("//") && !code.contains("fn ") {
            // The fields of a short variant of an enum stand in one line.
            let variant = code.strip_suffix(" },").and_then(|variant| variant.split_once(" { "));
            let fields = variant.map_or(code, |(_, fields)| fields).split(", ").filter_map(field_name);
            keys.extend(fields.filter(|_| is_serialized).filter_map(|name| serialized_name(name, attribute)));
            attribute = "";
        }
    }
    keys
}

fn field_name(code: &str) -> Option<&str> {
    let name = code.strip_prefix("pub(crate) ").or_else(|| code.strip_prefix("pub ")).unwrap_or(code);
    let name = name.split_once(": ")?.0;
    // The rows of `error_details!` also have the name of the setter.
    let name = name.split_once(" with_").map_or(name, |(field, _)| field);
    let name = name.strip_prefix("r#").unwrap_or(name);
    name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_').then_some(name)
}

fn serialized_name(name: &str, attribute: &str) -> Option<String> {
    let is_written = !attribute.contains("flatten") && !attribute.contains("(skip)");
    let renamed = attribute.split_once("rename = \"").and_then(|(_, rest)| rest.split_once('"'));
    is_written.then(|| renamed.map_or(name, |(renamed, _)| renamed).to_owned())
}

/// Returns the length of the string literal at the start of `text`, which follows the opening quote. A quote in a
/// character literal counts as an empty string literal.
fn literal_length(before: &str, text: &str) -> Option<usize> {
    if before.ends_with("r#") {
        return text.find("\"#");
    }
    if before.ends_with('\'') && text.starts_with('\'') {
        return Some(0);
    }
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })
}
