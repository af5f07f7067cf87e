//! The attack corpus, which runs attack cases against a server, called the subject. Every attack case also checks
//! invariants, such as that nothing outside the workspace changes. Control servers that are unsafe on purpose show that
//! the cases detect an unsafe server.

mod attacker_threads;
mod case;
mod engine;
mod fixture;
mod http;
mod journal_check;
mod matrix;
mod mcp;
mod naive_server;
mod post_checks;
mod request_timer;
mod run;
mod setup_step;
mod snapshot;
mod subject;
mod suite;

pub use case::{
    AttackCase, AttackTestCaseGroup, ExpectedAttackResult, SkippedAttackCase, UnsafeControlServerKind, load_groups,
};
pub use engine::{EngineAttackSubject, read_journal};
pub use fixture::can_make_devices;
pub use http::{AttackHttpEndpointKind, HttpAttackSubject};
pub use matrix::{MATRIX_GROUP, load_matrix};
pub use mcp::McpAttackSubject;
pub use naive_server::NaiveServer;
pub use run::{
    AttackCaseDetectedFault, AttackCaseRequirements, AttackFindingSeverity, AttackVerdict, case_requirements, run_case,
    run_sharing_fixture, split_shareable,
};
pub use subject::{
    AttackSubject, AttackSubjectClockOrPurgeAction, AttackSubjectOpenFn, AttackSubjectReply, AttackSubjectRequest,
    SubjectJournal, SubjectJournalEntry, SubjectOptions,
};
pub use suite::{
    AttackCaseProcessIsolation, AttackSuiteRunner, AttackTestSuiteReport, TestMountNamespaceOutcome,
    run_in_mount_namespace,
};
