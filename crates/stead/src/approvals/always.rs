//! "Always for this scope": a rule for the policy file, seen by the person before it is written. It is put before the
//! rule that asked, because within a layer the first one that fits decides.

use engine::{Caller, Failure, Kind, Workspace};
use serde_json::{Map, Value};

use crate::{
    show::{self, Problem},
    time,
    wire::Opened,
};

/// Whether the person has agreed to the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Agreed {
    /// In so many words, on the command line.
    Already,
    /// Not yet.
    Ask,
}

/// Most places of a plan that become a rule by themselves.
const PLACES_MAX: usize = 50;

/// Shows the rule, asks, and writes it.
pub(super) fn write(
    opened: &Opened,
    caller: &Caller,
    approval: &Map<String, Value>,
    paths: &[String],
    agreed: Agreed,
) -> Result<(), Problem> {
    let word = |name: &str| approval.get(name).and_then(Value::as_str).unwrap_or_default();
    let text = opened.local.policy_text()?.unwrap_or_default();
    let cause = approval.get("plan").map(|plan| &plan["cause"]);
    let fact = |name: &str| cause.map(|cause| &cause[name]);
    if fact("by").and_then(Value::as_str) == Some("rate") {
        return Err(show::usage(
            "no rule lifts a limit of how often somebody may call; approve this once, or change the rate in the policy",
        ));
    }
    let line = fact("line").and_then(Value::as_u64).and_then(|line| usize::try_from(line).ok());
    let header = header(&text, line)?;
    let places = if paths.is_empty() { places(approval)? } else { paths.to_vec() };
    let what = if word("tool").is_empty() { word("operation") } else { word("tool") };
    let when = time::iso_utc(opened.local.now_ms());
    let rule = format!(
        "# Written by {} on {when} for {}.\n{}\nname = {}\nprincipals = [{}]\noperations = [{}]\npaths = [{}]\ntier = \"autonomous\"\n",
        caller.principal,
        word("id"),
        header.table,
        quoted(&format!("always {what} ({})", word("id"))),
        quoted(word("principal")),
        quoted(what),
        places.iter().map(|place| quoted(place)).collect::<Vec<_>>().join(", "),
    );
    show::remark(&format!("this rule goes into {}:", opened.local.policy_file().display()));
    for line in rule.lines() {
        show::remark(&format!("  {line}"));
    }
    if agreed == Agreed::Ask {
        let answer = disk::terminal::ask("Write it? [y/N] ")
            .map_err(|_| show::usage("there is no terminal to ask at; pass --yes to agree"))?;
        if !["y", "Y", "yes"].contains(&answer.trim()) {
            return Err(show::usage("nothing was written and nothing was approved"));
        }
    }
    opened.local.write_policy(&inserted(&text, header.before, &rule))?;
    Ok(())
}

/// Where the rule goes.
struct Header {
    /// The table it is an element of.
    table: String,
    /// The line it is put before, counted from 0; at the end when there is none.
    before: Option<usize>,
}

/// The place before the rule that asked, given by its line; where none did, before every rule of the system layer.
fn header(text: &str, line: Option<usize>) -> Result<Header, Problem> {
    const SYSTEM: &str = "[[system.rules]]";
    let lines: Vec<&str> = text.lines().collect();
    let Some(line) = line else {
        let before = lines.iter().position(|line| line.trim_start().starts_with(SYSTEM));
        return Ok(Header { table: SYSTEM.to_owned(), before });
    };
    let above = lines.get(..line).unwrap_or(&lines);
    let found = above.iter().rposition(|line| line.trim_start().starts_with("[["));
    let table = found.and_then(|at| lines[at].trim().split_inclusive("]]").next());
    match (found, table) {
        (Some(at), Some(table)) if table.trim_end().ends_with(".rules]]") => {
            Ok(Header { table: table.trim().to_owned(), before: Some(at) })
        }
        (_, _) => {
            Err(Failure::new(Kind::BadRequest, "the rule that asked is not written as a table of its own")
                .hint("add the rule to the policy file by hand")
                .into())
        }
    }
}

fn inserted(text: &str, before: Option<usize>, rule: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let at = before.unwrap_or(lines.len());
    // A comment that stands right above a rule belongs to it.
    let commented = lines[..at].iter().rev().take_while(|line| line.trim_start().starts_with('#')).count();
    let at = at - commented;
    let mut whole: Vec<String> = lines[..at].iter().map(|line| (*line).to_owned()).collect();
    whole.extend(rule.lines().map(str::to_owned));
    if at < lines.len() {
        whole.push(String::new());
    }
    whole.extend(lines[at..].iter().map(|line| (*line).to_owned()));
    whole.join("\n") + "\n"
}

/// The places of a plan as patterns that mean just them.
fn places(approval: &Map<String, Value>) -> Result<Vec<String>, Problem> {
    let changes = approval.get("plan").and_then(|plan| plan["changes"].as_array());
    let named = changes.into_iter().flatten().flat_map(|change| [&change["path"], &change["to"]]);
    let mut places: Vec<String> = named.filter_map(Value::as_str).map(literal).collect();
    places.sort();
    places.dedup();
    if places.is_empty() || places.len() > PLACES_MAX {
        return Err(show::usage("say with --paths which places the rule is about"));
    }
    Ok(places)
}

/// A path as a pattern that fits nothing else. One without a slash would be a name at any depth.
fn literal(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len() + 1);
    if !path.contains('/') {
        pattern.push('/');
    }
    for c in path.chars() {
        if "*?[]{}\\".contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// A string as TOML has it. JSON's escapes are among TOML's.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_goes_before_the_one_that_asked() {
        let text = "[system]\ndefault = \"notify\"\n\n# about a\n[[system.rules]]\ntier = \"blocked\"\n\n[[agent.\"agent:x\".rules]]\nname = \"b\"\ntier = \"approval_required\"\n";
        let own = header(text, Some(8)).unwrap();
        assert_eq!((own.table.as_str(), own.before), ("[[agent.\"agent:x\".rules]]", Some(7)));
        let built_in = header(text, None).unwrap();
        assert_eq!((built_in.table.as_str(), built_in.before), ("[[system.rules]]", Some(4)));
        let whole = inserted(text, built_in.before, "[[system.rules]]\ntier = \"autonomous\"\n");
        assert!(whole.find("autonomous").unwrap() < whole.find("# about a").unwrap(), "{whole}");
        assert!(engine::Policy::parse(&whole).is_ok(), "{whole}");
        assert!(engine::Policy::parse(&inserted("", None, "[[system.rules]]\ntier = \"notify\"\n")).is_ok());
    }

    #[test]
    fn a_path_fits_only_itself() {
        assert_eq!(literal("a/[b]*.rs"), "a/\\[b\\]\\*.rs");
        assert_eq!(literal("a.rs"), "/a.rs");
    }
}
