//! `apply_patch`: several files change together or none does. The engine reads and applies the patch; here its headers
//! are read once more, only to speak of files as the patch spells them.

use engine::{Answer, Failure, Grammar, Parents, Patching, Terms};
use serde_json::{Map, Value, json};

use super::{
    Origin, Scene,
    class::Class,
    difference,
    envelope::{Envelope, Fields, Sorry},
    place, sorry, writing,
};

/// How many characters of a wrong line are shown.
const SHOWN_CHARS: usize = 40;

pub(super) fn patching(scene: &Scene<'_>, terms: Terms) -> (Map<String, Value>, Terms) {
    let base = scene.asked.object("expectedSha256ByPath").cloned().unwrap_or_default();
    let arguments = super::object(json!({ "patch": scene.asked.text("patch"), "base": base }));
    let patching = match scene.origin {
        Origin::Exact => Patching { grammar: Grammar::EXACT, ..Patching::STRICT },
        // A move and an end of file may be written either way.
        Origin::Stricter => Patching::STRICT,
    };
    (arguments, Terms { parents: Parents::Required, patching, ..terms })
}

/// What a section does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Add,
    Update,
    Delete,
    Move,
}

/// The header of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header<'a> {
    verb: Verb,
    path: &'a str,
    to: Option<&'a str>,
}

const PREFIXES: [(&str, Verb); 4] = [
    ("*** Add File: ", Verb::Add),
    ("*** Update File: ", Verb::Update),
    ("*** Delete File: ", Verb::Delete),
    ("*** Move File: ", Verb::Move),
];

fn headers(patch: &str) -> Vec<Header<'_>> {
    let mut headers: Vec<Header<'_>> = Vec::new();
    for line in patch.lines() {
        if let Some(to) = line.strip_prefix("*** Move to: ")
            && let Some(last) = headers.last_mut()
        {
            (last.verb, last.to) = (Verb::Move, Some(to.trim()));
        }
        let header =
            PREFIXES.iter().find_map(|(prefix, verb)| Some((verb, line.strip_prefix(prefix)?.trim())));
        if let Some((verb, named)) = header {
            let (path, to) = match (verb, named.split_once(" -> ")) {
                (Verb::Move, Some((from, to))) => (from.trim(), Some(to.trim())),
                (Verb::Add | Verb::Update | Verb::Delete | Verb::Move, _) => (named, None),
            };
            headers.push(Header { verb: *verb, path, to });
        }
    }
    headers
}

/// The paths that a patch names, in order.
pub(super) fn named(patch: &str) -> Vec<&str> {
    headers(patch).into_iter().flat_map(|header| [Some(header.path), header.to]).flatten().collect()
}

pub(super) fn applied(scene: &Scene<'_>, answer: &Answer) -> Envelope {
    let headers = headers(scene.asked.text("patch"));
    let rows = answer.json.get("files").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    // A diff has no headers of this kind; then the engine's spelling stands.
    let spelled = headers.len() == rows.len();
    let mut lines = Vec::new();
    let mut files = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let header = headers.get(at).filter(|_| spelled);
        let path = header.map_or(row["path"].as_str().unwrap_or_default(), |header| header.path);
        let to = row["to"].as_str().map(|to| header.and_then(|header| header.to).unwrap_or(to));
        let held = answer.evidence.get(at);
        let (before, after) =
            held.map_or((None, None), |held| (held.before.as_deref(), held.after.as_deref()));
        let operation = row["operation"].as_str().unwrap_or_default();
        lines.push(match (operation, to) {
            ("add", _) => format!("  A {path}"),
            ("delete", _) => format!("  D {path}"),
            (_, Some(to)) => format!("  R {path} -> {to}"),
            (_, None) => format!("  M {path}"),
        });
        let handle = row["trash"].as_str().map(|id| place::handle(id, path));
        let file = Fields::new()
            .with("path", path)
            .with("operation", operation)
            .maybe("toPath", to)
            .maybe("beforeSha256", before.map(writing::sha256))
            .maybe("afterSha256", after.map(writing::sha256))
            .with("diff", difference::exact(to.unwrap_or(path), before, after))
            .maybe("trashedTo", handle);
        files.push(Value::from(file));
    }
    let hunks: u64 = rows.iter().filter_map(|row| row["chunks"].as_u64()).sum();
    let atomic = scene.asked.flag("atomic").unwrap_or(true);
    let way = if atomic { "atomic" } else { "sequential" };
    let output =
        format!("Applied patch ({way}): {} file(s), {hunks} hunk(s).\n{}", files.len(), lines.join("\n"));
    let data = Fields::new().with("atomic", atomic).with("hunkCount", hunks).with("changedFiles", files);
    Envelope::done(output, data)
}

/// What is said of a patch that failed; nothing where the general words do.
pub(super) fn refused(scene: &Scene<'_>, failure: &Failure) -> Option<Sorry> {
    let headers = headers(scene.asked.text("patch"));
    let section =
        failure.facts.get("section").and_then(Value::as_u64).and_then(|at| usize::try_from(at).ok());
    let header = section.and_then(|at| headers.get(at)).copied();
    let fact = |name: &str| failure.facts.get(name).and_then(Value::as_str);
    let path = header.map(|header| header.path).or(fact("path")).unwrap_or_default();
    let not_found = |message: String| Some(Sorry::new("not_found", message).at(path));
    match Class::from(failure.kind) {
        Class::Unreadable => Some(unread(failure)),
        Class::Missing if fact("parent").is_some() => Some(homeless(&headers, fact("parent"))),
        Class::Missing => not_found(format!("File does not exist: {path}")),
        Class::NoDirectory => not_found(format!("Parent of {path} is not a directory")),
        Class::Directory => not_found(format!("Path is a directory, not a file: {path}")),
        Class::Taken => Some(match header {
            Some(Header { verb: Verb::Move, to: Some(to), .. }) => {
                Sorry::new("already_exists", format!("Move destination already exists: {to}")).at(to)
            }
            Some(_) | None => {
                Sorry::new("already_exists", format!("Cannot Add File — already exists: {path}")).at(path)
            }
        }),
        Class::Stale if fact("reason") == Some("absent") => {
            let message = format!("expectedSha256ByPath for Add File {path} must be \"\" (sentinel)");
            let next =
                "Use the empty string \"\" to assert the file does not exist, or omit the entry entirely.";
            Some(Sorry::new("stale_file", message).at(path).instead(next))
        }
        Class::Stale => {
            let by_path = scene.asked.object("expectedSha256ByPath");
            let expected = by_path.and_then(|by_path| by_path.get(path)).and_then(Value::as_str);
            Some(sorry::stale(path, expected.unwrap_or_default(), fact("version").unwrap_or_default()))
        }
        Class::Ambiguous | Class::Unplaced | Class::Overlap => Some(unplaced(failure, path)),
        Class::Arguments => match fact("reason") {
            Some("same_place") => {
                let message = format!("Move File requires distinct from/to (got {path})");
                Some(Sorry::new("command_failed", message).at(path))
            }
            Some("duplicate_path") => {
                let message = format!("Path appears multiple times in patch: {path}");
                let details = Fields::new().with("reason", "duplicate_path");
                Some(Sorry::new("patch_apply_error", message).at(path).details(details))
            }
            Some(_) | None => None,
        },
        Class::NotText | Class::Other => None,
    }
}

/// A new file whose directory is missing.
fn homeless(headers: &[Header<'_>], parent: Option<&str>) -> Sorry {
    let new = |header: &&Header<'_>| header.verb == Verb::Add || header.to.is_some();
    let place = |header: &Header<'_>| header.to.unwrap_or(header.path).to_owned();
    let in_it = |header: &&Header<'_>| place(header).rsplit_once('/').map(|(above, _)| above) == parent;
    let found = headers.iter().filter(new).find(in_it).or_else(|| headers.iter().find(new));
    let path = found.map(place).unwrap_or_default();
    match found.map(|header| header.verb) {
        Some(Verb::Move) => {
            Sorry::new("not_found", format!("Move destination parent does not exist: {path}")).at(path)
        }
        Some(Verb::Add | Verb::Update | Verb::Delete) | None => {
            Sorry::new("not_found", format!("Parent directory of {path} does not exist"))
                .at(path)
                .next("Use `create_file` to create the parent directory chain before re-running apply_patch.")
        }
    }
}

fn unplaced(failure: &Failure, path: &str) -> Sorry {
    let hunk = failure.facts.get("chunk").and_then(Value::as_u64).unwrap_or_default();
    let details = |reason: &str| Fields::new().with("hunkIndex", hunk).with("reason", reason);
    if Class::from(failure.kind) == Class::Ambiguous {
        return Sorry::new("multiple_matches", format!("Hunk {hunk} for {path} matches multiple locations"))
            .at(path)
            .details(details("multiple_matches"))
            .next("Add more surrounding context lines to the hunk so it matches a unique location.");
    }
    Sorry::new(
        "patch_apply_error",
        format!("Hunk {hunk} for {path} could not be applied (context not found)"),
    )
    .at(path)
    .details(details("context_not_found"))
}

/// A patch that cannot be read.
fn unread(failure: &Failure) -> Sorry {
    let fact = |name: &str| failure.facts.get(name).and_then(Value::as_str).unwrap_or_default();
    let got: String = fact("got").chars().take(SHOWN_CHARS).collect();
    let section = || PREFIXES.iter().find(|(prefix, _)| fact("got").starts_with(prefix.trim_end()));
    let (message, expected) = match fact("fault") {
        "no_begin" => ("Patch must start with \"*** Begin Patch\"".to_owned(), "*** Begin Patch"),
        "before_begin" => ("Unexpected content before \"*** Begin Patch\"".to_owned(), "*** Begin Patch"),
        "no_end" => ("Patch must end with \"*** End Patch\"".to_owned(), "*** End Patch"),
        "after_end" => ("Unexpected content after \"*** End Patch\"".to_owned(), "(end of input)"),
        "no_sections" => ("Patch contains no file sections".to_owned(), fact("expected")),
        "unknown_header" => {
            (format!("Unexpected line \"{got}\" — expected a file section header"), fact("expected"))
        }
        "no_path" => {
            let name = section().map_or("Section", |(prefix, _)| prefix.trim_matches(['*', ' ', ':']));
            (format!("{name} requires a non-empty path"), "<path>")
        }
        "no_arrow" => ("Move File requires \"<from> -> <to>\"".to_owned(), "->"),
        "no_chunk" => ("Update File section requires at least one \"@@\" hunk".to_owned(), "@@"),
        "empty_chunk" => ("Hunk is empty".to_owned(), fact("expected")),
        "not_chunk_header" => (format!("Expected \"@@\" hunk header, got \"{got}\""), "@@"),
        "not_add_line" => {
            (format!("Add File body lines must start with \"+\", got \"{got}\""), fact("expected"))
        }
        _ => (failure.detail.clone(), fact("expected")),
    };
    let line = failure.facts.get("line").cloned().unwrap_or(Value::Null);
    Sorry::new("patch_parse_error", message)
        .details(Fields::new().with("line", line).with("expected", expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_they_are_spelled() {
        let patch = "*** Begin Patch\n*** Add File: ./a\n+*** Add File: no\n*** Move File: b -> c\r\n\
                     *** Update File: d\n*** Move to: e\n*** End Patch";
        assert_eq!(named(patch), ["./a", "b", "c", "d", "e"]);
    }
}
