//! Renders `docs/reference/configuration.md`.

use super::{ConfigSetting, SettingForm, SettingScope};

const INTRODUCTION: &str = "\
# Configuration

Printed by `stead config reference`; a test keeps it current.

Every setting is a flag of `stead serve`, a key of the configuration file and an environment variable. A flag overrides a
variable, a variable overrides the file, and the file overrides the default. A setting also overrides conflicting settings of
lower layers.

The file is TOML. It is the one named by `--config` or `STEAD_CONFIG`; otherwise `$XDG_CONFIG_HOME/stead/config.toml`
(`~/.config` if that is not set); otherwise `/etc/stead/config.toml`. Paths in it are relative to its directory. An unknown key
stops the server; the error names the line and the nearest known key. A repeatable setting is a list in the file and a
comma-separated value in a variable. A switch is `true` or `false`, also as `--flag=false`.

Workspace settings apply to every command, as flags and as variables. From the file they apply to other commands only if
`--config` or `STEAD_CONFIG` names it, so that the server's file never moves another command to another workspace.
`stead config show` prints every value and its origin. `stead config check` reports whether a server would start with them.
";

pub(crate) fn settings_reference(settings: &[ConfigSetting]) -> String {
    let mut text = INTRODUCTION.to_owned();
    for (scope, title) in [(SettingScope::Serve, "Server"), (SettingScope::Workspace, "Workspace")] {
        text.push_str(&format!("\n## {title}\n\n| key, flag, variable | meaning | default |\n| --- | --- | --- |\n"));
        for setting in settings.iter().filter(|setting| setting.scope == scope) {
            let ConfigSetting { name, flag, variable, .. } = setting;
            let list = match setting.form {
                SettingForm::List if !setting.summary.contains("(repeatable") => " (repeatable)",
                SettingForm::List | SettingForm::Single | SettingForm::Switch => "",
            };
            let choices = if setting.choices.is_empty() {
                String::new()
            } else {
                format!(": {}", quote_values(&setting.choices))
            };
            let summary = setting.summary.replace('|', "\\|");
            let default = quote_values(&setting.default_values);
            text.push_str(&format!("| `{name}`, `--{flag}`, `{variable}` | {summary}{choices}{list} | {default} |\n"));
        }
    }
    text
}

fn quote_values(values: &[String]) -> String {
    values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ")
}
