//! Race test of the local workspace: every kind of path-swapping attack, with both path resolution methods.

#![expect(clippy::print_stderr, reason = "the figures of a run are part of it")]

use stead_disk::PathResolutionMethod;
use testkit::{
    race::{self, CallsToMakeByEachRaceVictim, RaceAttackKind},
    stress::StressLength,
};

/// The numbers of calls in a race test of one kind of attack with one path resolution method.
const CALLS_DEFAULT: CallsToMakeByEachRaceVictim = CallsToMakeByEachRaceVictim { reads: 9_500, changes: 1_700 };
const CALLS_LONG: CallsToMakeByEachRaceVictim = CallsToMakeByEachRaceVictim { reads: 150_000, changes: 50_000 };
/// The least number of calls in all race tests together.
const CALLS_MIN: u64 = 200_000;
const _: () =
    assert!((CALLS_DEFAULT.reads + CALLS_DEFAULT.changes) * 2 * RaceAttackKind::ALL.len() as u64 >= CALLS_MIN);

fn race_both_resolvers(shape: RaceAttackKind) {
    for resolver in [PathResolutionMethod::Kernel, PathResolutionMethod::Walker] {
        let report =
            race::run_race(shape, resolver, StressLength::from_environment().choose(CALLS_DEFAULT, CALLS_LONG))
                .unwrap();
        eprintln!("{shape:?} {resolver:?}: {report:?}");
    }
}

macro_rules! shapes {
    ($($name:ident = $shape:ident;)+) => {
        $(#[test] fn $name() { race_both_resolvers(RaceAttackKind::$shape); })+

        #[test]
        fn every_attack_kind_is_run() {
            let run = [$(RaceAttackKind::$shape),+];
            assert!(RaceAttackKind::ALL.iter().all(|shape| run.contains(shape)));
        }
    };
}

shapes! {
    directory_and_link = DirectoryLink;
    directory_and_absolute_link = DirectoryAbsoluteLink;
    file_and_link = LeafLink;
    file_and_pipe = Fifo;
    directory_moved_out_and_back = MovedOut;
    root_replaced_by_a_link = RootReplaced;
    links_planted_for_parents = PlantedParents;
    children_swapped_in_a_tree = SwappedChildren;
    link_inside_retargeted = RetargetedLink;
}

#[test]
fn naive_access_escapes_the_root() {
    for shape in [
        RaceAttackKind::DirectoryLink,
        RaceAttackKind::DirectoryAbsoluteLink,
        RaceAttackKind::LeafLink,
        RaceAttackKind::RootReplaced,
        RaceAttackKind::RetargetedLink,
    ] {
        let took = race::measure_control_escape(shape).unwrap();
        eprintln!("{shape:?}: realpath-then-open read a canary after {took:?}");
    }
}
