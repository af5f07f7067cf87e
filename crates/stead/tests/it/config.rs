//! Settings from every place they can come from, and what is said about them.

use std::{path::Path, process::Command};

use serde_json::Value;

use crate::server_process::{BINARY, ServerProcess};

/// What the command line is told about its settings: the line, variables, the text of the file.
struct ConfigInput<'a> {
    flags: &'a [&'a str],
    variables: &'a [(&'a str, &'a str)],
    file: &'a str,
}

const EMPTY_INPUT: ConfigInput<'_> = ConfigInput { flags: &[], variables: &[], file: "" };

impl ConfigInput<'_> {
    fn run(&self, place: &Path, action: &[&str]) -> std::process::Output {
        std::fs::create_dir_all(place.join("stead")).unwrap();
        std::fs::write(place.join("stead/config.toml"), self.file).unwrap();
        let mut command = Command::new(BINARY);
        command.args(action).args(self.flags).current_dir(place).env("XDG_CONFIG_HOME", place);
        command.envs(self.variables.iter().copied()).output().unwrap()
    }

    /// Every setting, as `stead config show` tells it.
    fn show_settings(&self, place: &Path) -> Vec<Value> {
        let output = self.run(place, &["config", "show", "--json"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{:?} {:?} {}: {said}", self.flags, self.variables, self.file);
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn run_expecting_error(&self, place: &Path, action: &[&str]) -> String {
        let output = self.run(place, action);
        assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8(output.stderr).unwrap()
    }
}

fn find_setting<'a>(shown: &'a [Value], name: &str) -> &'a Value {
    shown.iter().find(|setting| setting["name"] == name).expect(name)
}

/// A text that this setting may have.
fn sample_value(setting: &Value) -> String {
    let first =
        |value: &Value| value.as_array().and_then(|list| list.first()).and_then(Value::as_str).map(str::to_owned);
    let usual = || setting["value"].as_str().map(str::to_owned);
    first(&setting["choices"]).or_else(|| first(&setting["value"])).or_else(usual).unwrap_or_else(|| "7".to_owned())
}

#[test]
fn every_setting_has_a_flag_a_variable_and_a_key() {
    let place = tempfile::tempdir().unwrap();
    let settings = EMPTY_INPUT.show_settings(place.path());
    assert!(settings.len() > 20, "{settings:?}");
    for known in &settings {
        let name = known["name"].as_str().unwrap();
        assert_eq!(known["origin"], "default", "{known}");
        let text = if known["value"].is_boolean() { "true".to_owned() } else { sample_value(known) };
        let flag = format!("--{}={text}", name.replace('_', "-"));
        let variable = format!("STEAD_{}", name.to_uppercase());
        let key = match &known["value"] {
            Value::Bool(_) => format!("{name} = true"),
            Value::Array(_) => format!("{name} = [{text:?}]"),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                format!("{name} = {text:?}")
            }
        };
        // One of the two files alone is refused, whoever says it.
        let partner = match name {
            "tls_cert" => vec!["--tls-key=k"],
            "tls_key" => vec!["--tls-cert=c"],
            _ => vec![],
        };
        let mut flags = partner.clone();
        flags.push(&flag);
        let variables = [(variable.as_str(), text.as_str())];
        let by_file = ConfigInput { flags: &partner, variables: &[], file: &key };
        let by_variable = ConfigInput { flags: &partner, variables: &variables, file: &key };
        let by_flag = ConfigInput { flags: &flags, variables: &variables, file: &key };
        for (told, origin) in [(by_file, "file"), (by_variable, "variable"), (by_flag, "flag")] {
            let shown = told.show_settings(place.path());
            assert_eq!(find_setting(&shown, name)["origin"], origin, "{name}");
        }
    }
}

#[test]
fn flag_overrides_variable_overrides_file() {
    let place = tempfile::tempdir().unwrap();
    let file = "\nlisten = \"127.0.0.1:3\"\nhost = [\"f\"]\nbehind_proxy = true\npolicy = \"p.toml\"\n";
    let told = ConfigInput {
        flags: &["--listen", "127.0.0.1:1", "--behind-proxy=false"],
        variables: &[("STEAD_LISTEN", "127.0.0.1:2"), ("STEAD_HOST", "v,w")],
        file,
    };
    let shown = told.show_settings(place.path());
    assert_eq!(find_setting(&shown, "listen")["value"], "127.0.0.1:1");
    assert_eq!(find_setting(&shown, "host")["value"], serde_json::json!(["v", "w"]));
    assert_eq!(find_setting(&shown, "host")["place"], "STEAD_HOST");
    assert_eq!(find_setting(&shown, "behind_proxy")["value"], false);
    // Paths in the file are relative to it.
    let at = place.path().join("stead");
    assert_eq!(find_setting(&shown, "policy")["value"], at.join("p.toml").to_str().unwrap());
    assert_eq!(find_setting(&shown, "policy")["place"], format!("{}:5", at.join("config.toml").display()));
    // What is shown is a file that means the same.
    let output = told.run(place.path(), &["config", "show"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let again = ConfigInput { file: &text, ..EMPTY_INPUT }.show_settings(place.path());
    for (one, other) in shown.iter().zip(&again).filter(|(one, _)| !one["value"].is_null()) {
        assert_eq!((&one["value"], "file"), (&other["value"], other["origin"].as_str().unwrap()));
    }
}

#[test]
fn invalid_setting_is_reported_with_its_origin() {
    let place = tempfile::tempdir().unwrap();
    let file = |file| ConfigInput { file, ..EMPTY_INPUT };
    for action in [&["config", "check"][..], &["config", "show"], &["serve"]] {
        let said = file("host = []\nlistn = \"x\"").run_expecting_error(place.path(), action);
        assert!(said.contains("config.toml:2: unknown setting listn; did you mean listen?"), "{said}");
        let said = file("\nlisten = \"nowhere\"").run_expecting_error(place.path(), action);
        assert!(said.contains("config.toml:2:") && said.contains("--listen"), "{said}");
    }
    let variables = [("STEAD_DURABILITY", "some")];
    let said =
        ConfigInput { variables: &variables, ..EMPTY_INPUT }.run_expecting_error(place.path(), &["config", "check"]);
    assert!(said.contains("invalid value from STEAD_DURABILITY"), "{said}");
    let said = file("listen = \"0.0.0.0:1\"").run_expecting_error(place.path(), &["config", "check"]);
    assert!(said.contains("--behind-proxy"), "{said}");
    let said = file("dialect = [\"klingon\"]").run_expecting_error(place.path(), &["config", "check"]);
    assert!(said.contains("klingon"), "{said}");
    let fine = file("behind_proxy = true\nlisten = \"0.0.0.0:1\"").run(place.path(), &["config", "check"]);
    assert!(fine.status.success());
}

#[test]
fn default_config_file_applies_only_to_serve() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("config/stead/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "listen = \"127.0.0.1:0\"\nprincipal = \"agent:filed\"\nprint_token = false\n").unwrap();
    let server = ServerProcess::start_at(place, &[], &[("STEAD_HOST", "files.example")]);
    assert_eq!(server.get("/health", "").0, 200);
    server.terminate();
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(place.path().join("elsewhere")).unwrap();
    std::fs::write(place.path().join("elsewhere/x.txt"), "x\n").unwrap();
    let file = format!("workspace = {:?}\nstate = \"../state\"\n", place.path().join("elsewhere"));
    let told = ConfigInput { file: &file, ..EMPTY_INPUT };
    assert_eq!(told.run(place.path(), &["read", "x.txt"]).status.code(), Some(1));
    let named = told.run(place.path(), &["read", "x.txt", "--config", "stead/config.toml"]);
    assert_eq!(String::from_utf8_lossy(&named.stdout), "x\n", "{}", String::from_utf8_lossy(&named.stderr));
}

#[test]
fn example_config_files_are_valid() {
    let contrib = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib");
    let place = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(contrib.join("config.toml")).unwrap();
    let shown = ConfigInput { file: &text, ..EMPTY_INPUT }.show_settings(place.path());
    assert_eq!(find_setting(&shown, "workspace")["value"], "/srv/project");
    // What is commented out is there to be used.
    let whole: String = text
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(rest) if rest.contains(" = ") && !rest.starts_with("listen") => format!("{rest}\n"),
            Some(_) | None => format!("{line}\n"),
        })
        .collect();
    let shown = ConfigInput { file: &whole, ..EMPTY_INPUT }.show_settings(place.path());
    assert_eq!(find_setting(&shown, "tls_key")["origin"], "file");
    // The container is set by variables, each of them one of ours.
    let container = std::fs::read_to_string(contrib.join("Containerfile")).unwrap();
    let line = container.lines().find_map(|line| line.strip_prefix("ENV ")).unwrap();
    for (name, _) in line.split(' ').filter_map(|pair| pair.split_once('=')) {
        let name = name.strip_prefix("STEAD_").unwrap().to_lowercase();
        find_setting(&shown, &name);
    }
    let unit = std::fs::read_to_string(contrib.join("stead.service")).unwrap();
    assert!(unit.contains("stead serve --config /etc/stead/config.toml"));
}

#[test]
fn settings_reference_is_up_to_date() {
    let place = tempfile::tempdir().unwrap();
    let output = EMPTY_INPUT.run(place.path(), &["config", "reference"]);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/configuration.md");
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(
        std::fs::read_to_string(path).is_ok_and(|kept| kept == printed),
        "run: cargo run -- config reference > docs/reference/configuration.md"
    );
}
