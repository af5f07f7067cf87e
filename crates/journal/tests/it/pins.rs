//! Compares stored and published formats of the journal with golden files: exports, canonical bytes, proofs, errors and
//! hashes. Every version must write and read the lines of an export as version 0.1.0 does. Only entries with details,
//! which 0.1.0 did not have, have one more field.

use stead_journal::{
    ChangeKind, ConsistencyProof, Digest, InclusionProof, JournalEntry, JournalEntryCaller, JournalEntryDetails,
    JournalEntryRelation, JournalExportLine, JournalIntegrityError, JournalIntegrityErrorKind, JournalKeyRecord,
    JournalKeyTrustChain, JournalTrustAnchors, JournaledCallOutcomeStatus, MerkleFrontier, MerkleLeafHash, PathState,
    RecordedChange, RecordedMove, RecordedRowDigest, RecordedUsage, chain_hash, decode_entry, encode_entry,
    genesis_hash, verify_export,
};

use crate::sample::{origin, signer};

const EXPORT: &str = include_str!("../pins/export.jsonl");
const EXPORT_WITH_DETAILS: &str = include_str!("../pins/export_with_details.jsonl");
const CANONICAL: &str = include_str!("../pins/canonical.txt");
const FAULTS: &str = include_str!("../pins/faults.json");
const PROOFS: &str = include_str!("../pins/proofs.json");

fn change(kind: ChangeKind, to: Option<&str>, before: PathState, after: PathState) -> RecordedChange {
    RecordedChange { path: "src/a.rs".into(), kind, to: to.map(str::to_owned), before, after }
}

fn file(text: &str) -> PathState {
    PathState::File { version: Digest::sha256(text.as_bytes()), size: text.len() as u64, mode: 0o644 }
}

/// The sample changes together cover every kind of change and every path state.
fn changes() -> Vec<RecordedChange> {
    let tree = |trash: Option<&str>, version: Option<Digest>| PathState::Tree {
        trash: trash.map(str::to_owned),
        files: 2,
        bytes: 30,
        version,
    };
    vec![
        change(ChangeKind::Create, None, PathState::Absent, file("new")),
        change(ChangeKind::Modify, None, file("old"), file("new")),
        change(ChangeKind::Remove, None, file("old"), tree(Some("t-1"), Some(Digest::sha256(b"old")))),
        change(ChangeKind::Rename, Some("src/b.rs"), tree(None, None), tree(None, None)),
        change(ChangeKind::Copy, Some("src/c.rs"), file("old"), file("old")),
        change(ChangeKind::MakeDir, None, PathState::Absent, PathState::Directory { mode: 0o755 }),
        change(ChangeKind::MakeLink, None, PathState::Absent, PathState::Link { target: "a.rs".into() }),
        change(ChangeKind::SetMode, None, PathState::Directory { mode: 0o700 }, PathState::Directory { mode: 0o755 }),
        change(ChangeKind::Rescan, None, PathState::Unknown { size: None }, PathState::Unknown { size: Some(7) }),
    ]
}

/// The sample journal entries together cover every relation and every decision.
fn entries() -> Vec<JournalEntry> {
    let links = [
        JournalEntryRelation::None,
        JournalEntryRelation::Undoes(1),
        JournalEntryRelation::Redoes(2),
        JournalEntryRelation::Restores("t-1".into()),
        JournalEntryRelation::Amends(3),
    ];
    let decisions =
        [JournaledCallOutcomeStatus::Allowed, JournaledCallOutcomeStatus::Refused, JournaledCallOutcomeStatus::Failed];
    let some = |text: &str, is_given: bool| is_given.then(|| text.to_owned());
    let entry = |(index, link): (usize, JournalEntryRelation)| {
        let is_first = index == 0;
        JournalEntry {
            number: index as u64 + 1,
            time_ms: 1_790_000_000_000,
            caller: JournalEntryCaller {
                principal: "agent:writer".into(),
                on_behalf_of: some("user:ann", is_first),
                session: "s-1".into(),
                protocol: "mcp".into(),
            },
            request_id: some("request-1", is_first),
            operation: "patch".into(),
            tool: some("comma/edit_file", is_first),
            arguments: r#"{"path":"src/a.rs"}"#.into(),
            decision: decisions[index % decisions.len()],
            reason: some("stale", !is_first),
            policy_version: 3,
            tier: some("approval_required", is_first),
            approval: some("ap-1", is_first),
            changes: if is_first { changes() } else { Vec::new() },
            relation: link,
            bytes: 12,
            duration_us: 950,
            details: JournalEntryDetails::default(),
        }
    };
    links.into_iter().enumerate().map(entry).collect()
}

/// The sample journal entries with details: all of them, and then each that the engine records on its own.
fn entries_with_details() -> Vec<JournalEntry> {
    let digest = |text: &str| Digest::sha256(text.as_bytes());
    let all = JournalEntryDetails {
        moved: vec![RecordedMove { from: "src/a.rs".into(), to: "src/b.rs".into() }],
        unchanged: Some(digest("same")),
        buffers: vec!["b1".into(), "b2".into()],
        applied_by_editor: Some(2),
        call: Some(digest("call")),
        usage_before: Some(RecordedUsage { bytes: 4_096, files: 300 }),
        rows: vec![RecordedRowDigest { family: "lease".into(), id: "src".into(), sha256: digest("row") }],
    };
    let details = [
        all.clone(),
        JournalEntryDetails { moved: all.moved, ..JournalEntryDetails::default() },
        JournalEntryDetails { unchanged: all.unchanged, ..JournalEntryDetails::default() },
        JournalEntryDetails { buffers: all.buffers, ..JournalEntryDetails::default() },
        JournalEntryDetails { applied_by_editor: all.applied_by_editor, ..JournalEntryDetails::default() },
    ];
    entries().into_iter().zip(details).map(|(entry, details)| JournalEntry { details, ..entry }).collect()
}

fn canonical() -> String {
    let with_tool = JournalEntry { tier: None, approval: None, ..entries().remove(0) };
    let entries = [entries(), vec![with_tool], entries_with_details()].concat();
    let line = |entry: &JournalEntry| {
        let bytes = encode_entry(entry);
        assert_eq!(decode_entry(&bytes).as_ref(), Ok(entry));
        bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n"
    };
    entries.iter().map(line).collect()
}

fn export(entries: Vec<JournalEntry>) -> String {
    let keys = vec![
        JournalKeyRecord::first_key(signer(1).verifying_key()),
        JournalKeyRecord::next(&signer(1), &origin(), signer(2).verifying_key(), 2),
    ];
    let ring = JournalKeyTrustChain::new(origin(), keys).unwrap();
    let mut lines = vec![JournalExportLine::header(&ring)];
    let (mut head, mut frontier, mut size) = (genesis_hash(&origin()), MerkleFrontier::new(), 0);
    for entry in entries {
        head = chain_hash(&head, &encode_entry(&entry));
        frontier.append(MerkleLeafHash::from_entry_hash(&head));
        size = entry.number;
        lines.push(JournalExportLine::Entry { hash: head, record: Box::new(entry) });
    }
    let time_ms = 1_790_000_000_000;
    let checkpoint = stead_journal::JournalCheckpoint { origin: origin(), size, root: frontier.root(), head, time_ms };
    lines.push(JournalExportLine::Checkpoint { note: checkpoint.sign(&signer(2)) });
    lines.push(JournalExportLine::End { size, head });
    lines.iter().map(|line| line.to_json().unwrap() + "\n").collect()
}

fn text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap() + "\n"
}

fn faults() -> String {
    use JournalIntegrityErrorKind as ErrorKind;
    let kinds = [
        ErrorKind::Missing,
        ErrorKind::Duplicate,
        ErrorKind::OutOfOrder,
        ErrorKind::HashMismatch,
        ErrorKind::Malformed,
        ErrorKind::RootMismatch,
        ErrorKind::HeadMismatch,
        ErrorKind::Fork,
        ErrorKind::Truncated,
        ErrorKind::BadSignature,
        ErrorKind::UnknownKey,
        ErrorKind::RetiredKey,
        ErrorKind::PrematureKey,
        ErrorKind::WrongOrigin,
        ErrorKind::BadCheckpoint,
        ErrorKind::Late,
        ErrorKind::TooManyAwaited,
        ErrorKind::IndexMismatch,
    ];
    let line = |kind| text(&JournalIntegrityError { kind, number: 7, checkpoint: Some(10) });
    kinds.map(line).concat()
}

fn proofs() -> String {
    let path = vec![Digest::sha256(b"sibling")];
    let inclusion = InclusionProof { index: 1, size: 2, path: path.clone() };
    let consistency = ConsistencyProof { from: 1, to: 2, path };
    text(&inclusion) + &text(&consistency)
}

#[track_caller]
#[expect(clippy::disallowed_methods, reason = "golden files are written on request")]
fn check(name: &str, golden: &str, text: &str) {
    if std::env::var_os("UPDATE_PINS").is_some() {
        return std::fs::write(format!("{}/tests/pins/{name}", env!("CARGO_MANIFEST_DIR")), text).unwrap();
    }
    assert_eq!(text, golden, "stored or published words differ from {name}");
}

#[test]
fn an_export_is_written_in_the_words_of_0_1_0() {
    check("export.jsonl", EXPORT, &export(entries()));
}

#[test]
fn details_are_one_more_field_of_an_exported_entry() {
    check("export_with_details.jsonl", EXPORT_WITH_DETAILS, &export(entries_with_details()));
    let report = verify_export(EXPORT_WITH_DETAILS.as_bytes(), &JournalTrustAnchors::default()).unwrap();
    assert_eq!((report.verification.size(), report.verification.covered_by_checkpoint), (5, 5));
}

#[test]
fn canonical_bytes_of_every_format_are_fixed() {
    check("canonical.txt", CANONICAL, &canonical());
    let formats: Vec<&str> = CANONICAL.lines().map(|line| &line[..2]).collect();
    assert_eq!(formats, ["03", "01", "01", "01", "01", "02", "04", "04", "04", "04", "04"]);
}

#[test]
fn an_export_of_0_1_0_is_read_and_verifies() {
    let report = verify_export(EXPORT.as_bytes(), &JournalTrustAnchors::default()).unwrap();
    assert_eq!((report.verification.size(), report.verification.covered_by_checkpoint), (5, 5));
}

#[test]
fn faults_and_proofs_are_written_in_the_words_of_0_1_0() {
    check("faults.json", FAULTS, &faults());
    check("proofs.json", PROOFS, &proofs());
}
