//! Adds an allowing rule to the policy file for `stead approvals approve --always`. The new rule goes before the rule
//! that required the approval, because the first matching rule of a policy layer decides.

use serde_json::{Map, Value, json};
use stead_engine::{Caller, Error, ErrorKind, UtcSecond, Workspace};

use crate::{
    limits::RULE_PATHS_MAX,
    open_workspace::CommandLineWorkspace,
    operation::call_operation,
    output::{self, CommandError},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NewPolicyRuleConfirmationMode {
    Given,
    AskAtTerminal,
}

pub(super) fn write_rule(
    opened: &CommandLineWorkspace,
    caller: &Caller,
    approval: &Map<String, Value>,
    paths: &[String],
    confirmation: NewPolicyRuleConfirmationMode,
) -> Result<(), CommandError> {
    let word = |name: &str| approval.get(name).and_then(Value::as_str).unwrap_or_default();
    let text = opened.local.policy_text()?.unwrap_or_default();
    let cause = approval.get("plan").map(|plan| &plan["cause"]);
    let fact = |name: &str| cause.map(|cause| &cause[name]);
    if fact("by").and_then(Value::as_str) == Some("rate") {
        return Err(output::usage_error(
            "a rule cannot lift a rate limit; approve this call once, or change the rate in the policy",
        ));
    }
    let line = fact("line").and_then(Value::as_u64).and_then(|line| usize::try_from(line).ok());
    let header = find_insert_point(&text, line)?;
    let patterns = if paths.is_empty() { rule_paths(approval)? } else { paths.to_vec() };
    let operation = if word("tool").is_empty() { word("operation") } else { word("tool") };
    let when = UtcSecond { unix_ms: opened.local.now_ms() };
    let rule = format!(
        "# Written by {} on {when} for {}.\n{}\nname = {}\nprincipals = [{}]\noperations = [{}]\npaths = [{}]\ntier = \"autonomous\"\n",
        caller.principal,
        word("id"),
        header.table_header,
        quote_toml_string(&format!("always {operation} ({})", word("id"))),
        quote_toml_string(word("principal")),
        quote_toml_string(operation),
        patterns.iter().map(|pattern| quote_toml_string(pattern)).collect::<Vec<_>>().join(", "),
    );
    output::print_note(&format!("this rule will be added to {}:", opened.local.policy_file().display()));
    for line in rule.lines() {
        output::print_note(&format!("  {line}"));
    }
    if confirmation == NewPolicyRuleConfirmationMode::AskAtTerminal {
        let answer = stead_disk::terminal::prompt("Write it? [y/N] ")
            .map_err(|_| output::usage_error("no terminal to ask for confirmation; pass --yes to confirm"))?;
        if !["y", "Y", "yes"].contains(&answer.trim()) {
            return Err(output::usage_error("not confirmed: no rule was written and the call was not approved"));
        }
    }
    let text = insert_rule(&text, header.before_line, &rule);
    Ok(call_operation(opened, caller, "policy.apply", json!({ "text": text })).map(drop)?)
}

struct PolicyRuleInsertPoint {
    table_header: String,
    /// The line number, counted from 0, before which the new rule goes; `None` stands for the end of the file.
    before_line: Option<usize>,
}

/// Finds the place for a new policy rule: before the rule at `line`, or before all system rules without `line`.
fn find_insert_point(text: &str, line: Option<usize>) -> Result<PolicyRuleInsertPoint, CommandError> {
    const SYSTEM_RULES_HEADER: &str = "[[system.rules]]";
    let lines: Vec<&str> = text.lines().collect();
    let Some(line) = line else {
        let before = lines.iter().position(|line| line.trim_start().starts_with(SYSTEM_RULES_HEADER));
        return Ok(PolicyRuleInsertPoint { table_header: SYSTEM_RULES_HEADER.to_owned(), before_line: before });
    };
    let above = lines.get(..line).unwrap_or(&lines);
    let found = above.iter().rposition(|line| line.trim_start().starts_with("[["));
    let table = found.and_then(|at| lines[at].trim().split_inclusive("]]").next());
    match (found, table) {
        (Some(at), Some(table)) if table.trim_end().ends_with(".rules]]") => {
            Ok(PolicyRuleInsertPoint { table_header: table.trim().to_owned(), before_line: Some(at) })
        }
        (_, _) => {
            Err(Error::new(ErrorKind::BadRequest, "the rule that required the approval is not a [[…rules]] table")
                .with_next_step("add the rule to the policy file by hand")
                .into())
        }
    }
}

fn insert_rule(text: &str, before: Option<usize>, rule: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let at = before.unwrap_or(lines.len());
    // A comment directly above a rule belongs to that rule, so the new rule goes above the comment.
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

fn rule_paths(approval: &Map<String, Value>) -> Result<Vec<String>, CommandError> {
    let changes = approval.get("plan").and_then(|plan| plan["changes"].as_array());
    let named = changes.into_iter().flatten().flat_map(|change| [&change["path"], &change["to"]]);
    let mut patterns: Vec<String> = named.filter_map(Value::as_str).map(escape_pattern).collect();
    patterns.sort();
    patterns.dedup();
    if patterns.is_empty() || patterns.len() > RULE_PATHS_MAX {
        return Err(output::usage_error(format!(
            "a rule can name 1 to {RULE_PATHS_MAX} paths, but the plan has {}; pass the paths of the rule with --paths",
            patterns.len()
        )));
    }
    Ok(patterns)
}

/// Returns a glob pattern that matches only `path`. The pattern for a name without a slash starts with a slash, because
/// a bare name matches at any depth.
fn escape_pattern(path: &str) -> String {
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

/// Formats a text as a TOML string; JSON escapes are valid in TOML.
fn quote_toml_string(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_is_inserted_before_the_rule_that_required_approval() {
        let text = "[system]\ndefault = \"notify\"\n\n# about a\n[[system.rules]]\ntier = \"blocked\"\n\n[[agent.\"agent:x\".rules]]\nname = \"b\"\ntier = \"approval_required\"\n";
        let from_line = find_insert_point(text, Some(8)).unwrap();
        assert_eq!((from_line.table_header.as_str(), from_line.before_line), ("[[agent.\"agent:x\".rules]]", Some(7)));
        let built_in = find_insert_point(text, None).unwrap();
        assert_eq!((built_in.table_header.as_str(), built_in.before_line), ("[[system.rules]]", Some(4)));
        let whole = insert_rule(text, built_in.before_line, "[[system.rules]]\ntier = \"autonomous\"\n");
        assert!(whole.find("autonomous").unwrap() < whole.find("# about a").unwrap(), "{whole}");
        assert!(stead_engine::Policy::parse(&whole).is_ok(), "{whole}");
        assert!(stead_engine::Policy::parse(&insert_rule("", None, "[[system.rules]]\ntier = \"notify\"\n")).is_ok());
    }

    #[test]
    fn escaped_path_matches_only_itself() {
        assert_eq!(escape_pattern("a/[b]*.rs"), "a/\\[b\\]\\*.rs");
        assert_eq!(escape_pattern("a.rs"), "/a.rs");
    }
}
