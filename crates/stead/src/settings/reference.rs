//! The table of settings as people read it: `docs/reference/configuration.md`.

use super::{Form, Scope, Setting};

const HEAD: &str = "\
# Configuration

Printed by `stead config reference`; a test keeps it current.

Every setting is a flag of `stead serve`, a key of the configuration file and a variable of the environment. A flag counts before
a variable, a variable before the file, the file before the default. What cannot stand beside a setting of a higher layer is left out.

The file is TOML: the one that `--config` or `STEAD_CONFIG` names, else `$XDG_CONFIG_HOME/stead/config.toml` (`~/.config` where that is
not set), else `/etc/stead/config.toml`. Paths in it are relative to its directory. A key that is not known stops the server, with the line
and the nearest name. What is repeatable is a list in the file; in a variable its values are separated by commas; a switch is `true` or `false`, also as
`--flag=false`.

The settings of the workspace hold for every command: by flag and by variable always, by the file where it is named, so that the
server's file never moves another command to another workspace. `stead config show` tells every value and where it came from;
`stead config check` says whether a server would start with them.
";

/// The document.
pub(crate) fn reference(settings: &[Setting]) -> String {
    let mut text = HEAD.to_owned();
    for (scope, title) in [(Scope::Serve, "The server"), (Scope::Workspace, "The workspace")] {
        text.push_str(&format!(
            "\n## {title}\n\n| key, flag, variable | what | default |\n| --- | --- | --- |\n"
        ));
        for setting in settings.iter().filter(|setting| setting.scope == scope) {
            let Setting { name, flag, variable, .. } = setting;
            let list = match setting.form {
                Form::Many if !setting.summary.contains("(repeatable") => " (repeatable)",
                Form::Many | Form::One | Form::Switch => "",
            };
            let choices = if setting.choices.is_empty() {
                String::new()
            } else {
                format!(": {}", quoted(&setting.choices))
            };
            // What the help says about defaults in prose stands there for people at a terminal.
            let summary = setting.summary.replace('|', "\\|");
            let usual = quoted(&setting.usual);
            text.push_str(&format!(
                "| `{name}`, `--{flag}`, `{variable}` | {summary}{choices}{list} | {usual} |\n"
            ));
        }
    }
    text
}

fn quoted(values: &[String]) -> String {
    values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ")
}
