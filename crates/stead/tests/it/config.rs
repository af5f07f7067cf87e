//! Tests settings from flags, environment variables and the configuration file.

use std::{path::Path, process::Command};

use serde_json::Value;

use crate::server_process::{BINARY, ServerProcess};

struct ConfigTestInput<'a> {
    flags: &'a [&'a str],
    variables: &'a [(&'a str, &'a str)],
    file: &'a str,
}

const EMPTY_INPUT: ConfigTestInput<'_> = ConfigTestInput { flags: &[], variables: &[], file: "" };

impl ConfigTestInput<'_> {
    fn run(&self, directory: &Path, action: &[&str]) -> std::process::Output {
        std::fs::create_dir_all(directory.join("stead")).unwrap();
        std::fs::write(directory.join("stead/config.toml"), self.file).unwrap();
        let mut command = Command::new(BINARY);
        command.args(action).args(self.flags).current_dir(directory).env("XDG_CONFIG_HOME", directory);
        command.envs(self.variables.iter().copied()).output().unwrap()
    }

    fn show_settings(&self, directory: &Path) -> Vec<Value> {
        let output = self.run(directory, &["config", "show", "--json"]);
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{:?} {:?} {}: {printed}", self.flags, self.variables, self.file);
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn run_expecting_error(&self, directory: &Path, action: &[&str]) -> String {
        let output = self.run(directory, action);
        assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8(output.stderr).unwrap()
    }
}

fn find_setting<'a>(shown: &'a [Value], name: &str) -> &'a Value {
    shown.iter().find(|setting| setting["name"] == name).expect(name)
}

fn sample_value(setting: &Value) -> String {
    let first =
        |value: &Value| value.as_array().and_then(|list| list.first()).and_then(Value::as_str).map(str::to_owned);
    let usual = || setting["value"].as_str().map(str::to_owned);
    first(&setting["choices"]).or_else(|| first(&setting["value"])).or_else(usual).unwrap_or_else(|| "7".to_owned())
}

#[test]
fn every_setting_has_a_flag_a_variable_and_a_key() {
    let directory = tempfile::tempdir().unwrap();
    let settings = EMPTY_INPUT.show_settings(directory.path());
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
        // A TLS certificate without its key is refused, and so is a key without its certificate.
        let partner = match name {
            "tls_cert" => vec!["--tls-key=k"],
            "tls_key" => vec!["--tls-cert=c"],
            _ => vec![],
        };
        let mut flags = partner.clone();
        flags.push(&flag);
        let variables = [(variable.as_str(), text.as_str())];
        let by_file = ConfigTestInput { flags: &partner, variables: &[], file: &key };
        let by_variable = ConfigTestInput { flags: &partner, variables: &variables, file: &key };
        let by_flag = ConfigTestInput { flags: &flags, variables: &variables, file: &key };
        for (input, origin) in [(by_file, "file"), (by_variable, "variable"), (by_flag, "flag")] {
            let shown = input.show_settings(directory.path());
            assert_eq!(find_setting(&shown, name)["origin"], origin, "{name}");
        }
    }
}

#[test]
fn flag_overrides_variable_overrides_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = "\nlisten = \"127.0.0.1:3\"\nhost = [\"f\"]\nbehind_proxy = true\npolicy = \"p.toml\"\n";
    let input = ConfigTestInput {
        flags: &["--listen", "127.0.0.1:1", "--behind-proxy=false"],
        variables: &[("STEAD_LISTEN", "127.0.0.1:2"), ("STEAD_HOST", "v,w")],
        file,
    };
    let shown = input.show_settings(directory.path());
    assert_eq!(find_setting(&shown, "listen")["value"], "127.0.0.1:1");
    assert_eq!(find_setting(&shown, "host")["value"], serde_json::json!(["v", "w"]));
    assert_eq!(find_setting(&shown, "host")["place"], "STEAD_HOST");
    assert_eq!(find_setting(&shown, "behind_proxy")["value"], false);
    // Relative paths in the configuration file start at the directory of the file.
    let at = directory.path().join("stead");
    assert_eq!(find_setting(&shown, "policy")["value"], at.join("p.toml").to_str().unwrap());
    assert_eq!(find_setting(&shown, "policy")["place"], format!("{}:5", at.join("config.toml").display()));
    // The output of `stead config show` is a configuration file with the same values.
    let output = input.run(directory.path(), &["config", "show"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let again = ConfigTestInput { file: &text, ..EMPTY_INPUT }.show_settings(directory.path());
    for (one, other) in shown.iter().zip(&again).filter(|(one, _)| !one["value"].is_null()) {
        assert_eq!((&one["value"], "file"), (&other["value"], other["origin"].as_str().unwrap()));
    }
}

#[test]
fn invalid_setting_is_reported_with_its_origin() {
    let directory = tempfile::tempdir().unwrap();
    let file = |file| ConfigTestInput { file, ..EMPTY_INPUT };
    for action in [&["config", "check"][..], &["config", "show"], &["serve"]] {
        let printed = file("host = []\nlistn = \"x\"").run_expecting_error(directory.path(), action);
        assert!(printed.contains("config.toml:2: unknown setting listn; did you mean listen?"), "{printed}");
        let printed = file("\nlisten = \"nowhere\"").run_expecting_error(directory.path(), action);
        assert!(printed.contains("config.toml:2:") && printed.contains("--listen"), "{printed}");
    }
    let variables = [("STEAD_DURABILITY", "some")];
    let printed = ConfigTestInput { variables: &variables, ..EMPTY_INPUT }
        .run_expecting_error(directory.path(), &["config", "check"]);
    assert!(printed.contains("invalid value from STEAD_DURABILITY"), "{printed}");
    let printed = file("listen = \"0.0.0.0:1\"").run_expecting_error(directory.path(), &["config", "check"]);
    assert!(printed.contains("--behind-proxy"), "{printed}");
    let printed = file("dialect = [\"klingon\"]").run_expecting_error(directory.path(), &["config", "check"]);
    assert!(printed.contains("klingon"), "{printed}");
    let fine = file("behind_proxy = true\nlisten = \"0.0.0.0:1\"").run(directory.path(), &["config", "check"]);
    assert!(fine.status.success());
}

#[test]
fn default_config_file_applies_only_to_serve() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config/stead/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "listen = \"127.0.0.1:0\"\nprincipal = \"agent:filed\"\nprint_token = false\n").unwrap();
    let server = ServerProcess::start_at(directory, &[], &[("STEAD_HOST", "files.example")]);
    assert_eq!(server.get("/health", "").0, 200);
    server.terminate();
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(directory.path().join("elsewhere")).unwrap();
    std::fs::write(directory.path().join("elsewhere/x.txt"), "x\n").unwrap();
    let file = format!("workspace = {:?}\nstate = \"../state\"\n", directory.path().join("elsewhere"));
    let input = ConfigTestInput { file: &file, ..EMPTY_INPUT };
    assert_eq!(input.run(directory.path(), &["read", "x.txt"]).status.code(), Some(1));
    let named = input.run(directory.path(), &["read", "x.txt", "--config", "stead/config.toml"]);
    assert_eq!(String::from_utf8_lossy(&named.stdout), "x\n", "{}", String::from_utf8_lossy(&named.stderr));
}

#[test]
fn example_config_files_are_valid() {
    let contrib = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib");
    let directory = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(contrib.join("config.toml")).unwrap();
    let shown = ConfigTestInput { file: &text, ..EMPTY_INPUT }.show_settings(directory.path());
    assert_eq!(find_setting(&shown, "workspace")["value"], "/srv/project");
    // The commented-out settings of the example file must be valid too.
    let whole: String = text
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(rest) if rest.contains(" = ") && !rest.starts_with("listen") => format!("{rest}\n"),
            Some(_) | None => format!("{line}\n"),
        })
        .collect();
    let shown = ConfigTestInput { file: &whole, ..EMPTY_INPUT }.show_settings(directory.path());
    assert_eq!(find_setting(&shown, "tls_key")["origin"], "file");
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
    let directory = tempfile::tempdir().unwrap();
    let output = EMPTY_INPUT.run(directory.path(), &["config", "reference"]);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/configuration.md");
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(
        std::fs::read_to_string(path).is_ok_and(|stored| stored == printed),
        "run: cargo run -- config reference > docs/reference/configuration.md"
    );
}
