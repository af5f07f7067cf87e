//! The race rig on this workspace: every shape of attack, both resolvers.

#![expect(clippy::print_stderr, reason = "the figures of a run are part of it")]

use disk::Resolver;
use testkit::{
    race::{self, Quota, Shape},
    rig::Length,
};

/// Calls of each shape and resolver in an ordinary run.
const ORDINARY: Quota = Quota { looks: 9_500, changes: 1_700 };
/// The same in a long one.
const LONG: Quota = Quota { looks: 150_000, changes: 50_000 };
/// What all shapes and both resolvers must add up to.
const CALLS_MIN: u64 = 200_000;
const _: () = assert!((ORDINARY.looks + ORDINARY.changes) * 2 * Shape::ALL.len() as u64 >= CALLS_MIN);

fn both(shape: Shape) {
    for resolver in [Resolver::Kernel, Resolver::Walker] {
        let report = race::run(shape, resolver, Length::wanted().of(ORDINARY, LONG)).unwrap();
        eprintln!("{shape:?} {resolver:?}: {report:?}");
    }
}

macro_rules! shapes {
    ($($name:ident = $shape:ident;)+) => {
        $(#[test] fn $name() { both(Shape::$shape); })+

        #[test]
        fn every_shape_is_run() {
            let run = [$(Shape::$shape),+];
            assert!(Shape::ALL.iter().all(|shape| run.contains(shape)));
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
fn the_usual_way_escapes() {
    for shape in [
        Shape::DirectoryLink,
        Shape::DirectoryAbsoluteLink,
        Shape::LeafLink,
        Shape::RootReplaced,
        Shape::RetargetedLink,
    ] {
        let took = race::control_escapes(shape).unwrap();
        eprintln!("{shape:?}: realpath-then-open read a canary after {took:?}");
    }
}
