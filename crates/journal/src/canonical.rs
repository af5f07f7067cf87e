//! The bytes that are hashed: one entry, one spelling.
//!
//! Layout: the format byte, then every field of [`Entry`] in the order of its declaration (the tool, the tier
//! and the approval only in the formats that have them). Numbers are LEB128, times
//! are eight bytes big-endian, text is length and UTF-8, an optional text is a byte 0 or 1 and the text, an enum is a
//! tag byte and its fields, the list of changes is its length and the changes.
//! Promises: [`decode`] accepts exactly what [`encode`] makes and nothing else, and never allocates more than a small
//! multiple of what it was given. Tags and field order never change within a format.

mod wire;

pub use wire::Malformed;
use wire::{Reader, Writer};

use crate::entry::{Caller, Change, ChangeKind, Decision, Entry, Link, State};

/// The format of an entry that was asked for by the operation's own name; the first byte of every record.
pub const FORMAT: u8 = 1;
/// The format of an entry that names a dialect's tool, behind the operation.
pub(crate) const FORMAT_WITH_TOOL: u8 = 2;
/// The format of an entry that a policy had something to say about: perhaps a tool, and a tier or an approval or both.
pub(crate) const FORMAT_WITH_POLICY: u8 = 3;

/// The fewest bytes a change can take: empty path, kind, no `to`, two states without fields.
const MIN_CHANGE_BYTES: usize = 5;
/// Room that holds an ordinary entry without growing.
const USUAL_ENTRY_BYTES: usize = 512;

/// The canonical bytes of an entry.
pub fn encode(entry: &Entry) -> Vec<u8> {
    // No `..`: a new field must be placed here, and that is a new format.
    let Entry {
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
    } = entry;
    let Caller { principal, on_behalf_of, session, face } = caller;
    let mut out = Writer(Vec::with_capacity(USUAL_ENTRY_BYTES));
    let format = match (tier.is_some() || approval.is_some(), tool) {
        (true, _) => FORMAT_WITH_POLICY,
        (false, Some(_)) => FORMAT_WITH_TOOL,
        (false, None) => FORMAT,
    };
    out.byte(format);
    out.number(*number);
    out.signed(*time_ms);
    out.text(principal);
    out.optional_text(on_behalf_of.as_deref());
    out.text(session);
    out.text(face);
    out.optional_text(request.as_deref());
    out.text(operation);
    match tool {
        tool if format == FORMAT_WITH_POLICY => out.optional_text(tool.as_deref()),
        Some(tool) => out.text(tool),
        None => {}
    }
    out.text(arguments);
    out.byte(decision_tag(*decision));
    out.optional_text(reason.as_deref());
    out.number(*policy);
    if format == FORMAT_WITH_POLICY {
        out.optional_text(tier.as_deref());
        out.optional_text(approval.as_deref());
    }
    out.number(changes.len() as u64);
    for change in changes {
        write_change(&mut out, change);
    }
    write_link(&mut out, link);
    out.number(*bytes);
    out.number(*duration_us);
    out.0
}

/// The entry that canonical bytes stand for.
pub fn decode(bytes: &[u8]) -> Result<Entry, Malformed> {
    let mut from = Reader(bytes);
    let format = from.byte("format")?;
    if ![FORMAT, FORMAT_WITH_TOOL, FORMAT_WITH_POLICY].contains(&format) {
        return Err(Malformed::Format { format });
    }
    // Fields are read in the order they are written here.
    let entry = Entry {
        number: from.number("number")?,
        time_ms: from.signed("time_ms")?,
        caller: Caller {
            principal: from.text("principal")?,
            on_behalf_of: from.optional_text("on_behalf_of")?,
            session: from.text("session")?,
            face: from.text("face")?,
        },
        request: from.optional_text("request")?,
        operation: from.text("operation")?,
        tool: match format {
            FORMAT_WITH_TOOL => Some(from.text("tool")?),
            FORMAT_WITH_POLICY => from.optional_text("tool")?,
            _ => None,
        },
        arguments: from.text("arguments")?,
        decision: read_decision(&mut from)?,
        reason: from.optional_text("reason")?,
        policy: from.number("policy")?,
        tier: if format == FORMAT_WITH_POLICY { from.optional_text("tier")? } else { None },
        approval: if format == FORMAT_WITH_POLICY { from.optional_text("approval")? } else { None },
        changes: read_changes(&mut from)?,
        link: read_link(&mut from)?,
        bytes: from.number("bytes")?,
        duration_us: from.number("duration_us")?,
    };
    // One entry, one spelling: without a tier and an approval it belongs into an older format.
    if format == FORMAT_WITH_POLICY && entry.tier.is_none() && entry.approval.is_none() {
        return Err(Malformed::Format { format });
    }
    match from.0.len() {
        0 => Ok(entry),
        count => Err(Malformed::Trailing { count }),
    }
}

fn decision_tag(decision: Decision) -> u8 {
    match decision {
        Decision::Allowed => 1,
        Decision::Refused => 2,
        Decision::Failed => 3,
    }
}

fn read_decision(from: &mut Reader<'_>) -> Result<Decision, Malformed> {
    match from.byte("decision")? {
        1 => Ok(Decision::Allowed),
        2 => Ok(Decision::Refused),
        3 => Ok(Decision::Failed),
        tag => Err(Malformed::Tag { field: "decision", tag }),
    }
}

fn kind_tag(kind: ChangeKind) -> u8 {
    match kind {
        ChangeKind::Create => 1,
        ChangeKind::Modify => 2,
        ChangeKind::Remove => 3,
        ChangeKind::Rename => 4,
        ChangeKind::Copy => 5,
        ChangeKind::MakeDir => 6,
        ChangeKind::MakeLink => 7,
        ChangeKind::SetMode => 8,
        ChangeKind::Rescan => 9,
    }
}

fn read_kind(from: &mut Reader<'_>) -> Result<ChangeKind, Malformed> {
    match from.byte("kind")? {
        1 => Ok(ChangeKind::Create),
        2 => Ok(ChangeKind::Modify),
        3 => Ok(ChangeKind::Remove),
        4 => Ok(ChangeKind::Rename),
        5 => Ok(ChangeKind::Copy),
        6 => Ok(ChangeKind::MakeDir),
        7 => Ok(ChangeKind::MakeLink),
        8 => Ok(ChangeKind::SetMode),
        9 => Ok(ChangeKind::Rescan),
        tag => Err(Malformed::Tag { field: "kind", tag }),
    }
}

fn write_change(out: &mut Writer, change: &Change) {
    let Change { path, kind, to, before, after } = change;
    out.text(path);
    out.byte(kind_tag(*kind));
    out.optional_text(to.as_deref());
    write_state(out, before);
    write_state(out, after);
}

fn read_changes(from: &mut Reader<'_>) -> Result<Vec<Change>, Malformed> {
    let count = from.number("changes")?;
    // A count that the remaining bytes cannot hold is refused before anything is allocated for it.
    if count > (from.0.len() / MIN_CHANGE_BYTES) as u64 {
        return Err(Malformed::Short { field: "changes" });
    }
    (0..count)
        .map(|_place| {
            Ok(Change {
                path: from.text("path")?,
                kind: read_kind(from)?,
                to: from.optional_text("to")?,
                before: read_state(from, "before")?,
                after: read_state(from, "after")?,
            })
        })
        .collect()
}

fn write_state(out: &mut Writer, state: &State) {
    match state {
        State::Absent => out.byte(0),
        State::File { version, size, mode } => {
            out.byte(1);
            out.digest(version);
            out.number(*size);
            out.number(u64::from(*mode));
        }
        State::Directory { mode } => {
            out.byte(2);
            out.number(u64::from(*mode));
        }
        State::Link { target } => {
            out.byte(3);
            out.text(target);
        }
        // Journals from before the version was kept have tag 4 alone, and still read as they were written.
        State::Tree { trash, files, bytes, version } => {
            out.byte(if version.is_some() { 5 } else { 4 });
            out.optional_text(trash.as_deref());
            out.number(*files);
            out.number(*bytes);
            if let Some(version) = version {
                out.digest(version);
            }
        }
        State::Unknown { size: None } => out.byte(6),
        State::Unknown { size: Some(size) } => {
            out.byte(7);
            out.number(*size);
        }
    }
}

fn read_state(from: &mut Reader<'_>, field: &'static str) -> Result<State, Malformed> {
    match from.byte(field)? {
        0 => Ok(State::Absent),
        1 => Ok(State::File {
            version: from.digest(field)?,
            size: from.number(field)?,
            mode: from.small_number(field)?,
        }),
        2 => Ok(State::Directory { mode: from.small_number(field)? }),
        3 => Ok(State::Link { target: from.text(field)? }),
        4 => Ok(State::Tree {
            trash: from.optional_text(field)?,
            files: from.number(field)?,
            bytes: from.number(field)?,
            version: None,
        }),
        5 => Ok(State::Tree {
            trash: from.optional_text(field)?,
            files: from.number(field)?,
            bytes: from.number(field)?,
            version: Some(from.digest(field)?),
        }),
        6 => Ok(State::Unknown { size: None }),
        7 => Ok(State::Unknown { size: Some(from.number(field)?) }),
        tag => Err(Malformed::Tag { field, tag }),
    }
}

fn write_link(out: &mut Writer, link: &Link) {
    match link {
        Link::None => out.byte(0),
        Link::Undoes(number) => {
            out.byte(1);
            out.number(*number);
        }
        Link::Redoes(number) => {
            out.byte(2);
            out.number(*number);
        }
        Link::Restores(trash) => {
            out.byte(3);
            out.text(trash);
        }
        Link::Amends(number) => {
            out.byte(4);
            out.number(*number);
        }
    }
}

fn read_link(from: &mut Reader<'_>) -> Result<Link, Malformed> {
    match from.byte("link")? {
        0 => Ok(Link::None),
        1 => from.number("link").map(Link::Undoes),
        2 => from.number("link").map(Link::Redoes),
        3 => from.text("link").map(Link::Restores),
        4 => from.number("link").map(Link::Amends),
        tag => Err(Malformed::Tag { field: "link", tag }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn smallest() -> Entry {
        Entry {
            number: 1,
            time_ms: -2,
            caller: Caller {
                principal: "user:a".into(),
                on_behalf_of: None,
                session: "s".into(),
                face: "cli".into(),
            },
            request: Some("r".into()),
            operation: "stat".into(),
            tool: None,
            arguments: "{}".into(),
            decision: Decision::Refused,
            reason: None,
            policy: 300,
            tier: None,
            approval: None,
            changes: vec![],
            link: Link::Amends(7),
            bytes: 0,
            duration_us: 5,
        }
    }

    /// Written by hand: if this test must change, the format number must change with it.
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
        assert_eq!(encode(&smallest()), expected);
        assert_eq!(decode(&expected), Ok(smallest()));
    }

    #[test]
    fn the_bytes_of_format_2_are_those_of_format_1_with_the_tool() {
        let entry = Entry { tool: Some("d/t".into()), ..smallest() };
        let mut expected = encode(&smallest());
        expected[0] = 2;
        let behind = expected.windows(4).position(|bytes| bytes == b"stat").unwrap() + 4;
        expected.splice(behind..behind, *b"\x03d/t");
        assert_eq!(encode(&entry), expected);
        assert_eq!(decode(&expected), Ok(entry));
    }

    #[test]
    fn the_bytes_of_format_3_have_the_tier_and_the_approval_behind_the_policy() {
        let entry = Entry { tier: Some("notify".into()), approval: Some("ap".into()), ..smallest() };
        let mut expected = encode(&smallest());
        expected[0] = 3;
        let behind = expected.windows(4).position(|bytes| bytes == b"stat").unwrap() + 4;
        expected.insert(behind, 0);
        let behind = expected.windows(2).position(|bytes| bytes == [0xac, 0x02]).unwrap() + 2;
        expected.splice(behind..behind, *b"\x01\x06notify\x01\x02ap");
        assert_eq!(encode(&entry), expected);
        assert_eq!(decode(&expected), Ok(entry));
        // The same format without either would be a second spelling.
        let bare = decode(&[&expected[..behind], &[0, 0], &expected[behind + 12..]].concat());
        assert_eq!(bare, Err(Malformed::Format { format: 3 }));
    }

    #[test]
    fn every_prefix_and_every_extension_is_refused() {
        let bytes = encode(&smallest());
        for end in 0..bytes.len() {
            assert!(decode(&bytes[..end]).is_err(), "{end}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(decode(&longer), Err(Malformed::Trailing { count: 1 }));
    }

    #[test]
    fn an_unknown_format_is_named() {
        let mut bytes = encode(&smallest());
        bytes[0] = 4;
        assert_eq!(decode(&bytes), Err(Malformed::Format { format: 4 }));
    }

    #[test]
    fn a_count_of_changes_that_cannot_fit_is_refused_at_once() {
        let mut bytes = encode(&smallest());
        let place = bytes.len() - 5;
        assert_eq!(bytes[place], 0, "the count of changes");
        bytes.splice(place..=place, [0xff, 0xff, 0xff, 0xff, 0x7f]);
        assert_eq!(decode(&bytes), Err(Malformed::Short { field: "changes" }));
    }
}
