//! `edit_file`: quoted texts of one file are replaced, all against the same snapshot, all or none.

use engine::{Answer, Failure, Terms, editing};
use serde_json::{Map, Value, json};

use super::{
    Origin, Scene,
    asked::whole,
    class::Class,
    difference,
    envelope::{Envelope, Fields, Sorry},
    writing,
};

/// Whether an edit may be applied to text that only resembles its quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fuzzy {
    /// Never.
    Off,
    /// When nothing else does.
    On,
}

pub(super) fn editing(scene: &Scene<'_>, fuzzy: Fuzzy, terms: Terms) -> (Map<String, Value>, Terms) {
    let edits: Vec<Value> =
        scene.asked.objects("edits").into_iter().map(|edit| one(scene.origin, edit)).collect();
    let mut arguments = super::object(json!({ "path": scene.spot(), "edits": edits, "mode": "strict" }));
    if let Some(hash) = scene.asked.text_maybe("expectedSha256") {
        arguments.insert("base".to_owned(), hash.into());
    }
    let rescue = match fuzzy {
        Fuzzy::Off => editing::Rescue::None,
        Fuzzy::On => editing::Rescue::Resemblance,
    };
    (arguments, Terms { editing: editing::Rules { rescue, ..editing::Rules::PLAIN }, ..terms })
}

fn one(origin: Origin, edit: &Map<String, Value>) -> Value {
    let mut one = json!({ "old": edit["oldText"], "new": edit["newText"] });
    // The origin's code does not know `replaceAll`; its document does.
    let all = origin == Origin::Stricter && edit.get("replaceAll") == Some(&Value::Bool(true));
    match (all, expected(edit)) {
        (true, _) => one["all"] = true.into(),
        (false, Some(count)) => one["count"] = count.into(),
        (false, None) => {}
    }
    one
}

/// How often an edit says its text is there.
fn expected(edit: &Map<String, Value>) -> Option<u64> {
    edit.get("expectedOccurrences").and_then(whole)
}

pub(super) fn edited(scene: &Scene<'_>, answer: &Answer) -> Envelope {
    let path = scene.spot();
    let held = difference::held(answer);
    let (before, after) = held.map_or((None, None), |held| (held.before.as_deref(), held.after.as_deref()));
    let (sha256, size) = writing::version_and_size(answer);
    let asked = scene.asked.objects("edits");
    let told = answer.json.get("edits").and_then(Value::as_array);
    let applied: Vec<Applied> = told.into_iter().flatten().map(|edit| Applied::of(edit, &asked)).collect();
    let replacements: u64 = applied.iter().map(|edit| edit.occurrences).sum();
    let data = Fields::new()
        .with("path", path)
        .maybe("beforeSha256", before.map(writing::sha256))
        .with("afterSha256", sha256)
        .with("sizeBytes", size)
        .with("appliedEdits", applied.into_iter().map(Applied::object).collect::<Vec<_>>())
        .with("diff", difference::plain(path, before, after));
    if answer.json.get("changed") == Some(&Value::Bool(false)) {
        return Envelope::done(format!("No change to {path} (all edits matched existing content)"), data);
    }
    let output =
        format!("Edited {path} ({} edit(s), {replacements} replacement(s), sha256 {sha256})", asked.len());
    Envelope::done(output, data)
}

/// What became of one edit.
struct Applied {
    index: u64,
    occurrences: u64,
    /// The origin's name for how it was found, when that is not as it was quoted.
    fallback: Option<&'static str>,
    matched: Option<String>,
}

impl Applied {
    fn of(told: &Value, asked: &[&Map<String, Value>]) -> Self {
        let index = told["edit"].as_u64().unwrap_or_default();
        let places = told["lines"].as_array().map_or(0, Vec::len) as u64;
        // An edit that changes nothing is not looked for; it stands as often as it says.
        let stands =
            usize::try_from(index).ok().and_then(|index| asked.get(index)).and_then(|edit| expected(edit));
        let occurrences = if places == 0 { stands.unwrap_or(1) } else { places };
        let fallback = match told["how"].as_str() {
            Some("trimmed_lines") => Some("lineTrimmedReplacer"),
            Some("collapsed_space") => Some("whitespaceNormalizedReplacer"),
            Some("block_anchor") => Some("blockAnchorReplacer"),
            Some(_) | None => None,
        };
        let matched = fallback.and_then(|_| told["matched"].as_str()).map(difference::plain_text);
        Self { index, occurrences, fallback, matched }
    }

    fn object(self) -> Value {
        Fields::new()
            .with("editIndex", self.index)
            .with("occurrences", self.occurrences)
            .with("usedFallback", self.fallback.is_some())
            .with("replacerName", self.fallback.unwrap_or("exactReplacer"))
            .maybe("matchedText", self.matched)
            .into()
    }
}

/// What is said of edits that cannot be applied; nothing for any other failure.
pub(super) fn refused(scene: &Scene<'_>, failure: &Failure) -> Option<Sorry> {
    let path = scene.spot();
    let index = failure.facts.get("edit").and_then(Value::as_u64).unwrap_or_default();
    let edits = scene.asked.objects("edits");
    let says = usize::try_from(index).ok().and_then(|index| edits.get(index)).and_then(|edit| expected(edit));
    let expected = says.unwrap_or(1);
    match Class::from(failure.kind) {
        Class::Unplaced => Some(not_found(path, index, expected)),
        Class::Ambiguous => Some(several(path, index, expected, failure)),
        Class::Overlap => Some(overlapping(path, failure)),
        Class::NotText => Some(
            Sorry::new("binary_file", format!("Cannot edit binary file: {path}"))
                .at(path)
                .instead("Use apply_patch or write_file with binary-aware tooling instead of edit_file."),
        ),
        Class::Unreadable
        | Class::Missing
        | Class::NoDirectory
        | Class::Directory
        | Class::Taken
        | Class::Stale
        | Class::Arguments
        | Class::Other => None,
    }
}

fn not_found(path: &str, index: u64, expected: u64) -> Sorry {
    let more = match expected {
        1 => {
            " Re-read the file and copy the exact text you want to replace, or pass `oldText` that uniquely identifies \
             the block (multi-line is fine)."
        }
        _ => "",
    };
    Sorry::new("old_text_not_found", format!("Edit #{index}: `oldText` not found in {path}.{more}"))
        .at(path)
        .details(Fields::new().with("editIndex", index))
        .next("Re-read the file to confirm current content and adjust `oldText`.")
}

fn several(path: &str, index: u64, expected: u64, failure: &Failure) -> Sorry {
    let count = failure.facts.get("places_total").and_then(Value::as_u64).unwrap_or_default();
    let places = failure.facts.get("places").and_then(Value::as_array);
    let ranges: Vec<Value> = places.into_iter().flatten().map(range).collect();
    let message = format!(
        "Edit #{index}: expected {expected} match(es) for `oldText` in {path}, found {count}. Tighten `oldText` with more \
         surrounding context, or set `expectedOccurrences: {count}` to replace every match."
    );
    let details = Fields::new()
        .with("editIndex", index)
        .with("matchCount", count)
        .with("expectedOccurrences", expected)
        .with("matchRanges", ranges);
    Sorry::new("multiple_matches", message)
        .at(path)
        .details(details)
        .next("Either widen `oldText` to make it unique, or set `expectedOccurrences` to the actual count.")
}

fn overlapping(path: &str, failure: &Failure) -> Sorry {
    let listed = failure.facts.get("edits").and_then(Value::as_array);
    let mut indices: Vec<u64> = listed.into_iter().flatten().filter_map(Value::as_u64).collect();
    indices.sort_unstable();
    let shown: Vec<String> = indices.iter().map(ToString::to_string).collect();
    Sorry::new(
        "overlapping_edits",
        format!("Edits {} target overlapping ranges in {path}.", shown.join(", ")),
    )
    .at(path)
    .details(Fields::new().with("conflictingEditIndices", indices))
    .next("Split or rewrite the edits so their oldText regions don't intersect.")
}

/// A place by its lines and its offsets.
fn range(place: &Value) -> Value {
    Fields::new()
        .with("startLine", place["line"].clone())
        .with("endLine", place["to_line"].clone())
        .with("startOffset", place["units"][0].clone())
        .with("endOffset", place["units"][1].clone())
        .into()
}
