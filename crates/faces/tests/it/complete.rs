//! That nothing declared of the capabilities is left untried, and nothing documented left undeclared: every error, every
//! way out of it, every pattern has a step that takes it.

use std::collections::BTreeSet;

use faces::{
    definition::{Definition, Operation, Recovery},
    dialect::{Dialects, Place},
};
use serde_json::json;
use testkit::{
    MemoryWorkspace,
    scenario::{self, Step, Suite},
};

fn krux() -> Dialects {
    let place = Place { workspace: MemoryWorkspace::ROOT.to_owned() };
    Dialects::choose(&["krux".to_owned()], &[], &place).unwrap()
}

fn definition(dialects: &Dialects) -> &Definition {
    dialects.iter().next().unwrap().definition()
}

fn steps(suite: &Suite) -> impl Iterator<Item = &Step> {
    suite.scenarios.iter().flat_map(|scenario| &scenario.steps)
}

/// The ways out of an error that these steps take.
fn taken<'s>(steps: impl Iterator<Item = &'s Step>, kind: &str) -> BTreeSet<&'s str> {
    let (mut taken, mut tried) = (BTreeSet::new(), false);
    for step in steps {
        // Who is asked is told that the call waits, waits, and tries again.
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

fn require(taken: &BTreeSet<&str>, error: &Recovery, whose: &str) {
    assert!(!error.recoveries.is_empty(), "{whose}: {} has no way out", error.kind);
    for way in &error.recoveries {
        assert!(taken.contains(way.action.as_str()), "{whose}: {} {}", error.kind, way.action);
    }
}

#[test]
fn every_capability_has_a_suite_with_a_success() {
    let (dialects, suites) = (krux(), scenario::suites());
    let covered: BTreeSet<&str> = suites.iter().map(|suite| suite.capability.as_str()).collect();
    let declared: BTreeSet<&str> =
        definition(&dialects).operations.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(covered, declared);
    for suite in &suites {
        let name = &suite.capability;
        assert!(steps(suite).any(|step| step.call == *name && step.error.is_none()), "{name}");
    }
}

#[test]
fn every_declared_error_and_way_out_is_tried() {
    let (dialects, suites) = (krux(), scenario::suites());
    let definition = definition(&dialects);
    for operation in &definition.operations {
        let suite = suites.iter().find(|suite| suite.capability == operation.name).unwrap();
        for error in &operation.errors {
            let own = steps(suite).filter(|step| step.call == operation.name);
            require(&taken(own, &error.kind), error, &operation.name);
        }
    }
    for error in &definition.errors {
        // Those that a capability has ways of its own for show nothing of the ways that all share.
        let shared = suites.iter().flat_map(steps).filter(|step| {
            let operation = definition.operation(&step.call);
            operation.is_some_and(|one| one.errors.iter().all(|own| own.kind != error.kind))
        });
        require(&taken(shared, &error.kind), error, "all");
    }
}

/// The capabilities that the steps of a pattern name, in their order.
fn named<'d>(definition: &'d Definition, steps: &[String]) -> Vec<&'d str> {
    let words = steps.iter().flat_map(|step| step.split_whitespace());
    words.filter_map(|word| definition.operation(word)).map(|operation| operation.name.as_str()).collect()
}

/// The scenario that plays a pattern makes these calls, in this order, maybe with others between them.
fn plays(operation: &Operation, suite: &Suite, description: &str, calls: &[&str]) {
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
fn every_pattern_is_played_call_by_call() {
    let (dialects, suites) = (krux(), scenario::suites());
    let definition = definition(&dialects);
    for operation in &definition.operations {
        let suite = suites.iter().find(|suite| suite.capability == operation.name).unwrap();
        for pattern in &operation.patterns {
            let calls = named(definition, &pattern.steps);
            assert!(!calls.is_empty(), "{}: '{}' names no call", operation.name, pattern.description);
            plays(operation, suite, &pattern.description, &calls);
        }
        for scenario in &suite.scenarios {
            let known = |name: &String| operation.patterns.iter().any(|one| one.description == *name);
            assert!(scenario.pattern.as_ref().is_none_or(known), "{}: {}", operation.name, scenario.title);
        }
    }
}

#[test]
fn everything_documented_is_declared() {
    let (dialects, suites) = (krux(), scenario::suites());
    let definition = definition(&dialects);
    let documented = scenario::documented();
    assert_eq!(documented.len(), 12);
    for document in &documented {
        let name = &document.name;
        let operation = definition.operation(name).unwrap_or_else(|| panic!("{name} is missing"));
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
            plays(operation, suite, &pattern.description, &calls);
        }
        assert!(operation.patterns.len() >= document.patterns.len(), "{name}");
    }
}
