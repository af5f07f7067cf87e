//! Settings from every place they can come from, and what is said about them.

use std::{path::Path, process::Command};

use serde_json::Value;

use crate::served::{BINARY, Server};

/// What the command line is told about its settings: the line, variables, the text of the file.
struct Told<'a> {
    flags: &'a [&'a str],
    variables: &'a [(&'a str, &'a str)],
    file: &'a str,
}

const NOTHING: Told<'_> = Told { flags: &[], variables: &[], file: "" };

impl Told<'_> {
    fn run(&self, place: &Path, action: &[&str]) -> std::process::Output {
        std::fs::create_dir_all(place.join("stead")).unwrap();
        std::fs::write(place.join("stead/config.toml"), self.file).unwrap();
        let mut command = Command::new(BINARY);
        command.args(action).args(self.flags).current_dir(place).env("XDG_CONFIG_HOME", place);
        command.envs(self.variables.iter().copied()).output().unwrap()
    }

    /// Every setting, as `stead config show` tells it.
    fn shown(&self, place: &Path) -> Vec<Value> {
        let output = self.run(place, &["config", "show", "--json"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{:?} {:?} {}: {said}", self.flags, self.variables, self.file);
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn refused(&self, place: &Path, action: &[&str]) -> String {
        let output = self.run(place, action);
        assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8(output.stderr).unwrap()
    }
}

fn setting<'a>(shown: &'a [Value], name: &str) -> &'a Value {
    shown.iter().find(|setting| setting["name"] == name).expect(name)
}

/// A text that this setting may have.
fn sample(setting: &Value) -> String {
    let first = |value: &Value| {
        value.as_array().and_then(|list| list.first()).and_then(Value::as_str).map(str::to_owned)
    };
    let usual = || setting["value"].as_str().map(str::to_owned);
    first(&setting["choices"])
        .or_else(|| first(&setting["value"]))
        .or_else(usual)
        .unwrap_or_else(|| "7".to_owned())
}

#[test]
fn every_setting_is_a_flag_a_variable_and_a_key() {
    let place = tempfile::tempdir().unwrap();
    let settings = NOTHING.shown(place.path());
    assert!(settings.len() > 20, "{settings:?}");
    for known in &settings {
        let name = known["name"].as_str().unwrap();
        assert_eq!(known["origin"], "default", "{known}");
        let text = if known["value"].is_boolean() { "true".to_owned() } else { sample(known) };
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
        let by_file = Told { flags: &partner, variables: &[], file: &key };
        let by_variable = Told { flags: &partner, variables: &variables, file: &key };
        let by_flag = Told { flags: &flags, variables: &variables, file: &key };
        for (told, origin) in [(by_file, "file"), (by_variable, "variable"), (by_flag, "flag")] {
            let shown = told.shown(place.path());
            assert_eq!(setting(&shown, name)["origin"], origin, "{name}");
        }
    }
}

#[test]
fn a_flag_counts_before_a_variable_and_that_before_the_file() {
    let place = tempfile::tempdir().unwrap();
    let file = "\nlisten = \"127.0.0.1:3\"\nhost = [\"f\"]\nbehind_proxy = true\npolicy = \"p.toml\"\n";
    let told = Told {
        flags: &["--listen", "127.0.0.1:1", "--behind-proxy=false"],
        variables: &[("STEAD_LISTEN", "127.0.0.1:2"), ("STEAD_HOST", "v,w")],
        file,
    };
    let shown = told.shown(place.path());
    assert_eq!(setting(&shown, "listen")["value"], "127.0.0.1:1");
    assert_eq!(setting(&shown, "host")["value"], serde_json::json!(["v", "w"]));
    assert_eq!(setting(&shown, "host")["place"], "STEAD_HOST");
    assert_eq!(setting(&shown, "behind_proxy")["value"], false);
    // Paths in the file are relative to it.
    let at = place.path().join("stead");
    assert_eq!(setting(&shown, "policy")["value"], at.join("p.toml").to_str().unwrap());
    assert_eq!(setting(&shown, "policy")["place"], format!("{}:5", at.join("config.toml").display()));
    // What is shown is a file that means the same.
    let output = told.run(place.path(), &["config", "show"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let again = Told { file: &text, ..NOTHING }.shown(place.path());
    for (one, other) in shown.iter().zip(&again).filter(|(one, _)| !one["value"].is_null()) {
        assert_eq!((&one["value"], "file"), (&other["value"], other["origin"].as_str().unwrap()));
    }
}

#[test]
fn what_cannot_be_is_refused_where_it_was_said() {
    let place = tempfile::tempdir().unwrap();
    let file = |file| Told { file, ..NOTHING };
    for action in [&["config", "check"][..], &["config", "show"], &["serve"]] {
        let said = file("host = []\nlistn = \"x\"").refused(place.path(), action);
        assert!(said.contains("config.toml:2: there is no setting listn; perhaps listen?"), "{said}");
        let said = file("\nlisten = \"nowhere\"").refused(place.path(), action);
        assert!(said.contains("config.toml:2 says") && said.contains("--listen"), "{said}");
    }
    let variables = [("STEAD_DURABILITY", "some")];
    let said = Told { variables: &variables, ..NOTHING }.refused(place.path(), &["config", "check"]);
    assert!(said.contains("STEAD_DURABILITY says"), "{said}");
    let said = file("listen = \"0.0.0.0:1\"").refused(place.path(), &["config", "check"]);
    assert!(said.contains("--behind-proxy"), "{said}");
    let said = file("dialect = [\"klingon\"]").refused(place.path(), &["config", "check"]);
    assert!(said.contains("klingon"), "{said}");
    let fine = file("behind_proxy = true\nlisten = \"0.0.0.0:1\"").run(place.path(), &["config", "check"]);
    assert!(fine.status.success());
}

#[test]
fn a_server_is_set_by_its_file_and_another_command_only_by_one_that_is_named() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("config/stead/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "listen = \"127.0.0.1:0\"\nprincipal = \"agent:filed\"\nprint_token = false\n")
        .unwrap();
    let server = Server::start_at(place, &[], &[("STEAD_HOST", "files.example")]);
    assert_eq!(server.get("/health", "").0, 200);
    server.end();
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(place.path().join("elsewhere")).unwrap();
    std::fs::write(place.path().join("elsewhere/x.txt"), "x\n").unwrap();
    let file = format!("workspace = {:?}\nstate = \"../state\"\n", place.path().join("elsewhere"));
    let told = Told { file: &file, ..NOTHING };
    assert_eq!(told.run(place.path(), &["read", "x.txt"]).status.code(), Some(1));
    let named = told.run(place.path(), &["read", "x.txt", "--config", "stead/config.toml"]);
    assert_eq!(String::from_utf8_lossy(&named.stdout), "x\n", "{}", String::from_utf8_lossy(&named.stderr));
}

#[test]
fn the_examples_are_understood() {
    let contrib = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib");
    let place = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(contrib.join("config.toml")).unwrap();
    let shown = Told { file: &text, ..NOTHING }.shown(place.path());
    assert_eq!(setting(&shown, "workspace")["value"], "/srv/project");
    // What is commented out is there to be used.
    let whole: String = text
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(rest) if rest.contains(" = ") && !rest.starts_with("listen") => format!("{rest}\n"),
            Some(_) | None => format!("{line}\n"),
        })
        .collect();
    let shown = Told { file: &whole, ..NOTHING }.shown(place.path());
    assert_eq!(setting(&shown, "tls_key")["origin"], "file");
    // The container is set by variables, each of them one of ours.
    let container = std::fs::read_to_string(contrib.join("Containerfile")).unwrap();
    let line = container.lines().find_map(|line| line.strip_prefix("ENV ")).unwrap();
    for (name, _) in line.split(' ').filter_map(|pair| pair.split_once('=')) {
        let name = name.strip_prefix("STEAD_").unwrap().to_lowercase();
        setting(&shown, &name);
    }
    let unit = std::fs::read_to_string(contrib.join("stead.service")).unwrap();
    assert!(unit.contains("stead serve --config /etc/stead/config.toml"));
}

#[test]
fn the_reference_is_current() {
    let place = tempfile::tempdir().unwrap();
    let output = NOTHING.run(place.path(), &["config", "reference"]);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/configuration.md");
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(
        std::fs::read_to_string(path).is_ok_and(|kept| kept == printed),
        "run: cargo run -- config reference > docs/reference/configuration.md"
    );
}
