//! Reading and writing one place: the engine's calls, and the documented answers.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use engine::{Answer, Evidence, Failure, Listing, Parents, Terms, Unseen};
use serde_json::{Value, json};

use super::{
    super::Request,
    Scene,
    encoding::{Encoding, End},
    object, spot,
    tool::File,
};

/// Most bytes of a file that one read returns when no limit is given.
const READ_BYTES_DEFAULT: u64 = 1_048_576;
/// Most entries of one listing.
const LIST_ENTRIES_MAX: usize = 100_000;

/// The engine's call for what reads or writes one place.
pub(super) fn request(scene: &Scene<'_>, file: File, terms: Terms) -> Result<Request, Failure> {
    let asked = &scene.asked;
    let path = spot::whole("path", asked.text("path"))?;
    let (operation, arguments, terms) = match file {
        File::Read => {
            let (first, most) = range(scene);
            let last = first.saturating_add(most.max(1) - 1);
            let arguments = json!({ "path": path, "bytes": format!("{first}-{last}") });
            ("read", arguments, Terms { evidence: Evidence::Bytes, ..terms })
        }
        File::Write => {
            let made = if asked.is_set("create_parents") { Parents::Made } else { Parents::Required };
            let (content, encoding) = match Encoding::named(asked.maybe("encoding")) {
                Encoding::Utf8 => (asked.text("content").to_owned(), "utf-8"),
                other @ (Encoding::Ascii | Encoding::Latin1 | Encoding::Utf16 | Encoding::Binary) => {
                    (STANDARD.encode(other.encode(asked.text("content"))?), "base64")
                }
            };
            let arguments = json!({ "path": path, "content": content, "encoding": encoding });
            ("write", arguments, Terms { parents: made, unseen: Unseen::Yields, ..terms })
        }
        File::Append => {
            let arguments = json!({ "path": path, "content": asked.text("content") });
            ("append", arguments, Terms { parents: Parents::Required, unseen: Unseen::Yields, ..terms })
        }
        File::List => {
            let arguments = json!({ "path": path, "all": asked.is_set("include_hidden") });
            ("list", arguments, Terms { listing: Listing::Entries(LIST_ENTRIES_MAX), ..terms })
        }
        File::Stat => ("stat", json!({ "path": path }), Terms { evidence: Evidence::Bytes, ..terms }),
    };
    Ok(Request { operation: operation.to_owned(), arguments: object(arguments), terms })
}

/// The first byte to read, and how many at most.
fn range(scene: &Scene<'_>) -> (u64, u64) {
    let most = scene.asked.number("limit").unwrap_or(READ_BYTES_DEFAULT);
    (scene.asked.number("offset").unwrap_or(0), most)
}

/// What a read answers. Fails when the bytes do not fit the encoding.
fn read(scene: &Scene<'_>, answer: &Answer) -> Result<Value, Failure> {
    let (first, most) = range(scene);
    let bytes = answer.evidence.first().and_then(|held| held.before.as_deref()).unwrap_or_default();
    let bytes = usize::try_from(most).ok().and_then(|most| bytes.get(..most)).unwrap_or(bytes);
    let size = number(answer, "size");
    let end = if first.saturating_add(bytes.len() as u64) < size { End::InFile } else { End::OfFile };
    let decoded = Encoding::named(scene.asked.maybe("encoding")).decode(bytes, end)?;
    Ok(json!({
        "content": decoded.text,
        "size": size,
        "modified": answer.json.get("modified"),
        "checksum": answer.json.get("version"),
        "truncated": first.saturating_add(decoded.bytes as u64) < size,
    }))
}

/// What they answer.
pub(super) fn told(scene: &Scene<'_>, file: File, answer: &Answer) -> Result<Value, Failure> {
    let path = place(scene, answer, "path");
    Ok(match file {
        File::Read => read(scene, answer)?,
        File::Write => {
            json!({ "path": path, "size": number(answer, "size"), "checksum": answer.json.get("version") })
        }
        File::Append => json!({ "path": path, "new_size": number(answer, "size") }),
        File::List => listed(scene, answer, &path),
        File::Stat => described(answer),
    })
}

fn listed(scene: &Scene<'_>, answer: &Answer, path: &str) -> Value {
    let entries = answer.json.get("entries").and_then(Value::as_array);
    let mut entries: Vec<Value> = entries.into_iter().flatten().map(entry).collect();
    let order = scene.asked.maybe("sort_by").unwrap_or("name");
    // The engine's order is by name; a stable sort keeps it among equals.
    match order.trim_start_matches('-') {
        "size" => entries.sort_by_key(|entry| entry["size"].as_u64()),
        "modified" => entries.sort_by(|one, two| one["modified"].as_str().cmp(&two["modified"].as_str())),
        _ => {}
    }
    if order.starts_with('-') {
        entries.reverse();
    }
    let mut listed = json!({ "entries": entries, "total": entries.len(), "path": path });
    if answer.json.get("truncated") == Some(&Value::Bool(true)) {
        listed["truncated"] = true.into();
    }
    listed
}

fn entry(listed: &Value) -> Value {
    let place = listed["path"].as_str().unwrap_or_default();
    json!({
        "name": spot::name(place),
        "type": kind(&listed["type"]),
        "size": listed["size"].as_u64().unwrap_or_default(),
        "modified": listed["modified"],
    })
}

/// The word for what something is.
pub(super) fn kind(native: &Value) -> &str {
    match native.as_str() {
        Some("link") => "symlink",
        Some(other) => other,
        None => "other",
    }
}

fn described(answer: &Answer) -> Value {
    let fact = |name: &str| answer.json.get(name).cloned().unwrap_or_default();
    let mode = answer.json.get("mode").and_then(Value::as_str);
    let mode = mode.and_then(|octal| u32::from_str_radix(octal, 8).ok()).unwrap_or_default();
    let directory = fact("type") == "directory";
    json!({
        "exists": true,
        "type": kind(&fact("type")),
        "size": if directory { 0 } else { number(answer, "size") },
        "modified": fact("modified"),
        "created": fact("created"),
        "permissions": permissions(mode),
        "owner": fact("owner"),
    })
}

/// Nine characters, as in `rwxr-xr-x`.
fn permissions(mode: u32) -> String {
    (0..9).rev().map(|bit| if mode & (1 << bit) == 0 { '-' } else { ['x', 'w', 'r'][bit % 3] }).collect()
}

/// A place that the engine answered, spelled in full.
pub(super) fn place(scene: &Scene<'_>, answer: &Answer, name: &str) -> String {
    scene.krux.spots.absolute(answer.json.get(name).and_then(Value::as_str).unwrap_or("."))
}

pub(super) fn number(answer: &Answer, name: &str) -> u64 {
    answer.json.get(name).and_then(Value::as_u64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_nine_characters() {
        assert_eq!(permissions(0o755), "rwxr-xr-x");
        assert_eq!(permissions(0o4640), "rw-r-----");
        assert_eq!(permissions(0), "---------");
    }
}
