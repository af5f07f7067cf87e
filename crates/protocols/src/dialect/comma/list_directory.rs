//! The tool `list_directory` lists the entries of a directory, sorted by depth, then by type, then by name. The
//! original code sorts names by a collation, in which punctuation comes first, then digits, then letters. The collation
//! compares the case and accents of two names only if the names are otherwise equal. The dialect reproduces the
//! collation for Latin letters; other letters follow in the order of their code points.

use std::{cmp::Ordering, sync::Arc};

use serde::Serialize;
use serde_json::json;
use stead_engine::{
    FileKind,
    ops::{ListArgs, ListOutcome, ListedEntryRow},
};
use stead_path::RelPath;

use super::{
    super::DialectToolCall, CommaPreparedCall, CommaToolCall, envelope::CommaReplyEnvelope,
    inputs::CommaListDirectoryInput,
};
use crate::limits::COMMA_LIST_DEPTH_MAX;

/// The modification time in a reply for a directory entry whose real modification time is unknown.
const EPOCH_TIMESTAMP: &str = "1970-01-01T00:00:00.000Z";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CommaDirectoryEntry {
    name: String,
    relative_path: String,
    #[serde(rename = "type")]
    kind: &'static str,
    size: u64,
    mtime: String,
    depth: usize,
}

fn listing_depth(input: &CommaListDirectoryInput) -> u64 {
    if input.recursive { input.max_depth.min(COMMA_LIST_DEPTH_MAX) } else { 1 }
}

pub(super) fn list_call(call: &Arc<CommaToolCall>, input: &Arc<CommaListDirectoryInput>) -> CommaPreparedCall {
    let (depth, all) = (Some(listing_depth(input)), Some(input.include_hidden));
    let arguments = ListArgs { path: Some(input.path.clone()), depth, all, ..ListArgs::default() };
    let input = input.clone();
    call.prepare(arguments, call.options.clone(), move |call, list| list_reply(call, &input, &list.outcome))
}

fn list_reply(call: &CommaToolCall, input: &CommaListDirectoryInput, list: &ListOutcome) -> CommaReplyEnvelope {
    let top = list.path.to_wire();
    let mut entries: Vec<CommaDirectoryEntry> =
        list.entries.iter().map(|entry| CommaDirectoryEntry::new(&top, entry)).collect();
    entries.sort_by(|a, b| {
        let rank = |entry: &CommaDirectoryEntry| {
            (entry.depth, ["directory", "file", "symlink"].iter().position(|kind| *kind == entry.kind))
        };
        rank(a)
            .cmp(&rank(b))
            .then_with(|| (call.dialect.compare_names)(&a.name, &b.name))
            .then_with(|| a.relative_path.cmp(&b.relative_path))
    });
    let truncated = list.completeness.is_truncated();
    let path = input.path.as_str();
    let output = match entries.len() {
        0 => format!("Listed {path} — empty directory."),
        count => {
            let noun = if count == 1 { "entry" } else { "entries" };
            let mark = if truncated { " (truncated)" } else { "" };
            let lines: Vec<String> = entries.iter().map(entry_line).collect();
            format!("Listed {path} — {count} {noun}{mark}\n{}", lines.join("\n"))
        }
    };
    let data = json!({ "path": path, "entries": entries, "maxDepth": listing_depth(input), "truncated": truncated });
    CommaReplyEnvelope::success(output, data)
}

/// An entry that is not a file has the size 0.
pub(super) fn entry_type_and_size(kind: FileKind, size: Option<u64>) -> (&'static str, u64) {
    match kind {
        FileKind::Directory => ("directory", 0),
        FileKind::Link => ("symlink", 0),
        FileKind::File | FileKind::Special => ("file", size.unwrap_or_default()),
    }
}

pub(super) fn path_below(top: &str, path: &RelPath) -> String {
    let path = path.to_wire();
    match top {
        "" | "." => path.into_owned(),
        top => path.strip_prefix(top).map_or(&*path, |rest| rest.trim_start_matches('/')).to_owned(),
    }
}

impl CommaDirectoryEntry {
    fn new(top: &str, entry: &ListedEntryRow) -> Self {
        let relative_path = path_below(top, &entry.path);
        let (kind, size) = entry_type_and_size(entry.kind, entry.size);
        let mtime = entry.modified.map_or_else(|| EPOCH_TIMESTAMP.to_owned(), |modified| modified.to_string());
        Self {
            name: relative_path.rsplit('/').next().unwrap_or(&relative_path).to_owned(),
            depth: relative_path.split('/').count(),
            relative_path,
            kind,
            size,
            mtime,
        }
    }
}

fn entry_line(entry: &CommaDirectoryEntry) -> String {
    let mark = match entry.kind {
        "directory" => "/",
        "symlink" => " -> (symlink)",
        _ => "",
    };
    format!("{}{}{mark}", "  ".repeat(entry.depth.saturating_sub(1)), entry.name)
}

/// The punctuation characters in collation order. ASCII characters that are neither letters, digits nor listed
/// punctuation sort before the punctuation.
const PUNCTUATION_ORDER: &str = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";

/// An accented letter sorts together with its plain letter.
const ACCENTED_LETTERS: &[(char, &str)] = &[
    ('a', "àáâãäåāăą"),
    ('c', "çćĉċč"),
    ('d', "ďđ"),
    ('e', "èéêëēĕėęě"),
    ('g', "ĝğġģ"),
    ('h', "ĥħ"),
    ('i', "ìíîïĩīĭįı"),
    ('j', "ĵ"),
    ('k', "ķ"),
    ('l', "ĺļľŀł"),
    ('n', "ñńņňŉ"),
    ('o', "òóôõöøōŏő"),
    ('r', "ŕŗř"),
    ('s', "śŝşš"),
    ('t', "ţťŧ"),
    ('u', "ùúûüũūŭůűų"),
    ('w', "ŵ"),
    ('y', "ýÿŷ"),
    ('z', "źżž"),
];

pub(super) fn compare_names(a: &str, b: &str) -> Ordering {
    let keys = |name: &str| name.chars().map(collation_key).collect::<Vec<_>>();
    let (a_keys, b_keys) = (keys(a), keys(b));
    let by = |part: fn(&FileNameCharacterSortKey) -> (u8, u32)| a_keys.iter().map(part).cmp(b_keys.iter().map(part));
    by(|key| key.letter)
        .then_with(|| by(|key| (0, key.accent)))
        .then_with(|| by(|key| (0, key.case)))
        .then_with(|| a.cmp(b))
}

struct FileNameCharacterSortKey {
    letter: (u8, u32),
    accent: u32,
    case: u32,
}

fn collation_key(c: char) -> FileNameCharacterSortKey {
    let plain = |group, index| FileNameCharacterSortKey { letter: (group, index), accent: 0, case: 0 };
    if let Some(index) = PUNCTUATION_ORDER.chars().position(|mark| mark == c) {
        return plain(1, u32::try_from(index).unwrap_or(u32::MAX));
    }
    if c.is_ascii_digit() {
        return plain(2, u32::from(c));
    }
    let lowercase = c.to_lowercase().next().unwrap_or(c);
    let case = u32::from(lowercase != c);
    let row = ACCENTED_LETTERS
        .iter()
        .find_map(|(letter, row)| Some((*letter, row.chars().position(|one| one == lowercase)?)));
    match row {
        Some((letter, index)) => FileNameCharacterSortKey {
            letter: (3, u32::from(letter)),
            accent: u32::try_from(index + 1).unwrap_or(u32::MAX),
            case,
        },
        None if c.is_alphabetic() => FileNameCharacterSortKey { letter: (3, u32::from(lowercase)), accent: 0, case },
        None if c.is_ascii() => plain(0, u32::from(c)),
        None => plain(4, u32::from(c)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_like_the_original() {
        let mut names = vec!["é.txt", "B.txt", "b.txt", "a.txt", "9", "10", ".hid", "_u", "f", "E", "e"];
        names.sort_by(|a, b| compare_names(a, b));
        assert_eq!(names, ["_u", ".hid", "10", "9", "a.txt", "b.txt", "B.txt", "e", "E", "é.txt", "f"]);
    }
}
