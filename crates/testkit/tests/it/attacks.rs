//! The attack corpus on the engine, with both resolvers, and the controls that it must catch.

use std::io;

use disk::Resolver;
use testkit::attack::{
    Case, Control, Ending, EngineSubject, Group, Naive, Namespace, Opening, Report, Subject, Suite, Verdict,
    Where, groups, in_a_namespace, matrix, needs, run,
};

use crate::walled::behind_a_wall;

/// Both ways of resolving.
const BOTH: &[Resolver] = &[Resolver::Kernel, Resolver::Walker];
/// How many of the cases that must be refused have to fail on a server that only joins paths.
const BITE_PERCENT_MIN: usize = 95;

fn group(name: &str) -> Group {
    groups().unwrap().into_iter().find(|group| group.group == name).unwrap()
}

fn open_engine(opening: &Opening) -> io::Result<Box<dyn Subject>> {
    EngineSubject::open(opening)
}

const ENGINE: Suite<'_> = Suite { subject: "engine", opener: &open_engine, resolvers: BOTH };

/// The cases of a group that run here.
fn asked(group: &Group) -> Vec<Case> {
    ENGINE.cases(group, Where::Here, &mut Report::default()).unwrap()
}

/// Runs a group on the engine with both resolvers; every fault is shown before the test fails.
fn hold(group: &Group, place: Where) {
    let Report { ran, not_run, wrong } = ENGINE.run(group, place).unwrap();
    for line in not_run {
        eprintln!("NOT RUN: {line}");
    }
    println!("{}: {ran} cases, {} resolvers", group.group, BOTH.len());
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

macro_rules! groups_hold {
    ($($test:ident = $name:literal;)+) => {
        $(#[test] fn $test() {
            if !behind_a_wall(concat!("attacks::", stringify!($test))) {
                return;
            }
            hold(&group($name), Where::Here);
        })+

        /// Every group of the corpus has its test.
        #[test]
        fn no_group_is_forgotten() {
            let tested = [$($name),+];
            let found: Vec<String> = groups().unwrap().into_iter().map(|group| group.group).collect();
            assert_eq!(found, tested);
        }
    };
}

groups_hold! {
    traversal = "traversal";
    absolute = "absolute";
    encoding = "encoding";
    nul_and_length = "nul-length";
    symlink = "symlink";
    dangling = "dangling";
    trailing = "trailing";
    magic = "magic";
    special = "special";
    hardlink = "hardlink";
    mount = "mount";
    names = "names";
    protected = "protected";
    moves = "moves";
    race = "race";
    output = "output";
    locks = "locks";
    quota = "quota";
    audit = "audit";
    undo = "undo";
}

#[test]
fn every_operation_by_every_way_out() {
    if !behind_a_wall("attacks::every_operation_by_every_way_out") {
        return;
    }
    hold(&matrix().unwrap(), Where::Here);
}

#[test]
fn mounted() {
    match in_a_namespace("attacks::mounted").unwrap() {
        Namespace::Inside => {
            for group in groups().unwrap() {
                hold(&group, Where::Mounted);
            }
        }
        Namespace::Child(output) => {
            let said = String::from_utf8_lossy(&output.stdout);
            let cried = String::from_utf8_lossy(&output.stderr);
            println!("{said}");
            assert!(output.status.success() && said.contains("1 passed"), "{said}{cried}");
        }
        Namespace::None => {
            for group in groups().unwrap() {
                for case in ENGINE.cases(&group, Where::Mounted, &mut Report::default()).unwrap() {
                    eprintln!("NOT RUN: {}: this machine gives us no mount namespace", case.id);
                }
            }
        }
    }
}

/// What the data promises about itself.
#[test]
fn the_corpus_is_sound() {
    let mut groups = groups().unwrap();
    groups.push(matrix().unwrap());
    let mut ids = std::collections::BTreeSet::new();
    let mut count = 0;
    for group in &groups {
        for case in &group.cases {
            assert!(ids.insert(case.id.clone()), "{} is there twice", case.id);
            needs(group, case).unwrap();
            count += 1;
            for code in case.expect.kind.list() {
                let kind = engine::Kind::ALL.iter().find(|kind| kind.code() == code);
                let Some(kind) = kind else {
                    assert_eq!((code, case.only.is_some()), ("protocol", true), "{}: {code}", case.id);
                    continue;
                };
                let fits = match case.expect.result {
                    Ending::Deny => kind.fault() == engine::Fault::Refusal,
                    Ending::Error => kind.fault() != engine::Fault::Refusal,
                    Ending::Ok => false,
                    Ending::Safe => true,
                };
                assert!(fits, "{}: {code} does not fit {:?}", case.id, case.expect.result);
            }
        }
        for waiting in &group.waiting {
            assert!(ids.insert(waiting.id.clone()), "{} is there twice", waiting.id);
            println!("WAITS for {}: {}: {}", waiting.until, waiting.id, waiting.about);
        }
    }
    assert!(count >= 250, "{count} cases");
    println!("{count} cases, {} waiting", ids.len() - count);
}

/// Each case that must be refused fails on a server that joins the root and the spelling.
#[test]
fn the_corpus_bites() {
    if !behind_a_wall("attacks::the_corpus_bites") {
        return;
    }
    let mut groups = groups().unwrap();
    groups.push(matrix().unwrap());
    let (mut denied, mut bitten, mut harmed) = (0, 0, 0);
    let mut toothless = Vec::new();
    for group in &groups {
        for case in asked(group).iter().filter(|case| case.expect.result == Ending::Deny) {
            let verdict = control(group, case, Control::Join);
            denied += 1;
            bitten += usize::from(!verdict.passed());
            harmed += usize::from(verdict.harmed());
            match (&case.cannot_bite, verdict.passed()) {
                (Some(why), true) => println!("CANNOT BITE: {}: {why}", case.id),
                (Some(_), false) => toothless.push(format!("{} bites after all", case.id)),
                (None, true) => toothless.push(format!("{} does not bite", case.id)),
                (None, false) => {}
            }
        }
    }
    println!(
        "{denied} cases must be refused; {bitten} fail on plain path joining, {harmed} of them with harm done"
    );
    assert!(bitten * 100 >= denied * BITE_PERCENT_MIN, "{bitten} of {denied}");
    assert!(toothless.is_empty(), "{}", toothless.join("\n"));
}

/// The attackers are real: a server that only joins paths loses against them.
#[test]
fn the_races_bite() {
    if !behind_a_wall("attacks::the_races_bite") {
        return;
    }
    let group = group("race");
    let cases = asked(&group);
    let safe: Vec<&Case> = cases.iter().filter(|case| case.expect.result == Ending::Safe).collect();
    let unasked = ["undo", "redo", "history", "stat", "lock"];
    let askable = |case: &&&Case| !unasked.contains(&case.operation.as_str());
    // A control that puts a new directory in an attacker's way stops it; that is no answer, and no win either.
    let lost = |case: &&&Case| {
        let open = |opening: &Opening| Naive::open(opening, Control::Join);
        run(&group, case, &open, Resolver::Auto).is_ok_and(|verdict| verdict.harmed())
    };
    let bitten = safe.iter().filter(askable).filter(lost).count();
    println!("{bitten} of {} races are lost by plain path joining", safe.len());
    assert!(bitten * 2 >= safe.len(), "{bitten} of {}", safe.len());
}

/// What must not be decoded is caught on a server that decodes.
#[test]
fn the_corpus_catches_a_second_decoder() {
    if !behind_a_wall("attacks::the_corpus_catches_a_second_decoder") {
        return;
    }
    let mut toothless = Vec::new();
    let mut count = 0;
    for group in groups().unwrap() {
        for case in asked(&group).iter().filter(|case| case.control == Control::Decode) {
            let verdict = control(&group, case, Control::Decode);
            count += 1;
            if verdict.passed() != case.cannot_bite.is_some() {
                toothless.push(format!("{}: passed: {}", case.id, verdict.passed()));
            }
        }
    }
    assert!(count > 20 && toothless.is_empty(), "{count} cases\n{}", toothless.join("\n"));
}

fn control(group: &Group, case: &Case, control: Control) -> Verdict {
    let open = |opening: &Opening| Naive::open(opening, control);
    match run(group, case, &open, Resolver::Auto) {
        Ok(verdict) => verdict,
        // What it cannot be asked it cannot get wrong.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            Verdict { id: case.id.clone(), faults: Vec::new() }
        }
        Err(error) => panic!("{}: {error}", case.id),
    }
}
