//! The canonical bytes of a journal entry, over which its hash is computed.
//!
//! The canonical bytes are the format byte and then every field of [`JournalEntry`] in the order of declaration. Format
//! 1 omits the fields `tool`, `tier`, `approval` and `details`, format 2 omits the last three, and format 3 omits
//! `details`. An entry is encoded in the lowest format that has all its fields. A number is LEB128, a time is eight
//! big-endian bytes, and a text is its length and the UTF-8 bytes. An optional text is a byte 0 if it is absent, or a
//! byte 1 followed by the text. An enum value is a tag byte followed by the fields of its variant. The list of changes
//! is the number of changes followed by each change. [`decode_entry`] accepts exactly the output of [`encode_entry`],
//! and never allocates more than a small multiple of its input. A format of the canonical bytes never changes its enum
//! tags or its order of fields.

mod details;
mod primitives;

pub use primitives::JournalEntryDecodeError;
use primitives::{CanonicalReader, CanonicalWriter};

use crate::entry::{
    ChangeKind, JournalEntry, JournalEntryCaller, JournalEntryDetails, JournalEntryRelation,
    JournaledCallOutcomeStatus, PathState, RecordedChange,
};

/// The format number of an encoded journal entry without tool, tier and approval.
pub const FORMAT: u8 = 1;
pub(crate) const FORMAT_WITH_TOOL: u8 = 2;
/// The format number of an encoded journal entry with a tier or an approval.
pub(crate) const FORMAT_WITH_POLICY: u8 = 3;
/// The format number of an encoded journal entry with details.
pub(crate) const FORMAT_WITH_DETAILS: u8 = 4;

/// The length in bytes of the shortest possible encoding of a recorded change.
const CHANGE_BYTES_MIN: usize = 5;
const USUAL_ENTRY_BYTES: usize = 512;

const DECISIONS: [JournaledCallOutcomeStatus; 3] =
    [JournaledCallOutcomeStatus::Allowed, JournaledCallOutcomeStatus::Refused, JournaledCallOutcomeStatus::Failed];
const CHANGE_KINDS: [ChangeKind; 9] = [
    ChangeKind::Create,
    ChangeKind::Modify,
    ChangeKind::Remove,
    ChangeKind::Rename,
    ChangeKind::Copy,
    ChangeKind::MakeDir,
    ChangeKind::MakeLink,
    ChangeKind::SetMode,
    ChangeKind::Rescan,
];

/// Encodes a journal entry as its canonical bytes.
pub fn encode_entry(entry: &JournalEntry) -> Vec<u8> {
    // The pattern has no `..`, so the compiler rejects a new field that is not encoded here. A new field needs a new
    // format.
    let JournalEntry {
        number,
        time_ms,
        caller,
        request_id,
        operation,
        tool,
        arguments,
        decision,
        reason,
        policy_version,
        tier,
        approval,
        changes,
        relation,
        bytes,
        duration_us,
        details,
    } = entry;
    let JournalEntryCaller { principal, on_behalf_of, session, protocol } = caller;
    let mut out = CanonicalWriter(Vec::with_capacity(USUAL_ENTRY_BYTES));
    let format = match (tier.is_some() || approval.is_some(), tool) {
        _ if !details.is_empty() => FORMAT_WITH_DETAILS,
        (true, _) => FORMAT_WITH_POLICY,
        (false, Some(_)) => FORMAT_WITH_TOOL,
        (false, None) => FORMAT,
    };
    out.byte(format);
    out.number(*number);
    out.signed_number(*time_ms);
    out.text(principal);
    out.optional_text(on_behalf_of.as_deref());
    out.text(session);
    out.text(protocol);
    out.optional_text(request_id.as_deref());
    out.text(operation);
    match tool {
        tool if format >= FORMAT_WITH_POLICY => out.optional_text(tool.as_deref()),
        Some(tool) => out.text(tool),
        None => {}
    }
    out.text(arguments);
    out.byte(*decision as u8);
    out.optional_text(reason.as_deref());
    out.number(*policy_version);
    if format >= FORMAT_WITH_POLICY {
        out.optional_text(tier.as_deref());
        out.optional_text(approval.as_deref());
    }
    out.number(changes.len() as u64);
    for change in changes {
        write_change(&mut out, change);
    }
    write_relation(&mut out, relation);
    out.number(*bytes);
    out.number(*duration_us);
    if format == FORMAT_WITH_DETAILS {
        details::write_details(&mut out, details);
    }
    out.0
}

/// Decodes a journal entry from its canonical bytes.
pub fn decode_entry(bytes: &[u8]) -> Result<JournalEntry, JournalEntryDecodeError> {
    let mut from = CanonicalReader(bytes);
    let format = from.byte("format")?;
    if !(FORMAT..=FORMAT_WITH_DETAILS).contains(&format) {
        return Err(JournalEntryDecodeError::UnknownFormat(format));
    }
    // Rust evaluates the fields of a struct expression in the order written, so the fields are decoded in this order.
    let entry = JournalEntry {
        number: from.number("number")?,
        time_ms: from.signed_number("time_ms")?,
        caller: JournalEntryCaller {
            principal: from.text("principal")?,
            on_behalf_of: from.optional_text("on_behalf_of")?,
            session: from.text("session")?,
            protocol: from.text("face")?,
        },
        request_id: from.optional_text("request")?,
        operation: from.text("operation")?,
        tool: match format {
            FORMAT => None,
            FORMAT_WITH_TOOL => Some(from.text("tool")?),
            _ => from.optional_text("tool")?,
        },
        arguments: from.text("arguments")?,
        decision: read_tagged(&mut from, "decision", &DECISIONS, |decision| decision as u8)?,
        reason: from.optional_text("reason")?,
        policy_version: from.number("policy")?,
        tier: if format >= FORMAT_WITH_POLICY { from.optional_text("tier")? } else { None },
        approval: if format >= FORMAT_WITH_POLICY { from.optional_text("approval")? } else { None },
        changes: read_changes(&mut from)?,
        relation: read_relation(&mut from)?,
        bytes: from.number("bytes")?,
        duration_us: from.number("duration_us")?,
        details: if format == FORMAT_WITH_DETAILS {
            details::read_details(&mut from)?
        } else {
            JournalEntryDetails::default()
        },
    };
    // Each entry has only one encoding, so an entry without the fields of a format must be in an older format.
    let is_needed = match format {
        FORMAT_WITH_POLICY => entry.tier.is_some() || entry.approval.is_some(),
        FORMAT_WITH_DETAILS => !entry.details.is_empty(),
        _ => true,
    };
    if !is_needed {
        return Err(JournalEntryDecodeError::UnknownFormat(format));
    }
    match from.0.len() {
        0 => Ok(entry),
        count => Err(JournalEntryDecodeError::TrailingBytes(count)),
    }
}

fn read_tagged<T: Copy>(
    from: &mut CanonicalReader<'_>,
    field: &'static str,
    values: &[T],
    tag_of: impl Fn(T) -> u8,
) -> Result<T, JournalEntryDecodeError> {
    let tag = from.byte(field)?;
    let value = values.iter().find(|value| tag_of(**value) == tag);
    value.copied().ok_or(JournalEntryDecodeError::UnknownTag { field, tag })
}

fn write_change(out: &mut CanonicalWriter, change: &RecordedChange) {
    let RecordedChange { path, kind, to, before, after } = change;
    out.text(path);
    out.byte(*kind as u8);
    out.optional_text(to.as_deref());
    write_path_state(out, before);
    write_path_state(out, after);
}

fn read_changes(from: &mut CanonicalReader<'_>) -> Result<Vec<RecordedChange>, JournalEntryDecodeError> {
    let count = from.number("changes")?;
    // If the remaining bytes cannot hold this many changes, the count is rejected before memory is allocated.
    if count > (from.0.len() / CHANGE_BYTES_MIN) as u64 {
        return Err(JournalEntryDecodeError::UnexpectedEnd("changes"));
    }
    (0..count)
        .map(|_| {
            Ok(RecordedChange {
                path: from.text("path")?,
                kind: read_tagged(from, "kind", &CHANGE_KINDS, |kind| kind as u8)?,
                to: from.optional_text("to")?,
                before: read_path_state(from, "before")?,
                after: read_path_state(from, "after")?,
            })
        })
        .collect()
}

fn write_path_state(out: &mut CanonicalWriter, state: &PathState) {
    match state {
        PathState::Absent => out.byte(0),
        PathState::File { version, size, mode } => {
            out.byte(1);
            out.digest(version);
            out.number(*size);
            out.number(u64::from(*mode));
        }
        PathState::Directory { mode } => {
            out.byte(2);
            out.number(u64::from(*mode));
        }
        PathState::Link { target } => {
            out.byte(3);
            out.text(target);
        }
        // Older journals did not record the version of a tree and use tag 4, which is still decoded.
        PathState::Tree { trash, files, bytes, version } => {
            out.byte(if version.is_some() { 5 } else { 4 });
            out.optional_text(trash.as_deref());
            out.number(*files);
            out.number(*bytes);
            if let Some(version) = version {
                out.digest(version);
            }
        }
        PathState::Unknown { size: None } => out.byte(6),
        PathState::Unknown { size: Some(size) } => {
            out.byte(7);
            out.number(*size);
        }
    }
}

fn read_path_state(from: &mut CanonicalReader<'_>, field: &'static str) -> Result<PathState, JournalEntryDecodeError> {
    match from.byte(field)? {
        0 => Ok(PathState::Absent),
        1 => Ok(PathState::File {
            version: from.digest(field)?,
            size: from.number(field)?,
            mode: from.number_u32(field)?,
        }),
        2 => Ok(PathState::Directory { mode: from.number_u32(field)? }),
        3 => Ok(PathState::Link { target: from.text(field)? }),
        tag @ (4 | 5) => Ok(PathState::Tree {
            trash: from.optional_text(field)?,
            files: from.number(field)?,
            bytes: from.number(field)?,
            version: if tag == 5 { Some(from.digest(field)?) } else { None },
        }),
        6 => Ok(PathState::Unknown { size: None }),
        7 => Ok(PathState::Unknown { size: Some(from.number(field)?) }),
        tag => Err(JournalEntryDecodeError::UnknownTag { field, tag }),
    }
}

fn write_relation(out: &mut CanonicalWriter, relation: &JournalEntryRelation) {
    let (tag, number) = match relation {
        JournalEntryRelation::None => return out.byte(0),
        JournalEntryRelation::Restores(trash) => {
            out.byte(3);
            return out.text(trash);
        }
        JournalEntryRelation::Undoes(number) => (1, number),
        JournalEntryRelation::Redoes(number) => (2, number),
        JournalEntryRelation::Amends(number) => (4, number),
    };
    out.byte(tag);
    out.number(*number);
}

fn read_relation(from: &mut CanonicalReader<'_>) -> Result<JournalEntryRelation, JournalEntryDecodeError> {
    match from.byte("link")? {
        0 => Ok(JournalEntryRelation::None),
        1 => from.number("link").map(JournalEntryRelation::Undoes),
        2 => from.number("link").map(JournalEntryRelation::Redoes),
        3 => from.text("link").map(JournalEntryRelation::Restores),
        4 => from.number("link").map(JournalEntryRelation::Amends),
        tag => Err(JournalEntryDecodeError::UnknownTag { field: "link", tag }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Digest,
        entry::{RecordedMove, RecordedRowDigest, RecordedUsage},
    };

    fn minimal_entry() -> JournalEntry {
        JournalEntry {
            number: 1,
            time_ms: -2,
            caller: JournalEntryCaller {
                principal: "user:a".into(),
                on_behalf_of: None,
                session: "s".into(),
                protocol: "cli".into(),
            },
            request_id: Some("r".into()),
            operation: "stat".into(),
            tool: None,
            arguments: "{}".into(),
            decision: JournaledCallOutcomeStatus::Refused,
            reason: None,
            policy_version: 300,
            tier: None,
            approval: None,
            changes: vec![],
            relation: JournalEntryRelation::Amends(7),
            bytes: 0,
            duration_us: 5,
            details: JournalEntryDetails::default(),
        }
    }

    #[test]
    fn the_bytes_of_format_1_are_fixed() {
        let expected: Vec<u8> = [
            &[1, 1][..],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe],
            b"\x06user:a\x00\x01s\x03cli",
            b"\x01\x01r\x04stat\x02{}",
            &[2, 0, 0xac, 0x02, 0, 4, 7, 0, 5],
        ]
        .concat();
        assert_eq!(encode_entry(&minimal_entry()), expected);
        assert_eq!(decode_entry(&expected), Ok(minimal_entry()));
    }

    #[test]
    fn format_2_adds_the_tool_to_format_1() {
        let entry = JournalEntry { tool: Some("d/t".into()), ..minimal_entry() };
        let mut expected = encode_entry(&minimal_entry());
        expected[0] = 2;
        let after = expected.windows(4).position(|bytes| bytes == b"stat").unwrap() + 4;
        expected.splice(after..after, *b"\x03d/t");
        assert_eq!(encode_entry(&entry), expected);
        assert_eq!(decode_entry(&expected), Ok(entry));
    }

    #[test]
    fn format_3_adds_tier_and_approval_after_the_policy() {
        let entry = JournalEntry { tier: Some("notify".into()), approval: Some("ap".into()), ..minimal_entry() };
        let mut expected = encode_entry(&minimal_entry());
        expected[0] = 3;
        let after = expected.windows(4).position(|bytes| bytes == b"stat").unwrap() + 4;
        expected.insert(after, 0);
        let after = expected.windows(2).position(|bytes| bytes == [0xac, 0x02]).unwrap() + 2;
        expected.splice(after..after, *b"\x01\x06notify\x01\x02ap");
        assert_eq!(encode_entry(&entry), expected);
        assert_eq!(decode_entry(&expected), Ok(entry));
        // Format 3 without tier and approval would be a second encoding of the same entry.
        let without_policy = decode_entry(&[&expected[..after], &[0, 0], &expected[after + 12..]].concat());
        assert_eq!(without_policy, Err(JournalEntryDecodeError::UnknownFormat(3)));
    }

    #[test]
    fn format_4_adds_tagged_fields_to_format_3() {
        let tier = Some("notify".into());
        let entry = JournalEntry { tier, details: full_details(), ..minimal_entry() };
        let mut expected = encode_entry(&JournalEntry { details: JournalEntryDetails::default(), ..entry.clone() });
        assert_eq!(expected[0], FORMAT_WITH_POLICY);
        expected[0] = 4;
        expected.push(7);
        expected.extend(b"\x01\x04\x01a\x01b");
        expected.extend([&[2, 32][..], &[0xaa; 32]].concat());
        expected.extend(b"\x03\x03\x02b1");
        expected.extend([4, 2, 0xac, 0x02]);
        expected.extend([&[5, 32][..], &[0xbb; 32]].concat());
        expected.extend([6, 2, 9, 0]);
        expected.extend([&[7, 39][..], b"\x05lease\x00", &[0xcc; 32], b""].concat());
        assert_eq!(encode_entry(&entry), expected);
        assert_eq!(decode_entry(&expected), Ok(entry));
    }

    fn full_details() -> JournalEntryDetails {
        let sha256 = Digest([0xcc; 32]);
        JournalEntryDetails {
            moved: vec![RecordedMove { from: "a".into(), to: "b".into() }],
            unchanged: Some(Digest([0xaa; 32])),
            buffers: vec!["b1".into()],
            applied_by_editor: Some(300),
            call: Some(Digest([0xbb; 32])),
            usage_before: Some(RecordedUsage { bytes: 9, files: 0 }),
            rows: vec![RecordedRowDigest { family: "lease".into(), id: String::new(), sha256 }],
        }
    }

    #[test]
    fn tagged_fields_have_one_encoding() {
        let base = encode_entry(&minimal_entry());
        // Formats 3 and 4 have an optional tool after the operation, and an optional tier and approval after the policy.
        let after_operation = base.windows(4).position(|bytes| bytes == b"stat").unwrap() + 4;
        let after_policy = base.windows(2).position(|bytes| bytes == [0xac, 0x02]).unwrap() + 2;
        let entry_with = |fields: &[u8]| {
            let (operation, policy) = (&base[1..after_operation], &base[after_operation..after_policy]);
            [&[4], operation, &[0], policy, &[0, 0], &base[after_policy..], fields].concat()
        };
        let accepted = entry_with(b"\x02\x03\x02\x01b\x04\x01\x05");
        let decoded = decode_entry(&accepted).unwrap();
        assert_eq!((decoded.details.buffers, decoded.details.applied_by_editor), (vec!["b".to_owned()], Some(5)));
        let invalid = JournalEntryDecodeError::NotCanonical("details");
        let tag = |tag| JournalEntryDecodeError::UnknownTag { field: "details", tag };
        let rejected: [(&[u8], JournalEntryDecodeError); 10] = [
            (b"\x00", JournalEntryDecodeError::UnknownFormat(4)),
            (b"\x01\x00\x00", tag(0)),
            (b"\x01\x08\x01x", tag(8)),
            (b"\x01\x03\x00", invalid),
            (b"\x02\x04\x01\x05\x03\x02\x01b", invalid),
            (b"\x02\x04\x01\x05\x04\x01\x05", invalid),
            (b"\x01\x04\x02\x05\x05", JournalEntryDecodeError::TrailingBytes(1)),
            (b"\x01\x04\x02\x85\x00", JournalEntryDecodeError::InvalidNumber("applied_by_editor")),
            (b"\x01\x04\x02\x05", JournalEntryDecodeError::UnexpectedEnd("details")),
            (b"\x02\x04\x01\x05", JournalEntryDecodeError::UnexpectedEnd("details")),
        ];
        for (fields, error) in rejected {
            assert_eq!(decode_entry(&entry_with(fields)), Err(error), "{fields:?}");
        }
    }

    #[test]
    fn truncated_and_extended_bytes_are_rejected() {
        let bytes = encode_entry(&minimal_entry());
        for end in 0..bytes.len() {
            assert!(decode_entry(&bytes[..end]).is_err(), "{end}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(decode_entry(&longer), Err(JournalEntryDecodeError::TrailingBytes(1)));
    }

    #[test]
    fn unknown_formats_are_reported() {
        let mut bytes = encode_entry(&minimal_entry());
        for format in [0, 5] {
            bytes[0] = format;
            assert_eq!(decode_entry(&bytes), Err(JournalEntryDecodeError::UnknownFormat(format)));
        }
    }

    #[test]
    fn impossible_change_counts_are_rejected_early() {
        let mut bytes = encode_entry(&minimal_entry());
        let count_at = bytes.len() - 5;
        assert_eq!(bytes[count_at], 0, "the count of changes");
        bytes.splice(count_at..=count_at, [0xff, 0xff, 0xff, 0xff, 0x7f]);
        assert_eq!(decode_entry(&bytes), Err(JournalEntryDecodeError::UnexpectedEnd("changes")));
    }
}
