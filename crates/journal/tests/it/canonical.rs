//! Random entries through both encodings, and random bytes into the decoder.

use journal::{Caller, Change, ChangeKind, Decision, Digest, Entry, Link, State, decode, encode};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-z:/._-]{1,24}", "\\PC{0,12}", any::<String>()]
}

fn state() -> impl Strategy<Value = State> {
    prop_oneof![
        Just(State::Absent),
        (any::<[u8; 32]>(), any::<u64>(), any::<u32>()).prop_map(|(version, size, mode)| State::File {
            version: Digest(version),
            size,
            mode
        }),
        any::<u32>().prop_map(|mode| State::Directory { mode }),
        text().prop_map(|target| State::Link { target }),
        option::of(any::<u64>()).prop_map(|size| State::Unknown { size }),
        (option::of(text()), any::<u64>(), any::<u64>(), option::of(any::<[u8; 32]>())).prop_map(
            |(trash, files, bytes, version)| State::Tree {
                trash,
                files,
                bytes,
                version: version.map(Digest)
            }
        ),
    ]
}

fn change() -> impl Strategy<Value = Change> {
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
    (text(), kind, option::of(text()), state(), state()).prop_map(|(path, kind, to, before, after)| Change {
        path,
        kind,
        to,
        before,
        after,
    })
}

fn link() -> impl Strategy<Value = Link> {
    prop_oneof![
        Just(Link::None),
        any::<u64>().prop_map(Link::Undoes),
        any::<u64>().prop_map(Link::Redoes),
        text().prop_map(Link::Restores),
        any::<u64>().prop_map(Link::Amends),
    ]
}

fn entry() -> impl Strategy<Value = Entry> {
    let decision = prop_oneof![Just(Decision::Allowed), Just(Decision::Refused), Just(Decision::Failed)];
    let caller =
        (text(), option::of(text()), text(), text()).prop_map(|(principal, on_behalf_of, session, face)| {
            Caller { principal, on_behalf_of, session, face }
        });
    let asked =
        (any::<u64>(), any::<i64>(), caller, option::of(text()), (text(), option::of(text())), text());
    let judged = (any::<u64>(), option::of(text()), option::of(text()));
    let done = (decision, option::of(text()), judged, vec(change(), 0..6), link());
    (asked, done, any::<u64>(), any::<u64>()).prop_map(|(asked, done, bytes, duration_us)| {
        let (number, time_ms, caller, request, (operation, tool), arguments) = asked;
        let (decision, reason, (policy, tier, approval), changes, link) = done;
        Entry {
            number,
            time_ms,
            caller,
            request,
            operation,
            tool,
            arguments,
            decision,
            reason,
            policy,
            tier,
            approval,
            changes,
            link,
            bytes,
            duration_us,
        }
    })
}

proptest! {
    #[test]
    fn bytes_give_back_the_entry(entry in entry()) {
        let bytes = encode(&entry);
        prop_assert_eq!(decode(&bytes).unwrap(), entry);
    }

    #[test]
    fn json_gives_back_the_same_bytes(entry in entry()) {
        let json = serde_json::to_string(&entry).unwrap();
        let again: Entry = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(encode(&again), encode(&entry));
    }

    /// Whatever the decoder accepts has exactly that spelling: no two byte strings stand for one entry.
    #[test]
    fn a_changed_byte_is_refused_or_means_something_else(
        entry in entry(),
        place in any::<prop::sample::Index>(),
        mask in 1_u8..,
    ) {
        let mut bytes = encode(&entry);
        let place = place.index(bytes.len());
        bytes[place] ^= mask;
        if let Ok(other) = decode(&bytes) {
            prop_assert_eq!(encode(&other), bytes);
            prop_assert_ne!(other, entry);
        }
    }

    #[test]
    fn random_bytes_never_break_the_decoder(mut bytes in vec(any::<u8>(), 0..400), known in 0_u8..3) {
        if let Some(format) = bytes.first_mut() {
            *format = journal::FORMAT + known;
        }
        if let Ok(entry) = decode(&bytes) {
            prop_assert_eq!(encode(&entry), bytes);
        }
    }
}

#[test]
fn json_refuses_a_field_that_no_hash_covers() {
    let json = serde_json::to_string(&crate::sample::entry(1)).unwrap();
    let added = json.replacen('{', r#"{"approved_by":"user:ann","#, 1);
    assert!(serde_json::from_str::<Entry>(&json).is_ok());
    assert!(serde_json::from_str::<Entry>(&added).is_err());
    let within = json.replacen(r#""mode":"#, r#""owner":0,"mode":"#, 1);
    assert_ne!(within, json);
    assert!(serde_json::from_str::<Entry>(&within).is_err());
}
