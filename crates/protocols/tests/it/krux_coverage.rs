//! Coverage of the krux capabilities: every declared error, recovery and pattern is exercised by a scenario step.

use std::collections::BTreeSet;

use serde_json::json;
use stead_protocols::{
    definition::{DialectDefinition, ToolDefinition, ToolErrorDefinition},
    dialect::{DialectSet, WorkspaceLocation},
};
use testkit::{
    MemoryWorkspace,
    krux_scenario::{self, KruxScenarioStep, KruxScenarioSuite},
};

fn krux_dialects() -> DialectSet {
    let place = WorkspaceLocation { root: MemoryWorkspace::ROOT.to_owned() };
    DialectSet::from_names(&["krux".to_owned()], &[], &place).unwrap()
}

fn krux_definition(dialects: &DialectSet) -> &DialectDefinition {
    dialects.iter().next().unwrap().definition()
}

fn suite_steps(suite: &KruxScenarioSuite) -> impl Iterator<Item = &KruxScenarioStep> {
    suite.scenarios.iter().flat_map(|scenario| &scenario.steps)
}

/// The recoveries that these steps exercise.
fn recoveries_tried<'s>(steps: impl Iterator<Item = &'s KruxScenarioStep>, kind: &str) -> BTreeSet<&'s str> {
    let (mut taken, mut tried) = (BTreeSet::new(), false);
    for step in steps {
        // An approval-pending error, a wait and a retry.
        let pending = kind == "ApprovalPending" && step.asks.is_some();
        if pending {
            taken.extend(["wait", "retry"]);
        }
        if step.error.as_deref() == Some(kind) {
            taken.extend(step.follow.iter().map(String::as_str));
        }
        tried |= pending || step.error.as_deref() == Some(kind);
    }
    assert!(tried, "{kind} has no step");
    taken
}

fn require_recovery(taken: &BTreeSet<&str>, error: &ToolErrorDefinition, whose: &str) {
    assert!(!error.recoveries.is_empty(), "{whose}: {} has no way out", error.kind);
    for way in &error.recoveries {
        assert!(taken.contains(way.action.as_str()), "{whose}: {} {}", error.kind, way.action);
    }
}

#[test]
fn every_capability_has_a_suite_with_a_success() {
    let (dialects, suites) = (krux_dialects(), krux_scenario::load_suites());
    let covered: BTreeSet<&str> = suites.iter().map(|suite| suite.capability.as_str()).collect();
    let declared: BTreeSet<&str> = krux_definition(&dialects).operations.iter().map(|one| one.name.as_str()).collect();
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
            let own = suite_steps(suite).filter(|step| step.call == operation.name);
            require_recovery(&recoveries_tried(own, &error.kind), error, &operation.name);
        }
    }
    for error in &definition.errors {
        // Errors with recoveries of the capability itself do not exercise the shared ones.
        let shared = suites.iter().flat_map(suite_steps).filter(|step| {
            let operation = definition.find_tool(&step.call);
            operation.is_some_and(|one| one.errors.iter().all(|own| own.kind != error.kind))
        });
        require_recovery(&recoveries_tried(shared, &error.kind), error, "all");
    }
}

/// The capabilities of a pattern's steps, in order.
fn capabilities_in_steps<'d>(definition: &'d DialectDefinition, steps: &[String]) -> Vec<&'d str> {
    let words = steps.iter().flat_map(|step| step.split_whitespace());
    words.filter_map(|word| definition.find_tool(word)).map(|operation| operation.name.as_str()).collect()
}

/// Whether a scenario makes these calls in this order, possibly with others in between.
fn check_pattern_calls(operation: &ToolDefinition, suite: &KruxScenarioSuite, description: &str, calls: &[&str]) {
    let played = suite.scenarios.iter().find(|scenario| scenario.pattern.as_deref() == Some(description));
    let Some(played) = played else { panic!("{}: nothing plays '{description}'", operation.name) };
    let mut steps = played.steps.iter();
    for call in calls {
        assert!(
            steps.any(|step| step.call == *call && step.error.is_none()),
            "{}: '{description}' does not get to {call}",
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
            let known = |name: &String| operation.patterns.iter().any(|one| one.description == *name);
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
            let declared = operation.inputs.iter().find(|one| one.name == input.name);
            let declared = declared.unwrap_or_else(|| panic!("{name}: no input {}", input.name));
            assert_eq!(declared.required, input.required, "{name}: {}", input.name);
            if input.default.is_some() {
                assert_eq!(declared.default, input.default, "{name}: {}", input.name);
            }
        }
        for output in &document.outputs {
            assert!(operation.outputs.iter().any(|one| one.name == *output), "{name}: no output {output}");
        }
        for (kind, ways) in &document.errors {
            let declared = operation.errors.iter().find(|one| one.kind == *kind);
            let declared = declared.unwrap_or_else(|| panic!("{name}: no error {kind}"));
            for way in ways {
                assert!(declared.recoveries.iter().any(|one| one.action == *way), "{name}: {kind} {way}");
            }
        }
        for tag in &document.tags {
            assert!(operation.tags.contains(tag), "{name}: no tag {tag}");
        }
        let reversible: Vec<bool> = operation.side_effects.iter().map(|one| one.reversible).collect();
        assert_eq!(reversible.len(), document.reversible.len(), "{name}");
        for (pattern, calls) in operation.patterns.iter().zip(&document.patterns) {
            let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
            check_pattern_calls(operation, suite, &pattern.description, &calls);
        }
        assert!(operation.patterns.len() >= document.patterns.len(), "{name}");
    }
}
