//! The attack corpus over MCP: the same cases, the same verdicts, the same oracles, asked of the binary as a client asks
//! it. What needs a clock that can be moved is asked of the engine only.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test tells what it counted and what it could not run"
)]

use std::{io, path::Path};

use testkit::attack::{
    Group, McpSubject, Namespace, Opening, Report, Subject, Suite, Where, groups, in_a_namespace, matrix,
};

fn open(opening: &Opening) -> io::Result<Box<dyn Subject>> {
    McpSubject::open(Path::new(env!("CARGO_BIN_EXE_stead")), opening)
}

const MCP: Suite<'_> = Suite { subject: "mcp", opener: &open, resolvers: &[disk::Resolver::Auto] };

fn hold(group: &Group, place: Where) {
    let Report { ran, not_run, wrong } = MCP.run(group, place).unwrap();
    for line in not_run {
        eprintln!("NOT RUN: {line}");
    }
    println!("{}: {ran} cases over MCP", group.group);
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

macro_rules! groups_hold {
    ($($test:ident = $name:literal;)+) => {
        $(#[test] fn $test() {
            let group = groups().unwrap().into_iter().find(|group| group.group == $name).unwrap();
            hold(&group, Where::Here);
        })+

        /// Every group of the corpus has its test.
        #[test]
        fn no_group_is_forgotten() {
            let found: Vec<String> = groups().unwrap().into_iter().map(|group| group.group).collect();
            assert_eq!(found, [$($name),+]);
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
                for case in MCP.cases(&group, Where::Mounted, &mut Report::default()).unwrap() {
                    eprintln!("NOT RUN: {}: this machine gives us no mount namespace", case.id);
                }
            }
        }
    }
}
