//! Checks that the krux scenarios cover every error, recovery action and usage pattern of the krux definition.

use std::collections::BTreeSet;

use serde_json::json;
use stead_protocols::{
    definition::{DialectDefinition, ToolDefinition, ToolErrorDefinition},
    dialect::DialectSet,
};
use testkit::krux_scenario::{self, KruxCapabilityScenarios, KruxScenarioStep};

use crate::scenarios::krux_dialects;

fn krux_definition(dialects: &DialectSet) -> &DialectDefinition {
    dialects.iter().next().unwrap().definition()
}

fn suite_steps(suite: &KruxCapabilityScenarios) -> impl Iterator<Item = &KruxScenarioStep> {
    suite.scenarios.iter().flat_map(|scenario| &scenario.steps)
}

fn recoveries_tried<'s>(steps: impl Iterator<Item = &'s KruxScenarioStep>, kind: &str) -> BTreeSet<&'s str> {
    let (mut actions, mut occurs) = (BTreeSet::new(), false);
    for step in steps {
        // A step with `asks` waits for an approval and then retries the call.
        let pending = kind == "ApprovalPending" && step.asks.is_some();
        if pending {
            actions.extend(["wait", "retry"]);
        }
        if step.error.as_deref() == Some(kind) {
            actions.extend(step.follow.iter().map(String::as_str));
        }
        occurs |= pending || step.error.as_deref() == Some(kind);
    }
    assert!(occurs, "{kind} has no step");
    actions
}

fn require_recovery(tried: &BTreeSet<&str>, error: &ToolErrorDefinition, capability: &str) {
    assert!(!error.recoveries.is_empty(), "{capability}: {} has no recovery action", error.kind);
    for recovery in &error.recoveries {
        assert!(tried.contains(recovery.action.as_str()), "{capability}: {} {}", error.kind, recovery.action);
    }
}

#[test]
fn every_capability_has_a_suite_with_a_success() {
    let (dialects, suites) = (krux_dialects(), krux_scenario::load_suites());
    let covered: BTreeSet<&str> = suites.iter().map(|suite| suite.capability.as_str()).collect();
    let declared: BTreeSet<&str> =
        krux_definition(&dialects).operations.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(covered, declared);
    for suite in &suites {
        let name = &suite.capability;
        assert!(suite_steps(suite).any(|step| step.call == *name && step.error.is_none()), "{name}");
    }
}

#[test]
fn every_declared_error_and_recovery_is_tried() {
    let (dialects, suites) = (krux_dialects(), krux_scenario::load_suites());
    let definition = krux_definition(&dialects);
    for operation in &definition.operations {
        let suite = suites.iter().find(|suite| suite.capability == operation.name).unwrap();
        for error in &operation.errors {
            let steps = suite_steps(suite).filter(|step| step.call == operation.name);
            require_recovery(&recoveries_tried(steps, &error.kind), error, &operation.name);
        }
    }
    for error in &definition.errors {
        // A capability that declares the error itself has its own recovery actions, which do not try the shared ones.
        let shared = suites.iter().flat_map(suite_steps).filter(|step| {
            let operation = definition.find_tool(&step.call);
            operation.is_some_and(|tool| tool.errors.iter().all(|declared| declared.kind != error.kind))
        });
        require_recovery(&recoveries_tried(shared, &error.kind), error, "all");
    }
}

fn capabilities_in_steps<'d>(definition: &'d DialectDefinition, steps: &[String]) -> Vec<&'d str> {
    let words = steps.iter().flat_map(|step| step.split_whitespace());
    words.filter_map(|word| definition.find_tool(word)).map(|operation| operation.name.as_str()).collect()
}

/// Checks that the scenario of a usage pattern makes the given calls in order; other calls may come between them.
fn check_pattern_calls(operation: &ToolDefinition, suite: &KruxCapabilityScenarios, description: &str, calls: &[&str]) {
    let scenario = suite.scenarios.iter().find(|scenario| scenario.pattern.as_deref() == Some(description));
    let Some(scenario) = scenario else { panic!("{}: no scenario for '{description}'", operation.name) };
    let mut steps = scenario.steps.iter();
    for call in calls {
        assert!(
            steps.any(|step| step.call == *call && step.error.is_none()),
            "{}: '{description}' does not call {call}",
            operation.name
        );
    }
}

#[test]
fn every_usage_pattern_has_a_scenario() {
    let (dialects, suites) = (krux_dialects(), krux_scenario::load_suites());
    let definition = krux_definition(&dialects);
    for operation in &definition.operations {
        let suite = suites.iter().find(|suite| suite.capability == operation.name).unwrap();
        for pattern in &operation.patterns {
            let calls = capabilities_in_steps(definition, &pattern.steps);
            assert!(!calls.is_empty(), "{}: '{}' names no call", operation.name, pattern.description);
            check_pattern_calls(operation, suite, &pattern.description, &calls);
        }
        for scenario in &suite.scenarios {
            let known = |name: &String| operation.patterns.iter().any(|pattern| pattern.description == *name);
            assert!(scenario.pattern.as_ref().is_none_or(known), "{}: {}", operation.name, scenario.title);
        }
    }
}

#[test]
fn everything_documented_is_declared() {
    let (dialects, suites) = (krux_dialects(), krux_scenario::load_suites());
    let definition = krux_definition(&dialects);
    let documented = krux_scenario::documented_capabilities();
    assert_eq!(documented.len(), 12);
    for document in &documented {
        let name = &document.name;
        let operation = definition.find_tool(name).unwrap_or_else(|| panic!("{name} is missing"));
        let suite = suites.iter().find(|suite| suite.capability == *name).unwrap();
        assert_eq!(json!(operation.tier.unwrap_or_default()), json!(document.tier), "{name}");
        assert_eq!(operation.version.as_ref(), Some(&document.version), "{name}");
        for input in &document.inputs {
            let declared = operation.inputs.iter().find(|known| known.name == input.name);
            let declared = declared.unwrap_or_else(|| panic!("{name}: no input {}", input.name));
            assert_eq!(declared.required, input.required, "{name}: {}", input.name);
            if input.default.is_some() {
                assert_eq!(declared.default, input.default, "{name}: {}", input.name);
            }
        }
        for output in &document.outputs {
            assert!(operation.outputs.iter().any(|known| known.name == *output), "{name}: no output {output}");
        }
        for (kind, actions) in &document.errors {
            let declared = operation.errors.iter().find(|error| error.kind == *kind);
            let declared = declared.unwrap_or_else(|| panic!("{name}: no error {kind}"));
            for action in actions {
                assert!(declared.recoveries.iter().any(|known| known.action == *action), "{name}: {kind} {action}");
            }
        }
        for tag in &document.tags {
            assert!(operation.tags.contains(tag), "{name}: no tag {tag}");
        }
        let reversible: Vec<bool> = operation.side_effects.iter().map(|effect| effect.reversible).collect();
        assert_eq!(reversible.len(), document.reversible.len(), "{name}");
        for (pattern, calls) in operation.patterns.iter().zip(&document.patterns) {
            let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
            check_pattern_calls(operation, suite, &pattern.description, &calls);
        }
        assert!(operation.patterns.len() >= document.patterns.len(), "{name}");
    }
}
