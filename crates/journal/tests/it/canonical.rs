//! Tests that random entries survive encoding as canonical bytes and as JSON, and that random bytes do not break the
//! decoder.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use stead_journal::{
    ChangeKind, Digest, JournalEntry, JournalEntryCaller, JournalEntryDetails, JournalEntryRelation,
    JournaledCallOutcomeStatus, PathState, RecordedChange, RecordedMove, RecordedRowDigest, RecordedUsage,
    decode_entry, encode_entry,
};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-z:/._-]{1,24}", "\\PC{0,12}", any::<String>()]
}

fn any_path_state() -> impl Strategy<Value = PathState> {
    prop_oneof![
        Just(PathState::Absent),
        (any::<[u8; 32]>(), any::<u64>(), any::<u32>()).prop_map(|(version, size, mode)| PathState::File {
            version: Digest(version),
            size,
            mode
        }),
        any::<u32>().prop_map(|mode| PathState::Directory { mode }),
        text().prop_map(|target| PathState::Link { target }),
        option::of(any::<u64>()).prop_map(|size| PathState::Unknown { size }),
        (option::of(text()), any::<u64>(), any::<u64>(), option::of(any::<[u8; 32]>())).prop_map(
            |(trash, files, bytes, version)| PathState::Tree { trash, files, bytes, version: version.map(Digest) }
        ),
    ]
}

fn any_change() -> impl Strategy<Value = RecordedChange> {
    let kind = prop_oneof![
        Just(ChangeKind::Create),
        Just(ChangeKind::Modify),
        Just(ChangeKind::Remove),
        Just(ChangeKind::Rename),
        Just(ChangeKind::Copy),
        Just(ChangeKind::MakeDir),
        Just(ChangeKind::MakeLink),
        Just(ChangeKind::SetMode),
        Just(ChangeKind::Rescan),
    ];
    (text(), kind, option::of(text()), any_path_state(), any_path_state())
        .prop_map(|(path, kind, to, before, after)| RecordedChange { path, kind, to, before, after })
}

fn any_relation() -> impl Strategy<Value = JournalEntryRelation> {
    prop_oneof![
        Just(JournalEntryRelation::None),
        any::<u64>().prop_map(JournalEntryRelation::Undoes),
        any::<u64>().prop_map(JournalEntryRelation::Redoes),
        text().prop_map(JournalEntryRelation::Restores),
        any::<u64>().prop_map(JournalEntryRelation::Amends),
    ]
}

fn any_details() -> impl Strategy<Value = JournalEntryDetails> {
    let digest = || any::<[u8; 32]>().prop_map(Digest);
    let moved = (text(), text()).prop_map(|(from, to)| RecordedMove { from, to });
    let usage = (any::<u64>(), any::<u64>()).prop_map(|(bytes, files)| RecordedUsage { bytes, files });
    let row = (text(), text(), digest()).prop_map(|(family, id, sha256)| RecordedRowDigest { family, id, sha256 });
    let lists = (vec(moved, 0..3), vec(text(), 0..3), vec(row, 0..3));
    let details = (lists, option::of(digest()), option::of(any::<u64>()), option::of(digest()), option::of(usage))
        .prop_map(|((moved, buffers, rows), unchanged, applied_by_editor, call, usage_before)| JournalEntryDetails {
            moved,
            unchanged,
            buffers,
            applied_by_editor,
            call,
            usage_before,
            rows,
        });
    prop_oneof![Just(JournalEntryDetails::default()), details]
}

fn any_entry() -> impl Strategy<Value = JournalEntry> {
    let decision = prop_oneof![
        Just(JournaledCallOutcomeStatus::Allowed),
        Just(JournaledCallOutcomeStatus::Refused),
        Just(JournaledCallOutcomeStatus::Failed)
    ];
    let caller = (text(), option::of(text()), text(), text()).prop_map(|(principal, on_behalf_of, session, face)| {
        JournalEntryCaller { principal, on_behalf_of, session, protocol: face }
    });
    let asked = (any::<u64>(), any::<i64>(), caller, option::of(text()), (text(), option::of(text())), text());
    let judged = (any::<u64>(), option::of(text()), option::of(text()));
    let done = (decision, option::of(text()), judged, vec(any_change(), 0..6), any_relation());
    (asked, done, any::<u64>(), any::<u64>(), any_details()).prop_map(|(asked, done, bytes, duration_us, details)| {
        let (number, time_ms, caller, request, (operation, tool), arguments) = asked;
        let (decision, reason, (policy, tier, approval), changes, link) = done;
        JournalEntry {
            number,
            time_ms,
            caller,
            request_id: request,
            operation,
            tool,
            arguments,
            decision,
            reason,
            policy_version: policy,
            tier,
            approval,
            changes,
            relation: link,
            bytes,
            duration_us,
            details,
        }
    })
}

proptest! {
    #[test]
    fn canonical_bytes_round_trip(entry in any_entry()) {
        let bytes = encode_entry(&entry);
        prop_assert_eq!(decode_entry(&bytes).unwrap(), entry);
    }

    #[test]
    fn json_round_trips_to_the_same_bytes(entry in any_entry()) {
        let json = serde_json::to_string(&entry).unwrap();
        let again: JournalEntry = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(encode_entry(&again), encode_entry(&entry));
    }

    #[test]
    fn changed_bytes_never_decode_to_the_same_entry(
        entry in any_entry(),
        place in any::<prop::sample::Index>(),
        mask in 1_u8..,
    ) {
        let mut bytes = encode_entry(&entry);
        let place = place.index(bytes.len());
        bytes[place] ^= mask;
        if let Ok(other) = decode_entry(&bytes) {
            prop_assert_eq!(encode_entry(&other), bytes);
            prop_assert_ne!(other, entry);
        }
    }

    #[test]
    fn random_bytes_never_panic_the_decoder(mut bytes in vec(any::<u8>(), 0..400), known in 0_u8..4) {
        if let Some(format) = bytes.first_mut() {
            *format = stead_journal::FORMAT + known;
        }
        if let Ok(entry) = decode_entry(&bytes) {
            prop_assert_eq!(encode_entry(&entry), bytes);
        }
    }
}

#[test]
fn json_rejects_unknown_fields() {
    let json = serde_json::to_string(&crate::sample::entry(1)).unwrap();
    let added = json.replacen('{', r#"{"approved_by":"user:ann","#, 1);
    assert!(serde_json::from_str::<JournalEntry>(&json).is_ok());
    assert!(serde_json::from_str::<JournalEntry>(&added).is_err());
    let within = json.replacen(r#""mode":"#, r#""owner":0,"mode":"#, 1);
    assert_ne!(within, json);
    assert!(serde_json::from_str::<JournalEntry>(&within).is_err());
}
