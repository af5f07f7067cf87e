//! The attack corpus on the engine, with both resolvers, and the controls that it must catch.

use std::{io, process::Command};

use disk::Resolver;
use testkit::attack::{
    Case, Control, Ending, EngineSubject, Group, Naive, Opening, Subject, Verdict, groups, matrix,
    may_make_devices, needs, portions, run, run_together,
};

use crate::walled::behind_a_wall;

/// Both ways of resolving.
const BOTH: [Resolver; 2] = [Resolver::Kernel, Resolver::Walker];
/// Says to a test that it runs in a mount namespace of its own.
const MARK: &str = "STEAD_ATTACK_CHILD";
/// Runs only cases whose id starts with this, when it is set.
const FILTER: &str = "STEAD_ATTACK_ONLY";
/// How many of the cases that must be refused have to fail on a server that only joins paths.
const BITE_PERCENT_MIN: usize = 95;

/// Which cases of a group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    /// Those that run in this process as it is.
    Here,
    /// Those that need a mount namespace.
    Mounted,
}

fn group(name: &str) -> Group {
    groups().unwrap().into_iter().find(|group| group.group == name).unwrap()
}

/// The cases of a group that the engine is asked, without those this machine cannot build.
fn asked(group: &Group, place: Where) -> Vec<Case> {
    let devices = may_make_devices();
    let filter = std::env::var(FILTER).unwrap_or_default();
    let mut cases = group.cases.clone();
    cases.retain(|case| {
        let needs = needs(group, case).unwrap();
        let ours = case.only.as_ref().is_none_or(|only| only.subject == "engine");
        let fits = ours && needs.mounts == (place == Where::Mounted) && case.id.starts_with(&filter);
        if fits && needs.devices && !devices {
            eprintln!("NOT RUN: {}: this process may not make devices", case.id);
            return false;
        }
        fits
    });
    cases
}

fn open_engine(opening: &Opening) -> io::Result<Box<dyn Subject>> {
    EngineSubject::open(opening)
}

/// Runs cases on the engine with both resolvers; every fault is shown before the test fails.
fn hold(group: &Group, cases: &[Case]) {
    let mut wrong = Vec::new();
    for resolver in BOTH {
        for portion in portions(cases) {
            match run_together(group, portion, &open_engine, resolver) {
                Ok(verdicts) => wrong.extend(verdicts.iter().filter_map(|verdict| told(verdict, resolver))),
                Err(error) => wrong.push(format!("{} {resolver:?}: {error}", portion[0].id)),
            }
        }
    }
    println!("{}: {} cases, {} resolvers", group.group, cases.len(), BOTH.len());
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn told(verdict: &Verdict, resolver: Resolver) -> Option<String> {
    let faults: Vec<String> =
        verdict.faults.iter().map(|fault| format!("{:?}: {}", fault.weight, fault.what)).collect();
    (!verdict.passed()).then(|| format!("{} {resolver:?}: {}", verdict.id, faults.join("; ")))
}

macro_rules! groups_hold {
    ($($test:ident = $name:literal;)+) => {
        $(#[test] fn $test() {
            if !behind_a_wall(concat!("attacks::", stringify!($test))) {
                return;
            }
            let group = group($name);
            let cases = asked(&group, Where::Here);
            hold(&group, &cases);
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
}

#[test]
fn every_operation_by_every_way_out() {
    if !behind_a_wall("attacks::every_operation_by_every_way_out") {
        return;
    }
    let group = matrix().unwrap();
    hold(&group, &group.cases);
}

#[test]
fn mounted() {
    let wanted: Vec<(Group, Vec<Case>)> = groups()
        .unwrap()
        .into_iter()
        .map(|group| (group.clone(), asked(&group, Where::Mounted)))
        .filter(|(_, cases)| !cases.is_empty())
        .collect();
    if !in_a_namespace("attacks::mounted", &wanted) {
        return;
    }
    for (group, cases) in &wanted {
        hold(group, cases);
    }
}

/// Runs the rest of a test in a mount namespace of its own. True when the caller should go on.
fn in_a_namespace(test: &str, wanted: &[(Group, Vec<Case>)]) -> bool {
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let root = rustix::process::geteuid().is_root();
    let words: &[&str] =
        if root { &["unshare", "-m", "--propagation", "private"] } else { &["unshare", "-Urm"] };
    let probe = Command::new(words[0]).args(&words[1..]).arg("true").output().unwrap();
    if !probe.status.success() {
        for case in wanted.iter().flat_map(|(_, cases)| cases) {
            eprintln!("NOT RUN: {}: this machine gives us no mount namespace", case.id);
        }
        return false;
    }
    let binary = std::env::current_exe().unwrap();
    let output = Command::new(words[0])
        .args(&words[1..])
        .arg(binary)
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(MARK, "1")
        .output()
        .unwrap();
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    false
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
        for case in asked(group, Where::Here).iter().filter(|case| case.expect.result == Ending::Deny) {
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
    let cases = asked(&group, Where::Here);
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
        for case in asked(&group, Where::Here).iter().filter(|case| case.control == Control::Decode) {
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
